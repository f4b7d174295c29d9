/**
 * Rules between vectors and scalars: splats, lanes, tests.
 */
import { constantVector } from "../codegen/lowering_context.ts";
import { CONSTRAINT, operandWord, ROLE } from "../codegen/vcode.ts";
import { OP } from "../ir/ops.ts";
import { SHAPE, TY } from "../ir/types.ts";
import { X } from "./instructions.ts";
import { AUX_CONDITION_SHIFT, AUX_CONSUMER_SHIFT, CC, CONSUMER } from "./machine_ops.ts";
import type { Arm64Lowering } from "./lowering_context.ts";
import { one, oneInto, two } from "./vector_code.ts";

const { I8X16, I16X8, I64X2, F32X4 } = SHAPE;

export function selectSplat(s: Arm64Lowering, id: number): void {
  const shape = s.imm[id] & 0xff;
  const x = s.reg(s.a[id]);
  s.vregs[id] = one(s, shape < F32X4 ? X.DUP_R_16B + shape : shape === F32X4 ? X.DUP_E_4S : X.DUP_E_2D, x);
}

/** Moving a scalar clears the upper lanes. */
export function selectFromScalar(s: Arm64Lowering, id: number): void {
  const x = s.a[id];
  s.vregs[id] = one(s, s.ty[x] === TY.F64 ? X.FMOV_D : X.FMOV_S, s.reg(x));
}

export function selectReplace(s: Arm64Lowering, id: number): void {
  const shape = s.imm[id] & 0xff;
  const lane = s.imm[id] >>> 8;
  const vector = s.reg(s.a[id]);
  const x = s.reg(s.b[id]);
  if (shape < F32X4) s.vregs[id] = oneInto(s, X.INS_R_16B + shape, vector, x, lane);
  else s.vregs[id] = oneInto(s, shape === F32X4 ? X.INS_E_4S : X.INS_E_2D, vector, x, lane, 0);
}

export function selectExtract(s: Arm64Lowering, id: number): void {
  const shape = s.imm[id] & 0xff;
  const lane = s.imm[id] >>> 8;
  const x = s.reg(s.a[id]);
  if (shape >= F32X4) {
    const double = shape === F32X4 ? 0 : 1;
    s.vregs[id] = lane === 0
      ? one(s, X.FMOV_S + double, x, 0, 0, s.ty[id])
      : one(s, X.DUP_F_4S + double, x, lane, 0, s.ty[id]);
    return;
  }
  const row = s.op[id] === OP.VEXTRACT_S ? (shape === I8X16 ? X.SMOV_16B : X.SMOV_8H) : X.UMOV_16B + shape;
  s.vregs[id] = one(s, row, x, lane, 0, s.ty[id]);
}

// Rules for tests

/**
 * Reduces the vector of test `id` to a general register, which is to be compared with zero. `s.tested` receives its
 * width and the condition of the test: NE, but EQ for VALL_TRUE of i64x2.
 */
export function testedRegister(s: Arm64Lowering, id: number): number {
  const shape = s.imm[id] & 0xff;
  let x = s.reg(s.a[id]);
  s.tested.cc = CC.NE;
  s.tested.wide = 0;
  if (s.op[id] === OP.VALL_TRUE) {
    if (shape !== I64X2) return one(s, X.UMOV_4S, one(s, X.UMINV_16B + shape, x), 0, 0, TY.I32);
    x = one(s, X.CMEQ0_2D, x);
    s.tested.cc = CC.EQ;
  }
  s.tested.wide = 1;
  return one(s, X.FMOV_XD, two(s, X.UMAXP_4S, x, x), 0, 0, TY.I64);
}

export function selectTest(s: Arm64Lowering, id: number): void {
  const x = testedRegister(s, id);
  const aux = (s.tested.cc << AUX_CONDITION_SHIFT) | (CONSUMER.SET << AUX_CONSUMER_SHIFT);
  s.plain(X.SUBS_I32 + s.tested.wide, 0, 0, aux);
  s.def(id);
  s.use(x);
  s.end();
}

/** The sign bits: each lane's mask selects a power of two of a constant, and the sum of these is the result. */
export function selectBitmask(s: Arm64Lowering, id: number): void {
  const shape = s.imm[id] & 0xff;
  const x = s.reg(s.a[id]);
  if (shape === I64X2) {
    const signs = one(s, X.USHR_2D, x, 1);
    const low = one(s, X.UMOV_2D, signs, 0, 0, TY.I64);
    const high = one(s, X.UMOV_2D, signs, 1, 0, TY.I64);
    // orr wd, low, high, lsl #1
    s.plain(X.ORR32, 1, 0, 0);
    s.def(id);
    s.use(low);
    s.use(high);
    s.end();
    return;
  }
  const masks = one(s, X.CMLT0_16B + shape, x);
  let sum: number;
  if (shape === I8X16) {
    const bits = two(s, X.AND_16B, masks, constantVector(s, 0x08040201, 0x80402010 | 0, 0x08040201, 0x80402010 | 0));
    // Halves side by side: each pair of bytes is a bit of the low and one of the high half.
    sum = one(s, X.ADDV_8H, two(s, X.ZIP1_16B, bits, two(s, X.EXT_16B, bits, bits, 8)));
  } else if (shape === I16X8) {
    sum = one(
      s,
      X.ADDV_8H,
      two(s, X.AND_16B, masks, constantVector(s, 0x00020001, 0x00080004, 0x00200010, 0x00800040)),
    );
  } else sum = one(s, X.ADDV_4S, two(s, X.AND_16B, masks, constantVector(s, 1, 2, 4, 8)));
  s.plain(shape === SHAPE.I32X4 ? X.UMOV_4S : X.UMOV_8H, 0, 0, 0);
  s.v.operand(operandWord(s.defVreg(id), ROLE.DEF, CONSTRAINT.REG));
  s.use(sum);
  s.end();
}
