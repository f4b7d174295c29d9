/**
 * Vector operations on x86-64 with SSE 4.1, as macro-instructions (machine_x64.ts). `d` and `t` differ from the
 * operands' registers; xmm15 and r11 are scratch. directOpcode lists the operations that are a single instruction by
 * shape; the other functions emit sequences.
 */
import { at, emit8 } from "./code.ts";
import { queueVector } from "./fragments.ts";
import { rb, rip, rmx, rr, rrByte } from "./encoding_x64.ts";
import * as x64 from "./instructions_x64.ts";
import { constant, move, withShared } from "./machine_x64.ts";
import { accessBase, accessIndex, accessOffset } from "./machine_x64.ts";
import { H_MODE } from "./layout.ts";
import { type i32, load32 } from "./memory.ts";
import * as op from "./operations.ts";
import {
  CANONICAL_F32,
  CANONICAL_F64_HIGH,
  MODE_OWN_NANS,
  SHARED_ABS32,
  SHARED_ABS64,
  SHARED_SIGN32,
  SHARED_SIGN64,
} from "./constants.ts";

const R11: i32 = 11;
const XMM15: i32 = 47;

/** Immediates of PSHUFD and SHUFPS: the lower or upper half twice, the odd words twice, and the even words of two. */
const LOW_HALVES: i32 = 0x44;
const HIGH_HALVES: i32 = 0xee;
const ODD_WORDS: i32 = 0xf5;
const EVEN_WORDS: i32 = 0x88;

/** A sum with this has the highest bit set, in bytes, if an index is above 15. */
const SWIZZLE_BIAS: i32 = 0x70707070;
/** Numbers of ones in the numbers of four bits, one a byte. */
const ONES_OF_0_TO_3: i32 = 0x02010100;
const ONES_OF_4_TO_7: i32 = 0x03020201;
const ONES_OF_12_TO_15: i32 = 0x04030302;
const LOW_NIBBLES: i32 = 0x0f0f0f0f;
const EVERY_BYTE: i32 = 0x01010101;
const EVERY_HALF_WORD: i32 = 0x00010001;
/** Halves of doubles: 2^52, 2^31 − 1 and 2^32 − 1. */
const TWO_52_HIGH: i32 = 0x43300000;
const MAX_I32_HIGH: i32 = 0x41dfffff;
const MAX_I32_LOW: i32 = -4194304;
const MAX_U32_HIGH: i32 = 0x41efffff;
const MAX_U32_LOW: i32 = -2097152;

/** Selects one of four opcodes by integer shape. */
function byWidth(shape: i32, b: i32, w: i32, d: i32, q: i32): i32 {
  if (shape === op.I8X16) return b;
  if (shape === op.I16X8) return w;
  return shape === op.I32X4 ? d : q;
}

/** Selects one of two opcodes by float shape. */
function byPrecision(shape: i32, single: i32, double: i32): i32 {
  return shape === op.F64X2 ? double : single;
}

/** The opcode of a binary operation that is a single instruction, or 0. */
function directOpcode(operation: i32, shape: i32): i32 {
  switch (operation) {
    case op.V_AND:
      return x64.PAND;
    case op.V_OR:
      return x64.POR;
    case op.V_XOR:
      return x64.PXOR;
    case op.V_ADD:
      return byWidth(shape, x64.PADDB, x64.PADDW, x64.PADDD, x64.PADDQ);
    case op.V_SUB:
      return byWidth(shape, x64.PSUBB, x64.PSUBW, x64.PSUBD, x64.PSUBQ);
    case op.V_MUL:
      return byWidth(shape, 0, x64.PMULLW, x64.PMULLD, 0);
    case op.V_ADD_SAT_S:
      return byWidth(shape, x64.PADDSB, x64.PADDSW, 0, 0);
    case op.V_ADD_SAT_U:
      return byWidth(shape, x64.PADDUSB, x64.PADDUSW, 0, 0);
    case op.V_SUB_SAT_S:
      return byWidth(shape, x64.PSUBSB, x64.PSUBSW, 0, 0);
    case op.V_SUB_SAT_U:
      return byWidth(shape, x64.PSUBUSB, x64.PSUBUSW, 0, 0);
    case op.V_MIN_S:
      return byWidth(shape, x64.PMINSB, x64.PMINSW, x64.PMINSD, 0);
    case op.V_MIN_U:
      return byWidth(shape, x64.PMINUB, x64.PMINUW, x64.PMINUD, 0);
    case op.V_MAX_S:
      return byWidth(shape, x64.PMAXSB, x64.PMAXSW, x64.PMAXSD, 0);
    case op.V_MAX_U:
      return byWidth(shape, x64.PMAXUB, x64.PMAXUW, x64.PMAXUD, 0);
    case op.V_AVGR_U:
      return byWidth(shape, x64.PAVGB, x64.PAVGW, 0, 0);
    case op.V_DOT_S:
      return x64.PMADDWD;
    case op.V_NARROW_S:
      return byWidth(shape, x64.PACKSSWB, x64.PACKSSDW, 0, 0);
    case op.V_NARROW_U:
      return byWidth(shape, x64.PACKUSWB, x64.PACKUSDW, 0, 0);
    case op.V_EQ:
      return byWidth(shape, x64.PCMPEQB, x64.PCMPEQW, x64.PCMPEQD, x64.PCMPEQQ);
    case op.V_GT_S:
      return byWidth(shape, x64.PCMPGTB, x64.PCMPGTW, x64.PCMPGTD, 0);
    case op.V_FADD:
      return byPrecision(shape, x64.ADDPS, x64.ADDPD);
    case op.V_FSUB:
      return byPrecision(shape, x64.SUBPS, x64.SUBPD);
    case op.V_FMUL:
      return byPrecision(shape, x64.MULPS, x64.MULPD);
    case op.V_FDIV:
      return byPrecision(shape, x64.DIVPS, x64.DIVPD);
  }
  return 0;
}

