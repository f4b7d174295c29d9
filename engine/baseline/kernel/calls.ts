/**
 * Calls in live code. The arguments, which have been checked, are the top operands; they are moved to the registers of
 * the calling convention or to the overflow buffer, and results come back the same way. Values that live across the
 * call are stored to their homes first.
 */
import * as code from "./code.ts";
import { queueCrossCall, queueCrossTailCall } from "./fragments.ts";
import * as cond from "./conditions.ts";
import {
  CELLS_TYPES,
  CONTEXT_HEAP,
  DESCRIPTOR_DEEP,
  DESCRIPTOR_DISPLAY,
  DESCRIPTOR_SIZE,
  DISPLAY_LENGTH,
  OVERFLOW_ENTRY,
  RECORD_TYPE_ID,
  TRAP_INDIRECT_CALL_TYPE,
  TRAP_NULL_FUNCTION,
  TRAP_UNDEFINED_ELEMENT,
  TRAP_UNINITIALIZED_ELEMENT,
} from "./constants.ts";
import { dropFrame } from "./epilogue.ts";
import * as landings from "./landings.ts";
import * as layout from "./layout.ts";
import * as machine from "./machine.ts";
import { type i32, load32, trailingZeros } from "./memory.ts";
import { leaveDepth } from "./metering.ts";
import * as operands from "./operands.ts";
import { ENTRY } from "./operands.ts";
import * as op from "./operations.ts";
import { instructionOffset } from "./reader.ts";
import { loadCheckedElement, recordOffset } from "./storage.ts";
import { bankOf, I32, I64, inexact, isExact, isWide, typeRow, V128 } from "./types.ts";

/**
 * The register of the next value of `bank` after `general` values of the general and `vector` values of the vector
 * bank; NO_REGISTER for the overflow buffer.
 */
function argumentRegister(bank: i32, general: i32, vector: i32): i32 {
  return machine.parameterRegister(bank, bank === 0 ? general : vector);
}

/** Moves the topmost `count` operands to the argument locations of the callee, and pops them. */
function passArguments(count: i32): void {
  const first = operands.top - count * ENTRY;
  operands.flushRegisters(first);
  passOverflow(first);
  operands.beginMoves();
  let general: i32 = 0;
  let vector: i32 = 0;
  for (let entry: i32 = first; entry < operands.top; entry += ENTRY) {
    const bank = bankOf(operands.entryType(entry));
    const register = argumentRegister(bank, general, vector);
    const from = operands.currentRegister(entry);
    if (register !== machine.NO_REGISTER && from !== machine.NO_REGISTER) operands.addMove(register, from);
    if (bank === 0) general = general + 1;
    else vector = vector + 1;
  }
  operands.makeMoves();
  loadArguments(first);
  while (operands.top > first) operands.popEntry();
  operands.freeAll();
}

/** Loads the register arguments that are not in registers yet; no register holds another live value. */
function loadArguments(first: i32): void {
  let general: i32 = 0;
  let vector: i32 = 0;
  for (let entry: i32 = first; entry < operands.top; entry += ENTRY) {
    const bank = bankOf(operands.entryType(entry));
    const register = argumentRegister(bank, general, vector);
    if (register !== machine.NO_REGISTER && operands.currentRegister(entry) === machine.NO_REGISTER) {
      code.reserveCode(64);
      operands.loadInto(entry, register);
    }
    if (bank === 0) general = general + 1;
    else vector = vector + 1;
  }
}

/** Stores the arguments beyond the registers to the overflow buffer. */
function passOverflow(first: i32): void {
  let general: i32 = 0;
  let vector: i32 = 0;
  let k: i32 = 0;
  for (let entry: i32 = first; entry < operands.top; entry += ENTRY) {
    const type = operands.entryType(entry);
    const bank = bankOf(type);
    if (argumentRegister(bank, general, vector) === machine.NO_REGISTER) {
      code.reserveCode(64);
      const scratch = machine.scratchOf(1);
      const from = bank === 1 ? scratch : operands.ownRegister(entry);
      if (bank === 1) operands.loadInto(entry, from);
      machine.overflowBuffer(machine.SCRATCH);
      machine.storeTo(type, from, machine.SCRATCH, k * OVERFLOW_ENTRY);
      if (bank === 0) operands.putHome(entry);
    }
    if (bank === 0) general = general + 1;
    else vector = vector + 1;
    k = k + 1;
  }
}

/** Pushes the `count` results of a call, whose types begin at address `list`. */
function takeResults(list: i32, count: i32): void {
  operands.forgetLocals();
  const first = operands.top;
  let general: i32 = 0;
  let vector: i32 = 0;
  for (let k: i32 = 0; k < count; k++) {
    const type = load32(list + k * 4);
    const bank = bankOf(type);
    const register = machine.resultRegister(bank, bank === 0 ? general : vector);
    if (register === machine.NO_REGISTER) operands.pushHome(type);
    else operands.pushRegister(type, register);
    if (bank === 0) general = general + 1;
    else vector = vector + 1;
  }
  if (general > 2 || vector > 2) takeOverflow(first, count);
}

