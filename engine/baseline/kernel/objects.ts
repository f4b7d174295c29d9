/**
 * Structures, arrays and i31 references in live code (abi/gc_layout.ts). Operands have been checked; they are popped,
 * and a result is pushed. An access that faults for null in the first page needs no check: the fault is the trap.
 *
 * Allocation takes the first slot of a free list, or calls out of line (out_of_line.ts) a routine that preserves all
 * registers. Values may therefore stay in registers; the collector finds them in the routine's frame.
 */
import { callBuiltin, callNativeBuiltin } from "./calls.ts";
import * as code from "./code.ts";
import { queueAllocation } from "./fragments.ts";
import * as cond from "./conditions.ts";
import {
  BUILTIN_ARRAY_INIT_DATA,
  BUILTIN_ARRAY_INIT_ELEM,
  BUILTIN_ARRAY_NEW_DATA,
  BUILTIN_ARRAY_NEW_ELEM,
  BUILTIN_MEMORY_MOVE,
  BUILTIN_MEMORY_SET,
  CELLS_CLASS_OF,
  CELLS_FREE,
  CONTEXT_HEAP,
  MAX_SMALL_BYTES,
  NO_BYTES,
  OBJECT_FIELDS,
  OBJECT_LENGTH,
  OBJECT_TYPE_ID,
  PIECE_BYTES,
  REF_TAG_I31,
  TRAP_ARRAY_OUT_OF_BOUNDS,
  TRAP_NULL_ARRAY,
  TRAP_NULL_DESCRIPTOR,
  TRAP_NULL_I31,
  TRAP_NULL_REFERENCE,
  TRAP_NULL_STRUCTURE,
} from "./constants.ts";
import * as layout from "./layout.ts";
import * as machine from "./machine.ts";
import { type i32, load32 } from "./memory.ts";
import { newRef } from "./module.ts";
import * as operands from "./operands.ts";
import * as op from "./operations.ts";
import { index, index2, instructionOffset } from "./reader.ts";
import { bankOf, HEAP_I31, I32, I64, isNullable, refType, storageWidth, typeRow, unpacked } from "./types.ts";

/** Size in bytes of the first page, which is never mapped: accesses of null at smaller offsets fault. */
const FIRST_PAGE: i32 = 4096;

/** The row of field `k` of the structure or array type with row `type`. */
export function fieldRow(type: i32, k: i32): i32 {
  return load32(type + layout.TYPE_FIELDS) + k * layout.FIELD_ROW;
}

function storageOf(field: i32): i32 {
  return load32(field + layout.FIELD_STORAGE);
}

// Accesses of the prepared operand.

function loadField(storage: i32, access: i32, d: i32): void {
  machine.loadMemory(storageWidth(storage), access === op.ACCESS_SIGNED ? 1 : 0, unpacked(storage), d);
}

function storeField(storage: i32, s: i32): void {
  machine.storeMemory(storageWidth(storage), unpacked(storage), s);
}

/** Whether a popped operand is known to be all zeros. */
function isZero(entry: i32): boolean {
  return operands.isConstant(entry) && operands.constantLow(entry) === 0 && operands.constantHigh(entry) === 0;
}

// Allocation.

/**
 * d = a slot of `bytes` bytes from the free list of `sizeClass`, or, if the class is −1, from the runtime; changes `t`
 */
function takeSlot(d: i32, t: i32, bytes: i32, sizeClass: i32): void {
  if (sizeClass < 0) {
    machine.constant(machine.SCRATCH, bytes, 0, 0);
    machine.callAllocate();
    code.callSite(0, instructionOffset, 0, 0);
    machine.move(1, d, machine.SCRATCH);
    return;
  }
  const cell = CELLS_FREE + 8 * sizeClass;
  machine.loadContext(I64, t, CONTEXT_HEAP);
  machine.loadFrom(I64, d, t, cell);
  machine.compareImmediate(1, d, 0);
  const empty = machine.jumpIf(cond.EQ);
  machine.loadFrom(I64, machine.SCRATCH, d, 0);
  machine.storeTo(I64, machine.SCRATCH, t, cell);
  queueAllocation(empty, code.at, d, bytes, instructionOffset);
}

