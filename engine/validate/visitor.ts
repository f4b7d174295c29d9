/**
 * The interface between validation and translation: validation walks a function body once and reports it to a visitor,
 * so that SSA is built in the validating pass while each side has a stack of its own.
 *
 * Order of calls: `begin`; then for every instruction of the body, in order, exactly one call, after the instruction
 * has been found valid; then `finish` after the body's last `end` (which is reported as `end` too).
 *
 * The validator reports unreachable code too: a visitor tracks reachability itself (after unreachable, br, return, …
 * until the `else` or `end` of the frame), and ignores the instructions between, except for counting frames. The
 * operand types that validation computed are not passed on: a visitor's value stack has a type per value, and in
 * reachable code the two agree.
 */
import type { Immediates } from "../wasm/immediates.ts";
import type { ValType } from "../wasm/types.ts";

/** Kinds of frames that are reported. */
export const FRAME = { BLOCK: 0, LOOP: 1, IF: 2, TRY_TABLE: 3, TRY: 4 } as const;

export interface CodeVisitor {
  /**
   * Begins a body, with the numbers of its parameters and results. `locals` has the types of all locals, parameters
   * first; the visitor may keep it.
   */
  begin(funcIndex: number, params: number, results: number, locals: readonly ValType[]): void;
  /** Any other instruction. `id` is its row's id (wasm/opcodes.ts), `at` its absolute byte offset. */
  instruction(id: number, imm: Immediates, at: number): void;
  /**
   * block, loop, if, try_table, try: opens a frame, with the numbers of its parameters and results. For try_table,
   * `imm.catches` holds its clauses.
   */
  enter(kind: number, params: number, results: number, imm: Immediates, at: number): void;
  /** else of the innermost frame. */
  otherwise(at: number): void;
  /** catch (tag ≥ 0) or catch_all (tag −1) of the innermost legacy try. */
  handler(tag: number, at: number): void;
  /**
   * end of the innermost frame, the function's own included. A legacy try may end with `delegate`, whose depth is ≥ 0;
   * else −1.
   */
  end(at: number, delegate: number): void;
  /** The body has ended and is valid. */
  finish(): void;
}
