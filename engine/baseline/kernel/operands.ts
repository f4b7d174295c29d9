/**
 * The operands and locals of the body under compilation: their types, and the locations of their values. Every local
 * and every entry of the operand stack has a home in the frame. The home of a local always holds its value; the most
 * used locals also have a pinned register, which holds the value while it is marked valid. The value of an entry is in
 * its home, in a register, a constant, a local that has not been set since, or in the flags.
 *
 *     [rsp + home]   locals first, then entries from the bottom of the operand stack up; 8 bytes each, 16 for v128
 *
 * Invariants: an entry in a temporary register is that register's only user, and the register is marked used. Popped
 * entries keep their register until they are released. Only the top entry can be in the flags, and only if the next
 * instruction consumes it.
 */
import { reserveCode } from "./code.ts";
import { LOCALS, LOCALS_END, MOVES, OPERANDS, OPERANDS_END, OWNERS, PINS, STATUS_TOO_LARGE } from "./layout.ts";
import * as machine from "./machine.ts";
import { type i32, load32, load8, store32, trailingZeros } from "./memory.ts";
import { end, pos, stop } from "./reader.ts";
import { bankOf, F64, homeBytes, I32, isWide, V128 } from "./types.ts";

// An entry of the operand stack.
export const ENTRY: i32 = 24;
const ENTRY_TYPE: i32 = 0;
const ENTRY_PLACE: i32 = 4;
/** Register, low half of the constant, index of the local, or condition. */
const ENTRY_A: i32 = 8;
/** High half of the constant. */
const ENTRY_B: i32 = 12;
const ENTRY_HOME: i32 = 16;

// Places.
const IN_HOME: i32 = 0;
const IN_REGISTER: i32 = 1;
const IS_CONSTANT: i32 = 2;
const IS_LOCAL: i32 = 3;
const IN_FLAGS: i32 = 4;

/** Above this top, there may be no room for another entry. */
export const OPERANDS_LIMIT: i32 = OPERANDS_END - 16 * ENTRY;

/** Number of registers of both banks. */
const REGISTERS: i32 = 64;

// A local.
export const LOCAL: i32 = 20;
const LOCAL_TYPE: i32 = 0;
const LOCAL_HOME: i32 = 4;
/** Its register, or NO_REGISTER. */
const LOCAL_PIN: i32 = 8;
/** Uses, weighted by loop depth; after the scan, 1 if the local has a value (isLocalSet). */
const LOCAL_USES: i32 = 12;
/** The number of operand stack entries that refer to the local. */
const LOCAL_ENTRIES: i32 = 16;

/** Opcode bytes that the compiler looks ahead for. */
const LOCAL_SET_BYTE: i32 = 0x21;
const LOCAL_TEE_BYTE: i32 = 0x22;

export let localCount: i32 = 0;
/** Address after the top entry. */
export let top: i32 = OPERANDS;
/** The offset after the home of the top entry, and its maximum so far. */
export let homeTop: i32 = 0;
let homeMost: i32 = 0;
/** Registers in use by entries, and pinned registers that hold the current value of their locals, as masks by bank. */
let usedGeneral: i32 = 0;
let usedVector: i32 = 0;
export let validGeneral: i32 = 0;
export let validVector: i32 = 0;
/** All pinned registers. */
let pinnedGeneral: i32 = 0;
let pinnedVector: i32 = 0;
/** Number of pinned locals; the addresses of their rows are listed at PINS. */
let pinCount: i32 = 0;

/** Begins a body without locals. */
export function beginOperands(): void {
  localCount = 0;
  top = OPERANDS;
  homeTop = 0;
  homeMost = 0;
  usedGeneral = 0;
  usedVector = 0;
  validGeneral = 0;
  validVector = 0;
  pinnedGeneral = 0;
  pinnedVector = 0;
  pinCount = 0;
  for (let register: i32 = 0; register < REGISTERS; register++) store32(ownerAt(register), 0);
}

/** Size in bytes of the frame's homes. */
export function frameBytes(): i32 {
  return homeMost;
}

/** Reserves a home of 8 bytes between the locals and the operand stack; returns its offset. */
export function reserveHome(): i32 {
  const home = homeTop;
  homeTop = homeTop + 8;
  homeMost = homeTop;
  return home;
}

// Locals.

