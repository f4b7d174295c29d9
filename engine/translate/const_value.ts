/**
 * Constant expressions whose value is known at compile time. In: a valid initializer. Out: its bits, or the function
 * that it refers to, or undefined (it reads an imported global, or makes a vector or an object). Immutable globals with
 * a known value are folded into the code (specification, 3.4.13.3).
 */
import { TY } from "../ir/types.ts";
import { CONSTANT, ConstantReader } from "../wasm/constant_reader.ts";
import type { Expr } from "../wasm/module.ts";
import type { ConstValue } from "./module_facts.ts";

type Operation = (a: bigint, b: bigint) => bigint;
const ADD: Operation = (a, b) => a + b;
const SUB: Operation = (a, b) => a - b;
const MUL: Operation = (a, b) => a * b;

/** The operation of an instruction, and the type of its operands. The IR's evaluation would load all its opcodes. */
const OPERATIONS: ReadonlyMap<number, { readonly ty: number; readonly apply: Operation }> = new Map([
  [CONSTANT.I32_ADD, { ty: TY.I32, apply: ADD }],
  [CONSTANT.I32_SUB, { ty: TY.I32, apply: SUB }],
  [CONSTANT.I32_MUL, { ty: TY.I32, apply: MUL }],
  [CONSTANT.I64_ADD, { ty: TY.I64, apply: ADD }],
  [CONSTANT.I64_SUB, { ty: TY.I64, apply: SUB }],
  [CONSTANT.I64_MUL, { ty: TY.I64, apply: MUL }],
]);

/** An integer's value. */
function integerOf({ lo, hi }: ConstValue): bigint {
  return BigInt(hi) << 32n | BigInt(lo >>> 0);
}

/** The constant of type `ty` with the low bits of `value`. */
function constantOf(ty: number, value: bigint): ConstValue {
  const lo = Number(BigInt.asIntN(32, value));
  return { ty, lo, hi: ty === TY.I64 ? Number(BigInt.asIntN(32, value >> 32n)) : 0, func: -1 };
}

/** Evaluates `expr`; `globals[i]` is the value of global i when it is known. */
export function constValue(expr: Expr, globals: readonly (ConstValue | undefined)[]): ConstValue | undefined {
  const reader = new ConstantReader(expr.bytes, 0, expr.bytes.length, expr.offset);
  const stack: ConstValue[] = [];
  const push = (ty: number, hi: number, func = -1) => stack.push({ ty, lo: func < 0 ? reader.lo | 0 : 0, hi, func });
  while (reader.left > 0) {
    const opcode = reader.next();
    switch (opcode) {
      case CONSTANT.I32_CONST:
        push(TY.I32, 0);
        break;
      case CONSTANT.I64_CONST:
        push(TY.I64, reader.hi | 0);
        break;
      case CONSTANT.F32_CONST:
        push(TY.F32, 0);
        break;
      case CONSTANT.F64_CONST:
        push(TY.F64, reader.hi | 0);
        break;
      case CONSTANT.REF_NULL:
        stack.push({ ty: TY.REF, lo: 0, hi: 0, func: -1 });
        break;
      case CONSTANT.REF_FUNC:
        push(TY.REF, 0, reader.index);
        break;
      case CONSTANT.GLOBAL_GET: {
        const value = globals[reader.index];
        if (value === undefined) return undefined;
        stack.push(value);
        break;
      }
      case CONSTANT.END:
        return stack.pop();
      default: {
        const operation = OPERATIONS.get(opcode);
        const b = stack.pop();
        const a = stack.pop();
        if (operation === undefined || a === undefined || b === undefined) return undefined;
        stack.push(constantOf(operation.ty, operation.apply(integerOf(a), integerOf(b))));
      }
    }
  }
  return undefined;
}
