/**
 * Memory instructions: scalar loads and stores, size and grow, bulk operations (specification, 4.4.7). In: operands on
 * the translator's stack. Out: accesses of memory 0 through its pinned base, and of other memories through a pointer.
 *
 * Bounds: with guard pages an access of memory 0 needs no check, since a fault is the trap. With explicit bounds, for
 * every other memory, and for 64-bit addresses, a BOUNDS precedes the access, on the same address value; the access
 * then cannot fault. Bulk operations compare in 64-bit arithmetic before they write anything; 32-bit addresses and
 * lengths cannot overflow it, and 64-bit ones are checked for overflow.
 */
import { BUILTIN } from "../abi/builtins.ts";
import { MEMORY, SHARED_LENGTH_SIZE } from "../abi/context_layout.ts";
import { type f64, unsigned } from "../base/numbers.ts";
import { atomicWord, boundsWord, CLASS_CONSTANT, CLASS_SIZES, REGION, region } from "../ir/regions.ts";
import { ACCESS_BYTES, OP } from "../ir/ops.ts";
import { TY, TY_BYTES } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { idOf } from "../wasm/opcodes.ts";
import { notCompiled } from "./failures.ts";
import type { Translation } from "./translation.ts";
import { callBuiltin, callRangeCopy } from "./builtin_calls.ts";
import { MODE } from "../settings/code_mode.ts";

const { I32, I64, NONE } = TY;
const SIZES = region(REGION.CONTEXT, CLASS_SIZES);
const CONSTANT_CONTEXT = region(REGION.CONTEXT, CLASS_CONSTANT);
/** Bulk operations of a constant length up to this limit become loads and stores. */
const MAX_UNROLLED = 32;

/**
 * Emits BOUNDS if the mode or the memory requires it, and returns the address value of the access; `t.staticOffset`
 * holds the remaining static offset.
 */
export function checkedAddress(t: Translation, imm: Immediates, operand: number, width: number): number {
  return accessAddress(t, imm.memory, checkBounds(t, imm, operand, width));
}

/** As {@linkcode checkedAddress}, but returns an address within the memory. */
export function checkBounds(t: Translation, imm: Immediates, operand: number, width: number): number {
  const { b, env } = t;
  const { memory } = imm;
  let address = operand;
  t.staticOffset = imm.offsetLo | 0;
  if (imm.offsetHi !== 0) {
    // 64-bit memories only: an offset that does not fit an instruction is added first, and a sum beyond 2^64 is out of
    // bounds.
    address = b.binary(OP.ADD, I64, operand, b.i64(imm.offsetLo, imm.offsetHi));
    b.trapIf(b.binary(OP.LT_U, I32, address, operand), TRAP.MEMORY_OUT_OF_BOUNDS);
    t.staticOffset = 0;
  }
  if (isChecked(t, memory)) {
    if (env.choices.maskMemories) return maskedAddress(t, memory, address, width);
    b.emit(OP.BOUNDS, NONE, address, 0, boundsWord(memory, width), t.staticOffset);
  }
  return address;
}

/** Whether accesses of a memory are compared with its length. */
function isChecked(t: Translation, memory: number): boolean {
  const { env } = t;
  return memory !== 0 || (env.mode & MODE.EXPLICIT_BOUNDS) !== 0 ||
    (!env.memoryIsGuardable[0] && (env.mode & MODE.UNCHECKED) === 0);
}

/**
 * Checks the access of `width` bytes at `address` + t.staticOffset, and returns the address or, where the processor
 * runs ahead on the wrong path, 0. From there the static offset must not lead out of the memory either: one beyond the
 * smallest length is added first.
 */
function maskedAddress(t: Translation, memory: number, address: number, width: number): number {
  const { b, env, f } = t;
  const least: f64 = env.memoryMinimum[memory];
  const end: f64 = unsigned(t.staticOffset) + width;
  const isInside = end <= least && end <= 0x7fffffff;
  if (isInside && b.isConst(address) && (f.ty[address] === I32 || f.c[address] === 0)) {
    if (unsigned(f.imm[address]) + end <= least) return address;
  }
  let at = address;
  if (!isInside && t.staticOffset !== 0) {
    at = b.binary(OP.ADD, I64, t.wide(address), b.i64(t.staticOffset, 0));
    if (f.ty[address] === I64) b.trapIf(b.binary(OP.LT_U, I32, at, address), TRAP.MEMORY_OUT_OF_BOUNDS);
    t.staticOffset = 0;
  }
  const distance = (t.staticOffset + width - 1) | 0;
  return b.emit(OP.CHECK_INDEX, f.ty[at], at, byteLength(t, memory), distance, TRAP.MEMORY_OUT_OF_BOUNDS);
}