/** d = a slot for the number of bytes in register `bytes`; changes `t` and `u` */
function takeSlotOf(d: i32, t: i32, u: i32, bytes: i32): void {
  machine.loadContext(I64, t, CONTEXT_HEAP);
  machine.compareImmediate(1, bytes, MAX_SMALL_BYTES);
  const large = machine.jumpIf(cond.GT_U);
  machine.binaryImmediate(op.ADD, 1, u, bytes, 7);
  machine.shiftImmediate(op.SHR_U, 1, u, u, 3);
  machine.binary(op.ADD, 1, u, u, t);
  machine.prepareField(u, CELLS_CLASS_OF);
  machine.loadMemory(0, 0, I32, u);
  machine.loadElement(d, t, u);
  machine.compareImmediate(1, d, 0);
  const empty = machine.jumpIf(cond.EQ);
  machine.loadFrom(I64, machine.SCRATCH, d, 0);
  machine.storeElement(machine.SCRATCH, t, u);
  queueAllocation(large, code.at, d, -1 - bytes, instructionOffset);
  queueAllocation(empty, code.at, d, -1 - bytes, instructionOffset);
}

function typeId(): i32 {
  return load32(layout.H_TYPE_IDS_OFFSET) + index * 4;
}

/** Returns a register with a new structure of the current type, with row `type`; its fields are zero. */
function newStructure(type: i32): i32 {
  const d = operands.allocate(0);
  const t = operands.allocate(0);
  takeSlot(d, t, load32(type + layout.TYPE_BYTES), load32(type + layout.TYPE_CLASS));
  machine.loadContext(I32, machine.SCRATCH, typeId());
  machine.storeTo(I64, machine.SCRATCH, d, OBJECT_TYPE_ID);
  operands.freeRegister(t);
  return d;
}

/**
 * Returns a register with a new array of the current type, whose elements are zero: `length` is a register, `shift`
 * log2 of the element size. Fuel has been charged; the runtime checks the size.
 */
function newArray(length: i32, shift: i32): i32 {
  const d = operands.allocate(0);
  const t = operands.allocate(0);
  const u = operands.allocate(0);
  const bytes = operands.allocate(0);
  machine.shiftImmediate(op.SHL, 1, bytes, length, shift);
  machine.binaryImmediate(op.ADD, 1, bytes, bytes, OBJECT_FIELDS);
  takeSlotOf(d, t, u, bytes);
  machine.loadContext(I32, machine.SCRATCH, typeId());
  machine.storeTo(I32, machine.SCRATCH, d, OBJECT_TYPE_ID);
  machine.storeTo(I32, length, d, OBJECT_LENGTH);
  operands.freeRegister(bytes);
  operands.freeRegister(u);
  operands.freeRegister(t);
  return d;
}

/** Stores the top operand to a field of the new object in register `object`. */
function initialize(object: i32, storage: i32, offset: i32): void {
  code.reserveCode(64);
  const entry = operands.popEntry();
  if (!isZero(entry)) {
    const s = operands.toRegister(entry);
    machine.prepareField(object, offset);
    storeField(storage, s);
  }
  operands.release(entry);
}

function pushObject(register: i32): void {
  operands.pushRegister(newRef(index), register);
}

// Structures.

/** Stores the top operands to the fields of the new object of the type with row `type` in register `d`. */
function initializeFields(d: i32, type: i32): void {
  for (let k = load32(type + layout.TYPE_FIELD_COUNT) - 1; k >= 0; k--) {
    const field = fieldRow(type, k);
    initialize(d, storageOf(field), load32(field + layout.FIELD_OFFSET));
  }
}

export function emitStructNew(): void {
  const type = typeRow(index);
  const d = newStructure(type);
  initializeFields(d, type);
  pushObject(d);
}

export function emitStructNewDefault(): void {
  pushObject(newStructure(typeRow(index)));
}

/**
 * `struct.new_desc`, and with `isDefault` `struct.new_default_desc`: the descriptor on top is a field of the object,
 * and stays on the stack while registers are allocated.
 */
