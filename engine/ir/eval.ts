/**
 * The semantics of each pure operation (and of the trapping divisions and truncations), defined once: constant folding
 * and the test interpreter both call it. In: an operation, its result type, its operand type and operand bits as 32-bit
 * halves (the high half of i32 and f32 is ignored). Out: {@linkcode evalLo} and {@linkcode evalHi}, and the outcome as
 * the return value.
 *
 * Floats stay bit patterns except inside an arithmetic operation; f32 arithmetic is f64 arithmetic rounded once more,
 * which is exact for + − × ÷ √ (Figueroa, "When is double rounding innocuous?", 1995). An arithmetic operation whose
 * result is NaN propagates its first NaN operand, quieted, and returns EVAL_NAN: hardware may choose another NaN, so
 * folding leaves the operation alone. 64-bit integers are computed on halves; no BigInt. Specification, 4.3.
 *
 * evalLo and evalHi are result registers: callers read them right after the call, and nothing in this file calls out.
 */
import {
  bitsOfF32,
  f32OfBits,
  type f64,
  f64OfBits,
  highBits,
  isBelow,
  lowBits,
  lowWord,
  unsigned,
} from "../base/numbers.ts";
import { TRAP } from "../base/traps.ts";
import { DIVISION_CHECK, OP } from "./ops.ts";
import { TY } from "./types.ts";

/** The result is exact. A positive outcome is a trap code of traps.ts instead. */
export const EVAL_DONE = 0;
/** The result is a NaN of arithmetic: its bits are one of those that the specification allows. */
export const EVAL_NAN = -1;
/** This file does not define the operation. */
export const EVAL_UNKNOWN = -2;

/** Low half of the last result. */
export let evalLo = 0;
/** High half of the last result; 0 for 32-bit types. */
export let evalHi = 0;

const TWO32: f64 = 4294967296;

function done(lo: number, hi: number): number {
  evalLo = lo | 0;
  evalHi = hi | 0;
  return EVAL_DONE;
}

/** Evaluates `op`. `ty` is the result's type, `from` the type of operand a. */
export function evaluate(
  op: number,
  ty: number,
  from: number,
  aLo: number,
  aHi: number,
  bLo: number,
  bHi: number,
  imm = 0,
): number {
  if ((op >= OP.ADD && op <= OP.POPCNT) || op === OP.EXTEND8_S || op === OP.EXTEND16_S) {
    return ty === TY.I32 ? evalInt32(op, aLo, bLo) : evalInt64(op, aLo, aHi, bLo, bHi);
  }
  if (op >= OP.EQ && op <= OP.GE_U) return done(compare(op, from, aLo, aHi, bLo, bHi) ? 1 : 0, 0);
  if (op >= OP.DIV_S && op <= OP.REM_U) {
    return ty === TY.I32 ? divide32(op, aLo, bLo, imm) : divide64(op, aLo, aHi, bLo, bHi, imm);
  }
  switch (op) {
    case OP.MULHI_S:
    case OP.MULHI_U:
      return multiplyHigh(op === OP.MULHI_S, aLo, aHi, bLo, bHi);
    case OP.EXTEND32_S:
    case OP.EXTEND_S:
      return done(aLo, aLo >> 31);
    case OP.EXTEND_U:
    case OP.WRAP:
      return done(aLo, 0);
    case OP.BITCAST:
      return done(aLo, ty === TY.I32 || ty === TY.F32 ? 0 : aHi);
    case OP.CONVERT_S:
    case OP.CONVERT_U:
      return convert(ty, from, op === OP.CONVERT_S, aLo, aHi);
    case OP.FDEMOTE:
      return float(TY.F32, f64OfBits(aLo, aHi), TY.F64, aLo, aHi, 0, 0);
    case OP.FPROMOTE:
      return float(TY.F64, f32OfBits(aLo), TY.F32, aLo, aHi, 0, 0);
  }
  if (op >= OP.FADD && op <= OP.FGE) return evalFloat(op, ty, from, aLo, aHi, bLo, bHi);
  if (op >= OP.TRUNC_S && op <= OP.TRUNC_SAT_U) return truncate(op, ty, from, aLo, aHi);
  return EVAL_UNKNOWN;
}

// Integers of 32 bits.