/** Pointer to byte `address` (i32 or i64) of a memory. */
function pointerInto(t: Translation, memory: number, address: number): number {
  const { b, env } = t;
  const base = b.emit(OP.LOAD, I64, 0, 0, SIZES, env.memoryOffset[memory] + MEMORY.BASE);
  return b.binary(OP.ADD, I64, base, t.wide(address));
}

/**
 * The address operand of an access to byte `address` of a memory, which is in bounds: `address` itself for memory 0.
 */
function accessAddress(t: Translation, memory: number, address: number): number {
  return memory === 0 ? address : pointerInto(t, memory, address);
}

/** Load instructions with a scalar result. */
export function translateLoad(t: Translation, op: number, ty: number, imm: Immediates): void {
  const { stack } = t;
  const width = ACCESS_BYTES[op] !== 0 ? ACCESS_BYTES[op] : TY_BYTES[ty];
  const address = checkedAddress(t, imm, stack[t.sp - 1], width);
  stack[t.sp - 1] = t.b.emit(op, ty, address, 0, t.env.memoryRegion[imm.memory], t.staticOffset);
}

/** Store instructions. */
export function translateStore(t: Translation, op: number, imm: Immediates): void {
  const { stack } = t;
  const value = stack[--t.sp];
  const width = ACCESS_BYTES[op] !== 0 ? ACCESS_BYTES[op] : TY_BYTES[t.f.ty[value]];
  const address = checkedAddress(t, imm, stack[--t.sp], width);
  t.b.emit(op, NONE, address, value, t.env.memoryRegion[imm.memory], t.staticOffset);
}

/** Byte length of a memory, i64; that of a shared memory is reloaded each time, since any thread may grow it. */
function byteLength(t: Translation, memory: number): number {
  const { b, env } = t;
  if (!env.memoryIsShared[memory]) return b.emit(OP.LOAD, I64, 0, 0, SIZES, env.memoryOffset[memory] + MEMORY.LENGTH);
  const offset = env.sharedLengthsOffset + memory * SHARED_LENGTH_SIZE;
  const address = b.emit(OP.LOAD, I64, 0, 0, CONSTANT_CONTEXT, offset);
  return b.emit(OP.ATOMIC_LOAD, I64, address, 0, atomicWord(env.sharedLengthRegion, 3), 0);
}

function memorySize(t: Translation, imm: Immediates): void {
  const { b, env } = t;
  const bytes = byteLength(t, imm.index);
  const shift = env.memoryPageShift[imm.index];
  const pages = shift === 0 ? bytes : b.binary(OP.SHR_U, I64, bytes, b.i64(shift, 0));
  t.push(env.memoryIs64[imm.index] ? pages : b.unary(OP.WRAP, I32, pages));
}

function memoryGrow(t: Translation, imm: Immediates): void {
  const delta = t.wide(t.pop());
  const old = callBuiltin(t, BUILTIN.memory_grow, [t.b.i32(imm.index), delta]);
  t.push(t.env.memoryIs64[imm.index] ? old : t.b.unary(OP.WRAP, I32, old));
}

/**
 * Traps unless bytes [start, start + count) are in the memory. Operands are i64, and below 2^32 unless the memory is
 * 64-bit.
 */
function checkRange(t: Translation, memory: number, start: number, count: number): void {
  const { b } = t;
  const end = b.binary(OP.ADD, I64, start, count);
  if (t.env.memoryIs64[memory]) b.trapIf(b.binary(OP.LT_U, I32, end, start), TRAP.MEMORY_OUT_OF_BOUNDS);
  b.trapIf(b.binary(OP.GT_U, I32, end, byteLength(t, memory)), TRAP.MEMORY_OUT_OF_BOUNDS);
}

/**
 * Traps unless the `length` bytes from `start` on, a few, are in the memory. Returns the address of the first, which
 * `mask-memories` masks like that of an access.
 */
function checkSmallRange(t: Translation, memory: number, start: number, count: number, length: number): number {
  if (length > 0 && t.env.choices.maskMemories && isChecked(t, memory)) {
    t.staticOffset = 0;
    return maskedAddress(t, memory, start, length);
  }
  checkRange(t, memory, t.wide(start), t.wide(count));
  return start;
}