/** d = d opcode s */
function vv(opcode: i32, d: i32, s: i32): void {
  rr(opcode, 0, d, s);
}

/** d = d opcode s, immediate */
function vvi(opcode: i32, d: i32, s: i32, immediate: i32): void {
  rr(opcode, 0, d, s);
  emit8(immediate);
}

function copy(d: i32, s: i32): void {
  move(1, d, s);
}

function ones(d: i32): void {
  vv(x64.PCMPEQD, d, d);
}

function zeros(d: i32): void {
  vv(x64.PXOR, d, d);
}

/** Shifts lanes of `shape` to the right by a constant; the other two to the right with sign, and to the left. */
function shiftRight(shape: i32, d: i32, count: i32): void {
  rb(byWidth(shape, 0, x64.PSRLW_I, x64.PSRLD_I, x64.PSRLQ_I), 0, d, count);
}

function shiftRightSigned(d: i32, count: i32): void {
  rb(x64.PSRAD_I, 0, d, count);
}

function shiftLeft(shape: i32, d: i32, count: i32): void {
  rb(byWidth(shape, 0, x64.PSLLW_I, x64.PSLLD_I, x64.PSLLQ_I), 0, d, count);
}

/** d = the vector with these 64-bit halves. */
function halves(d: i32, low0: i32, high0: i32, low1: i32, high1: i32): void {
  constant(R11, low0, high0, 1);
  rr(x64.MOVD_X, 1, d, R11);
  if (low0 === low1 && high0 === high1) {
    vvi(x64.PSHUFD, d, d, LOW_HALVES);
    return;
  }
  constant(R11, low1, high1, 1);
  rr(x64.PINSRD, 1, d, R11);
  emit8(1);
}

/** d = four lanes with the value `word` */
function words(d: i32, word: i32): void {
  constant(R11, word, 0, 0);
  rr(x64.MOVD_X, 0, d, R11);
  vvi(x64.PSHUFD, d, d, 0);
}

/** d = the constant of four words, the lowest first */
export function vectorConstant(d: i32, w0: i32, w1: i32, w2: i32, w3: i32): void {
  if ((w0 | w1 | w2 | w3) === 0) zeros(d);
  else if ((w0 & w1 & w2 & w3) === -1) ones(d);
  else {
    rip(x64.MOVUPS_L, 0, d);
    queueVector(at - 4, w0, w1, w2, w3);
  }
}

/** Whether the operation is emitted as d = d op y, where d may be the first operand's register. */
export function isTied(operation: i32, shape: i32): boolean {
  return directOpcode(operation, shape) !== 0;
}

/** d = d op y */
export function vectorTied(operation: i32, shape: i32, d: i32, y: i32): void {
  vv(directOpcode(operation, shape), d, y);
}

