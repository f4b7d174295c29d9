/**
 * Loads, stores and atomic operations in live code. An access to memory 0 with guard pages needs no check: its fault is
 * the trap. An intrinsic module's accesses to memory 0 are unchecked. All others compare the end of the access with the
 * length of the memory first. For a shared memory, the context holds a previous length: an access beyond it reads the
 * current length (out_of_line.ts).
 *
 * Traps of atomic operations are checked in this order: unaligned, out of bounds, not shared.
 */
import { callBuiltin } from "./calls.ts";
import * as code from "./code.ts";
import { queueBounds } from "./fragments.ts";
import * as cond from "./conditions.ts";
import {
  BUILTIN_MEMORY_NOTIFY,
  BUILTIN_MEMORY_WAIT32,
  BUILTIN_MEMORY_WAIT64,
  MEMORY_BASE_FIELD,
  MEMORY_LENGTH_FIELD,
  MODE_EXPLICIT_BOUNDS,
  MODE_MASK_MEMORIES,
  MODE_UNCHECKED,
  TRAP_MEMORY_OUT_OF_BOUNDS,
} from "./constants.ts";
import * as layout from "./layout.ts";
import * as machine from "./machine.ts";
import { type i32, load32 } from "./memory.ts";
import * as operands from "./operands.ts";
import * as op from "./operations.ts";
import { high, instructionOffset, low, memory } from "./reader.ts";
import { isGuardable, isMemory64, isShared, memoryOffset } from "./storage.ts";
import { bankOf, I32, isWide } from "./types.ts";

function hasExplicitBounds(): boolean {
  return (load32(layout.H_MODE) & MODE_EXPLICIT_BOUNDS) !== 0;
}

function masksMemories(): boolean {
  return (load32(layout.H_MODE) & MODE_MASK_MEMORIES) !== 0;
}

function isUnchecked(): boolean {
  return (load32(layout.H_MODE) & MODE_UNCHECKED) !== 0;
}

/**
 * Checks an access of `width` bytes at the address in `register` and prepares the machine's memory operand. The access
 * must be the next instruction.
 */
export function reachMemory(register: i32, width: i32): void {
  reach(register, width, false);
}

/** Checks an atomic access of `width` bytes and prepares its memory operand. */
function reachAtomic(register: i32, width: i32): void {
  reach(register, width, true);
}

function reach(register: i32, width: i32, isAtomic: boolean): void {
  const guarded = memory === 0 && !hasExplicitBounds() && (isGuardable(0) || isUnchecked());
  if (!guarded && masksMemories()) {
    reachMasked(register, width, isAtomic);
    return;
  }
  if (!guarded) checkBounds(register, width);
  if (memory === 0) machine.prepareAccess(register, low, high);
  else machine.prepareFarAccess(register, low, high, memoryOffset(memory) + MEMORY_BASE_FIELD);
  if (isAtomic) machine.prepareAtomic();
  if (guarded) machine.faultSite(TRAP_MEMORY_OUT_OF_BOUNDS, instructionOffset);
}

function checkBounds(register: i32, width: i32): void {
  machine.reachEnd(register, low, high, width, isMemory64(memory), instructionOffset);
  compareLength(cond.GT_U);
}

/** Compares the machine's scratch register with the length of the memory; traps on `outside`. */
function compareLength(outside: i32): void {
  if (memory === 0 && hasExplicitBounds()) machine.compareLength();
  else machine.compareContextLength(memoryOffset(memory) + MEMORY_LENGTH_FIELD);
  if (!isShared(memory)) {
    machine.trapIf(outside, TRAP_MEMORY_OUT_OF_BOUNDS, instructionOffset);
    return;
  }
  const branch = machine.jumpIf(outside);
  queueBounds(branch, code.at, memory, instructionOffset);
}

/** As reach, for an access whose whole distance from the start of the memory is masked: offset 0 is in every memory. */
function reachMasked(register: i32, width: i32, isAtomic: boolean): void {
  const distance = operands.allocate(0);
  machine.reachLast(distance, register, low, high, width, isMemory64(memory), instructionOffset);
  compareLength(cond.GE_U);
  machine.maskAddress(distance);
  if (memory === 0) machine.prepareAccess(distance, 0, 0);
  else machine.prepareFarAccess(distance, 0, 0, memoryOffset(memory) + MEMORY_BASE_FIELD);
  if (isAtomic) machine.prepareAtomic();
  // No other instruction allocates it before the access.
  operands.freeRegister(distance);
}

export function emitLoad(width: i32, isSigned: i32, type: i32): void {
  const address = operands.popEntry();
  const register = operands.toRegister(address);
  const d = operands.destination(bankOf(type), address, 0);
  reachMemory(register, 1 << width);
  machine.loadMemory(width, isSigned, type, d);
  operands.pushRegister(type, d);
}

/** Whether the entry is a constant that storeMemoryConstant can store. */
function isStorable(entry: i32, width: i32): boolean {
  if (!operands.isConstant(entry)) return false;
  const bits = operands.constantLow(entry);
  if (bankOf(operands.entryType(entry)) === 1) return width === 2;
  return width < 3 || operands.constantHigh(entry) === bits >> 31;
}

