/**
 * Reads a body: LEB128 integers and immediates. In: the bytes of one body in the kernel's memory. Out: the
 * instruction's row and immediates in module variables, which the next instruction overwrites. A failure is recorded
 * (`fail`) and reading continues with zeros; the compiler's loop checks `status` after every instruction.
 *
 * The rules are those of wasm/body_reader.ts; tests compare both on mutated modules.
 */
import {
  HAS_ORDERING,
  RMW_ACQUIRE_RELEASE,
  STEP_ATOMIC_ARGUMENT,
  STEP_BITS32,
  STEP_BITS64,
  STEP_BLOCK_TYPE,
  STEP_BYTES16,
  STEP_CAST_TYPES,
  STEP_CATCHES,
  STEP_CONST32,
  STEP_CONST64,
  STEP_HANDLERS,
  STEP_HEAP_TYPE,
  STEP_INDEX,
  STEP_INDEX2,
  STEP_LABELS,
  STEP_LANE,
  STEP_MEMARG,
  STEP_NEEDS_DATA_COUNT,
  STEP_ORDERING,
  STEP_REF_NULL_TYPE,
  STEP_REF_TYPE,
  STEP_RMW_ARGUMENT,
  STEP_VAL_TYPES,
} from "./constants.ts";
import { H_DATA_COUNT_MISSING, OPCODE_PAGE_BYTES, OPCODES, ROW_PLAN, STATUS_DONE, STATUS_INVALID } from "./layout.ts";
import { type i32, load32, load8, loadAny32 } from "./memory.ts";
import {
  BOTTOM,
  EXACT_BYTE,
  exactHeap,
  F64,
  FIRST_HEAP_BYTE,
  I32,
  LAST_HEAP_BYTE,
  MAX_TYPE_INDEX,
  refType,
  V128,
} from "./types.ts";

/** The address of the next byte, the address of the body's end, and the offset in the module minus the address. */
export let pos: i32 = 0;
export let end: i32 = 0;
let toOffset: i32 = 0;
/** The verdict on the body so far: a STATUS. */
export let status: i32 = STATUS_DONE;
/** Offset in the module of the current instruction. */
export let instructionOffset: i32 = 0;

// Immediates.
export let index: i32 = 0;
export let index2: i32 = 0;
export let low: i32 = 0;
export let high: i32 = 0;
export let align: i32 = 0;
export let memory: i32 = 0;
/** Atomic accesses and atomic.fence: −1 absent, 0 sequentially consistent, 1 acquire-release. */
export let ordering: i32 = -1;
/** Block type: −1 none, ≥ 0 a type index, −2 the type in `blockValue`. */
export let blockTypeIndex: i32 = -1;
export let blockValue: i32 = 0;
/** br_table, try_table, resume: address of the first label, clause or handler, and their number without the default. */
export let list: i32 = 0;
export let listCount: i32 = 0;
/** select t: the number of types and the last of them. */
export let valTypeCount: i32 = 0;
export let valType: i32 = 0;
export let heap: i32 = 0;
export let heap2: i32 = 0;
export let nullable: i32 = 0;
export let nullable2: i32 = 0;
export let lane: i32 = 0;
/** Address of 16 literal bytes. */
export let literal: i32 = 0;

/** Begins a body: the bytes from address `start` to before `bodyEnd`, at `offset` in the module. */
export function beginReading(start: i32, bodyEnd: i32, offset: i32): void {
  pos = start;
  end = bodyEnd;
  toOffset = offset - start;
  instructionOffset = offset;
  status = STATUS_DONE;
}

/** Continues reading at `address`. */
export function seek(address: i32): void {
  pos = address;
}

/** Sets the status of the body to `reason`, unless it has failed before. */
export function stop(reason: i32): void {
  if (status === STATUS_DONE) status = reason;
}

/** Sets the status to invalid, unless the body has failed before. */
export function fail(): void {
  stop(STATUS_INVALID);
}

/** Clears the status, after the scan (kernel.ts). */
export function clearStatus(): void {
  status = STATUS_DONE;
}

export function readByte(): i32 {
  if (pos >= end) {
    fail();
    return 0;
  }
  const byte = load8(pos);
  pos = pos + 1;
  return byte;
}

