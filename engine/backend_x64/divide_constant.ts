/**
 * Instructions of division by constants (codegen/divide_constant.ts): the high half of a product is rdx of a MUL with
 * rax.
 */
import { type DivisionRules, wideConstant } from "../codegen/divide_constant.ts";
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

export const DIVISION: DivisionRules<X64Lowering> = {
  highProduct: (s, signed, n, m) => {
    const high = define(s);
    const i = s.plain(signed ? P.MULHI_S : P.MULHI_U, 0, 0, 0);
    s.v.clobbers[i] = s.v.addClobbers(1 << RAX, 0);
    s.v.operand(operandWord(high, ROLE.DEF, CONSTRAINT.FIXED, RDX));
    s.useFixed(n, RAX);
    s.use(m);
    s.end();
    return high;
  },
  add: (s, x, y) => tied(s, X.ADD64_R, define(s), x, y),
  subtract: (s, x, y) => tied(s, X.SUB64_R, define(s), x, y),
  shiftRight: (s, signed, x, count) => {
    const to = define(s);
    s.plain(signed ? X.SAR64_I : X.SHR64_I, count, 0, 0);
    s.v.operand(operandWord(to, ROLE.DEF, CONSTRAINT.REUSE, 1));
    s.use(x);
    s.end();
    return to;
  },
  remainder: (s, id, n, quotient, d) => {
    const product = define(s);
    if (d === BigInt.asIntN(32, d)) {
      s.plain(X.IMUL64_I, Number(d), 0, 0);
      s.v.operand(operandWord(product, ROLE.DEF, CONSTRAINT.REG));
      s.use(quotient);
      s.end();
    } else tied(s, X.IMUL64_R, product, quotient, wideConstant(s, d));
    tied(s, X.SUB64_R, s.defVreg(id), n, product);
  },
};