/** Loads the values of entries from `first` on that are in their homes from the overflow buffer. */
export function takeOverflow(first: i32, count: i32): void {
  for (let k: i32 = 0; k < count; k++) {
    const entry = first + k * ENTRY;
    if (!operands.isInHome(entry)) continue;
    code.reserveCode(64);
    const type = operands.entryType(entry);
    const scratch = type === V128 ? machine.scratchOf(1) : machine.SCRATCH;
    const as = type === V128 ? V128 : bankOf(type) === 1 || isWide(type) === 1 ? machine.WIDE : I32;
    machine.overflowBuffer(machine.SCRATCH);
    machine.loadFrom(as, scratch, machine.SCRATCH, k * OVERFLOW_ENTRY);
    machine.storeHome(as, scratch, operands.entryHome(entry));
  }
}

/** The register of result `k` of the types at `list`, or NO_REGISTER. */
function placeOfResult(list: i32, k: i32): i32 {
  const bank = bankOf(load32(list + k * 4));
  let before: i32 = 0;
  for (let j: i32 = 0; j < k && before < 2; j++) if (bankOf(load32(list + j * 4)) === bank) before = before + 1;
  return machine.resultRegister(bank, before);
}

/** Moves the topmost operands, the function's results, to the result locations of the calling convention. */
export function passResults(list: i32, count: i32): void {
  const first = operands.top - count * ENTRY;
  for (let k: i32 = 0; k < count; k++) {
    if (placeOfResult(list, k) === machine.NO_REGISTER) passResultOverflow(first + k * ENTRY, load32(list + k * 4), k);
  }
  operands.beginMoves();
  for (let k: i32 = 0; k < count; k++) {
    const register = placeOfResult(list, k);
    const from = operands.currentRegister(first + k * ENTRY);
    if (register !== machine.NO_REGISTER && from !== machine.NO_REGISTER) operands.addMove(register, from);
  }
  operands.makeMoves();
  for (let k: i32 = 0; k < count; k++) {
    const entry = first + k * ENTRY;
    const register = placeOfResult(list, k);
    if (register !== machine.NO_REGISTER && operands.currentRegister(entry) === machine.NO_REGISTER) {
      operands.loadInto(entry, register);
    }
  }
}

function passResultOverflow(entry: i32, type: i32, k: i32): void {
  code.reserveCode(64);
  const from = bankOf(type) === 1 ? machine.scratchOf(1) : operands.ownRegister(entry);
  if (bankOf(type) === 1) operands.loadInto(entry, from);
  machine.overflowBuffer(machine.SCRATCH);
  machine.storeTo(type, from, machine.SCRATCH, k * OVERFLOW_ENTRY);
  if (bankOf(type) === 0) operands.putHome(entry);
}

function noteCall(): void {
  code.callSite(0, instructionOffset, landings.useCurrent(), 0);
}

/** Calls a routine of the runtime with the topmost `count` operands. */
export function callBuiltin(builtin: i32, count: i32): void {
  passArguments(count);
  machine.callParking(builtin);
  noteCall();
  operands.forgetLocals();
}

/** Calls a builtin that never leaves machine code with the topmost `count` operands. */
export function callNativeBuiltin(builtin: i32, count: i32): void {
  passArguments(count);
  machine.callNative(builtin);
  noteCall();
  operands.forgetLocals();
}

/** Calls function `target` of type `type`, an address of a row. */
export function emitCall(target: i32, type: i32): void {
  leaveDepth(false);
  passArguments(load32(type + layout.TYPE_PARAM_COUNT));
  const imported = load32(layout.H_IMPORTED_FUNCS);
  if (target >= imported) {
    machine.callFunction(target - imported);
    noteCall();
  } else {
    machine.contextAddress(machine.RECORD_REGISTER, recordOffset(target));
    callRecord(true);
  }
  takeResults(load32(type + layout.TYPE_RESULTS), load32(type + layout.TYPE_RESULT_COUNT));
}

/** Calls the record in the record register. With `isImport`, a record of this context belongs to a host function. */
function callRecord(isImport: boolean): void {
  machine.compareRecordContext();
  const cross = machine.jumpIf(cond.NE);
  if (isImport) machine.callHostRecord();
  else machine.callOwnRecord();
  noteCall();
  queueCrossCall(cross, code.at, landings.useCurrent(), instructionOffset);
}

/** Reserves the record register for the current instruction. */
function claimRecordRegister(): void {
  operands.vacate(1 << machine.RECORD_REGISTER);
  operands.claim(machine.RECORD_REGISTER);
}

export function emitCallIndirect(typeIndex: i32, table: i32): void {
  const type = typeRow(typeIndex);
  loadElementRecord(typeIndex, table);
  callClaimedRecord(type);
}

