/**
 * Rules for integer operations, most specific form first. Rows `…32` and `…64` are neighbours, so `row + s.wide(id)` is
 * the row of the value's width. Additions use the three-operand LEA throughout: the emitter turns it into ADD where the
 * result's register is one of the operands'.
 */
import { selectDivisionByConstant } from "../codegen/divide_constant.ts";
import { hasZeroUpperHalf } from "../codegen/zero_extension.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { isLowHalf, keepsWidth } from "./fold_loads.ts";
import { X } from "./instructions.ts";
import { AUX_SCALE_SHIFT, MODE, P } from "./machine_ops.ts";
import { RAX, RCX, RDX } from "./registers.ts";
import type { X64Lowering } from "./lowering_context.ts";
import { scaleOfFactor, source } from "./source_operands.ts";

/** def = first op source, in the register of first. */
function tied(s: X64Lowering, row: number, id: number, first: number, second: number): void {
  const x = s.reg(first);
  source(s, second, true);
  s.withSource(row, 0, 0);
  s.defReuse(id, 1);
  s.use(x);
  s.sourceOperands();
  s.end();
}

/** def = first op imm, in the register of first. */
function tiedImmediate(s: X64Lowering, row: number, id: number, first: number, imm: number): void {
  const x = s.reg(first);
  s.plain(row, imm, 0, 0);
  s.defReuse(id, 1);
  s.use(x);
  s.end();
}

/** def = op source. */
function unary(s: X64Lowering, row: number, id: number, operand: number): void {
  source(s, operand, true);
  s.withSource(row, 0, 0);
  s.def(id);
  s.sourceOperands();
  s.end();
}

/** def = base + (index << scale) + disp, with either register absent (0). */
function sum(s: X64Lowering, id: number, base: number, index: number, scale: number, disp: number): void {
  const mode = index === 0 ? MODE.POINTER : base === 0 ? MODE.INDEX : MODE.POINTER_INDEX;
  s.plain(X.LEA32 + s.wide(id), 0, disp, mode | (scale << AUX_SCALE_SHIFT));
  s.def(id);
  if (base !== 0) s.use(base);
  if (index !== 0) s.use(index);
  s.end();
}

// Rules for ADD

export function selectAdd(s: X64Lowering, id: number): void {
  const { op, a, b, imm, folded } = s;
  let x = a[id];
  let y = b[id];
  if (s.isFoldedLoad(y)) return tied(s, X.ADD32_R + s.wide(id), id, x, y);
  if (s.isFoldedLoad(x)) return tied(s, X.ADD32_R + s.wide(id), id, y, x);
  let disp = 0;
  if (s.isImmediate(y)) {
    disp = imm[y];
    if (folded[x] !== 0 && op[x] !== OP.WRAP) s.options.counts.affineLea++;
    if (folded[x] !== 0 && op[x] === OP.ADD) {
      y = b[x];
      x = a[x];
    } else if (folded[x] !== 0 && op[x] === OP.SHL) {
      return sum(s, id, 0, s.reg(a[x]), imm[b[x]], disp);
    } else if (folded[x] !== 0 && op[x] === OP.MUL) {
      const factor = s.reg(a[x]);
      return sum(s, id, factor, factor, scaleOfFactor(s, b[x]), disp);
    } else {
      return sum(s, id, s.reg(x), 0, 0, disp);
    }
  }
  if (folded[x] !== 0 && op[x] === OP.SHL) {
    const other = y;
    y = x;
    x = other;
  }
  if (folded[y] !== 0 && op[y] === OP.SHL) return sum(s, id, s.reg(x), s.reg(a[y]), imm[b[y]], disp);
  const base = s.reg(x);
  sum(s, id, base, s.reg(y), 0, disp);
}

// Rules for SUB

export function selectSub(s: X64Lowering, id: number): void {
  const x = s.a[id];
  const y = s.b[id];
  if (s.isImmediate(y) && s.imm[y] !== -0x80000000) return sum(s, id, s.reg(x), 0, 0, -s.imm[y]);
  if (s.isZero(x) && !s.isFoldedLoad(y)) return tiedUnary(s, X.NEG32 + s.wide(id), id, y);
  tied(s, X.SUB32_R + s.wide(id), id, x, y);
}

function tiedUnary(s: X64Lowering, row: number, id: number, operand: number): void {
  const x = s.reg(operand);
  s.plain(row, 0, 0, 0);
  s.defReuse(id, 1);
  s.use(x);
  s.end();
}

// Rules for MUL