export function emitStructNewDesc(isDefault: boolean): void {
  const type = typeRow(index);
  const entry = operands.top - operands.ENTRY;
  if (isNullable(operands.entryType(entry))) checkNull(operands.ownRegister(entry), TRAP_NULL_DESCRIPTOR);
  const d = newStructure(type);
  const descriptor = operands.popEntry();
  machine.storeTo(I64, operands.toRegister(descriptor), d, load32(type + layout.TYPE_DESCRIPTOR_OFFSET));
  operands.release(descriptor);
  if (!isDefault) initializeFields(d, type);
  pushObject(d);
}

/** Traps with `trap` if the reference in `register` is null. */
function checkNull(register: i32, trap: i32): void {
  machine.compareImmediate(1, register, 0);
  machine.trapIf(cond.EQ, trap, instructionOffset);
}

/**
 * Checks the object in `register` for null and prepares its field with row `field`. The access must be the next
 * instruction.
 */
function prepareFieldOf(register: i32, field: i32): void {
  const offset = load32(field + layout.FIELD_OFFSET);
  if (offset >= FIRST_PAGE) checkNull(register, TRAP_NULL_STRUCTURE);
  machine.prepareField(register, offset);
  if (offset < FIRST_PAGE) machine.faultSite(TRAP_NULL_STRUCTURE, instructionOffset);
}

/** `ref.get_desc`: the descriptor of an object of the type that the instruction names, as a reference of `type`. */
export function emitRefGetDesc(type: i32): void {
  const object = operands.popEntry();
  const register = operands.toRegister(object);
  const d = operands.destination(0, object, 0);
  const offset = load32(typeRow(index) + layout.TYPE_DESCRIPTOR_OFFSET);
  if (offset < FIRST_PAGE) machine.faultSite(TRAP_NULL_REFERENCE, instructionOffset);
  else checkNull(register, TRAP_NULL_REFERENCE);
  machine.loadFrom(I64, d, register, offset);
  operands.pushRegister(type, d);
}

export function emitStructGet(access: i32): void {
  const field = fieldRow(typeRow(index), index2);
  const object = operands.popEntry();
  const register = operands.toRegister(object);
  const type = unpacked(storageOf(field));
  const d = operands.destination(bankOf(type), object, 0);
  prepareFieldOf(register, field);
  loadField(storageOf(field), access, d);
  operands.pushRegister(type, d);
}

export function emitStructSet(): void {
  const field = fieldRow(typeRow(index), index2);
  const value = operands.popEntry();
  const object = operands.popEntry();
  const s = operands.toRegister(value);
  const register = operands.toRegister(object);
  prepareFieldOf(register, field);
  storeField(storageOf(field), s);
  operands.release(value);
  operands.release(object);
}

// Arrays.

function elementStorage(): i32 {
  return storageOf(fieldRow(typeRow(index), 0));
}

function elementShift(): i32 {
  return load32(typeRow(index) + layout.TYPE_ELEMENT_SHIFT);
}

/** d = the length of the array in register `array`; traps if the array is null */
function loadLength(d: i32, array: i32): void {
  machine.faultSite(TRAP_NULL_ARRAY, instructionOffset);
  machine.loadFrom(I32, d, array, OBJECT_LENGTH);
}

/** Traps unless the array in `array` has elements [start, start + count), which are registers. */
function checkRange(array: i32, start: i32, count: i32): void {
  const length = operands.allocate(0);
  loadLength(length, array);
  machine.binary(op.ADD, 1, machine.SCRATCH, start, count);
  machine.compare(1, machine.SCRATCH, length);
  machine.trapIf(cond.GT_U, TRAP_ARRAY_OUT_OF_BOUNDS, instructionOffset);
  operands.freeRegister(length);
}

/** Replaces the index in `register` by the address of that element of the array in `array`. */
function toElement(register: i32, array: i32, shift: i32): void {
  machine.shiftImmediate(op.SHL, 1, register, register, shift);
  machine.binary(op.ADD, 1, register, register, array);
  machine.binaryImmediate(op.ADD, 1, register, register, OBJECT_FIELDS);
}

/** Frees a register unless it is pinned to a local. */
function free(register: i32): void {
  if (operands.isTemporary(register)) operands.freeRegister(register);
}

