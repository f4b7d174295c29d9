/**
 * Emission of float operations that take several instructions. The common case is straight-line; a branch that is
 * practically never taken leads to out-of-line code for NaNs, equal operands of minimum and maximum, and values out of
 * an integer's range.
 */
import { TRAP } from "../base/traps.ts";
import { type Emission, OUT_OF_LINE } from "./emission.ts";
import { emitConstant, emitRegister } from "./encoding.ts";
import { SHARED } from "./image_constants.ts";
import { ROW_VEX_TWIN, X } from "./instructions.ts";
import { CC, P } from "./machine_ops.ts";
import { SCRATCH, SCRATCH_VECTOR } from "./registers.ts";
import { ri, rr, vex, vShared, vvShared, vvv } from "./emit_row.ts";

/** FMIN and FMAX: the hardware's result is right unless the operands are zeros of different signs or unordered. */
export function emitExtremum(e: Emission, i: number, op: number): void {
  const { v } = e;
  const double = v.aux[i] & 1;
  const o = v.firstOperand[i];
  const d = e.register(o);
  const a = e.register(o + 1);
  const b = e.register(o + 2);
  const back = e.newLabel();
  rr(e, vex(e, X.UCOMISS + double), a, b);
  e.branch(CC.E, e.outOfLine(OUT_OF_LINE.EXTREMUM, i, op, back));
  vvv(e, (op === P.FMIN ? X.MINSS : X.MAXSS) + double, d, a, b);
  e.bind(back);
}

/** Equal operands: OR of the signs for the minimum, AND for the maximum. Unordered: the sum is a quiet NaN. */
export function emitSlowExtremum(e: Emission, i: number, op: number, back: number): void {
  const { v } = e;
  const double = v.aux[i] & 1;
  const o = v.firstOperand[i];
  const d = e.register(o);
  const a = e.register(o + 1);
  const b = e.register(o + 2);
  const unordered = e.newLabel();
  e.branch(CC.P, unordered);
  vvv(e, op === P.FMIN ? X.ORPS : X.ANDPS, d, a, b);
  e.jump(back);
  e.bind(unordered);
  vvv(e, X.ADDSS + double, d, a, b);
  e.jump(back);
}

/** CANONICAL_NAN: a value that is not a NaN stays in its register, and nothing waits for the test. */
export function emitCanonicalNaN(e: Emission, i: number): void {
  const d = e.register(e.v.firstOperand[i]);
  const back = e.newLabel();
  rr(e, vex(e, X.UCOMISS + (e.v.aux[i] & 1)), d, d);
  e.branch(CC.P, e.outOfLine(OUT_OF_LINE.CANONICAL_NAN, i, 0, back));
  e.bind(back);
}

export function emitNaN(e: Emission, i: number, back: number): void {
  const double = e.v.aux[i] & 1;
  vShared(e, X.MOVAPS, e.register(e.v.firstOperand[i]), double === 1 ? SHARED.NAN64 : SHARED.NAN32);
  e.jump(back);
}

export function emitCopysign(e: Emission, i: number): void {
  const { v } = e;
  const double = v.aux[i] & 1;
  const o = v.firstOperand[i];
  const d = e.register(o);
  vvShared(e, X.ANDPS, SCRATCH_VECTOR, e.register(o + 2), double === 1 ? SHARED.SIGN64 : SHARED.SIGN32);
  vvShared(e, X.ANDPS, d, e.register(o + 1), double === 1 ? SHARED.ABS64 : SHARED.ABS32);
  vvv(e, X.ORPS, d, d, SCRATCH_VECTOR);
}

/** cvttss2si or cvttsd2si into a 32- or 64-bit register. */
function convert(e: Emission, double: number, wide: number, d: number, x: number): void {
  rr(e, vex(e, (double === 1 ? X.CVTTSD2SI32 : X.CVTTSS2SI32) + wide), d, x);
}

/** Truncations to integers. The hardware returns 0x80… if the value does not fit. */
export function emitTruncation(e: Emission, i: number, op: number): void {
  const { v } = e;
  const double = v.aux[i] & 1;
  const o = v.firstOperand[i];
  const d = e.register(o);
  const x = e.register(o + 1);
  const back = e.newLabel();
  const slow = e.outOfLine(OUT_OF_LINE.TRUNCATION, i, op, back);
  if (op === P.TRUNC_S32 || op === P.TRUNC_S64) {
    const wide = op === P.TRUNC_S64 ? 1 : 0;
    convert(e, double, wide, d, x);
    // Subtracting 1 overflows for 0x80… only.
    ri(e, X.CMP32_I + wide, d, 1);
    e.branch(CC.O, slow);
  } else {
    convert(e, double, 1, d, x);
    if (op === P.TRUNC_U32) {
      rr(e, X.MOV64_L, SCRATCH, d);
      ri(e, X.SHR64_I, SCRATCH, 32);
      e.branch(CC.NE, slow);
    } else {
      rr(e, X.TEST64_M, d, d);
      e.branch(CC.S, slow);
    }
  }
  e.bind(back);
}

export function emitSlowTruncation(e: Emission, i: number, op: number, back: number): void {
  const { v } = e;
  const double = v.aux[i] & 1;
  const saturating = (v.aux[i] & 2) !== 0;
  const o = v.firstOperand[i];
  const d = e.register(o);
  const x = e.register(o + 1);
  if (saturating) emitSaturation(e, op, double, d, x, back);
  else emitTruncationTrap(e, i, op, double, d, x, back);
}