export function selectMul(s: X64Lowering, id: number): void {
  let x = s.a[id];
  let y = s.b[id];
  if (s.isImmediate(x) && !s.isImmediate(y)) [x, y] = [y, x];
  if (s.isImmediate(y)) {
    const scale = scaleOfFactor(s, y);
    if (scale !== 0 && !s.isFoldedLoad(x)) {
      const vreg = s.reg(x);
      return sum(s, id, vreg, vreg, scale, 0);
    }
    source(s, x, true);
    s.withSource(X.IMUL32_I + s.wide(id), s.imm[y], 0);
    s.def(id);
    s.sourceOperands();
    s.end();
    return;
  }
  commutative(s, X.IMUL32_R, id, x, y);
}

/** Puts the folded load, or the value that lives on, on the right. */
function commutative(s: X64Lowering, row: number, id: number, x: number, y: number): void {
  const dies = s.commute && !s.isFoldedLoad(x) && !s.isFoldedLoad(y) && s.uses[x] > 1 && s.uses[y] === 1;
  if (dies) s.options.counts.commutedUpdates++;
  const exchange = s.isFoldedLoad(x) || dies;
  tied(s, row + s.wide(id), id, exchange ? y : x, exchange ? x : y);
}

// Rules for MULHI_S, MULHI_U

/** MUL or IMUL: rdx:rax = rax × factor. */
export function selectHighProduct(s: X64Lowering, id: number): void {
  const x = s.reg(s.a[id]);
  const y = s.reg(s.b[id]);
  const i = s.plain(s.op[id] === OP.MULHI_S ? P.MULHI_S : P.MULHI_U, 0, 0, 0);
  s.v.clobbers[i] = s.v.addClobbers(1 << RAX, 0);
  s.defFixed(id, RDX);
  s.useFixed(x, RAX);
  s.use(y);
  s.end();
}

// Rules for AND, OR, XOR

export function selectAnd(s: X64Lowering, id: number): void {
  const { op, a, b, imm } = s;
  let x = a[id];
  let y = b[id];
  if (op[x] === OP.CONST && op[y] !== OP.CONST) [x, y] = [y, x];
  if (op[y] === OP.CONST) {
    const high = s.wide(id) === 0 ? 0 : s.c[y];
    // A mask of the low 8, 16 or 32 bits is a move, to any register.
    if (high === 0 && imm[y] === 0xff) return unary(s, X.MOVZX32_8, id, x);
    if (high === 0 && imm[y] === 0xffff) return unary(s, X.MOVZX32_16, id, x);
    if (isLowHalf(s, y) && !(s.isFoldedLoad(x) && keepsWidth(s, x))) return unary(s, X.MOV32_L, id, x);
    // A mask without high bits needs no 64-bit operation.
    if (s.wide(id) === 1 && high === 0 && !s.isFoldedLoad(x)) return tiedImmediate(s, X.AND32_I, id, x, imm[y]);
    if (s.isImmediate(y)) return tiedImmediate(s, X.AND32_I + s.wide(id), id, x, imm[y]);
  }
  commutative(s, X.AND32_R, id, x, y);
}

export function selectOr(s: X64Lowering, id: number): void {
  bitwise(s, X.OR32_R, X.OR32_I, id);
}

export function selectXor(s: X64Lowering, id: number): void {
  const y = s.b[id];
  if (s.isImmediate(y) && s.imm[y] === -1) return tiedUnary(s, X.NOT32 + s.wide(id), id, s.a[id]);
  bitwise(s, X.XOR32_R, X.XOR32_I, id);
}

function bitwise(s: X64Lowering, row: number, immediateRow: number, id: number): void {
  let x = s.a[id];
  let y = s.b[id];
  if (s.isImmediate(x) && !s.isImmediate(y)) [x, y] = [y, x];
  if (s.isImmediate(y)) return tiedImmediate(s, immediateRow + s.wide(id), id, x, s.imm[y]);
  commutative(s, row, id, x, y);
}

// Rules for shifts and rotates

function shift(s: X64Lowering, id: number, immediateRow: number, countRow: number, bmi2Row: number): void {
  const x = s.a[id];
  const count = s.b[id];
  const wide = s.wide(id);
  if (s.op[count] === OP.CONST) {
    const n = s.imm[count] & (wide === 1 ? 63 : 31);
    if (immediateRow === X.SHL32_I && n === 1) {
      const vreg = s.reg(x);
      return sum(s, id, vreg, vreg, 0, 0);
    }
    return tiedImmediate(s, immediateRow + wide, id, x, n);
  }
  if (s.bmi2 && bmi2Row !== 0) {
    const c = s.reg(count);
    source(s, x, true);
    s.withSource(bmi2Row + wide, 0, 0);
    s.def(id);
    s.sourceOperands();
    s.use(c);
    s.end();
    return;
  }
  const value = s.reg(x);
  const c = s.reg(count);
  s.plain(countRow + wide, 0, 0, 0);
  s.defReuse(id, 1);
  s.use(value);
  s.useFixed(c, RCX);
  s.end();
}

export function selectShl(s: X64Lowering, id: number): void {
  shift(s, id, X.SHL32_I, X.SHL32_CL, X.SHLX32);
}

