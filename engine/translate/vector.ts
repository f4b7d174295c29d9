/**
 * Vector instructions (specification, 4.4.1.4 and 4.4.7): a row with an IR operation becomes that operation, with the
 * shape in its mnemonic; the others have a handler here. In: operands on the translator's stack. Out: vector operations
 * (ir/vector_ops.ts), and scalar loads and stores for accesses of part of a vector.
 *
 * Relaxed instructions have the result of the deterministic profile: the first alternative in the specification.
 */
import { OP, type OpName } from "../ir/ops.ts";
import { SHAPE, SHAPE_LANE_TY, SHAPE_NAMES, TY } from "../ir/types.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { SIMD_ROWS } from "../wasm/opcodes_simd.ts";
import { imitatedStep } from "./imitated_nans.ts";
import { checkedAddress, staticOffset, translateLoad, translateStore } from "./memory.ts";
import type { Handler, Translation } from "./translation.ts";
import { sameBytes, ZERO_VECTOR } from "./vector_constants.ts";

const { I32, NONE, V128 } = TY;

/** Emits a vector operation with a vector result. */
function vector(t: Translation, op: number, shape: number, a: number, b = 0, c = 0): number {
  return t.b.pure(op, V128, a, b, c, shape);
}

/** The shape that a mnemonic begins with. */
function shapeOf(mnemonic: string): number {
  return Math.max(0, SHAPE_NAMES.indexOf(mnemonic.slice(0, 5) as (typeof SHAPE_NAMES)[number]));
}

/** Handler of a row that is one operation of `count` operands. */
function direct(op: number, ty: number, shape: number, count: number): Handler {
  if (shape === SHAPE.I16X8 && op >= OP.VEXTMUL_LOW_S && op <= OP.VEXTMUL_HIGH_U) return extendedProduct(op);
  if (op === OP.VBITSELECT) return bitselect;
  if (op === OP.VSPLAT) return (t) => t.push(splat(t, shape, t.pop()));
  return (t) => {
    const c = count > 2 ? t.pop() : 0;
    const b = count > 1 ? t.pop() : 0;
    const a = t.pop();
    t.push(t.b.pure(op, ty, a, b, c, shape));
  };
}

/** `v128.bitselect`: with zero on one side, it is a conjunction. */
function bitselect(t: Translation): void {
  const mask = t.pop();
  const b = t.pop();
  const a = t.pop();
  if (a === b) t.push(a);
  else if (isZero(t, b)) t.push(vector(t, OP.VAND, 0, a, mask));
  else if (isZero(t, a)) t.push(vector(t, OP.VANDNOT, 0, b, mask));
  else t.push(vector(t, OP.VBITSELECT, 0, a, b, mask));
}

/** True if `v` is the zero vector. */
function isZero(t: Translation, v: number): boolean {
  return t.b.isConst(v) && sameBytes(t.f.vectors, t.f.imm[v] * 16, ZERO_VECTOR);
}

/** Products of bytes are those of their extensions, which other instructions may use too. */
function extendedProduct(op: number): Handler {
  const extension = OP.VEXTEND_LOW_S + op - OP.VEXTMUL_LOW_S;
  return (t) => {
    const b = vector(t, extension, SHAPE.I16X8, t.pop());
    t.push(vector(t, OP.VMUL, SHAPE.I16X8, vector(t, extension, SHAPE.I16X8, t.pop()), b));
  };
}

/** A vector with all lanes equal to scalar `x`. */
function splat(t: Translation, shape: number, x: number): number {
  const { f, b } = t;
  if (!b.isConst(x)) return vector(t, OP.VSPLAT, shape, x);
  const bytes = new Uint8Array(16);
  const width = LANE_BYTES[shape];
  for (let k = 0; k < 16; k++) {
    const at = k % width;
    bytes[k] = (at < 4 ? f.imm[x] >>> (8 * at) : f.c[x] >>> (8 * (at - 4))) & 0xff;
  }
  return t.vectorConstant(bytes);
}

const LANE_BYTES = Uint8Array.of(1, 2, 4, 8, 4, 8);

// Shifts: counts are taken modulo the width of a lane.

function shift(op: number, shape: number): Handler {
  const mask = LANE_BYTES[shape] * 8 - 1;
  return (t) => {
    const count = t.b.binary(OP.AND, I32, t.pop(), t.b.i32(mask));
    const a = t.pop();
    t.push(t.b.isZero(count) ? a : vector(t, op, shape, a, count));
  };
}

// Lanes.

function extract(op: number, shape: number): Handler {
  const ty = SHAPE_LANE_TY[shape];
  return (t, imm) => t.push(t.b.pure(op, ty, t.pop(), 0, 0, shape | (imm.lane << 8)));
}

