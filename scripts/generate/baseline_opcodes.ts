/**
 * The opcode table as the kernel reads it: the properties of every row of wasm/opcodes.ts, and the kernel's kind and
 * operation for it. In: the rows. Out: bytes for kernel/layout.ts's OPCODES. Invariant: every instruction has a kind;
 * one without fails the build.
 */
import { LANE_LIMIT, OPCODES, pageOf } from "../../engine/wasm/opcodes.ts";
import type { OpcodeRow } from "../../engine/wasm/opcode_row.ts";
import { PLAN_BY_ID } from "../../engine/wasm/read_plans.ts";
import { ADDRESSES, CHECKS, FEATURES, OPERANDS, RESULT, SECOND, THIRD, TOP } from "../../engine/validate/columns.ts";
import { Bug } from "../../engine/base/errors.ts";
import { MAKES_NAN } from "../../engine/translate/imitated_nans.ts";
import { ENDS_REGION } from "../../engine/translate/fuel.ts";
import { FUEL_BULK_SHIFT, FUEL_PRICE } from "../../engine/translate/fuel_prices.ts";
import * as cond from "../../engine/baseline/kernel/conditions.ts";
import * as layout from "../../engine/baseline/kernel/layout.ts";
import * as op from "../../engine/baseline/kernel/operations.ts";

type Lowering = readonly [kind: number, operation: number];

/** By operation of the IR: rows that the middle end takes as they are. */
const BY_IR: Readonly<Record<string, Lowering>> = {
  ADD: [op.KIND_BINARY, op.ADD],
  SUB: [op.KIND_BINARY, op.SUB],
  MUL: [op.KIND_BINARY, op.MUL],
  AND: [op.KIND_BINARY, op.AND],
  OR: [op.KIND_BINARY, op.OR],
  XOR: [op.KIND_BINARY, op.XOR],
  SHL: [op.KIND_SHIFT, op.SHL],
  SHR_S: [op.KIND_SHIFT, op.SHR_S],
  SHR_U: [op.KIND_SHIFT, op.SHR_U],
  ROTL: [op.KIND_SHIFT, op.ROTL],
  ROTR: [op.KIND_SHIFT, op.ROTR],
  EQ: [op.KIND_COMPARE, cond.EQ],
  NE: [op.KIND_COMPARE, cond.NE],
  LT_S: [op.KIND_COMPARE, cond.LT_S],
  LT_U: [op.KIND_COMPARE, cond.LT_U],
  GT_S: [op.KIND_COMPARE, cond.GT_S],
  GT_U: [op.KIND_COMPARE, cond.GT_U],
  LE_S: [op.KIND_COMPARE, cond.LE_S],
  LE_U: [op.KIND_COMPARE, cond.LE_U],
  GE_S: [op.KIND_COMPARE, cond.GE_S],
  GE_U: [op.KIND_COMPARE, cond.GE_U],
  FEQ: [op.KIND_FLOAT_COMPARE, cond.FEQ],
  FNE: [op.KIND_FLOAT_COMPARE, cond.FNE],
  FGT: [op.KIND_FLOAT_COMPARE, cond.FGT],
  FGE: [op.KIND_FLOAT_COMPARE, cond.FGE],
  FLT: [op.KIND_FLOAT_COMPARE, cond.FGT | op.SWAPPED],
  FLE: [op.KIND_FLOAT_COMPARE, cond.FGE | op.SWAPPED],
  CLZ: [op.KIND_UNARY, op.CLZ],
  CTZ: [op.KIND_UNARY, op.CTZ],
  POPCNT: [op.KIND_UNARY, op.POPCNT],
  EXTEND8_S: [op.KIND_UNARY, op.EXTEND8],
  EXTEND16_S: [op.KIND_UNARY, op.EXTEND16],
  EXTEND32_S: [op.KIND_UNARY, op.EXTEND32],
  EXTEND_S: [op.KIND_UNARY, op.EXTEND32],
  EXTEND_U: [op.KIND_UNARY, op.EXTEND_U],
  WRAP: [op.KIND_UNARY, op.WRAP],
  FADD: [op.KIND_FLOAT_BINARY, op.FADD],
  FSUB: [op.KIND_FLOAT_BINARY, op.FSUB],
  FMUL: [op.KIND_FLOAT_BINARY, op.FMUL],
  FDIV: [op.KIND_FLOAT_BINARY, op.FDIV],
  FMIN: [op.KIND_FLOAT_BINARY, op.FMIN],
  FMAX: [op.KIND_FLOAT_BINARY, op.FMAX],
  FCOPYSIGN: [op.KIND_FLOAT_BINARY, op.FCOPYSIGN],
  FABS: [op.KIND_FLOAT_UNARY, op.FABS],
  FNEG: [op.KIND_FLOAT_UNARY, op.FNEG],
  FSQRT: [op.KIND_FLOAT_UNARY, op.FSQRT],
  FCEIL: [op.KIND_FLOAT_UNARY, op.FCEIL],
  FFLOOR: [op.KIND_FLOAT_UNARY, op.FFLOOR],
  FTRUNC: [op.KIND_FLOAT_UNARY, op.FTRUNC],
  FNEAREST: [op.KIND_FLOAT_UNARY, op.FNEAREST],
  TRUNC_S: [op.KIND_CONVERT, op.TRUNC_S],
  TRUNC_U: [op.KIND_CONVERT, op.TRUNC_U],
  TRUNC_SAT_S: [op.KIND_CONVERT, op.TRUNC_SAT_S],
  TRUNC_SAT_U: [op.KIND_CONVERT, op.TRUNC_SAT_U],
  CONVERT_S: [op.KIND_CONVERT, op.CONVERT_S],
  CONVERT_U: [op.KIND_CONVERT, op.CONVERT_U],
  FDEMOTE: [op.KIND_CONVERT, op.DEMOTE],
  FPROMOTE: [op.KIND_CONVERT, op.PROMOTE],
  BITCAST: [op.KIND_CONVERT, op.REINTERPRET],
};

