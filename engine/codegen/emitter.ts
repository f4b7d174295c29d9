/**
 * The backend's side of emission: a record of functions over its own Emission. The order of blocks, edits, edges and
 * out-of-line code (emit_function.ts, emit_edges.ts) is the same for all backends; the instructions are not.
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
  /** Instruction `i`, a row, with the consumer of its flags; emit_edges.ts emits branches. */
  row(e: E, i: number): void;
  /** Instruction `i`, pseudo operation `op` of the backend's own. */
  instruction(e: E, i: number, op: number): void;
  /** Rematerializes instruction `i` into `location`. */
  rematerialize(e: E, i: number, location: number): void;
  /** Drops the frame and returns. */
  leave(e: E): void;
  division(e: E, i: number, op: number): void;
  copysign(e: E, i: number): void;
  truncation(e: E, i: number, op: number): void;
  bounds(e: E, i: number): void;
  checkIndex(e: E, i: number): void;
  atomicLoop(e: E, i: number): void;
  allocation(e: E, i: number): void;
  charge(e: E, i: number): void;
  poll(e: E, i: number): void;
  /** Selects among edges first … first + n − 1 (in `succ`) by the index of SWITCH `i`; the last is the default. */
  switch(e: E, ends: BlockEnds, i: number, first: number, n: number): void;
  call(e: E, i: number, op: number): void;
  tailCall(e: E, i: number, op: number): void;
  /** Out-of-line code of instruction `i`: see OUT_OF_LINE in emission.ts. */
  crossCall(e: E, i: number, landing: number, back: number): void;
  crossTailCall(e: E): void;
  outOfFuel(e: E, i: number): void;
  slowBounds(e: E, i: number, back: number): void;
  slowAllocation(e: E, i: number, back: number): void;
  /** Edits [first, end) of the allocation. */
  edits(e: E, first: number, end: number): void;
  /** The compare of instruction `i`; returns the condition to branch on. */
  flags(e: E, i: number): number;
  /** Jumps to `label` if condition `cc` of compare `i`, whose flags were set by the call above, holds. */
  branchOn(e: E, i: number, cc: number, label: number): void;
  /**
   * Whether the moves of edge `back` may be emitted between compare `i` and its branch, whose other edge is `other`.
   */
  movesEarly(e: E, i: number, back: number, other: number): boolean;
  /** Calls the trap stub of `code` for instruction `at` where the frame is `frame`. */
  callTrap(e: E, at: number, code: number, frame: number): void;
  /** Fragment `c` of out-of-line code, of a kind of the backend's own. */
  outOfLine(e: E, c: number): void;
  /** Constants and tables after the code. */
  data(e: E): void;
  /** Appends the function to the image. */
  finish(e: E): void;
}
