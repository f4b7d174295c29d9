/**
 * Rules of the proposal "wide arithmetic": operands and results of 128 bits are two i64, the low half first.
 */
import { I64, type ValType } from "../wasm/types.ts";
import type { Rule } from "./control.ts";

const TWO: readonly ValType[] = [I64, I64];
const FOUR: readonly ValType[] = [I64, I64, I64, I64];

function rule(params: readonly ValType[]): Rule {
  return (walker) => {
    walker.popAll(params);
    walker.pushAll(TWO);
  };
}

export const WIDE_RULES = {
  "i64.add128": rule(FOUR),
  "i64.sub128": rule(FOUR),
  "i64.mul_wide_s": rule(TWO),
  "i64.mul_wide_u": rule(TWO),
};
