/**
 * Rules for integer operations, most specific form first. Rows `…32` and `…64` are neighbours, so `row + s.wide(id)` is
 * the row of the value's width.
 */
import { selectDivisionByConstant } from "../codegen/divide_constant.ts";
import { hasZeroUpperHalf } from "../codegen/zero_extension.ts";
import { OP } from "../ir/ops.ts";
import { isConstantShift, isLowMask } from "./folding.ts";
import { arithmeticImmediate, logicalImmediate } from "./immediates.ts";
import { X } from "./instructions.ts";
import { P } from "./machine_ops.ts";
import type { Arm64Lowering } from "./lowering_context.ts";

/** Options of an extended operand. */
const UXTW = 2;
const SXTW = 6;

/** Kind of shift of a shifted operand, by operation. */
function shiftKind(op: number): number {
  return op === OP.SHL ? 0 : op === OP.SHR_U ? 1 : 2;
}

function shiftCount(s: Arm64Lowering, id: number): number {
  return s.imm[s.b[id]] & (s.wide(id) === 1 ? 63 : 31);
}

/** Whether value `id` is folded as a shifted operand. */
export function isShifted(s: Arm64Lowering, id: number): boolean {
  return s.folded[id] !== 0 && isConstantShift(s, id);
}

/** def = x row y, where y may be a folded shift. */
function shiftedBinary(s: Arm64Lowering, row: number, id: number, x: number, y: number): void {
  if (!isShifted(s, y)) return s.binary(row, id, x, s.reg(y));
  const kind = shiftKind(s.op[y]);
  s.binary(row, id, x, s.reg(s.a[y]), shiftCount(s, y), kind);
}

/** def = x ± constant, if the constant is an immediate. */
function addImmediate(s: Arm64Lowering, id: number, x: number, value: number): boolean {
  const size = Math.abs(value);
  const row = (value < 0 ? X.SUB_I32 : X.ADD_I32) + s.wide(id);
  const field = arithmeticImmediate(size);
  if (field >= 0) {
    s.unary(row, id, s.reg(x), field & 0xfff, field >> 12);
    return true;
  }
  // Outside of loops, where constants are not kept, two immediates are shorter. The least integer has no size.
  if (size < 0 || size >= 0x1000000 || s.f.blockDepth[s.block] > 0) return false;
  const first = s.reg(x);
  const sum = s.v.newVreg(s.ty[id]);
  s.plain(row, size >>> 12, 1, 0);
  s.defOf(sum);
  s.use(first);
  s.end();
  s.unary(row, id, sum, size & 0xfff);
  return true;
}

// Rules for ADD and SUB

function multiplyAdd(s: Arm64Lowering, row: number, id: number, product: number, addend: number): void {
  const x = s.reg(s.a[product]);
  const y = s.reg(s.b[product]);
  const z = s.reg(addend);
  s.plain(row + s.wide(id), 0, 0, 0);
  s.def(id);
  s.use(x);
  s.use(y);
  s.use(z);
  s.end();
}

function isFolded(s: Arm64Lowering, id: number, op: number): boolean {
  return s.folded[id] !== 0 && s.op[id] === op;
}

/** Whether value `id` is folded as an extended operand. */
function isExtended(s: Arm64Lowering, id: number): boolean {
  return isFolded(s, id, OP.EXTEND_S) || isFolded(s, id, OP.EXTEND_U);
}

/**
 * def = x row the extension y. An operand that is zero-extended already, such as any i32 that is not a folded WRAP,
 * needs no extending row.
 */
function extendedBinary(s: Arm64Lowering, extending: number, row: number, id: number, x: number, y: number): void {
  const source = s.a[y];
  const signed = s.op[y] === OP.EXTEND_S;
  const first = s.reg(x);
  if (signed || s.folded[source] !== 0) s.binary(extending, id, first, s.reg(source), 0, signed ? SXTW : UXTW);
  else s.binary(row, id, first, s.reg(source));
}

export function selectAdd(s: Arm64Lowering, id: number): void {
  let x = s.a[id];
  let y = s.b[id];
  if (s.isImmediate(x) && !s.isImmediate(y)) [x, y] = [y, x];
  if (s.isImmediate(y) && addImmediate(s, id, x, s.imm[y])) return;
  if (isFolded(s, y, OP.MUL)) return multiplyAdd(s, X.MADD32, id, y, x);
  if (isFolded(s, x, OP.MUL)) return multiplyAdd(s, X.MADD32, id, x, y);
  if (isShifted(s, x) || isExtended(s, x)) [x, y] = [y, x];
  if (isExtended(s, y)) return extendedBinary(s, X.ADD_E64, X.ADD64, id, x, y);
  shiftedBinary(s, X.ADD32 + s.wide(id), id, s.reg(x), y);
}

