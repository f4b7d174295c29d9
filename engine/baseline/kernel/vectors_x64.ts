/**
 * Vector operations on x86-64 with SSE 4.1, as macro-instructions (machine_x64.ts). `d` and `t` differ from the
 * operands' registers; xmm15 and r11 are scratch. directOpcode lists the operations that are a single instruction by
 * shape; the other functions emit sequences.
 */
import { at, emit8 } from "./code.ts";
import { queueVector } from "./fragments.ts";
import { rip, rmx, rr, rrByte } from "./encoding_x64.ts";
import { constant, move, withShared } from "./machine_x64.ts";
import { accessBase, accessIndex, accessOffset } from "./machine_x64.ts";
import { H_MODE, MODE_OWN_NANS } from "./layout.ts";
import { type i32, load32 } from "./memory.ts";
import * as op from "./operations.ts";
import { SHARED_ABS32, SHARED_ABS64, SHARED_SIGN32, SHARED_SIGN64 } from "./constants.ts";

const R11: i32 = 11;
const XMM15: i32 = 47;

// Opcodes (encoding_x64.ts).
const PXOR: i32 = 0x660fef;
const PAND: i32 = 0x660fdb;
const POR: i32 = 0x660feb;
const PANDN: i32 = 0x660fdf;
const PADDQ: i32 = 0x660fd4;
const PSUBQ: i32 = 0x660ffb;
const PMULUDQ: i32 = 0x660ff4;
const PMULDQ: i32 = 0x663828;
const PSHUFB: i32 = 0x663800;
const PSHUFD: i32 = 0x660f70;
const PTEST: i32 = 0x663817;
const PACKSSWB: i32 = 0x660f63;
const PACKUSWB: i32 = 0x660f67;
const PCMPEQD: i32 = 0x660f76;
const PMADDWD: i32 = 0x660ff5;
const PADDD: i32 = 0x660ffe;
const CVTTPS2DQ: i32 = 0xf30f5b;
const CVTDQ2PS: i32 = 0x0f5b;

/** Selects one of four opcodes by integer shape. */
function byWidth(shape: i32, b: i32, w: i32, d: i32, q: i32): i32 {
  if (shape === op.I8X16) return b;
  if (shape === op.I16X8) return w;
  return shape === op.I32X4 ? d : q;
}

/** The packed form of the float opcode with last byte `opcode`. */
function packed(shape: i32, opcode: i32): i32 {
  return (shape === op.F64X2 ? 0x660f00 : 0x0f00) | opcode;
}