function replace(shape: number): Handler {
  return (t, imm) => {
    const scalar = t.pop();
    const a = t.pop();
    t.push(vector(t, OP.VREPLACE, shape | (imm.lane << 8), a, scalar));
  };
}

/** `i8x16.shuffle`: one operand if only one is used, and no operation for the identity. */
function shuffle(t: Translation, imm: Immediates): void {
  let b = t.pop();
  let a = t.pop();
  const lanes = imm.bytes.slice();
  let first = 0;
  for (let k = 0; k < 16; k++) if (lanes[k] < 16) first++;
  if (a === b || first === 16) b = a;
  else if (first === 0) a = b;
  if (a === b) {
    let identity = true;
    for (let k = 0; k < 16; k++) {
      lanes[k] &= 15;
      if (lanes[k] !== k) identity = false;
    }
    if (identity) return t.push(a);
  }
  t.push(vector(t, OP.VSHUFFLE, t.vectors.indexOf(t.f, lanes), a, b));
}

function constant(t: Translation, imm: Immediates): void {
  t.push(t.vectorConstant(imm.bytes));
}

// Memory.

function load(t: Translation, imm: Immediates): void {
  translateLoad(t, OP.LOAD, V128, imm);
}

function store(t: Translation, imm: Immediates): void {
  translateStore(t, OP.STORE, imm);
}

/** A scalar of a lane of `shape` from memory. */
function loadLane(t: Translation, shape: number, imm: Immediates): number {
  const width = LANE_BYTES[shape];
  const op = width === 1 ? OP.LOAD8_U : width === 2 ? OP.LOAD16_U : OP.LOAD;
  const address = checkedAddress(t, imm, t.pop(), width);
  return t.b.emit(op, SHAPE_LANE_TY[shape], address, 0, t.env.memoryRegion[imm.memory], staticOffset);
}

function loadSplat(shape: number): Handler {
  return (t, imm) => t.push(vector(t, OP.VSPLAT, shape, loadLane(t, shape, imm)));
}

function loadZero(shape: number): Handler {
  return (t, imm) => t.push(vector(t, OP.VFROM_SCALAR, shape, loadLane(t, shape, imm)));
}

/** Eight bytes, extended to lanes of `shape`. */
function loadExtended(op: number, shape: number): Handler {
  return (t, imm) => {
    const low = vector(t, OP.VFROM_SCALAR, SHAPE.F64X2, loadLane(t, SHAPE.F64X2, imm));
    t.push(vector(t, op, shape, low));
  };
}

function replaceFromMemory(shape: number): Handler {
  return (t, imm) => {
    const { lane } = imm;
    const a = t.pop();
    const scalar = loadLane(t, shape, imm);
    t.push(vector(t, OP.VREPLACE, shape | (lane << 8), a, scalar));
  };
}

function storeLane(shape: number): Handler {
  const width = LANE_BYTES[shape];
  const op = width === 1 ? OP.STORE8 : width === 2 ? OP.STORE16 : OP.STORE;
  return (t, imm) => {
    const value = t.b.pure(OP.VEXTRACT_U, SHAPE_LANE_TY[shape], t.pop(), 0, 0, shape | (imm.lane << 8));
    const address = checkedAddress(t, imm, t.pop(), width);
    t.b.emit(op, NONE, address, value, t.env.memoryRegion[imm.memory], staticOffset);
  };
}

// Relaxed instructions of several operations; the others translate as their strict counterparts.

/** a × b + c, or c − a × b, rounded twice. */
function multiplyAdd(shape: number, negated: boolean): Handler {
  return (t) => {
    const c = t.pop();
    const b = t.pop();
    const a = t.pop();
    const product = imitatedStep(t, shape, a, b, vector(t, OP.VFMUL, shape, a, b));
    const [x, y] = negated ? [c, product] : [product, c];
    t.push(imitatedStep(t, shape, x, y, vector(t, negated ? OP.VFSUB : OP.VFADD, shape, x, y)));
  };
}

/** Sums of adjacent products of signed bytes, saturated to 16 bits. */
function dotBytes(t: Translation, a: number, b: number): number {
  const half = (op: number) =>
    vector(t, OP.VDOT_S, SHAPE.I32X4, vector(t, op, SHAPE.I16X8, a), vector(t, op, SHAPE.I16X8, b));
  return vector(t, OP.VNARROW_S, SHAPE.I16X8, half(OP.VEXTEND_LOW_S), half(OP.VEXTEND_HIGH_S));
}

function relaxedDot(t: Translation): void {
  const b = t.pop();
  t.push(dotBytes(t, t.pop(), b));
}

