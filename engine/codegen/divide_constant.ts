/**
 * Division of 64-bit integers by constants: the high half of a product with a magic number, and shifts (Granlund and
 * Montgomery, "Division by Invariant Integers using Multiplication", 1994). Divisions of 32-bit integers were reduced
 * in the optimizer, where the product fits 64 bits. Powers of two, 0 and ±1 have other rules. In: a division. Out: the
 * quotient or the remainder, by the 64-bit arithmetic that the lowering context provides. Integers of 64 bits are two
 * halves.
 *
 * For N-bit n, the quotient is floor(M × n / 2^p) if 2^p ≤ M × d ≤ 2^p + 2^(p − N).
 */
import { isBelow } from "../base/numbers.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import type { LoweringContext } from "./lowering_context.ts";

/** The multiplication and shifts that divide by a constant. */
export class DivisionPlan {
  /** Shift of the dividend before (unsigned only). */
  before = 0;
  /** The multiplier without its 65th bit. */
  low = 0;
  high = 0;
  /** Shift of the product's high half. */
  after = 0;
  /**
   * The multiplier has a 65th bit (unsigned), or is negative as a signed number (signed): the dividend must be added.
   */
  add = false;

  /**
   * Finds the smallest shift for which a multiplier of 64 bits, or of 65 if `isLong`, divides numbers of `bits` bits by
   * d; d must not be a power of two. Returns false if no shift works.
   */
  search(low: number, high: number, bits: number, isLong: boolean): boolean {
    const top = isLong ? 1 : 0;
    // The quotient, of 65 bits, and the remainder of a power of two and d.
    let top65 = 0, quotientHigh = 0, quotientLow = 0, restHigh = 0, restLow = 1;
    for (let power = 1; power <= 128; power++) {
      const carry = restHigh < 0;
      restHigh = (restHigh << 1) | (restLow >>> 31);
      restLow <<= 1;
      const goes = carry || !isBelowWide(restLow, restHigh, low, high);
      if (goes) {
        const borrow = isBelow(restLow, low) ? 1 : 0;
        restLow = (restLow - low) | 0;
        restHigh = (restHigh - high - borrow) | 0;
      }
      top65 = (top65 << 1) | (quotientHigh >>> 31);
      quotientHigh = (quotientHigh << 1) | (quotientLow >>> 31);
      quotientLow = (quotientLow << 1) | (goes ? 1 : 0);
      if (power < 64) continue;
      // The multiplier is the quotient plus 1.
      if (top65 > top || (top65 === top && quotientHigh === -1 && quotientLow === -1)) return false;
      const shift = power - 64;
      if (!exceedsPower(low, high, restLow, restHigh, shift + 64 - bits)) {
        this.low = (quotientLow + 1) | 0;
        this.high = (quotientHigh + (this.low === 0 ? 1 : 0)) | 0;
        this.after = shift;
        return true;
      }
    }
    return false;
  }
}

function isBelowWide(low: number, high: number, otherLow: number, otherHigh: number): boolean {
  return high === otherHigh ? isBelow(low, otherLow) : isBelow(high, otherHigh);
}

/** Whether d − rest is more than 2^exponent. */
function exceedsPower(low: number, high: number, restLow: number, restHigh: number, exponent: number): boolean {
  const differenceLow = (low - restLow) | 0;
  const differenceHigh = (high - restHigh - (isBelow(low, restLow) ? 1 : 0)) | 0;
  if (exponent >= 64) return false;
  const powerLow = exponent < 32 ? 1 << exponent : 0, powerHigh = exponent < 32 ? 0 : 1 << (exponent - 32);
  return isBelowWide(powerLow, powerHigh, differenceLow, differenceHigh);
}

/** Number of zero bits below the lowest one. */
function trailingZeros(low: number, high: number): number {
  return low !== 0 ? 31 - Math.clz32(low & -low) : 63 - Math.clz32(high & -high);
}

/** Plan for an unsigned divisor that is not a power of two. */
export function unsignedPlan(low: number, high: number): DivisionPlan {
  const plan = new DivisionPlan();
  if (plan.search(low, high, 64, false)) return plan;
  const before = trailingZeros(low, high);
  if (before > 0) {
    const shiftedLow = before < 32 ? (low >>> before) | (high << (32 - before)) : high >>> (before - 32);
    if (plan.search(shiftedLow | 0, before < 32 ? high >>> before : 0, 64 - before, false)) {
      plan.before = before;
      return plan;
    }
  }
  plan.search(low, high, 64, true);
  plan.add = true;
  return plan;
}

/** Plan for the absolute value of a signed divisor that is not a power of two. */
export function signedPlan(low: number, high: number): DivisionPlan {
  const plan = new DivisionPlan();
  plan.search(low, high, 63, false);
  plan.add = plan.high < 0;
  return plan;
}

/** Whether d is a power of two, or 0. */
function isPowerOfTwo(low: number, high: number): boolean {
  return low === 0 ? (high & (high - 1)) === 0 : high === 0 && (low & (low - 1)) === 0;
}

function shifted(s: LoweringContext, signed: boolean, x: number, count: number): number {
  return count === 0 ? x : s.wideShiftRight(signed, x, count);
}

function unsignedQuotient(s: LoweringContext, n: number, low: number, high: number): number {
  const plan = unsignedPlan(low, high);
  const dividend = shifted(s, false, n, plan.before);
  const product = s.highProduct(false, dividend, s.constantBits(TY.I64, plan.low, plan.high));
  if (!plan.add) return shifted(s, false, product, plan.after);
  // (n + product) / 2 without its carry.
  const half = s.wideShiftRight(false, s.wideDifference(n, product), 1);
  return shifted(s, false, s.wideSum(half, product), plan.after - 1);
}

/** `low` and `high` are the divisor's absolute value. */
function signedQuotient(s: LoweringContext, n: number, low: number, high: number, isNegative: boolean): number {
  const plan = signedPlan(low, high);
  let product = s.highProduct(true, n, s.constantBits(TY.I64, plan.low, plan.high));
  if (plan.add) product = s.wideSum(product, n);
  const floor = shifted(s, true, product, plan.after);
  const sign = s.wideShiftRight(true, n, 63);
  return isNegative ? s.wideDifference(sign, floor) : s.wideDifference(floor, sign);
}

/** Selects the 64-bit DIV_* or REM_* `id` by a constant; returns false, and does nothing, if other rules apply. */
export function selectDivisionByConstant(s: LoweringContext, id: number): boolean {
  const divisor = s.b[id];
  if (s.op[divisor] !== OP.CONST || s.wide(id) === 0) return false;
  const op = s.op[id];
  const signed = op === OP.DIV_S || op === OP.REM_S;
  const low = s.imm[divisor], high = s.c[divisor];
  const isNegative = signed && high < 0;
  const size = isNegative ? -low | 0 : low;
  const sizeHigh = isNegative ? (-high - (low !== 0 ? 1 : 0)) | 0 : high;
  if (isPowerOfTwo(size, sizeHigh)) return false;
  const n = s.reg(s.a[id]);
  const quotient = signed ? signedQuotient(s, n, size, sizeHigh, isNegative) : unsignedQuotient(s, n, low, high);
  // The quotient is in a vreg already, which becomes that of the value.
  if (op === OP.DIV_S || op === OP.DIV_U) s.vregs[id] = quotient;
  else s.defineRemainder(signed, id, n, quotient, low, high);
  return true;
}