/** d = x op y */
export function vectorBinary(operation: i32, shape: i32, d: i32, x: i32, y: i32, t: i32): void {
  const direct = directOpcode(operation, shape);
  if (direct !== 0) {
    copy(d, x);
    vv(direct, d, y);
    return;
  }
  switch (operation) {
    case op.V_ANDNOT:
      copy(d, y);
      vv(x64.PANDN, d, x);
      return;
    case op.V_MUL:
      multiplyWide(d, x, y, t);
      return;
    case op.V_SWIZZLE:
      // Indices above 15 get their highest bit set, for which the instruction gives 0.
      words(t, SWIZZLE_BIAS);
      vv(x64.PADDUSB, t, y);
      copy(d, x);
      vv(x64.PSHUFB, d, t);
      return;
    case op.V_Q15MULR_S:
      // Only −1 × −1, with the result −2^15, overflows.
      copy(d, x);
      vv(x64.PMULHRSW, d, y);
      ones(t);
      shiftLeft(op.I16X8, t, 15);
      vv(x64.PCMPEQW, t, d);
      vv(x64.PXOR, d, t);
      return;
    case op.V_RELAXED_DOT:
      relaxedDot(d, x, y, t);
      return;
    case op.V_EXTMUL_LOW_S:
    case op.V_EXTMUL_HIGH_S:
    case op.V_EXTMUL_LOW_U:
    case op.V_EXTMUL_HIGH_U:
      extendedProduct(operation, shape, d, x, y);
      return;
  }
  if (operation >= op.V_NE && operation <= op.V_GE_U) integerCompare(operation, shape, d, x, y, t);
  else floatOperation(operation, shape, d, x, y, t);
}

/** 64-bit products from products of 32-bit halves: the lower ones, plus the crossed ones shifted by 32. */
function multiplyWide(d: i32, x: i32, y: i32, t: i32): void {
  copy(t, x);
  shiftRight(op.I64X2, t, 32);
  vv(x64.PMULUDQ, t, y);
  copy(XMM15, y);
  shiftRight(op.I64X2, XMM15, 32);
  vv(x64.PMULUDQ, XMM15, x);
  vv(x64.PADDQ, t, XMM15);
  shiftLeft(op.I64X2, t, 32);
  copy(d, x);
  vv(x64.PMULUDQ, d, y);
  vv(x64.PADDQ, d, t);
}

/** d = the lower or upper lanes of x, extended to lanes of `shape` */
function extend(operation: i32, shape: i32, d: i32, x: i32): void {
  const isSigned = operation === op.V_EXTEND_LOW_S || operation === op.V_EXTEND_HIGH_S;
  const opcode = isSigned
    ? byWidth(shape, 0, x64.PMOVSXBW, x64.PMOVSXWD, x64.PMOVSXDQ)
    : byWidth(shape, 0, x64.PMOVZXBW, x64.PMOVZXWD, x64.PMOVZXDQ);
  if (operation === op.V_EXTEND_LOW_S || operation === op.V_EXTEND_LOW_U) {
    vv(opcode, d, x);
    return;
  }
  vvi(x64.PSHUFD, d, x, HIGH_HALVES);
  vv(opcode, d, d);
}

function extendedProduct(operation: i32, shape: i32, d: i32, x: i32, y: i32): void {
  const extension = op.V_EXTEND_LOW_S + operation - op.V_EXTMUL_LOW_S;
  extend(extension, shape, d, x);
  extend(extension, shape, XMM15, y);
  const isSigned = operation === op.V_EXTMUL_LOW_S || operation === op.V_EXTMUL_HIGH_S;
  vv(byWidth(shape, 0, x64.PMULLW, x64.PMULLD, isSigned ? x64.PMULDQ : x64.PMULUDQ), d, XMM15);
}

/** Sums of two neighbouring products of signed bytes, saturated to 16 bits. */
function relaxedDot(d: i32, x: i32, y: i32, t: i32): void {
  extend(op.V_EXTEND_LOW_S, op.I16X8, d, x);
  extend(op.V_EXTEND_LOW_S, op.I16X8, t, y);
  vv(x64.PMADDWD, d, t);
  extend(op.V_EXTEND_HIGH_S, op.I16X8, t, x);
  extend(op.V_EXTEND_HIGH_S, op.I16X8, XMM15, y);
  vv(x64.PMADDWD, t, XMM15);
  vv(x64.PACKSSDW, d, t);
}

function invert(d: i32): void {
  ones(XMM15);
  vv(x64.PXOR, d, XMM15);
}

/** d = x > y, as signed 64-bit lanes */
function greaterWide(d: i32, x: i32, y: i32, t: i32): void {
  copy(t, y);
  vv(x64.PSUBQ, t, x);
  copy(XMM15, x);
  vv(x64.PCMPEQD, XMM15, y);
  vv(x64.PAND, XMM15, t);
  copy(d, x);
  vv(x64.PCMPGTD, d, y);
  vv(x64.POR, d, XMM15);
  vvi(x64.PSHUFD, d, d, ODD_WORDS);
}

/** d = (op(x, y) == x), for a minimum or maximum op */
function compareByExtremum(operation: i32, shape: i32, d: i32, x: i32, y: i32): void {
  copy(d, x);
  vv(directOpcode(operation, shape), d, y);
  vv(directOpcode(op.V_EQ, shape), d, x);
}

