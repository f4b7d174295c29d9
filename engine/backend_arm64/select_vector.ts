/**
 * Rules for vector arithmetic, comparison, shifts and conversions. Nearly every operation is one instruction
 * (vector_rows.ts); the others are short sequences on virtual registers.
 */
import { OP } from "../ir/ops.ts";
import { SHAPE } from "../ir/types.ts";
import { X } from "./instructions.ts";
import type { Arm64Lowering } from "./lowering_context.ts";
import { one, oneInto, two, twoInto } from "./vector_code.ts";
import { BINARY_ROW, EXCHANGED, UNARY_ROW } from "./vector_rows.ts";

const { I8X16, F32X4 } = SHAPE;

function shapeOf(s: Arm64Lowering, id: number): number {
  return s.imm[id] & 0xff;
}

export function selectUnary(s: Arm64Lowering, id: number): void {
  const row = UNARY_ROW[s.op[id] * 8 + shapeOf(s, id)];
  const x = s.reg(s.a[id]);
  s.vregs[id] = row !== 0 ? one(s, row, x) : longUnary(s, s.op[id], x);
}

/** Conversions between two doubles and two words. */
function longUnary(s: Arm64Lowering, op: number, x: number): number {
  switch (op) {
    case OP.VCONVERT_S:
      return one(s, X.SCVTF_2D, one(s, X.SSHLL_4S, x));
    case OP.VCONVERT_U:
      return one(s, X.UCVTF_2D, one(s, X.USHLL_4S, x));
    case OP.VTRUNC_SAT_S:
      return one(s, X.SQXTN_4S, one(s, X.FCVTZS_2D, x));
    case OP.VTRUNC_SAT_U:
      return one(s, X.UQXTN_4S, one(s, X.FCVTZU_2D, x));
  }
  throw new Error(`Vector operation ${op} has no rule`);
}

/** Whether value `id` is a vector negation that was folded. */
function isInverse(s: Arm64Lowering, id: number): boolean {
  return s.folded[id] !== 0 && s.op[id] === OP.VNOT;
}

export function selectBinary(s: Arm64Lowering, id: number): void {
  const op = s.op[id];
  const a = s.a[id];
  const b = s.b[id];
  if (isInverse(s, a) || isInverse(s, b)) return selectInverse(s, id);
  const row = BINARY_ROW[op * 8 + shapeOf(s, id)];
  const zero = row === 0 ? 0 : compareWithZero(s, id);
  if (zero !== 0) {
    s.vregs[id] = one(s, zero, s.reg(s.isZeroVector(b) ? a : b));
    return;
  }
  const x = s.reg(a);
  const y = s.reg(b);
  if (row === 0) s.vregs[id] = longBinary(s, id, x, y);
  else s.vregs[id] = EXCHANGED[op] === 1 ? two(s, row, y, x) : two(s, row, x, y);
}

/** `x & ~y`, `x | ~y` and `x & ~~y`, where the inversion was folded. */
function selectInverse(s: Arm64Lowering, id: number): void {
  const op = s.op[id];
  let x = s.a[id];
  let y = s.b[id];
  if (!isInverse(s, y)) [x, y] = [y, x];
  const row = op === OP.VAND ? X.BIC_16B : op === OP.VOR ? X.ORN_16B : X.AND_16B;
  const first = s.reg(x);
  s.vregs[id] = two(s, row, first, s.reg(s.a[y]));
}

/**
 * The row of comparison `op` with zero for lanes of a byte, followed by those of wider lanes; `isFirst`: zero is the
 * first operand. 0 if there is none.
 */
function zeroRow(op: number, isFirst: boolean): number {
  switch (op) {
    case OP.VEQ:
      return X.CMEQ0_16B;
    case OP.VGT_S:
      return isFirst ? X.CMLT0_16B : X.CMGT0_16B;
    case OP.VGE_S:
      return isFirst ? X.CMLE0_16B : X.CMGE0_16B;
    case OP.VLT_S:
      return isFirst ? X.CMGT0_16B : X.CMLT0_16B;
    case OP.VLE_S:
      return isFirst ? X.CMGE0_16B : X.CMLE0_16B;
  }
  return 0;
}

