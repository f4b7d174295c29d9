/**
 * Array instructions (specification, 4.4.6.9 ff.). In: operands on the translator's stack. Out: a load of the length,
 * which doubles as the null check (it faults in the first page), a comparison of the index, and accesses at an interior
 * address, which keeps the object alive; loops for fills; block moves for copies; runtime calls for instructions that
 * read segments.
 *
 * Ranges are compared in 64-bit arithmetic, which 32-bit offsets and lengths cannot overflow.
 */
import { BUILTIN, NO_BYTES, PIECE_BYTES } from "../abi/builtins.ts";
import { OBJECT } from "../abi/gc_layout.ts";
import { isBelow } from "../base/numbers.ts";
import { BLOCK_COLD, BLOCK_LOOP } from "../ir/function.ts";
import { CLASS_CONSTANT, REGION, region } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { idOf } from "../wasm/opcodes.ts";
import type { Translation } from "./translation.ts";
import { branchAhead, jumpAhead } from "./block_parameters.ts";
import { callBuiltin } from "./builtin_calls.ts";
import { notCompiled } from "./failures.ts";
import type { ObjectType } from "./module_facts.ts";
import { bitsOf, fieldTy, isZeroValue, loadOp, storeOp } from "./objects.ts";

const { I32, I64, NONE, REF } = TY;
const CONSTANT_CONTEXT = region(REGION.CONTEXT, CLASS_CONSTANT);
const CONSTANT_POINTER = region(REGION.POINTER, CLASS_CONSTANT);
/** Arrays of a constant length up to this limit are filled without a loop. */
const MAX_UNROLLED = 8;

/** Number of elements of `array`; traps when it is null. */
function lengthOf(t: Translation, array: number): number {
  return t.b.emit(OP.LOAD, I32, array, TRAP.NULL_ARRAY, CONSTANT_POINTER, OBJECT.LENGTH);
}

/** Address of element `index` (i32), less the offset of the first. */
function elementAt(t: Translation, array: number, index: number, shift: number): number {
  return t.b.binary(OP.ADD, I64, bitsOf(t, array), scaled(t, index, shift));
}

/** i32 `count` times the size of an element, as i64. */
function scaled(t: Translation, count: number, shift: number): number {
  const { b } = t;
  return b.binary(OP.SHL, I64, b.unary(OP.EXTEND_U, I64, count), b.i64(shift, 0));
}

/** Traps if `array` is null or has no elements [start, start + count). */
function checkRange(t: Translation, array: number, start: number, count: number): void {
  const { b } = t;
  const length = b.unary(OP.EXTEND_U, I64, lengthOf(t, array));
  const end = b.binary(OP.ADD, I64, b.unary(OP.EXTEND_U, I64, start), b.unary(OP.EXTEND_U, I64, count));
  b.trapIf(b.binary(OP.GT_U, I32, end, length), TRAP.ARRAY_OUT_OF_BOUNDS);
}

/** A new array of type `index` with `length` (i32) elements, all zero. */
function allocate(t: Translation, index: number, type: ObjectType, length: number): number {
  const { b, env } = t;
  const id = b.emit(OP.LOAD, I32, 0, 0, CONSTANT_CONTEXT, env.typeIdsOffset + index * 4);
  const bytes = b.binary(OP.ADD, I64, scaled(t, length, type.elementShift), b.i64(OBJECT.FIELDS, 0));
  const array = b.emit(OP.GC_ALLOC, REF, bytes, 0, 0, 0);
  b.emit(OP.STORE, NONE, array, id, CONSTANT_POINTER, OBJECT.TYPE_ID);
  b.emit(OP.STORE, NONE, array, length, CONSTANT_POINTER, OBJECT.LENGTH);
  return array;
}

/**
 * Writes `value` to the `count` (i32) elements from `start` (i32) on, which must exist. After each piece the runtime
 * checks the limits of the call. It does not collect there, so the array need not be a root.
 */