/** Distinguishes values that do fit, overflow and NaN. */
function emitTruncationTrap(
  e: Emission,
  i: number,
  op: number,
  double: number,
  d: number,
  x: number,
  back: number,
): void {
  const compare = X.UCOMISS + double;
  const invalid = e.trap(i, TRAP.INVALID_CONVERSION);
  const overflow = e.trap(i, TRAP.INTEGER_OVERFLOW);
  rr(e, vex(e, compare), x, x);
  e.branch(CC.P, invalid);
  if (op === P.TRUNC_U32) {
    e.jump(overflow);
    return;
  }
  if (op === P.TRUNC_U64) {
    // 2^63 and more: subtract it, convert, and put the top bit back.
    wideUnsigned(e, double, d, x, overflow);
    e.jump(back);
    return;
  }
  // The result 0x80… is right for values that truncate to the smallest integer.
  if (op === P.TRUNC_S32 && double === 1) {
    vShared(e, compare, x, SHARED.F64_M2P31_1);
    e.branch(CC.BE, overflow);
  } else {
    const bound = op === P.TRUNC_S32 ? SHARED.F32_M2P31 : double === 1 ? SHARED.F64_M2P63 : SHARED.F32_M2P63;
    vShared(e, compare, x, bound);
    e.branch(CC.B, overflow);
  }
  zeroScratch(e);
  rr(e, vex(e, compare), x, SCRATCH_VECTOR);
  e.branch(CC.AE, overflow);
  e.jump(back);
}

function zeroScratch(e: Emission): void {
  vvv(e, X.XORPS, SCRATCH_VECTOR, SCRATCH_VECTOR, SCRATCH_VECTOR);
}

/** d = x as u64 for x ≥ 2^63; jumps to `tooLarge` if it does not fit (or x is negative). */
function wideUnsigned(e: Emission, double: number, d: number, x: number, tooLarge: number): void {
  vvShared(e, X.SUBSS + double, SCRATCH_VECTOR, x, double === 1 ? SHARED.F64_2P63 : SHARED.F32_2P63);
  convert(e, double, 1, d, SCRATCH_VECTOR);
  rr(e, X.TEST64_M, d, d);
  e.branch(CC.S, tooLarge);
  emitRegister(e.asm, X.BTS64_I, 0, d, 0, 63, 0);
}

function emitSaturation(e: Emission, op: number, double: number, d: number, x: number, back: number): void {
  const zero = e.newLabel();
  zeroScratch(e);
  rr(e, vex(e, X.UCOMISS + double), x, SCRATCH_VECTOR);
  if (op === P.TRUNC_S32 || op === P.TRUNC_S64) {
    // Negative: the hardware's 0x80… is the bound.
    e.branch(CC.P, zero);
    e.branch(CC.B, back);
    emitConstant(e.asm, d, op === P.TRUNC_S32 ? 0x7fffffff : -1, op === P.TRUNC_S32 ? 0 : 0x7fffffff);
    e.jump(back);
  } else {
    const largest = e.newLabel();
    // NaN, too: the flags of an unordered comparison satisfy BE.
    e.branch(CC.BE, zero);
    if (op === P.TRUNC_U64) {
      wideUnsigned(e, double, d, x, largest);
      e.jump(back);
    }
    e.bind(largest);
    emitConstant(e.asm, d, -1, op === P.TRUNC_U32 ? 0 : -1);
    e.jump(back);
  }
  e.bind(zero);
  rr(e, X.XOR32_R, d, d);
  e.jump(back);
}

/** d = the integer in x as a float. The legacy form keeps the upper part of d, which is cleared first. */
function convertFrom(e: Emission, double: number, d: number, x: number): void {
  const row = double === 1 ? X.CVTSI2SD64 : X.CVTSI2SS64;
  if (e.avx) emitRegister(e.asm, ROW_VEX_TWIN[row], d, x, SCRATCH_VECTOR, 0, 0);
  else {
    rr(e, X.XORPS, d, d);
    rr(e, row, d, x);
  }
}

/** u64 → float: half of it, rounded to odd, and doubled, when the top bit is set. */
export function emitConversion(e: Emission, i: number): void {
  const { v } = e;
  const o = v.firstOperand[i];
  const x = e.register(o + 1);
  const back = e.newLabel();
  rr(e, X.TEST64_M, x, x);
  e.branch(CC.S, e.outOfLine(OUT_OF_LINE.CONVERSION, i, 0, back));
  convertFrom(e, v.aux[i] & 1, e.register(o), x);
  e.bind(back);
}

export function emitSlowConversion(e: Emission, i: number, back: number): void {
  const { v } = e;
  const double = v.aux[i] & 1;
  const o = v.firstOperand[i];
  const d = e.register(o);
  const even = e.newLabel();
  rr(e, X.MOV64_L, SCRATCH, e.register(o + 1));
  ri(e, X.SHR64_I, SCRATCH, 1);
  e.branch(CC.AE, even);
  ri(e, X.OR64_I, SCRATCH, 1);
  e.bind(even);
  convertFrom(e, double, d, SCRATCH);
  vvv(e, X.ADDSS + double, d, d, d);
  e.jump(back);
}