function evalInt32(op: number, a: number, b: number): number {
  switch (op) {
    case OP.ADD:
      return done(a + b, 0);
    case OP.SUB:
      return done(a - b, 0);
    case OP.MUL:
      return done(Math.imul(a, b), 0);
    case OP.AND:
      return done(a & b, 0);
    case OP.OR:
      return done(a | b, 0);
    case OP.XOR:
      return done(a ^ b, 0);
    case OP.SHL:
      return done(a << b, 0);
    case OP.SHR_S:
      return done(a >> b, 0);
    case OP.SHR_U:
      return done(a >>> b, 0);
    case OP.ROTL:
      return done((a << b) | (a >>> -b), 0);
    case OP.ROTR:
      return done((a >>> b) | (a << -b), 0);
    case OP.CLZ:
      return done(Math.clz32(a), 0);
    case OP.CTZ:
      return done(countTrailing(a), 0);
    case OP.POPCNT:
      return done(countOnes(a), 0);
    case OP.EXTEND8_S:
      return done((a << 24) >> 24, 0);
    case OP.EXTEND16_S:
      return done((a << 16) >> 16, 0);
    default:
      return EVAL_UNKNOWN;
  }
}

function countTrailing(a: number): number {
  return a === 0 ? 32 : 31 - Math.clz32(a & -a);
}

