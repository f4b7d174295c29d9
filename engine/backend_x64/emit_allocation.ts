/**
 * Emission of allocation in the collected heap (gc_layout.ts): inline code takes the first slot off the free list of
 * the size class. If the list is empty, or the object has no class, a stub of the image calls the runtime and preserves
 * every register, so that the fast path needs nothing on the stack.
 */
import { RELOC, STUB } from "../codegen/machine_code.ts";
import { CONTEXT } from "../abi/context_layout.ts";
import { CELLS, MAX_SMALL_BYTES, SIZE_CLASSES } from "../abi/gc_layout.ts";
import { type Emission, OUT_OF_LINE } from "./emission.ts";
import { emitConstant, emitMemory, NO_REGISTER } from "./encoding.ts";
import { relative } from "./emit_calls.ts";
import { ri, rm, rr } from "./emit_row.ts";
import { X } from "./instructions.ts";
import { CC } from "./machine_ops.ts";
import { CONTEXT_REGISTER, SCRATCH } from "./registers.ts";

export function emitAllocation(e: Emission, i: number): void {
  const { v, asm } = e;
  const o = v.firstOperand[i];
  const object = e.register(o);
  const cells = e.register(o + 1);
  const back = e.newLabel();
  const slow = e.outOfLine(OUT_OF_LINE.ALLOCATION, i, 0, back);
  rm(e, X.MOV64_L, cells, CONTEXT_REGISTER, CONTEXT.HEAP);
  let index = NO_REGISTER;
  let at = CELLS.FREE + 8 * v.disp[i];
  if ((v.aux[i] & 1) !== 0) {
    const bytes = e.register(o + 3);
    index = e.register(o + 2);
    at = CELLS.FREE;
    ri(e, X.CMP64_I, bytes, MAX_SMALL_BYTES);
    e.branch(CC.A, slow);
    rm(e, X.LEA64, index, bytes, 7);
    ri(e, X.SHR64_I, index, 3);
    emitMemory(asm, X.MOVZX32_8, index, asm.indexed(cells, index, 0, CELLS.CLASS_OF));
  }
  emitMemory(asm, X.MOV64_L, object, asm.indexed(cells, index, index === NO_REGISTER ? 0 : 3, at));
  rr(e, X.TEST64_M, object, object);
  e.branch(CC.E, slow);
  const next = e.newLabel();
  if (index === NO_REGISTER) {
    // Most links lead to the slot behind. The branch predicts that, so the next allocation need not wait for this load.
    rm(e, X.LEA64, SCRATCH, object, SIZE_CLASSES[v.disp[i]]);
    rm(e, X.CMP64_R, SCRATCH, object, 0);
    e.branch(CC.E, next);
  }
  rm(e, X.MOV64_L, SCRATCH, object, 0);
  e.bind(next);
  emitMemory(asm, X.MOV64_S, SCRATCH, asm.indexed(cells, index, index === NO_REGISTER ? 0 : 3, at));
  e.bind(back);
}

export function emitSlowAllocation(e: Emission, i: number, back: number): void {
  const { v, asm } = e;
  const o = v.firstOperand[i];
  if ((v.aux[i] & 1) !== 0) rr(e, X.MOV64_L, SCRATCH, e.register(o + 3));
  else emitConstant(asm, SCRATCH, v.imm[i], 0);
  relative(e, X.CALL32, RELOC.STUB, STUB.ALLOCATE);
  e.callSite(i, e.frame, 0);
  rr(e, X.MOV64_L, e.register(o), SCRATCH);
  e.jump(back);
}