export function addLocal(type: i32): void {
  const at = LOCALS + localCount * LOCAL;
  if (at + LOCAL > LOCALS_END) {
    stop(STATUS_TOO_LARGE);
    return;
  }
  store32(at + LOCAL_TYPE, type);
  store32(at + LOCAL_HOME, homeTop);
  store32(at + LOCAL_PIN, machine.NO_REGISTER);
  store32(at + LOCAL_USES, 0);
  store32(at + LOCAL_ENTRIES, 0);
  localCount = localCount + 1;
  homeTop = homeTop + homeBytes(type);
  homeMost = homeTop;
}

function localRow(index: i32): i32 {
  return LOCALS + index * LOCAL;
}

export function localType(index: i32): i32 {
  return load32(localRow(index) + LOCAL_TYPE);
}

export function localHome(index: i32): i32 {
  return load32(localRow(index) + LOCAL_HOME);
}

function countLocalEntry(index: i32, change: i32): void {
  const at = localRow(index) + LOCAL_ENTRIES;
  store32(at, load32(at) + change);
}

/** The pinned register of a local, or NO_REGISTER. */
export function localPin(index: i32): i32 {
  return load32(localRow(index) + LOCAL_PIN);
}

/** Adds a use of local `index`; the sum saturates. */
export function useLocal(index: i32, weight: i32): void {
  const at = localRow(index) + LOCAL_USES;
  const uses = load32(at) + weight;
  store32(at, uses < 0x3fffffff ? uses : 0x3fffffff);
}

/** Whether local `index` has a value: a default, or one that has been set. */
export function isLocalSet(index: i32): boolean {
  return load32(localRow(index) + LOCAL_USES) !== 0;
}

export function setLocalFlag(index: i32, flag: i32): void {
  store32(localRow(index) + LOCAL_USES, flag);
}

/** Minimum weighted uses of a pinned local: fewer do not pay for the moves. */
const MIN_USES: i32 = 2;

/** Pins the most used locals of `bank` to registers. */
export function pinLocals(bank: i32): void {
  for (let k: i32 = 0; machine.pinnedRegister(bank, k) !== machine.NO_REGISTER; k++) {
    let best: i32 = 0;
    let most: i32 = MIN_USES - 1;
    const last = LOCALS + localCount * LOCAL;
    for (let at: i32 = LOCALS; at < last; at += LOCAL) {
      const type = load32(at + LOCAL_TYPE);
      if (load32(at + LOCAL_USES) > most && bankOf(type) === bank) {
        most = load32(at + LOCAL_USES);
        best = at;
      }
    }
    if (best === 0) return;
    const register = machine.pinnedRegister(bank, k);
    store32(best + LOCAL_PIN, register);
    store32(best + LOCAL_USES, 0);
    store32(PINS + pinCount * 4, best);
    pinCount = pinCount + 1;
    if (bank === 0) pinnedGeneral = pinnedGeneral | (1 << register);
    else pinnedVector = pinnedVector | (1 << (register - 32));
  }
}

function markValid(register: i32): void {
  if (register < 32) validGeneral = validGeneral | (1 << register);
  else validVector = validVector | (1 << (register - 32));
}

function isValid(register: i32): boolean {
  return register < 32 ? (validGeneral & (1 << register)) !== 0 : (validVector & (1 << (register - 32))) !== 0;
}

/** Marks the pinned register of local `index` valid. */
export function noteLocalLoaded(index: i32): void {
  markValid(localPin(index));
}

/** Marks all pinned registers invalid, as after a call. */
export function forgetLocals(): void {
  validGeneral = 0;
  validVector = 0;
}

/** Sets the masks of valid pinned registers at a join, where all branches agree on them. */
export function keepLocals(general: i32, vector: i32): void {
  validGeneral = general;
  validVector = vector;
}

/** All pinned registers of `bank`, as a mask. */
export function allPinned(bank: i32): i32 {
  return bank === 0 ? pinnedGeneral : pinnedVector;
}

/** Loads the pinned registers in the masks that are not valid. Preserves the flags. */
export function loadLocals(general: i32, vector: i32): void {
  const missingGeneral = general & ~validGeneral;
  const missingVector = vector & ~validVector;
  if ((missingGeneral | missingVector) === 0) return;
  for (let k: i32 = 0; k < pinCount; k++) {
    const at = load32(PINS + k * 4);
    const register = load32(at + LOCAL_PIN);
    const missing = register < 32 ? missingGeneral >> register : missingVector >> (register - 32);
    if ((missing & 1) !== 0) machine.loadHome(load32(at + LOCAL_TYPE), register, load32(at + LOCAL_HOME));
  }
  validGeneral = validGeneral | missingGeneral;
  validVector = validVector | missingVector;
}