/** The constant length of a bulk operation if it is worth unrolling, else −1. */
function smallLength(t: Translation, count: number): number {
  const { f, b } = t;
  const small = b.isConst(count) && f.c[count] === 0 && f.imm[count] >= 0 && f.imm[count] <= MAX_UNROLLED;
  return small ? f.imm[count] : -1;
}

/** Bytes of the widest access of at most `left` bytes. */
function pieceWidth(left: number): number {
  return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

function loadPiece(t: Translation, address: number, offset: number, width: number, word: number): number {
  const op = width === 2 ? OP.LOAD16_U : width === 1 ? OP.LOAD8_U : OP.LOAD;
  return t.b.emit(op, width === 8 ? I64 : I32, address, 0, word, offset);
}

function storePiece(
  t: Translation,
  address: number,
  offset: number,
  width: number,
  word: number,
  v: number,
): void {
  const op = width === 2 ? OP.STORE16 : width === 1 ? OP.STORE8 : OP.STORE;
  t.b.emit(op, NONE, address, v, word, offset);
}

function memoryCopy(t: Translation, imm: Immediates): void {
  const { env } = t;
  const count = t.pop();
  const source = t.pop();
  const target = t.pop();
  const to = imm.index;
  const from = imm.index2;
  const length = smallLength(t, count);
  const checkedTarget = checkSmallRange(t, to, target, count, length);
  const checkedSource = checkSmallRange(t, from, source, count, length);
  if (length < 0) {
    const args: number[] = [pointerInto(t, to, target), pointerInto(t, from, source), t.wide(count)];
    callBuiltin(t, BUILTIN.memory_move, args);
    return;
  }
  // All loads before all stores: the ranges may overlap.
  const targetAddress = accessAddress(t, to, checkedTarget);
  const sourceAddress = accessAddress(t, from, checkedSource);
  const pieces: number[] = [];
  for (let at = 0; at < length; at += pieceWidth(length - at)) {
    pieces.push(loadPiece(t, sourceAddress, at, pieceWidth(length - at), env.memoryRegion[from]));
  }
  let next = 0;
  for (let at = 0; at < length; at += pieceWidth(length - at)) {
    storePiece(t, targetAddress, at, pieceWidth(length - at), env.memoryRegion[to], pieces[next++]);
  }
}

function memoryFill(t: Translation, imm: Immediates): void {
  const { b, env, f } = t;
  const count = t.pop();
  const value = t.pop();
  const target = t.pop();
  const memory = imm.index;
  const length = smallLength(t, count);
  const checked = checkSmallRange(t, memory, target, count, b.isConst(value) ? length : -1);
  if (length < 0 || !b.isConst(value)) {
    callBuiltin(t, BUILTIN.memory_set, [pointerInto(t, memory, target), value, t.wide(count)]);
    return;
  }
  const address = accessAddress(t, memory, checked);
  const word = Math.imul(f.imm[value] & 0xff, 0x01010101);
  for (let at = 0; at < length; at += pieceWidth(length - at)) {
    const width = pieceWidth(length - at);
    const mask = width === 1 ? 0xff : width === 2 ? 0xffff : -1;
    const pattern = width === 8 ? b.i64(word, word) : b.i32(word & mask);
    storePiece(t, address, at, width, env.memoryRegion[memory], pattern);
  }
}

const MEMORY_SIZE = idOf("memory.size");
const MEMORY_GROW = idOf("memory.grow");
const MEMORY_COPY = idOf("memory.copy");
const MEMORY_FILL = idOf("memory.fill");
const MEMORY_INIT = idOf("memory.init");
const DATA_DROP = idOf("data.drop");

/** Translates the instruction of row `id`, other than loads and stores. */
export function translateMemory(t: Translation, id: number, imm: Immediates): void {
  switch (id) {
    case MEMORY_SIZE:
      memorySize(t, imm);
      break;
    case MEMORY_GROW:
      memoryGrow(t, imm);
      break;
    case MEMORY_COPY:
      memoryCopy(t, imm);
      break;
    case MEMORY_FILL:
      memoryFill(t, imm);
      break;
    case MEMORY_INIT:
      callRangeCopy(t, BUILTIN.memory_init, imm.index2, imm.index);
      break;
    case DATA_DROP:
      callBuiltin(t, BUILTIN.data_drop, [t.b.i32(imm.index)]);
      break;
    default:
      throw notCompiled(id, t.b.pos);
  }
}
