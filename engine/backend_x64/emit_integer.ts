/**
 * Emission of integer operations that take several instructions: constants, division with its checks, bit counts on
 * CPUs without the instructions for them, explicit bounds checks.
 */
import { highWord, lowWord, unsigned } from "../base/numbers.ts";
import { MEMORY, SHARED_LENGTH_SIZE } from "../abi/context_layout.ts";
import { DIVISION_CHECK } from "../ir/ops.ts";
import { TRAP } from "../base/traps.ts";
import { type Emission, OUT_OF_LINE } from "./emission.ts";
import { callTrap } from "./emit_calls.ts";
import { emitConstant, emitMemory, emitRegister } from "./encoding.ts";
import { X } from "./instructions.ts";
import { CC, P } from "./machine_ops.ts";
import { CONTEXT_REGISTER, MEMORY_BASE, MEMORY_LENGTH, RAX, RDX, SCRATCH } from "./registers.ts";
import { ri, rm, rr } from "./emit_row.ts";

/** DIV and REM: dividend in rax; quotient in rax, remainder in rdx. */
export function emitDivision(e: Emission, i: number, op: number): void {
  const { v } = e;
  const wide = v.aux[i] & 1;
  const checks = v.imm[i];
  const divisor = e.register(v.firstOperand[i] + 2);
  if ((checks & DIVISION_CHECK.ZERO) !== 0) {
    rr(e, X.TEST32_M + wide, divisor, divisor);
    e.branch(CC.E, e.trap(i, TRAP.INTEGER_DIVIDE_BY_ZERO));
  }
  if (op === P.DIV_U || op === P.REM_U) {
    rr(e, X.XOR32_R, RDX, RDX);
    emitRegister(e.asm, X.DIV32 + wide, 0, divisor, 0, 0, 0);
    return;
  }
  const done = e.newLabel();
  if ((checks & DIVISION_CHECK.OVERFLOW) !== 0) {
    const divide = e.newLabel();
    ri(e, X.CMP32_I + wide, divisor, -1);
    e.branch(CC.NE, divide);
    if (op === P.DIV_S) {
      // Only the smallest integer overflows when 1 is subtracted.
      ri(e, X.CMP32_I + wide, RAX, 1);
      e.branch(CC.O, e.trap(i, TRAP.INTEGER_OVERFLOW));
    } else {
      rr(e, X.XOR32_R, RDX, RDX);
      e.jump(done);
    }
    e.bind(divide);
  }
  emitRegister(e.asm, wide === 1 ? X.CQO : X.CDQ, 0, 0, 0, 0, 0);
  emitRegister(e.asm, X.IDIV32 + wide, 0, divisor, 0, 0, 0);
  e.bind(done);
}

/**
 * Leading or trailing zeros from the index of a bit. BSR and BSF leave it undefined for 0: a conditional move sets it.
 */
export function emitScan(e: Emission, i: number, op: number): void {
  const { v, asm } = e;
  const wide = v.aux[i] & 1;
  const d = e.register(v.firstOperand[i]);
  const x = e.register(v.firstOperand[i] + 1);
  const bits = wide === 1 ? 64 : 32;
  emitConstant(asm, SCRATCH, op === P.CLZ_BSR ? 2 * bits - 1 : bits, 0);
  rr(e, (op === P.CLZ_BSR ? X.BSR32 : X.BSF32) + wide, d, x);
  emitRegister(asm, X.CMOV32, d, SCRATCH, 0, 0, CC.E);
  if (op === P.CLZ_BSR) ri(e, X.XOR32_I, d, bits - 1);
}

/** Population count by adding the counts of neighbouring fields of 1, 2 and 4 bits (SWAR). */
export function emitPopulation(e: Emission, i: number): void {
  const { v, asm } = e;
  const wide = v.aux[i] & 1;
  const d = e.register(v.firstOperand[i]);
  const x = e.register(v.firstOperand[i] + 1);
  const mask = e.register(v.firstOperand[i] + 2);
  // d = x − ((x >> 1) & 0x55…)
  emitConstant(asm, mask, 0x55555555, wide * 0x55555555);
  rr(e, X.MOV32_L + wide, SCRATCH, x);
  ri(e, X.SHR32_I + wide, SCRATCH, 1);
  rr(e, X.AND32_R + wide, SCRATCH, mask);
  rr(e, X.MOV32_L + wide, d, x);
  rr(e, X.SUB32_R + wide, d, SCRATCH);
  // d = (d & 0x33…) + ((d >> 2) & 0x33…)
  emitConstant(asm, mask, 0x33333333, wide * 0x33333333);
  rr(e, X.MOV32_L + wide, SCRATCH, d);
  ri(e, X.SHR32_I + wide, SCRATCH, 2);
  rr(e, X.AND32_R + wide, SCRATCH, mask);
  rr(e, X.AND32_R + wide, d, mask);
  rr(e, X.ADD32_R + wide, d, SCRATCH);
  // d = (d + (d >> 4)) & 0x0f…
  rr(e, X.MOV32_L + wide, SCRATCH, d);
  ri(e, X.SHR32_I + wide, SCRATCH, 4);
  rr(e, X.ADD32_R + wide, d, SCRATCH);
  emitConstant(asm, mask, 0x0f0f0f0f, wide * 0x0f0f0f0f);
  rr(e, X.AND32_R + wide, d, mask);
  // The top byte of d × 0x01… is the sum of all bytes.
  emitConstant(asm, mask, 0x01010101, wide * 0x01010101);
  rr(e, X.IMUL32_R + wide, d, mask);
  ri(e, X.SHR32_I + wide, d, wide === 1 ? 56 : 24);
}

