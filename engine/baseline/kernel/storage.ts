/**
 * Memories, globals, tables and references in live code. Operands have been checked; they are popped, and a result is
 * pushed.
 */
import { callBuiltin, callNativeBuiltin } from "./calls.ts";
import * as cond from "./conditions.ts";
import {
  BUILTIN_DATA_DROP,
  BUILTIN_ELEM_DROP,
  BUILTIN_MEMORY_GROW,
  BUILTIN_MEMORY_INIT,
  BUILTIN_MEMORY_MOVE,
  BUILTIN_MEMORY_SET,
  BUILTIN_TABLE_COPY,
  BUILTIN_TABLE_FILL,
  BUILTIN_TABLE_GROW,
  BUILTIN_TABLE_INIT,
  MEMORY_BASE_FIELD,
  MEMORY_LENGTH_FIELD,
  MODE_MASK_TABLES,
  RECORD_SIZE,
  TABLE_BASE_FIELD,
  TABLE_LENGTH_FIELD,
  TRAP_NULL_REFERENCE,
  TRAP_TABLE_OUT_OF_BOUNDS,
} from "./constants.ts";
import * as layout from "./layout.ts";
import * as machine from "./machine.ts";
import { type i32, load32 } from "./memory.ts";
import * as operands from "./operands.ts";
import * as op from "./operations.ts";
import { index, index2, instructionOffset } from "./reader.ts";
import { bankOf, I32, I64, nonNull } from "./types.ts";

// Rows of the module's tables.

function memoryRow(k: i32): i32 {
  return load32(layout.H_MEMORIES) + k * layout.MEMORY_ROW;
}

export function tableRow(k: i32): i32 {
  return load32(layout.H_TABLES) + k * layout.TABLE_ROW;
}

export function globalRow(k: i32): i32 {
  return load32(layout.H_GLOBALS) + k * layout.GLOBAL_ROW;
}

export function isMemory64(k: i32): boolean {
  return (load32(memoryRow(k) + layout.MEMORY_FLAGS) & layout.MEMORY_IS_64) !== 0;
}

function hasBytePages(k: i32): boolean {
  return (load32(memoryRow(k) + layout.MEMORY_FLAGS) & layout.MEMORY_HAS_BYTE_PAGES) !== 0;
}

/** Whether guard pages can bound the accesses of memory `k`. */
export function isGuardable(k: i32): boolean {
  return !isMemory64(k) && !hasBytePages(k);
}

export function isShared(k: i32): boolean {
  return (load32(memoryRow(k) + layout.MEMORY_FLAGS) & layout.MEMORY_IS_SHARED) !== 0;
}

export function isTable64(k: i32): boolean {
  return load32(tableRow(k) + layout.TABLE_IS_64) !== 0;
}

export function memoryOffset(k: i32): i32 {
  return load32(memoryRow(k) + layout.MEMORY_OFFSET);
}

/** Offset in the context of the pointer to a shared memory's current length. */
function sharedLength(k: i32): i32 {
  return load32(memoryRow(k) + layout.MEMORY_SHARED_LENGTH);
}

function tableOffset(k: i32): i32 {
  return load32(tableRow(k) + layout.TABLE_OFFSET);
}

export function emitMemorySize(): void {
  const d = operands.destination(0, 0, 0);
  loadLength(d, index);
  if (!hasBytePages(index)) machine.shiftImmediate(op.SHR_U, 1, d, d, 16);
  operands.pushRegister(isMemory64(index) ? I64 : I32, d);
}

/**
 * d = length in bytes of memory `k`; that of a shared memory is read from its current word, since any thread may grow
 * it
 */
function loadLength(d: i32, k: i32): void {
  if (isShared(k)) {
    machine.loadContext(I64, d, sharedLength(k));
    machine.loadFrom(I64, d, d, 0);
  } else machine.loadContext(I64, d, memoryOffset(k) + MEMORY_LENGTH_FIELD);
}

export function emitMemoryGrow(): void {
  operands.widen(operands.top - operands.ENTRY);
  operands.insertConstant(index, 1);
  callBuiltin(BUILTIN_MEMORY_GROW, 2);
  operands.pushResult(isMemory64(index) ? I64 : I32, machine.resultRegister(0, 0), isMemory64(index) ? 1 : 0);
}

