/**
 * Emission of float operations that take several instructions: copying signs, and truncations that trap. The hardware's
 * conversions saturate, so a value that may be out of range is compared with the range's bounds.
 */
import { TRAP } from "../base/traps.ts";
import type { Emission } from "./emission.ts";
import { X } from "./instructions.ts";
import { CC, P } from "./machine_ops.ts";
import { SCRATCH_VECTOR } from "./registers.ts";
import { emitFloatConstant } from "./emit_row.ts";

/** d (which is the first operand) takes the sign of the second. */
export function emitCopysign(e: Emission, i: number): void {
  const { v, asm } = e;
  const double = v.aux[i] & 1;
  const o = v.firstOperand[i];
  // −0 is the sign bit.
  asm.rrr(X.MOVI_ZERO, SCRATCH_VECTOR, 0, 0);
  asm.rrr(X.FNEG_S + double, SCRATCH_VECTOR, SCRATCH_VECTOR, 0);
  asm.rrr(X.BIT_8B, e.register(o), e.register(o + 2), SCRATCH_VECTOR);
}

/** Bounds of the floats that truncate to an integer type. */
interface Range {
  /** The largest float that is too small, or (`inclusive`) the smallest that fits. */
  low: number;
  inclusive: boolean;
  /** The smallest float that is too large. */
  high: number;
}

function rangeOf(op: number, double: number): Range {
  switch (op) {
    case P.TRUNC_S32:
      return double === 1
        ? { low: -2147483649, inclusive: false, high: 2147483648 }
        : { low: -2147483648, inclusive: true, high: 2147483648 };
    case P.TRUNC_U32:
      return { low: -1, inclusive: false, high: 4294967296 };
    case P.TRUNC_S64:
      return { low: -(2 ** 63), inclusive: true, high: 2 ** 63 };
  }
  return { low: -1, inclusive: false, high: 2 ** 64 };
}

const BITS = new DataView(new ArrayBuffer(8));

/** v31 = value */
function scratchConstant(e: Emission, value: number, double: number): void {
  if (double === 1) {
    BITS.setFloat64(0, value, true);
    emitFloatConstant(e, SCRATCH_VECTOR, BITS.getInt32(0, true), BITS.getInt32(4, true), 1);
  } else {
    BITS.setFloat32(0, value, true);
    emitFloatConstant(e, SCRATCH_VECTOR, BITS.getInt32(0, true), 0, 0);
  }
}

const CONVERSIONS: Readonly<Record<number, number>> = {
  [P.TRUNC_S32]: X.FCVTZS32_S,
  [P.TRUNC_U32]: X.FCVTZU32_S,
  [P.TRUNC_S64]: X.FCVTZS64_S,
  [P.TRUNC_U64]: X.FCVTZU64_S,
};

export function emitTruncation(e: Emission, i: number, op: number): void {
  const { v, asm } = e;
  const double = v.aux[i] & 1;
  const o = v.firstOperand[i];
  const x = e.register(o + 1);
  const { low, inclusive, high } = rangeOf(op, double);
  const overflow = e.trap(i, TRAP.INTEGER_OVERFLOW);
  asm.rrr(X.FCMP_S + double, 0, x, x);
  e.branch(CC.VS, e.trap(i, TRAP.INVALID_CONVERSION));
  scratchConstant(e, high, double);
  asm.rrr(X.FCMP_S + double, 0, x, SCRATCH_VECTOR);
  e.branch(CC.GE, overflow);
  scratchConstant(e, low, double);
  asm.rrr(X.FCMP_S + double, 0, x, SCRATCH_VECTOR);
  e.branch(inclusive ? CC.LT : CC.LE, overflow);
  asm.rrr(CONVERSIONS[op] + double, e.register(o), x, 0);
}
