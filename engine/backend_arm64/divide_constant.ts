/**
 * Instructions of division by constants (codegen/divide_constant.ts): SMULH and UMULH give the high half of a product,
 * and MSUB the remainder.
 */
import { type DivisionRules, wideConstant } from "../codegen/divide_constant.ts";
import { TY } from "../ir/types.ts";
import { X } from "./instructions.ts";
import type { Arm64Lowering } from "./lowering_context.ts";

/** A new vreg = row of x, y. */
function binary(s: Arm64Lowering, row: number, x: number, y: number): number {
  const to = s.v.newVreg(TY.I64);
  s.plain(row, 0, 0, 0);
  s.defOf(to);
  s.use(x);
  s.use(y);
  s.end();
  return to;
}

export const DIVISION: DivisionRules<Arm64Lowering> = {
  highProduct: (s, signed, n, m) => binary(s, signed ? X.SMULH : X.UMULH, n, m),
  add: (s, x, y) => binary(s, X.ADD64, x, y),
  subtract: (s, x, y) => binary(s, X.SUB64, x, y),
  shiftRight: (s, signed, x, count) => {
    const to = s.v.newVreg(TY.I64);
    s.plain(signed ? X.SBFM64 : X.UBFM64, count, 63, 0);
    s.defOf(to);
    s.use(x);
    s.end();
    return to;
  },
  remainder: (s, id, n, quotient, d) => {
    const divisor = wideConstant(s, d);
    s.plain(X.MSUB64, 0, 0, 0);
    s.def(id);
    s.use(quotient);
    s.use(divisor);
    s.use(n);
    s.end();
  },
};
