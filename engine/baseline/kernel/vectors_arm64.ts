/**
 * Vector operations on arm64, as macro-instructions (machine_arm64.ts). `d` and `t` differ from the operands'
 * registers; x16, x17 and v31 are scratch. Lane sizes are fields of the instructions: the constants are those of the
 * smallest lanes.
 */
import * as code from "./code.ts";
import { emit32 } from "./code.ts";
import { queueVector } from "./fragments.ts";
import * as cond from "./conditions.ts";
import { CANONICAL_F32, CANONICAL_F64_HIGH } from "./constants.ts";
import { bits, rri, rrr, rrra } from "./encoding_arm64.ts";
import * as a64 from "./instructions_arm64.ts";
import { compareImmediate, constant, isFar, move, onOperand, setCondition } from "./machine_arm64.ts";
import type { i32 } from "./memory.ts";
import * as op from "./operations.ts";

const X16: i32 = 16;
const X17: i32 = 17;
const V31: i32 = 63;
/** Ascending single bits in two lanes of 16 bits, and in four bytes. */
const BITS_0_1: i32 = 0x20001;
const BITS_0_TO_3: i32 = 0x08040201;

/** The size field for the lanes of an integer shape. */
function size(shape: i32): i32 {
  return shape << 22;
}

/** The precision field for the lanes of a float shape. */
function precision(shape: i32): i32 {
  return (shape - op.F32X4) << 22;
}

/** The integer shape with lanes of the same size. */
function lanesOf(shape: i32): i32 {
  return shape <= op.I64X2 ? shape : shape - 2;
}

/** The field of lane `lane` of an integer shape. */
function laneField(shape: i32, lane: i32): i32 {
  return ((lane << (shape + 1)) | (1 << shape)) << 16;
}

/** The fixed bits of an instruction with a lane field, without that field. */
function withoutLane(op16b: i32): i32 {
  return op16b & ~(1 << 16);
}

function unary(op: i32, d: i32, x: i32): void {
  rrr(op, d, x, 0);
}

function bitwiseNot(d: i32): void {
  unary(a64.NOT_16B, d, d);
}

/** d = x16 in both 64-bit lanes */
function duplicateWide(d: i32): void {
  rrr(withoutLane(a64.DUP_R_16B) | laneField(op.I64X2, 0), d, X16, 0);
}

/** d = the constant of four words, the lowest first; may change x16 */
export function vectorConstant(d: i32, w0: i32, w1: i32, w2: i32, w3: i32): void {
  if ((w0 | w1 | w2 | w3) === 0) {
    emit32(a64.MOVI_2D | (d & 31));
    return;
  }
  const isRepeated = w0 === w2 && w1 === w3;
  if (!isRepeated && !isFar) {
    emit32(a64.LDR_LQ | (d & 31));
    queueVector(code.at - 4, w0, w1, w2, w3);
    return;
  }
  constant(X16, w0, w1, 1);
  if (isRepeated) {
    duplicateWide(d);
    return;
  }
  rrr(a64.FMOV_DX, d, X16, 0);
  constant(X16, w2, w3, 1);
  rrr(withoutLane(a64.INS_R_16B) | laneField(op.I64X2, 1), d, X16, 0);
}

/** Whether the operation is emitted as d = d op y: never, since instructions have three operands. */
export function isTied(_operation: i32, _shape: i32): boolean {
  return false;
}

export function vectorTied(operation: i32, shape: i32, d: i32, y: i32): void {
  vectorBinary(operation, shape, d, d, y, d);
}

