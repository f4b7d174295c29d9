/**
 * Emission of allocation in the collected heap (gc_layout.ts): inline code takes the first slot off the free list of
 * the size class. If the list is empty, or the object has no class, a stub of the image calls the runtime and preserves
 * every register but the scratch ones.
 */
import { RELOC, STUB } from "../codegen/machine_code.ts";
import { CONTEXT } from "../abi/context_layout.ts";
import { CELLS, MAX_SMALL_BYTES } from "../abi/gc_layout.ts";
import { relative } from "./emit_calls.ts";
import { emitAt } from "./emit_row.ts";
import { type Emission, OUT_OF_LINE } from "./emission.ts";
import { X } from "./instructions.ts";
import { CC } from "./machine_ops.ts";
import { CONTEXT_REGISTER, SCRATCH, SCRATCH2, ZERO } from "./registers.ts";

export function emitAllocation(e: Emission, i: number): void {
  const { v, asm } = e;
  const o = v.firstOperand[i];
  const object = e.register(o);
  const cells = e.register(o + 1);
  const back = e.newLabel();
  const slow = e.outOfLine(OUT_OF_LINE.ALLOCATION, i, 0, back);
  emitAt(e, X.LDR_X_U, cells, CONTEXT_REGISTER, CONTEXT.HEAP);
  let at = CELLS.FREE + 8 * v.disp[i];
  if ((v.aux[i] & 1) !== 0) {
    const bytes = e.register(o + 3);
    at = CELLS.FREE;
    // The limit has no low 12 bits.
    asm.rri(X.SUBS_I64, ZERO, bytes, MAX_SMALL_BYTES >> 12, 1);
    e.branch(CC.HI, slow);
    asm.rri(X.ADD_I64, SCRATCH, bytes, 7, 0);
    asm.rri(X.UBFM64, SCRATCH2, SCRATCH, 3, 63);
    asm.rrri(X.ADD64, SCRATCH, cells, SCRATCH2, 0, 0);
    emitAt(e, X.LDRB_U, SCRATCH, SCRATCH, CELLS.CLASS_OF);
    asm.rrri(X.ADD64, cells, cells, SCRATCH, 3, 0);
  }
  emitAt(e, X.LDR_X_U, object, cells, at);
  e.branchZero(X.CBZ64, object, slow);
  emitAt(e, X.LDR_X_U, SCRATCH, object, 0);
  emitAt(e, X.STR_X_U, SCRATCH, cells, at);
  e.bind(back);
}

export function emitSlowAllocation(e: Emission, i: number, back: number): void {
  const { v, asm } = e;
  const o = v.firstOperand[i];
  if ((v.aux[i] & 1) !== 0) asm.move(1, SCRATCH, e.register(o + 3));
  else asm.constant(SCRATCH, v.imm[i], 0);
  relative(e, X.BL, RELOC.STUB, STUB.ALLOCATE);
  e.callSite(i, e.frame, 0);
  asm.move(1, e.register(o), SCRATCH);
  e.jump(back);
}
