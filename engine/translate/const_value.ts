/**
 * Constant expressions whose value is known at compile time. In: a valid initializer. Out: its bits, or the function
 * that it refers to, or undefined (it reads an imported global, or makes a vector or an object). Immutable globals with
 * a known value are folded into the code (specification, 3.4.13.3).
 */
import { EVAL_DONE, evalHi, evalLo, evaluate } from "../ir/eval.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { CONSTANT, ConstantReader } from "../wasm/constant_reader.ts";
import type { Expr } from "../wasm/module.ts";
import type { ConstValue } from "./module_facts.ts";

/** The operation of an instruction with two operands of type `ty`. */
const OPERATIONS: ReadonlyMap<number, { readonly op: number; readonly ty: number }> = new Map([
  [CONSTANT.I32_ADD, { op: OP.ADD, ty: TY.I32 }],
  [CONSTANT.I32_SUB, { op: OP.SUB, ty: TY.I32 }],
  [CONSTANT.I32_MUL, { op: OP.MUL, ty: TY.I32 }],
  [CONSTANT.I64_ADD, { op: OP.ADD, ty: TY.I64 }],
  [CONSTANT.I64_SUB, { op: OP.SUB, ty: TY.I64 }],
  [CONSTANT.I64_MUL, { op: OP.MUL, ty: TY.I64 }],
]);

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
        const { op, ty } = operation;
        if (evaluate(op, ty, a.ty, a.lo, a.hi, b.lo, b.hi) !== EVAL_DONE) return undefined;
        stack.push({ ty, lo: evalLo, hi: evalHi, func: -1 });
      }
    }
  }
  return undefined;
}