function integerCompare(operation: i32, shape: i32, d: i32, x: i32, y: i32, t: i32): void {
  const wide = shape === op.I64X2;
  switch (operation) {
    case op.V_NE:
      copy(d, x);
      vv(directOpcode(op.V_EQ, shape), d, y);
      invert(d);
      return;
    case op.V_GT_S:
      greaterWide(d, x, y, t);
      return;
    case op.V_LT_S:
      if (wide) greaterWide(d, y, x, t);
      else vectorBinary(op.V_GT_S, shape, d, y, x, t);
      return;
    case op.V_LE_S:
      if (wide) {
        greaterWide(d, x, y, t);
        invert(d);
      } else compareByExtremum(op.V_MIN_S, shape, d, x, y);
      return;
    case op.V_GE_S:
      if (wide) {
        greaterWide(d, y, x, t);
        invert(d);
      } else compareByExtremum(op.V_MAX_S, shape, d, x, y);
      return;
    case op.V_LE_U:
      compareByExtremum(op.V_MIN_U, shape, d, x, y);
      return;
    case op.V_GE_U:
      compareByExtremum(op.V_MAX_U, shape, d, x, y);
      return;
    case op.V_GT_U:
      compareByExtremum(op.V_MIN_U, shape, d, x, y);
      invert(d);
      return;
  }
  compareByExtremum(op.V_MAX_U, shape, d, x, y);
  invert(d);
}

/** d = x compared with y; `immediate` is the predicate of CMPPS or CMPPD */
function floatCompare(shape: i32, d: i32, x: i32, y: i32, immediate: i32): void {
  copy(d, x);
  vvi(byPrecision(shape, x64.CMPPS, x64.CMPPD), d, y, immediate);
}

function floatOperation(operation: i32, shape: i32, d: i32, x: i32, y: i32, t: i32): void {
  switch (operation) {
    case op.V_FEQ:
      floatCompare(shape, d, x, y, 0);
      return;
    case op.V_FNE:
      floatCompare(shape, d, x, y, 4);
      return;
    case op.V_FLT:
      floatCompare(shape, d, x, y, 1);
      return;
    case op.V_FGT:
      floatCompare(shape, d, y, x, 1);
      return;
    case op.V_FLE:
      floatCompare(shape, d, x, y, 2);
      return;
    case op.V_FGE:
      floatCompare(shape, d, y, x, 2);
      return;
    case op.V_FPMIN:
      copy(d, y);
      vv(byPrecision(shape, x64.MINPS, x64.MINPD), d, x);
      return;
    case op.V_FPMAX:
      copy(d, y);
      vv(byPrecision(shape, x64.MAXPS, x64.MAXPD), d, x);
      return;
  }
  extremum(operation, shape, d, x, y, t);
}

/**
 * d = minimum or maximum, computed in both operand orders, because the instruction returns its second operand if both
 * are zeros or one is a NaN. NaNs in the result become canonical, with either sign; where the sign counts, it is
 * negative, as in optimized code.
 */
function extremum(operation: i32, shape: i32, d: i32, x: i32, y: i32, t: i32): void {
  const opcode = operation === op.V_FMIN
    ? byPrecision(shape, x64.MINPS, x64.MINPD)
    : byPrecision(shape, x64.MAXPS, x64.MAXPD);
  copy(t, x);
  vv(opcode, t, y);
  copy(d, y);
  vv(opcode, d, x);
  if (operation === op.V_FMIN) {
    vv(x64.POR, t, d);
  } else {
    vv(x64.PXOR, d, t);
    vv(x64.POR, t, d);
    vv(byPrecision(shape, x64.SUBPS, x64.SUBPD), t, d);
  }
  vvi(byPrecision(shape, x64.CMPPS, x64.CMPPD), d, t, 3);
  if (operation === op.V_FMIN || (load32(H_MODE) & MODE_OWN_NANS) !== 0) vv(x64.POR, t, d);
  shiftRight(shape === op.F64X2 ? op.I64X2 : op.I32X4, d, shape === op.F64X2 ? 13 : 10);
  vv(x64.PANDN, d, t);
}

/** d = op x */
export function vectorUnary(operation: i32, shape: i32, d: i32, x: i32, t: i32): void {
  switch (operation) {
    case op.V_NOT:
      ones(d);
      vv(x64.PXOR, d, x);
      return;
    case op.V_ABS:
      absolute(shape, d, x, t);
      return;
    case op.V_NEG:
      zeros(d);
      vv(directOpcode(op.V_SUB, shape), d, x);
      return;
    case op.V_POPCNT:
      population(d, x, t);
      return;
    case op.V_EXTADD_S:
    case op.V_EXTADD_U:
      addPairs(operation, shape, d, x, t);
      return;
    case op.V_EXTEND_LOW_S:
    case op.V_EXTEND_HIGH_S:
    case op.V_EXTEND_LOW_U:
    case op.V_EXTEND_HIGH_U:
      extend(operation, shape, d, x);
      return;
  }
  floatUnaryVector(operation, shape, d, x, t);
}

