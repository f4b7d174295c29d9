/**
 * Strength reduction of divisions by constants. In: a DIV or REM whose divisor is a constant other than zero. Out: an
 * equal value, or 0 after a rewrite in place, or the instruction unchanged (64-bit divisors that are not powers of two,
 * which codegen/divide_constant.ts reduces).
 *
 * 32-bit quotients come from 64-bit products: q = (x · m) >> (32 + s) with m = ⌈2^(32+s) ÷ d⌉ (Granlund and Montgomery
 * 1994; Warren, "Hacker's Delight", chapter 10). Where m needs 33 bits, the missing x is added in 64 bits, which cannot
 * overflow.
 */
import { type f64, highWord, lowWord, unsigned } from "../base/numbers.ts";
import type { IrFunction } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import type { Rewriting } from "./rewriting.ts";

const { ADD, SUB, MUL, AND, SHL, SHR_S, SHR_U, EXTEND_S, EXTEND_U, WRAP } = OP;
const TWO32: f64 = 4294967296;

/** A multiplier, and by how much its product with the divisor exceeds the power of two. */
interface Multiplier {
  readonly m: f64;
  readonly excess: f64;
}

function become(f: IrFunction, i: number, op: number, va: number, vb: number): number {
  f.op[i] = op;
  f.a[i] = va;
  f.b[i] = vb;
  f.c[i] = f.imm[i] = 0;
  return 0;
}

/** Rewrites division or remainder `i` by a nonzero constant. */
export function divideByConstant(rewrite: Rewriting, i: number): number {
  const f = rewrite.f;
  const { op, ty, a, b, c, imm } = f;
  const o = op[i], t = ty[i], x = a[i], d = b[i];
  const lo = imm[d], hi = t === TY.I32 ? lo >> 31 : c[d];
  const signed = o === OP.DIV_S || o === OP.REM_S;
  const remainder = o === OP.REM_S || o === OP.REM_U;
  if (lo === 1 && hi === 0) return remainder ? rewrite.constant(t, 0, 0) : x;
  if (signed && lo === -1 && hi === -1) {
    if (remainder) return rewrite.constant(t, 0, 0);
    return imm[i] === 0 ? become(f, i, SUB, rewrite.constant(t, 0, 0), x) : i;
  }
  const exponent = powerOfTwo(lo, t === TY.I32 ? 0 : hi);
  if (!signed) {
    if (exponent > 0) {
      if (!remainder) return become(f, i, SHR_U, x, rewrite.constant(t, exponent, 0));
      const one = rewrite.constant(t, 1, 0);
      return become(
        f,
        i,
        AND,
        x,
        rewrite.make(SUB, t, rewrite.make(SHL, t, one, rewrite.constant(t, exponent, 0)), one),
      );
    }
    if (t !== TY.I32) return i;
    const quotient = unsignedQuotient(rewrite, x, lo);
    return remainder ? become(f, i, SUB, x, rewrite.make(MUL, t, quotient, d)) : quotient;
  }
  const width = t === TY.I32 ? 32 : 64;
  if (exponent > 0 && exponent < width - 1) {
    const biased = biasedDividend(rewrite, x, t, exponent);
    if (!remainder) return become(f, i, SHR_S, biased, rewrite.constant(t, exponent, 0));
    return become(f, i, SUB, x, rewrite.make(AND, t, biased, lowZeros(rewrite, t, exponent)));
  }
  if (t !== TY.I32 || lo === -0x80000000) return i;
  const negated = powerOfTwo(-lo, 0);
  if (negated > 0) {
    const biased = biasedDividend(rewrite, x, t, negated);
    if (remainder) return become(f, i, SUB, x, rewrite.make(AND, t, biased, lowZeros(rewrite, t, negated)));
    return become(
      f,
      i,
      SUB,
      rewrite.constant(t, 0, 0),
      rewrite.make(SHR_S, t, biased, rewrite.constant(t, negated, 0)),
    );
  }
  const quotient = signedQuotient(rewrite, x, lo);
  return remainder ? become(f, i, SUB, x, rewrite.make(MUL, t, quotient, d)) : quotient;
}

/** x, plus 2^k − 1 when it is negative: shifting that right by k rounds towards zero. */
function biasedDividend(rewrite: Rewriting, x: number, t: number, k: number): number {
  const width = t === TY.I32 ? 32 : 64;
  const sign = rewrite.make(SHR_S, t, x, rewrite.constant(t, width - 1, 0));
  return rewrite.make(ADD, t, x, rewrite.make(SHR_U, t, sign, rewrite.constant(t, width - k, 0)));
}

