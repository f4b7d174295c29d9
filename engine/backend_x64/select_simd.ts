/**
 * Rules for vector arithmetic, comparison, shifts and conversions. An operation that is one instruction comes from
 * vector_rows.ts; the others are sequences of instructions on virtual registers (vector_code.ts), chosen for the fewest
 * operations that SSE4.1 allows.
 */
import { constantVector } from "../codegen/lowering_context.ts";
import { commutes, OP } from "../ir/ops.ts";
import { SHAPE, TY } from "../ir/types.ts";
import { CONSTRAINT, operandWord, ROLE } from "../codegen/vcode.ts";
import { SHARED } from "./image_constants.ts";
import { X } from "./instructions.ts";
import { MODE } from "./machine_ops.ts";
import type { X64Lowering } from "./lowering_context.ts";
import {
  inverted,
  one,
  ones,
  oneSource,
  shifted,
  sourceVector,
  two,
  twoSource,
  twoWords,
  zeros,
} from "./vector_code.ts";
import { foldAddress } from "./addressing.ts";
import { BINARY_ROW, EXCHANGED, invertedComparison, readsHalf, UNARY_ROW, VECTOR_IMMEDIATE } from "./vector_rows.ts";

const { I8X16, I16X8, I32X4, I64X2, F32X4 } = SHAPE;

function shapeOf(s: X64Lowering, id: number): number {
  return s.imm[id] & 0xff;
}

// Rules for operations that take one instruction

/** The inverse of mask `id`, which was folded: the comparison that the hardware has, or the operand of VNOT. */
function inverseOf(s: X64Lowering, id: number): number {
  const x = s.reg(s.a[id]);
  if (s.op[id] === OP.VNOT) return x;
  const shape = shapeOf(s, id);
  const o = invertedComparison(s.op[id], shape);
  const y = s.reg(s.b[id]);
  const row = BINARY_ROW[o * 8 + shape];
  if (row === 0) return comparison(s, o, shape, x, y);
  return EXCHANGED[o] === 1 ? two(s, row, y, x) : two(s, row, x, y);
}

/** Whether value `id` was folded as the inverse of a mask. */
function isInverse(s: X64Lowering, id: number): boolean {
  return s.folded[id] !== 0 && (s.op[id] === OP.VNOT || invertedComparison(s.op[id], shapeOf(s, id)) !== 0);
}

/** `a & ~mask`, or `a & mask`, where `mask` is the inverse of a folded operand; false if there is none. */
function selectMasked(s: X64Lowering, id: number): boolean {
  const o = s.op[id];
  if (o !== OP.VAND && o !== OP.VANDNOT) return false;
  const mask = isInverse(s, s.b[id]) ? s.b[id] : s.a[id];
  if (!isInverse(s, mask)) return false;
  const inverse = inverseOf(s, mask);
  sourceVector(s, mask === s.b[id] ? s.a[id] : s.b[id]);
  s.vregs[id] = twoSource(s, o === OP.VAND ? X.PANDN : X.PAND, inverse);
  return true;
}

/** Emits the single instruction of operation `id`. */
function single(s: X64Lowering, id: number): void {
  if (selectMasked(s, id)) return;
  const o = s.op[id];
  const row = BINARY_ROW[o * 8 + shapeOf(s, id)];
  let x = s.a[id];
  let y = s.b[id];
  // A constant is best as the last operand, which can be memory, unless a folded load is there already.
  const constantFirst = s.op[x] === OP.CONST && s.op[y] !== OP.CONST && !s.isFoldedLoad(y);
  if (EXCHANGED[o] === 1 || s.isFoldedLoad(x) || (isCommutative(s, o) && constantFirst)) {
    [x, y] = [y, x];
  }
  const first = s.reg(x);
  sourceVector(s, y);
  s.vregs[id] = twoSource(s, row, first, VECTOR_IMMEDIATE[o]);
}