/** The opcode of a binary operation that is a single instruction, or 0. */
function directOpcode(operation: i32, shape: i32): i32 {
  switch (operation) {
    case op.V_AND:
      return PAND;
    case op.V_OR:
      return POR;
    case op.V_XOR:
      return PXOR;
    case op.V_ADD:
      return byWidth(shape, 0x660ffc, 0x660ffd, PADDD, PADDQ);
    case op.V_SUB:
      return byWidth(shape, 0x660ff8, 0x660ff9, 0x660ffa, PSUBQ);
    case op.V_MUL:
      return byWidth(shape, 0, 0x660fd5, 0x663840, 0);
    case op.V_ADD_SAT_S:
      return byWidth(shape, 0x660fec, 0x660fed, 0, 0);
    case op.V_ADD_SAT_U:
      return byWidth(shape, 0x660fdc, 0x660fdd, 0, 0);
    case op.V_SUB_SAT_S:
      return byWidth(shape, 0x660fe8, 0x660fe9, 0, 0);
    case op.V_SUB_SAT_U:
      return byWidth(shape, 0x660fd8, 0x660fd9, 0, 0);
    case op.V_MIN_S:
      return byWidth(shape, 0x663838, 0x660fea, 0x663839, 0);
    case op.V_MIN_U:
      return byWidth(shape, 0x660fda, 0x66383a, 0x66383b, 0);
    case op.V_MAX_S:
      return byWidth(shape, 0x66383c, 0x660fee, 0x66383d, 0);
    case op.V_MAX_U:
      return byWidth(shape, 0x660fde, 0x66383e, 0x66383f, 0);
    case op.V_AVGR_U:
      return byWidth(shape, 0x660fe0, 0x660fe3, 0, 0);
    case op.V_DOT_S:
      return PMADDWD;
    case op.V_NARROW_S:
      return byWidth(shape, PACKSSWB, 0x660f6b, 0, 0);
    case op.V_NARROW_U:
      return byWidth(shape, PACKUSWB, 0x66382b, 0, 0);
    case op.V_EQ:
      return byWidth(shape, 0x660f74, 0x660f75, PCMPEQD, 0x663829);
    case op.V_GT_S:
      return byWidth(shape, 0x660f64, 0x660f65, 0x660f66, 0);
    case op.V_FADD:
      return packed(shape, 0x58);
    case op.V_FSUB:
      return packed(shape, 0x5c);
    case op.V_FMUL:
      return packed(shape, 0x59);
    case op.V_FDIV:
      return packed(shape, 0x5e);
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
  vv(PCMPEQD, d, d);
}

function zeros(d: i32): void {
  vv(PXOR, d, d);
}

/** Shifts lanes of `shape` by a constant: `extension` 2 to the right, 4 to the right with sign, 6 to the left. */
function shiftBy(shape: i32, extension: i32, d: i32, count: i32): void {
  vvi(shape === op.I16X8 ? 0x660f71 : shape === op.I32X4 ? 0x660f72 : 0x660f73, extension, d, count);
}

/** d = the vector with these 64-bit halves. */
function halves(d: i32, low0: i32, high0: i32, low1: i32, high1: i32): void {
  constant(R11, low0, high0, 1);
  rr(0x660f6e, 1, d, R11);
  if (low0 === low1 && high0 === high1) {
    vvi(PSHUFD, d, d, 0x44);
    return;
  }
  constant(R11, low1, high1, 1);
  rr(0x663a22, 1, d, R11);
  emit8(1);
}

/** d = four lanes with the value `word` */
function words(d: i32, word: i32): void {
  constant(R11, word, 0, 0);
  rr(0x660f6e, 0, d, R11);
  vvi(PSHUFD, d, d, 0);
}

/** d = the constant of four words, the lowest first */
export function vectorConstant(d: i32, w0: i32, w1: i32, w2: i32, w3: i32): void {
  if ((w0 | w1 | w2 | w3) === 0) zeros(d);
  else if ((w0 & w1 & w2 & w3) === -1) ones(d);
  else {
    rip(0x0f10, 0, d);
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
      vv(PANDN, d, x);
      return;
    case op.V_MUL:
      multiplyWide(d, x, y, t);
      return;
    case op.V_SWIZZLE:
      // Indices above 15 get their highest bit set, for which the instruction gives 0.
      words(t, 0x70707070);
      vv(0x660fdc, t, y);
      copy(d, x);
      vv(PSHUFB, d, t);
      return;
    case op.V_Q15MULR_S:
      // Only −1 × −1, with the result 0x8000, overflows.
      copy(d, x);
      vv(0x66380b, d, y);
      ones(t);
      shiftBy(op.I16X8, 6, t, 15);
      vv(0x660f75, t, d);
      vv(PXOR, d, t);
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
  shiftBy(op.I64X2, 2, t, 32);
  vv(PMULUDQ, t, y);
  copy(XMM15, y);
  shiftBy(op.I64X2, 2, XMM15, 32);
  vv(PMULUDQ, XMM15, x);
  vv(PADDQ, t, XMM15);
  shiftBy(op.I64X2, 6, t, 32);
  copy(d, x);
  vv(PMULUDQ, d, y);
  vv(PADDQ, d, t);
}

/** d = the lower or upper lanes of x, extended to lanes of `shape` */
function extend(operation: i32, shape: i32, d: i32, x: i32): void {
  const isSigned = operation === op.V_EXTEND_LOW_S || operation === op.V_EXTEND_HIGH_S;
  const opcode = byWidth(shape, 0, 0x663820, 0x663823, 0x663825) + (isSigned ? 0 : 0x10);
  if (operation === op.V_EXTEND_LOW_S || operation === op.V_EXTEND_LOW_U) {
    vv(opcode, d, x);
    return;
  }
  vvi(PSHUFD, d, x, 0xee);
  vv(opcode, d, d);
}

function extendedProduct(operation: i32, shape: i32, d: i32, x: i32, y: i32): void {
  const extension = op.V_EXTEND_LOW_S + operation - op.V_EXTMUL_LOW_S;
  extend(extension, shape, d, x);
  extend(extension, shape, XMM15, y);
  const isSigned = operation === op.V_EXTMUL_LOW_S || operation === op.V_EXTMUL_HIGH_S;
  vv(byWidth(shape, 0, 0x660fd5, 0x663840, isSigned ? PMULDQ : PMULUDQ), d, XMM15);
}

/** Sums of two neighbouring products of signed bytes, saturated to 16 bits. */
function relaxedDot(d: i32, x: i32, y: i32, t: i32): void {
  extend(op.V_EXTEND_LOW_S, op.I16X8, d, x);
  extend(op.V_EXTEND_LOW_S, op.I16X8, t, y);
  vv(PMADDWD, d, t);
  extend(op.V_EXTEND_HIGH_S, op.I16X8, t, x);
  extend(op.V_EXTEND_HIGH_S, op.I16X8, XMM15, y);
  vv(PMADDWD, t, XMM15);
  vv(0x660f6b, d, t);
}

function invert(d: i32): void {
  ones(XMM15);
  vv(PXOR, d, XMM15);
}

/** d = x > y, as signed 64-bit lanes */
function greaterWide(d: i32, x: i32, y: i32, t: i32): void {
  copy(t, y);
  vv(PSUBQ, t, x);
  copy(XMM15, x);
  vv(PCMPEQD, XMM15, y);
  vv(PAND, XMM15, t);
  copy(d, x);
  vv(0x660f66, d, y);
  vv(POR, d, XMM15);
  vvi(PSHUFD, d, d, 0xf5);
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
  vvi(packed(shape, 0xc2), d, y, immediate);
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
      vv(packed(shape, 0x5d), d, x);
      return;
    case op.V_FPMAX:
      copy(d, y);
      vv(packed(shape, 0x5f), d, x);
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
  const opcode = packed(shape, operation === op.V_FMIN ? 0x5d : 0x5f);
  copy(t, x);
  vv(opcode, t, y);
  copy(d, y);
  vv(opcode, d, x);
  if (operation === op.V_FMIN) {
    vv(POR, t, d);
  } else {
    vv(PXOR, d, t);
    vv(POR, t, d);
    vv(packed(shape, 0x5c), t, d);
  }
  vvi(packed(shape, 0xc2), d, t, 3);
  if (operation === op.V_FMIN || (load32(H_MODE) & MODE_OWN_NANS) !== 0) vv(POR, t, d);
  shiftBy(shape === op.F64X2 ? op.I64X2 : op.I32X4, 2, d, shape === op.F64X2 ? 13 : 10);
  vv(PANDN, d, t);
}

/** d = op x */
export function vectorUnary(operation: i32, shape: i32, d: i32, x: i32, t: i32): void {
  switch (operation) {
    case op.V_NOT:
      ones(d);
      vv(PXOR, d, x);
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
    vv(byWidth(shape, 0x66381c, 0x66381d, 0x66381e, 0), d, x);
    return;
  }
  vvi(PSHUFD, t, x, 0xf5);
  shiftBy(op.I32X4, 4, t, 31);
  copy(d, x);
  vv(PXOR, d, t);
  vv(PSUBQ, d, t);
}

/** d = a PSHUFB table: the population counts of the 16 values of four bits */
function populationTable(d: i32): void {
  halves(d, 0x02010100, 0x03020201, 0x03020201, 0x04030302);
}

function population(d: i32, x: i32, t: i32): void {
  words(XMM15, 0x0f0f0f0f);
  copy(d, x);
  shiftBy(op.I16X8, 2, d, 4);
  vv(PAND, d, XMM15);
  vv(PAND, XMM15, x);
  populationTable(t);
  vv(PSHUFB, t, d);
  populationTable(d);
  vv(PSHUFB, d, XMM15);
  vv(0x660ffc, d, t);
}

/** d = sums of neighbouring lanes of x, as lanes of `shape` */
function addPairs(operation: i32, shape: i32, d: i32, x: i32, t: i32): void {
  if (shape === op.I16X8) {
    // The instruction multiplies unsigned bytes of its first operand by signed bytes of its second.
    words(t, 0x01010101);
    if (operation === op.V_EXTADD_S) {
      copy(d, t);
      vv(0x663804, d, x);
    } else {
      copy(d, x);
      vv(0x663804, d, t);
    }
  } else if (operation === op.V_EXTADD_S) {
    words(t, 0x00010001);
    copy(d, x);
    vv(PMADDWD, d, t);
  } else {
    copy(d, x);
    shiftBy(op.I32X4, 6, d, 16);
    shiftBy(op.I32X4, 2, d, 16);
    copy(t, x);
    shiftBy(op.I32X4, 2, t, 16);
    vv(PADDD, d, t);
  }
}

function floatUnaryVector(operation: i32, shape: i32, d: i32, x: i32, t: i32): void {
  const double = shape === op.F64X2;
  switch (operation) {
    case op.V_FABS:
      copy(d, x);
      withShared(0x0f54, d, double ? SHARED_ABS64 : SHARED_ABS32);
      return;
    case op.V_FNEG:
      copy(d, x);
      withShared(0x0f57, d, double ? SHARED_SIGN64 : SHARED_SIGN32);
      return;
    case op.V_FSQRT:
      vv(packed(shape, 0x51), d, x);
      return;
    case op.V_FCEIL:
      vvi(double ? 0x663a09 : 0x663a08, d, x, 10);
      return;
    case op.V_FFLOOR:
      vvi(double ? 0x663a09 : 0x663a08, d, x, 9);
      return;
    case op.V_FTRUNC:
      vvi(double ? 0x663a09 : 0x663a08, d, x, 11);
      return;
    case op.V_FNEAREST:
      vvi(double ? 0x663a09 : 0x663a08, d, x, 8);
      return;
    case op.V_FDEMOTE:
      vv(0x660f5a, d, x);
      return;
    case op.V_FPROMOTE:
      vv(0x0f5a, d, x);
      return;
    case op.V_CONVERT_S:
      vv(double ? 0xf30fe6 : CVTDQ2PS, d, x);
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
  shiftBy(op.I32X4, 6, t, 16);
  shiftBy(op.I32X4, 2, t, 16);
  copy(d, x);
  vv(0x660ffa, d, t);
  vv(CVTDQ2PS, t, t);
  shiftBy(op.I32X4, 2, d, 1);
  vv(CVTDQ2PS, d, d);
  vv(0x0f58, d, d);
  vv(0x0f58, d, t);
}

/**
 * d = the two lower u32 lanes as f64: each becomes the low bits of a double 2^52 + x, from which 2^52 is subtracted.
 */
function convertUnsignedWide(d: i32, x: i32): void {
  words(XMM15, 0x43300000);
  copy(d, x);
  vv(0x0f14, d, XMM15);
  halves(XMM15, 0, 0x43300000, 0, 0x43300000);
  vv(0x660f5c, d, XMM15);
}

/** d = f32 lanes truncated to i32, saturated. The hardware's result out of range is 0x80000000. */
function truncateSigned(d: i32, x: i32, t: i32): void {
  copy(t, x);
  vvi(0x0fc2, t, t, 0);
  copy(d, x);
  vv(PAND, d, t);
  vv(PXOR, t, d);
  vv(CVTTPS2DQ, d, d);
  vv(PAND, t, d);
  shiftBy(op.I32X4, 4, t, 31);
  vv(PXOR, d, t);
}

/** d = f32 lanes truncated to u32, saturated: values beyond 2^31 − 1 are converted separately. */
function truncateUnsigned(d: i32, x: i32, t: i32): void {
  zeros(XMM15);
  copy(d, x);
  vv(0x0f5f, d, XMM15);
  ones(XMM15);
  shiftBy(op.I32X4, 2, XMM15, 1);
  vv(CVTDQ2PS, XMM15, XMM15);
  copy(t, d);
  vv(0x0f5c, t, XMM15);
  vvi(0x0fc2, XMM15, t, 2);
  vv(CVTTPS2DQ, t, t);
  vv(PXOR, t, XMM15);
  zeros(XMM15);
  vv(0x66383d, t, XMM15);
  vv(CVTTPS2DQ, d, d);
  vv(PADDD, d, t);
}

/** d = two doubles truncated to i32, saturated; the upper lanes are 0. */
function truncateWide(d: i32, x: i32, t: i32): void {
  copy(t, x);
  vvi(0x660fc2, t, t, 0);
  halves(XMM15, -4194304, 0x41dfffff, -4194304, 0x41dfffff);
  vv(PAND, t, XMM15);
  copy(d, x);
  vv(0x660f5d, d, t);
  vv(0x660fe6, d, d);
}

/** d = two doubles truncated to u32, saturated, as the low bits of a double 2^52 + x; the upper lanes are 0. */
function truncateUnsignedWide(d: i32, x: i32, t: i32): void {
  zeros(t);
  copy(d, x);
  vv(0x660f5f, d, t);
  halves(XMM15, -2097152, 0x41efffff, -2097152, 0x41efffff);
  vv(0x660f5d, d, XMM15);
  vvi(0x663a09, d, d, 11);
  halves(XMM15, 0, 0x43300000, 0, 0x43300000);
  vv(0x660f58, d, XMM15);
  vvi(0x0fc6, d, t, 0x88);
}

/** d = op (x, y, z) */
export function vectorTernary(operation: i32, shape: i32, d: i32, x: i32, y: i32, z: i32, t: i32): void {
  switch (operation) {
    case op.V_BITSELECT:
      copy(d, z);
      vv(PANDN, d, y);
      copy(t, x);
      vv(PAND, t, z);
      vv(POR, d, t);
      return;
    case op.V_MADD:
      copy(d, x);
      vv(packed(shape, 0x59), d, y);
      vv(packed(shape, 0x58), d, z);
      return;
    case op.V_NMADD:
      copy(t, x);
      vv(packed(shape, 0x59), t, y);
      copy(d, z);
      vv(packed(shape, 0x5c), d, t);
      return;
  }
  relaxedDot(d, x, y, t);
  words(t, 0x00010001);
  vv(PMADDWD, d, t);
  vv(PADDD, d, z);
}

/** d = d with NaNs replaced by the positive canonical NaN */
export function canonicalizeLanes(shape: i32, d: i32, t: i32): void {
  copy(t, d);
  vvi(packed(shape, 0xc2), t, t, 3);
  copy(XMM15, t);
  vv(PANDN, XMM15, d);
  if (shape === op.F64X2) halves(d, 0, 0x7ff80000, 0, 0x7ff80000);
  else words(d, 0x7fc00000);
  vv(PAND, d, t);
  vv(POR, d, XMM15);
}

/** d = lanes of x shifted by general register `count`, modulo their width; changes `count` */
export function vectorShift(operation: i32, shape: i32, d: i32, x: i32, count: i32, t: i32): void {
  rr(0x83, 0, 4, count);
  emit8((8 << shape) - 1);
  if (shape === op.I8X16) {
    shiftBytesOf(operation, d, x, count, t);
    return;
  }
  rr(0x660f6e, 0, XMM15, count);
  copy(d, x);
  if (operation === op.V_SHR_S && shape === op.I64X2) {
    withSign(t);
    vv(0x660fd3, t, XMM15);
    vv(0x660fd3, d, XMM15);
    vv(PXOR, d, t);
    vv(PSUBQ, d, t);
  } else vv(shiftOpcode(operation, shape), d, XMM15);
}

/** d = 2^63 in both 64-bit lanes */
function withSign(d: i32): void {
  ones(d);
  shiftBy(op.I64X2, 6, d, 63);
}

function shiftOpcode(operation: i32, shape: i32): i32 {
  if (operation === op.V_SHL) return byWidth(shape, 0, 0x660ff1, 0x660ff2, 0x660ff3);
  return operation === op.V_SHR_U
    ? byWidth(shape, 0, 0x660fd1, 0x660fd2, 0x660fd3)
    : byWidth(shape, 0, 0x660fe1, 0x660fe2, 0);
}

/**
 * d = bytes of x shifted by `count`. The shift of 16-bit lanes is masked to remove the bits of the neighbouring byte; a
 * signed shift extends the bytes to 16 bits.
 */
function shiftBytesOf(operation: i32, d: i32, x: i32, count: i32, t: i32): void {
  if (operation === op.V_SHR_S) {
    rr(0x83, 0, 0, count);
    emit8(8);
    rr(0x660f6e, 0, XMM15, count);
    copy(t, x);
    vv(0x660f68, t, t);
    vv(0x660fe1, t, XMM15);
    copy(d, x);
    vv(0x660f60, d, d);
    vv(0x660fe1, d, XMM15);
    vv(PACKSSWB, d, t);
    return;
  }
  rr(0x660f6e, 0, XMM15, count);
  ones(t);
  shiftBy(op.I16X8, 2, t, 8);
  vv(shiftOpcode(operation, op.I16X8), t, XMM15);
  if (operation === op.V_SHL) {
    shiftBy(op.I16X8, 6, t, 8);
    shiftBy(op.I16X8, 2, t, 8);
  }
  vv(PACKUSWB, t, t);
  copy(d, x);
  vv(shiftOpcode(operation, op.I16X8), d, XMM15);
  vv(PAND, d, t);
}

/** d (general) = the result of a test of vector x */
export function vectorTest(operation: i32, shape: i32, d: i32, x: i32, _t: i32): void {
  if (operation === op.V_BITMASK) {
    bitmask(shape, d, x);
    return;
  }
  if (operation === op.V_ANY_TRUE) {
    vv(PTEST, x, x);
    rrByte(0x0f95, 0, 0, d);
  } else {
    zeros(XMM15);
    vv(directOpcode(op.V_EQ, shape), XMM15, x);
    vv(PTEST, XMM15, XMM15);
    rrByte(0x0f94, 0, 0, d);
  }
  rrByte(0x0fb6, 0, d, d);
}

function bitmask(shape: i32, d: i32, x: i32): void {
  if (shape === op.I8X16) rr(0x660fd7, 0, d, x);
  else if (shape === op.I16X8) {
    copy(XMM15, x);
    vv(PACKSSWB, XMM15, XMM15);
    rr(0x660fd7, 0, d, XMM15);
    rrByte(0x0fb6, 0, d, d);
  } else rr(shape === op.I32X4 ? 0x0f50 : 0x660f50, 0, d, x);
}

/** d = the scalar x in all lanes; x is in a general register for integer shapes */
export function splat(shape: i32, d: i32, x: i32): void {
  if (shape <= op.I64X2) rr(0x660f6e, shape === op.I64X2 ? 1 : 0, d, x);
  spreadLowest(shape, d, shape <= op.I64X2 ? d : x);
}

/** d = the lowest lane of x in all lanes */
function spreadLowest(shape: i32, d: i32, x: i32): void {
  switch (shape) {
    case op.I8X16:
      copy(d, x);
      zeros(XMM15);
      vv(PSHUFB, d, XMM15);
      return;
    case op.I16X8:
      vvi(0xf20f70, d, x, 0);
      vvi(PSHUFD, d, d, 0);
      return;
    case op.I32X4:
    case op.F32X4:
      vvi(PSHUFD, d, x, 0);
      return;
  }
  vvi(PSHUFD, d, x, 0x44);
}

/** d = lane of x */
export function extractLane(shape: i32, isSigned: i32, lane: i32, d: i32, x: i32): void {
  switch (shape) {
    case op.I8X16:
      rr(0x663a14, 0, x, d);
      emit8(lane);
      if (isSigned !== 0) rrByte(0x0fbe, 0, d, d);
      return;
    case op.I16X8:
      rr(0x660fc5, 0, d, x);
      emit8(lane);
      if (isSigned !== 0) rr(0x0fbf, 0, d, d);
      return;
    case op.I32X4:
    case op.I64X2:
      rr(0x663a16, shape === op.I64X2 ? 1 : 0, x, d);
      emit8(lane);
      return;
    case op.F32X4:
      vvi(PSHUFD, d, x, lane);
      return;
  }
  vvi(PSHUFD, d, x, lane === 0 ? 0x44 : 0xee);
}

/** Lane `lane` of d = the scalar s */
export function replaceLane(shape: i32, lane: i32, d: i32, s: i32): void {
  switch (shape) {
    case op.F32X4:
      vvi(0x663a21, d, s, lane << 4);
      return;
    case op.F64X2:
      vv(lane === 0 ? 0xf20f10 : 0x0f16, d, s);
      return;
  }
  rr(byWidth(shape, 0x663a20, 0x660fc4, 0x663a22, 0x663a22), shape === op.I64X2 ? 1 : 0, d, s);
  emit8(lane);
}

/** d = bytes of x selected by the PSHUFB mask in t; xmm15 = y, for shuffleRest */
export function shuffleBytes(d: i32, x: i32, y: i32, t: i32): void {
  copy(d, x);
  vv(PSHUFB, d, t);
  copy(XMM15, y);
}

/** The second half of a shuffle: adds the bytes of y selected by the mask in t to d. */
export function shuffleRest(d: i32, t: i32): void {
  vv(PSHUFB, XMM15, t);
  vv(POR, d, XMM15);
}

/** opcode d, the prepared operand */
function onOperand(opcode: i32, wide: i32, d: i32): void {
  rmx(opcode, wide, d, accessBase, accessIndex, 0, accessOffset, 0);
}

/** d = the vector that `operation` makes of the prepared operand: extended, splatted, or zero-filled */
export function loadVector(operation: i32, shape: i32, d: i32): void {
  switch (operation) {
    case op.V_LOAD_EXTEND_S:
      onOperand(byWidth(shape, 0, 0x663820, 0x663823, 0x663825), 0, d);
      return;
    case op.V_LOAD_EXTEND_U:
      onOperand(byWidth(shape, 0, 0x663830, 0x663833, 0x663835), 0, d);
      return;
    case op.V_LOAD_ZERO:
      onOperand(shape === op.F32X4 ? 0xf30f10 : 0xf20f10, 0, d);
      return;
  }
  if (shape === op.I8X16 || shape === op.I16X8) loadLane(shape, 0, d);
  else onOperand(shape === op.I32X4 ? 0xf30f10 : 0xf20f10, 0, d);
  spreadLowest(shape, d, d);
}

/** Lane `lane` of d = the prepared operand */
export function loadLane(shape: i32, lane: i32, d: i32): void {
  onOperand(byWidth(shape, 0x663a20, 0x660fc4, 0x663a22, 0x663a22), shape === op.I64X2 ? 1 : 0, d);
  emit8(lane);
}

/** Prepares a lane for storeLane: nothing to do, since the storing instruction selects it. */
export function takeLane(_shape: i32, _lane: i32, _s: i32): void {}

/** The prepared operand = lane `lane` of s */
export function storeLane(shape: i32, lane: i32, s: i32): void {
  onOperand(byWidth(shape, 0x663a14, 0x663a15, 0x663a16, 0x663a16), shape === op.I64X2 ? 1 : 0, s);
  emit8(lane);
}