export function emitStore(width: i32, type: i32): void {
  const value = operands.popEntry();
  const address = operands.popEntry();
  const register = operands.toRegister(address);
  if (isStorable(value, width)) {
    machine.takeConstant(width, operands.constantLow(value));
    reachMemory(register, 1 << width);
    machine.storeMemoryConstant(width, operands.constantLow(value));
  } else {
    const s = operands.toRegister(value);
    reachMemory(register, 1 << width);
    machine.storeMemory(width, type, s);
  }
  operands.release(value);
  operands.release(address);
}

// Atomic operations.

function checkAlignment(register: i32, width: i32): void {
  const mask = (1 << width) - 1;
  if (mask !== 0) machine.checkAlignment(register, low & mask, mask, instructionOffset);
}

export function emitAtomicLoad(width: i32, type: i32): void {
  const address = operands.popEntry();
  const register = operands.toRegister(address);
  checkAlignment(register, width);
  const d = operands.destination(0, address, 0);
  reachAtomic(register, 1 << width);
  machine.loadAtomic(width, type, d);
  operands.pushRegister(type, d);
}

export function emitAtomicStore(width: i32): void {
  const value = operands.popEntry();
  const address = operands.popEntry();
  const register = operands.toRegister(address);
  const s = operands.ownRegisterOf(value);
  checkAlignment(register, width);
  reachAtomic(register, 1 << width);
  machine.exchangeMemory(width, s);
  operands.release(value);
  operands.release(address);
}

/** A register with the value of a popped entry, other than the register that compare-and-exchange uses. */
function awayFromExchange(entry: i32): i32 {
  const register = operands.toRegister(entry);
  if (register !== machine.EXCHANGE_REGISTER) return register;
  const other = operands.allocate(0);
  machine.move(1, other, register);
  operands.replaceRegister(entry, other);
  return other;
}

/**
 * Compiles add, sub, and, or, xor and exchange; the result is the old value. And, or and xor are compare-and-exchange
 * loops.
 */
export function emitAtomicModify(operation: i32, width: i32, type: i32): void {
  const value = operands.popEntry();
  const address = operands.popEntry();
  operands.vacate(1 << machine.EXCHANGE_REGISTER);
  const isLoop = operation === op.ATOMIC_AND || operation === op.ATOMIC_OR || operation === op.ATOMIC_XOR;
  const register = awayFromExchange(address);
  const v = isLoop ? awayFromExchange(value) : operands.ownRegisterOf(value);
  let result = v;
  if (isLoop) {
    operands.claim(machine.EXCHANGE_REGISTER);
    result = machine.EXCHANGE_REGISTER;
  }
  const temporary = isLoop ? operands.allocate(0) : v;
  if (operation === op.ATOMIC_SUB) machine.negate(isWide(type), v);
  checkAlignment(register, width);
  reachAtomic(register, 1 << width);
  if (isLoop) {
    machine.modifyMemory(
      operation === op.ATOMIC_AND ? op.AND : operation === op.ATOMIC_OR ? op.OR : op.XOR,
      width,
      v,
      temporary,
    );
    operands.freeRegister(temporary);
    operands.release(value);
  } else if (operation === op.ATOMIC_EXCHANGE) machine.exchangeMemory(width, v);
  else machine.addMemory(width, v);
  operands.release(address);
  machine.zeroExtendWidth(width, result);
  operands.pushRegister(type, result);
}

export function emitCompareExchange(width: i32, type: i32): void {
  const replacement = operands.popEntry();
  const expected = operands.popEntry();
  const address = operands.popEntry();
  operands.vacate(1 << machine.EXCHANGE_REGISTER);
  const register = awayFromExchange(address);
  const s = awayFromExchange(replacement);
  operands.loadInto(expected, machine.EXCHANGE_REGISTER);
  operands.release(expected);
  operands.claim(machine.EXCHANGE_REGISTER);
  checkAlignment(register, width);
  reachAtomic(register, 1 << width);
  machine.compareExchange(width, s);
  operands.release(address);
  operands.release(replacement);
  machine.zeroExtendWidth(width, machine.EXCHANGE_REGISTER);
  operands.pushRegister(type, machine.EXCHANGE_REGISTER);
}

/**
 * `memory.atomic.wait` and `notify`: calls a routine with the memory, the address and the `count` operands above it.
 */
export function emitWaiting(operation: i32, count: i32): void {
  const entry = operands.top - (count + 1) * operands.ENTRY;
  const width = operation === op.ATOMIC_WAIT64 ? 3 : 2;
  const register = operands.ownRegister(entry);
  checkAlignment(register, width);
  // The routine checks bounds, but address + offset must not wrap before it does.
  if (isMemory64(memory)) checkBounds(register, 1 << width);
  operands.widen(entry);
  machine.addOffset(register, low, high);
  operands.insertConstant(memory, count + 1);
  const builtin = operation === op.ATOMIC_NOTIFY
    ? BUILTIN_MEMORY_NOTIFY
    : operation === op.ATOMIC_WAIT64
    ? BUILTIN_MEMORY_WAIT64
    : BUILTIN_MEMORY_WAIT32;
  callBuiltin(builtin, count + 2);
  operands.pushResult(I32, machine.resultRegister(0, 0), 0);
}