/** Whether it pays to exchange the operands of `o`. */
function isCommutative(s: X64Lowering, o: number): boolean {
  return commutes(s.f.keepsNans, o) &&
    (o === OP.VAND || (o >= OP.VOR && o <= OP.VADD) || o === OP.VMUL || o === OP.VFADD || o === OP.VFMUL ||
      (o >= OP.VMIN_S && o <= OP.VDOT_S) || o === OP.VEQ || o === OP.VFEQ || o === OP.VFNE ||
      o === OP.VADD_SAT_S || o === OP.VADD_SAT_U);
}

export function selectBinary(s: X64Lowering, id: number): void {
  if (BINARY_ROW[s.op[id] * 8 + shapeOf(s, id)] !== 0) single(s, id);
  else s.vregs[id] = longBinary(s, id, s.reg(s.a[id]), s.reg(s.b[id]));
}

export function selectUnary(s: X64Lowering, id: number): void {
  const o = s.op[id];
  const row = UNARY_ROW[o * 8 + shapeOf(s, id)];
  const x = s.a[id];
  if (row === 0) {
    s.vregs[id] = longUnary(s, id, s.reg(x));
    return;
  }
  if (!readsHalf(row)) sourceVector(s, x);
  else if (s.folded[x] !== 0) foldAddress(s, s.a[x], false);
  else s.sourceRegister(s.reg(x), s.avx);
  s.vregs[id] = oneSource(s, s.vex(row), VECTOR_IMMEDIATE[o]);
}

// Rules for operations of two operands that take several instructions

/** `x` op `y` for the operations without an instruction. */
function longBinary(s: X64Lowering, id: number, x: number, y: number): number {
  const shape = shapeOf(s, id);
  switch (s.op[id]) {
    case OP.VMUL:
      return multiply64(s, x, y);
    case OP.VQ15MULR_S: {
      // Only −1 × −1 gives a wrong result, −1.
      const product = two(s, X.PMULHRSW, x, y);
      return two(s, X.PXOR, product, twoWords(s, X.PCMPEQW, product, 0x80008000 | 0));
    }
    case OP.VEXTMUL_LOW_S:
    case OP.VEXTMUL_HIGH_S:
      return extendedProduct(s, shape, x, y, true, s.op[id] === OP.VEXTMUL_HIGH_S);
    case OP.VEXTMUL_LOW_U:
    case OP.VEXTMUL_HIGH_U:
      return extendedProduct(s, shape, x, y, false, s.op[id] === OP.VEXTMUL_HIGH_U);
    case OP.VNE:
      return inverted(s, two(s, BINARY_ROW[OP.VEQ * 8 + shape], x, y));
    case OP.VFMIN:
      return minimum(s, shape, x, y);
    case OP.VFMAX:
      return maximum(s, shape, x, y);
  }
  return comparison(s, s.op[id], shape, x, y);
}

/** The low halves of 64-bit products: the product of the low words and those of low and high words above it. */
function multiply64(s: X64Lowering, x: number, y: number): number {
  const high = two(s, X.PMULUDQ, shifted(s, X.PSRLQ_I, x, 32), y);
  const other = two(s, X.PMULUDQ, shifted(s, X.PSRLQ_I, y, 32), x);
  const upper = shifted(s, X.PSLLQ_I, two(s, X.PADDQ, high, other), 32);
  return two(s, X.PADDQ, upper, two(s, X.PMULUDQ, x, y));
}

function extendedProduct(s: X64Lowering, shape: number, x: number, y: number, signed: boolean, high: boolean): number {
  if (shape === I32X4) {
    const low = two(s, X.PMULLW, x, y);
    return two(s, high ? X.PUNPCKHWD : X.PUNPCKLWD, low, two(s, signed ? X.PMULHW : X.PMULHUW, x, y));
  }
  const control = high ? 0xfa : 0x50;
  return two(s, signed ? X.PMULDQ : X.PMULUDQ, one(s, X.PSHUFD, x, control), one(s, X.PSHUFD, y, control));
}

/** A half of x, extended to `shape`. */
function extended(s: X64Lowering, shape: number, x: number, signed: boolean, high: boolean): number {
  if (!signed && high) {
    const unpack = shape === I16X8 ? X.PUNPCKHBW : shape === I32X4 ? X.PUNPCKHWD : X.PUNPCKHDQ;
    return two(s, unpack, x, zeros(s));
  }
  const row = UNARY_ROW[(signed ? OP.VEXTEND_LOW_S : OP.VEXTEND_LOW_U) * 8 + shape];
  return one(s, row, high ? one(s, X.PSHUFD, x, 0xee) : x);
}

