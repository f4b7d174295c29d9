/**
 * Compare chains: conditions that are the AND or OR of two comparisons, without a branch or a value in between. The
 * second is a conditional comparison (CCMP, CCMN, FCCMP), which compares only if the first has not decided the result,
 * and otherwise sets the flags to the outcome that its own condition expects.
 *
 * The VCode instruction has the second's row. Its imm and disp hold, packed, the operands of the second and the first
 * comparison (`packSecond`, `packFirst`); the registers of the first precede those of the second.
 */
import { X } from "./instructions.ts";

/** By condition: flags NZCV for which it holds. For those of the opposite condition (cc ^ 1) it does not hold. */
export const HOLDS: Uint8Array = Uint8Array.of(4, 0, 2, 0, 8, 0, 1, 0, 2, 0, 0, 8, 0, 4);

// Fields of imm: the second's immediate, its flags, the condition for making it, and how many registers the first has.
const FLAGS_SHIFT = 5;
const CONDITION_SHIFT = 9;
const PAIR_BIT = 1 << 13;
// Fields of disp: row and fields i and s of the first comparison.
const I_SHIFT = 10;
const S_SHIFT = 23;

/** The word imm of a chain. `pair`: the first comparison has two registers. */
export function packSecond(immediate: number, flags: number, condition: number, pair: boolean): number {
  return immediate | (flags << FLAGS_SHIFT) | (condition << CONDITION_SHIFT) | (pair ? PAIR_BIT : 0);
}
/** The word disp of a chain. */
export function packFirst(row: number, i: number, s: number): number {
  return row | (i << I_SHIFT) | (s << S_SHIFT);
}

export function chainImmediate(imm: number): number {
  return imm & 31;
}
export function chainFlags(imm: number): number {
  return (imm >>> FLAGS_SHIFT) & 15;
}
export function chainCondition(imm: number): number {
  return (imm >>> CONDITION_SHIFT) & 15;
}
/** Registers of the first comparison. */
export function firstRegisters(imm: number): number {
  return (imm & PAIR_BIT) !== 0 ? 2 : 1;
}
export function firstRow(disp: number): number {
  return disp & ((1 << I_SHIFT) - 1);
}
export function firstI(disp: number): number {
  return (disp >>> I_SHIFT) & ((1 << (S_SHIFT - I_SHIFT)) - 1);
}
export function firstS(disp: number): number {
  return disp >>> S_SHIFT;
}

/** Whether `row` is the second comparison of a chain. */
export function isChainRow(row: number): boolean {
  return (row >= X.CCMP32 && row <= X.CCMP_I64) || row === X.FCCMP_S || row === X.FCCMP_D;
}