/** The next byte, which is a LEB128 integer by itself if it is less than 0x80; 0x80 at the end. */
function peekShort(): i32 {
  return pos < end ? load8(pos) : 0x80;
}

/** The value of a signed LEB128 integer of one byte. */
function signed7(byte: i32): i32 {
  return (byte & 0x40) !== 0 ? byte - 0x80 : byte;
}

/** Skips a LEB128 integer of any length, up to the body's end. */
function skipInteger(): void {
  while (pos < end && load8(pos) >= 0x80) pos = pos + 1;
  if (pos < end) pos = pos + 1;
}

/** An unsigned LEB128 integer of 32 bits. */
export function readU32(): i32 {
  const byte = peekShort();
  if (byte >= 0x80) return readLongU32();
  pos = pos + 1;
  return byte;
}

function readLongU32(): i32 {
  let value: i32 = 0;
  for (let shift: i32 = 0; shift < 35; shift += 7) {
    const byte = readByte();
    if (shift === 28 && (byte & 0x70) !== 0) fail();
    value = value | ((byte & 0x7f) << (shift & 31));
    if (byte < 0x80) return value;
  }
  fail();
  return 0;
}

/** A signed LEB128 integer of 32 bits. */
function readS32(): i32 {
  const first = peekShort();
  if (first < 0x80) {
    pos = pos + 1;
    return signed7(first);
  }
  let value: i32 = 0;
  for (let shift: i32 = 0; shift < 35; shift += 7) {
    const byte = readByte();
    if (shift === 28) {
      const sign = byte & 0x78;
      if (sign !== 0 && sign !== 0x78) fail();
    }
    value = value | ((byte & 0x7f) << (shift & 31));
    if (byte < 0x80) {
      const unused = 25 - shift;
      return unused > 0 ? (value << unused) >> unused : value;
    }
  }
  fail();
  return 0;
}

/** A type index, as a signed LEB128 integer of 33 bits; −1 if it is negative. */
function readIndexS33(): i32 {
  let value: i32 = 0;
  for (let shift: i32 = 0; shift < 28; shift += 7) {
    const byte = readByte();
    value = value | ((byte & 0x7f) << shift);
    if (byte < 0x80) return (byte & 0x40) !== 0 ? -1 : value;
  }
  const byte = readByte();
  if (byte >= 0x10) {
    // Negative, too large or too long: not an index in any case, and from 0x80 on also malformed.
    if (byte < 0x70 || byte >= 0x80) fail();
    return -1;
  }
  value = value | (byte << 28);
  return value < 0 ? 0x7fffffff : value;
}

/** Reads a 64-bit LEB128 integer into `low` and `high`; `sign` is 0x40 if it is signed, else 0. */
function read64(sign: i32): void {
  const first = peekShort();
  if (first < 0x80) {
    pos = pos + 1;
    low = sign === 0 ? first : signed7(first);
    high = low >> 31;
    return;
  }
  readLong64(sign);
}

function readLong64(sign: i32): void {
  low = 0;
  high = 0;
  for (let shift: i32 = 0; shift < 70; shift += 7) {
    const byte = readByte();
    const bits = byte & 0x7f;
    if (shift === 63 && bits > 1 - (sign >> 6) && (sign === 0 || bits !== 0x7f)) fail();
    if (shift < 28) low = low | (bits << shift);
    else if (shift === 28) {
      low = low | (bits << 28);
      high = bits >> 4;
    } else high = high | (bits << (shift - 32));
    if (byte < 0x80) {
      if ((byte & sign) !== 0) signExtend(shift + 7);
      return;
    }
  }
  fail();
}

function signExtend(used: i32): void {
  if (used < 32) {
    low = low | (-1 << used);
    high = -1;
  } else if (used < 64) high = high | (-1 << (used - 32));
}

function readBits32(): i32 {
  if (end - pos < 4) {
    fail();
    return 0;
  }
  pos = pos + 4;
  return loadAny32(pos - 4);
}