/** Integer comparisons without an instruction. */
function comparison(s: X64Lowering, o: number, shape: number, x: number, y: number): number {
  const equal = BINARY_ROW[OP.VEQ * 8 + shape];
  switch (o) {
    case OP.VGT_S:
      return greater64(s, x, y);
    case OP.VLT_S:
      return greater64(s, y, x);
    case OP.VGE_S:
      return shape === I64X2
        ? inverted(s, greater64(s, y, x))
        : two(s, equal, two(s, BINARY_ROW[OP.VMAX_S * 8 + shape], x, y), x);
    case OP.VLE_S:
      return shape === I64X2
        ? inverted(s, greater64(s, x, y))
        : two(s, equal, two(s, BINARY_ROW[OP.VMIN_S * 8 + shape], x, y), x);
    case OP.VGE_U:
      return two(s, equal, two(s, BINARY_ROW[OP.VMAX_U * 8 + shape], x, y), x);
    case OP.VLE_U:
      return two(s, equal, two(s, BINARY_ROW[OP.VMIN_U * 8 + shape], x, y), x);
    case OP.VGT_U:
      return inverted(s, two(s, equal, two(s, BINARY_ROW[OP.VMIN_U * 8 + shape], x, y), x));
    case OP.VLT_U:
      return inverted(s, two(s, equal, two(s, BINARY_ROW[OP.VMAX_U * 8 + shape], x, y), x));
  }
  throw new Error(`Vector operation ${o} has no rule`);
}

/** x > y for signed 64-bit lanes: the high words decide, or, where they are equal, the borrow of y − x. */
function greater64(s: X64Lowering, x: number, y: number): number {
  if (s.avx) return two(s, X.PCMPGTQ, x, y);
  const borrow = two(s, X.PAND, two(s, X.PSUBQ, y, x), two(s, X.PCMPEQD, x, y));
  return one(s, X.PSHUFD, two(s, X.POR, borrow, two(s, X.PCMPGTD, x, y)), 0xf5);
}

// Rules for minimum and maximum of floats. The hardware returns its second operand for NaNs and for two zeros, so both
// orders are computed: where they differ there was one of these.

function minimum(s: X64Lowering, shape: number, x: number, y: number): number {
  const double = shape === F32X4 ? 0 : 1;
  // Or-ing both orders gives −0 for zeros of two signs, and a NaN for NaNs.
  const both = two(s, X.ORPS, two(s, X.MINPS + double, x, y), two(s, X.MINPS + double, y, x));
  return canonical(s, shape, both, both);
}

function maximum(s: X64Lowering, shape: number, x: number, y: number): number {
  const double = shape === F32X4 ? 0 : 1;
  const first = two(s, X.MAXPS + double, x, y);
  const difference = two(s, X.XORPS, two(s, X.MAXPS + double, y, x), first);
  const merged = two(s, X.ORPS, first, difference);
  // The maximum of +0 and -0 is +0: subtracting the sign bit in which they differ gives it, and makes NaNs quiet.
  return canonical(s, shape, two(s, X.SUBPS + double, merged, difference), merged);
}

/** `value` with the payload cleared in the lanes in which `test` is a NaN. */
function canonical(s: X64Lowering, shape: number, value: number, test: number): number {
  const double = shape === F32X4 ? 0 : 1;
  const unordered = two(s, X.CMPPS + double, test, test, 3);
  const quiet = two(s, X.ORPS, value, unordered);
  // The shift turns a mask of ones into that of a NaN's payload below the quiet bit.
  const payload = shape === F32X4 ? shifted(s, X.PSRLD_I, unordered, 10) : shifted(s, X.PSRLQ_I, unordered, 13);
  return two(s, X.ANDNPS, payload, quiet);
}

// Rules for operations of one operand that take several instructions

