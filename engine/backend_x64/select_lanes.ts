/**
 * Rules between vectors and scalars: splats, lanes, tests. Lanes that are loaded or stored are the instruction's own
 * memory operand.
 */
import { OP } from "../ir/ops.ts";
import { SHAPE, TY } from "../ir/types.ts";
import { foldAddress } from "./addressing.ts";
import { X } from "./instructions.ts";
import { AUX_CONDITION_SHIFT, AUX_CONSUMER_SHIFT, CC, CONSUMER } from "./machine_ops.ts";
import { source } from "./source_operands.ts";
import type { X64Lowering } from "./lowering_context.ts";
import { one, oneSource, two, twoSource, zeros } from "./vector_code.ts";
import { BINARY_ROW } from "./vector_rows.ts";

const { I8X16, I16X8, I32X4, I64X2, F32X4, F64X2 } = SHAPE;

// Rules for splats

export function selectSplat(s: X64Lowering, id: number): void {
  s.vregs[id] = splat(s, s.a[id], s.imm[id] & 0xff);
}

function splat(s: X64Lowering, x: number, shape: number): number {
  const load = s.isFoldedLoad(x);
  if (shape === F32X4) {
    if (load) {
      source(s, x, false);
      return oneSource(s, X.VBROADCASTSS_M);
    }
    const vreg = s.reg(x);
    return s.avx ? two(s, X.SHUFPS, vreg, vreg, 0) : one(s, X.PSHUFD, vreg, 0);
  }
  if (shape === F64X2) {
    source(s, x, s.avx);
    return oneSource(s, s.vex(X.MOVDDUP));
  }
  if (s.avx2 && load) {
    source(s, x, false);
    return oneSource(s, [X.VPBROADCASTB, X.VPBROADCASTW, X.VPBROADCASTD, X.VPBROADCASTQ][shape]);
  }
  source(s, x, true);
  const low = oneSource(s, s.vex(shape === I64X2 ? X.MOVQ_X : X.MOVD_X));
  if (s.avx2) return oneVex(s, [X.VPBROADCASTB, X.VPBROADCASTW, X.VPBROADCASTD, X.VPBROADCASTQ][shape], low);
  switch (shape) {
    case I8X16:
      return two(s, X.PSHUFB, low, zeros(s));
    case I16X8:
      return one(s, X.PSHUFD, one(s, X.PSHUFLW, low, 0), 0);
    case I32X4:
      return one(s, X.PSHUFD, low, 0);
  }
  return one(s, X.PSHUFD, low, 0x44);
}

/** op x by an instruction that only has a VEX form. */
function oneVex(s: X64Lowering, row: number, x: number): number {
  s.sourceRegister(x, false);
  return oneSource(s, row);
}

export function selectFromScalar(s: X64Lowering, id: number): void {
  const x = s.a[id];
  const double = s.ty[x] === TY.F64;
  if (s.isFoldedLoad(x)) {
    source(s, x, false);
    s.vregs[id] = oneSource(s, s.vex(double ? X.MOVSD_L : X.MOVSS_L));
    return;
  }
  const vreg = s.reg(x);
  s.vregs[id] = double ? one(s, X.MOVQ_XX, vreg) : two(s, X.INSERTPS, vreg, vreg, 0x0e);
}

// Rules for lanes

export function selectReplace(s: X64Lowering, id: number): void {
  const shape = s.imm[id] & 0xff;
  const lane = s.imm[id] >>> 8;
  const vector = s.reg(s.a[id]);
  const x = s.b[id];
  if (shape === F64X2) {
    const vreg = s.reg(x);
    s.vregs[id] = lane === 0 ? two(s, X.PBLENDW, vector, vreg, 0x0f) : two(s, X.PUNPCKLQDQ, vector, vreg);
    return;
  }
  // Slots of narrow integers hold all of an i32, of which the low part is read.
  source(s, x, shape !== F32X4 || s.isFoldedLoad(x));
  const row = [X.PINSRB, X.PINSRW, X.PINSRD, X.PINSRQ, X.INSERTPS][shape];
  s.vregs[id] = twoSource(s, row, vector, shape === F32X4 ? lane << 4 : lane);
}

