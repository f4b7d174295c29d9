/**
 * Wide arithmetic: expressions, statements, and the functions that stand for the instructions in the standard form. In:
 * the state of a body. Out: instructions.
 */
import { Bytes } from "../module_bytes.ts";
import type { Signature, TypeName } from "../value_types.ts";
import type { Body } from "./body.ts";
import { OP } from "./opcodes.ts";
import { consume } from "./values.ts";

/** An instruction, and the same in arithmetic of 64 bits, behind the declaration of locals. */
interface WideOp {
  readonly code: number;
  readonly signature: Signature;
  readonly locals: number;
  readonly body: readonly number[];
}

const ADD = 0x7c, SUB = 0x7d, MUL = 0x7e, AND = 0x83, SHR_S = 0x87, SHR_U = 0x88, LT_U = 0x54, EXTEND_U = 0xad;
const get = (local: number) => [OP.localGet, local];
const tee = (local: number) => [OP.localTee, local];
/** The halves of a local, as i64. */
const low = (local: number) => [...get(local), 0x42, 0xff, 0xff, 0xff, 0xff, 0x0f, AND];
const high = (local: number) => [...get(local), 0x42, 32, SHR_U];
/** Whether local `a` is below local `b`, as an i64. */
const below = (a: number, b: number) => [...get(a), ...get(b), LT_U, EXTEND_U];
/** Local `b` if local `a` is negative, 0 otherwise. */
const ifNegative = (a: number, b: number) => [...get(a), 0x42, 63, SHR_S, ...get(b), AND];
/** The product of locals 0 and 1, by halves; locals 2 and 3 are the sums of the middle. */
const PRODUCT = [
  ...[...get(0), ...get(1), MUL],
  ...[...high(0), ...low(1), MUL, ...low(0), ...low(1), MUL, 0x42, 32, SHR_U, ADD, ...tee(2), OP.drop],
  ...[...low(0), ...high(1), MUL, ...low(2), ADD, ...tee(3), OP.drop],
  ...[...high(0), ...high(1), MUL, ...high(2), ADD, ...high(3), ADD],
];

const wide = (params: number): Signature => ({
  params: Array.from({ length: params }, (): TypeName => "i64"),
  results: ["i64", "i64"],
});

export const WIDE_OPS: readonly WideOp[] = [
  {
    code: 0xfc13, // i64.add128
    signature: wide(4),
    locals: 1,
    body: [...get(0), ...get(2), ADD, ...tee(4), ...get(1), ...get(3), ADD, ...below(4, 0), ADD],
  },
  {
    code: 0xfc14, // i64.sub128
    signature: wide(4),
    locals: 0,
    body: [...get(0), ...get(2), SUB, ...get(1), ...get(3), SUB, ...below(0, 2), SUB],
  },
  {
    code: 0xfc15, // i64.mul_wide_s
    signature: wide(2),
    locals: 2,
    body: [...PRODUCT, ...ifNegative(0, 1), SUB, ...ifNegative(1, 0), SUB],
  },
  { code: 0xfc16, signature: wide(2), locals: 2, body: PRODUCT }, // i64.mul_wide_u
];

/** The code entry of the function that stands for an instruction. */
export function wideFunction({ locals, body }: WideOp): Bytes {
  const entry = locals === 0 ? new Bytes().u32(0) : new Bytes().u32(1).u32(locals).byte(0x7e);
  entry.bytes(body).byte(OP.end);
  return new Bytes().u32(entry.length).bytes(entry.taken());
}

/** Writes an instruction, whose operands are on the stack. It is not duplicated: the length of the forms differs. */
function write(b: Body, index: number): void {
  b.impure++;
  if (b.plan.standard) b.out.byte(OP.call).u32(b.plan.wideFunctions + index);
  else b.opcode(WIDE_OPS[index].code);
}

/** An operand, often one whose carry or sign the compiler knows. */
function operand(b: Body, depth: number): void {
  const { random } = b;
  switch (random.weighted([60, 12, 6, 12, 10])) {
    case 0:
      return b.expression("i64", depth - 1);
    case 1:
      return b.constant("i64", 0);
    case 2:
      return b.constant("i64", -1);
    case 3:
      b.expression("i32", depth - 1);
      b.out.byte(random.pick([0xac, EXTEND_U]));
      return;
    default:
      b.out.byte(0x42).s64(random.i64());
  }
}

/** An instruction with its operands; returns its index. */
function operation(b: Body, depth: number): void {
  const index = b.random.below(WIDE_OPS.length);
  for (const _ of WIDE_OPS[index].signature.params) operand(b, depth);
  write(b, index);
}

/** The low half of a result, the high one, or a combination. */
export function wideValue(b: Body, depth: number): void {
  operation(b, depth);
  switch (b.random.below(4)) {
    case 0:
      b.out.byte(OP.drop);
      break;
    case 1: {
      const local = b.newLocal("i64", true);
      b.out.byte(OP.localSet).u32(local).byte(OP.drop);
      b.get(local);
      break;
    }
    default:
      b.out.byte(b.random.pick([ADD, SUB, MUL, 0x85]));
  }
  b.mark("wide-arithmetic");
}

/** Numbers of 128 or 256 bits in locals: sums and differences with carry, and products. */
export function wideStatement(b: Body, depth: number): void {
  const { random } = b;
  if (random.chance(25)) {
    operation(b, depth);
    b.mark("wide-arithmetic");
    return consume(b, ["i64", "i64"]);
  }
  const locals = random.shuffled(b.settable("i64"));
  while (locals.length < 4) locals.push(b.newLocal("i64", true));
  const [lo, hi, mid, top] = locals;
  const index = random.below(2);
  const set = (local: number) => b.out.byte(OP.localSet).u32(local);
  if (random.chance(50)) { // a pair, and a value or a product
    b.get(lo);
    b.get(hi);
    if (random.chance(50)) {
      operand(b, depth);
      operand(b, depth);
    } else {
      operand(b, depth);
      operand(b, depth);
      write(b, random.pick([2, 3]));
    }
    write(b, index);
    set(hi);
    set(lo);
  } else { // the carry of a sum goes on into the next one
    b.get(lo);
    b.constant("i64", 0);
    operand(b, depth);
    b.constant("i64", 0);
    write(b, index);
    set(mid);
    set(lo);
    b.get(hi);
    b.constant("i64", 0);
    b.get(mid);
    random.chance(50) ? b.constant("i64", 0) : b.get(top);
    write(b, index);
    set(top);
    set(hi);
  }
  b.mark("wide-arithmetic");
}
