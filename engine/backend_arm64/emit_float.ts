/**
 * Emission of float operations that take several instructions: copying signs, and truncations that trap. The hardware's
 * conversions saturate, so a value that may be out of range is compared with the range's bounds.
 */
import { bitsOfF32, type f64, highBits, lowBits } from "../base/numbers.ts";
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

// Bounds of the floats that truncate to an integer type. TOO_LOW: the largest f64 that is too small for an i32.
const TOO_LOW: f64 = -2147483649;
const I32_LEAST: f64 = -2147483648;
const I32_END: f64 = 2147483648;
const U32_END: f64 = 4294967296;
const I64_LEAST: f64 = -(2 ** 63);
const I64_END: f64 = 2 ** 63;
const U64_END: f64 = 2 ** 64;
const BELOW_ZERO: f64 = -1;

/** v31 = value */
function scratchConstant(e: Emission, value: f64, double: number): void {
  if (double === 1) emitFloatConstant(e, SCRATCH_VECTOR, lowBits(value), highBits(value), 1);
  else emitFloatConstant(e, SCRATCH_VECTOR, bitsOfF32(value), 0, 0);
}

/** The smallest float that is too large. */
function upperBound(op: number): f64 {
  return op === P.TRUNC_S32 ? I32_END : op === P.TRUNC_U32 ? U32_END : op === P.TRUNC_S64 ? I64_END : U64_END;
}

/** The row of the conversion from an f32. */
function conversionRow(op: number): number {
  switch (op) {
    case P.TRUNC_S32:
      return X.FCVTZS32_S;
    case P.TRUNC_U32:
      return X.FCVTZU32_S;
    case P.TRUNC_S64:
      return X.FCVTZS64_S;
  }
  return X.FCVTZU64_S;
}

export function emitTruncation(e: Emission, i: number, op: number): void {
  const { v, asm } = e;
  const double = v.aux[i] & 1;
  const o = v.firstOperand[i];
  const x = e.register(o + 1);
  // The lower bound fits, unless the floats have one between it and the integer below.
  const inclusive = op === P.TRUNC_S64 || (op === P.TRUNC_S32 && double === 0);
  const low = op === P.TRUNC_S32 ? (inclusive ? I32_LEAST : TOO_LOW) : op === P.TRUNC_S64 ? I64_LEAST : BELOW_ZERO;
  const overflow = e.trap(i, TRAP.INTEGER_OVERFLOW);
  asm.rrr(X.FCMP_S + double, 0, x, x);
  e.branch(CC.VS, e.trap(i, TRAP.INVALID_CONVERSION));
  scratchConstant(e, upperBound(op), double);
  asm.rrr(X.FCMP_S + double, 0, x, SCRATCH_VECTOR);
  e.branch(CC.GE, overflow);
  scratchConstant(e, low, double);
  asm.rrr(X.FCMP_S + double, 0, x, SCRATCH_VECTOR);
  e.branch(inclusive ? CC.LT : CC.LE, overflow);
  asm.rrr(conversionRow(op) + double, e.register(o), x, 0);
}
