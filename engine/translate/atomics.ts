/**
 * Atomic memory instructions (specification of the threads proposal). In: operands on the translator's stack. Out: an
 * alignment check, a bounds check in explicit mode, and one atomic operation; wait and notify are runtime calls.
 *
 * Traps occur in this order: unaligned, out of bounds, not shared. The alignment check covers the sum of the address
 * and the static offset, of which only the low bits matter.
 */
import type { BuiltinName } from "../abi/builtins.ts";
import { atomicWord } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { THREADS_ROWS } from "../wasm/opcodes_threads.ts";
import type { Handler, Translation } from "./translation.ts";
import { takePool } from "./block_parameters.ts";
import { callBuiltin } from "./builtin_calls.ts";
import { checkBounds, checkedAddress, staticOffset } from "./memory.ts";

const { I32, I64, NONE } = TY;

/** Read-modify-write operations by the word in their mnemonic. */
const MODIFY: Readonly<Record<string, number>> = {
  add: OP.ATOMIC_ADD,
  sub: OP.ATOMIC_SUB,
  and: OP.ATOMIC_AND,
  or: OP.ATOMIC_OR,
  xor: OP.ATOMIC_XOR,
  xchg: OP.ATOMIC_XCHG,
  cmpxchg: OP.ATOMIC_CMPXCHG,
};

/** Traps unless `address` plus the static offset is a multiple of 2^`width`. */
function checkAlignment(t: Translation, imm: Immediates, address: number, width: number): void {
  const { b } = t;
  const mask = (1 << width) - 1;
  if (mask === 0) return;
  const offset = imm.offsetLo & mask;
  let low = t.f.ty[address] === I64 ? b.unary(OP.WRAP, I32, address) : address;
  if (offset !== 0) low = b.binary(OP.ADD, I32, low, b.i32(offset));
  b.trapIf(b.binary(OP.AND, I32, low, b.i32(mask)), TRAP.UNALIGNED_ATOMIC);
}

/**
 * Checks the address of an access of 2^`width` bytes and returns it; `staticOffset` holds the remaining static offset.
 */
function atomicAddress(t: Translation, imm: Immediates, width: number): number {
  const operand = t.pop();
  checkAlignment(t, imm, operand, width);
  return checkedAddress(t, imm, operand, 1 << width);
}

function wordOf(t: Translation, imm: Immediates, width: number): number {
  return atomicWord(t.env.memoryRegion[imm.memory], width);
}

function load(ty: number, width: number): Handler {
  return (t, imm) => {
    const address = atomicAddress(t, imm, width);
    t.push(t.b.emit(OP.ATOMIC_LOAD, ty, address, 0, wordOf(t, imm, width), staticOffset));
  };
}

function store(width: number): Handler {
  return (t, imm) => {
    const value = t.pop();
    const address = atomicAddress(t, imm, width);
    t.b.emit(OP.ATOMIC_STORE, NONE, address, value, wordOf(t, imm, width), staticOffset);
  };
}

function modify(op: number, ty: number, width: number): Handler {
  return (t, imm) => {
    const value = t.pop();
    const address = atomicAddress(t, imm, width);
    t.push(t.b.emit(op, ty, address, value, wordOf(t, imm, width), staticOffset));
  };
}

function compareExchange(ty: number, width: number): Handler {
  return (t, imm) => {
    const replacement = t.pop();
    const expected = t.pop();
    const address = atomicAddress(t, imm, width);
    const list = takePool(t, 3);
    const { pool } = t.f;
    pool[list] = address;
    pool[list + 1] = expected;
    pool[list + 2] = replacement;
    t.push(t.b.emit(OP.ATOMIC_CMPXCHG, ty, list, 3, wordOf(t, imm, width), staticOffset));
  };
}

/**
 * notify and wait: a call of routine `name` with the memory, the address and the `operands` (1 or 2) operands above it.
 * The access is of 2^`width` bytes.
 */
function waiting(name: BuiltinName, width: number, operands: number): Handler {
  return (t, imm) => {
    const { b } = t;
    const last = operands > 1 ? t.pop() : 0;
    const first = t.pop();
    const operand = t.pop();
    checkAlignment(t, imm, operand, width);
    // The routine checks bounds itself; a sum beyond 2^64 must trap before the call.
    if (t.env.memoryIs64[imm.memory]) checkBounds(t, imm, operand, 1 << width);
    const address = b.binary(OP.ADD, I64, t.wide(operand), b.i64(imm.offsetLo, imm.offsetHi));
    const args = [b.i32(imm.memory), address, first];
    if (operands > 1) args.push(last);
    t.push(callBuiltin(t, name, ...args));
  };
}

function fence(t: Translation): void {
  t.b.emit(OP.FENCE, NONE, 0, 0, 0, 0);
}

const FIXED: Readonly<Record<string, Handler>> = {
  "memory.atomic.notify": waiting("memory_notify", 2, 1),
  "memory.atomic.wait32": waiting("memory_wait32", 2, 2),
  "memory.atomic.wait64": waiting("memory_wait64", 3, 2),
  "atomic.fence": fence,
};

/** Handler of a row: `i64.atomic.rmw16.add_u` is an ATOMIC_ADD of 2 bytes with results of type i64. */
function handlerOf(mnemonic: string): Handler {
  const fixed = FIXED[mnemonic];
  if (fixed !== undefined) return fixed;
  const match = /^i(32|64)\.atomic\.(?:(load|store)(\d*)|rmw(\d*)\.(\w+?))(?:_u)?$/.exec(mnemonic)!;
  const [, bits, access, accessBits, modifyBits, operation] = match;
  const ty = bits === "64" ? I64 : I32;
  const width = Math.log2(Number(accessBits || modifyBits || bits) / 8);
  if (access === "load") return load(ty, width);
  if (access === "store") return store(width);
  const op = MODIFY[operation];
  return op === OP.ATOMIC_CMPXCHG ? compareExchange(ty, width) : modify(op, ty, width);
}

/** Handlers by mnemonic. */
export const ATOMIC_HANDLERS: Readonly<Record<string, Handler>> = Object.fromEntries(
  THREADS_ROWS.map((row) => row.split(" ")[1]).map((mnemonic) => [mnemonic, handlerOf(mnemonic)]),
);