function absolute(shape: i32, d: i32, x: i32, t: i32): void {
  if (shape !== op.I64X2) {
    vv(byWidth(shape, x64.PABSB, x64.PABSW, x64.PABSD, 0), d, x);
    return;
  }
  vvi(x64.PSHUFD, t, x, ODD_WORDS);
  shiftRightSigned(t, 31);
  copy(d, x);
  vv(x64.PXOR, d, t);
  vv(x64.PSUBQ, d, t);
}

/** d = a x64.PSHUFB table: the population counts of the 16 values of four bits */
function populationTable(d: i32): void {
  halves(d, ONES_OF_0_TO_3, ONES_OF_4_TO_7, ONES_OF_4_TO_7, ONES_OF_12_TO_15);
}

function population(d: i32, x: i32, t: i32): void {
  words(XMM15, LOW_NIBBLES);
  copy(d, x);
  shiftRight(op.I16X8, d, 4);
  vv(x64.PAND, d, XMM15);
  vv(x64.PAND, XMM15, x);
  populationTable(t);
  vv(x64.PSHUFB, t, d);
  populationTable(d);
  vv(x64.PSHUFB, d, XMM15);
  vv(x64.PADDB, d, t);
}

/** d = sums of neighbouring lanes of x, as lanes of `shape` */
function addPairs(operation: i32, shape: i32, d: i32, x: i32, t: i32): void {
  if (shape === op.I16X8) {
    // The instruction multiplies unsigned bytes of its first operand by signed bytes of its second.
    words(t, EVERY_BYTE);
    if (operation === op.V_EXTADD_S) {
      copy(d, t);
      vv(x64.PMADDUBSW, d, x);
    } else {
      copy(d, x);
      vv(x64.PMADDUBSW, d, t);
    }
  } else if (operation === op.V_EXTADD_S) {
    words(t, EVERY_HALF_WORD);
    copy(d, x);
    vv(x64.PMADDWD, d, t);
  } else {
    copy(d, x);
    shiftLeft(op.I32X4, d, 16);
    shiftRight(op.I32X4, d, 16);
    copy(t, x);
    shiftRight(op.I32X4, t, 16);
    vv(x64.PADDD, d, t);
  }
}

function floatUnaryVector(operation: i32, shape: i32, d: i32, x: i32, t: i32): void {
  const double = shape === op.F64X2;
  switch (operation) {
    case op.V_FABS:
      copy(d, x);
      withShared(x64.ANDPS, d, double ? SHARED_ABS64 : SHARED_ABS32);
      return;
    case op.V_FNEG:
      copy(d, x);
      withShared(x64.XORPS, d, double ? SHARED_SIGN64 : SHARED_SIGN32);
      return;
    case op.V_FSQRT:
      vv(byPrecision(shape, x64.SQRTPS, x64.SQRTPD), d, x);
      return;
    case op.V_FCEIL:
      vvi(double ? x64.ROUNDPD : x64.ROUNDPS, d, x, 10);
      return;
    case op.V_FFLOOR:
      vvi(double ? x64.ROUNDPD : x64.ROUNDPS, d, x, 9);
      return;
    case op.V_FTRUNC:
      vvi(double ? x64.ROUNDPD : x64.ROUNDPS, d, x, 11);
      return;
    case op.V_FNEAREST:
      vvi(double ? x64.ROUNDPD : x64.ROUNDPS, d, x, 8);
      return;
    case op.V_FDEMOTE:
      vv(x64.CVTPD2PS, d, x);
      return;
    case op.V_FPROMOTE:
      vv(x64.CVTPS2PD, d, x);
      return;
    case op.V_CONVERT_S:
      vv(double ? x64.CVTDQ2PD : x64.CVTDQ2PS, d, x);
      return;
    case op.V_CONVERT_U:
      if (double) convertUnsignedWide(d, x);
      else convertUnsigned(d, x, t);
      return;
    case op.V_TRUNC_SAT_S:
      if (double) truncateWide(d, x, t);
      else truncateSigned(d, x, t);
      return;
  }
  if (double) truncateUnsignedWide(d, x, t);
  else truncateUnsigned(d, x, t);
}

/** d = u32 lanes as f32: the halves of 16 bits convert exactly; only their sum rounds. */
function convertUnsigned(d: i32, x: i32, t: i32): void {
  copy(t, x);
  shiftLeft(op.I32X4, t, 16);
  shiftRight(op.I32X4, t, 16);
  copy(d, x);
  vv(x64.PSUBD, d, t);
  vv(x64.CVTDQ2PS, t, t);
  shiftRight(op.I32X4, d, 1);
  vv(x64.CVTDQ2PS, d, d);
  vv(x64.ADDPS, d, d);
  vv(x64.ADDPS, d, t);
}