// Registers.

/** Address of the word for `register` at OWNERS: the stack entry in that register, or 0. */
function ownerAt(register: i32): i32 {
  return OWNERS + register * 4;
}

/** Whether the register is a temporary, which operands use. */
export function isTemporary(register: i32): boolean {
  return register < 32
    ? (machine.temporaries(0) & (1 << register)) !== 0
    : (machine.temporaries(1) & (1 << (register - 32))) !== 0;
}

function use(register: i32): void {
  if (register < 32) usedGeneral = usedGeneral | (1 << register);
  else usedVector = usedVector | (1 << (register - 32));
}

export function freeRegister(register: i32): void {
  if (register < 32) usedGeneral = usedGeneral & ~(1 << register);
  else usedVector = usedVector & ~(1 << (register - 32));
}

/**
 * Allocates a temporary register; if none is free, the lowest entry in a register is stored to its home. Preserves the
 * flags.
 */
export function allocate(bank: i32): i32 {
  const used = bank === 0 ? usedGeneral : usedVector;
  let free = machine.temporaries(bank) & ~used;
  if (free === 0) {
    spillLowest(bank);
    free = machine.temporaries(bank) & ~(bank === 0 ? usedGeneral : usedVector);
  }
  const register = trailingZeros(free) + (bank << 5);
  use(register);
  return register;
}

function spillLowest(bank: i32): void {
  let lowest: i32 = 0;
  for (let register = bank << 5; register < (bank << 5) + 32; register++) {
    const entry = load32(ownerAt(register));
    if (entry !== 0 && (lowest === 0 || entry < lowest)) lowest = entry;
  }
  if (lowest !== 0) spill(lowest);
}

/** Stores stack entries in the general registers of `mask` to their homes. Preserves the flags. */
export function vacate(mask: i32): void {
  let left = usedGeneral & mask;
  while (left !== 0) {
    const register = trailingZeros(left);
    left = left & (left - 1);
    const entry = load32(ownerAt(register));
    if (entry !== 0) spill(entry);
  }
}

/** Marks `register` as used by the current instruction. */
export function claim(register: i32): void {
  use(register);
}

/** Stores the entry's value from its register to its home. */
function spill(entry: i32): void {
  const register = load32(entry + ENTRY_A);
  machine.storeHome(load32(entry + ENTRY_TYPE), register, load32(entry + ENTRY_HOME));
  freeRegister(register);
  store32(ownerAt(register), 0);
  store32(entry + ENTRY_PLACE, IN_HOME);
}

// Entries.

function pushEntry(type: i32, place: i32, a: i32, b: i32): void {
  if (top + 8 * ENTRY > OPERANDS_END) {
    stop(STATUS_TOO_LARGE);
    return;
  }
  store32(top + ENTRY_TYPE, type);
  store32(top + ENTRY_PLACE, place);
  store32(top + ENTRY_A, a);
  store32(top + ENTRY_B, b);
  store32(top + ENTRY_HOME, homeTop);
  top = top + ENTRY;
  homeTop = homeTop + homeBytes(type);
  if (homeTop > homeMost) homeMost = homeTop;
}

/** Pushes a value that is in its home, or, in unreachable code, a type. */
export function pushHome(type: i32): void {
  pushEntry(type, IN_HOME, 0, 0);
}

/** In a body that is only validated: puts an operand of `type` at address `entry`. */
export function putType(entry: i32, type: i32): void {
  store32(entry + ENTRY_TYPE, type);
  store32(entry + ENTRY_PLACE, IN_HOME);
}

/** In a body that is only validated: sets the top of the stack. */
export function setTypes(address: i32): void {
  top = address;
}

export function pushRegister(type: i32, register: i32): void {
  if (isTemporary(register)) {
    use(register);
    store32(ownerAt(register), top);
  }
  pushEntry(type, IN_REGISTER, register, 0);
}

export function pushConstant(type: i32, low: i32, high: i32): void {
  pushEntry(type, IS_CONSTANT, low, high);
}

export function pushLocal(index: i32): void {
  countLocalEntry(index, 1);
  pushEntry(localType(index), IS_LOCAL, index, 0);
}