export function selectExtract(s: X64Lowering, id: number): void {
  const shape = s.imm[id] & 0xff;
  const lane = s.imm[id] >>> 8;
  const x = s.reg(s.a[id]);
  const ty = s.ty[id];
  if (shape >= F32X4) {
    // The upper lanes of a scalar's register are undefined.
    const control = shape === F32X4 ? lane : 0xee;
    s.vregs[id] = lane === 0 ? one(s, X.MOVAPS, x, 0, ty) : one(s, X.PSHUFD, x, control, ty);
    return;
  }
  if (lane === 0 && shape >= I32X4) {
    s.vregs[id] = one(s, shape === I32X4 ? X.MOVD_R : X.MOVQ_R, x, 0, ty);
    return;
  }
  const wide = one(s, [X.PEXTRB, X.PEXTRW, X.PEXTRD, X.PEXTRQ][shape], x, lane, ty);
  if (s.op[id] === OP.VEXTRACT_U) s.vregs[id] = wide;
  else {
    s.sourceRegister(wide, false);
    s.vregs[id] = oneSource(s, shape === I8X16 ? X.MOVSX32_8 : X.MOVSX32_16, 0, ty);
  }
}

/** Store `id` of a lane, if `value` is a lane folded into it; otherwise does nothing and returns false. */
export function selectLaneStore(s: X64Lowering, id: number, value: number): boolean {
  if (s.folded[value] === 0 || s.op[value] !== OP.VEXTRACT_U) return false;
  const shape = s.imm[value] & 0xff;
  const lane = s.imm[value] >>> 8;
  const low = lane === 0;
  const row = shape === I8X16
    ? X.PEXTRB
    : shape === I16X8
    ? X.PEXTRW_S
    : shape === I32X4
    ? (low ? X.MOVD_R : X.PEXTRD)
    : shape === F32X4
    ? (low ? X.MOVSS_S : X.PEXTRD)
    : low
    ? X.MOVSD_S
    : X.MOVHPS_S;
  const vreg = s.reg(s.a[value]);
  foldAddress(s, id, false);
  s.withSource(s.vex(row), lane, 0);
  s.sourceOperands();
  s.use(vreg);
  s.end();
  return true;
}

// Rules for tests

/**
 * The vector that test `id` compares with zero: the operand itself, or for VALL_TRUE the mask of its lanes that are 0.
 */
export function testedVector(s: X64Lowering, id: number): number {
  const x = s.reg(s.a[id]);
  if (s.op[id] === OP.VANY_TRUE) return x;
  return two(s, BINARY_ROW[OP.VEQ * 8 + (s.imm[id] & 0xff)], x, zeros(s));
}

/** 1 if the flags of `ptest x, x` satisfy `cc`. */
function tested(s: X64Lowering, id: number, x: number, cc: number): void {
  s.plain(s.vex(X.PTEST), 0, 0, (cc << AUX_CONDITION_SHIFT) | (CONSUMER.SET << AUX_CONSUMER_SHIFT));
  s.def(id);
  s.use(x);
  s.use(x);
  s.end();
}

export function selectAnyTrue(s: X64Lowering, id: number): void {
  tested(s, id, testedVector(s, id), CC.NE);
}

export function selectAllTrue(s: X64Lowering, id: number): void {
  tested(s, id, testedVector(s, id), CC.E);
}

export function selectBitmask(s: X64Lowering, id: number): void {
  const shape = s.imm[id] & 0xff;
  let x = s.reg(s.a[id]);
  if (shape === I16X8) x = two(s, X.PACKSSWB, x, zeros(s));
  const row = shape === I32X4 ? X.MOVMSKPS : shape === I64X2 ? X.MOVMSKPD : X.PMOVMSKB;
  s.vregs[id] = one(s, row, x, 0, TY.I32);
}
