/**
 * Vector instructions (specification, 4.4.1.4 and 4.4.7): a row with an IR operation becomes that operation, with the
 * shape in its mnemonic; the others have a form of their own. In: operands on the translator's stack. Out: vector
 * operations (ir/vector_ops.ts), and scalar loads and stores for accesses of part of a vector.
 *
 * Relaxed instructions have the result of the deterministic profile: the first alternative in the specification.
 */
import { OP, type OpName } from "../ir/ops.ts";
import { SHAPE, SHAPE_LANE_TY, SHAPE_NAMES, TY } from "../ir/types.ts";
import type { Immediates } from "../wasm/immediates.ts";
import type { OpcodeRow } from "../wasm/opcode_row.ts";
import { opcodeColumn, OPCODES } from "../wasm/opcodes.ts";
import { notCompiled } from "./failures.ts";
import { imitatedStep } from "./imitated_nans.ts";
import { checkedAddress, translateLoad, translateStore } from "./memory.ts";
import type { Translation } from "./translation.ts";
import { hasWords, wordAt } from "./vector_constants.ts";

const { I32, NONE, V128 } = TY;

/** Emits a vector operation with a vector result. */
function vector(t: Translation, op: number, shape: number, a: number, b = 0, c = 0): number {
  return t.b.pure(op, V128, a, b, c, shape);
}

