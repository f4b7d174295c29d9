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

/** The scale by which v + (v << scale) is v times the constant `factor`: that of 3, 5 and 9; 0 for other values. */
export function scaleOfFactor(s: X64Lowering, factor: number): number {
  if (!s.isImmediate(factor)) return 0;
  const value = s.imm[factor];
  return value === 3 ? 1 : value === 5 ? 2 : value === 9 ? 3 : 0;
}
