/**
 * Readable listings of machine code. In: the lines of a backend's disassembler. Out: text. Invariant: lines are in
 * ascending order of their offsets, a label before the instruction that it names.
 */

/** One line of a listing. */
export interface ListedLine {
  /** Offset of the instruction. */
  readonly at: number;
  readonly text: string;
  /** The line names the place; it is not an instruction. */
  readonly isLabel?: boolean;
  /** The offset to which a branch leads, or at which the constant is that the instruction reads. */
  readonly target?: number;
}

/** One line of text for each, instructions indented. */
export function listingText(lines: readonly ListedLine[]): string {
  return lines.map(({ text, isLabel }) => isLabel === true ? `${text}\n` : `  ${text}\n`).join("");
}