function countOnes(a: number): number {
  a = a - ((a >>> 1) & 0x55555555);
  a = (a & 0x33333333) + ((a >>> 2) & 0x33333333);
  return Math.imul((a + (a >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/**
 * The high half of a product of 64-bit integers: schoolbook multiplication on 16-bit digits, whose sums fit 32 bits.
 */
function multiplyHigh(signed: boolean, aLo: number, aHi: number, bLo: number, bHi: number): number {
  const a = [aLo & 0xffff, aLo >>> 16, aHi & 0xffff, aHi >>> 16];
  const b = [bLo & 0xffff, bLo >>> 16, bHi & 0xffff, bHi >>> 16];
  const digits = [0, 0, 0, 0, 0, 0, 0, 0];
  for (let i = 0; i < 4; i++) {
    let carry = 0;
    for (let k = 0; k < 4; k++) {
      const sum = digits[i + k] + a[i] * b[k] + carry;
      digits[i + k] = sum & 0xffff;
      carry = sum >>> 16;
    }
    digits[i + 4] = carry;
  }
  done(digits[4] | (digits[5] << 16), digits[6] | (digits[7] << 16));
  // The unsigned product exceeds the signed one by 2^64 times the other factor for each negative factor.
  if (signed && aHi < 0) sub64(evalLo, evalHi, bLo, bHi);
  if (signed && bHi < 0) sub64(evalLo, evalHi, aLo, aHi);
  return EVAL_DONE;
}

function divide32(op: number, a: number, b: number, imm: number): number {
  if (b === 0) return (imm & DIVISION_CHECK.ZERO) !== 0 ? TRAP.INTEGER_DIVIDE_BY_ZERO : EVAL_UNKNOWN;
  switch (op) {
    case OP.DIV_S:
      if (a === -0x80000000 && b === -1) {
        return (imm & DIVISION_CHECK.OVERFLOW) !== 0 ? TRAP.INTEGER_OVERFLOW : EVAL_UNKNOWN;
      }
      return done((a / b) | 0, 0);
    case OP.DIV_U:
      return done(quotient32(a, b), 0);
    case OP.REM_S:
      return done(b === -1 ? 0 : a % b, 0);
    default:
      return done(a - Math.imul(quotient32(a, b), b), 0);
  }
}

/** The quotient of unsigned words. */
function quotient32(a: number, b: number): number {
  return lowWord(unsigned(a) / unsigned(b));
}

// Integers of 64 bits, as halves.

function evalInt64(op: number, aLo: number, aHi: number, bLo: number, bHi: number): number {
  switch (op) {
    case OP.ADD:
      return add64(aLo, aHi, bLo, bHi);
    case OP.SUB:
      return sub64(aLo, aHi, bLo, bHi);
    case OP.MUL:
      return mul64(aLo, aHi, bLo, bHi);
    case OP.AND:
      return done(aLo & bLo, aHi & bHi);
    case OP.OR:
      return done(aLo | bLo, aHi | bHi);
    case OP.XOR:
      return done(aLo ^ bLo, aHi ^ bHi);
    case OP.SHL:
      return shiftLeft64(aLo, aHi, bLo & 63);
    case OP.SHR_S:
      return shiftRight64(aLo, aHi, bLo & 63, aHi >> 31);
    case OP.SHR_U:
      return shiftRight64(aLo, aHi, bLo & 63, 0);
    case OP.ROTL:
      return rotateLeft64(aLo, aHi, bLo & 63);
    case OP.ROTR:
      return rotateLeft64(aLo, aHi, -bLo & 63);
    case OP.CLZ:
      return done(aHi === 0 ? 32 + Math.clz32(aLo) : Math.clz32(aHi), 0);
    case OP.CTZ:
      return done(aLo === 0 ? 32 + countTrailing(aHi) : countTrailing(aLo), 0);
    case OP.POPCNT:
      return done(countOnes(aLo) + countOnes(aHi), 0);
    case OP.EXTEND8_S:
      return done((aLo << 24) >> 24, (aLo << 24) >> 31);
    case OP.EXTEND16_S:
      return done((aLo << 16) >> 16, (aLo << 16) >> 31);
    default:
      return EVAL_UNKNOWN;
  }
}

function add64(aLo: number, aHi: number, bLo: number, bHi: number): number {
  const lo = (aLo + bLo) | 0;
  return done(lo, aHi + bHi + (isBelow(lo, aLo) ? 1 : 0));
}

function sub64(aLo: number, aHi: number, bLo: number, bHi: number): number {
  return done(aLo - bLo, aHi - bHi - (isBelow(aLo, bLo) ? 1 : 0));
}

/** Full product of unsigned words, in evalLo and evalHi. */
function mulWords(a: number, b: number): void {
  const a0 = a & 0xffff, a1 = a >>> 16, b0 = b & 0xffff, b1 = b >>> 16;
  const low = a0 * b0;
  const middle = a1 * b0 + (low >>> 16);
  const carry = a0 * b1 + (middle & 0xffff);
  done((low & 0xffff) | (carry << 16), a1 * b1 + (middle >>> 16) + (carry >>> 16));
}

function mul64(aLo: number, aHi: number, bLo: number, bHi: number): number {
  mulWords(aLo, bLo);
  return done(evalLo, evalHi + Math.imul(aLo, bHi) + Math.imul(aHi, bLo));
}

function shiftLeft64(lo: number, hi: number, count: number): number {
  if (count === 0) return done(lo, hi);
  if (count >= 32) return done(0, lo << (count - 32));
  return done(lo << count, (hi << count) | (lo >>> (32 - count)));
}

/** `fill` is shifted in from above: 0 or the sign word. */
function shiftRight64(lo: number, hi: number, count: number, fill: number): number {
  if (count === 0) return done(lo, hi);
  if (count === 32) return done(hi, fill);
  if (count > 32) return done((hi >>> (count - 32)) | (fill << (64 - count)), fill);
  return done((lo >>> count) | (hi << (32 - count)), (hi >>> count) | (fill << (32 - count)));
}

function rotateLeft64(lo: number, hi: number, count: number): number {
  if (count >= 32) {
    const swapped = lo;
    lo = hi;
    hi = swapped;
    count -= 32;
  }
  if (count === 0) return done(lo, hi);
  return done((lo << count) | (hi >>> (32 - count)), (hi << count) | (lo >>> (32 - count)));
}

function lessUnsigned(aLo: number, aHi: number, bLo: number, bHi: number): boolean {
  return aHi === bHi ? isBelow(aLo, bLo) : isBelow(aHi, bHi);
}

function lessSigned(aLo: number, aHi: number, bLo: number, bHi: number): boolean {
  return aHi === bHi ? isBelow(aLo, bLo) : aHi < bHi;
}

function compare(op: number, from: number, aLo: number, aHi: number, bLo: number, bHi: number): boolean {
  // An i32 as an i64 keeps its order, signed and unsigned.
  if (from === TY.I32) {
    aHi = aLo >> 31;
    bHi = bLo >> 31;
  }
  switch (op) {
    case OP.EQ:
      return aLo === bLo && aHi === bHi;
    case OP.NE:
      return aLo !== bLo || aHi !== bHi;
    case OP.LT_S:
      return lessSigned(aLo, aHi, bLo, bHi);
    case OP.LT_U:
      return lessUnsigned(aLo, aHi, bLo, bHi);
    case OP.GT_S:
      return lessSigned(bLo, bHi, aLo, aHi);
    case OP.GT_U:
      return lessUnsigned(bLo, bHi, aLo, aHi);
    case OP.LE_S:
      return !lessSigned(bLo, bHi, aLo, aHi);
    case OP.LE_U:
      return !lessUnsigned(bLo, bHi, aLo, aHi);
    case OP.GE_S:
      return !lessSigned(aLo, aHi, bLo, bHi);
    default:
      return !lessUnsigned(aLo, aHi, bLo, bHi);
  }
}

/** Remainder of the last unsigned division, as halves. */
let remainderLo = 0;
let remainderHi = 0;

/** Quotient (in evalLo, evalHi) and remainder of unsigned 64-bit values, by long division of one bit a step. */
function divideUnsigned(aLo: number, aHi: number, bLo: number, bHi: number): void {
  let qLo = 0, qHi = 0, rLo = 0, rHi = 0;
  for (let bit = 63; bit >= 0; bit--) {
    // The remainder is below the divisor, so only its shift can carry out, and then the subtraction always happens.
    const carry = rHi >>> 31;
    rHi = (rHi << 1) | (rLo >>> 31);
    rLo = (rLo << 1) | ((bit >= 32 ? aHi >>> (bit - 32) : aLo >>> bit) & 1);
    if (carry !== 0 || !lessUnsigned(rLo, rHi, bLo, bHi)) {
      sub64(rLo, rHi, bLo, bHi);
      rLo = evalLo;
      rHi = evalHi;
      if (bit >= 32) qHi |= 1 << (bit - 32);
      else qLo |= 1 << bit;
    }
  }
  remainderLo = rLo;
  remainderHi = rHi;
  done(qLo, qHi);
}

function divide64(op: number, aLo: number, aHi: number, bLo: number, bHi: number, imm: number): number {
  if ((bLo | bHi) === 0) return (imm & DIVISION_CHECK.ZERO) !== 0 ? TRAP.INTEGER_DIVIDE_BY_ZERO : EVAL_UNKNOWN;
  if (op === OP.DIV_U || op === OP.REM_U) {
    divideUnsigned(aLo, aHi, bLo, bHi);
    return op === OP.DIV_U ? EVAL_DONE : done(remainderLo, remainderHi);
  }
  if (aLo === 0 && aHi === -0x80000000 && (bLo & bHi) === -1) {
    if (op === OP.REM_S) return done(0, 0);
    return (imm & DIVISION_CHECK.OVERFLOW) !== 0 ? TRAP.INTEGER_OVERFLOW : EVAL_UNKNOWN;
  }
  const aNegative = aHi < 0;
  const bNegative = bHi < 0;
  if (aNegative) {
    sub64(0, 0, aLo, aHi);
    aLo = evalLo;
    aHi = evalHi;
  }
  if (bNegative) {
    sub64(0, 0, bLo, bHi);
    bLo = evalLo;
    bHi = evalHi;
  }
  divideUnsigned(aLo, aHi, bLo, bHi);
  if (op === OP.DIV_S) return aNegative === bNegative ? EVAL_DONE : sub64(0, 0, evalLo, evalHi);
  return aNegative ? sub64(0, 0, remainderLo, remainderHi) : done(remainderLo, remainderHi);
}

// Floats.

/**
 * Stores an arithmetic result of float type `ty`; a NaN takes the bits of the first NaN operand (of type `from`),
 * quieted.
 */
function float(ty: number, value: f64, from: number, aLo: number, aHi: number, bLo: number, bHi: number): number {
  if (value !== value) {
    let lo = aLo, hi = aHi;
    if (!isNaN(from, aLo, aHi)) {
      if (isNaN(from, bLo, bHi)) {
        lo = bLo;
        hi = bHi;
      } else if (from === TY.F32) {
        lo = 0x7fc00000;
      } else {
        lo = 0;
        hi = 0x7ff80000;
      }
    }
    if (from === TY.F32 && ty === TY.F64) {
      hi = (lo & -0x80000000) | 0x7ff80000 | ((lo & 0x3fffff) >>> 3);
      lo = lo << 29;
    } else if (from === TY.F64 && ty === TY.F32) {
      lo = (hi & -0x80000000) | 0x7fc00000 | ((hi & 0x7ffff) << 3) | (lo >>> 29);
    }
    if (ty === TY.F32) done(lo | 0x400000, 0);
    else done(lo, hi | 0x80000);
    return EVAL_NAN;
  }
  if (ty === TY.F32) {
    return done(bitsOfF32(value), 0);
  }
  return done(lowBits(value), highBits(value));
}

function isNaN(ty: number, lo: number, hi: number): boolean {
  if (ty === TY.F32) return (lo & 0x7fffffff) > 0x7f800000;
  const high = hi & 0x7fffffff;
  return high > 0x7ff00000 || (high === 0x7ff00000 && lo !== 0);
}

function evalFloat(
  op: number,
  ty: number,
  from: number,
  aLo: number,
  aHi: number,
  bLo: number,
  bHi: number,
): number {
  const single = from === TY.F32;
  switch (op) { // sign operations are on bits: exact for every NaN
    case OP.FABS:
      return single ? done(aLo & 0x7fffffff, 0) : done(aLo, aHi & 0x7fffffff);
    case OP.FNEG:
      return single ? done(aLo ^ -0x80000000, 0) : done(aLo, aHi ^ -0x80000000);
    case OP.FCOPYSIGN:
      return single
        ? done((aLo & 0x7fffffff) | (bLo & -0x80000000), 0)
        : done(aLo, (aHi & 0x7fffffff) | (bHi & -0x80000000));
  }
  const x = single ? f32OfBits(aLo) : f64OfBits(aLo, aHi);
  const y = single ? f32OfBits(bLo) : f64OfBits(bLo, bHi);
  switch (op) {
    case OP.FEQ:
      return done(x === y ? 1 : 0, 0);
    case OP.FNE:
      return done(x !== y ? 1 : 0, 0);
    case OP.FLT:
      return done(x < y ? 1 : 0, 0);
    case OP.FGT:
      return done(x > y ? 1 : 0, 0);
    case OP.FLE:
      return done(x <= y ? 1 : 0, 0);
    case OP.FGE:
      return done(x >= y ? 1 : 0, 0);
  }
  const unary = op >= OP.FSQRT && op <= OP.FNEAREST;
  return float(ty, arithmetic(op, x, y), from, aLo, aHi, unary ? 0 : bLo, unary ? 0 : bHi);
}

function arithmetic(op: number, x: f64, y: f64): f64 {
  switch (op) {
    case OP.FADD:
      return x + y;
    case OP.FSUB:
      return x - y;
    case OP.FMUL:
      return x * y;
    case OP.FDIV:
      return x / y;
    case OP.FMIN:
      return Math.min(x, y);
    case OP.FMAX:
      return Math.max(x, y);
    case OP.FSQRT:
      return Math.sqrt(x);
    case OP.FCEIL:
      return Math.ceil(x);
    case OP.FFLOOR:
      return Math.floor(x);
    case OP.FTRUNC:
      return Math.trunc(x);
    default:
      return nearest(x);
  }
}

/** Rounds to the nearest integer, ties to even, keeping the sign of zero. */
function nearest(x: f64): f64 {
  const below = Math.floor(x);
  const distance = x - below;
  if (distance === 0 || x !== x || distance !== distance) return x;
  let rounded = distance < 0.5 ? below : below + 1;
  if (distance === 0.5 && Math.floor(below / 2) * 2 === below) rounded = below;
  return rounded === 0 && x < 0 ? -0.0 : rounded;
}

/** Integer → float, rounded once. */
function convert(ty: number, from: number, signed: boolean, lo: number, hi: number): number {
  if (from === TY.I32) {
    const value: f64 = signed ? lo : unsigned(lo);
    return float(ty, value, TY.NONE, 0, 0, 0, 0);
  }
  const negative = signed && hi < 0;
  if (negative) {
    sub64(0, 0, lo, hi);
    lo = evalLo;
    hi = evalHi;
  }
  // For f32 the sum must not round first: keep 53 bits and fold the rest into the lowest (round to odd).
  if (ty === TY.F32 && !isBelow(hi, 0x200000) && (lo & 0x7ff) !== 0) lo = (lo & ~0x7ff) | 0x800;
  const value = unsigned(hi) * TWO32 + unsigned(lo);
  return float(ty, negative ? -value : value, TY.NONE, 0, 0, 0, 0);
}

/** Float → integer, trapping or saturating. */
function truncate(op: number, ty: number, from: number, lo: number, hi: number): number {
  const saturating = op === OP.TRUNC_SAT_S || op === OP.TRUNC_SAT_U;
  const signed = op === OP.TRUNC_S || op === OP.TRUNC_SAT_S;
  const value = from === TY.F32 ? f32OfBits(lo) : f64OfBits(lo, hi);
  if (value !== value) return saturating ? done(0, 0) : TRAP.INVALID_CONVERSION;
  const whole = Math.trunc(value);
  const range = ty === TY.I32 ? TWO32 : TWO32 * TWO32;
  const least: f64 = signed ? -range / 2 : 0;
  const limit = signed ? range / 2 : range;
  if (whole < least) {
    if (!saturating) return TRAP.INTEGER_OVERFLOW;
    return ty === TY.I32 ? done(lowWord(least), 0) : done(0, lowWord(least / TWO32));
  }
  if (whole >= limit) {
    if (!saturating) return TRAP.INTEGER_OVERFLOW;
    return ty === TY.I32 ? done(lowWord(limit - 1), 0) : done(-1, signed ? 0x7fffffff : -1);
  }
  if (ty === TY.I32) return done(lowWord(whole), 0);
  const high = Math.floor(whole / TWO32);
  return done(lowWord(whole - high * TWO32), lowWord(high));
}