/**
 * d = the two lower u32 lanes as f64: each becomes the low bits of a double 2^52 + x, from which 2^52 is subtracted.
 */
function convertUnsignedWide(d: i32, x: i32): void {
  words(XMM15, TWO_52_HIGH);
  copy(d, x);
  vv(x64.UNPCKLPS, d, XMM15);
  halves(XMM15, 0, TWO_52_HIGH, 0, TWO_52_HIGH);
  vv(x64.SUBPD, d, XMM15);
}

/** d = f32 lanes truncated to i32, saturated. The hardware's result out of range is −2^31. */
function truncateSigned(d: i32, x: i32, t: i32): void {
  copy(t, x);
  vvi(x64.CMPPS, t, t, 0);
  copy(d, x);
  vv(x64.PAND, d, t);
  vv(x64.PXOR, t, d);
  vv(x64.CVTTPS2DQ, d, d);
  vv(x64.PAND, t, d);
  shiftRightSigned(t, 31);
  vv(x64.PXOR, d, t);
}

/** d = f32 lanes truncated to u32, saturated: values beyond 2^31 − 1 are converted separately. */
function truncateUnsigned(d: i32, x: i32, t: i32): void {
  zeros(XMM15);
  copy(d, x);
  vv(x64.MAXPS, d, XMM15);
  ones(XMM15);
  shiftRight(op.I32X4, XMM15, 1);
  vv(x64.CVTDQ2PS, XMM15, XMM15);
  copy(t, d);
  vv(x64.SUBPS, t, XMM15);
  vvi(x64.CMPPS, XMM15, t, 2);
  vv(x64.CVTTPS2DQ, t, t);
  vv(x64.PXOR, t, XMM15);
  zeros(XMM15);
  vv(x64.PMAXSD, t, XMM15);
  vv(x64.CVTTPS2DQ, d, d);
  vv(x64.PADDD, d, t);
}

/** d = two doubles truncated to i32, saturated; the upper lanes are 0. */
function truncateWide(d: i32, x: i32, t: i32): void {
  copy(t, x);
  vvi(x64.CMPPD, t, t, 0);
  halves(XMM15, MAX_I32_LOW, MAX_I32_HIGH, MAX_I32_LOW, MAX_I32_HIGH);
  vv(x64.PAND, t, XMM15);
  copy(d, x);
  vv(x64.MINPD, d, t);
  vv(x64.CVTTPD2DQ, d, d);
}

/** d = two doubles truncated to u32, saturated, as the low bits of a double 2^52 + x; the upper lanes are 0. */
function truncateUnsignedWide(d: i32, x: i32, t: i32): void {
  zeros(t);
  copy(d, x);
  vv(x64.MAXPD, d, t);
  halves(XMM15, MAX_U32_LOW, MAX_U32_HIGH, MAX_U32_LOW, MAX_U32_HIGH);
  vv(x64.MINPD, d, XMM15);
  vvi(x64.ROUNDPD, d, d, 11);
  halves(XMM15, 0, TWO_52_HIGH, 0, TWO_52_HIGH);
  vv(x64.ADDPD, d, XMM15);
  vvi(x64.SHUFPS, d, t, EVEN_WORDS);
}

/** d = op (x, y, z) */
export function vectorTernary(operation: i32, shape: i32, d: i32, x: i32, y: i32, z: i32, t: i32): void {
  switch (operation) {
    case op.V_BITSELECT:
      copy(d, z);
      vv(x64.PANDN, d, y);
      copy(t, x);
      vv(x64.PAND, t, z);
      vv(x64.POR, d, t);
      return;
    case op.V_MADD:
      copy(d, x);
      vv(byPrecision(shape, x64.MULPS, x64.MULPD), d, y);
      vv(byPrecision(shape, x64.ADDPS, x64.ADDPD), d, z);
      return;
    case op.V_NMADD:
      copy(t, x);
      vv(byPrecision(shape, x64.MULPS, x64.MULPD), t, y);
      copy(d, z);
      vv(byPrecision(shape, x64.SUBPS, x64.SUBPD), d, t);
      return;
  }
  relaxedDot(d, x, y, t);
  words(t, EVERY_HALF_WORD);
  vv(x64.PMADDWD, d, t);
  vv(x64.PADDD, d, z);
}

/** d = d with NaNs replaced by the positive canonical NaN */
export function canonicalizeLanes(shape: i32, d: i32, t: i32): void {
  copy(t, d);
  vvi(byPrecision(shape, x64.CMPPS, x64.CMPPD), t, t, 3);
  copy(XMM15, t);
  vv(x64.PANDN, XMM15, d);
  if (shape === op.F64X2) halves(d, 0, CANONICAL_F64_HIGH, 0, CANONICAL_F64_HIGH);
  else words(d, CANONICAL_F32);
  vv(x64.PAND, d, t);
  vv(x64.POR, d, XMM15);
}