/** By mnemonic: all others that are covered. */
const BY_NAME: Readonly<Record<string, Lowering>> = {
  "nop": [op.KIND_NOP, 0],
  "drop": [op.KIND_DROP, 0],
  "select": [op.KIND_SELECT, 0],
  "select(t)": [op.KIND_SELECT_TYPED, 0],
  "local.get": [op.KIND_LOCAL_GET, 0],
  "local.set": [op.KIND_LOCAL_SET, 0],
  "local.tee": [op.KIND_LOCAL_TEE, 0],
  "global.get": [op.KIND_GLOBAL_GET, 0],
  "global.set": [op.KIND_GLOBAL_SET, 0],
  "unreachable": [op.KIND_UNREACHABLE, 0],
  "block": [op.KIND_BLOCK, 0],
  "loop": [op.KIND_LOOP, 0],
  "if": [op.KIND_IF, 0],
  "else": [op.KIND_ELSE, 0],
  "end": [op.KIND_END, 0],
  "br": [op.KIND_BR, 0],
  "br_if": [op.KIND_BR_IF, 0],
  "br_table": [op.KIND_BR_TABLE, 0],
  "return": [op.KIND_RETURN, 0],
  "call": [op.KIND_CALL, 0],
  "call_indirect": [op.KIND_CALL_INDIRECT, 0],
  "call_ref": [op.KIND_CALL_REF, 0],
  "return_call": [op.KIND_RETURN_CALL, 0],
  "return_call_indirect": [op.KIND_RETURN_CALL_INDIRECT, 0],
  "return_call_ref": [op.KIND_RETURN_CALL_REF, 0],
  "memory.atomic.notify": [op.KIND_WAITING, op.ATOMIC_NOTIFY],
  "memory.atomic.wait32": [op.KIND_WAITING, op.ATOMIC_WAIT32],
  "memory.atomic.wait64": [op.KIND_WAITING, op.ATOMIC_WAIT64],
  "atomic.fence": [op.KIND_FENCE, 0],
  "pause": [op.KIND_PAUSE, 0],
  "try_table": [op.KIND_TRY_TABLE, 0],
  "try": [op.KIND_TRY, 0],
  "catch": [op.KIND_CATCH, 0],
  "catch_all": [op.KIND_CATCH_ALL, 0],
  "delegate": [op.KIND_DELEGATE, 0],
  "throw": [op.KIND_THROW, 0],
  "throw_ref": [op.KIND_THROW_REF, 0],
  "rethrow": [op.KIND_RETHROW, 0],
  "i64.add128": [op.KIND_WIDE_SUM, op.ADD],
  "i64.sub128": [op.KIND_WIDE_SUM, op.SUB],
  "i64.mul_wide_s": [op.KIND_WIDE_PRODUCT, 1],
  "i64.mul_wide_u": [op.KIND_WIDE_PRODUCT, 0],
  "i32.const": [op.KIND_CONST32, 0],
  "f32.const": [op.KIND_CONST32, 0],
  "i64.const": [op.KIND_CONST64, 0],
  "f64.const": [op.KIND_CONST64, 0],
  "i32.eqz": [op.KIND_EQZ, 0],
  "i64.eqz": [op.KIND_EQZ, 0],
  "i32.div_s": [op.KIND_DIVIDE, op.DIV_S],
  "i32.div_u": [op.KIND_DIVIDE, op.DIV_U],
  "i32.rem_s": [op.KIND_DIVIDE, op.REM_S],
  "i32.rem_u": [op.KIND_DIVIDE, op.REM_U],
  "i64.div_s": [op.KIND_DIVIDE, op.DIV_S],
  "i64.div_u": [op.KIND_DIVIDE, op.DIV_U],
  "i64.rem_s": [op.KIND_DIVIDE, op.REM_S],
  "i64.rem_u": [op.KIND_DIVIDE, op.REM_U],
  "memory.size": [op.KIND_MEMORY_SIZE, 0],
  "memory.grow": [op.KIND_MEMORY_GROW, 0],
  "memory.copy": [op.KIND_MEMORY_COPY, 0],
  "memory.fill": [op.KIND_MEMORY_FILL, 0],
  "memory.init": [op.KIND_MEMORY_INIT, 0],
  "data.drop": [op.KIND_DATA_DROP, 0],
  "table.get": [op.KIND_TABLE_GET, 0],
  "table.set": [op.KIND_TABLE_SET, 0],
  "table.size": [op.KIND_TABLE_SIZE, 0],
  "table.grow": [op.KIND_TABLE_GROW, 0],
  "table.fill": [op.KIND_TABLE_FILL, 0],
  "table.copy": [op.KIND_TABLE_COPY, 0],
  "table.init": [op.KIND_TABLE_INIT, 0],
  "elem.drop": [op.KIND_ELEM_DROP, 0],
  "ref.null": [op.KIND_REF_NULL, 0],
  "ref.is_null": [op.KIND_REF_IS_NULL, 0],
  "ref.func": [op.KIND_REF_FUNC, 0],
  "ref.as_non_null": [op.KIND_REF_AS_NON_NULL, 0],
  "br_on_null": [op.KIND_BR_ON_NULL, 0],
  "br_on_non_null": [op.KIND_BR_ON_NON_NULL, 0],
  "struct.new": [op.KIND_STRUCT_NEW, 0],
  "struct.new_default": [op.KIND_STRUCT_NEW_DEFAULT, 0],
  "struct.get": [op.KIND_STRUCT_GET, op.ACCESS_WHOLE],
  "struct.get_s": [op.KIND_STRUCT_GET, op.ACCESS_SIGNED],
  "struct.get_u": [op.KIND_STRUCT_GET, op.ACCESS_UNSIGNED],
  "struct.set": [op.KIND_STRUCT_SET, 0],
  "array.new": [op.KIND_ARRAY_NEW, 0],
  "array.new_default": [op.KIND_ARRAY_NEW_DEFAULT, 0],
  "array.new_fixed": [op.KIND_ARRAY_NEW_FIXED, 0],
  "array.new_data": [op.KIND_ARRAY_NEW_DATA, 0],
  "array.new_elem": [op.KIND_ARRAY_NEW_ELEM, 0],
  "array.get": [op.KIND_ARRAY_GET, op.ACCESS_WHOLE],
  "array.get_s": [op.KIND_ARRAY_GET, op.ACCESS_SIGNED],
  "array.get_u": [op.KIND_ARRAY_GET, op.ACCESS_UNSIGNED],
  "array.set": [op.KIND_ARRAY_SET, 0],
  "array.len": [op.KIND_ARRAY_LEN, 0],
  "array.fill": [op.KIND_ARRAY_FILL, 0],
  "array.copy": [op.KIND_ARRAY_COPY, 0],
  "array.init_data": [op.KIND_ARRAY_INIT_DATA, 0],
  "array.init_elem": [op.KIND_ARRAY_INIT_ELEM, 0],
  "ref.test": [op.KIND_REF_TEST, 0],
  "ref.test(null)": [op.KIND_REF_TEST, 1],
  "ref.cast": [op.KIND_REF_CAST, 0],
  "ref.cast(null)": [op.KIND_REF_CAST, 1],
  "br_on_cast": [op.KIND_BR_ON_CAST, 0],
  "br_on_cast_fail": [op.KIND_BR_ON_CAST_FAIL, 0],
  "any.convert_extern": [op.KIND_ANY_CONVERT, 0],
  "extern.convert_any": [op.KIND_EXTERN_CONVERT, 0],
  "ref.i31": [op.KIND_REF_I31, 0],
  "i31.get_s": [op.KIND_I31_GET, op.SHR_S],
  "i31.get_u": [op.KIND_I31_GET, op.SHR_U],
  "ref.eq": [op.KIND_REF_EQ, 0],
  "struct.new_desc": [op.KIND_STRUCT_NEW_DESC, 0],
  "struct.new_default_desc": [op.KIND_STRUCT_NEW_DESC, 1],
  "ref.get_desc": [op.KIND_REF_GET_DESC, 0],
  "ref.cast_desc_eq": [op.KIND_REF_CAST_DESC_EQ, 0],
  "ref.cast_desc_eq(null)": [op.KIND_REF_CAST_DESC_EQ, 1],
  "br_on_cast_desc_eq": [op.KIND_BR_ON_CAST_DESC_EQ, 0],
  "br_on_cast_desc_eq_fail": [op.KIND_BR_ON_CAST_DESC_EQ, 1],
  "cont.new": [op.KIND_CONT_NEW, 0],
  "cont.bind": [op.KIND_CONT_BIND, 0],
  "suspend": [op.KIND_SUSPEND, 0],
  "resume": [op.KIND_RESUME, 0],
  "resume_throw": [op.KIND_RESUME_THROW, 0],
  "resume_throw_ref": [op.KIND_RESUME_THROW_REF, 0],
  "switch": [op.KIND_SWITCH, 0],
};