function longUnary(s: X64Lowering, id: number, x: number): number {
  const shape = shapeOf(s, id);
  switch (s.op[id]) {
    case OP.VNOT:
      return inverted(s, x);
    case OP.VNEG:
      return two(s, BINARY_ROW[OP.VSUB * 8 + shape], zeros(s), x);
    case OP.VABS: {
      const sign = s.avx ? two(s, X.PCMPGTQ, zeros(s), x) : one(s, X.PSHUFD, shifted(s, X.PSRAD_I, x, 31), 0xf5);
      return two(s, X.PSUBQ, two(s, X.PXOR, x, sign), sign);
    }
    case OP.VPOPCNT:
      return population(s, x);
    case OP.VEXTEND_HIGH_S:
      return extended(s, shape, x, true, true);
    case OP.VEXTEND_HIGH_U:
      return extended(s, shape, x, false, true);
    case OP.VEXTADD_S:
      if (shape === I16X8) {
        return two(s, X.PMADDUBSW, constantVector(s, 0x01010101, 0x01010101, 0x01010101, 0x01010101), x);
      }
      return twoWords(s, X.PMADDWD, x, 0x00010001);
    case OP.VEXTADD_U:
      if (shape === I16X8) return twoWords(s, X.PMADDUBSW, x, 0x01010101);
      // Inverting the top bit makes signed numbers that are less by 2^15; the sum of two is corrected by 2^16.
      return twoWords(s, X.PADDD, twoWords(s, X.PMADDWD, twoWords(s, X.PXOR, x, 0x80008000 | 0), 0x00010001), 0x10000);
    case OP.VFABS:
      return masked(s, X.ANDPS, x, shape === F32X4 ? SHARED.ABS32 : SHARED.ABS64);
    case OP.VFNEG:
      return masked(s, X.XORPS, x, shape === F32X4 ? SHARED.SIGN32 : SHARED.SIGN64);
    case OP.VCONVERT_U:
      return convertUnsigned(s, shape, x);
    case OP.VTRUNC_SAT_S:
      return shape === F32X4 ? truncateSigned32(s, x) : truncateSigned64(s, x);
    case OP.VTRUNC_SAT_U:
      return shape === F32X4 ? truncateUnsigned32(s, x) : truncateUnsigned64(s, x);
  }
  throw new Error(`Vector operation ${s.op[id]} has no rule`);
}

function masked(s: X64Lowering, row: number, x: number, shared: number): number {
  s.sourceRegister(0, false);
  s.mode = MODE.SHARED;
  s.disp = shared;
  return twoSource(s, row, x);
}

/** Population count per byte: a table for four bits, looked up for both halves. */
function population(s: X64Lowering, x: number): number {
  const low = twoWords(s, X.PAND, x, 0x0f0f0f0f);
  const high = twoWords(s, X.PAND, shifted(s, X.PSRLW_I, x, 4), 0x0f0f0f0f);
  const table = constantVector(s, 0x02010100, 0x03020201, 0x03020201, 0x04030302);
  return two(s, X.PADDB, two(s, X.PSHUFB, table, low), two(s, X.PSHUFB, table, high));
}

function convertUnsigned(s: X64Lowering, shape: number, x: number): number {
  if (shape !== F32X4) {
    // The word as the low half of 2^52 + word.
    const biased = twoWords(s, X.PUNPCKLDQ, x, 0x43300000);
    s.sourceRegister(0, false);
    s.mode = MODE.POOL;
    s.disp = s.v.addVector(0, 0x43300000, 0, 0x43300000);
    s.poolSize = 2;
    return twoSource(s, X.SUBPD, biased);
  }
  // Halves as 2^23 + low and 2^39 + high; the only rounding is that of the last sum.
  const low = twoWords(s, X.PBLENDW, x, 0x4b000000, 0xaa);
  const high = twoWords(s, X.PBLENDW, shifted(s, X.PSRLD_I, x, 16), 0x53000000, 0xaa);
  return two(s, X.ADDPS, twoWords(s, X.SUBPS, high, 0x53000080), low);
}

