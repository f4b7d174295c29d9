/**
 * Emission of compares with their consumers (machine_ops.ts: CONSUMER) except the branch, which belongs to the block's
 * end.
 */
import { operandVreg } from "../codegen/vcode.ts";
import { TY } from "../ir/types.ts";
import type { Emission } from "./emission.ts";
import { encode } from "./encoding.ts";
import { ROW_REGISTERS, X } from "./instructions.ts";
import { AUX_CODE_SHIFT, AUX_CONDITION_SHIFT, auxConsumer, CC, CONSUMER } from "./machine_ops.ts";
import { emitMove } from "./emit_row.ts";
import { ZERO } from "./registers.ts";
import {
  chainCondition,
  chainFlags,
  chainImmediate,
  firstI,
  firstRegisters,
  firstRow,
  firstS,
  isChainRow,
} from "./compare_chain.ts";

/** Condition of instruction `i`. */
function conditionOf(e: Emission, i: number): number {
  return (e.v.aux[i] >>> AUX_CONDITION_SHIFT) & 15;
}

/** Whether `row` is a branch on a register, which needs no flags. */
export function branchesItself(row: number): boolean {
  return row === X.CBNZ32 || row === X.CBNZ64 || row === X.TBNZ;
}

/** Emits the compare of `i`, whose operands begin at `o`, if it sets flags; returns the condition to branch on. */
export function emitFlags(e: Emission, i: number, o: number): number {
  const { v, location } = e;
  const row = v.op[i];
  if (branchesItself(row)) return conditionOf(e, i);
  if (isChainRow(row)) {
    emitChain(e, i, o);
    return conditionOf(e, i);
  }
  const n = location[o] & 31;
  const m = v.firstOperand[i + 1] > o + 1 ? location[o + 1] & 31 : 0;
  // Rows with a result write it to the register of zeros.
  const d = (ROW_REGISTERS[row] & 15) === 1 ? ZERO : 0;
  e.asm.word(encode(row, d, n, m, 0, v.imm[i], v.disp[i], 0, 0));
  return conditionOf(e, i);
}

/** Emits both comparisons of the chain `i`, whose operands begin at `o` (compare_chain.ts). */
function emitChain(e: Emission, i: number, o: number): void {
  const { v, asm } = e;
  const { op, imm, disp } = v;
  const first = firstRow(disp[i]);
  const count = firstRegisters(imm[i]);
  const d = (ROW_REGISTERS[first] & 15) === 1 ? ZERO : 0;
  const m = count === 2 ? e.register(o + 1) : 0;
  asm.word(encode(first, d, e.register(o), m, 0, firstI(disp[i]), firstS(disp[i]), 0, 0));
  o += count;
  const row = op[i];
  const y = v.firstOperand[i + 1] > o + 1 ? e.register(o + 1) : 0;
  const condition = chainCondition(imm[i]);
  asm.word(encode(row, 0, e.register(o), y, 0, chainImmediate(imm[i]), chainFlags(imm[i]), condition, 0));
}

/** Jumps to `label` if condition `cc` of compare `i`, after {@linkcode emitFlags}, holds. */
export function branchOn(e: Emission, i: number, cc: number, label: number): void {
  const { v } = e;
  const row = v.op[i];
  if (!branchesItself(row)) {
    e.branch(cc, label);
    return;
  }
  const register = e.register(v.firstOperand[i]);
  if (row === X.TBNZ) e.branchBit(cc === CC.NE ? X.TBNZ : X.TBZ, register, v.disp[i], label);
  else e.branchZero(cc === CC.NE ? row : row + X.CBZ32 - X.CBNZ32, register, label);
}

/** Emits compare `i` and its consumer. */
export function emitCompare(e: Emission, i: number): void {
  const { v, asm } = e;
  const o = v.firstOperand[i];
  const consumer = auxConsumer(v.aux[i]);
  switch (consumer) {
    case CONSUMER.SET: {
      const cc = emitFlags(e, i, o + 1);
      asm.rrrc(X.CSINC32, e.register(o), ZERO, ZERO, cc ^ 1);
      break;
    }
    case CONSUMER.MOVE32:
    case CONSUMER.MOVE64: {
      const cc = emitFlags(e, i, o + 3);
      asm.rrrc(
        consumer === CONSUMER.MOVE32 ? X.CSEL32 : X.CSEL64,
        e.register(o),
        e.register(o + 1),
        e.register(o + 2),
        cc,
      );
      break;
    }
    case CONSUMER.MOVE_F32:
    case CONSUMER.MOVE_F64: {
      const cc = emitFlags(e, i, o + 3);
      if (v.vregTy[operandVreg(v.operands[o])] === TY.V128) {
        emitVectorSelect(e, o, cc);
        break;
      }
      const row = consumer === CONSUMER.MOVE_F32 ? X.FCSEL_S : X.FCSEL_D;
      asm.rrrc(row, e.register(o), e.register(o + 1), e.register(o + 2), cc);
      break;
    }
    case CONSUMER.TRAP: {
      const cc = emitFlags(e, i, o);
      branchOn(e, i, cc, e.trap(i, (v.aux[i] >>> AUX_CODE_SHIFT) & 63));
      break;
    }
    default:
      throw new Error("A compare without a consumer");
  }
}

/** Whole vectors are selected by a branch. */
function emitVectorSelect(e: Emission, o: number, cc: number): void {
  const { location } = e;
  const done = e.newLabel();
  const otherwise = e.newLabel();
  e.branch(cc ^ 1, otherwise);
  emitMove(e, location[o + 1], location[o], TY.V128);
  e.jump(done);
  e.bind(otherwise);
  emitMove(e, location[o + 2], location[o], TY.V128);
  e.bind(done);
}
