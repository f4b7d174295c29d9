/**
 * Lines of machine code with the positions of their wasm instructions. In: the disassembler's lines and the tables of
 * an image. Out: text with offsets within the function, and positions. Invariant: a line of optimized code has the
 * position of the instruction from which it was selected; a line of baseline code has a position only if the image's
 * tables name it, because baseline code keeps none for plain arithmetic.
 */
import type { ListedLine } from "../codegen/code_listing.ts";
import { type CodePosition, NO_POSITION, type PositionOf } from "../link/code_positions.ts";

/** A line of machine code. */
interface CodeLine extends CodePosition {
  readonly text: string;
}

/** The function that a listing shows. */
interface ListedFunction {
  readonly start: number;
  readonly end: number;
  /** The name of the code at an offset of the image outside the function. */
  readonly nameAt: (offset: number) => string | undefined;
  readonly positionOf: PositionOf;
}

/** Formats the lines, as hexadecimal offset in the function, instruction and target, and adds their positions. */
export function codeLines(
  listed: readonly ListedLine[],
  { start, end, nameAt, positionOf }: ListedFunction,
): CodeLine[] {
  return listed.map(({ at, text, isLabel, target }, k) => {
    if (isLabel === true) return { text, ...NO_POSITION };
    const next = listed.slice(k + 1, k + 3).find((line) => line.at > at)?.at ?? end;
    const head = (at - start).toString(16).padStart(4, "0");
    const shown = target === undefined ? text : withTarget(text, target - start, end - start, nameAt(target));
    return { text: `${head}  ${shown}`, ...positionOf(at, next) };
  });
}

/** The text of a branch with its target: the name of other code, or a place in this function. */
function withTarget(text: string, distance: number, size: number, name: string | undefined): string {
  if (distance >= 0 && distance < size) {
    return /\bL\d+\]?$/.test(text) ? text : `${text}  ; ${distance.toString(16).padStart(4, "0")}`;
  }
  if (name === undefined) return text;
  return /\boffset \d+$/.test(text) ? text.replace(/offset \d+$/, name) : `${text}  ; ${name}`;
}