function truncateSigned32(s: X64Lowering, x: number): number {
  // NaN becomes 0. The hardware returns 0x80000000 for values that are too large, whose complement is the bound.
  const number = two(s, X.ANDPS, x, two(s, X.CMPPS, x, x, 0));
  const large = twoWords(s, X.CMPPS, number, 0x4f000000, 5);
  return two(s, X.PXOR, one(s, X.CVTTPS2DQ, number), large);
}

function truncateUnsigned32(s: X64Lowering, x: number): number {
  // NaN and negative values become 0. From 2^31 on the hardware returns 0x80000000: the excess is added, saturated.
  const positive = two(s, X.MAXPS, x, zeros(s));
  const beyond = twoWords(s, X.SUBPS, positive, 0x4f000000);
  const tooLarge = twoWords(s, X.CMPPS, beyond, 0x4f000000, 5);
  const rest = two(s, X.PXOR, one(s, X.CVTTPS2DQ, beyond), tooLarge);
  return two(s, X.PADDD, one(s, X.CVTTPS2DQ, positive), two(s, X.PMAXSD, rest, zeros(s)));
}

/** x op a constant of two equal doubles. */
function twoDoubles(s: X64Lowering, row: number, x: number, low: number, high: number): number {
  s.sourceRegister(0, false);
  s.mode = MODE.POOL;
  s.disp = s.v.addVector(low, high, low, high);
  s.poolSize = 2;
  return twoSource(s, row, x);
}

function truncateSigned64(s: X64Lowering, x: number): number {
  // The minimum of a NaN and its second operand is that operand: 0 there.
  const bound = twoDoubles(s, X.ANDPS, two(s, X.CMPPD, x, x, 0), 0xffc00000 | 0, 0x41dfffff);
  return one(s, X.CVTTPD2DQ, two(s, X.MINPD, x, bound));
}

function truncateUnsigned64(s: X64Lowering, x: number): number {
  const zero = zeros(s);
  const positive = two(s, X.MAXPD, x, zero);
  const bounded = twoDoubles(s, X.MINPD, positive, 0xffe00000 | 0, 0x41efffff);
  // Added to 2^52, the integer is in the low word.
  const biased = twoDoubles(s, X.ADDPD, one(s, X.ROUNDPD, bounded, 11), 0, 0x43300000);
  return two(s, X.SHUFPS, biased, zero, 0x88);
}

// Rules for shifts. Counts are below the width of a lane.

const SHIFT_ROWS = [X.PSLLW, X.PSLLD, X.PSLLQ, X.PSRAW, X.PSRAD, 0, X.PSRLW, X.PSRLD, X.PSRLQ];
const SHIFT_IMMEDIATE_ROWS = [
  X.PSLLW_I,
  X.PSLLD_I,
  X.PSLLQ_I,
  X.PSRAW_I,
  X.PSRAD_I,
  0,
  X.PSRLW_I,
  X.PSRLD_I,
  X.PSRLQ_I,
];

export function selectShift(s: X64Lowering, id: number): void {
  const shape = shapeOf(s, id);
  const x = s.reg(s.a[id]);
  const count = s.b[id];
  const kind = (s.op[id] - OP.VSHL) * 3 + shape - 1;
  const constant = s.op[count] === OP.CONST;
  if (shape === I8X16) {
    s.vregs[id] = constant ? shiftBytesBy(s, s.op[id], x, s.imm[count]) : shiftBytes(s, s.op[id], x, s.reg(count));
  } else if (s.op[id] === OP.VSHR_S && shape === I64X2) {
    s.vregs[id] = shiftSigned64(s, x, count, constant);
  } else if (constant) s.vregs[id] = shifted(s, SHIFT_IMMEDIATE_ROWS[kind], x, s.imm[count]);
  else s.vregs[id] = two(s, SHIFT_ROWS[kind], x, fromGeneral(s, s.reg(count)));
}

/** A count of a general register as a vector. */
function fromGeneral(s: X64Lowering, vreg: number): number {
  return one(s, X.MOVD_X, vreg);
}

/** The word of which each byte is `byte`. */
function repeatedByte(byte: number): number {
  return Math.imul(byte & 0xff, 0x01010101);
}