/** Atomic operations by the word in their mnemonics. */
const MODIFY: Readonly<Record<string, Lowering>> = {
  add: [op.KIND_ATOMIC_MODIFY, op.ATOMIC_ADD],
  sub: [op.KIND_ATOMIC_MODIFY, op.ATOMIC_SUB],
  and: [op.KIND_ATOMIC_MODIFY, op.ATOMIC_AND],
  or: [op.KIND_ATOMIC_MODIFY, op.ATOMIC_OR],
  xor: [op.KIND_ATOMIC_MODIFY, op.ATOMIC_XOR],
  xchg: [op.KIND_ATOMIC_MODIFY, op.ATOMIC_EXCHANGE],
  cmpxchg: [op.KIND_COMPARE_EXCHANGE, 0],
  load: [op.KIND_ATOMIC_LOAD, 0],
  store: [op.KIND_ATOMIC_STORE, 0],
};
const ATOMIC = /^i(?:32|64)\.atomic\.(?:rmw\d*\.)?([a-z]+)\d*(?:_u)?$/;

const ACCESS = /^[if](?:32|64)\.(load|store)(?:\d+)?(_s)?(?:_u)?$/;

/** Relaxed instructions by name: the strict operation that they are. */
const RELAXED: Readonly<Record<string, number>> = {
  relaxed_swizzle: op.V_SWIZZLE,
  relaxed_laneselect: op.V_BITSELECT,
  relaxed_min: op.V_FMIN,
  relaxed_max: op.V_FMAX,
  relaxed_q15mulr_s: op.V_Q15MULR_S,
  relaxed_madd: op.V_MADD,
  relaxed_nmadd: op.V_NMADD,
  relaxed_dot_i8x16_i7x16_s: op.V_RELAXED_DOT,
  relaxed_dot_i8x16_i7x16_add_s: op.V_RELAXED_DOT_ADD,
};

