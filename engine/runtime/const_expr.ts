/**
 * Constant expressions (specification, 3.3.10 and 4.6): evaluated in JavaScript when an instance is made, into 64-bit words as the cells of
 * globals and tables hold them. In: a valid expression in binary form. Nearly all are one constant, which is folded
 * once per module; the rest run on a small stack of bigints, of 128 bits for v128, which needs no arithmetic.
 */
import { Bug } from "../errors.ts";
import { CodeReader } from "../wasm/code_reader.ts";
import type { Expr } from "../wasm/module.ts";
import { idOf } from "../wasm/opcodes.ts";

/** A constant expression, prepared once per module. */
export type ConstInit =
  | { kind: "word"; word: bigint }
  | { kind: "vector"; bytes: Uint8Array }
  | { kind: "global"; index: number }
  | { kind: "func"; index: number }
  | { kind: "code"; expr: Expr };

/** What evaluation needs of the instance under construction. */
export interface ConstEnv {
  globalWord(index: number): bigint;
  /** The whole cell of a v128 global. */
  globalVector(index: number): Uint8Array;
  funcWord(index: number): bigint;
  /** Objects of a type of the module: their addresses. Fields that are not given are zero. */
  newStruct(typeIndex: number, fields?: readonly bigint[]): bigint;
  newArray(typeIndex: number, length: number, fill?: bigint): bigint;
  newFixedArray(typeIndex: number, elements: readonly bigint[]): bigint;
  /** Number of fields of a structure type. */
  fieldCount(typeIndex: number): number;
}

const END = idOf("end");
const I32_CONST = idOf("i32.const");
const I64_CONST = idOf("i64.const");
const F32_CONST = idOf("f32.const");
const F64_CONST = idOf("f64.const");
const V128_CONST = idOf("v128.const");
const REF_NULL = idOf("ref.null");
const REF_FUNC = idOf("ref.func");
const GLOBAL_GET = idOf("global.get");
const I32_ADD = idOf("i32.add");
const I32_SUB = idOf("i32.sub");
const I32_MUL = idOf("i32.mul");
const I64_ADD = idOf("i64.add");
const I64_SUB = idOf("i64.sub");
const I64_MUL = idOf("i64.mul");
const REF_I31 = idOf("ref.i31");
const STRUCT_NEW = idOf("struct.new");
const STRUCT_NEW_DEFAULT = idOf("struct.new_default");
const ARRAY_NEW = idOf("array.new");
const ARRAY_NEW_DEFAULT = idOf("array.new_default");
const ARRAY_NEW_FIXED = idOf("array.new_fixed");
const ANY_CONVERT_EXTERN = idOf("any.convert_extern");
const EXTERN_CONVERT_ANY = idOf("extern.convert_any");

function word64(lo: number, hi: number): bigint {
  return BigInt.asUintN(32, BigInt(lo)) | (BigInt.asUintN(32, BigInt(hi)) << 32n);
}

/** Prepares an expression. */
export function prepareConst(expr: Expr): ConstInit {
  const reader = new CodeReader(expr.bytes, 0, expr.bytes.length, expr.offset);
  const id = reader.next();
  const { imm } = reader;
  let init: ConstInit | undefined;
  if (id === I32_CONST || id === F32_CONST) init = { kind: "word", word: word64(imm.lo, 0) };
  else if (id === I64_CONST || id === F64_CONST) init = { kind: "word", word: word64(imm.lo, imm.hi) };
  else if (id === V128_CONST) init = { kind: "vector", bytes: imm.bytes.slice() };
  else if (id === REF_NULL) init = { kind: "word", word: 0n };
  else if (id === REF_FUNC) init = { kind: "func", index: imm.index };
  else if (id === GLOBAL_GET) init = { kind: "global", index: imm.index };
  if (init !== undefined && reader.next() === END) return init;
  return { kind: "code", expr };
}

/** The expression's value as a word; not for v128. */
export function evaluateConst(init: ConstInit, env: ConstEnv): bigint {
  switch (init.kind) {
    case "word":
      return init.word;
    case "global":
      return env.globalWord(init.index);
    case "func":
      return env.funcWord(init.index);
    case "vector":
      throw new Bug("A v128 constant is not a word");
    case "code":
      return run(init.expr, env);
  }
}

/** 16 bytes as one number. */
function vectorBits(bytes: Uint8Array): bigint {
  let bits = 0n;
  for (let k = 15; k >= 0; k--) bits = (bits << 8n) | BigInt(bytes[k]!);
  return bits;
}

function run(expr: Expr, env: ConstEnv): bigint {
  const reader = new CodeReader(expr.bytes, 0, expr.bytes.length, expr.offset);
  const { imm } = reader;
  const stack: bigint[] = [];
  const binary = (bits: number, operate: (a: bigint, b: bigint) => bigint) => {
    const b = stack.pop()!;
    const a = stack.pop()!;
    stack.push(BigInt.asUintN(bits, operate(a, b)));
  };
  for (;;) {
    const id = reader.next();
    switch (id) {
      case END:
        return BigInt.asUintN(64, stack.pop()!);
      case I32_CONST:
      case F32_CONST:
        stack.push(word64(imm.lo, 0));
        break;
      case I64_CONST:
      case F64_CONST:
        stack.push(word64(imm.lo, imm.hi));
        break;
      case V128_CONST:
        stack.push(vectorBits(imm.bytes));
        break;
      case REF_NULL:
        stack.push(0n);
        break;
      case REF_I31:
        stack.push(BigInt.asUintN(32, (stack.pop()! << 1n) | 1n));
        break;
      case STRUCT_NEW: {
        const count = env.fieldCount(imm.index);
        stack.push(env.newStruct(imm.index, stack.splice(stack.length - count, count)));
        break;
      }
      case STRUCT_NEW_DEFAULT:
        stack.push(env.newStruct(imm.index));
        break;
      case ARRAY_NEW: {
        const length = Number(BigInt.asUintN(32, stack.pop()!));
        stack.push(env.newArray(imm.index, length, stack.pop()!));
        break;
      }
      case ARRAY_NEW_DEFAULT:
        stack.push(env.newArray(imm.index, Number(BigInt.asUintN(32, stack.pop()!))));
        break;
      case ARRAY_NEW_FIXED:
        stack.push(env.newFixedArray(imm.index, stack.splice(stack.length - imm.index2, imm.index2)));
        break;
      case ANY_CONVERT_EXTERN:
      case EXTERN_CONVERT_ANY:
        break;
      case REF_FUNC:
        stack.push(env.funcWord(imm.index));
        break;
      case GLOBAL_GET:
        stack.push(vectorBits(env.globalVector(imm.index)));
        break;
      case I32_ADD:
        binary(32, (a, b) => a + b);
        break;
      case I32_SUB:
        binary(32, (a, b) => a - b);
        break;
      case I32_MUL:
        binary(32, (a, b) => a * b);
        break;
      case I64_ADD:
        binary(64, (a, b) => a + b);
        break;
      case I64_SUB:
        binary(64, (a, b) => a - b);
        break;
      case I64_MUL:
        binary(64, (a, b) => a * b);
        break;
      default:
        throw new Bug(`Instruction ${id} in a constant expression`);
    }
  }
}
