/**
 * The seam between validation and translation: validation walks a function body once and tells a visitor what it saw, so
 * that SSA is built in the validating pass (design: "one pass") while each side knows only its own stack.
 *
 * Order of calls: `begin`, then for every instruction of the body, in order, exactly one call, made after the instruction
 * has been found valid; then `finish` after the body's last `end` (which is reported as `end` too).
 *
 * The validator reports everything, also code that cannot be reached: a visitor keeps its own reachability (after
 * unreachable, br, return, … until the `else` or `end` of the frame) and ignores what lies in between, counting frames.
 * The operand types that validation saw are not passed on: a visitor's own value stack has a type per value, and in
 * reachable code both agree.
 */
import type { Immediates } from "../wasm/immediates.ts";
import type { ValType } from "../wasm/types.ts";

/** Kinds of frames a visitor sees opened. */
export const FRAME = { BLOCK: 0, LOOP: 1, IF: 2, TRY_TABLE: 3, TRY: 4 } as const;

export interface CodeVisitor {
  /**
   * A body begins. `locals` has the types of all locals, parameters first; the visitor may keep all three arrays.
   */
  begin(funcIndex: number, params: readonly ValType[], results: readonly ValType[], locals: readonly ValType[]): void;
  /** Any instruction but those below. `id` is its row's id (wasm/opcodes.ts), `at` its absolute byte offset. */
  instruction(id: number, imm: Immediates, at: number): void;
  /** block, loop, if, try_table, try: a frame opens. For try_table, `imm.catches` holds its clauses. */
  enter(kind: number, params: readonly ValType[], results: readonly ValType[], imm: Immediates, at: number): void;
  /** else of the innermost frame. */
  otherwise(at: number): void;
  /** catch (tag ≥ 0) or catch_all (tag −1) of the innermost legacy try. */
  handler(tag: number, at: number): void;
  /** end of the innermost frame; the function's own last end included. `delegate` ends a legacy try: `depth` ≥ 0, else −1. */
  end(at: number, delegate: number): void;
  /** The body has ended and is valid. */
  finish(): void;
}
