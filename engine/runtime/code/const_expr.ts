/**
 * Constant expressions (specification, 3.3.10 and 4.6), evaluated in JavaScript at instantiation. In: a valid
 * expression in binary form. Out: a 64-bit word, as stored in the cells of globals and tables. Nearly all expressions
 * are a single constant, which is decoded once per module. The others are interpreted with a stack of bigints; a v128
 * is a bigint of 128 bits, which no constant instruction computes with.
 */
import { Bug } from "../../base/errors.ts";
import { CONSTANT, ConstantReader, shortConstant, shortConstantEnd } from "../../wasm/constant_reader.ts";
import { BytesView, type Expr } from "../../wasm/module.ts";

/** A constant expression, prepared once per module. */
export type ConstInit =
  | { kind: "word"; word: bigint }
  | { kind: "vector"; bytes: Uint8Array }
  | { kind: "global"; index: number }
  | { kind: "func"; index: number }
  | { kind: "code"; expr: Expr };

/** The parts of the instance under construction that evaluation uses. */
export interface ConstEnv {
  globalWord(index: number): bigint;
  /** All 16 bytes of the cell of a v128 global. */
  globalVector(index: number): Uint8Array;
  funcWord(index: number): bigint;
  /**
   * Creates an object of a type of the module and returns its address. Omitted fields are zero. Traps if `descriptor`
   * is null, which is absent for types without descriptors.
   */
  newStruct(typeIndex: number, fields?: readonly bigint[], descriptor?: bigint): bigint;
  newArray(typeIndex: number, length: number, fill?: bigint): bigint;
  newFixedArray(typeIndex: number, elements: readonly bigint[]): bigint;
  /** The number of fields of a struct type. */
  fieldCount(typeIndex: number): number;
}

function word64(lo: number, hi: number): bigint {
  return BigInt.asUintN(32, BigInt(lo)) | (BigInt.asUintN(32, BigInt(hi)) << 32n);
}

/** Prepares an expression: decodes a single constant, and keeps any other expression for interpretation. */
export function prepareConst(expr: Expr): ConstInit {
  if (expr instanceof BytesView && shortConstantEnd(expr.source, expr.start, expr.end) === expr.end) {
    return { kind: "word", word: BigInt(shortConstant(expr.source, expr.start) >>> 0) };
  }
  const reader = new ConstantReader(expr.bytes, 0, expr.bytes.length, expr.offset);
  const id = reader.next();
  let init: ConstInit | undefined;
  if (id === CONSTANT.I32_CONST || id === CONSTANT.F32_CONST) init = { kind: "word", word: word64(reader.lo, 0) };
  else if (id === CONSTANT.I64_CONST || id === CONSTANT.F64_CONST) {
    init = { kind: "word", word: word64(reader.lo, reader.hi) };
  } else if (id === CONSTANT.V128_CONST) init = { kind: "vector", bytes: reader.vector.slice() };
  else if (id === CONSTANT.REF_NULL) init = { kind: "word", word: 0n };
  else if (id === CONSTANT.REF_FUNC) init = { kind: "func", index: reader.index };
  else if (id === CONSTANT.GLOBAL_GET) init = { kind: "global", index: reader.index };
  if (init !== undefined && reader.next() === CONSTANT.END) return init;
  return { kind: "code", expr };
}

/** The value of an expression that is a constant address, without a bigint if it is a short one. */
export function constantOffset(expr: Expr): number | undefined {
  if (expr instanceof BytesView && shortConstantEnd(expr.source, expr.start, expr.end) === expr.end) {
    return shortConstant(expr.source, expr.start) >>> 0;
  }
  const init = prepareConst(expr);
  return init.kind === "word" ? Number(init.word) : undefined;
}

/** Evaluates an expression to a word; not for v128. */
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

/** Packs 16 bytes into one number. */
function vectorBits(bytes: Uint8Array): bigint {
  let bits = 0n;
  for (let k = 15; k >= 0; k--) bits = (bits << 8n) | BigInt(bytes[k]);
  return bits;
}

/** Interprets an expression. */
function run(expr: Expr, env: ConstEnv): bigint {
  const reader = new ConstantReader(expr.bytes, 0, expr.bytes.length, expr.offset);
  const stack: bigint[] = [];
  const binary = (bits: number, operate: (a: bigint, b: bigint) => bigint) => {
    const b = stack.pop()!;
    const a = stack.pop()!;
    stack.push(BigInt.asUintN(bits, operate(a, b)));
  };
  for (;;) {
    const id = reader.next();
    switch (id) {
      case CONSTANT.END:
        return BigInt.asUintN(64, stack.pop()!);
      case CONSTANT.I32_CONST:
      case CONSTANT.F32_CONST:
        stack.push(word64(reader.lo, 0));
        break;
      case CONSTANT.I64_CONST:
      case CONSTANT.F64_CONST:
        stack.push(word64(reader.lo, reader.hi));
        break;
      case CONSTANT.V128_CONST:
        stack.push(vectorBits(reader.vector));
        break;
      case CONSTANT.REF_NULL:
        stack.push(0n);
        break;
      case CONSTANT.REF_I31:
        stack.push(BigInt.asUintN(32, (stack.pop()! << 1n) | 1n));
        break;
      case CONSTANT.STRUCT_NEW: {
        const count = env.fieldCount(reader.index);
        stack.push(env.newStruct(reader.index, stack.splice(stack.length - count, count)));
        break;
      }
      case CONSTANT.STRUCT_NEW_DEFAULT:
        stack.push(env.newStruct(reader.index));
        break;
      case CONSTANT.STRUCT_NEW_DESC: {
        const descriptor = stack.pop();
        const count = env.fieldCount(reader.index);
        stack.push(env.newStruct(reader.index, stack.splice(stack.length - count, count), descriptor));
        break;
      }
      case CONSTANT.STRUCT_NEW_DEFAULT_DESC:
        stack.push(env.newStruct(reader.index, undefined, stack.pop()));
        break;
      case CONSTANT.ARRAY_NEW: {
        const length = Number(BigInt.asUintN(32, stack.pop()!));
        stack.push(env.newArray(reader.index, length, stack.pop()));
        break;
      }
      case CONSTANT.ARRAY_NEW_DEFAULT:
        stack.push(env.newArray(reader.index, Number(BigInt.asUintN(32, stack.pop()!))));
        break;
      case CONSTANT.ARRAY_NEW_FIXED:
        stack.push(env.newFixedArray(reader.index, stack.splice(stack.length - reader.index2, reader.index2)));
        break;
      case CONSTANT.ANY_CONVERT_EXTERN:
      case CONSTANT.EXTERN_CONVERT_ANY:
        break;
      case CONSTANT.REF_FUNC:
        stack.push(env.funcWord(reader.index));
        break;
      case CONSTANT.GLOBAL_GET:
        stack.push(vectorBits(env.globalVector(reader.index)));
        break;
      case CONSTANT.I32_ADD:
        binary(32, (a, b) => a + b);
        break;
      case CONSTANT.I32_SUB:
        binary(32, (a, b) => a - b);
        break;
      case CONSTANT.I32_MUL:
        binary(32, (a, b) => a * b);
        break;
      case CONSTANT.I64_ADD:
        binary(64, (a, b) => a + b);
        break;
      case CONSTANT.I64_SUB:
        binary(64, (a, b) => a - b);
        break;
      case CONSTANT.I64_MUL:
        binary(64, (a, b) => a * b);
        break;
      default:
        throw new Bug(`Instruction ${id} in a constant expression`);
    }
  }
}