/**
 * Loads the record of the element whose index is on top into the record register. Traps unless the element exists and
 * its type matches.
 */
function loadElementRecord(typeIndex: i32, table: i32): void {
  const entry = operands.popEntry();
  operands.vacate(1 << machine.RECORD_REGISTER);
  const index = operands.toRegister(entry);
  loadCheckedElement(table, machine.RECORD_REGISTER, index, TRAP_UNDEFINED_ELEMENT);
  operands.release(entry);
  operands.claim(machine.RECORD_REGISTER);
  // Allocate before the scratch register is in use: spilling an entry may need it to address a distant home.
  const t = operands.allocate(0);
  machine.faultSite(TRAP_UNINITIALIZED_ELEMENT, instructionOffset);
  machine.loadFrom(I32, machine.SCRATCH, machine.RECORD_REGISTER, RECORD_TYPE_ID);
  compareType(typeIndex, t);
  operands.freeRegister(t);
  machine.trapIf(cond.NE, TRAP_INDIRECT_CALL_TYPE, instructionOffset);
}

/** d = the address of the descriptor of the type whose canonical id is in the scratch register, which is changed. */
export function loadDescriptor(d: i32): void {
  machine.loadContext(I64, d, CONTEXT_HEAP);
  machine.loadFrom(I64, d, d, CELLS_TYPES);
  machine.shiftImmediate(op.SHL, 1, machine.SCRATCH, machine.SCRATCH, trailingZeros(DESCRIPTOR_SIZE));
  machine.binary(op.ADD, 1, d, d, machine.SCRATCH);
}

/**
 * Compares the canonical type id in the scratch register with that of heap type `heap`, a type index: EQ if it is that
 * type or, unless `heap` is exact, a subtype. Changes `register`.
 */
export function compareType(heap: i32, register: i32): void {
  const index = inexact(heap);
  const type = typeRow(index);
  const expected = load32(layout.H_TYPE_IDS_OFFSET) + index * 4;
  if (isExact(heap) || load32(type + layout.TYPE_FINAL) !== 0) {
    machine.compareContext(0, machine.SCRATCH, expected);
    return;
  }
  const depth = load32(type + layout.TYPE_DEPTH);
  loadDescriptor(register);
  if (depth < DISPLAY_LENGTH) machine.loadFrom(I32, register, register, DESCRIPTOR_DISPLAY + depth * 4);
  else {
    machine.loadFrom(I64, register, register, DESCRIPTOR_DEEP);
    machine.loadFrom(I32, register, register, depth * 4);
  }
  machine.compareContext(0, register, expected);
}

function callClaimedRecord(type: i32): void {
  leaveDepth(false);
  passArguments(load32(type + layout.TYPE_PARAM_COUNT));
  callRecord(false);
  takeResults(load32(type + layout.TYPE_RESULTS), load32(type + layout.TYPE_RESULT_COUNT));
}

/** Pops the reference on top into the record register. */
function takeRecord(): void {
  const entry = operands.popEntry();
  claimRecordRegister();
  operands.loadInto(entry, machine.RECORD_REGISTER);
  operands.release(entry);
  operands.claim(machine.RECORD_REGISTER);
}

export function emitCallRef(typeIndex: i32): void {
  takeRecord();
  leaveDepth(false);
  const type = typeRow(typeIndex);
  passArguments(load32(type + layout.TYPE_PARAM_COUNT));
  machine.faultSite(TRAP_NULL_FUNCTION, instructionOffset);
  callRecord(false);
  takeResults(load32(type + layout.TYPE_RESULTS), load32(type + layout.TYPE_RESULT_COUNT));
}

// Tail calls: the frame is released before the jump to the callee.

export function emitTailCall(target: i32, type: i32): void {
  leaveDepth(true);
  passArguments(load32(type + layout.TYPE_PARAM_COUNT));
  const imported = load32(layout.H_IMPORTED_FUNCS);
  if (target >= imported) {
    dropFrame();
    machine.jumpToFunction(target - imported);
  } else {
    machine.contextAddress(machine.RECORD_REGISTER, recordOffset(target));
    jumpToRecord();
  }
}

function jumpToRecord(): void {
  machine.compareRecordContext();
  queueCrossTailCall(machine.jumpIf(cond.NE));
  dropFrame();
  machine.jumpToRecord();
}

export function emitTailCallIndirect(typeIndex: i32, table: i32): void {
  loadElementRecord(typeIndex, table);
  leaveDepth(true);
  passArguments(load32(typeRow(typeIndex) + layout.TYPE_PARAM_COUNT));
  jumpToRecord();
}

export function emitTailCallRef(typeIndex: i32): void {
  takeRecord();
  leaveDepth(true);
  passArguments(load32(typeRow(typeIndex) + layout.TYPE_PARAM_COUNT));
  machine.faultSite(TRAP_NULL_FUNCTION, instructionOffset);
  jumpToRecord();
}