/** Vector instructions without operation of the IR, by pattern. */
const VECTOR_PATTERNS: readonly (readonly [RegExp, Lowering])[] = [
  [/^v128\.load$/, [op.KIND_LOAD, 0]],
  [/^v128\.store$/, [op.KIND_STORE, 0]],
  [/^v128\.const$/, [op.KIND_CONST128, 0]],
  [/^i8x16\.shuffle$/, [op.KIND_SHUFFLE, 0]],
  [/^v128\.load\d+x\d_s$/, [op.KIND_VECTOR_LOAD, op.V_LOAD_EXTEND_S]],
  [/^v128\.load\d+x\d_u$/, [op.KIND_VECTOR_LOAD, op.V_LOAD_EXTEND_U]],
  [/^v128\.load\d+_splat$/, [op.KIND_VECTOR_LOAD, op.V_LOAD_SPLAT]],
  [/^v128\.load\d+_zero$/, [op.KIND_VECTOR_LOAD, op.V_LOAD_ZERO]],
  [/^v128\.load\d+_lane$/, [op.KIND_LOAD_LANE, 0]],
  [/^v128\.store\d+_lane$/, [op.KIND_STORE_LANE, 0]],
  [/\.shl$/, [op.KIND_VECTOR_SHIFT, op.V_SHL]],
  [/\.shr_s$/, [op.KIND_VECTOR_SHIFT, op.V_SHR_S]],
  [/\.shr_u$/, [op.KIND_VECTOR_SHIFT, op.V_SHR_U]],
  [/\.extract_lane(_u)?$/, [op.KIND_EXTRACT_LANE, 0]],
  [/\.extract_lane_s$/, [op.KIND_EXTRACT_LANE, 1]],
  [/\.replace_lane$/, [op.KIND_REPLACE_LANE, 0]],
  [/trunc_(sat_)?f\d+x\d_s/, [op.KIND_VECTOR, op.V_TRUNC_SAT_S]],
  [/trunc_(sat_)?f\d+x\d_u/, [op.KIND_VECTOR, op.V_TRUNC_SAT_U]],
];