function relaxedDotAdd(t: Translation): void {
  const c = t.pop();
  const b = t.pop();
  const products = dotBytes(t, t.pop(), b);
  t.push(vector(t, OP.VADD, SHAPE.I32X4, vector(t, OP.VEXTADD_S, SHAPE.I32X4, products), c));
}

const { I8X16, I16X8, I32X4, I64X2, F32X4, F64X2 } = SHAPE;

/** Relaxed mnemonics that equal a strict instruction, except for the shape. */
const RELAXED: Readonly<Record<string, OpName>> = {
  "relaxed_swizzle": "VSWIZZLE",
  "relaxed_laneselect": "VBITSELECT",
  "relaxed_min": "VFMIN",
  "relaxed_max": "VFMAX",
  "relaxed_q15mulr_s": "VQ15MULR_S",
};

/** Handlers of mnemonics without a shape, or of more than one operation. */
const NAMED: Readonly<Record<string, Handler>> = {
  "v128.load": load,
  "v128.store": store,
  "v128.const": constant,
  "v128.load8x8_s": loadExtended(OP.VEXTEND_LOW_S, I16X8),
  "v128.load8x8_u": loadExtended(OP.VEXTEND_LOW_U, I16X8),
  "v128.load16x4_s": loadExtended(OP.VEXTEND_LOW_S, I32X4),
  "v128.load16x4_u": loadExtended(OP.VEXTEND_LOW_U, I32X4),
  "v128.load32x2_s": loadExtended(OP.VEXTEND_LOW_S, I64X2),
  "v128.load32x2_u": loadExtended(OP.VEXTEND_LOW_U, I64X2),
  "v128.load8_splat": loadSplat(I8X16),
  "v128.load16_splat": loadSplat(I16X8),
  "v128.load32_splat": loadSplat(F32X4),
  "v128.load64_splat": loadSplat(F64X2),
  "v128.load32_zero": loadZero(F32X4),
  "v128.load64_zero": loadZero(F64X2),
  "v128.load8_lane": replaceFromMemory(I8X16),
  "v128.load16_lane": replaceFromMemory(I16X8),
  "v128.load32_lane": replaceFromMemory(I32X4),
  "v128.load64_lane": replaceFromMemory(I64X2),
  "v128.store8_lane": storeLane(I8X16),
  "v128.store16_lane": storeLane(I16X8),
  "v128.store32_lane": storeLane(I32X4),
  "v128.store64_lane": storeLane(I64X2),
  "i8x16.shuffle": shuffle,
  "f32x4.relaxed_madd": multiplyAdd(F32X4, false),
  "f32x4.relaxed_nmadd": multiplyAdd(F32X4, true),
  "f64x2.relaxed_madd": multiplyAdd(F64X2, false),
  "f64x2.relaxed_nmadd": multiplyAdd(F64X2, true),
  "i16x8.relaxed_dot_i8x16_i7x16_s": relaxedDot,
  "i32x4.relaxed_dot_i8x16_i7x16_add_s": relaxedDotAdd,
};

function handlerOf(mnemonic: string, signature: string, ir: string | undefined): Handler | undefined {
  const named = NAMED[mnemonic];
  if (named !== undefined) return named;
  const [params, results] = signature.split("_");
  const name = mnemonic.slice(mnemonic.indexOf(".") + 1);
  const shape = shapeOf(mnemonic);
  const ty = results === "i" ? I32 : V128;
  const op = ir ?? RELAXED[name];
  if (op !== undefined) return direct(OP[op as OpName], ty, shape, params.length);
  if (name === "shl" || name === "shr_s" || name === "shr_u") {
    return shift(OP[`V${name.toUpperCase()}` as OpName], shape);
  }
  if (name.startsWith("extract_lane")) return extract(name.endsWith("_s") ? OP.VEXTRACT_S : OP.VEXTRACT_U, shape);
  if (name === "replace_lane") return replace(shape);
  const truncation = /trunc_(?:sat_)?(f32x4|f64x2)_([su])/.exec(name);
  if (truncation === null) return undefined;
  return direct(truncation[2] === "s" ? OP.VTRUNC_SAT_S : OP.VTRUNC_SAT_U, ty, shapeOf(truncation[1]), 1);
}

/** Handlers by mnemonic. */
export const VECTOR_HANDLERS: Readonly<Record<string, Handler>> = Object.fromEntries(
  SIMD_ROWS.map((row) => {
    const [, mnemonic, , signature, , ir] = row.split(" ");
    const handler = handlerOf(mnemonic, signature, ir);
    if (handler === undefined) throw new Error(`No translation of ${mnemonic}`);
    return [mnemonic, handler];
  }),
);