/** The integer operation of two vectors that is a single instruction, or 0. */
function integerOp(operation: i32, shape: i32): i32 {
  switch (operation) {
    case op.V_AND:
      return a64.AND_16B;
    case op.V_ANDNOT:
      return a64.BIC_16B;
    case op.V_OR:
      return a64.ORR_16B;
    case op.V_XOR:
      return a64.EOR_16B;
    case op.V_SWIZZLE:
      return a64.TBL_16B;
    case op.V_Q15MULR_S:
      return a64.SQRDMULH_8H;
    case op.V_ADD:
      return a64.ADD_16B | size(shape);
    case op.V_SUB:
      return a64.SUB_16B | size(shape);
    case op.V_MUL:
      return shape === op.I64X2 ? 0 : a64.MUL_16B | size(shape);
    case op.V_ADD_SAT_S:
      return a64.SQADD_16B | size(shape);
    case op.V_ADD_SAT_U:
      return a64.UQADD_16B | size(shape);
    case op.V_SUB_SAT_S:
      return a64.SQSUB_16B | size(shape);
    case op.V_SUB_SAT_U:
      return a64.UQSUB_16B | size(shape);
    case op.V_MIN_S:
      return a64.SMIN_16B | size(shape);
    case op.V_MIN_U:
      return a64.UMIN_16B | size(shape);
    case op.V_MAX_S:
      return a64.SMAX_16B | size(shape);
    case op.V_MAX_U:
      return a64.UMAX_16B | size(shape);
    case op.V_AVGR_U:
      return a64.URHADD_16B | size(shape);
    case op.V_EQ:
      return a64.CMEQ_16B | size(shape);
    case op.V_GT_S:
    case op.V_LT_S:
      return a64.CMGT_16B | size(shape);
    case op.V_GT_U:
    case op.V_LT_U:
      return a64.CMHI_16B | size(shape);
    case op.V_GE_S:
    case op.V_LE_S:
      return a64.CMGE_16B | size(shape);
    case op.V_GE_U:
    case op.V_LE_U:
      return a64.CMHS_16B | size(shape);
  }
  return productOp(operation, shape);
}

/** The instruction for products of the lower or upper lanes, as lanes of `shape`, or 0. */
function productOp(operation: i32, shape: i32): i32 {
  switch (operation) {
    case op.V_EXTMUL_LOW_S:
      return a64.SMULL_16B | size(shape - 1);
    case op.V_EXTMUL_HIGH_S:
      return a64.SMULL2_16B | size(shape - 1);
    case op.V_EXTMUL_LOW_U:
      return a64.UMULL_16B | size(shape - 1);
    case op.V_EXTMUL_HIGH_U:
      return a64.UMULL2_16B | size(shape - 1);
  }
  return 0;
}

/** The float operation of two vectors that is a single instruction, or 0. */
function floatOp(operation: i32, shape: i32): i32 {
  switch (operation) {
    case op.V_FADD:
      return a64.FADD_4S | precision(shape);
    case op.V_FSUB:
      return a64.FSUB_4S | precision(shape);
    case op.V_FMUL:
      return a64.FMUL_4S | precision(shape);
    case op.V_FDIV:
      return a64.FDIV_4S | precision(shape);
    case op.V_FMIN:
      return a64.FMIN_4S | precision(shape);
    case op.V_FMAX:
      return a64.FMAX_4S | precision(shape);
    case op.V_FEQ:
      return a64.FCMEQ_4S | precision(shape);
    case op.V_FGT:
    case op.V_FLT:
      return a64.FCMGT_4S | precision(shape);
    case op.V_FGE:
    case op.V_FLE:
      return a64.FCMGE_4S | precision(shape);
  }
  return 0;
}

/** Whether the instruction takes the operands in reverse order. */
function isExchanged(operation: i32): boolean {
  return operation === op.V_LT_S || operation === op.V_LT_U || operation === op.V_LE_S || operation === op.V_LE_U ||
    operation === op.V_FLT || operation === op.V_FLE;
}

/** d = x op y */
export function vectorBinary(operation: i32, shape: i32, d: i32, x: i32, y: i32, t: i32): void {
  const direct = shape <= op.I64X2 ? integerOp(operation, shape) : floatOp(operation, shape);
  if (direct !== 0) {
    if (isExchanged(operation)) rrr(direct, d, y, x);
    else rrr(direct, d, x, y);
    return;
  }
  switch (operation) {
    case op.V_MUL:
      multiplyWide(d, x, y, t);
      return;
    case op.V_NE:
      rrr(a64.CMEQ_16B | size(shape), d, x, y);
      bitwiseNot(d);
      return;
    case op.V_FNE:
      rrr(a64.FCMEQ_4S | precision(shape), d, x, y);
      bitwiseNot(d);
      return;
    case op.V_FPMIN:
      rrr(a64.FCMGT_4S | precision(shape), d, x, y);
      rrr(a64.BSL_16B, d, y, x);
      return;
    case op.V_FPMAX:
      rrr(a64.FCMGT_4S | precision(shape), d, y, x);
      rrr(a64.BSL_16B, d, y, x);
      return;
    case op.V_DOT_S:
      rrr(a64.SMULL_16B | size(op.I16X8), t, x, y);
      rrr(a64.SMULL2_16B | size(op.I16X8), V31, x, y);
      rrr(a64.ADDP_4S, d, t, V31);
      return;
    case op.V_NARROW_S:
      unary(a64.SQXTN_16B | size(shape), d, x);
      unary(a64.SQXTN2_16B | size(shape), d, y);
      return;
    case op.V_NARROW_U:
      unary(a64.SQXTUN_16B | size(shape), d, x);
      unary(a64.SQXTUN2_16B | size(shape), d, y);
      return;
  }
  relaxedDot(d, x, y, t);
}

