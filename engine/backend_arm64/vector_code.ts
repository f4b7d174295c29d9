/**
 * Vector instructions on virtual registers, for rules that need several: every function emits one and returns the
 * register of its result.
 */
import { CONSTRAINT, operandWord, ROLE } from "../codegen/vcode.ts";
import { TY } from "../ir/types.ts";
import type { Arm64Lowering } from "./lowering_context.ts";

/** A new register of type `ty`, defined by the current instruction. */
function result(s: Arm64Lowering, ty: number): number {
  const vreg = s.v.newVreg(ty);
  s.v.operand(operandWord(vreg, ROLE.DEF, CONSTRAINT.REG));
  return vreg;
}

/** row d, x; `imm` and `disp` are the fields i and s, `ty` the result's type. */
export function one(s: Arm64Lowering, row: number, x: number, imm = 0, disp = 0, ty: number = TY.V128): number {
  s.plain(row, imm, disp, 0);
  const d = result(s, ty);
  s.use(x);
  s.end();
  return d;
}

/** row d, x, y */
export function two(s: Arm64Lowering, row: number, x: number, y: number, imm = 0): number {
  s.plain(row, imm, 0, 0);
  const d = result(s, TY.V128);
  s.use(x);
  s.use(y);
  s.end();
  return d;
}

/** row d, x where d begins as `old`. */
export function oneInto(s: Arm64Lowering, row: number, old: number, x: number, imm = 0, disp = 0): number {
  s.plain(row, imm, disp, 0);
  const d = s.v.newVreg(TY.V128);
  s.v.operand(operandWord(d, ROLE.DEF, CONSTRAINT.REUSE, 2));
  s.use(x);
  s.use(old);
  s.end();
  return d;
}

/** row d, x, y where d begins as `old`. */
export function twoInto(s: Arm64Lowering, row: number, old: number, x: number, y: number): number {
  s.plain(row, 0, 0, 0);
  const d = s.v.newVreg(TY.V128);
  s.v.operand(operandWord(d, ROLE.DEF, CONSTRAINT.REUSE, 3));
  s.use(x);
  s.use(y);
  s.use(old);
  s.end();
  return d;
}