/**
 * Writes the value in register `s` to the number of elements in register `count`, from the address in register `start`
 * on. Changes `start` and `count`, and frees all three. Bytes are filled by a routine, which changes all registers;
 * after each piece of wider elements the runtime checks the limits of the call, without collecting.
 */
function fill(start: i32, s: i32, count: i32): void {
  const storage = elementStorage();
  const shift = elementShift();
  if (shift === 0) {
    operands.pushRegister(I64, start);
    operands.pushRegister(I32, s);
    operands.pushRegister(I64, count);
    callNativeBuiltin(BUILTIN_MEMORY_SET, 3);
    return;
  }
  machine.shiftImmediate(op.SHL, 1, count, count, shift);
  machine.binary(op.ADD, 1, count, count, start);
  const unused = operands.allocate(0);
  const header = code.at;
  machine.compare(1, start, count);
  // Not EQ: the address is below the end in each iteration, which the verifier of machine code reads.
  const done = machine.shortBranch(cond.GE_U);
  machine.prepareField(start, 0);
  storeField(storage, s);
  machine.binaryImmediate(op.ADD, 1, start, start, 1 << shift);
  machine.binaryImmediate(op.AND, 1, machine.SCRATCH, start, PIECE_BYTES - 1);
  machine.compareImmediate(1, machine.SCRATCH, 0);
  queueAllocation(machine.jumpIf(cond.EQ), header, unused, NO_BYTES, instructionOffset);
  machine.patchBranch(machine.jump(), header);
  machine.bindShort(done);
  operands.freeRegister(unused);
  free(start);
  free(s);
  free(count);
}

export function emitArrayNew(): void {
  const count = operands.ownRegisterOf(operands.popEntry());
  // The value stays on the stack while registers are allocated.
  const d = newArray(count, elementShift());
  const value = operands.popEntry();
  if (isZero(value)) {
    operands.freeRegister(count);
    pushObject(d);
    return;
  }
  const s = operands.toRegister(value);
  const start = operands.allocate(0);
  machine.binaryImmediate(op.ADD, 1, start, d, OBJECT_FIELDS);
  pushObject(d);
  fill(start, s, count);
}

export function emitArrayNewDefault(): void {
  const count = operands.ownRegisterOf(operands.popEntry());
  const d = newArray(count, elementShift());
  operands.freeRegister(count);
  pushObject(d);
}

export function emitArrayNewFixed(): void {
  const shift = elementShift();
  const storage = elementStorage();
  const length = operands.allocate(0);
  machine.constant(length, index2, 0, 0);
  const d = newArray(length, shift);
  operands.freeRegister(length);
  for (let k = index2 - 1; k >= 0; k--) initialize(d, storage, OBJECT_FIELDS + (k << shift));
  pushObject(d);
}

/** `array.new_data`, `array.new_elem`: calls a routine of the runtime, which creates the array. */
function newFromSegment(builtin: i32): void {
  operands.insertConstant(index2, 2);
  operands.insertConstant(index, 3);
  callBuiltin(builtin, 4);
  pushObject(machine.resultRegister(0, 0));
}

export function emitArrayNewData(): void {
  newFromSegment(BUILTIN_ARRAY_NEW_DATA);
}

export function emitArrayNewElem(): void {
  newFromSegment(BUILTIN_ARRAY_NEW_ELEM);
}

/**
 * Prepares the element at the index in register `i` of the array in register `array`; traps if the array is null or the
 * index out of bounds.
 */
function prepareElementOf(array: i32, i: i32): void {
  machine.faultSite(TRAP_NULL_ARRAY, instructionOffset);
  machine.compareMemory(0, i, array, OBJECT_LENGTH);
  machine.trapIf(cond.GE_U, TRAP_ARRAY_OUT_OF_BOUNDS, instructionOffset);
  machine.prepareElement(array, i, elementShift(), OBJECT_FIELDS);
}

export function emitArrayGet(access: i32): void {
  const storage = elementStorage();
  const type = unpacked(storage);
  const at = operands.popEntry();
  const array = operands.popEntry();
  const i = operands.toRegister(at);
  const register = operands.toRegister(array);
  const d = operands.destination(bankOf(type), array, at);
  prepareElementOf(register, i);
  loadField(storage, access, d);
  operands.pushRegister(type, d);
}

