/**
 * Rules for floating-point operations. The hardware's minimum, maximum, roundings and saturating conversions are
 * WebAssembly's. Bit patterns of NaNs are never changed by moves, negation, absolute value or sign copying.
 */
import { TY } from "../ir/types.ts";
import { X } from "./instructions.ts";
import { P } from "./machine_ops.ts";
import type { Arm64Lowering } from "./lowering_context.ts";

/** 1 if value `id` is an f64. */
function double(s: Arm64Lowering, id: number): number {
  return s.ty[id] === TY.F64 ? 1 : 0;
}

function binary(s: Arm64Lowering, row: number, id: number): void {
  const x = s.reg(s.a[id]);
  s.binary(row + double(s, id), id, x, s.reg(s.b[id]));
}

export function selectFadd(s: Arm64Lowering, id: number): void {
  binary(s, X.FADD_S, id);
}

export function selectFsub(s: Arm64Lowering, id: number): void {
  binary(s, X.FSUB_S, id);
}

export function selectFmul(s: Arm64Lowering, id: number): void {
  binary(s, X.FMUL_S, id);
}

export function selectFdiv(s: Arm64Lowering, id: number): void {
  binary(s, X.FDIV_S, id);
}

export function selectFmin(s: Arm64Lowering, id: number): void {
  binary(s, X.FMIN_S, id);
}

export function selectFmax(s: Arm64Lowering, id: number): void {
  binary(s, X.FMAX_S, id);
}

export function selectFcopysign(s: Arm64Lowering, id: number): void {
  const x = s.reg(s.a[id]);
  const y = s.reg(s.b[id]);
  s.plain(P.FCOPYSIGN, 0, 0, double(s, id));
  s.defReuse(id, 1);
  s.use(x);
  s.lateUse(y);
  s.end();
}

function unary(s: Arm64Lowering, row: number, id: number): void {
  s.unary(row + double(s, id), id, s.reg(s.a[id]));
}

export function selectFabs(s: Arm64Lowering, id: number): void {
  unary(s, X.FABS_S, id);
}

export function selectFneg(s: Arm64Lowering, id: number): void {
  unary(s, X.FNEG_S, id);
}

export function selectFsqrt(s: Arm64Lowering, id: number): void {
  unary(s, X.FSQRT_S, id);
}

export function selectFceil(s: Arm64Lowering, id: number): void {
  unary(s, X.FRINTP_S, id);
}

export function selectFfloor(s: Arm64Lowering, id: number): void {
  unary(s, X.FRINTM_S, id);
}

export function selectFtrunc(s: Arm64Lowering, id: number): void {
  unary(s, X.FRINTZ_S, id);
}

export function selectFnearest(s: Arm64Lowering, id: number): void {
  unary(s, X.FRINTN_S, id);
}

export function selectFdemote(s: Arm64Lowering, id: number): void {
  s.unary(X.FCVT_SD, id, s.reg(s.a[id]));
}

export function selectFpromote(s: Arm64Lowering, id: number): void {
  s.unary(X.FCVT_DS, id, s.reg(s.a[id]));
}

// Rows of conversions by the widths of integer and float.
const CONVERT_S = [X.SCVTF32_S, X.SCVTF32_D, X.SCVTF64_S, X.SCVTF64_D];
const CONVERT_U = [X.UCVTF32_S, X.UCVTF32_D, X.UCVTF64_S, X.UCVTF64_D];
const TRUNC_SAT_S = [X.FCVTZS32_S, X.FCVTZS32_D, X.FCVTZS64_S, X.FCVTZS64_D];
const TRUNC_SAT_U = [X.FCVTZU32_S, X.FCVTZU32_D, X.FCVTZU64_S, X.FCVTZU64_D];

export function selectConvertS(s: Arm64Lowering, id: number): void {
  s.unary(CONVERT_S[s.wide(s.a[id]) * 2 + double(s, id)], id, s.reg(s.a[id]));
}

export function selectConvertU(s: Arm64Lowering, id: number): void {
  s.unary(CONVERT_U[s.wide(s.a[id]) * 2 + double(s, id)], id, s.reg(s.a[id]));
}

export function selectTruncSatS(s: Arm64Lowering, id: number): void {
  s.unary(TRUNC_SAT_S[s.wide(id) * 2 + double(s, s.a[id])], id, s.reg(s.a[id]));
}

export function selectTruncSatU(s: Arm64Lowering, id: number): void {
  s.unary(TRUNC_SAT_U[s.wide(id) * 2 + double(s, s.a[id])], id, s.reg(s.a[id]));
}

function truncate(s: Arm64Lowering, id: number, narrow: number, wide: number): void {
  const x = s.reg(s.a[id]);
  s.plain(s.wide(id) === 1 ? wide : narrow, 0, 0, double(s, s.a[id]));
  s.def(id);
  s.use(x);
  s.end();
}

export function selectTruncS(s: Arm64Lowering, id: number): void {
  truncate(s, id, P.TRUNC_S32, P.TRUNC_S64);
}

export function selectTruncU(s: Arm64Lowering, id: number): void {
  truncate(s, id, P.TRUNC_U32, P.TRUNC_U64);
}

export function selectBitcast(s: Arm64Lowering, id: number): void {
  const to = s.ty[id];
  if (s.wide(id) === 1 && s.wide(s.a[id]) === 1) {
    // A reference is its 64 bits.
    s.vregs[id] = s.reg(s.a[id]);
    return;
  }
  const row = to === TY.F32 ? X.FMOV_SW : to === TY.F64 ? X.FMOV_DX : to === TY.I32 ? X.FMOV_WS : X.FMOV_XD;
  s.unary(row, id, s.reg(s.a[id]));
}
