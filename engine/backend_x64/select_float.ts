/**
 * Rules for floating-point operations. Rows `…SS`, `…SD` are neighbours; `s.vex` picks the three-operand VEX form when
 * the CPU has AVX, and the legacy form works in the register of its first operand. Bit patterns of NaNs are never
 * changed by moves, negation, absolute value or sign copying.
 */
import { commutes, OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { SHARED } from "./image_constants.ts";
import { X } from "./instructions.ts";
import { MODE, P } from "./machine_ops.ts";
import type { X64Lowering } from "./lowering_context.ts";
import { source, sourceFloat } from "./source_operands.ts";

/** 1 if value `id` is an f64. */
function double(s: X64Lowering, id: number): number {
  return s.ty[id] === TY.F64 ? 1 : 0;
}

/** def = x op source. */
function binary(s: X64Lowering, row: number, id: number, x: number, y: number): void {
  const first = s.reg(x);
  sourceFloat(s, y);
  s.withSource(s.vex(row + double(s, id)), 0, 0);
  if (s.avx) s.def(id);
  else s.defReuse(id, 1);
  s.use(first);
  s.sourceOperands();
  s.end();
}

function commutative(s: X64Lowering, row: number, id: number): void {
  const x = s.a[id];
  const y = s.b[id];
  const exchange = s.isFoldedLoad(x) ||
    (commutes(s.f.keepsNans, s.op[id]) && !s.isFoldedLoad(y) && s.op[x] === OP.CONST && s.op[y] !== OP.CONST);
  binary(s, row, id, exchange ? y : x, exchange ? x : y);
}

export function selectFadd(s: X64Lowering, id: number): void {
  commutative(s, X.ADDSS, id);
}

export function selectFmul(s: X64Lowering, id: number): void {
  commutative(s, X.MULSS, id);
}

export function selectFsub(s: X64Lowering, id: number): void {
  binary(s, X.SUBSS, id, s.a[id], s.b[id]);
}

export function selectFdiv(s: X64Lowering, id: number): void {
  binary(s, X.DIVSS, id, s.a[id], s.b[id]);
}

// Rules for minimum and maximum: the hardware's, corrected where operands are equal or unordered

function extremum(s: X64Lowering, op: number, id: number): void {
  const x = s.reg(s.a[id]);
  const y = s.reg(s.b[id]);
  s.plain(op, 0, 0, double(s, id));
  if (s.avx) s.def(id);
  else s.defReuse(id, 1);
  s.use(x);
  s.use(y);
  s.end();
}

export function selectFmin(s: X64Lowering, id: number): void {
  extremum(s, P.FMIN, id);
}

export function selectFmax(s: X64Lowering, id: number): void {
  extremum(s, P.FMAX, id);
}

// Rules for signs: masks from the image's constants

function masked(s: X64Lowering, row: number, mask: number, id: number): void {
  const x = s.reg(s.a[id]);
  s.sourceRegister(0, false);
  s.mode = MODE.SHARED;
  s.disp = mask;
  s.withSource(s.vex(row), 0, 0);
  if (s.avx) s.def(id);
  else s.defReuse(id, 1);
  s.use(x);
  s.end();
}

export function selectFabs(s: X64Lowering, id: number): void {
  masked(s, X.ANDPS, double(s, id) === 1 ? SHARED.ABS64 : SHARED.ABS32, id);
}

export function selectFneg(s: X64Lowering, id: number): void {
  masked(s, X.XORPS, double(s, id) === 1 ? SHARED.SIGN64 : SHARED.SIGN32, id);
}

export function selectFcopysign(s: X64Lowering, id: number): void {
  extremum(s, P.FCOPYSIGN, id);
}

// Rules for roots and roundings

/**
 * def = op source. The VEX form merges the upper part of a register operand: it takes the source itself, and for memory
 * the scratch register, so that the result depends on nothing older (emit_row.ts: vvvv of such rows has no VCode
 * operand).
 */
function unary(s: X64Lowering, row: number, id: number, operand: number, imm: number): void {
  if (s.op[operand] === OP.CONST) source(s, operand, true);
  else sourceFloat(s, operand);
  s.withSource(s.vex(row), imm, 0);
  s.def(id);
  s.sourceOperands();
  s.end();
}

export function selectFsqrt(s: X64Lowering, id: number): void {
  unary(s, X.SQRTSS + double(s, id), id, s.a[id], 0);
}

// Rounding immediates: bits 0-1 mode, bit 3 suppresses the inexact exception.
const ROUND_NEAREST = 8;
const ROUND_DOWN = 9;
const ROUND_UP = 10;
const ROUND_TO_ZERO = 11;

export function selectFceil(s: X64Lowering, id: number): void {
  unary(s, X.ROUNDSS + double(s, id), id, s.a[id], ROUND_UP);
}

export function selectFfloor(s: X64Lowering, id: number): void {
  unary(s, X.ROUNDSS + double(s, id), id, s.a[id], ROUND_DOWN);
}

export function selectFtrunc(s: X64Lowering, id: number): void {
  unary(s, X.ROUNDSS + double(s, id), id, s.a[id], ROUND_TO_ZERO);
}

export function selectFnearest(s: X64Lowering, id: number): void {
  unary(s, X.ROUNDSS + double(s, id), id, s.a[id], ROUND_NEAREST);
}

// Rules for conversions

export function selectFdemote(s: X64Lowering, id: number): void {
  unary(s, X.CVTSD2SS, id, s.a[id], 0);
}

export function selectFpromote(s: X64Lowering, id: number): void {
  unary(s, X.CVTSS2SD, id, s.a[id], 0);
}

export function selectConvertS(s: X64Lowering, id: number): void {
  const x = s.a[id];
  source(s, x, true);
  const row = double(s, id) === 1 ? X.CVTSI2SD32 : X.CVTSI2SS32;
  s.withSource(s.vex(row + s.wide(x)), 0, 0);
  s.def(id);
  s.sourceOperands();
  s.end();
}

export function selectConvertU(s: X64Lowering, id: number): void {
  const x = s.a[id];
  const vreg = s.reg(x);
  if (s.wide(x) === 1) {
    s.plain(P.CONVERT_U64, 0, 0, double(s, id));
    s.def(id);
    s.use(vreg);
    s.end();
    return;
  }
  // A zero-extended i32 is a positive i64.
  s.sourceRegister(vreg, false);
  s.withSource(s.vex(double(s, id) === 1 ? X.CVTSI2SD64 : X.CVTSI2SS64), 0, 0);
  s.def(id);
  s.sourceOperands();
  s.end();
}

function truncate(s: X64Lowering, id: number, narrow: number, wide: number, saturating: number): void {
  const x = s.reg(s.a[id]);
  s.plain(s.wide(id) === 1 ? wide : narrow, 0, 0, double(s, s.a[id]) | (saturating << 1));
  s.def(id);
  s.use(x);
  s.end();
}

export function selectTruncS(s: X64Lowering, id: number): void {
  truncate(s, id, P.TRUNC_S32, P.TRUNC_S64, 0);
}

export function selectTruncU(s: X64Lowering, id: number): void {
  truncate(s, id, P.TRUNC_U32, P.TRUNC_U64, 0);
}

export function selectTruncSatS(s: X64Lowering, id: number): void {
  truncate(s, id, P.TRUNC_S32, P.TRUNC_S64, 1);
}

export function selectTruncSatU(s: X64Lowering, id: number): void {
  truncate(s, id, P.TRUNC_U32, P.TRUNC_U64, 1);
}

export function selectBitcast(s: X64Lowering, id: number): void {
  const x = s.a[id];
  const to = s.ty[id];
  if (s.isFoldedLoad(x)) {
    source(s, x, false);
    const row = to === TY.I32 ? X.MOV32_L : s.wide(id) === 1 ? X.MOV64_L : s.vex(to === TY.F32 ? X.MOVSS_L : X.MOVSD_L);
    s.withSource(row, 0, 0);
    s.def(id);
    s.sourceOperands();
    s.end();
    return;
  }
  const vreg = s.reg(x);
  if (s.wide(x) === 1 && s.wide(id) === 1) {
    // A reference is its 64 bits.
    s.vregs[id] = vreg;
    return;
  }
  if (to === TY.F32 || to === TY.F64) {
    s.sourceRegister(vreg, true);
    s.withSource(s.vex(to === TY.F32 ? X.MOVD_X : X.MOVQ_X), 0, 0);
    s.def(id);
    s.sourceOperands();
    s.end();
    return;
  }
  s.plain(s.vex(to === TY.I32 ? X.MOVD_R : X.MOVQ_R), 0, 0, 0);
  s.def(id);
  s.use(vreg);
  s.end();
}