/** Pushes an i32 that the flags hold. */
export function pushFlags(condition: i32): void {
  pushEntry(I32, IN_FLAGS, condition, 0);
}

/** Pops the top entry and returns it. It is readable until the next push and must be released. */
export function popEntry(): i32 {
  top = top - ENTRY;
  homeTop = load32(top + ENTRY_HOME);
  const place = load32(top + ENTRY_PLACE);
  if (place === IS_LOCAL) countLocalEntry(load32(top + ENTRY_A), -1);
  else if (place === IN_REGISTER) store32(ownerAt(load32(top + ENTRY_A)), 0);
  return top;
}

/** Pops and releases the entries above `height`. */
export function dropTo(height: i32): void {
  while (top > height) release(popEntry());
}

/** Sets the tops of the stack and of the homes, without releasing registers. */
export function setTop(height: i32, home: i32): void {
  top = height;
  homeTop = home;
}

export function release(entry: i32): void {
  if (load32(entry + ENTRY_PLACE) !== IN_REGISTER) return;
  const register = load32(entry + ENTRY_A);
  if (isTemporary(register)) freeRegister(register);
}

export function entryType(entry: i32): i32 {
  return load32(entry + ENTRY_TYPE);
}

export function setEntryType(entry: i32, type: i32): void {
  store32(entry + ENTRY_TYPE, type);
}

export function entryHome(entry: i32): i32 {
  return load32(entry + ENTRY_HOME);
}

export function isConstant(entry: i32): boolean {
  return load32(entry + ENTRY_PLACE) === IS_CONSTANT;
}

export function constantLow(entry: i32): i32 {
  return load32(entry + ENTRY_A);
}

export function constantHigh(entry: i32): i32 {
  return load32(entry + ENTRY_B);
}

/** The condition if the entry is in the flags, else −1. */
export function flagsOf(entry: i32): i32 {
  return load32(entry + ENTRY_PLACE) === IN_FLAGS ? load32(entry + ENTRY_A) : -1;
}

/**
 * The home from which an instruction can read the entry's value, or −1 if no home holds it or a pinned register may.
 */
export function readableHome(entry: i32): i32 {
  const place = load32(entry + ENTRY_PLACE);
  if (place === IN_HOME) return load32(entry + ENTRY_HOME);
  if (place !== IS_LOCAL) return -1;
  const index = load32(entry + ENTRY_A);
  return localPin(index) === machine.NO_REGISTER ? localHome(index) : -1;
}

/** The register that holds the entry's value now, or NO_REGISTER. */
export function currentRegister(entry: i32): i32 {
  const place = load32(entry + ENTRY_PLACE);
  if (place === IN_REGISTER) return load32(entry + ENTRY_A);
  if (place !== IS_LOCAL) return machine.NO_REGISTER;
  const pin = localPin(load32(entry + ENTRY_A));
  return pin !== machine.NO_REGISTER && isValid(pin) ? pin : machine.NO_REGISTER;
}

/**
 * Returns a register with the value of a popped entry, for reading only: it may be pinned to a local. Preserves the
 * flags, unless the value is in them.
 */
export function toRegister(entry: i32): i32 {
  const place = load32(entry + ENTRY_PLACE);
  if (place === IN_REGISTER) return load32(entry + ENTRY_A);
  const type = load32(entry + ENTRY_TYPE);
  if (place === IS_LOCAL) {
    const index = load32(entry + ENTRY_A);
    const pin = localPin(index);
    if (pin !== machine.NO_REGISTER) {
      if (!isValid(pin)) machine.loadHome(type, pin, localHome(index));
      markValid(pin);
      return pin;
    }
  }
  const register = allocate(bankOf(type));
  loadInto(entry, register);
  store32(entry + ENTRY_PLACE, IN_REGISTER);
  store32(entry + ENTRY_A, register);
  return register;
}

