/**
 * Rules for atomic operations. Stores are exchanges, which lock implicitly; an operation whose old value is unused is
 * the locked form of a read-modify-write instruction; an old value comes from xadd, or for the bitwise operations from
 * a loop around cmpxchg. Loads are plain loads: x64 keeps them in order, and locked stores are not passed by them.
 *
 * In: an atomic IR operation, its address folded like any other access's. Out: rows with AUX_LOCK, or P.CMPXCHG and
 * P.ATOMIC_LOOP.
 */
import { CONSTRAINT, operandWord, ROLE } from "../codegen/vcode.ts";
import { atomicWidth } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { foldAddress, plainAddress } from "./addressing.ts";
import { X } from "./instructions.ts";
import { AUX_LOCK, MODE, P } from "./machine_ops.ts";
import { RAX } from "./registers.ts";
import { modifyRow } from "./select_memory.ts";
import type { X64Lowering } from "./lowering_context.ts";

// Rows by width.
const LOAD_ROWS = [X.MOVZX32_8, X.MOVZX32_16, X.MOV32_L, X.MOV64_L];
const EXCHANGE_ROWS = [X.XCHG8, X.XCHG16, X.XCHG32, X.XCHG64];
const ADD_ROWS = [X.XADD8_M, X.XADD16_M, X.XADD32_M, X.XADD64_M];

/** The operation that atomic operation `op` applies. */
function modifiedBy(op: number): number {
  switch (op) {
    case OP.ATOMIC_ADD:
      return OP.ADD;
    case OP.ATOMIC_SUB:
      return OP.SUB;
    case OP.ATOMIC_AND:
      return OP.AND;
    case OP.ATOMIC_OR:
      return OP.OR;
  }
  return OP.XOR;
}

export function selectAtomicLoad(s: X64Lowering, id: number): void {
  foldAddress(s, id, false);
  s.withSource(LOAD_ROWS[atomicWidth(s.c[id])], 0, 0);
  s.def(id);
  s.sourceOperands();
  s.end();
}

export function selectAtomicStore(s: X64Lowering, id: number): void {
  const value = s.reg(s.b[id]);
  foldAddress(s, id, false);
  exchange(s, EXCHANGE_ROWS[atomicWidth(s.c[id])], 0, value, s.ty[s.b[id]]);
}

export function selectAtomicExchange(s: X64Lowering, id: number): void {
  const value = s.reg(s.b[id]);
  foldAddress(s, id, false);
  const old = exchange(s, EXCHANGE_ROWS[atomicWidth(s.c[id])], 0, value, s.ty[id]);
  defineOld(s, id, old);
}

/**
 * Emits `row` on the address resolved last, with a copy of `value` in the register operand; returns the vreg of the old
 * contents.
 */
function exchange(s: X64Lowering, row: number, lock: number, value: number, ty: number): number {
  const { v } = s;
  const old = v.newVreg(ty);
  s.withSource(row, 0, lock);
  s.sourceOperands();
  v.operand(operandWord(old, ROLE.DEF, CONSTRAINT.REUSE, addressWords(s) + 1));
  s.use(value);
  s.end();
  return old;
}

/** The number of operand words of the address resolved last. */
function addressWords(s: X64Lowering): number {
  return s.mode === MODE.POINTER_INDEX ? 2 : s.mode === MODE.MEMORY || s.mode === MODE.POINTER ? 1 : 0;
}

/** Defines the result of `id` as the low bytes of `old`, whose upper bytes are undefined, zero-extended. */
function defineOld(s: X64Lowering, id: number, old: number): void {
  const width = atomicWidth(s.c[id]);
  if (s.uses[id] === 0) return;
  if (width === 3 || (width === 2 && s.ty[id] === TY.I32)) {
    s.vregs[id] = old;
    return;
  }
  s.plain(LOAD_ROWS[width], 0, 0, 0);
  s.def(id);
  s.use(old);
  s.end();
}

/** ATOMIC_ADD and the others that compute. */
export function selectAtomicModify(s: X64Lowering, id: number): void {
  const op = s.op[id];
  if (s.uses[id] === 0) modifyOnly(s, id);
  else if (op === OP.ATOMIC_ADD || op === OP.ATOMIC_SUB) {
    const value = op === OP.ATOMIC_ADD ? s.reg(s.b[id]) : negated(s, s.b[id]);
    foldAddress(s, id, false);
    defineOld(s, id, exchange(s, ADD_ROWS[atomicWidth(s.c[id])], AUX_LOCK, value, s.ty[id]));
  } else modifyLoop(s, id);
}

/** The old value is unused: `lock op [m], value`. */
function modifyOnly(s: X64Lowering, id: number): void {
  const width = atomicWidth(s.c[id]);
  const value = s.b[id];
  const immediate = s.op[value] === OP.CONST && (width < 3 || s.isImmediate(value));
  const vreg = immediate ? 0 : s.reg(value);
  foldAddress(s, id, false);
  s.withSource(modifyRow(modifiedBy(s.op[id]), width, immediate), immediate ? s.imm[value] : 0, AUX_LOCK);
  s.sourceOperands();
  if (!immediate) s.use(vreg);
  s.end();
}

/** −value in a register. */
function negated(s: X64Lowering, value: number): number {
  const { v } = s;
  const ty = s.ty[value];
  const result = v.newVreg(ty);
  const operand = s.reg(value);
  s.plain(ty === TY.I64 ? X.NEG64 : X.NEG32, 0, 0, 0);
  v.operand(operandWord(result, ROLE.DEF, CONSTRAINT.REUSE, 1));
  s.use(operand);
  s.end();
  return result;
}

/** The old value of a bitwise operation: retried until no other thread has written in between. */
function modifyLoop(s: X64Lowering, id: number): void {
  const { v } = s;
  const width = atomicWidth(s.c[id]);
  const value = s.reg(s.b[id]);
  foldAddress(s, id, false);
  const old = v.newVreg(s.ty[id]);
  s.withSource(P.ATOMIC_LOOP, (width << 8) | modifiedBy(s.op[id]), 0);
  v.operand(operandWord(old, ROLE.DEF, CONSTRAINT.FIXED, RAX));
  s.temp(TY.I64);
  if (s.mode === MODE.POINTER || s.mode === MODE.POINTER_INDEX) s.lateUse(s.base);
  if (s.mode === MODE.MEMORY || s.mode === MODE.POINTER_INDEX) s.lateUse(s.index);
  s.lateUse(value);
  s.end();
  // The load in front of the loop zero-extends it.
  s.vregs[id] = old;
}

export function selectAtomicCompareExchange(s: X64Lowering, id: number): void {
  const { v } = s;
  const { pool } = s.f;
  const list = s.a[id];
  const expected = s.reg(pool[list + 1]);
  const replacement = s.reg(pool[list + 2]);
  plainAddress(s, id, pool[list]);
  const old = v.newVreg(s.ty[id]);
  s.withSource(P.CMPXCHG, atomicWidth(s.c[id]), AUX_LOCK);
  v.operand(operandWord(old, ROLE.DEF, CONSTRAINT.FIXED, RAX));
  s.useFixed(expected, RAX);
  s.sourceOperands();
  s.use(replacement);
  s.end();
  defineOld(s, id, old);
}

export function selectFence(s: X64Lowering, _id: number): void {
  s.plain(P.ATOMIC_FENCE, 0, 0, 0);
  s.end();
}

export function selectPause(s: X64Lowering, _id: number): void {
  s.plain(X.PAUSE, 0, 0, 0);
  s.end();
}