/** A heap type: a type index, exact or not, or negative for an abstract heap type. */
function readHeapType(): i32 {
  const byte = pos < end ? load8(pos) : 0x40;
  if ((byte & 0xc0) !== 0x40) return typeIndex(readIndexS33());
  pos = pos + 1;
  if (byte === EXACT_BYTE) return exactHeap(typeIndex(readU32()));
  if (byte < FIRST_HEAP_BYTE || byte > LAST_HEAP_BYTE) fail();
  return byte - 0x80;
}

/** The type index `index` if it fits a packed reference type; fails and is 0 otherwise. */
function typeIndex(index: i32): i32 {
  if (index >= 0 && index <= MAX_TYPE_INDEX) return index;
  fail();
  return 0;
}

/** A value type. */
export function readValType(): i32 {
  const byte = readByte();
  if (byte >= V128 && byte <= 0x7f) return byte;
  if (byte >= FIRST_HEAP_BYTE && byte <= LAST_HEAP_BYTE) return refType(1, byte - 0x80);
  if (byte === 0x63 || byte === 0x64) return refType(byte === 0x63 ? 1 : 0, readHeapType());
  fail();
  return BOTTOM;
}

function readBlockType(): void {
  blockTypeIndex = -1;
  blockValue = 0;
  const byte = pos < end ? load8(pos) : 0;
  if (byte === 0x40) {
    pos = pos + 1;
  } else if ((byte & 0xc0) === 0x40) {
    blockTypeIndex = -2;
    blockValue = readValType();
  } else {
    blockTypeIndex = readIndexS33();
    if (blockTypeIndex < 0) {
      fail();
      blockTypeIndex = -1;
    }
  }
}

/** Reads an index. */
export function readIndex(): void {
  index = readU32();
}

/** Reads a block type if it is empty or a number type; returns whether it is. */
export function readShortBlockType(): boolean {
  const byte = load8(pos);
  if (byte !== 0x40 && (byte < F64 || byte > I32)) return false;
  blockTypeIndex = byte === 0x40 ? -1 : -2;
  blockValue = byte === 0x40 ? 0 : byte;
  pos = pos + 1;
  return true;
}

function readMemarg(): void {
  const flags = readU32();
  if (flags < 0 || flags >= 0x80) fail();
  align = flags & 0x3f;
  memory = (flags & 0x40) !== 0 ? readU32() : 0;
  read64(0);
}

/** A memory argument in which `acquireRelease` is the byte of that ordering. */
function readAtomicArgument(acquireRelease: i32): void {
  const flags = readU32();
  if (flags < 0 || flags >= 0x80) fail();
  align = flags & 0x3f & ~HAS_ORDERING;
  memory = (flags & 0x40) !== 0 ? readU32() : 0;
  ordering = -1;
  if ((flags & HAS_ORDERING) !== 0) readOrdering(acquireRelease);
  read64(0);
}

function readOrdering(acquireRelease: i32): void {
  const byte = readByte();
  if (byte !== 0 && byte !== acquireRelease) fail();
  ordering = byte === 0 ? 0 : 1;
}

/** The number of entries of a list whose entries take at least a byte each; fails if it exceeds the bytes left. */
function readCount(): i32 {
  const count = readU32();
  if (count < 0 || count > end - pos) {
    fail();
    return 0;
  }
  return count;
}

function readLabels(): void {
  listCount = readCount();
  list = pos;
  for (let k: i32 = 0; k <= listCount; k++) readU32();
}

function readCatches(): void {
  listCount = readCount();
  list = pos;
  for (let k: i32 = 0; k < listCount; k++) {
    const kind = readByte();
    if (kind > 3) fail();
    if (kind < 2) readU32();
    readU32();
  }
}

function readHandlers(): void {
  listCount = readCount();
  list = pos;
  for (let k: i32 = 0; k < listCount; k++) {
    const kind = readByte();
    if (kind > 1) fail();
    readU32();
    if (kind === 0) readU32();
  }
}

function readCastTypes(): void {
  const flags = readByte();
  if (flags > 3) fail();
  index = readU32();
  nullable = flags & 1;
  nullable2 = flags >> 1;
  heap = readHeapType();
  heap2 = readHeapType();
}