/** Copies the entry's value to `register`. Preserves the flags, unless the value is in them. */
export function loadInto(entry: i32, register: i32): void {
  const type = load32(entry + ENTRY_TYPE);
  const a = load32(entry + ENTRY_A);
  switch (load32(entry + ENTRY_PLACE)) {
    case IN_HOME:
      machine.loadHome(type, register, load32(entry + ENTRY_HOME));
      break;
    case IN_REGISTER:
      machine.move(isWide(type), register, a);
      break;
    case IS_CONSTANT:
      if (bankOf(type) === 0) machine.constant(register, a, load32(entry + ENTRY_B), isWide(type));
      else if (type === V128) machine.zeroVector(register);
      else machine.floatConstant(register, a, load32(entry + ENTRY_B), type === F64 ? 1 : 0);
      break;
    case IS_LOCAL: {
      const pin = localPin(a);
      if (pin !== machine.NO_REGISTER && isValid(pin)) machine.move(isWide(type), register, pin);
      else machine.loadHome(type, register, localHome(a));
      break;
    }
    case IN_FLAGS:
      machine.setCondition(a, register);
      break;
  }
}

/** Stores the entry's value to `home`. Preserves the flags. */
export function storeInto(entry: i32, home: i32): void {
  const type = load32(entry + ENTRY_TYPE);
  const a = load32(entry + ENTRY_A);
  switch (load32(entry + ENTRY_PLACE)) {
    case IN_HOME:
      if (load32(entry + ENTRY_HOME) !== home) machine.moveHome(type, home, load32(entry + ENTRY_HOME));
      break;
    case IN_REGISTER:
      machine.storeHome(type, a, home);
      break;
    case IS_CONSTANT:
      machine.storeConstant(
        type === I32 || (type !== F64 && bankOf(type) === 1) ? 0 : 1,
        a,
        load32(entry + ENTRY_B),
        home,
      );
      break;
    case IS_LOCAL: {
      const pin = localPin(a);
      if (pin !== machine.NO_REGISTER && isValid(pin)) machine.storeHome(type, pin, home);
      else machine.moveHome(type, home, localHome(a));
      break;
    }
    case IN_FLAGS: {
      const register = toRegister(entry);
      machine.storeHome(type, register, home);
      break;
    }
  }
}

/** Stores the entries from `first` to the top to their homes, constants only if `constants`. Preserves the flags. */
export function flush(first: i32, constants: boolean): void {
  for (let entry: i32 = first; entry < top; entry += ENTRY) {
    const place = load32(entry + ENTRY_PLACE);
    if (place === IN_HOME || (place === IS_CONSTANT && !constants)) continue;
    reserveCode(64);
    storeInto(entry, load32(entry + ENTRY_HOME));
    if (place === IN_REGISTER) {
      release(entry);
      store32(ownerAt(load32(entry + ENTRY_A)), 0);
    } else if (place === IS_LOCAL) countLocalEntry(load32(entry + ENTRY_A), -1);
    store32(entry + ENTRY_PLACE, IN_HOME);
  }
}

/**
 * Stores the values of entries below `limit` that are in registers to their homes, as a call requires. Preserves the
 * flags.
 */
export function flushRegisters(limit: i32): void {
  flushBank(usedGeneral, 0, limit);
  flushBank(usedVector, 32, limit);
}

function flushBank(used: i32, first: i32, limit: i32): void {
  let left = used;
  while (left !== 0) {
    const entry = load32(ownerAt(first + trailingZeros(left)));
    left = left & (left - 1);
    if (entry !== 0 && entry < limit) spill(entry);
  }
}

/** Gives entries that refer to local `index` their own copies before the local changes. Preserves the flags. */
function detachLocal(index: i32): void {
  let left = load32(localRow(index) + LOCAL_ENTRIES);
  for (let entry = top - ENTRY; left > 0; entry -= ENTRY) {
    if (load32(entry + ENTRY_PLACE) !== IS_LOCAL || load32(entry + ENTRY_A) !== index) continue;
    reserveCode(64);
    storeInto(entry, load32(entry + ENTRY_HOME));
    store32(entry + ENTRY_PLACE, IN_HOME);
    left = left - 1;
  }
  store32(localRow(index) + LOCAL_ENTRIES, 0);
}

/**
 * Chooses the register for a result: the one pinned to the local that the next instruction sets, else that of operand
 * `a` or `b` if it is temporary (0: no operand), else another. Releases both operands. Preserves the flags.
 */
export function destination(bank: i32, a: i32, b: i32): i32 {
  const pin = nextLocalPin(bank);
  if (a !== 0) release(a);
  if (b !== 0) release(b);
  if (pin !== machine.NO_REGISTER) return pin;
  const first = temporaryOf(a, bank);
  if (first !== machine.NO_REGISTER) return first;
  const second = temporaryOf(b, bank);
  return second !== machine.NO_REGISTER ? second : allocate(bank);
}