export function selectSub(s: Arm64Lowering, id: number): void {
  const x = s.a[id];
  const y = s.b[id];
  if (s.isImmediate(y) && addImmediate(s, id, x, -s.imm[y])) return;
  if (isFolded(s, y, OP.MUL)) return multiplyAdd(s, X.MSUB32, id, y, x);
  if (isExtended(s, y)) return extendedBinary(s, X.SUB_E64, X.SUB64, id, x, y);
  shiftedBinary(s, X.SUB32 + s.wide(id), id, s.reg(x), y);
}

// Rules for MUL

export function selectMul(s: Arm64Lowering, id: number): void {
  const x = s.reg(s.a[id]);
  const y = s.reg(s.b[id]);
  s.plain(P.MUL, 0, 0, s.wide(id));
  s.def(id);
  s.use(x);
  s.use(y);
  s.end();
}

// Rules for MULHI_S, MULHI_U

export function selectHighProduct(s: Arm64Lowering, id: number): void {
  const x = s.reg(s.a[id]);
  const y = s.reg(s.b[id]);
  s.plain(s.op[id] === OP.MULHI_S ? X.SMULH : X.UMULH, 0, 0, 0);
  s.def(id);
  s.use(x);
  s.use(y);
  s.end();
}

// Rules for AND, OR, XOR

/** The field of constant `id` as a logical immediate, or −1. */
export function logicalField(s: Arm64Lowering, id: number): number {
  const low = s.imm[id];
  return logicalImmediate(low, s.wide(id) === 1 ? s.c[id] : low);
}

function bitwise(s: Arm64Lowering, row: number, immediateRow: number, id: number): void {
  let x = s.a[id];
  let y = s.b[id];
  if (s.op[x] === OP.CONST && s.op[y] !== OP.CONST) [x, y] = [y, x];
  if (s.op[y] === OP.CONST) {
    const field = logicalField(s, y);
    if (field >= 0) return s.unary(immediateRow + s.wide(id), id, s.reg(x), field);
  } else if (isShifted(s, x)) [x, y] = [y, x];
  shiftedBinary(s, row + s.wide(id), id, s.reg(x), y);
}

export function selectAnd(s: Arm64Lowering, id: number): void {
  const x = s.a[id];
  const y = s.b[id];
  if (isShifted(s, x) && s.op[y] === OP.CONST && isLowMask(s, y)) {
    // (x >> n) & (2^w − 1)
    const bits = s.wide(id) === 1 ? 64 : 32;
    const high = s.wide(id) === 1 ? s.c[y] : 0;
    const width = high === 0 ? 32 - Math.clz32(s.imm[y]) : 64 - Math.clz32(high);
    const n = shiftCount(s, x);
    s.unary(X.UBFM32 + s.wide(id), id, s.reg(s.a[x]), n, Math.min(n + width, bits) - 1);
    return;
  }
  bitwise(s, X.AND32, X.AND_I32, id);
}

export function selectOr(s: Arm64Lowering, id: number): void {
  bitwise(s, X.ORR32, X.ORR_I32, id);
}

export function selectXor(s: Arm64Lowering, id: number): void {
  const y = s.b[id];
  if (s.isImmediate(y) && s.imm[y] === -1) {
    const x = s.reg(s.a[id]);
    s.plain(P.NOT, 0, 0, s.wide(id));
    s.def(id);
    s.use(x);
    s.end();
    return;
  }
  bitwise(s, X.EOR32, X.EOR_I32, id);
}

// Rules for shifts and rotates

function shift(s: Arm64Lowering, id: number, row: number): boolean {
  const count = s.b[id];
  const wide = s.wide(id);
  if (s.op[count] === OP.CONST) return false;
  const x = s.reg(s.a[id]);
  s.binary(row + wide, id, x, s.reg(count));
  return true;
}

export function selectShl(s: Arm64Lowering, id: number): void {
  if (shift(s, id, X.LSLV32)) return;
  const n = shiftCount(s, id);
  const last = s.wide(id) === 1 ? 63 : 31;
  s.unary(X.UBFM32 + s.wide(id), id, s.reg(s.a[id]), -n & last, last - n);
}

