/**
 * What emission of a function asks of a backend: a record of functions over its own Emission. The order of blocks, edits, edges and
 * out-of-line code (emit_function.ts, emit_edges.ts) is the same for all; what an instruction, a compare or a prologue is made of is not.
 */
import type { BlockEnds } from "./block_ends.ts";
import type { FunctionEmission } from "./emission.ts";

export interface Emitter<E extends FunctionEmission> {
  /** Byte between functions. */
  readonly filler: number;
  /** Room for the longest expansion of one VCode instruction. */
  readonly reserved: number;
  /** The stack check and the frame. */
  prologue(e: E): void;
  /** Instruction `i` of block `k`, unless it is one of those at the end of a block that emit_function.ts knows itself. */
  instruction(e: E, ends: BlockEnds, i: number, k: number): void;
  /** Edits [first, end) of the allocation. */
  edits(e: E, first: number, end: number): void;
  /** The compare of instruction `i`; returns the condition to branch on. */
  flags(e: E, i: number): number;
  /** Jumps to `label` if condition `cc` of compare `i`, whose flags were set by the call above, holds. */
  branchOn(e: E, i: number, cc: number, label: number): void;
  /** May the moves of edge `back` stand between compare `i` and its branch, whose other edge is `other`? */
  movesEarly(e: E, i: number, back: number, other: number): boolean;
  /** Calls the trap stub of `code` for instruction `at` where the frame is `frame`. */
  callTrap(e: E, at: number, code: number, frame: number): void;
  /** Cold piece `c` of a kind that is the backend's, or of a call into another instance. */
  cold(e: E, c: number): void;
  /** Constants and tables behind the code. */
  data(e: E): void;
  /** Appends the function to the image. */
  finish(e: E): void;
}
