/**
 * Upper bounds of unsigned values, from the shape of their computation: how many low bits of a value can be set. In: a
 * value. Out: a number of bits, the type's width if nothing is known. Follows a few operations, never block parameters.
 */
import type { IrFunction } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";

/** Number of bits that can be set in constant `v`. */
function constantBits(f: IrFunction, v: number): number {
  if (f.ty[v] === TY.I64 && f.c[v] !== 0) return 64 - Math.clz32(f.c[v]);
  return 32 - Math.clz32(f.imm[v]);
}

/** Number of low bits of `v`, an i32 or i64, that can be set. Operands are followed to the depth `depth`. */
export function significantBits(f: IrFunction, v: number, depth = 3): number {
  const { op, ty, a, b, imm } = f;
  const width = ty[v] === TY.I32 ? 32 : 64;
  const o = op[v];
  if (o >= OP.EQ && o <= OP.GE_U || o >= OP.FEQ && o <= OP.FGE) return 1;
  switch (o) {
    case OP.CONST:
      return constantBits(f, v);
    case OP.LOAD8_U:
      return 8;
    case OP.LOAD16_U:
      return 16;
    case OP.LOAD32_U:
      return 32;
    case OP.CLZ:
    case OP.CTZ:
    case OP.POPCNT:
      return width === 32 ? 6 : 7;
  }
  if (depth === 0) return width;
  switch (o) {
    case OP.AND: {
      const y = significantBits(f, b[v], depth - 1);
      return y <= 8 ? y : Math.min(y, significantBits(f, a[v], depth - 1));
    }
    case OP.OR:
    case OP.XOR:
      return Math.max(significantBits(f, a[v], depth - 1), significantBits(f, b[v], depth - 1));
    case OP.ADD:
      return Math.min(
        width,
        Math.max(significantBits(f, a[v], depth - 1), significantBits(f, b[v], depth - 1)) + 1,
      );
    case OP.MUL:
      return Math.min(width, significantBits(f, a[v], depth - 1) + significantBits(f, b[v], depth - 1));
    case OP.SHR_U:
      if (op[b[v]] !== OP.CONST) return significantBits(f, a[v], depth - 1);
      return Math.max(0, significantBits(f, a[v], depth - 1) - (imm[b[v]] & (width - 1)));
    case OP.SHL:
      if (op[b[v]] !== OP.CONST) return width;
      return Math.min(width, significantBits(f, a[v], depth - 1) + (imm[b[v]] & (width - 1)));
    case OP.REM_U:
      return Math.min(significantBits(f, a[v], depth - 1), significantBits(f, b[v], depth - 1));
    case OP.DIV_U:
    case OP.EXTEND_U:
      return significantBits(f, a[v], depth - 1);
    case OP.EXTEND_S: {
      // Zero extension and sign extension are the same below the sign bit.
      const bits = significantBits(f, a[v], depth - 1);
      return bits < 32 ? bits : width;
    }
    case OP.WRAP:
      return Math.min(32, significantBits(f, a[v], depth - 1));
    case OP.SELECT:
      return Math.max(significantBits(f, a[v], depth - 1), significantBits(f, b[v], depth - 1));
    default:
      return width;
  }
}