export function selectShrS(s: Arm64Lowering, id: number): void {
  if (shift(s, id, X.ASRV32)) return;
  s.unary(X.SBFM32 + s.wide(id), id, s.reg(s.a[id]), shiftCount(s, id), s.wide(id) === 1 ? 63 : 31);
}

export function selectShrU(s: Arm64Lowering, id: number): void {
  if (shift(s, id, X.LSRV32)) return;
  s.unary(X.UBFM32 + s.wide(id), id, s.reg(s.a[id]), shiftCount(s, id), s.wide(id) === 1 ? 63 : 31);
}

function rotateRight(s: Arm64Lowering, id: number, n: number): void {
  const x = s.reg(s.a[id]);
  s.binary(X.EXTR32 + s.wide(id), id, x, x, n);
}

export function selectRotl(s: Arm64Lowering, id: number): void {
  if (s.op[s.b[id]] === OP.CONST) return rotateRight(s, id, -shiftCount(s, id) & (s.wide(id) === 1 ? 63 : 31));
  const x = s.reg(s.a[id]);
  const y = s.reg(s.b[id]);
  s.plain(P.ROTL, 0, 0, s.wide(id));
  s.def(id);
  s.use(x);
  s.use(y);
  s.end();
}

export function selectRotr(s: Arm64Lowering, id: number): void {
  if (shift(s, id, X.RORV32)) return;
  rotateRight(s, id, shiftCount(s, id));
}

// Rules for counting bits

export function selectClz(s: Arm64Lowering, id: number): void {
  s.unary(X.CLZ32 + s.wide(id), id, s.reg(s.a[id]));
}

function pseudoUnary(s: Arm64Lowering, op: number, id: number): void {
  const x = s.reg(s.a[id]);
  s.plain(op, 0, 0, s.wide(id));
  s.def(id);
  s.use(x);
  s.end();
}

export function selectCtz(s: Arm64Lowering, id: number): void {
  pseudoUnary(s, P.CTZ, id);
}

export function selectPopcnt(s: Arm64Lowering, id: number): void {
  pseudoUnary(s, P.POPCNT, id);
}

// Rules for division

function divide(s: Arm64Lowering, op: number, id: number): void {
  if (selectDivisionByConstant(s, id)) return;
  const x = s.reg(s.a[id]);
  const y = s.reg(s.b[id]);
  s.plain(op, s.imm[id], 0, s.wide(id));
  s.def(id);
  s.use(x);
  s.use(y);
  s.end();
}

export function selectDivS(s: Arm64Lowering, id: number): void {
  divide(s, P.DIV_S, id);
}

export function selectDivU(s: Arm64Lowering, id: number): void {
  divide(s, P.DIV_U, id);
}

export function selectRemS(s: Arm64Lowering, id: number): void {
  divide(s, P.REM_S, id);
}

export function selectRemU(s: Arm64Lowering, id: number): void {
  divide(s, P.REM_U, id);
}

// Rules for conversions between integers

export function selectExtend8(s: Arm64Lowering, id: number): void {
  s.unary(X.SBFM32 + s.wide(id), id, s.reg(s.a[id]), 0, 7);
}

export function selectExtend16(s: Arm64Lowering, id: number): void {
  s.unary(X.SBFM32 + s.wide(id), id, s.reg(s.a[id]), 0, 15);
}

export function selectExtend32(s: Arm64Lowering, id: number): void {
  s.unary(X.SBFM64, id, s.reg(s.a[id]), 0, 31);
}

/** def = x; its upper half is known to be zero. */
function same(s: Arm64Lowering, id: number): void {
  const x = s.reg(s.a[id]);
  s.plain(P.ZERO_EXTEND, 0, 0, 0);
  s.defReuse(id, 1);
  s.use(x);
  s.end();
}

export function selectExtendU(s: Arm64Lowering, id: number): void {
  same(s, id);
}

export function selectWrap(s: Arm64Lowering, id: number): void {
  const x = s.a[id];
  if (isFolded(s, x, OP.SHR_U)) {
    const n = shiftCount(s, x);
    s.unary(X.UBFM64, id, s.reg(s.a[x]), n, Math.min(n + 31, 63));
  } else if (hasZeroUpperHalf(s, x)) same(s, id);
  else s.unary(X.UBFM32, id, s.reg(x), 0, 31);
}