const OPERATIONS: Readonly<Record<string, number>> = { ...op };

function vectorLowering(row: OpcodeRow): Lowering {
  const { mnemonic, ir, results } = row;
  if (ir === "VSPLAT") return [op.KIND_SPLAT, 0];
  const operation = ir === undefined
    ? RELAXED[mnemonic.slice(mnemonic.indexOf(".") + 1)]
    : OPERATIONS[`V_${ir.slice(1)}`];
  if (operation !== undefined) return [results === "i" ? op.KIND_VECTOR_TEST : op.KIND_VECTOR, operation];
  const found = VECTOR_PATTERNS.find(([pattern]) => pattern.test(mnemonic));
  if (found === undefined) throw new Bug(`The baseline tier has no operation for ${mnemonic}`);
  return found[1];
}

const SHAPES = ["i8x16", "i16x8", "i32x4", "i64x2", "f32x4", "f64x2"];
/** Shapes of loads and stores of a part, by the part's mnemonic; of a truncation, that of its operand. */
const PART_SHAPES: readonly (readonly [RegExp, number])[] = [
  [/load8x8/, op.I16X8],
  [/load16x4/, op.I32X4],
  [/load32x2/, op.I64X2],
  [/32_zero/, op.F32X4],
  [/64_zero/, op.F64X2],
  [/8_(splat|lane)/, op.I8X16],
  [/16_(splat|lane)/, op.I16X8],
  [/32_(splat|lane)/, op.I32X4],
  [/64_(splat|lane)/, op.I64X2],
  [/trunc_(sat_)?f32x4/, op.F32X4],
  [/trunc_(sat_)?f64x2/, op.F64X2],
];

