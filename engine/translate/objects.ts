/**
 * Structures and i31 references (specification, 4.4.5 and 4.4.6). In: operands on the translator's stack. Out:
 * allocation, loads and stores of fields (gc_layout.ts). Null needs no check: the access faults in the first page, and
 * the fault is the trap.
 */
import { OBJECT } from "../abi/gc_layout.ts";
import { CLASS_CONSTANT, REGION, region, regionKind } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { idOf } from "../wasm/opcodes.ts";
import { I16, I8 } from "../wasm/types.ts";
import type { Translation } from "./translation.ts";
import { tyOf } from "../wasm/ir_types.ts";
import { notCompiled } from "./failures.ts";
import type { ObjectType } from "./module_facts.ts";

const { I32, I64, NONE, REF } = TY;
const CONSTANT_CONTEXT = region(REGION.CONTEXT, CLASS_CONSTANT);
/** Headers are constant once the object exists. */
const CONSTANT_POINTER = region(REGION.POINTER, CLASS_CONSTANT);

/** The bits of a reference, as i64. */
export function bitsOf(t: Translation, reference: number): number {
  return t.b.unary(OP.BITCAST, I64, reference);
}

/** Traps with `code` if `reference` is null. */
function trapIfNull(t: Translation, reference: number, code: number): void {
  t.b.trapIf(t.b.binary(OP.EQ, I32, reference, t.b.constant(REF, 0, 0)), code);
}

/** Operation that stores a value of `storage`. */
export function storeOp(storage: number): number {
  return storage === I8 ? OP.STORE8 : storage === I16 ? OP.STORE16 : OP.STORE;
}

/** Operation that loads a value of `storage`; `signed` applies to packed types. */
export function loadOp(storage: number, signed: boolean): number {
  if (storage === I8) return signed ? OP.LOAD8_S : OP.LOAD8_U;
  if (storage === I16) return signed ? OP.LOAD16_S : OP.LOAD16_U;
  return OP.LOAD;
}

/** The IR type of a field on the operand stack. */
export function fieldTy(storage: number): number {
  return storage === I8 || storage === I16 ? I32 : tyOf(storage);
}

/** Whether `value` is known to be all zeros. */
export function isZeroValue(t: Translation, value: number): boolean {
  const { f, b } = t;
  if (f.ty[value] !== TY.V128) return b.isZero(value);
  return value === t.zeros[TY.V128] || (b.isConst(value) && value === t.vectorConstant(0, 0, 0, 0));
}

/** A new structure of type `index`: its header is written, its fields are zero. */
export function allocateStruct(t: Translation, index: number, type: ObjectType): number {
  const { b, env } = t;
  const id = b.emit(OP.LOAD32_U, I64, 0, 0, CONSTANT_CONTEXT, env.typeIdsOffset + index * 4);
  const object = b.emit(OP.GC_ALLOC, REF, b.i64(type.bytes, 0), 0, 0, 0);
  b.emit(OP.STORE, NONE, object, id, CONSTANT_POINTER, OBJECT.TYPE_ID);
  return object;
}

/** A new structure of type `index` with the values on the stack as its fields. */
export function structOfFields(t: Translation, index: number): number {
  const { b, env, stack } = t;
  const type = env.objectTypes[index]!;
  const count = type.storage.length;
  const object = allocateStruct(t, index, type);
  t.sp -= count;
  for (let k = 0; k < count; k++) {
    const value = stack[t.sp + k];
    if (isZeroValue(t, value)) continue;
    b.emit(storeOp(type.storage[k]), NONE, object, value, type.regions[k], type.offsets[k]);
  }
  return object;
}

/** The null check of a field beyond the first page. */
function checkFarField(t: Translation, object: number, word: number): void {
  if (regionKind(word) !== REGION.STRUCT) trapIfNull(t, object, TRAP.NULL_STRUCTURE);
}

function structGet(t: Translation, imm: Immediates, signed: boolean): void {
  const { storage, regions, offsets } = t.env.objectTypes[imm.index]!;
  const field = imm.index2;
  const word = regions[field];
  const object = t.pop();
  checkFarField(t, object, word);
  const op = loadOp(storage[field], signed);
  t.push(t.b.emit(op, fieldTy(storage[field]), object, TRAP.NULL_STRUCTURE, word, offsets[field]));
}

function structSet(t: Translation, imm: Immediates): void {
  const { storage, regions, offsets } = t.env.objectTypes[imm.index]!;
  const field = imm.index2;
  const word = regions[field];
  const value = t.pop();
  const object = t.pop();
  checkFarField(t, object, word);
  t.b.emit(storeOp(storage[field]), NONE, object, value, word, offsets[field]);
}

function refI31(t: Translation): void {
  const { b } = t;
  const tagged = b.binary(OP.OR, I32, b.binary(OP.SHL, I32, t.pop(), b.i32(1)), b.i32(1));
  t.push(b.unary(OP.BITCAST, REF, b.unary(OP.EXTEND_U, I64, tagged)));
}

function i31Get(t: Translation, op: number): void {
  const { b } = t;
  const reference = t.pop();
  trapIfNull(t, reference, TRAP.NULL_I31);
  t.push(b.binary(op, I32, b.unary(OP.WRAP, I32, bitsOf(t, reference)), b.i32(1)));
}

function refEq(t: Translation): void {
  const b = t.pop();
  t.push(t.b.binary(OP.EQ, I32, t.pop(), b));
}

const STRUCT_NEW = idOf("struct.new");
const STRUCT_NEW_DEFAULT = idOf("struct.new_default");
const STRUCT_GET = idOf("struct.get");
const STRUCT_GET_S = idOf("struct.get_s");
const STRUCT_GET_U = idOf("struct.get_u");
const STRUCT_SET = idOf("struct.set");
const REF_I31 = idOf("ref.i31");
const I31_GET_S = idOf("i31.get_s");
const I31_GET_U = idOf("i31.get_u");
const REF_EQ = idOf("ref.eq");
const ANY_CONVERT_EXTERN = idOf("any.convert_extern");
const EXTERN_CONVERT_ANY = idOf("extern.convert_any");

/** Translates the instruction of row `id`. */
export function translateObject(t: Translation, id: number, imm: Immediates): void {
  switch (id) {
    case STRUCT_GET:
    case STRUCT_GET_U:
      structGet(t, imm, false);
      break;
    case STRUCT_GET_S:
      structGet(t, imm, true);
      break;
    case STRUCT_SET:
      structSet(t, imm);
      break;
    case STRUCT_NEW:
      t.push(structOfFields(t, imm.index));
      break;
    case STRUCT_NEW_DEFAULT:
      t.reserve(1);
      t.push(allocateStruct(t, imm.index, t.env.objectTypes[imm.index]!));
      break;
    case REF_I31:
      refI31(t);
      break;
    case I31_GET_S:
      i31Get(t, OP.SHR_S);
      break;
    case I31_GET_U:
      i31Get(t, OP.SHR_U);
      break;
    case REF_EQ:
      refEq(t);
      break;
    case ANY_CONVERT_EXTERN:
    case EXTERN_CONVERT_ANY:
      // References of both hierarchies have the same representation.
      break;
    default:
      throw notCompiled(id, t.b.pos);
  }
}