/** The row that compares one operand of `id` with zero, if the other is the vector 0; else 0. */
function compareWithZero(s: Arm64Lowering, id: number): number {
  const row = zeroRow(s.op[id], false);
  if (row === 0) return 0;
  if (s.isZeroVector(s.b[id])) return row + shapeOf(s, id);
  return s.isZeroVector(s.a[id]) ? zeroRow(s.op[id], true) + shapeOf(s, id) : 0;
}

/** `x` op `y` for the operations without an instruction. */
function longBinary(s: Arm64Lowering, id: number, x: number, y: number): number {
  const shape = shapeOf(s, id);
  const double = shape === F32X4 ? 0 : 1;
  switch (s.op[id]) {
    case OP.VMUL: {
      // The products of low and high words, as the upper half of the sum; then those of the low words.
      const crossed = two(s, X.MUL_4S, one(s, X.REV64_4S, y), x);
      const upper = one(s, X.SHL_2D, one(s, X.UADDLP_4S, crossed), 32);
      return twoInto(s, X.UMLAL_4S, upper, one(s, X.XTN_4S, x), one(s, X.XTN_4S, y));
    }
    case OP.VDOT_S:
      return two(s, X.ADDP_4S, two(s, X.SMULL_8H, x, y), two(s, X.SMULL2_8H, x, y));
    case OP.VNARROW_S: {
      const size = shape === I8X16 ? 0 : 1;
      return oneInto(s, X.SQXTN2_16B + size, one(s, X.SQXTN_16B + size, x), y);
    }
    case OP.VNARROW_U: {
      const size = shape === I8X16 ? 0 : 1;
      return oneInto(s, X.SQXTUN2_16B + size, one(s, X.SQXTUN_16B + size, x), y);
    }
    case OP.VNE:
      return one(s, X.NOT_16B, two(s, BINARY_ROW[OP.VEQ * 8 + shape], x, y));
    case OP.VFNE:
      return one(s, X.NOT_16B, two(s, X.FCMEQ_4S + double, x, y));
    case OP.VFPMIN:
      return twoInto(s, X.BSL_16B, two(s, X.FCMGT_4S + double, x, y), y, x);
    case OP.VFPMAX:
      return twoInto(s, X.BSL_16B, two(s, X.FCMGT_4S + double, y, x), y, x);
  }
  throw new Error(`Vector operation ${s.op[id]} has no rule`);
}

// Rules for shifts. Counts are below the width of a lane.

/** Shifts by a register go to the left, negative counts to the right. */
export function selectShift(s: Arm64Lowering, id: number): void {
  const shape = shapeOf(s, id);
  const op = s.op[id];
  const x = s.reg(s.a[id]);
  const count = s.b[id];
  if (s.op[count] === OP.CONST) {
    const n = s.imm[count];
    const mask = (8 << shape) - 1;
    if (op === OP.VSHL) s.vregs[id] = one(s, X.SHL_16B + shape, x, n);
    // A shift to the right by 0 has no encoding.
    else if (n === 0) s.vregs[id] = x;
    else s.vregs[id] = one(s, (op === OP.VSHR_S ? X.SSHR_16B : X.USHR_16B) + shape, x, -n & mask);
    return;
  }
  const by = one(s, X.DUP_R_16B + shape, s.reg(count));
  if (op === OP.VSHL) s.vregs[id] = two(s, X.USHL_16B + shape, x, by);
  else s.vregs[id] = two(s, (op === OP.VSHR_S ? X.SSHL_16B : X.USHL_16B) + shape, x, one(s, X.NEG_16B + shape, by));
}

/** Bits of a where c is set, of b elsewhere. */
export function selectBitselect(s: Arm64Lowering, id: number): void {
  const mask = s.c[id];
  const a = s.reg(s.a[id]);
  const b = s.reg(s.b[id]);
  if (isInverse(s, mask)) s.vregs[id] = twoInto(s, X.BSL_16B, s.reg(s.a[mask]), b, a);
  else s.vregs[id] = twoInto(s, X.BSL_16B, s.reg(mask), a, b);
}