/** Bytes shifted by a constant: words are shifted, and the bits from the neighbour masked. */
function shiftBytesBy(s: X64Lowering, o: number, x: number, count: number): number {
  if (o === OP.VSHL) {
    if (count === 1) return two(s, X.PADDB, x, x);
    return twoWords(s, X.PAND, shifted(s, X.PSLLW_I, x, count), repeatedByte(0xff << count));
  }
  const high = twoWords(s, X.PAND, shifted(s, X.PSRLW_I, x, count), repeatedByte(0xff >> count));
  if (o === OP.VSHR_U) return high;
  // The sign is spread by (x ^ sign) − sign.
  const sign = repeatedByte(0x80 >> count);
  return twoWords(s, X.PSUBB, twoWords(s, X.PXOR, high, sign), sign);
}

function shiftBytes(s: X64Lowering, o: number, x: number, count: number): number {
  const { v } = s;
  const more = v.newVreg(TY.I32);
  s.plain(X.LEA32, 0, 8, MODE.POINTER);
  v.operand(operandWord(more, ROLE.DEF, CONSTRAINT.REG));
  s.use(count);
  s.end();
  const wide = fromGeneral(s, more);
  if (o === OP.VSHR_S) {
    const low = two(s, X.PSRAW, two(s, X.PUNPCKLBW, x, x), wide);
    return two(s, X.PACKSSWB, low, two(s, X.PSRAW, two(s, X.PUNPCKHBW, x, x), wide));
  }
  const words = two(s, X.PSRLW, ones(s), wide);
  const mask = two(s, X.PACKUSWB, words, words);
  const narrow = fromGeneral(s, count);
  if (o === OP.VSHL) return two(s, X.PSLLW, two(s, X.PAND, x, mask), narrow);
  return two(s, X.PAND, two(s, X.PSRLW, x, narrow), mask);
}

function shiftSigned64(s: X64Lowering, x: number, count: number, constant: boolean): number {
  if (constant) {
    const n = s.imm[count];
    const low = n < 32 ? 0 : 0x80000000 >>> (n - 32);
    const sign = constantVector(
      s,
      low | 0,
      n < 32 ? (0x80000000 >>> n) | 0 : 0,
      low | 0,
      n < 32 ? (0x80000000 >>> n) | 0 : 0,
    );
    return two(s, X.PSUBQ, two(s, X.PXOR, shifted(s, X.PSRLQ_I, x, n), sign), sign);
  }
  const by = fromGeneral(s, s.reg(count));
  const sign = two(s, X.PSRLQ, constantVector(s, 0, 0x80000000 | 0, 0, 0x80000000 | 0), by);
  return two(s, X.PSUBQ, two(s, X.PXOR, two(s, X.PSRLQ, x, by), sign), sign);
}

// Rules for selection by bits

/** The immediate of PBLENDW that selects like constant mask `id`, or −1. */
function blendOf(s: X64Lowering, id: number): number {
  if (s.op[id] !== OP.CONST) return -1;
  const { vectors } = s.f;
  let mask = 0;
  for (let k = 0; k < 8; k++) {
    const low = vectors[s.imm[id] * 16 + 2 * k];
    if (low !== vectors[s.imm[id] * 16 + 2 * k + 1] || (low !== 0 && low !== 0xff)) return -1;
    if (low !== 0) mask |= 1 << k;
  }
  return mask;
}

export function selectBitselect(s: X64Lowering, id: number): void {
  const blend = blendOf(s, s.c[id]);
  if (blend >= 0) {
    s.vregs[id] = two(s, X.PBLENDW, s.reg(s.b[id]), s.reg(s.a[id]), blend);
    return;
  }
  const inverse = isInverse(s, s.c[id]);
  const mask = inverse ? inverseOf(s, s.c[id]) : s.reg(s.c[id]);
  const yes = two(s, X.PAND, s.reg(inverse ? s.b[id] : s.a[id]), mask);
  const otherwise = s.reg(inverse ? s.a[id] : s.b[id]);
  s.vregs[id] = two(s, X.POR, two(s, X.PANDN, mask, otherwise), yes);
}