/** Traps unless bytes [start, start + count) are in memory `k`; registers hold 64 bits. */
function checkRange(k: i32, start: i32, count: i32): void {
  const length = operands.allocate(0);
  loadLength(length, k);
  machine.checkRange(start, count, length, isMemory64(k), instructionOffset);
  operands.freeRegister(length);
}

/** Turns the address on the stack, `below` entries under the top, into a pointer into memory `k`. */
function toPointer(below: i32, k: i32): void {
  const entry = operands.top - (below + 1) * operands.ENTRY;
  const register = operands.ownRegister(entry);
  machine.addContext(register, memoryOffset(k) + MEMORY_BASE_FIELD);
}

/** Zero-extends the top three operands to i64, in temporary registers. */
function wideOperands(): void {
  for (let below: i32 = 0; below < 3; below++) {
    const entry = operands.top - (below + 1) * operands.ENTRY;
    operands.widen(entry);
    operands.ownRegister(entry);
  }
}

function operandRegister(below: i32): i32 {
  return operands.ownRegister(operands.top - (below + 1) * operands.ENTRY);
}

export function emitMemoryCopy(): void {
  wideOperands();
  checkRange(index, operandRegister(2), operandRegister(0));
  checkRange(index2, operandRegister(1), operandRegister(0));
  toPointer(2, index);
  toPointer(1, index2);
  callNativeBuiltin(BUILTIN_MEMORY_MOVE, 3);
}

export function emitMemoryFill(): void {
  operands.widen(operands.top - operands.ENTRY);
  operands.widen(operands.top - 3 * operands.ENTRY);
  checkRange(index, operandRegister(2), operandRegister(0));
  toPointer(2, index);
  callNativeBuiltin(BUILTIN_MEMORY_SET, 3);
}

function widenAll(count: i32): void {
  for (let below: i32 = 0; below < count; below++) operands.widen(operands.top - (below + 1) * operands.ENTRY);
}

export function emitMemoryInit(): void {
  widenAll(3);
  operands.insertConstant(index2, 3);
  operands.insertConstant(index, 3);
  callBuiltin(BUILTIN_MEMORY_INIT, 5);
}

export function emitDataDrop(): void {
  operands.pushConstant(I32, index, 0);
  callBuiltin(BUILTIN_DATA_DROP, 1);
}

// Globals.

export function emitGlobalGet(): void {
  const row = globalRow(index);
  const type = load32(row + layout.GLOBAL_TYPE);
  const offset = load32(row + layout.GLOBAL_OFFSET);
  const d = operands.destination(bankOf(type), 0, 0);
  if ((load32(row + layout.GLOBAL_FLAGS) & layout.GLOBAL_IS_POINTER) !== 0) {
    machine.loadContext(I64, machine.SCRATCH, offset);
    machine.loadFrom(type, d, machine.SCRATCH, 0);
  } else machine.loadContext(type, d, offset);
  operands.pushRegister(type, d);
}

export function emitGlobalSet(): void {
  const row = globalRow(index);
  const type = load32(row + layout.GLOBAL_TYPE);
  const offset = load32(row + layout.GLOBAL_OFFSET);
  const value = operands.popEntry();
  const s = operands.toRegister(value);
  if ((load32(row + layout.GLOBAL_FLAGS) & layout.GLOBAL_IS_POINTER) !== 0) {
    machine.loadContext(I64, machine.SCRATCH, offset);
    machine.storeTo(type, s, machine.SCRATCH, 0);
  } else machine.storeContext(type, s, offset);
  operands.release(value);
}

// Tables.

/** Traps with `trap` unless the index in `register` is below the length of the table. */
function checkTableIndex(table: i32, register: i32, trap: i32): void {
  machine.compareContext(isTable64(table) ? 1 : 0, register, tableOffset(table) + TABLE_LENGTH_FIELD);
  machine.trapIf(cond.GE_U, trap, instructionOffset);
}

/** Loads the address of the table's first element into `register`; preserves the flags. */
function loadTableBase(table: i32, register: i32): void {
  machine.loadContext(I64, register, tableOffset(table) + TABLE_BASE_FIELD);
}

function masksTables(): boolean {
  return (load32(layout.H_MODE) & MODE_MASK_TABLES) !== 0;
}