function shapeOf(mnemonic: string): number {
  const part = PART_SHAPES.find(([pattern]) => pattern.test(mnemonic));
  return part === undefined ? Math.max(0, SHAPES.indexOf(mnemonic.slice(0, 5))) : part[1];
}

function loweringOf(row: OpcodeRow): Lowering {
  if (row.prefix === 0xfd) return vectorLowering(row);
  const access = ACCESS.exec(row.mnemonic);
  if (access !== null && row.prefix === 0) {
    return access[1] === "load" ? [op.KIND_LOAD, access[2] === undefined ? 0 : 1] : [op.KIND_STORE, 0];
  }
  const atomic = ATOMIC.exec(row.mnemonic);
  if (atomic !== null) return MODIFY[atomic[1]];
  const scalar = row.ir === undefined ? undefined : BY_IR[row.ir];
  const lowering = BY_NAME[row.mnemonic] ?? scalar;
  if (lowering === undefined) throw new Bug(`The baseline tier has no kind for ${row.mnemonic}`);
  return lowering;
}

/** The properties of a row that fuel and determinism depend on. */
function flagsOf({ id, mnemonic }: OpcodeRow): number {
  const endsBefore = /^(if|loop|else|end|catch|catch_all|delegate)$/.test(mnemonic);
  return (ENDS_REGION[id] !== 0 ? layout.FLAG_ENDS_REGION : 0) | (endsBefore ? layout.FLAG_REGION_ENDS_BEFORE : 0) |
    (MAKES_NAN[id] === 1 ? layout.FLAG_MAKES_NAN32 : MAKES_NAN[id] === 2 ? layout.FLAG_MAKES_NAN64 : 0);
}

/** The bytes of the kernel's opcode table, for layout.OPCODES. */
export function opcodeTable(): Uint8Array {
  const start = layout.OPCODE_ROWS - layout.OPCODES;
  const bytes = new Uint8Array(start + OPCODES.length * layout.OPCODE_ROW);
  const view = new DataView(bytes.buffer);
  const pageCodes = layout.OPCODE_PAGE_BYTES / 2;
  for (const row of OPCODES) {
    const { id } = row;
    const [kind, operation] = loweringOf(row);
    const at = start + id * layout.OPCODE_ROW;
    view.setUint16((pageOf(row.prefix) * pageCodes + row.code) * 2, layout.OPCODES + at, true);
    bytes[at + layout.ROW_KIND] = kind;
    bytes[at + layout.ROW_ARGUMENT] = operation;
    bytes[at + layout.ROW_OPERANDS] = OPERANDS[id] < 0 ? layout.SPECIAL : OPERANDS[id];
    bytes[at + layout.ROW_TOP] = TOP[id];
    bytes[at + layout.ROW_TOP + 1] = SECOND[id];
    bytes[at + layout.ROW_TOP + 2] = THIRD[id];
    bytes[at + layout.ROW_RESULT] = RESULT[id];
    bytes[at + layout.ROW_FEATURE] = FEATURES[id];
    bytes[at + layout.ROW_WIDTH] = Math.max(row.naturalAlign, 0);
    bytes[at + layout.ROW_ADDRESSES] = ADDRESSES[id];
    bytes[at + layout.ROW_CHECKS] = CHECKS[id];
    bytes[at + layout.ROW_LANES] = LANE_LIMIT[id];
    view.setInt32(at + layout.ROW_PLAN, PLAN_BY_ID[id], true);
    bytes[at + layout.ROW_PRICE] = FUEL_PRICE[id];
    bytes[at + layout.ROW_BULK_SHIFT] = FUEL_BULK_SHIFT[id];
    bytes[at + layout.ROW_FLAGS] = flagsOf(row);
    bytes[at + layout.ROW_SHAPE] = shapeOf(row.mnemonic);
  }
  return bytes;
}