function fill(
  t: Translation,
  type: ObjectType,
  array: number,
  start: number,
  value: number,
  count: number,
): void {
  const { b, f } = t;
  const shift = type.elementShift;
  const word = type.regions[0];
  const op = storeOp(type.storage[0]);
  const first = elementAt(t, array, start, shift);
  if (b.isConst(count) && !isBelow(MAX_UNROLLED, f.imm[count])) {
    for (let k = 0; k < f.imm[count]; k++) b.emit(op, NONE, first, value, word, OBJECT.FIELDS + (k << shift));
    return;
  }
  const from = b.binary(OP.ADD, I64, first, b.i64(OBJECT.FIELDS, 0));
  if (shift === 0) {
    callBuiltin(t, BUILTIN.memory_set, [from, value, b.unary(OP.EXTEND_U, I64, count)]);
    return;
  }
  const end = b.binary(OP.ADD, I64, from, scaled(t, count, shift));
  const size = b.i64(1 << shift, 0);
  const enter = jumpAhead(t, from);
  b.depth++;
  const header = b.openBlock(BLOCK_LOOP, false);
  f.edgeTo[enter] = header;
  const at = b.param(I64);
  // Not EQ: the address is below the end in each iteration, which the verifier of machine code reads.
  const leave = branchAhead(t, b.binary(OP.GE_U, I32, at, end));
  b.emit(op, NONE, at, value, word, 0);
  const next = b.binary(OP.ADD, I64, at, size);
  const rest = b.binary(OP.AND, I64, next, b.i64(PIECE_BYTES - 1, 0));
  const piece = branchAhead(t, b.binary(OP.EQ, I32, rest, b.i64(0, 0)));
  f.edgeTo[jumpAhead(t, next)] = header;
  f.edgeTo[piece] = b.openBlock(BLOCK_COLD, false);
  callBuiltin(t, BUILTIN.gc_allocate, [b.i64(NO_BYTES, 0)]);
  f.edgeTo[jumpAhead(t, next)] = header;
  b.depth--;
  f.edgeTo[leave] = b.openBlock(0, false);
}

function arrayNew(t: Translation, imm: Immediates): void {
  const type = t.env.objectTypes[imm.index]!;
  const length = t.pop();
  const value = t.pop();
  const array = allocate(t, imm.index, type, length);
  if (!isZeroValue(t, value)) fill(t, type, array, t.b.i32(0), value, length);
  t.push(array);
}

function arrayNewFixed(t: Translation, imm: Immediates): void {
  const { b, stack } = t;
  const type = t.env.objectTypes[imm.index]!;
  const count = imm.index2;
  const op = storeOp(type.storage[0]);
  const array = allocate(t, imm.index, type, b.i32(count));
  t.sp -= count;
  for (let k = 0; k < count; k++) {
    const value = stack[t.sp + k];
    if (isZeroValue(t, value)) continue;
    b.emit(op, NONE, bitsOf(t, array), value, type.regions[0], OBJECT.FIELDS + (k << type.elementShift));
  }
  t.reserve(1);
  t.push(array);
}

/** array.new_data, array.new_elem: routine `number` makes the array. */
function arrayNewSegment(t: Translation, imm: Immediates, number: number): void {
  const { b } = t;
  const count = t.pop();
  const from = t.pop();
  t.push(callBuiltin(t, number, [b.i32(imm.index), b.i32(imm.index2), from, count]));
}

function arrayInitSegment(t: Translation, imm: Immediates, number: number): void {
  const { b } = t;
  const count = t.pop();
  const from = t.pop();
  const to = t.pop();
  const array = t.pop();
  checkRange(t, array, to, count);
  callBuiltin(t, number, [b.i32(imm.index), b.i32(imm.index2), array, to, from, count]);
}

/** Traps unless element `index` exists. */
function checkIndex(t: Translation, array: number, index: number): void {
  t.b.trapIf(t.b.binary(OP.GE_U, I32, index, lengthOf(t, array)), TRAP.ARRAY_OUT_OF_BOUNDS);
}

function arrayGet(t: Translation, imm: Immediates, signed: boolean): void {
  const { storage, regions, elementShift } = t.env.objectTypes[imm.index]!;
  const index = t.pop();
  const array = t.pop();
  checkIndex(t, array, index);
  const at = elementAt(t, array, index, elementShift);
  t.push(t.b.emit(loadOp(storage[0], signed), fieldTy(storage[0]), at, 0, regions[0], OBJECT.FIELDS));
}

