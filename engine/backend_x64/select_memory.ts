/**
 * Selection rules for loads and stores.
 */
import { OP } from "../ir/ops.ts";
import { TY, TY_BANK } from "../ir/types.ts";
import { foldAddress } from "./addressing.ts";
import { X } from "./instructions.ts";
import { MODE } from "./machine_ops.ts";
import { selectStoredCompare } from "./select_compare.ts";
import { selectLaneStore } from "./select_lanes.ts";
import { FOLD, type X64Lowering } from "./lowering_context.ts";

/** Row that loads as IR operation `op` with result type `ty` does. */
export function loadRow(s: X64Lowering, op: number, ty: number): number {
  switch (op) {
    case OP.LOAD:
      if (ty === TY.I32) return X.MOV32_L;
      if (ty === TY.F32) return s.vex(X.MOVSS_L);
      if (ty === TY.F64) return s.vex(X.MOVSD_L);
      if (ty === TY.V128) return s.vex(X.MOVUPS_L);
      return X.MOV64_L;
    case OP.LOAD8_S:
      return ty === TY.I64 ? X.MOVSX64_8 : X.MOVSX32_8;
    case OP.LOAD8_U:
      return X.MOVZX32_8;
    case OP.LOAD16_S:
      return ty === TY.I64 ? X.MOVSX64_16 : X.MOVSX32_16;
    case OP.LOAD16_U:
      return X.MOVZX32_16;
    case OP.LOAD32_S:
      return X.MOVSXD;
  }
  return X.MOV32_L;
}

export function selectLoad(s: X64Lowering, id: number): void {
  foldAddress(s, id, false);
  s.withSource(loadRow(s, s.op[id], s.ty[id]), 0, 0);
  s.def(id);
  s.sourceOperands();
  s.end();
}

/** log2 of the bytes that store `id` writes. */
function storeSize(s: X64Lowering, id: number): number {
  switch (s.op[id]) {
    case OP.STORE8:
      return 0;
    case OP.STORE16:
      return 1;
    case OP.STORE32:
      return 2;
  }
  return s.ty[s.b[id]] === TY.I32 ? 2 : 3;
}

const STORE_ROWS = [X.MOV8_S, X.MOV16_S, X.MOV32_S, X.MOV64_S];
const STORE_IMMEDIATE_ROWS = [X.MOV8_SI, X.MOV16_SI, X.MOV32_SI, X.MOV64_SI];
/** Rows of `op [m], value` by log2 of the width, for a register and for an immediate: of ADD, SUB, AND, OR, XOR. */
const MODIFY_ROWS = [
  ...[X.ADD8_M, X.ADD16_M, X.ADD32_M, X.ADD64_M, X.ADD8_I, X.ADD16_I, X.ADD32_I, X.ADD64_I],
  ...[X.SUB8_M, X.SUB16_M, X.SUB32_M, X.SUB64_M, X.SUB8_I, X.SUB16_I, X.SUB32_I, X.SUB64_I],
  ...[X.AND8_M, X.AND16_M, X.AND32_M, X.AND64_M, X.AND8_I, X.AND16_I, X.AND32_I, X.AND64_I],
  ...[X.OR8_M, X.OR16_M, X.OR32_M, X.OR64_M, X.OR8_I, X.OR16_I, X.OR32_I, X.OR64_I],
  ...[X.XOR8_M, X.XOR16_M, X.XOR32_M, X.XOR64_M, X.XOR8_I, X.XOR16_I, X.XOR32_I, X.XOR64_I],
];

/** The row of `op [m], value`: `width` is its log2, `immediate` whether the value is one. */
export function modifyRow(op: number, width: number, immediate: boolean): number {
  const kind = op === OP.ADD ? 0 : op === OP.SUB ? 1 : op === OP.AND ? 2 : op === OP.OR ? 3 : 4;
  return MODIFY_ROWS[kind * 8 + (immediate ? 4 : 0) + width];
}