/** d = the element of the table whose index, in `index`, is checked: traps with `trap`. */
export function loadCheckedElement(table: i32, d: i32, index: i32, trap: i32): void {
  if (masksTables()) {
    const base = d === index ? operands.allocate(0) : d;
    checkTableIndex(table, index, trap);
    loadTableBase(table, base);
    machine.maskIndex(index, isTable64(table) ? 1 : 0);
    machine.loadElement(d, base, machine.SCRATCH);
    if (base !== d) operands.freeRegister(base);
    return;
  }
  checkTableIndex(table, index, trap);
  loadTableBase(table, machine.SCRATCH);
  machine.loadElement(d, machine.SCRATCH, index);
}

export function emitTableGet(): void {
  const entry = operands.popEntry();
  const register = operands.toRegister(entry);
  // Choose the destination before the scratch register is in use: this may move homes.
  const d = operands.freshDestination(0, register, register, register);
  loadCheckedElement(index, d, register, TRAP_TABLE_OUT_OF_BOUNDS);
  operands.release(entry);
  operands.pushRegister(load32(tableRow(index) + layout.TABLE_ELEMENT), d);
}

export function emitTableSet(): void {
  const value = operands.popEntry();
  const entry = operands.popEntry();
  const s = operands.toRegister(value);
  const register = operands.toRegister(entry);
  const masked = masksTables();
  const base = masked ? operands.allocate(0) : machine.SCRATCH;
  checkTableIndex(index, register, TRAP_TABLE_OUT_OF_BOUNDS);
  loadTableBase(index, base);
  if (masked) machine.maskIndex(register, isTable64(index) ? 1 : 0);
  machine.storeElement(s, base, masked ? machine.SCRATCH : register);
  if (masked) operands.freeRegister(base);
  operands.release(value);
  operands.release(entry);
}

export function emitTableSize(): void {
  const type = isTable64(index) ? I64 : I32;
  const d = operands.destination(0, 0, 0);
  machine.loadContext(type, d, tableOffset(index) + TABLE_LENGTH_FIELD);
  operands.pushRegister(type, d);
}

export function emitTableGrow(): void {
  widenAll(1);
  operands.insertConstant(index, 2);
  callBuiltin(BUILTIN_TABLE_GROW, 3);
  operands.pushResult(isTable64(index) ? I64 : I32, machine.resultRegister(0, 0), isTable64(index) ? 1 : 0);
}

export function emitTableFill(): void {
  widenAll(1);
  operands.widen(operands.top - 3 * operands.ENTRY);
  operands.insertConstant(index, 3);
  callBuiltin(BUILTIN_TABLE_FILL, 4);
}

export function emitTableCopy(): void {
  widenAll(3);
  operands.insertConstant(index2, 3);
  operands.insertConstant(index, 4);
  callBuiltin(BUILTIN_TABLE_COPY, 5);
}

export function emitTableInit(): void {
  widenAll(3);
  operands.insertConstant(index, 3);
  operands.insertConstant(index2, 4);
  callBuiltin(BUILTIN_TABLE_INIT, 5);
}

export function emitElemDrop(): void {
  operands.pushConstant(I32, index, 0);
  callBuiltin(BUILTIN_ELEM_DROP, 1);
}

// References.

/** Offset in the context of the record of function `k`. */
export function recordOffset(k: i32): i32 {
  const imported = load32(layout.H_IMPORTED_FUNCS);
  return k < imported
    ? load32(layout.H_IMPORTS_OFFSET) + k * RECORD_SIZE
    : load32(layout.H_FUNCTIONS_OFFSET) + (k - imported) * RECORD_SIZE;
}

export function emitRefFunc(type: i32): void {
  const d = operands.destination(0, 0, 0);
  machine.contextAddress(d, recordOffset(index));
  operands.pushRegister(type, d);
}

export function emitRefIsNull(): void {
  const entry = operands.popEntry();
  machine.compareImmediate(1, operands.toRegister(entry), 0);
  const d = operands.destination(0, entry, 0);
  machine.setCondition(cond.EQ, d);
  operands.pushRegister(I32, d);
}

export function emitRefAsNonNull(): void {
  const entry = operands.popEntry();
  const register = operands.toRegister(entry);
  machine.compareImmediate(1, register, 0);
  machine.trapIf(cond.EQ, TRAP_NULL_REFERENCE, instructionOffset);
  const d = operands.destination(0, entry, 0);
  machine.move(1, d, register);
  operands.pushRegister(nonNull(operands.entryType(entry)), d);
}
