/**
 * A visitor of a body's instructions. Readers of bodies (valid_body.ts, loop_entry.ts) call it; translation implements
 * it.
 *
 * Order of calls: `begin`, then exactly one call for every instruction, in order, up to and including the `end` of the
 * body. Unreachable instructions are reported too: a visitor tracks reachability itself (after unreachable, br, return,
 * … until the `else` or `end` of the frame), and ignores the instructions between, except for counting frames.
 */
import type { Immediates } from "../wasm/immediates.ts";

/** Kinds of frames that are reported. */
export const FRAME = { BLOCK: 0, LOOP: 1, IF: 2, TRY_TABLE: 3, TRY: 4 } as const;

export abstract class BodyVisitor {
  /**
   * Begins a body, with the numbers of its parameters and results. `locals` has the types of all locals, parameters
   * first.
   */
  abstract begin(funcIndex: number, params: number, results: number, locals: readonly number[]): void;
  /** Any other instruction. `id` is its row's id (wasm/opcodes.ts), `at` its absolute byte offset. */
  abstract instruction(id: number, imm: Immediates, at: number): void;
  /**
   * block, loop, if, try_table, try: opens a frame, with the numbers of its parameters and results. For try_table,
   * `imm.catches` holds its clauses.
   */
  abstract enter(kind: number, params: number, results: number, imm: Immediates, at: number): void;
  /** else of the innermost frame. */
  abstract otherwise(at: number): void;
  /** catch (tag ≥ 0) or catch_all (tag −1) of the innermost legacy try. */
  abstract handler(tag: number, at: number): void;
  /**
   * end of the innermost frame, the function's own included. A legacy try may end with `delegate`, whose depth is ≥ 0;
   * else −1.
   */
  abstract end(at: number, delegate: number): void;
}