export function selectStore(s: X64Lowering, id: number): void {
  const value = s.b[id];
  const ty = s.ty[value];
  if (s.folded[value] === FOLD.MEMORY) {
    selectModify(s, id, value);
    return;
  }
  if (s.folded[value] === FOLD.CONDITION) return selectStoredCompare(s, id, value);
  if (selectLaneStore(s, id, value)) return;
  if (ty === TY.F32 || ty === TY.F64 || ty === TY.V128) {
    if (s.op[value] === OP.CONST && ty !== TY.V128 && s.constantBlock[value] >= 0 && storeFloatConstant(s, id, value)) {
      return;
    }
    const vreg = s.reg(value);
    foldAddress(s, id, false);
    const row = ty === TY.F32 ? X.MOVSS_S : ty === TY.F64 ? X.MOVSD_S : X.MOVUPS_S;
    s.withSource(s.vex(row), 0, 0);
    s.sourceOperands();
    s.use(vreg);
    s.end();
    return;
  }
  const size = storeSize(s, id);
  // Narrow stores write the low bits of any constant; only the 64-bit one is bound to a sign-extended immediate.
  if (s.op[value] === OP.CONST && (size < 3 || s.isImmediate(value))) {
    foldAddress(s, id, false);
    s.withSource(STORE_IMMEDIATE_ROWS[size], s.imm[value], 0);
    s.sourceOperands();
    s.end();
    return;
  }
  const vreg = s.reg(value);
  foldAddress(s, id, false);
  s.withSource(STORE_ROWS[size], 0, 0);
  s.sourceOperands();
  s.use(vreg);
  s.end();
}

/** Stores a float constant through its bits if they fit an immediate. */
function storeFloatConstant(s: X64Lowering, id: number, value: number): boolean {
  const wide = s.ty[value] === TY.F64;
  if (wide && s.c[value] !== s.imm[value] >> 31) return false;
  foldAddress(s, id, false);
  s.withSource(wide ? X.MOV64_SI : X.MOV32_SI, s.imm[value], 0);
  s.sourceOperands();
  s.end();
  return true;
}

/** `*p = *p op y`. */
function selectModify(s: X64Lowering, id: number, value: number): void {
  const { op, a, b } = s;
  const other = s.folded[a[value]] === FOLD.MEMORY ? b[value] : a[value];
  const size = storeSize(s, id);
  const immediate = s.op[other] === OP.CONST && (size < 3 || s.isImmediate(other));
  const vreg = immediate ? 0 : s.reg(other);
  foldAddress(s, id, false);
  // Only the load may fault first; its trap covers both accesses.
  s.withSource(modifyRow(op[value], size, immediate), immediate ? s.imm[other] : 0, 0);
  s.sourceOperands();
  if (!immediate) s.use(vreg);
  s.end();
}

/** Loads the 64-bit field of the context at `offset` into a new vreg. */
export function loadContext(s: X64Lowering, offset: number): number {
  const vreg = s.v.newVreg(TY.I64);
  s.plain(X.MOV64_L, 0, offset, MODE.CONTEXT);
  s.defOf(vreg);
  s.end();
  return vreg;
}

/** A load of type `ty` from [base + disp] into vreg `to`. */
export function loadFrom(s: X64Lowering, to: number, base: number, disp: number, ty: number): void {
  s.plain(loadRow(s, OP.LOAD, ty), 0, disp, MODE.POINTER);
  s.defOf(to);
  s.use(base);
  s.end();
}

/** A store of vreg `value` of type `ty` to [base + disp]. */
export function storeTo(s: X64Lowering, value: number, base: number, disp: number, ty: number): void {
  const row = ty === TY.I32
    ? X.MOV32_S
    : TY_BANK[ty] === 1
    ? X.MOV64_S
    : s.vex(ty === TY.F32 ? X.MOVSS_S : ty === TY.F64 ? X.MOVSD_S : X.MOVUPS_S);
  s.plain(row, 0, disp, MODE.POINTER);
  s.use(base);
  s.use(value);
  s.end();
}