/**
 * Chooses a register for a result that must differ from the operands' registers x, y and z: the one pinned to the local
 * that the next instruction sets, or another.
 */
export function freshDestination(bank: i32, x: i32, y: i32, z: i32): i32 {
  const pin = nextLocalPin(bank);
  return pin !== machine.NO_REGISTER && pin !== x && pin !== y && pin !== z ? pin : allocate(bank);
}

/**
 * Chooses the register for the result of an operation that overwrites its first operand, a popped entry in register x:
 * the one pinned to the local that the next instruction sets, x if it is temporary, or another; never y. Releases the
 * entry.
 */
export function tiedDestination(entry: i32, x: i32, y: i32): i32 {
  const pin = nextLocalPin(x >> 5);
  if (pin !== machine.NO_REGISTER && pin !== y) {
    release(entry);
    return pin;
  }
  if (isTemporary(x) && x !== y) return x;
  const register = allocate(x >> 5);
  release(entry);
  return register;
}

function temporaryOf(entry: i32, bank: i32): i32 {
  if (entry === 0 || load32(entry + ENTRY_PLACE) !== IN_REGISTER) return machine.NO_REGISTER;
  const register = load32(entry + ENTRY_A);
  return register >> 5 === bank && isTemporary(register) ? register : machine.NO_REGISTER;
}

/**
 * The register of `bank` pinned to the local that the next instruction sets, if any: the result is computed there
 * directly.
 */
function nextLocalPin(bank: i32): i32 {
  if (pos + 2 > end) return machine.NO_REGISTER;
  const opcode = load8(pos);
  const index = load8(pos + 1);
  if ((opcode !== LOCAL_SET_BYTE && opcode !== LOCAL_TEE_BYTE) || index >= 0x80 || index >= localCount) {
    return machine.NO_REGISTER;
  }
  const pin = localPin(index);
  if (pin === machine.NO_REGISTER || pin >> 5 !== bank) return machine.NO_REGISTER;
  detachLocal(index);
  return pin;
}

/** Sets local `index` to the value of a popped entry and pushes it again. */
export function teeLocal(index: i32, entry: i32): void {
  writeLocal(index, entry);
  const register = temporaryOf(entry, bankOf(localType(index)));
  if (register !== machine.NO_REGISTER && localPin(index) === machine.NO_REGISTER) {
    pushRegister(localType(index), register);
    return;
  }
  release(entry);
  pushLocal(index);
}

/** Sets local `index` to the value of a popped entry, and releases the entry. Preserves the flags. */
export function setLocal(index: i32, entry: i32): void {
  writeLocal(index, entry);
  release(entry);
}

function writeLocal(index: i32, entry: i32): void {
  detachLocal(index);
  const type = localType(index);
  const home = localHome(index);
  const pin = localPin(index);
  if (isConstant(entry) && type !== V128) {
    if (pin !== machine.NO_REGISTER) loadInto(entry, pin);
    storeInto(entry, home);
  } else if (pin !== machine.NO_REGISTER) {
    loadInto(entry, pin);
    machine.storeHome(type, pin, home);
  } else {
    machine.storeHome(type, toRegister(entry), home);
  }
  if (pin !== machine.NO_REGISTER) markValid(pin);
}

/** Turns an i32 entry on the stack into an i64, zero-extended, as registers already hold it. */
export function widen(entry: i32): void {
  if (load32(entry + ENTRY_TYPE) !== I32) return;
  if (isConstant(entry)) store32(entry + ENTRY_B, 0);
  else ownRegister(entry);
  store32(entry + ENTRY_TYPE, machine.WIDE);
}

/** Sets the location of an entry on the stack to the temporary register `register`. */
function becomeRegister(entry: i32, type: i32, register: i32): void {
  if (load32(entry + ENTRY_PLACE) === IS_LOCAL) countLocalEntry(load32(entry + ENTRY_A), -1);
  use(register);
  store32(ownerAt(register), entry);
  store32(entry + ENTRY_TYPE, type);
  store32(entry + ENTRY_PLACE, IN_REGISTER);
  store32(entry + ENTRY_A, register);
}

/**
 * Moves the value of an entry on the stack to a temporary register and returns that register; code may change its
 * value.
 */
