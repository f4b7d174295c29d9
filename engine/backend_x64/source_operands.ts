/**
 * Source operands. In: a value. Out: the r/m operand of the next instruction in the lowering context: a folded load, a
 * pool constant, or a register (or the stack slot that the allocator gives it).
 */
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { foldAddress } from "./addressing.ts";
import type { X64Lowering } from "./lowering_context.ts";
import { MODE } from "./machine_ops.ts";

/** Resolves value `id` as the source operand of the next instruction. `any`: the operand may be a stack slot. */
export function source(s: X64Lowering, id: number, any: boolean): void {
  if (s.isFoldedLoad(id)) {
    foldAddress(s, id, false);
    return;
  }
  s.sourceRegister(s.reg(id), any);
}

/** The same for a float: a constant comes from the pool unless it was hoisted into a register. */
export function sourceFloat(s: X64Lowering, id: number): void {
  const ty = s.ty[id];
  if (s.floatMemory && s.op[id] === OP.CONST && s.constantBlock[id] >= 0 && (s.imm[id] !== 0 || s.c[id] !== 0)) {
    s.sourceRegister(0, false);
    s.mode = MODE.POOL;
    s.disp = s.imm[id];
    s.high = ty === TY.F64 ? s.c[id] : 0;
    s.poolSize = ty === TY.F64 ? 1 : 0;
    return;
  }
  source(s, id, true);
}
