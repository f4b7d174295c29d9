/**
 * Emission of integer operations that take several instructions: division with its checks, bit counts, explicit bounds
 * checks.
 */
import { highWord, lowWord, unsigned } from "../base/numbers.ts";
import { MEMORY, SHARED_LENGTH_SIZE } from "../abi/context_layout.ts";
import { DIVISION_CHECK } from "../ir/ops.ts";
import { TRAP } from "../base/traps.ts";
import { callTrap } from "./emit_calls.ts";
import { type Emission, OUT_OF_LINE } from "./emission.ts";
import { encode } from "./encoding.ts";
import { X } from "./instructions.ts";
import { CC, P } from "./machine_ops.ts";
import { CONTEXT_REGISTER, MEMORY_LENGTH, SCRATCH, SCRATCH2, SCRATCH_VECTOR, ZERO } from "./registers.ts";
import { emitAt } from "./emit_row.ts";

/** DIV and REM. The hardware gives 0 for division by zero and wraps on overflow. */
export function emitDivision(e: Emission, i: number, op: number): void {
  const { v, asm } = e;
  const wide = v.aux[i] & 1;
  const checks = v.imm[i];
  const o = v.firstOperand[i];
  const d = e.register(o);
  const x = e.register(o + 1);
  const y = e.register(o + 2);
  if ((checks & DIVISION_CHECK.ZERO) !== 0) e.branchZero(X.CBZ32 + wide, y, e.trap(i, TRAP.INTEGER_DIVIDE_BY_ZERO));
  if (op === P.DIV_S && (checks & DIVISION_CHECK.OVERFLOW) !== 0) {
    // Only the smallest integer overflows when 1 is subtracted; that is compared only if the divisor is −1.
    asm.rri(X.ADDS_I32 + wide, ZERO, y, 1, 0);
    asm.word(encode(X.CCMP_I32 + wide, 0, x, 0, 0, 1, 0, CC.EQ, 0));
    e.branch(CC.VS, e.trap(i, TRAP.INTEGER_OVERFLOW));
  }
  const signed = op === P.DIV_S || op === P.REM_S;
  const row = (signed ? X.SDIV32 : X.UDIV32) + wide;
  if (op === P.DIV_S || op === P.DIV_U) {
    asm.rrr(row, d, x, y);
  } else {
    asm.rrr(row, SCRATCH, x, y);
    asm.rrra(X.MSUB32 + wide, d, SCRATCH, y, x);
  }
}

/** Operations of a few instructions without traps. */
export function emitSimple(e: Emission, i: number, op: number): void {
  const { v, asm } = e;
  const wide = v.aux[i] & 1;
  const o = v.firstOperand[i];
  const d = e.register(o);
  const x = e.register(o + 1);
  switch (op) {
    case P.MUL:
      asm.rrra(X.MADD32 + wide, d, x, e.register(o + 2), ZERO);
      break;
    case P.NEGATE:
      asm.rrr(X.SUB32 + wide, d, ZERO, x);
      break;
    case P.NOT:
      asm.rrr(X.ORN32 + wide, d, ZERO, x);
      break;
    case P.ROTL:
      asm.rrr(X.SUB32 + wide, SCRATCH, ZERO, e.register(o + 2));
      asm.rrr(X.RORV32 + wide, d, x, SCRATCH);
      break;
    case P.CTZ:
      asm.rrr(X.RBIT32 + wide, d, x, 0);
      asm.rrr(X.CLZ32 + wide, d, d, 0);
      break;
    case P.POPCNT:
      asm.rrr(wide === 1 ? X.FMOV_DX : X.FMOV_SW, SCRATCH_VECTOR, x, 0);
      asm.rrr(X.CNT_8B, SCRATCH_VECTOR, SCRATCH_VECTOR, 0);
      asm.rrr(X.ADDV_8B, SCRATCH_VECTOR, SCRATCH_VECTOR, 0);
      asm.rrr(X.FMOV_WS, d, SCRATCH_VECTOR, 0);
      break;
  }
}

/** Traps unless address + offset + size ≤ length of the memory. */
export function emitBounds(e: Emission, i: number): void {
  const memory = e.v.aux[i] >>> 8;
  const shared = e.options.isShared(memory);
  const back = shared ? e.newLabel() : 0;
  const fail = shared ? e.outOfLine(OUT_OF_LINE.BOUNDS, i, 0, back) : e.trap(i, TRAP.MEMORY_OUT_OF_BOUNDS);
  // With guard pages the register of the length may hold other values.
  let length: number = MEMORY_LENGTH;
  if (memory !== 0 || !e.options.explicitBounds) {
    length = SCRATCH2;
    emitAt(e, X.LDR_X_U, SCRATCH2, CONTEXT_REGISTER, lengthAt(e, memory));
  }
  e.branch(compareLength(e, i, length, fail), fail);
  if (shared) e.bind(back);
}

