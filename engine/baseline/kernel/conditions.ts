/**
 * Processor-independent condition codes. Integer conditions apply to the operands compared last. F… conditions apply to
 * floats and are false for NaN, except FNE; NOT_FGT and NOT_FGE are true for it. A condition and its negation differ in
 * the lowest bit.
 */
import type { i32 } from "./memory.ts";

export const EQ: i32 = 0;
export const NE: i32 = 1;
export const LT_S: i32 = 2;
export const GE_S: i32 = 3;
export const LT_U: i32 = 4;
export const GE_U: i32 = 5;
export const GT_S: i32 = 6;
export const LE_S: i32 = 7;
export const GT_U: i32 = 8;
export const LE_U: i32 = 9;
export const FEQ: i32 = 10;
export const FNE: i32 = 11;
export const FGT: i32 = 12;
export const NOT_FGT: i32 = 13;
export const FGE: i32 = 14;
export const NOT_FGE: i32 = 15;
/** Signed overflow; used only by the machine files. */
export const OVERFLOW: i32 = 16;
export const NO_OVERFLOW: i32 = 17;

/** The negation of a condition. */
export function opposite(condition: i32): i32 {
  return condition ^ 1;
}

/** The integer condition that is equivalent after the operands are exchanged. */
export function swapped(condition: i32): i32 {
  switch (condition) {
    case LT_S:
      return GT_S;
    case GT_S:
      return LT_S;
    case LE_S:
      return GE_S;
    case GE_S:
      return LE_S;
    case LT_U:
      return GT_U;
    case GT_U:
      return LT_U;
    case LE_U:
      return GE_U;
    case GE_U:
      return LE_U;
  }
  return condition;
}
