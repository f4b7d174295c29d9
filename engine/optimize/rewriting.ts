/**
 * The interface between global value numbering (gvn.ts) and the rewrite rules that it applies (simplify.ts, divide.ts):
 * the function, the conditions that hold at the instruction, and the creation of further instructions in front of it.
 */
import type { IrFunction } from "../ir/function.ts";
import type { DominatingConditions } from "./dominating_conditions.ts";

export interface Rewriting {
  readonly f: IrFunction;
  readonly facts: DominatingConditions;
  /** Whether there is room for further instructions. */
  readonly room: boolean;
  /** Whether `v` is a parameter of a loop's header. */
  isLoopParam(v: number): boolean;
  /** How often a rule applied. */
  simplified: number;
  /**
   * The value `op ty a b c imm`, simplified like any other and inserted in front of the current instruction, unless an
   * equal one exists: the result may be another operation, a constant or an operand.
   */
  make(op: number, ty: number, a: number, b?: number, c?: number, imm?: number): number;
  /** The constant of type `ty` with these halves; `hi` is ignored for 32-bit types. */
  constant(ty: number, lo: number, hi: number): number;
}