/**
 * Traps unless index + distance < limit; the result is selected by the compare, not by its prediction, and the barrier
 * keeps the processor from predicting the select.
 */
export function emitCheckIndex(e: Emission, i: number): void {
  const { v, asm } = e;
  const aux = v.aux[i], o = v.firstOperand[i], wide = aux & 1, size = (aux >> 1) & 1;
  const fail = e.trap(i, aux >>> 8);
  const index = e.register(o + 1), distance = v.disp[i];
  let compared = index;
  if (distance !== 0) {
    compared = SCRATCH;
    if (distance < 0x1000) asm.rri(size === 1 ? X.ADDS_I64 : X.ADD_I64, SCRATCH, index, distance, 0);
    else {
      asm.constant(SCRATCH, distance, 0);
      asm.rrr(size === 1 ? X.ADDS64 : X.ADD64, SCRATCH, SCRATCH, index);
    }
    if (size === 1) e.branch(CC.HS, fail);
  }
  let limit: number = SCRATCH2;
  if ((aux & 4) === 0) limit = e.register(o + 2);
  else if (v.imm[i] >= 0x1000) asm.constant(SCRATCH2, v.imm[i], 0);
  if ((aux & 4) !== 0 && v.imm[i] < 0x1000) asm.rri(X.SUBS_I32 + wide, ZERO, compared, v.imm[i], 0);
  else asm.rrr(X.SUBS32 + wide, ZERO, compared, limit);
  e.branch(CC.HS, fail);
  asm.rrrc(X.CSEL32 + size, e.register(o), index, ZERO, CC.LO);
  asm.word(encode(X.CSDB, 0, 0, 0, 0, 0, 0, 0, 0));
}

function lengthAt(e: Emission, memory: number): number {
  return e.options.memoriesOffset + memory * MEMORY.SIZE + MEMORY.LENGTH;
}

/**
 * Compares the end of the access with the length in a register; returns the condition of being out of bounds. Changes
 * x16.
 */
function compareLength(e: Emission, i: number, length: number, overflow: number): number {
  const { v, asm } = e;
  const aux = v.aux[i];
  if ((aux & 2) !== 0) {
    if (v.disp[i] < 0x1000) asm.rri(X.SUBS_I64, ZERO, length, v.disp[i], 0);
    else {
      asm.constant(SCRATCH, v.disp[i], 0);
      asm.rrr(X.SUBS64, ZERO, length, SCRATCH);
    }
    return CC.LO;
  }
  const address = e.register(v.firstOperand[i]);
  const extent = unsigned(v.imm[i]) + unsigned(v.disp[i]);
  const wide = (aux & 1) !== 0;
  if (extent < 0x1000) {
    asm.rri(wide ? X.ADDS_I64 : X.ADD_I64, SCRATCH, address, lowWord(extent), 0);
  } else {
    // The extent has 33 bits at most.
    asm.constant(SCRATCH, lowWord(extent), highWord(extent));
    asm.rrr(wide ? X.ADDS64 : X.ADD64, SCRATCH, SCRATCH, address);
  }
  if (wide) e.branch(CC.HS, overflow);
  asm.rrr(X.SUBS64, ZERO, SCRATCH, length);
  return CC.HI;
}

/**
 * Out-of-line part of a check of a shared memory, which another thread may have grown: reads its true length, and keeps
 * that.
 */
export function emitSlowBounds(e: Emission, i: number, back: number): void {
  const memory = e.v.aux[i] >>> 8;
  const trap = e.newLabel();
  emitAt(e, X.LDR_X_U, SCRATCH2, CONTEXT_REGISTER, e.options.sharedLengthsOffset + memory * SHARED_LENGTH_SIZE);
  emitAt(e, X.LDR_X_U, SCRATCH2, SCRATCH2, 0);
  emitAt(e, X.STR_X_U, SCRATCH2, CONTEXT_REGISTER, lengthAt(e, memory));
  if (memory === 0 && e.options.explicitBounds) e.asm.move(1, MEMORY_LENGTH, SCRATCH2);
  const outside = compareLength(e, i, SCRATCH2, trap);
  e.branch(outside ^ 1, back);
  e.bind(trap);
  callTrap(e, i, TRAP.MEMORY_OUT_OF_BOUNDS, e.frame);
}
