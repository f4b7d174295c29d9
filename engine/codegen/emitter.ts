/**
 * The backend's side of emission, over its own Emission. The order of blocks, edits, edges and
 * out-of-line code (emit_function.ts, emit_edges.ts) is the same for all backends; the instructions are not.
 */
import type { BlockEnds } from "./block_ends.ts";
import type { FunctionEmission } from "./emission.ts";

export abstract class Emitter<E extends FunctionEmission> {
  /** Byte between functions. */
  readonly filler: number;
  /** Room for the longest expansion of one VCode instruction. */
  readonly reserved: number;
  /** Whether loops and cases of switches are aligned to more than LOOP_ALIGNMENT (code_alignment.ts). */
  readonly alignsWidely: boolean;

  constructor(filler: number, reserved: number, alignsWidely: boolean) {
    this.filler = filler;
    this.reserved = reserved;
    this.alignsWidely = alignsWidely;
  }

  /** The stack check and the frame. */
  abstract prologue(e: E): void;
  /** Instruction `i`, a row, with the consumer of its flags; emit_edges.ts emits branches. */
  abstract row(e: E, i: number): void;
  /** Instruction `i`, pseudo operation `op` of the backend's own. */
  abstract instruction(e: E, i: number, op: number): void;
  /** Rematerializes instruction `i` into `location`. */
  abstract rematerialize(e: E, i: number, location: number): void;
  /** Drops the frame and returns. */
  abstract leave(e: E): void;
  abstract division(e: E, i: number, op: number): void;
  abstract copysign(e: E, i: number): void;
  abstract truncation(e: E, i: number, op: number): void;
  abstract bounds(e: E, i: number): void;
  abstract checkIndex(e: E, i: number): void;
  abstract atomicLoop(e: E, i: number): void;
  abstract allocation(e: E, i: number): void;
  abstract charge(e: E, i: number): void;
  abstract poll(e: E, i: number): void;
  /** Selects among edges first … first + n − 1 (in `succ`) by the index of SWITCH `i`; the last is the default. */
  abstract switchOn(e: E, ends: BlockEnds, i: number, first: number, n: number): void;
  abstract tailCall(e: E, i: number, op: number): void;
  /** Out-of-line code of instruction `i`: see OUT_OF_LINE in emission.ts. */
  abstract crossCall(e: E, i: number, landing: number, back: number): void;
  abstract crossTailCall(e: E): void;
  abstract outOfFuel(e: E, i: number): void;
  abstract slowBounds(e: E, i: number, back: number): void;
  abstract slowAllocation(e: E, i: number, back: number): void;
  /** Edits [first, end) of the allocation. */
  abstract edits(e: E, first: number, end: number): void;
  /** The compare of instruction `i`; returns the condition to branch on. */
  abstract flags(e: E, i: number): number;
  /** Whether the call above would emit nothing, because the last instruction has set the flags that it returns. */
  abstract flagsAreSet(e: E, i: number): boolean;
  /** Jumps to `label` if condition `cc` of compare `i`, whose flags were set by the call above, holds. */
  abstract branchOn(e: E, i: number, cc: number, label: number): void;
  /**
   * Whether the moves of edge `back` may be emitted between compare `i` and its branch, whose other edge is `other`.
   */
  abstract movesEarly(e: E, i: number, back: number, other: number): boolean;
  /** Calls the trap stub of `code` for instruction `at` where the frame is `frame`. */
  abstract callTrap(e: E, at: number, code: number, frame: number): void;
  /** Fragment `c` of out-of-line code, of a kind of the backend's own. */
  abstract outOfLine(e: E, c: number): void;
  /** Constants and tables after the code. */
  abstract data(e: E): void;
  /** Appends the function to the image. */
  abstract finish(e: E): void;

  // Instructions of calls (emit_calls.ts).

  /** Calls, or jumps to, `target` through a relocation of `kind`. */
  abstract callTarget(e: E, kind: number, target: number): void;
  abstract jumpTarget(e: E, kind: number, target: number): void;
  /** Makes label `after` the return address of the jump that follows. */
  abstract returnTo(e: E, after: number): void;
  /** Puts the address of the record that the context embeds for import `index` into the record register. */
  abstract importRecord(e: E, index: number): void;
  /** Branches to `label` unless the record belongs to the context. */
  abstract branchForeign(e: E, label: number): void;
  /** Calls, or jumps to, the code of the record that was just compared. */
  abstract callRecord(e: E): void;
  abstract jumpRecord(e: E): void;
  /**
   * Calls the code of a record known to belong to this instance; returns false, and does nothing, if such a record is
   * compared like any other.
   */
  abstract callOwn(e: E): boolean;
  /** The next instruction traps with `code` if the record is null. */
  abstract mayFault(e: E, i: number, code: number): void;
}
