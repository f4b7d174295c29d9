/**
 * Instructions of division by constants (codegen/divide_constant.ts): the high half of a product is rdx of a MUL with
 * rax.
 */
import { CONSTRAINT, operandWord, ROLE } from "../codegen/vcode.ts";
import { TY } from "../ir/types.ts";
import { X } from "./instructions.ts";
import { P } from "./machine_ops.ts";
import { RAX, RDX } from "./registers.ts";
import type { X64Lowering } from "./lowering_context.ts";

function define(s: X64Lowering): number {
  return s.v.newVreg(TY.I64);
}

/** `to` = x op y in x's register. */
function tied(s: X64Lowering, row: number, to: number, x: number, y: number): number {
  s.plain(row, 0, 0, 0);
  s.v.operand(operandWord(to, ROLE.DEF, CONSTRAINT.REUSE, 1));
  s.use(x);
  s.use(y);
  s.end();
  return to;
}

/** x op y in a new vreg. */
export function binary(s: X64Lowering, row: number, x: number, y: number): number {
  return tied(s, row, define(s), x, y);
}

/** The high half of n × m. */
export function highProduct(s: X64Lowering, signed: boolean, n: number, m: number): number {
  const high = define(s);
  const i = s.plain(signed ? P.MULHI_S : P.MULHI_U, 0, 0, 0);
  s.v.clobbers[i] = s.v.addClobbers(1 << RAX, 0);
  s.v.operand(operandWord(high, ROLE.DEF, CONSTRAINT.FIXED, RDX));
  s.useFixed(n, RAX);
  s.use(m);
  s.end();
  return high;
}

/** x shifted to the right by `count`. */
export function shiftRight(s: X64Lowering, signed: boolean, x: number, count: number): number {
  const to = define(s);
  s.plain(signed ? X.SAR64_I : X.SHR64_I, count, 0, 0);
  s.v.operand(operandWord(to, ROLE.DEF, CONSTRAINT.REUSE, 1));
  s.use(x);
  s.end();
  return to;
}

/** Value `id` = n − quotient × the divisor with halves `low` and `high`. */
export function defineRemainder(
  s: X64Lowering,
  signed: boolean,
  id: number,
  n: number,
  quotient: number,
  low: number,
  high: number,
): void {
  const product = define(s);
  if (high === low >> 31 && (signed || high === 0)) {
    s.plain(X.IMUL64_I, low, 0, 0);
    s.v.operand(operandWord(product, ROLE.DEF, CONSTRAINT.REG));
    s.use(quotient);
    s.end();
  } else tied(s, X.IMUL64_R, product, quotient, s.constantBits(TY.I64, low, high));
  tied(s, X.SUB64_R, s.defVreg(id), n, product);
}