function arraySet(t: Translation, imm: Immediates): void {
  const { storage, regions, elementShift } = t.env.objectTypes[imm.index]!;
  const value = t.pop();
  const index = t.pop();
  const array = t.pop();
  checkIndex(t, array, index);
  t.b.emit(storeOp(storage[0]), NONE, elementAt(t, array, index, elementShift), value, regions[0], OBJECT.FIELDS);
}

function arrayFill(t: Translation, imm: Immediates): void {
  const count = t.pop();
  const value = t.pop();
  const start = t.pop();
  const array = t.pop();
  checkRange(t, array, start, count);
  fill(t, t.env.objectTypes[imm.index]!, array, start, value, count);
}

function arrayCopy(t: Translation, imm: Immediates): void {
  const { b } = t;
  const shift = t.env.objectTypes[imm.index]!.elementShift;
  const count = t.pop();
  const from = t.pop();
  const source = t.pop();
  const to = t.pop();
  const target = t.pop();
  // The null check precedes every range check.
  lengthOf(t, target);
  lengthOf(t, source);
  checkRange(t, target, to, count);
  checkRange(t, source, from, count);
  const first = b.i64(OBJECT.FIELDS, 0);
  const writeAt = b.binary(OP.ADD, I64, elementAt(t, target, to, shift), first);
  const readAt = b.binary(OP.ADD, I64, elementAt(t, source, from, shift), first);
  callBuiltin(t, BUILTIN.memory_move, [writeAt, readAt, scaled(t, count, shift)]);
}

const ARRAY_NEW = idOf("array.new");
const ARRAY_NEW_DEFAULT = idOf("array.new_default");
const ARRAY_NEW_FIXED = idOf("array.new_fixed");
const ARRAY_NEW_DATA = idOf("array.new_data");
const ARRAY_NEW_ELEM = idOf("array.new_elem");
const ARRAY_GET = idOf("array.get");
const ARRAY_GET_S = idOf("array.get_s");
const ARRAY_GET_U = idOf("array.get_u");
const ARRAY_SET = idOf("array.set");
const ARRAY_LEN = idOf("array.len");
const ARRAY_FILL = idOf("array.fill");
const ARRAY_COPY = idOf("array.copy");
const ARRAY_INIT_DATA = idOf("array.init_data");
const ARRAY_INIT_ELEM = idOf("array.init_elem");

/** Translates the instruction of row `id`. */
export function translateArray(t: Translation, id: number, imm: Immediates): void {
  switch (id) {
    case ARRAY_GET:
    case ARRAY_GET_U:
      arrayGet(t, imm, false);
      break;
    case ARRAY_GET_S:
      arrayGet(t, imm, true);
      break;
    case ARRAY_SET:
      arraySet(t, imm);
      break;
    case ARRAY_LEN:
      t.push(lengthOf(t, t.pop()));
      break;
    case ARRAY_NEW:
      arrayNew(t, imm);
      break;
    case ARRAY_NEW_DEFAULT:
      t.push(allocate(t, imm.index, t.env.objectTypes[imm.index]!, t.pop()));
      break;
    case ARRAY_NEW_FIXED:
      arrayNewFixed(t, imm);
      break;
    case ARRAY_NEW_DATA:
      arrayNewSegment(t, imm, BUILTIN.array_new_data);
      break;
    case ARRAY_NEW_ELEM:
      arrayNewSegment(t, imm, BUILTIN.array_new_elem);
      break;
    case ARRAY_FILL:
      arrayFill(t, imm);
      break;
    case ARRAY_COPY:
      arrayCopy(t, imm);
      break;
    case ARRAY_INIT_DATA:
      arrayInitSegment(t, imm, BUILTIN.array_init_data);
      break;
    case ARRAY_INIT_ELEM:
      arrayInitSegment(t, imm, BUILTIN.array_init_elem);
      break;
    default:
      throw notCompiled(id, t.b.pos);
  }
}