/** The constant −2^k. */
function lowZeros(rewrite: Rewriting, t: number, k: number): number {
  return rewrite.make(SHL, t, rewrite.constant(t, -1, t === TY.I32 ? 0 : -1), rewrite.constant(t, k, 0));
}

function powerOfTwo(lo: number, hi: number): number {
  if (hi === 0) return lo !== 0 && (lo & (lo - 1)) === 0 ? 31 - Math.clz32(lo) : -1;
  return lo === 0 && (hi & (hi - 1)) === 0 ? 63 - Math.clz32(hi) : -1;
}

/** 64-bit constant of a number below 2^53. */
function constant64(rewrite: Rewriting, value: f64): number {
  return rewrite.constant(TY.I64, lowWord(value), highWord(value));
}

/** Low 32 bits of `wide` shifted right by `count`. */
function highPart(rewrite: Rewriting, wide: number, count: number, shift: number): number {
  return rewrite.make(WRAP, TY.I32, rewrite.make(shift, TY.I64, wide, rewrite.constant(TY.I64, count, 0)));
}

/** x ÷ d for unsigned x, where d, unsigned, is at least 3 and not a power of two. */
function unsignedQuotient(rewrite: Rewriting, x: number, d: number): number {
  const wide = rewrite.make(EXTEND_U, TY.I64, x);
  const log = 32 - Math.clz32(d - 1);
  const size = unsigned(d);
  let bound: f64 = 1;
  // The smallest s for which m = ⌈2^(32+s) ÷ d⌉ is exact for all x: m · d − 2^(32+s) ≤ 2^s.
  for (let s = 0; s <= log; s++, bound *= 2) {
    const { m, excess } = ceilDivide(s, size);
    if (excess > bound) continue;
    if (m < TWO32) return highPart(rewrite, rewrite.make(MUL, TY.I64, wide, constant64(rewrite, m)), 32 + s, SHR_U);
    // x · m = x · (m − 2^32) + x · 2^32: the top 32 bits of the first product plus x are at most 33 bits.
    const product = rewrite.make(MUL, TY.I64, wide, constant64(rewrite, m - TWO32));
    const top = rewrite.make(SHR_U, TY.I64, product, rewrite.constant(TY.I64, 32, 0));
    return highPart(rewrite, rewrite.make(ADD, TY.I64, top, wide), s, SHR_U);
  }
  throw new Error("a division has no multiplier");
}

/** m = ⌈2^(32+s) ÷ d⌉ and m · d − 2^(32+s), exactly, for s ≤ 32. */
function ceilDivide(s: number, d: f64): Multiplier {
  // Long division of 2^(32+s): 2^32 = m · d + r, then one doubling of m and r per bit of s. All numbers stay below
  // 2^53.
  let m = Math.floor(TWO32 / d);
  let r = TWO32 - m * d;
  for (let n = 0; n < s; n++) {
    m *= 2;
    r *= 2;
    if (r >= d) {
      r -= d;
      m++;
    }
  }
  return r === 0 ? { m, excess: 0 } : { m: m + 1, excess: d - r };
}

/** x ÷ d for signed x, where |d| ≥ 3 is not a power of two. */
function signedQuotient(rewrite: Rewriting, x: number, d: number): number {
  const size: f64 = Math.abs(d);
  const wide = rewrite.make(EXTEND_S, TY.I64, x);
  const sign = rewrite.make(SHR_S, TY.I32, x, rewrite.constant(TY.I32, 31, 0));
  // |x| ≤ 2^31, so m · size − 2^(32+s) ≤ 2^(s+1) is enough, and m < 2^32 for the smallest such s.
  let bound: f64 = 2;
  for (let s = 0; s < 32; s++, bound *= 2) {
    const { m, excess } = ceilDivide(s, size);
    if (excess > bound) continue;
    const floor = highPart(rewrite, rewrite.make(MUL, TY.I64, wide, constant64(rewrite, m)), 32 + s, SHR_S);
    // The shift rounded down; towards zero is one more for negative x.
    return d > 0 ? rewrite.make(SUB, TY.I32, floor, sign) : rewrite.make(SUB, TY.I32, sign, floor);
  }
  throw new Error("a division has no multiplier");
}
