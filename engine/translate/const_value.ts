/**
 * Constant expressions whose value is known at compile time. In: a valid initializer. Out: its bits, or the function
 * that it refers to, or undefined (it reads an imported global, or makes a vector or an object). Immutable globals with
 * a known value are folded into the code (specification, 3.4.13.3).
 */
import { EVAL_DONE, evalHi, evalLo, evaluate } from "../ir/eval.ts";
import { OP, type OpName } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { CodeReader } from "../wasm/code_reader.ts";
import { TY_OF_LETTER } from "../wasm/ir_types.ts";
import type { Expr } from "../wasm/module.ts";
import { OPCODES } from "../wasm/opcodes.ts";
import type { ConstValue } from "./module_facts.ts";

/** Evaluates `expr`; `globals[i]` is the value of global i when it is known. */
export function constValue(expr: Expr, globals: readonly (ConstValue | undefined)[]): ConstValue | undefined {
  const reader = new CodeReader(expr.bytes, 0, expr.bytes.length, expr.offset);
  const { imm } = reader;
  const stack: ConstValue[] = [];
  while (!reader.done) {
    const row = OPCODES[reader.next()];
    switch (row.mnemonic) {
      case "i32.const":
        stack.push({ ty: TY.I32, lo: imm.lo | 0, hi: 0, func: -1 });
        break;
      case "i64.const":
        stack.push({ ty: TY.I64, lo: imm.lo | 0, hi: imm.hi | 0, func: -1 });
        break;
      case "f32.const":
        stack.push({ ty: TY.F32, lo: imm.lo | 0, hi: 0, func: -1 });
        break;
      case "f64.const":
        stack.push({ ty: TY.F64, lo: imm.lo | 0, hi: imm.hi | 0, func: -1 });
        break;
      case "ref.null":
        stack.push({ ty: TY.REF, lo: 0, hi: 0, func: -1 });
        break;
      case "ref.func":
        stack.push({ ty: TY.REF, lo: 0, hi: 0, func: imm.index });
        break;
      case "global.get": {
        const value = globals[imm.index];
        if (value === undefined) return undefined;
        stack.push(value);
        break;
      }
      case "end":
        return stack.pop();
      default: {
        const b = stack.pop();
        const a = stack.pop();
        if (row.ir === undefined || a === undefined || b === undefined) return undefined;
        const ty = TY_OF_LETTER[row.results ?? ""] ?? TY.NONE;
        const op = OP[row.ir as OpName];
        if (evaluate(op, ty, a.ty, a.lo, a.hi, b.lo, b.hi) !== EVAL_DONE) return undefined;
        stack.push({ ty, lo: evalLo, hi: evalHi, func: -1 });
      }
    }
  }
  return undefined;
}