function readStep(step: i32): void {
  switch (step) {
    case STEP_INDEX:
      index = readU32();
      break;
    case STEP_INDEX2:
      index2 = readU32();
      break;
    case STEP_MEMARG:
      readMemarg();
      break;
    case STEP_CONST32:
      low = readS32();
      break;
    case STEP_BLOCK_TYPE:
      readBlockType();
      break;
    case STEP_LABELS:
      readLabels();
      break;
    case STEP_CONST64:
      read64(0x40);
      break;
    case STEP_BITS32:
      low = readBits32();
      break;
    case STEP_BITS64:
      low = readBits32();
      high = readBits32();
      break;
    case STEP_BYTES16:
      if (end - pos < 16) fail();
      literal = pos;
      pos = pos + 16;
      break;
    case STEP_LANE:
      lane = readByte();
      break;
    case STEP_VAL_TYPES:
      valTypeCount = readCount();
      for (let k: i32 = 0; k < valTypeCount; k++) valType = readValType();
      break;
    case STEP_HEAP_TYPE:
    case STEP_REF_NULL_TYPE:
      heap = readHeapType();
      nullable = 1;
      break;
    case STEP_REF_TYPE:
      heap = readHeapType();
      nullable = 0;
      break;
    case STEP_CAST_TYPES:
      readCastTypes();
      break;
    case STEP_CATCHES:
      readCatches();
      break;
    case STEP_HANDLERS:
      readHandlers();
      break;
    case STEP_ORDERING:
      readOrdering(1);
      break;
    case STEP_ATOMIC_ARGUMENT:
      readAtomicArgument(1);
      break;
    case STEP_RMW_ARGUMENT:
      readAtomicArgument(RMW_ACQUIRE_RELEASE);
      break;
    case STEP_NEEDS_DATA_COUNT:
      if (load32(H_DATA_COUNT_MISSING) !== 0) fail();
      break;
  }
}

/** Address of the row of opcode `code` on `page`, or 0. */
function rowAt(page: i32, code: i32): i32 {
  if (code < 0 || code >= OPCODE_PAGE_BYTES >> 1) return 0;
  return loadAny32(OPCODES + page * OPCODE_PAGE_BYTES + code * 2) & 0xffff;
}

/** Reads an opcode; returns the address of its row, or 0 after a failure. */
function readRow(): i32 {
  instructionOffset = pos + toOffset;
  const row = pos < end ? rowAt(0, load8(pos)) : 0;
  if (row === 0) return readPrefixedRow();
  pos = pos + 1;
  return row;
}

function readPrefixedRow(): i32 {
  const opcode = readByte();
  const row = opcode >= 0xfb && opcode <= 0xfe ? rowAt(opcode - 0xfa, readU32()) : 0;
  if (row === 0) fail();
  return row;
}

function readSteps(plan: i32): void {
  let rest = plan;
  while (rest !== 0) {
    readStep(rest & 31);
    rest = rest >> 5;
  }
}

/** Reads an instruction into the variables above; returns the address of its opcode's row, or 0 after a failure. */
export function nextInstruction(): i32 {
  const row = readRow();
  if (row === 0) return 0;
  const plan = load32(row + ROW_PLAN);
  if (plan === STEP_INDEX) index = readU32();
  else if (plan === STEP_MEMARG) readMemarg();
  else if (plan === STEP_CONST32) low = readS32();
  else if (plan !== 0) readSteps(plan);
  return row;
}

/**
 * The same without numbers and memory arguments, which are skipped unchecked: for a scan ahead of the compilation,
 * which checks them.
 */
export function skimInstruction(): i32 {
  const row = readRow();
  if (row === 0) return 0;
  const plan = load32(row + ROW_PLAN);
  if (plan === STEP_INDEX) {
    index = readU32();
  } else if (plan === STEP_MEMARG) {
    if ((readU32() & 0x40) !== 0) skipInteger();
    skipInteger();
  } else if (plan === STEP_CONST32 || plan === STEP_CONST64) {
    skipInteger();
  } else if (plan !== 0) readSteps(plan);
  return row;
}

/** The opcode byte of the next instruction; 0xff at the end. */
export function peekByte(): i32 {
  return pos < end ? load8(pos) : 0xff;
}
