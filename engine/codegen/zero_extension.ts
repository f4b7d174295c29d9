/**
 * Zero extension that costs nothing. In: an i64 value of the function being lowered. Out: whether its upper half is
 * known to be zero, from the shape of its computation.
 */
import { OP } from "../ir/ops.ts";
import type { LoweringContext } from "./lowering_context.ts";

/** Depth to which operands of a value are followed. */
const DEPTH = 3;

/** Whether the upper half of the i64 value `id` is known to be zero. */
export function hasZeroUpperHalf(s: LoweringContext, id: number, depth: number = DEPTH): boolean {
  const { op, a, b, c, imm } = s;
  switch (op[id]) {
    case OP.CONST:
      return c[id] === 0;
    case OP.EXTEND_U:
    case OP.LOAD8_U:
    case OP.LOAD16_U:
    case OP.LOAD32_U:
    case OP.CLZ:
    case OP.CTZ:
    case OP.POPCNT:
      return true;
    case OP.SHR_U:
      return op[b[id]] === OP.CONST
        ? (imm[b[id]] & 32) !== 0 || (depth > 0 && hasZeroUpperHalf(s, a[id], depth - 1))
        : false;
    case OP.AND:
      return depth > 0 && (hasZeroUpperHalf(s, a[id], depth - 1) || hasZeroUpperHalf(s, b[id], depth - 1));
    case OP.OR:
    case OP.XOR:
    case OP.SELECT:
      return depth > 0 && hasZeroUpperHalf(s, a[id], depth - 1) && hasZeroUpperHalf(s, b[id], depth - 1);
  }
  return false;
}