/** d = lanes of x shifted by general register `count`, modulo their width; changes `count` */
export function vectorShift(operation: i32, shape: i32, d: i32, x: i32, count: i32, t: i32): void {
  rb(x64.AND_B, 0, count, (8 << shape) - 1);
  if (shape === op.I8X16) {
    shiftBytesOf(operation, d, x, count, t);
    return;
  }
  rr(x64.MOVD_X, 0, XMM15, count);
  copy(d, x);
  if (operation === op.V_SHR_S && shape === op.I64X2) {
    withSign(t);
    vv(x64.PSRLQ, t, XMM15);
    vv(x64.PSRLQ, d, XMM15);
    vv(x64.PXOR, d, t);
    vv(x64.PSUBQ, d, t);
  } else vv(shiftOpcode(operation, shape), d, XMM15);
}

/** d = 2^63 in both 64-bit lanes */
function withSign(d: i32): void {
  ones(d);
  shiftLeft(op.I64X2, d, 63);
}

function shiftOpcode(operation: i32, shape: i32): i32 {
  if (operation === op.V_SHL) return byWidth(shape, 0, x64.PSLLW, x64.PSLLD, x64.PSLLQ);
  return operation === op.V_SHR_U
    ? byWidth(shape, 0, x64.PSRLW, x64.PSRLD, x64.PSRLQ)
    : byWidth(shape, 0, x64.PSRAW, x64.PSRAD, 0);
}

/**
 * d = bytes of x shifted by `count`. The shift of 16-bit lanes is masked to remove the bits of the neighbouring byte; a
 * signed shift extends the bytes to 16 bits.
 */
function shiftBytesOf(operation: i32, d: i32, x: i32, count: i32, t: i32): void {
  if (operation === op.V_SHR_S) {
    rb(x64.ADD_B, 0, count, 8);
    rr(x64.MOVD_X, 0, XMM15, count);
    copy(t, x);
    vv(x64.PUNPCKHBW, t, t);
    vv(x64.PSRAW, t, XMM15);
    copy(d, x);
    vv(x64.PUNPCKLBW, d, d);
    vv(x64.PSRAW, d, XMM15);
    vv(x64.PACKSSWB, d, t);
    return;
  }
  rr(x64.MOVD_X, 0, XMM15, count);
  ones(t);
  shiftRight(op.I16X8, t, 8);
  vv(shiftOpcode(operation, op.I16X8), t, XMM15);
  if (operation === op.V_SHL) {
    shiftLeft(op.I16X8, t, 8);
    shiftRight(op.I16X8, t, 8);
  }
  vv(x64.PACKUSWB, t, t);
  copy(d, x);
  vv(shiftOpcode(operation, op.I16X8), d, XMM15);
  vv(x64.PAND, d, t);
}

/** d (general) = the result of a test of vector x */
export function vectorTest(operation: i32, shape: i32, d: i32, x: i32, _t: i32): void {
  if (operation === op.V_BITMASK) {
    bitmask(shape, d, x);
    return;
  }
  if (operation === op.V_ANY_TRUE) {
    vv(x64.PTEST, x, x);
    rrByte(x64.SETCC | x64.CC_NE, 0, 0, d);
  } else {
    zeros(XMM15);
    vv(directOpcode(op.V_EQ, shape), XMM15, x);
    vv(x64.PTEST, XMM15, XMM15);
    rrByte(x64.SETCC | x64.CC_E, 0, 0, d);
  }
  rrByte(x64.MOVZX_8, 0, d, d);
}

function bitmask(shape: i32, d: i32, x: i32): void {
  if (shape === op.I8X16) rr(x64.PMOVMSKB, 0, d, x);
  else if (shape === op.I16X8) {
    copy(XMM15, x);
    vv(x64.PACKSSWB, XMM15, XMM15);
    rr(x64.PMOVMSKB, 0, d, XMM15);
    rrByte(x64.MOVZX_8, 0, d, d);
  } else rr(shape === op.I32X4 ? x64.MOVMSKPS : x64.MOVMSKPD, 0, d, x);
}

/** d = the scalar x in all lanes; x is in a general register for integer shapes */
export function splat(shape: i32, d: i32, x: i32): void {
  if (shape <= op.I64X2) rr(x64.MOVD_X, shape === op.I64X2 ? 1 : 0, d, x);
  spreadLowest(shape, d, shape <= op.I64X2 ? d : x);
}