/**
 * d = 64-bit products: the sums of the crossed products of 32-bit halves, shifted by 32, plus the products of the lower
 * halves.
 */
function multiplyWide(d: i32, x: i32, y: i32, t: i32): void {
  unary(a64.REV64_16B | size(op.I32X4), t, y);
  rrr(a64.MUL_16B | size(op.I32X4), t, t, x);
  unary(a64.UADDLP_16B | size(op.I32X4), t, t);
  shiftLeft(op.I64X2, t, t, 32);
  unary(a64.XTN_4S, V31, x);
  unary(a64.XTN_4S, d, y);
  rrr(a64.UMLAL_4S, t, V31, d);
  move(1, d, t);
}

/** Sums of two neighbouring products of signed bytes, saturated to 16 bits. */
function relaxedDot(d: i32, x: i32, y: i32, t: i32): void {
  rrr(a64.SMULL_16B, t, x, y);
  rrr(a64.SMULL2_16B, V31, x, y);
  unary(a64.SADDLP_16B | size(op.I16X8), t, t);
  unary(a64.SADDLP_16B | size(op.I16X8), V31, V31);
  unary(a64.SQXTN_16B | size(op.I16X8), d, t);
  unary(a64.SQXTN2_16B | size(op.I16X8), d, V31);
}

/** d = lanes of x shifted to the left by a constant */
function shiftLeft(shape: i32, d: i32, x: i32, count: i32): void {
  rrr((a64.SHL_16B & ~(8 << 16)) | (((8 << shape) + count) << 16), d, x, 0);
}

/** d = the lower or upper lanes of x, extended to lanes of `shape` */
function extend(op16b: i32, shape: i32, d: i32, x: i32): void {
  rrr((op16b & ~(8 << 16)) | ((4 << shape) << 16), d, x, 0);
}

/** d = op x */
export function vectorUnary(operation: i32, shape: i32, d: i32, x: i32, _t: i32): void {
  switch (operation) {
    case op.V_NOT:
      unary(a64.NOT_16B, d, x);
      return;
    case op.V_ABS:
      unary(a64.ABS_16B | size(shape), d, x);
      return;
    case op.V_NEG:
      unary(a64.NEG_16B | size(shape), d, x);
      return;
    case op.V_POPCNT:
      unary(a64.CNT_16B, d, x);
      return;
    case op.V_EXTADD_S:
      unary(a64.SADDLP_16B | size(shape - 1), d, x);
      return;
    case op.V_EXTADD_U:
      unary(a64.UADDLP_16B | size(shape - 1), d, x);
      return;
    case op.V_EXTEND_LOW_S:
      extend(a64.SSHLL_16B, shape, d, x);
      return;
    case op.V_EXTEND_HIGH_S:
      extend(a64.SSHLL2_16B, shape, d, x);
      return;
    case op.V_EXTEND_LOW_U:
      extend(a64.USHLL_16B, shape, d, x);
      return;
    case op.V_EXTEND_HIGH_U:
      extend(a64.USHLL2_16B, shape, d, x);
      return;
    case op.V_FDEMOTE:
      unary(a64.FCVTN_2S, d, x);
      return;
    case op.V_FPROMOTE:
      unary(a64.FCVTL_2D, d, x);
      return;
  }
  if (operation >= op.V_CONVERT_S) convert(operation, shape, d, x);
  else unary(floatUnaryOp(operation) | precision(shape), d, x);
}

function floatUnaryOp(operation: i32): i32 {
  switch (operation) {
    case op.V_FABS:
      return a64.FABS_4S;
    case op.V_FNEG:
      return a64.FNEG_4S;
    case op.V_FSQRT:
      return a64.FSQRT_4S;
    case op.V_FCEIL:
      return a64.FRINTP_4S;
    case op.V_FFLOOR:
      return a64.FRINTM_4S;
    case op.V_FTRUNC:
      return a64.FRINTZ_4S;
  }
  return a64.FRINTN_4S;
}