export function emitArraySet(): void {
  const value = operands.popEntry();
  const at = operands.popEntry();
  const array = operands.popEntry();
  const s = operands.toRegister(value);
  const i = operands.toRegister(at);
  const register = operands.toRegister(array);
  prepareElementOf(register, i);
  storeField(elementStorage(), s);
  operands.release(value);
  operands.release(at);
  operands.release(array);
}

export function emitArrayLen(): void {
  const array = operands.popEntry();
  const register = operands.toRegister(array);
  const d = operands.destination(0, array, 0);
  loadLength(d, register);
  operands.pushRegister(I32, d);
}

export function emitArrayFill(): void {
  const count = operands.popEntry();
  const value = operands.popEntry();
  const start = operands.popEntry();
  const array = operands.popEntry();
  const c = operands.ownRegisterOf(count);
  const s = operands.toRegister(value);
  const b = operands.ownRegisterOf(start);
  const a = operands.toRegister(array);
  checkRange(a, b, c);
  toElement(b, a, elementShift());
  operands.release(array);
  fill(b, s, c);
}

export function emitArrayCopy(): void {
  const shift = elementShift();
  const count = operands.popEntry();
  const from = operands.popEntry();
  const source = operands.popEntry();
  const to = operands.popEntry();
  const target = operands.popEntry();
  const c = operands.ownRegisterOf(count);
  const f = operands.ownRegisterOf(from);
  const s = operands.toRegister(source);
  const t = operands.ownRegisterOf(to);
  const d = operands.toRegister(target);
  // Both null checks precede the range checks.
  loadLength(machine.SCRATCH, d);
  loadLength(machine.SCRATCH, s);
  checkRange(d, t, c);
  checkRange(s, f, c);
  toElement(t, d, shift);
  toElement(f, s, shift);
  machine.shiftImmediate(op.SHL, 1, c, c, shift);
  operands.release(source);
  operands.release(target);
  operands.pushRegister(I64, t);
  operands.pushRegister(I64, f);
  operands.pushRegister(I64, c);
  callNativeBuiltin(BUILTIN_MEMORY_MOVE, 3);
}

/** `array.init_data`, `array.init_elem`: the operands are array, start, offset in the segment, and count. */
function initializeFromSegment(builtin: i32): void {
  const count = operands.ownRegister(operands.top - operands.ENTRY);
  const start = operands.ownRegister(operands.top - 3 * operands.ENTRY);
  checkRange(operands.ownRegister(operands.top - 4 * operands.ENTRY), start, count);
  operands.insertConstant(index2, 4);
  operands.insertConstant(index, 5);
  callBuiltin(builtin, 6);
}

export function emitArrayInitData(): void {
  initializeFromSegment(BUILTIN_ARRAY_INIT_DATA);
}

export function emitArrayInitElem(): void {
  initializeFromSegment(BUILTIN_ARRAY_INIT_ELEM);
}

// i31 references.

export function emitRefI31(): void {
  const entry = operands.popEntry();
  const type = refType(0, HEAP_I31);
  if (operands.isConstant(entry)) {
    operands.pushConstant(type, (operands.constantLow(entry) << 1) | REF_TAG_I31, 0);
    return;
  }
  const x = operands.toRegister(entry);
  const d = operands.destination(0, entry, 0);
  machine.shiftImmediate(op.SHL, 0, d, x, 1);
  machine.binaryImmediate(op.OR, 0, d, d, REF_TAG_I31);
  operands.pushRegister(type, d);
}

/** Extracts the value by `shift`: SHR_S for i31.get_s, SHR_U for i31.get_u. */
export function emitI31Get(shift: i32): void {
  const entry = operands.popEntry();
  const x = operands.toRegister(entry);
  machine.compareImmediate(1, x, 0);
  machine.trapIf(cond.EQ, TRAP_NULL_I31, instructionOffset);
  const d = operands.destination(0, entry, 0);
  machine.shiftImmediate(shift, 0, d, x, 1);
  operands.pushRegister(I32, d);
}
