/**
 * Instructions of division by constants (codegen/divide_constant.ts): SMULH and UMULH give the high half of a product,
 * and MSUB the remainder.
 */
import { TY } from "../ir/types.ts";
import { X } from "./instructions.ts";
import type { Arm64Lowering } from "./lowering_context.ts";

/** A new vreg = row of x, y. */
export function binary(s: Arm64Lowering, row: number, x: number, y: number): number {
  const to = s.v.newVreg(TY.I64);
  s.plain(row, 0, 0, 0);
  s.defOf(to);
  s.use(x);
  s.use(y);
  s.end();
  return to;
}

/** x shifted to the right by `count`. */
export function shiftRight(s: Arm64Lowering, signed: boolean, x: number, count: number): number {
  const to = s.v.newVreg(TY.I64);
  s.plain(signed ? X.SBFM64 : X.UBFM64, count, 63, 0);
  s.defOf(to);
  s.use(x);
  s.end();
  return to;
}

/** Value `id` = n − quotient × the divisor with halves `low` and `high`. */
export function defineRemainder(
  s: Arm64Lowering,
  id: number,
  n: number,
  quotient: number,
  low: number,
  high: number,
): void {
  const divisor = s.constantBits(TY.I64, low, high);
  s.plain(X.MSUB64, 0, 0, 0);
  s.def(id);
  s.use(quotient);
  s.use(divisor);
  s.use(n);
  s.end();
}