/** Conversions between integers of 32 bits and floats of `shape`. */
function convert(operation: i32, shape: i32, d: i32, x: i32): void {
  const isWide = shape === op.F64X2;
  switch (operation) {
    case op.V_CONVERT_S:
      if (isWide) extend(a64.SSHLL_16B, op.I64X2, d, x);
      unary(a64.SCVTF_4S | precision(shape), d, isWide ? d : x);
      return;
    case op.V_CONVERT_U:
      if (isWide) extend(a64.USHLL_16B, op.I64X2, d, x);
      unary(a64.UCVTF_4S | precision(shape), d, isWide ? d : x);
      return;
    case op.V_TRUNC_SAT_S:
      unary(a64.FCVTZS_4S | precision(shape), d, x);
      if (isWide) unary(a64.SQXTN_16B | size(op.I32X4), d, d);
      return;
  }
  unary(a64.FCVTZU_4S | precision(shape), d, x);
  if (isWide) unary(a64.UQXTN_4S, d, d);
}

/** d = op (x, y, z) */
export function vectorTernary(operation: i32, shape: i32, d: i32, x: i32, y: i32, z: i32, t: i32): void {
  switch (operation) {
    case op.V_BITSELECT:
      move(1, d, z);
      rrr(a64.BSL_16B, d, x, y);
      return;
    case op.V_MADD:
      rrr(a64.FMUL_4S | precision(shape), d, x, y);
      rrr(a64.FADD_4S | precision(shape), d, d, z);
      return;
    case op.V_NMADD:
      rrr(a64.FMUL_4S | precision(shape), t, x, y);
      rrr(a64.FSUB_4S | precision(shape), d, z, t);
      return;
  }
  relaxedDot(d, x, y, t);
  unary(a64.SADDLP_16B | size(op.I16X8), d, d);
  rrr(a64.ADD_16B | size(op.I32X4), d, d, z);
}

/** d = d with NaNs replaced by the positive canonical NaN; changes x16 */
export function canonicalizeLanes(shape: i32, d: i32, t: i32): void {
  rrr(a64.FCMEQ_4S | precision(shape), t, d, d);
  if (shape === op.F64X2) constant(X16, 0, CANONICAL_F64_HIGH, 1);
  else constant(X16, CANONICAL_F32, CANONICAL_F32, 1);
  duplicateWide(V31);
  rrr(a64.BSL_16B, t, d, V31);
  move(1, d, t);
}

/** d = lanes of x shifted by general register `count`, modulo their width; changes `count` */
export function vectorShift(operation: i32, shape: i32, d: i32, x: i32, count: i32, t: i32): void {
  // and count, count, lane width − 1: a run of ones from bit 0 on
  rri(a64.AND_I32, count, count, shape + 2);
  rrr(withoutLane(a64.DUP_R_16B) | laneField(shape, 0), t, count, 0);
  // Negative counts shift to the right.
  if (operation !== op.V_SHL) unary(a64.NEG_16B | size(shape), t, t);
  rrr((operation === op.V_SHR_S ? a64.SSHL_16B : a64.USHL_16B) | size(shape), d, x, t);
}

/** d (general) = the result of a test of vector x; changes t and x16 */
export function vectorTest(operation: i32, shape: i32, d: i32, x: i32, t: i32): void {
  if (operation === op.V_BITMASK) {
    bitmask(shape, d, x, t);
    return;
  }
  const isAny = operation === op.V_ANY_TRUE;
  if (!isAny) unary(a64.CMEQ0_16B | size(shape), V31, x);
  const y = isAny ? x : V31;
  rrr(a64.UMAXP_4S, V31, y, y);
  rrr(a64.FMOV_XD, X16, V31, 0);
  compareImmediate(1, X16, 0);
  setCondition(isAny ? cond.NE : cond.EQ, d);
}

/** d (general) = the sign bits of the lanes */
function bitmask(shape: i32, d: i32, x: i32, t: i32): void {
  if (shape === op.I64X2) {
    moveLane(op.I64X2, 0, X16, x);
    moveLane(op.I64X2, 1, X17, x);
    bits(a64.UBFM64, X16, X16, 63, 63);
    bits(a64.UBFM64, X17, X17, 63, 63);
    rrra(a64.ORR64, d, X16, X17, 1);
    return;
  }
  // Select a distinct bit in every negative lane, and add the lanes.
  unary(a64.CMLT0_16B | size(shape), V31, x);
  if (shape === op.I32X4) vectorConstant(t, 1, 2, 4, 8);
  else if (shape === op.I16X8) vectorConstant(t, BITS_0_1, BITS_0_1 << 2, BITS_0_1 << 4, BITS_0_1 << 6);
  else vectorConstant(t, BITS_0_TO_3, BITS_0_TO_3 << 4, BITS_0_TO_3, BITS_0_TO_3 << 4);
  rrr(a64.AND_16B, V31, V31, t);
  if (shape === op.I8X16) {
    rrr(a64.EXT_16B | (8 << 11), t, V31, V31);
    rrr(a64.ZIP1_16B, V31, V31, t);
  }
  unary((a64.ADDV_8H & ~size(3)) | size(shape === op.I32X4 ? op.I32X4 : op.I16X8), V31, V31);
  rrr(a64.FMOV_WS, d, V31, 0);
}