/** The shape that a mnemonic begins with. */
function shapeNamed(mnemonic: string): number {
  return Math.max(0, SHAPE_NAMES.indexOf(mnemonic.slice(0, 5) as (typeof SHAPE_NAMES)[number]));
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

/** Whether `v` is the zero vector. */
function isZero(t: Translation, v: number): boolean {
  return t.b.isConst(v) && hasWords(t.f.vectors, t.f.imm[v] * 16, 0, 0, 0, 0);
}

/** Products of bytes are those of their extensions, which other instructions may use too. */
function extendedProduct(t: Translation, op: number): void {
  const extension = OP.VEXTEND_LOW_S + op - OP.VEXTMUL_LOW_S;
  const b = vector(t, extension, SHAPE.I16X8, t.pop());
  t.push(vector(t, OP.VMUL, SHAPE.I16X8, vector(t, extension, SHAPE.I16X8, t.pop()), b));
}

/** A vector with all lanes equal to scalar `x`. */
function splat(t: Translation, shape: number, x: number): number {
  const { f, b } = t;
  if (!b.isConst(x)) return vector(t, OP.VSPLAT, shape, x);
  const width = LANE_BYTES[shape];
  let low = f.imm[x];
  if (width === 1) low = Math.imul(low & 0xff, 0x01010101);
  if (width === 2) low = Math.imul(low & 0xffff, 0x00010001);
  const high = width === 8 ? f.c[x] : low;
  return t.vectorConstant(low, high, low, high);
}

const LANE_BYTES: Uint8Array = Uint8Array.of(1, 2, 4, 8, 4, 8);

/** Shifts: counts are taken modulo the width of a lane. */
function shift(t: Translation, op: number, shape: number): void {
  const count = t.b.binary(OP.AND, I32, t.pop(), t.b.i32(LANE_BYTES[shape] * 8 - 1));
  const a = t.pop();
  t.push(t.b.isZero(count) ? a : vector(t, op, shape, a, count));
}

// Lanes.

function extract(t: Translation, op: number, shape: number, lane: number): void {
  t.push(t.b.pure(op, SHAPE_LANE_TY[shape], t.pop(), 0, 0, shape | (lane << 8)));
}

function replace(t: Translation, shape: number, lane: number): void {
  const scalar = t.pop();
  const a = t.pop();
  t.push(vector(t, OP.VREPLACE, shape | (lane << 8), a, scalar));
}

/** `i8x16.shuffle`: one operand if only one is used, and no operation for the identity. */
function shuffle(t: Translation, bytes: Uint8Array): void {
  let b = t.pop();
  let a = t.pop();
  let first = 0;
  for (let k = 0; k < 16; k++) if (bytes[k] < 16) first++;
  if (a === b || first === 16) b = a;
  else if (first === 0) a = b;
  let mask = -1;
  if (a === b) {
    let identity = true;
    for (let k = 0; k < 16; k++) if ((bytes[k] & 15) !== k) identity = false;
    if (identity) {
      t.push(a);
      return;
    }
    mask = 0x0f0f0f0f;
  }
  const w0 = wordAt(bytes, 0) & mask, w1 = wordAt(bytes, 4) & mask;
  const w2 = wordAt(bytes, 8) & mask, w3 = wordAt(bytes, 12) & mask;
  t.push(vector(t, OP.VSHUFFLE, t.vectors.indexOf(t.f, w0, w1, w2, w3), a, b));
}

function constant(t: Translation, bytes: Uint8Array): void {
  t.push(t.vectorConstant(wordAt(bytes, 0), wordAt(bytes, 4), wordAt(bytes, 8), wordAt(bytes, 12)));
}

// Memory.

/** A scalar of a lane of `shape` from memory. */
function loadLane(t: Translation, shape: number, imm: Immediates): number {
  const width = LANE_BYTES[shape];
  const op = width === 1 ? OP.LOAD8_U : width === 2 ? OP.LOAD16_U : OP.LOAD;
  const address = checkedAddress(t, imm, t.pop(), width);
  return t.b.emit(op, SHAPE_LANE_TY[shape], address, 0, t.env.memoryRegion[imm.memory], t.staticOffset);
}

/** Eight bytes, extended to lanes of `shape`. */
function loadExtended(t: Translation, op: number, shape: number, imm: Immediates): void {
  const low = vector(t, OP.VFROM_SCALAR, SHAPE.F64X2, loadLane(t, SHAPE.F64X2, imm));
  t.push(vector(t, op, shape, low));
}

function replaceFromMemory(t: Translation, shape: number, imm: Immediates): void {
  const { lane } = imm;
  const a = t.pop();
  const scalar = loadLane(t, shape, imm);
  t.push(vector(t, OP.VREPLACE, shape | (lane << 8), a, scalar));
}

function storeLane(t: Translation, shape: number, imm: Immediates): void {
  const width = LANE_BYTES[shape];
  const op = width === 1 ? OP.STORE8 : width === 2 ? OP.STORE16 : OP.STORE;
  const value = t.b.pure(OP.VEXTRACT_U, SHAPE_LANE_TY[shape], t.pop(), 0, 0, shape | (imm.lane << 8));
  const address = checkedAddress(t, imm, t.pop(), width);
  t.b.emit(op, NONE, address, value, t.env.memoryRegion[imm.memory], t.staticOffset);
}

// Relaxed instructions of several operations; the others translate as their strict counterparts.

/** a × b + c, or c − a × b with operation VFSUB, rounded twice. */
function multiplyAdd(t: Translation, op: number, shape: number): void {
  const c = t.pop();
  const b = t.pop();
  const a = t.pop();
  const product = imitatedStep(t, shape, a, b, vector(t, OP.VFMUL, shape, a, b));
  const x = op === OP.VFSUB ? c : product;
  const y = op === OP.VFSUB ? product : c;
  t.push(imitatedStep(t, shape, x, y, vector(t, op, shape, x, y)));
}

/** Sums of adjacent products of signed bytes, saturated to 16 bits. */
function dotBytes(t: Translation, a: number, b: number): number {
  const low = dotHalf(t, OP.VEXTEND_LOW_S, a, b);
  return vector(t, OP.VNARROW_S, SHAPE.I16X8, low, dotHalf(t, OP.VEXTEND_HIGH_S, a, b));
}

/** The sums of the half that `extension` extends. */
function dotHalf(t: Translation, extension: number, a: number, b: number): number {
  const x = vector(t, extension, SHAPE.I16X8, a);
  return vector(t, OP.VDOT_S, SHAPE.I32X4, x, vector(t, extension, SHAPE.I16X8, b));
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

// Forms of rows: how operation and shape make up the instruction.

/** One operation of one, two, three operands. */
const UNARY = 1;
const BINARY = 2;
const TERNARY = 3;
const EXTENDED_PRODUCT = 4;
const BITSELECT = 5;
const SPLAT = 6;
const SHIFT = 7;
const EXTRACT = 8;
const REPLACE = 9;
const SHUFFLE = 10;
const CONSTANT = 11;
const LOAD = 12;
const STORE = 13;
/** The operation on a scalar from memory. */
const LOAD_SCALAR = 14;
const LOAD_EXTENDED = 15;
const LOAD_LANE = 16;
const STORE_LANE = 17;
const MULTIPLY_ADD = 18;
const DOT = 19;
const DOT_ADD = 20;

/** What a row becomes. */
interface VectorForm {
  readonly form: number;
  readonly op?: OpName;
  readonly shape?: number;
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

/** Forms of mnemonics without a shape, or of more than one operation. */
const NAMED: Readonly<Record<string, VectorForm>> = {
  "v128.load": { form: LOAD },
  "v128.store": { form: STORE },
  "v128.const": { form: CONSTANT },
  "v128.load8x8_s": { form: LOAD_EXTENDED, op: "VEXTEND_LOW_S", shape: I16X8 },
  "v128.load8x8_u": { form: LOAD_EXTENDED, op: "VEXTEND_LOW_U", shape: I16X8 },
  "v128.load16x4_s": { form: LOAD_EXTENDED, op: "VEXTEND_LOW_S", shape: I32X4 },
  "v128.load16x4_u": { form: LOAD_EXTENDED, op: "VEXTEND_LOW_U", shape: I32X4 },
  "v128.load32x2_s": { form: LOAD_EXTENDED, op: "VEXTEND_LOW_S", shape: I64X2 },
  "v128.load32x2_u": { form: LOAD_EXTENDED, op: "VEXTEND_LOW_U", shape: I64X2 },
  "v128.load8_splat": { form: LOAD_SCALAR, op: "VSPLAT", shape: I8X16 },
  "v128.load16_splat": { form: LOAD_SCALAR, op: "VSPLAT", shape: I16X8 },
  "v128.load32_splat": { form: LOAD_SCALAR, op: "VSPLAT", shape: F32X4 },
  "v128.load64_splat": { form: LOAD_SCALAR, op: "VSPLAT", shape: F64X2 },
  "v128.load32_zero": { form: LOAD_SCALAR, op: "VFROM_SCALAR", shape: F32X4 },
  "v128.load64_zero": { form: LOAD_SCALAR, op: "VFROM_SCALAR", shape: F64X2 },
  "v128.load8_lane": { form: LOAD_LANE, shape: I8X16 },
  "v128.load16_lane": { form: LOAD_LANE, shape: I16X8 },
  "v128.load32_lane": { form: LOAD_LANE, shape: I32X4 },
  "v128.load64_lane": { form: LOAD_LANE, shape: I64X2 },
  "v128.store8_lane": { form: STORE_LANE, shape: I8X16 },
  "v128.store16_lane": { form: STORE_LANE, shape: I16X8 },
  "v128.store32_lane": { form: STORE_LANE, shape: I32X4 },
  "v128.store64_lane": { form: STORE_LANE, shape: I64X2 },
  "i8x16.shuffle": { form: SHUFFLE },
  "f32x4.relaxed_madd": { form: MULTIPLY_ADD, op: "VFADD", shape: F32X4 },
  "f32x4.relaxed_nmadd": { form: MULTIPLY_ADD, op: "VFSUB", shape: F32X4 },
  "f64x2.relaxed_madd": { form: MULTIPLY_ADD, op: "VFADD", shape: F64X2 },
  "f64x2.relaxed_nmadd": { form: MULTIPLY_ADD, op: "VFSUB", shape: F64X2 },
  "i16x8.relaxed_dot_i8x16_i7x16_s": { form: DOT },
  "i32x4.relaxed_dot_i8x16_i7x16_add_s": { form: DOT_ADD },
};

/** The form of a row; undefined for rows of other files. */
function formOf({ prefix, mnemonic, params, ir }: OpcodeRow): VectorForm | undefined {
  if (prefix !== 0xfd) return undefined;
  const named = NAMED[mnemonic];
  if (named !== undefined) return named;
  const name = mnemonic.slice(mnemonic.indexOf(".") + 1);
  const shape = shapeNamed(mnemonic);
  const op = (ir ?? RELAXED[name]) as OpName | undefined;
  if (op !== undefined) return directForm(op, shape, params?.length ?? 0);
  if (name === "shl" || name === "shr_s" || name === "shr_u") {
    return { form: SHIFT, op: `V${name.toUpperCase()}` as OpName, shape };
  }
  if (name.startsWith("extract_lane")) {
    return { form: EXTRACT, op: name.endsWith("_s") ? "VEXTRACT_S" : "VEXTRACT_U", shape };
  }
  if (name === "replace_lane") return { form: REPLACE, shape };
  const truncation = /trunc_(?:sat_)?(f32x4|f64x2)_([su])/.exec(name);
  if (truncation === null) throw new Error(`No translation of ${mnemonic}`);
  return { form: UNARY, op: truncation[2] === "s" ? "VTRUNC_SAT_S" : "VTRUNC_SAT_U", shape: shapeNamed(truncation[1]) };
}

/** The form of a row that is one operation of `count` operands. */
function directForm(op: OpName, shape: number, count: number): VectorForm {
  if (shape === SHAPE.I16X8 && op.startsWith("VEXTMUL")) return { form: EXTENDED_PRODUCT, op };
  if (op === "VBITSELECT") return { form: BITSELECT };
  if (op === "VSPLAT") return { form: SPLAT, shape };
  return { form: count, op, shape };
}

const FORMS: readonly (VectorForm | undefined)[] = OPCODES.map(formOf);
/** By row: form, operation, shape, type of the result. */
const FORM: Uint8Array = opcodeColumn(Uint8Array, ({ id }) => FORMS[id]?.form ?? 0);
const VECTOR_OP: Uint16Array = opcodeColumn(Uint16Array, ({ id }) => OP[FORMS[id]?.op ?? "UNDEF"]);
const SHAPE_OF: Uint8Array = opcodeColumn(Uint8Array, ({ id }) => FORMS[id]?.shape ?? 0);
const RESULT_TY: Uint8Array = opcodeColumn(Uint8Array, ({ results }) => results === "i" ? I32 : V128);

/** Translates the instruction of row `id`. */
export function translateVector(t: Translation, id: number, imm: Immediates): void {
  const op: number = VECTOR_OP[id], shape: number = SHAPE_OF[id], ty: number = RESULT_TY[id];
  switch (FORM[id]) {
    case BINARY: {
      const b = t.pop();
      t.push(t.b.pure(op, ty, t.pop(), b, 0, shape));
      break;
    }
    case UNARY:
      t.push(t.b.pure(op, ty, t.pop(), 0, 0, shape));
      break;
    case TERNARY: {
      const c = t.pop();
      const b = t.pop();
      t.push(t.b.pure(op, ty, t.pop(), b, c, shape));
      break;
    }
    case LOAD:
      translateLoad(t, OP.LOAD, V128, imm);
      break;
    case STORE:
      translateStore(t, OP.STORE, imm);
      break;
    case EXTENDED_PRODUCT:
      extendedProduct(t, op);
      break;
    case BITSELECT:
      bitselect(t);
      break;
    case SPLAT:
      t.push(splat(t, shape, t.pop()));
      break;
    case SHIFT:
      shift(t, op, shape);
      break;
    case EXTRACT:
      extract(t, op, shape, imm.lane);
      break;
    case REPLACE:
      replace(t, shape, imm.lane);
      break;
    case SHUFFLE:
      shuffle(t, imm.bytes);
      break;
    case CONSTANT:
      constant(t, imm.bytes);
      break;
    case LOAD_SCALAR:
      t.push(vector(t, op, shape, loadLane(t, shape, imm)));
      break;
    case LOAD_EXTENDED:
      loadExtended(t, op, shape, imm);
      break;
    case LOAD_LANE:
      replaceFromMemory(t, shape, imm);
      break;
    case STORE_LANE:
      storeLane(t, shape, imm);
      break;
    case MULTIPLY_ADD:
      multiplyAdd(t, op, shape);
      break;
    case DOT:
      relaxedDot(t);
      break;
    case DOT_ADD:
      relaxedDotAdd(t);
      break;
    default:
      throw notCompiled(id, t.b.pos);
  }
}
