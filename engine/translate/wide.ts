/**
 * The proposal "wide arithmetic": integers of 128 bits as two i64 on the stack, the low half below the high half. In:
 * operands on the translator's stack. Out: 64-bit additions with an explicit carry, and products as MUL (low half) and
 * MULHI (high half).
 */
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { idOf } from "../wasm/opcodes.ts";
import { notCompiled } from "./failures.ts";
import type { Translation } from "./translation.ts";

const { I32, I64 } = TY;

/** a + b: there is a carry exactly if the low half of the sum is less than that of a. */
function add128(t: Translation): void {
  const { b, stack } = t;
  const at = t.sp - 4;
  t.sp = at;
  const aLow = stack[at], aHigh = stack[at + 1], bLow = stack[at + 2], bHigh = stack[at + 3];
  const low = b.binary(OP.ADD, I64, aLow, bLow);
  const carry = b.unary(OP.EXTEND_U, I64, b.binary(OP.LT_U, I32, low, aLow));
  t.push(low);
  t.push(b.binary(OP.ADD, I64, b.binary(OP.ADD, I64, aHigh, bHigh), carry));
}

/** a − b: there is a borrow exactly if the low half of a is less than that of b. */
function sub128(t: Translation): void {
  const { b, stack } = t;
  const at = t.sp - 4;
  t.sp = at;
  const aLow = stack[at], aHigh = stack[at + 1], bLow = stack[at + 2], bHigh = stack[at + 3];
  const borrow = b.unary(OP.EXTEND_U, I64, b.binary(OP.LT_U, I32, aLow, bLow));
  t.push(b.binary(OP.SUB, I64, aLow, bLow));
  t.push(b.binary(OP.SUB, I64, b.binary(OP.SUB, I64, aHigh, bHigh), borrow));
}

/** A product whose high half is that of operation `high`. */
function multiply(t: Translation, high: number): void {
  const { b } = t;
  const y = t.pop();
  const x = t.pop();
  t.push(b.binary(OP.MUL, I64, x, y));
  t.push(b.binary(high, I64, x, y));
}

const ADD = idOf("i64.add128");
const SUB = idOf("i64.sub128");
const MUL_S = idOf("i64.mul_wide_s");
const MUL_U = idOf("i64.mul_wide_u");

/** Translates the instruction of row `id`. */
export function translateWide(t: Translation, id: number): void {
  switch (id) {
    case ADD:
      add128(t);
      break;
    case SUB:
      sub128(t);
      break;
    case MUL_S:
      multiply(t, OP.MULHI_S);
      break;
    case MUL_U:
      multiply(t, OP.MULHI_U);
      break;
    default:
      throw notCompiled(id, t.b.pos);
  }
}