export function ownRegister(entry: i32): i32 {
  const place = load32(entry + ENTRY_PLACE);
  if (place === IN_REGISTER) return load32(entry + ENTRY_A);
  const register = allocate(bankOf(load32(entry + ENTRY_TYPE)));
  loadInto(entry, register);
  becomeRegister(entry, load32(entry + ENTRY_TYPE), register);
  return register;
}

/** Returns a temporary register with the value of a popped entry, for use by that entry alone. */
export function ownRegisterOf(entry: i32): i32 {
  const place = load32(entry + ENTRY_PLACE);
  if (place === IN_REGISTER && isTemporary(load32(entry + ENTRY_A))) return load32(entry + ENTRY_A);
  const register = allocate(bankOf(load32(entry + ENTRY_TYPE)));
  loadInto(entry, register);
  store32(entry + ENTRY_PLACE, IN_REGISTER);
  store32(entry + ENTRY_A, register);
  return register;
}

/** Records that the value of a popped entry has moved to `register`, and frees its previous register. */
export function replaceRegister(entry: i32, register: i32): void {
  release(entry);
  store32(entry + ENTRY_PLACE, IN_REGISTER);
  store32(entry + ENTRY_A, register);
}

/** Inserts an i32 constant below the top `count` entries, which a call is about to consume. It has no home. */
export function insertConstant(value: i32, count: i32): void {
  const home = load32(top - count * ENTRY + ENTRY_HOME);
  for (let k: i32 = 0; k < count; k++) {
    const from = top - (k + 1) * ENTRY;
    for (let field: i32 = 0; field < ENTRY; field += 4) store32(from + ENTRY + field, load32(from + field));
    if (load32(from + ENTRY_PLACE) === IN_REGISTER) store32(ownerAt(load32(from + ENTRY_A)), from + ENTRY);
  }
  const entry = top - count * ENTRY;
  top = top + ENTRY;
  store32(entry + ENTRY_TYPE, I32);
  store32(entry + ENTRY_PLACE, IS_CONSTANT);
  store32(entry + ENTRY_A, value);
  store32(entry + ENTRY_HOME, home);
}

/** Pushes the result of a routine, in `register`; only the low half of an i32 is defined. */
export function pushResult(type: i32, register: i32, wide: i32): void {
  if (wide === 0) machine.zeroExtend(register);
  pushRegister(type, register);
}

/** Stores the value of an entry on the stack to its home if it is in a register. */
export function putHome(entry: i32): void {
  if (load32(entry + ENTRY_PLACE) === IN_REGISTER) spill(entry);
}

export function isInHome(entry: i32): boolean {
  return load32(entry + ENTRY_PLACE) === IN_HOME;
}

/** Marks all temporary registers free; no entry may use one. */
export function freeAll(): void {
  usedGeneral = 0;
  usedVector = 0;
}

// Parallel moves between registers: pairs of destination and source.

const MOVE: i32 = 8;
let moveCount: i32 = 0;

function moveAt(k: i32): i32 {
  return MOVES + k * MOVE;
}

/** Begins a set of parallel moves. */
export function beginMoves(): void {
  moveCount = 0;
}

export function addMove(to: i32, from: i32): void {
  if (to === from) return;
  store32(moveAt(moveCount), to);
  store32(moveAt(moveCount) + 4, from);
  moveCount = moveCount + 1;
}

function isSource(register: i32): boolean {
  for (let k: i32 = 0; k < moveCount; k++) if (load32(moveAt(k) + 4) === register) return true;
  return false;
}

/** Emits the moves in a safe order; the scratch registers break cycles. */
export function makeMoves(): void {
  while (moveCount > 0) {
    let k: i32 = 0;
    while (k < moveCount && isSource(load32(moveAt(k)))) k = k + 1;
    if (k === moveCount) {
      breakCycle(load32(moveAt(0)));
      continue;
    }
    machine.move(1, load32(moveAt(k)), load32(moveAt(k) + 4));
    moveCount = moveCount - 1;
    store32(moveAt(k), load32(moveAt(moveCount)));
    store32(moveAt(k) + 4, load32(moveAt(moveCount) + 4));
  }
}

function breakCycle(register: i32): void {
  const scratch = machine.scratchOf(register >> 5);
  machine.move(1, scratch, register);
  for (let k: i32 = 0; k < moveCount; k++) {
    if (load32(moveAt(k) + 4) === register) store32(moveAt(k) + 4, scratch);
  }
}