/** d = the lowest lane of x in all lanes */
function spreadLowest(shape: i32, d: i32, x: i32): void {
  switch (shape) {
    case op.I8X16:
      copy(d, x);
      zeros(XMM15);
      vv(x64.PSHUFB, d, XMM15);
      return;
    case op.I16X8:
      vvi(x64.PSHUFLW, d, x, 0);
      vvi(x64.PSHUFD, d, d, 0);
      return;
    case op.I32X4:
    case op.F32X4:
      vvi(x64.PSHUFD, d, x, 0);
      return;
  }
  vvi(x64.PSHUFD, d, x, LOW_HALVES);
}

/** d = lane of x */
export function extractLane(shape: i32, isSigned: i32, lane: i32, d: i32, x: i32): void {
  switch (shape) {
    case op.I8X16:
      rr(x64.PEXTRB, 0, x, d);
      emit8(lane);
      if (isSigned !== 0) rrByte(x64.MOVSX_8, 0, d, d);
      return;
    case op.I16X8:
      rr(x64.PEXTRW, 0, d, x);
      emit8(lane);
      if (isSigned !== 0) rr(x64.MOVSX_16, 0, d, d);
      return;
    case op.I32X4:
    case op.I64X2:
      rr(x64.PEXTRD, shape === op.I64X2 ? 1 : 0, x, d);
      emit8(lane);
      return;
    case op.F32X4:
      vvi(x64.PSHUFD, d, x, lane);
      return;
  }
  vvi(x64.PSHUFD, d, x, lane === 0 ? LOW_HALVES : HIGH_HALVES);
}

/** Lane `lane` of d = the scalar s */
export function replaceLane(shape: i32, lane: i32, d: i32, s: i32): void {
  switch (shape) {
    case op.F32X4:
      vvi(x64.INSERTPS, d, s, lane << 4);
      return;
    case op.F64X2:
      vv(lane === 0 ? x64.MOVSD_L : x64.MOVLHPS, d, s);
      return;
  }
  rr(byWidth(shape, x64.PINSRB, x64.PINSRW, x64.PINSRD, x64.PINSRD), shape === op.I64X2 ? 1 : 0, d, s);
  emit8(lane);
}

/** d = bytes of x selected by the x64.PSHUFB mask in t; xmm15 = y, for shuffleRest */
export function shuffleBytes(d: i32, x: i32, y: i32, t: i32): void {
  copy(d, x);
  vv(x64.PSHUFB, d, t);
  copy(XMM15, y);
}

/** The second half of a shuffle: adds the bytes of y selected by the mask in t to d. */
export function shuffleRest(d: i32, t: i32): void {
  vv(x64.PSHUFB, XMM15, t);
  vv(x64.POR, d, XMM15);
}

/** opcode d, the prepared operand */
function onOperand(opcode: i32, wide: i32, d: i32): void {
  rmx(opcode, wide, d, accessBase, accessIndex, 0, accessOffset, 0);
}

/** d = the vector that `operation` makes of the prepared operand: extended, splatted, or zero-filled */
export function loadVector(operation: i32, shape: i32, d: i32): void {
  switch (operation) {
    case op.V_LOAD_EXTEND_S:
      onOperand(byWidth(shape, 0, x64.PMOVSXBW, x64.PMOVSXWD, x64.PMOVSXDQ), 0, d);
      return;
    case op.V_LOAD_EXTEND_U:
      onOperand(byWidth(shape, 0, x64.PMOVZXBW, x64.PMOVZXWD, x64.PMOVZXDQ), 0, d);
      return;
    case op.V_LOAD_ZERO:
      onOperand(shape === op.F32X4 ? x64.MOVSS_L : x64.MOVSD_L, 0, d);
      return;
  }
  if (shape === op.I8X16 || shape === op.I16X8) loadLane(shape, 0, d);
  else onOperand(shape === op.I32X4 ? x64.MOVSS_L : x64.MOVSD_L, 0, d);
  spreadLowest(shape, d, d);
}

/** Lane `lane` of d = the prepared operand */
export function loadLane(shape: i32, lane: i32, d: i32): void {
  onOperand(byWidth(shape, x64.PINSRB, x64.PINSRW, x64.PINSRD, x64.PINSRD), shape === op.I64X2 ? 1 : 0, d);
  emit8(lane);
}

/** Prepares a lane for storeLane: nothing to do, since the storing instruction selects it. */
export function takeLane(_shape: i32, _lane: i32, _s: i32): void {}

/** The prepared operand = lane `lane` of s */
export function storeLane(shape: i32, lane: i32, s: i32): void {
  onOperand(byWidth(shape, x64.PEXTRB, x64.PEXTRW_S, x64.PEXTRD, x64.PEXTRD), shape === op.I64X2 ? 1 : 0, s);
  emit8(lane);
}
