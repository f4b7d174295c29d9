/**
 * Lines of machine code with the wasm instructions that they belong to. In: the disassembler's lines and the tables of
 * an image. Out: text with offsets within the function, and positions. Invariant: a line of optimized code has the
 * position from which it was selected; one of baseline code has a position only if the image's tables name it, because
 * baseline code keeps none for plain arithmetic.
 */
import type { ListedLine } from "../codegen/code_listing.ts";
import type { CodeTables } from "../link/image.ts";

/** A wasm position: byte offset in the module, 0 for none, and inline site. */
interface CodePosition {
  readonly pos: number;
  readonly site: number;
}

/** A line of machine code. */
interface CodeLine extends CodePosition {
  readonly text: string;
}

/** The position of the instruction in bytes [at, end). */
type PositionOf = (at: number, end: number) => CodePosition;

const NOWHERE: CodePosition = { pos: 0, site: 0 };

/** Index of the last of `count` ascending values that is at most `value`; −1 if there is none. */
function lastAtMost(count: number, valueAt: (k: number) => number, value: number): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (valueAt(middle) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Positions by the rows of `MachineCode.positions`. */
export function optimizedPositions(rows: Int32Array): PositionOf {
  return (at) => {
    const k = 3 * lastAtMost(rows.length / 3, (n) => rows[3 * n], at);
    return k < 0 ? NOWHERE : { pos: rows[k + 1], site: rows[k + 2] };
  };
}

/** Positions of calls, by their return addresses, and of instructions that may trap. */
export function baselinePositions(
  { callReturn, callPos, callSite, trapAt, trapPos, trapSite }: CodeTables,
): PositionOf {
  return (at, end) => {
    const trap = lastAtMost(trapAt.length, (k) => trapAt[k], at);
    if (trapAt[trap] === at) return { pos: trapPos[trap], site: trapSite[trap] };
    const call = lastAtMost(callReturn.length, (k) => callReturn[k], end);
    return callReturn[call] === end ? { pos: callPos[call], site: callSite[call] } : NOWHERE;
  };
}

/** The function that a listing shows. */
interface ListedFunction {
  readonly start: number;
  readonly end: number;
  /** The name of the code at an offset of the image outside the function. */
  readonly nameAt: (offset: number) => string | undefined;
  readonly positionOf: PositionOf;
}

/** The lines with their positions: offset in the function, instruction, target. */
export function codeLines(
  listed: readonly ListedLine[],
  { start, end, nameAt, positionOf }: ListedFunction,
): CodeLine[] {
  return listed.map(({ at, text, isLabel, target }, k) => {
    if (isLabel === true) return { text, ...NOWHERE };
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