/** Traps unless address + offset + size ≤ length of the memory. */
export function emitBounds(e: Emission, i: number): void {
  const { v, asm } = e;
  const aux = v.aux[i];
  const memory = aux >>> 8;
  const shared = e.options.isShared(memory);
  const back = shared ? e.newLabel() : 0;
  const fail = shared ? e.outOfLine(OUT_OF_LINE.BOUNDS, i, 0, back) : e.trap(i, TRAP.MEMORY_OUT_OF_BOUNDS);
  if ((aux & 2) === 0) {
    const address = e.register(v.firstOperand[i]);
    const extent = unsigned(v.imm[i]) + unsigned(v.disp[i]);
    const wide = (aux & 1) !== 0;
    if (!wide && highWord(extent) === 0 && lowWord(extent) >= 0) {
      rm(e, X.LEA64, SCRATCH, address, lowWord(extent));
    } else {
      // The extent has 33 bits at most.
      emitConstant(asm, SCRATCH, lowWord(extent), highWord(extent));
      rr(e, X.ADD64_R, SCRATCH, address);
      if (wide) e.branch(CC.B, shared ? e.trap(i, TRAP.MEMORY_OUT_OF_BOUNDS) : fail);
    }
  }
  // With guard pages the register of the length may hold other values.
  const pinned = memory === 0 && e.options.explicitBounds;
  e.branch(compareLength(e, i, pinned ? MEMORY_LENGTH : -1), fail);
  if (shared) e.bind(back);
}

/**
 * Compares the end of the access with the length in a register, or in the context; returns the condition of being out
 * of bounds.
 */
function compareLength(e: Emission, i: number, register: number): number {
  const { v, asm } = e;
  const aux = v.aux[i];
  const at = memoryAt(e, aux >>> 8) + MEMORY.LENGTH;
  if ((aux & 2) !== 0) {
    if (register >= 0) ri(e, X.CMP64_I, register, v.disp[i]);
    else emitMemory(asm, X.CMP64_I, 0, asm.based(CONTEXT_REGISTER, at), v.disp[i]);
    return CC.B;
  }
  if (register >= 0) rr(e, X.CMP64_R, SCRATCH, register);
  else rm(e, X.CMP64_R, SCRATCH, CONTEXT_REGISTER, at);
  return CC.A;
}

/**
 * Traps unless index + distance < limit; the result is the index AND a mask that is all ones only if the compare, not
 * its prediction, says so.
 */
export function emitCheckIndex(e: Emission, i: number): void {
  const { v, asm } = e;
  const aux = v.aux[i], o = v.firstOperand[i], wide = aux & 1, size = (aux >> 1) & 1;
  const fail = e.trap(i, aux >>> 8);
  const result = e.register(o), index = e.register(o + 1);
  let compared = index;
  if (v.disp[i] !== 0) {
    compared = SCRATCH;
    if (size === 0) rm(e, X.LEA64, SCRATCH, index, v.disp[i]);
    else {
      emitConstant(asm, SCRATCH, v.disp[i], 0);
      rr(e, X.ADD64_R, SCRATCH, index);
      e.branch(CC.B, fail);
    }
  }
  if ((aux & 4) !== 0) ri(e, X.CMP32_I + wide, compared, v.imm[i]);
  else rr(e, X.CMP32_R + wide, compared, e.register(o + 2));
  e.branch(CC.AE, fail);
  rr(e, X.SBB32_R + size, result, result);
  rr(e, X.AND32_R + size, result, index);
}

function memoryAt(e: Emission, memory: number): number {
  return e.options.memoriesOffset + memory * MEMORY.SIZE;
}

/**
 * Out-of-line part of a check of a shared memory, which another thread may have grown: reads its true length, and keeps
 * that.
 */
export function emitSlowBounds(e: Emission, i: number, back: number): void {
  const memory = e.v.aux[i] >>> 8;
  // The base of memory 0 is in the context, too: its register can serve in between.
  rm(e, X.MOV64_L, MEMORY_BASE, CONTEXT_REGISTER, e.options.sharedLengthsOffset + memory * SHARED_LENGTH_SIZE);
  rm(e, X.MOV64_L, MEMORY_BASE, MEMORY_BASE, 0);
  rm(e, X.MOV64_S, MEMORY_BASE, CONTEXT_REGISTER, memoryAt(e, memory) + MEMORY.LENGTH);
  if (memory === 0 && e.options.explicitBounds) rr(e, X.MOV64_L, MEMORY_LENGTH, MEMORY_BASE);
  const outside = compareLength(e, i, MEMORY_BASE);
  rm(e, X.MOV64_L, MEMORY_BASE, CONTEXT_REGISTER, memoryAt(e, 0) + MEMORY.BASE);
  e.branch(outside ^ 1, back);
  callTrap(e, i, TRAP.MEMORY_OUT_OF_BOUNDS, e.frame);
}
