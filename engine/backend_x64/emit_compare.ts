/**
 * Emission of compares with their consumers (machine_ops.ts: CONSUMER) except the branch, which belongs to the block's
 * end.
 */
import { operandVreg } from "../codegen/vcode.ts";
import type { Emission } from "./emission.ts";
import { emitMemory, emitRegister, NO_REGISTER } from "./encoding.ts";
import { X } from "./instructions.ts";
import {
  AUX_CODE_SHIFT,
  AUX_CONDITION_SHIFT,
  AUX_MODE,
  auxConsumer,
  CC,
  CONSUMER,
  MODE,
  STORE_CONDITION,
} from "./machine_ops.ts";
import { RSP, SCRATCH } from "./registers.ts";
import { emitAddressed, emitMove, emitRow, slotOffset } from "./emit_row.ts";

/** Condition of instruction `i`. */
function conditionOf(e: Emission, i: number): number {
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

/**
 * Emits the compare of `i`, whose operands begin at `o`, and returns the condition to branch on. A test of a register
 * against zero is omitted if the preceding instruction has set the flags by the same result.
 */
export function emitFlags(e: Emission, i: number, o: number): number {
  const cc = conditionOf(e, i);
  const known = knownCondition(e, i, o, cc);
  if (known >= 0) return known;
  emitRow(e, i, e.v.op[i], o);
  return cc;
}

/** Whether `emitFlags` would emit nothing. */
export function flagsAreSet(e: Emission, i: number, o: number): boolean {
  return knownCondition(e, i, o, conditionOf(e, i)) >= 0;
}

/** The condition that the flags already show for test `i`, or −1. */
function knownCondition(e: Emission, i: number, o: number, cc: number): number {
  const { v, location } = e;
  const row = v.op[i];
  if (row !== X.TEST32_M && row !== X.TEST64_M || !e.reuseFlags) return -1;
  if (e.flagsAt !== e.asm.at || e.flagsFixups !== e.fixupCount || e.flagsWide !== row - X.TEST32_M) return -1;
  if (
    (v.aux[i] & AUX_MODE) !== MODE.REGISTER || location[o] !== e.flagsRegister || location[o + 1] !== e.flagsRegister
  ) return -1;
  if (e.flagsExact || cc === CC.E || cc === CC.NE) return cc;
  // After an addition the overflow flag is not 0, but the sign is right.
  return cc === CC.L ? CC.S : cc === CC.GE ? CC.NS : -1;
}

/** Emits compare `i` and its consumer. */
export function emitCompare(e: Emission, i: number): void {
  const { v } = e;
  const o = v.firstOperand[i];
  const consumer = auxConsumer(v.aux[i]);
  switch (consumer) {
    case CONSUMER.SET:
      emitSet(e, i, o);
      break;
    case CONSUMER.MOVE32:
    case CONSUMER.MOVE64:
      emitConditionalMove(e, consumer === CONSUMER.MOVE64 ? X.CMOV64 : X.CMOV32, o, emitFlags(e, i, o + 3));
      break;
    case CONSUMER.MOVE_F32:
    case CONSUMER.MOVE_F64: {
      const cc = emitFlags(e, i, o + 3);
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
      branchIf(e, emitFlags(e, i, o), e.trap(i, (v.aux[i] >>> AUX_CODE_SHIFT) & 63));
      break;
    default:
      throw new Error("A compare without a consumer");
  }
}

function emitSet(e: Emission, i: number, o: number): void {
  const { asm, location } = e;
  const d = location[o] & 15;
  const row = e.v.op[i];
  const cc = conditionOf(e, i);
  const known = knownCondition(e, i, o + 1, cc);
  if (known >= 0) {
    emitRegister(asm, X.SETCC, 0, d, 0, 0, known);
    emitRegister(asm, X.MOVZX32_8, d, d, 0, 0, 0);
    return;
  }
  if (cc >= CC.FE) {
    emitRow(e, i, row, o + 1);
    // Parity means unordered.
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

/** Compares and stores the condition: the address needs no arithmetic, which would change the flags. */
export function emitStoredCondition(e: Emission, i: number): void {
  const { v, location } = e;
  const mode = v.aux[i] & AUX_MODE;
  let o = v.firstOperand[i];
  const base = mode === MODE.POINTER || mode === MODE.POINTER_INDEX ? location[o++] & 15 : NO_REGISTER;
  const index = mode === MODE.MEMORY || mode === MODE.POINTER_INDEX ? location[o++] & 15 : NO_REGISTER;
  const how = auxConsumer(v.aux[i]), wide = how & 1;
  const first = location[o] & 15;
  if ((how & ~1) === STORE_CONDITION.REGISTERS) {
    emitRegister(e.asm, X.CMP32_R + wide, first, location[o + 1] & 15, 0, 0, 0);
  } else if ((how & ~1) === STORE_CONDITION.IMMEDIATE) {
    emitRegister(e.asm, X.CMP32_I + wide, 0, first, 0, v.imm[i], 0);
  } else emitRegister(e.asm, X.TEST32_M + wide, first, first, 0, 0, 0);
  emitAddressed(e, i, X.SETCC, 0, 0, base, index, 0, conditionOf(e, i));
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
  else emitMemory(e.asm, row, d, e.asm.based(RSP, slotOffset(e, from)), 0, 0, cc);
}
