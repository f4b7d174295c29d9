/**
 * Emission of atomic operations that take several instructions. Only the first access of one may fault: memory does not
 * shrink.
 */
import { OP } from "../ir/ops.ts";
import type { Emission } from "./emission.ts";
import { emitConstant, emitMemory, emitRegister, NO_REGISTER } from "./encoding.ts";
import { rr } from "./emit_row.ts";
import { X } from "./instructions.ts";
import { AUX_MODE, AUX_SCALE_SHIFT, AUX_TRAP_SHIFT, CC, MODE } from "./machine_ops.ts";
import { MEMORY_BASE, RAX, RSP, SCRATCH } from "./registers.ts";

// Rows by width.
const LOAD_ROWS = [X.MOVZX32_8, X.MOVZX32_16, X.MOV32_L, X.MOV64_L];
const CMPXCHG_ROWS = [X.CMPXCHG8_M, X.CMPXCHG16_M, X.CMPXCHG32_M, X.CMPXCHG64_M];

/** Row on registers of bitwise operation `op`, on 64 bits if `wide` is 1. */
function bitwiseRow(op: number, wide: number): number {
  return (op === OP.AND ? X.AND32_R : op === OP.OR ? X.OR32_R : X.XOR32_R) + wide;
}

/** P.ATOMIC_LOOP: rax = [m], then [m] = rax op value, until [m] was still rax. */
export function emitAtomicLoop(e: Emission, i: number): void {
  const { v, asm, location } = e;
  const width = v.imm[i] >> 8;
  const aux = v.aux[i];
  const mode = aux & AUX_MODE;
  const scale = (aux >>> AUX_SCALE_SHIFT) & 3;
  let o = v.firstOperand[i] + 2;
  const temp = e.register(v.firstOperand[i] + 1);
  let base = MEMORY_BASE;
  let index = NO_REGISTER;
  let disp = v.disp[i];
  if (mode === MODE.POINTER || mode === MODE.POINTER_INDEX) base = location[o++] & 15;
  else if (disp < 0) {
    // An offset of 2 GiB and more does not fit the displacement.
    emitConstant(asm, SCRATCH, disp, 0);
    rr(e, X.ADD64_R, SCRATCH, MEMORY_BASE);
    base = SCRATCH;
    disp = 0;
  }
  if (mode === MODE.MEMORY || mode === MODE.POINTER_INDEX) index = location[o++] & 15;
  const value = location[o] & 15;
  const code = (aux >>> AUX_TRAP_SHIFT) & 63;
  if (code !== 0) e.trapSite(i, code, e.frame);
  emitMemory(asm, LOAD_ROWS[width], RAX, asm.indexed(base, index, scale, disp));
  const again = e.newLabel();
  e.bind(again);
  rr(e, X.MOV64_L, temp, RAX);
  rr(e, bitwiseRow(v.imm[i] & 0xff, width === 3 ? 1 : 0), temp, value);
  emitRegister(asm, X.LOCK, 0, 0, 0, 0, 0);
  emitMemory(asm, CMPXCHG_ROWS[width], temp, asm.indexed(base, index, scale, disp));
  e.branch(CC.NE, again);
}

/** A locked instruction without effect orders all accesses, faster than mfence. */
export function emitFence(e: Emission): void {
  emitRegister(e.asm, X.LOCK, 0, 0, 0, 0, 0);
  emitMemory(e.asm, X.OR32_I, 0, e.asm.based(RSP));
}
