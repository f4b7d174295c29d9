/**
 * The proposal "wide arithmetic": integers of 128 bits as two i64 on the stack, the low half below the high half. In:
 * operands on the translator's stack. Out: 64-bit additions with an explicit carry, and products as MUL (low half) and
 * MULHI (high half).
 */
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import type { Handler, Translation } from "./translation.ts";

const { I32, I64 } = TY;

/** a + b: there is a carry exactly if the low half of the sum is less than that of a. */
function add128(t: Translation): void {
  const { b } = t;
  const [aLow, aHigh, bLow, bHigh] = popFour(t);
  const low = b.binary(OP.ADD, I64, aLow, bLow);
  const carry = b.unary(OP.EXTEND_U, I64, b.binary(OP.LT_U, I32, low, aLow));
  t.push(low);
  t.push(b.binary(OP.ADD, I64, b.binary(OP.ADD, I64, aHigh, bHigh), carry));
}

/** a − b: there is a borrow exactly if the low half of a is less than that of b. */
function sub128(t: Translation): void {
  const { b } = t;
  const [aLow, aHigh, bLow, bHigh] = popFour(t);
  const borrow = b.unary(OP.EXTEND_U, I64, b.binary(OP.LT_U, I32, aLow, bLow));
  t.push(b.binary(OP.SUB, I64, aLow, bLow));
  t.push(b.binary(OP.SUB, I64, b.binary(OP.SUB, I64, aHigh, bHigh), borrow));
}

function popFour(t: Translation): [aLow: number, aHigh: number, bLow: number, bHigh: number] {
  const at = (t.sp -= 4);
  const { stack } = t;
  return [stack[at], stack[at + 1], stack[at + 2], stack[at + 3]];
}

function multiply(high: number): Handler {
  return (t) => {
    const { b } = t;
    const y = t.pop();
    const x = t.pop();
    t.push(b.binary(OP.MUL, I64, x, y));
    t.push(b.binary(high, I64, x, y));
  };
}

export const WIDE_HANDLERS: Readonly<Record<string, Handler>> = {
  "i64.add128": add128,
  "i64.sub128": sub128,
  "i64.mul_wide_s": multiply(OP.MULHI_S),
  "i64.mul_wide_u": multiply(OP.MULHI_U),
};
