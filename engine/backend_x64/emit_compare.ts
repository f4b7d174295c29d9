/**
 * Emission of compares with their consumers (machine_ops.ts: CONSUMER) except the branch, which belongs to the block's end.
 */
import { operandVreg } from "../codegen/vcode.ts";
import type { Emission } from "./emission.ts";
import { emitMemory, emitRegister, NO_REGISTER } from "./encoding.ts";
import { X } from "./instructions.ts";
import { AUX_CODE_SHIFT, AUX_CONDITION_SHIFT, AUX_CONSUMER_SHIFT, CC, CONSUMER } from "./machine_ops.ts";
import { RSP, SCRATCH } from "./registers.ts";
import { emitMove, emitRow, slotOffset } from "./emit_row.ts";

/** Consumer of instruction `i`'s flags. */
export function consumerOf(e: Emission, i: number): number {
  return (e.v.aux[i] >>> AUX_CONSUMER_SHIFT) & 7;
}

/** Condition of instruction `i`. */
export function conditionOf(e: Emission, i: number): number {
  return (e.v.aux[i] >>> AUX_CONDITION_SHIFT) & 31;
}

/** Jumps to `label` if condition `cc`, float equality included, holds. */
export function branchIf(e: Emission, cc: number, label: number): void {
  if (cc === CC.FNE) {
    e.branch(CC.P, label);
    e.branch(CC.NE, label);
  } else if (cc === CC.FE) {
    const skip = e.newLabel();
    e.branch(CC.P, skip);
    e.branch(CC.E, label);
    e.bind(skip);
  } else {
    e.branch(cc, label);
  }
}

/** Emits compare `i` and what consumes it. */
export function emitCompare(e: Emission, i: number): void {
  const { v } = e;
  const o = v.firstOperand[i];
  const cc = conditionOf(e, i);
  const row = v.op[i];
  switch (consumerOf(e, i)) {
    case CONSUMER.SET:
      emitSet(e, i, row, o, cc);
      break;
    case CONSUMER.MOVE32:
    case CONSUMER.MOVE64:
      emitRow(e, i, row, o + 3);
      emitConditionalMove(e, consumerOf(e, i) === CONSUMER.MOVE64 ? X.CMOV64 : X.CMOV32, o, cc);
      break;
    case CONSUMER.MOVE_F32:
    case CONSUMER.MOVE_F64: {
      emitRow(e, i, row, o + 3);
      const from = e.location[o + 2];
      const to = e.location[o];
      if (from === to) break;
      const skip = e.newLabel();
      branchIf(e, cc ^ 1, skip);
      emitMove(e, from, to, v.vregTy[operandVreg(v.operands[o])]);
      e.bind(skip);
      break;
    }
    case CONSUMER.TRAP:
      emitRow(e, i, row, o);
      branchIf(e, cc, e.trap(i, (v.aux[i] >>> AUX_CODE_SHIFT) & 63));
      break;
    default:
      throw new Error("A compare without a consumer");
  }
}

function emitSet(e: Emission, i: number, row: number, o: number, cc: number): void {
  const { asm, location } = e;
  const d = location[o] & 15;
  if (cc >= CC.FE) {
    emitRow(e, i, row, o + 1);
    // Parity says unordered.
    emitRegister(asm, X.SETCC, 0, SCRATCH, 0, 0, cc === CC.FE ? CC.NP : CC.P);
    emitRegister(asm, X.SETCC, 0, d, 0, 0, cc === CC.FE ? CC.E : CC.NE);
    emitRegister(asm, cc === CC.FE ? X.AND8_M : X.OR8_M, SCRATCH, d, 0, 0, 0);
    emitRegister(asm, X.MOVZX32_8, d, d, 0, 0, 0);
    return;
  }
  // Zeroing first is cheaper than widening afterwards, if no operand of the compare is in the result's register.
  const end = e.v.firstOperand[i + 1];
  let shared = false;
  for (let k = o + 1; k < end; k++) if (location[k] === location[o]) shared = true;
  if (!shared) emitRegister(asm, X.XOR32_R, d, d, 0, 0, 0);
  emitRow(e, i, row, o + 1);
  emitRegister(asm, X.SETCC, 0, d, 0, 0, cc);
  if (shared) emitRegister(asm, X.MOVZX32_8, d, d, 0, 0, 0);
}

function emitConditionalMove(e: Emission, row: number, o: number, cc: number): void {
  if (cc === CC.FNE) {
    moveIf(e, row, o, CC.P);
    moveIf(e, row, o, CC.NE);
  } else {
    moveIf(e, row, o, cc);
  }
}

function moveIf(e: Emission, row: number, o: number, cc: number): void {
  const d = e.location[o] & 15;
  const from = e.location[o + 2];
  if (from >= 0) emitRegister(e.asm, row, d, from & 15, 0, 0, cc);
  else emitMemory(e.asm, row, d, 0, RSP, NO_REGISTER, 0, slotOffset(from), 0, cc);
}