export function selectShrS(s: X64Lowering, id: number): void {
  shift(s, id, X.SAR32_I, X.SAR32_CL, X.SARX32);
}

export function selectShrU(s: X64Lowering, id: number): void {
  shift(s, id, X.SHR32_I, X.SHR32_CL, X.SHRX32);
}

export function selectRotl(s: X64Lowering, id: number): void {
  rotate(s, id, X.ROL32_I, X.ROL32_CL, true);
}

export function selectRotr(s: X64Lowering, id: number): void {
  rotate(s, id, X.ROR32_I, X.ROR32_CL, false);
}

function rotate(s: X64Lowering, id: number, immediateRow: number, countRow: number, left: boolean): void {
  const count = s.b[id];
  if (s.op[count] === OP.CONST && s.rorx) {
    s.options.counts.immediateRotations++;
    const width = s.wide(id) === 1 ? 64 : 32;
    const n = s.imm[count] & (width - 1);
    source(s, s.a[id], true);
    s.withSource(X.RORX32 + s.wide(id), left ? (width - n) & (width - 1) : n, 0);
    s.def(id);
    s.sourceOperands();
    s.end();
    return;
  }
  shift(s, id, immediateRow, countRow, 0);
}

// Rules for counting bits

export function selectClz(s: X64Lowering, id: number): void {
  if (s.lzcnt) return unary(s, X.LZCNT32 + s.wide(id), id, s.a[id]);
  scan(s, P.CLZ_BSR, id);
}

export function selectCtz(s: X64Lowering, id: number): void {
  if (s.bmi1) return unary(s, X.TZCNT32 + s.wide(id), id, s.a[id]);
  scan(s, P.CTZ_BSF, id);
}

function scan(s: X64Lowering, op: number, id: number): void {
  const x = s.reg(s.a[id]);
  s.plain(op, 0, 0, s.wide(id));
  s.def(id);
  s.use(x);
  s.end();
}

export function selectPopcnt(s: X64Lowering, id: number): void {
  if (s.popcnt) return unary(s, X.POPCNT32 + s.wide(id), id, s.a[id]);
  const x = s.reg(s.a[id]);
  s.plain(P.POPCNT_SWAR, 0, 0, s.wide(id));
  s.def(id);
  s.lateUse(x);
  s.temp(TY.I64);
  s.end();
}

// Rules for division: the dividend in rax, the remainder in rdx

export function selectDivS(s: X64Lowering, id: number): void {
  divide(s, P.DIV_S, id);
}

export function selectDivU(s: X64Lowering, id: number): void {
  divide(s, P.DIV_U, id);
}

function divide(s: X64Lowering, op: number, id: number): void {
  if (selectDivisionByConstant(s, id)) return;
  const x = s.reg(s.a[id]);
  const y = s.reg(s.b[id]);
  s.plain(op, s.imm[id], 0, s.wide(id));
  s.defFixed(id, RAX);
  s.useFixed(x, RAX);
  s.use(y);
  s.tempFixed(TY.I64, RDX);
  s.end();
}

export function selectRemS(s: X64Lowering, id: number): void {
  remainder(s, P.REM_S, id);
}

export function selectRemU(s: X64Lowering, id: number): void {
  remainder(s, P.REM_U, id);
}

function remainder(s: X64Lowering, op: number, id: number): void {
  if (selectDivisionByConstant(s, id)) return;
  const x = s.reg(s.a[id]);
  const y = s.reg(s.b[id]);
  const i = s.plain(op, s.imm[id], 0, s.wide(id));
  s.v.clobbers[i] = s.v.addClobbers(1 << RAX, 0);
  s.defFixed(id, RDX);
  s.useFixed(x, RAX);
  s.lateUse(y);
  s.end();
}

// Rules for conversions between integers

export function selectExtend8(s: X64Lowering, id: number): void {
  unary(s, X.MOVSX32_8 + s.wide(id), id, s.a[id]);
}

export function selectExtend16(s: X64Lowering, id: number): void {
  unary(s, X.MOVSX32_16 + s.wide(id), id, s.a[id]);
}

export function selectExtend32(s: X64Lowering, id: number): void {
  unary(s, X.MOVSXD, id, s.a[id]);
}

/** def = x; its upper half is known to be zero. */
function same(s: X64Lowering, id: number): void {
  const x = s.reg(s.a[id]);
  s.plain(P.ZERO_EXTEND, 0, 0, 0);
  s.defReuse(id, 1);
  s.use(x);
  s.end();
}

export function selectExtendU(s: X64Lowering, id: number): void {
  same(s, id);
}

export function selectWrap(s: X64Lowering, id: number): void {
  if (hasZeroUpperHalf(s, s.a[id])) same(s, id);
  else unary(s, X.MOV32_L, id, s.a[id]);
}
