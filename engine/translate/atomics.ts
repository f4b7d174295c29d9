/**
 * Atomic memory instructions (specification of the threads proposal). In: operands on the translator's stack. Out: an
 * alignment check, a bounds check in explicit mode, and one atomic operation; wait and notify are runtime calls.
 *
 * Traps occur in this order: unaligned, out of bounds, not shared. The alignment check covers the sum of the address
 * and the static offset, of which only the low bits matter.
 *
 * All orderings are compiled as sequentially consistent, which is the strongest.
 */
import { BUILTIN } from "../abi/builtins.ts";
import { atomicWord } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { idOf, opcodeColumn } from "../wasm/opcodes.ts";
import type { Translation } from "./translation.ts";
import { takePool } from "./block_parameters.ts";
import { callBuiltin } from "./builtin_calls.ts";
import { notCompiled } from "./failures.ts";
import { checkBounds, checkedAddress } from "./memory.ts";

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
 * Checks the address of an access of 2^`width` bytes and returns it; `t.staticOffset` holds the remaining static
 * offset.
 */
function atomicAddress(t: Translation, imm: Immediates, width: number): number {
  const operand = t.pop();
  checkAlignment(t, imm, operand, width);
  return checkedAddress(t, imm, operand, 1 << width);
}

function wordOf(t: Translation, imm: Immediates, width: number): number {
  return atomicWord(t.env.memoryRegion[imm.memory], width);
}

/** `value` is the operand of the operation on memory; the result is pushed unless `op` stores. */
function access(t: Translation, imm: Immediates, id: number, value: number): void {
  const width = WIDTH[id], op = ATOMIC_OP[id];
  const address = atomicAddress(t, imm, width);
  const result = t.b.emit(op, ATOMIC_TY[id], address, value, wordOf(t, imm, width), t.staticOffset);
  if (op !== OP.ATOMIC_STORE) t.push(result);
}

function compareExchange(t: Translation, imm: Immediates, id: number): void {
  const width = WIDTH[id];
  const replacement = t.pop();
  const expected = t.pop();
  const address = atomicAddress(t, imm, width);
  const list = takePool(t, 3);
  const { pool } = t.f;
  pool[list] = address;
  pool[list + 1] = expected;
  pool[list + 2] = replacement;
  t.push(t.b.emit(OP.ATOMIC_CMPXCHG, ATOMIC_TY[id], list, 3, wordOf(t, imm, width), t.staticOffset));
}

/**
 * notify and wait: a call of routine `number` with the memory, the address and the `operands` (1 or 2) operands above
 * it. The access is of 2^`width` bytes.
 */
function waiting(t: Translation, imm: Immediates, number: number, width: number, operands: number): void {
  const { b } = t;
  const last = operands > 1 ? t.pop() : 0;
  const first = t.pop();
  const operand = t.pop();
  checkAlignment(t, imm, operand, width);
  // The routine checks bounds itself; a sum beyond 2^64 must trap before the call.
  if (t.env.memoryIs64[imm.memory]) checkBounds(t, imm, operand, 1 << width);
  const address = b.binary(OP.ADD, I64, t.wide(operand), b.i64(imm.offsetLo, imm.offsetHi));
  const args: number[] = [b.i32(imm.memory), address, first];
  if (operands > 1) args.push(last);
  t.push(callBuiltin(t, number, args));
}

const NOTIFY = idOf("memory.atomic.notify");
const WAIT32 = idOf("memory.atomic.wait32");
const WAIT64 = idOf("memory.atomic.wait64");
const FENCE = idOf("atomic.fence");
const PAUSE = idOf("pause");

const ACCESS = /^i(32|64)\.atomic\.(?:(load|store)(\d*)|rmw(\d*)\.(\w+?))(?:_u)?$/;

/** By row: the operation of an access (0 for other rows), the type of its result, the width as log2 of its bytes. */
const ATOMIC_OP: Uint16Array = opcodeColumn(Uint16Array, ({ mnemonic }) => {
  const match = ACCESS.exec(mnemonic);
  if (match === null) return 0;
  return match[2] === undefined ? MODIFY[match[5]] : match[2] === "load" ? OP.ATOMIC_LOAD : OP.ATOMIC_STORE;
});
const ATOMIC_TY: Uint8Array = opcodeColumn(Uint8Array, ({ mnemonic }) => {
  const match = ACCESS.exec(mnemonic);
  if (match === null || match[2] === "store") return NONE;
  return match[1] === "64" ? I64 : I32;
});
const WIDTH: Uint8Array = opcodeColumn(Uint8Array, ({ mnemonic }) => {
  const match = ACCESS.exec(mnemonic);
  return match === null ? 0 : Math.log2(Number(match[3] || match[4] || match[1]) / 8);
});

/** Translates the instruction of row `id`. */
export function translateAtomic(t: Translation, id: number, imm: Immediates): void {
  switch (id) {
    case NOTIFY:
      waiting(t, imm, BUILTIN.memory_notify, 2, 1);
      return;
    case WAIT32:
      waiting(t, imm, BUILTIN.memory_wait32, 2, 2);
      return;
    case WAIT64:
      waiting(t, imm, BUILTIN.memory_wait64, 3, 2);
      return;
    case FENCE:
      t.b.emit(OP.FENCE, NONE, 0, 0, 0, 0);
      return;
    case PAUSE:
      t.b.emit(OP.PAUSE, NONE, 0, 0, 0, 0);
      return;
  }
  const op: number = ATOMIC_OP[id];
  if (op === 0) throw notCompiled(id, t.b.pos);
  if (op === OP.ATOMIC_CMPXCHG) compareExchange(t, imm, id);
  else access(t, imm, id, op === OP.ATOMIC_LOAD ? 0 : t.pop());
}