/** d = the scalar x in all lanes; x is in a general register for integer shapes */
export function splat(shape: i32, d: i32, x: i32): void {
  const form = shape <= op.I64X2 ? a64.DUP_R_16B : a64.DUP_E_16B;
  rrr(withoutLane(form) | laneField(lanesOf(shape), 0), d, x, 0);
}

/** d (general) = lane of x, zero-extended */
function moveLane(shape: i32, lane: i32, d: i32, x: i32): void {
  const form = shape === op.I64X2 ? withoutLane(a64.UMOV_16B) | (1 << 30) : withoutLane(a64.UMOV_16B);
  rrr(form | laneField(shape, lane), d, x, 0);
}

/** d = lane of x */
export function extractLane(shape: i32, isSigned: i32, lane: i32, d: i32, x: i32): void {
  if (shape > op.I64X2) rrr(withoutLane(a64.DUP_F_16B) | laneField(lanesOf(shape), lane), d, x, 0);
  else if (isSigned !== 0) rrr(withoutLane(a64.SMOV_16B) | laneField(shape, lane), d, x, 0);
  else moveLane(shape, lane, d, x);
}

/** Lane `lane` of d = the scalar s */
export function replaceLane(shape: i32, lane: i32, d: i32, s: i32): void {
  const form = shape <= op.I64X2 ? a64.INS_R_16B : a64.INS_E_16B;
  rrr(withoutLane(form) | laneField(lanesOf(shape), lane), d, s, 0);
}

/** d = bytes of x selected by the TBL mask in t, which gives 0 for indices out of range; v31 = y, for shuffleRest */
export function shuffleBytes(d: i32, x: i32, y: i32, t: i32): void {
  rrr(a64.TBL_16B, d, x, t);
  move(1, V31, y);
}

/** The second half of a shuffle: adds the bytes of y selected by the mask in t to d. */
export function shuffleRest(d: i32, t: i32): void {
  rrr(a64.TBL_16B, V31, V31, t);
  rrr(a64.ORR_16B, d, d, V31);
}

/** Loads 1 << scale bytes of the prepared operand into x17. */
function loadPart(scale: i32): void {
  if (scale === 0) onOperand(a64.LDRB_U, 0, X17);
  else if (scale === 1) onOperand(a64.LDRH_U, 1, X17);
  else if (scale === 2) onOperand(a64.LDR_W_U, 2, X17);
  else onOperand(a64.LDR_X_U, 3, X17);
}

/** d = the vector that `operation` makes of the prepared operand: extended, splatted, or zero-filled */
export function loadVector(operation: i32, shape: i32, d: i32): void {
  switch (operation) {
    case op.V_LOAD_EXTEND_S:
      onOperand(a64.LDR_D_U, 3, d);
      extend(a64.SSHLL_16B, shape, d, d);
      return;
    case op.V_LOAD_EXTEND_U:
      onOperand(a64.LDR_D_U, 3, d);
      extend(a64.USHLL_16B, shape, d, d);
      return;
    case op.V_LOAD_ZERO:
      if (shape === op.F32X4) onOperand(a64.LDR_S_U, 2, d);
      else onOperand(a64.LDR_D_U, 3, d);
      return;
  }
  loadPart(shape);
  splat(shape, d, X17);
}

/** Lane `lane` of d = the prepared operand */
export function loadLane(shape: i32, lane: i32, d: i32): void {
  loadPart(shape);
  replaceLane(shape, lane, d, X17);
}

/** Copies lane `lane` of s to v31, for storeLane. */
export function takeLane(shape: i32, lane: i32, s: i32): void {
  rrr(withoutLane(a64.DUP_F_16B) | laneField(shape, lane), V31, s, 0);
}

/** The prepared operand = the lane of takeLane, in v31 */
export function storeLane(shape: i32, _lane: i32, _s: i32): void {
  if (shape === op.I8X16) onOperand(a64.STR_B_U, 0, V31);
  else if (shape === op.I16X8) onOperand(a64.STR_H_U, 1, V31);
  else if (shape === op.I32X4) onOperand(a64.STR_S_U, 2, V31);
  else onOperand(a64.STR_D_U, 3, V31);
}
