/**
 * Constant expressions of numbers, null, functions and globals, which are nearly all that modules contain. In: an
 * expression that the decoder has read. Out: whether it is valid. Feature uses and declared functions are recorded as
 * constant_rules.ts does, which decides all other expressions, reports errors, and needs the table of opcodes.
 */
import { BytesView, type Expr } from "../wasm/module.ts";
import { CONSTANT, ConstantReader, shortConstantEnd, soleFunction } from "../wasm/constant_reader.ts";
import { matchesIn } from "../wasm/subtype.ts";
import { F32, F64, heapOf, I32, I64, refType, V128, type ValType, valTypeName } from "../wasm/types.ts";
import { funcRef } from "./exact_types.ts";
import { FEATURE, featureOfType } from "./gate.ts";
import { CONSTANT_RULES } from "./late_rules.ts";
import type { ValidModule } from "./valid_module.ts";

/** True for `i32.const N end` with a small N, the offset of nearly every segment. */
function isConstant32(expr: Expr): boolean {
  return expr instanceof BytesView && shortConstantEnd(expr.source, expr.start, expr.end) === expr.end;
}

/** Type and name of the instructions with two operands of one type and a result of the same. */
const BINARY: ReadonlyMap<number, readonly [ValType, string]> = new Map([
  [CONSTANT.I32_ADD, [I32, "i32.add"]],
  [CONSTANT.I32_SUB, [I32, "i32.sub"]],
  [CONSTANT.I32_MUL, [I32, "i32.mul"]],
  [CONSTANT.I64_ADD, [I64, "i64.add"]],
  [CONSTANT.I64_SUB, [I64, "i64.sub"]],
  [CONSTANT.I64_MUL, [I64, "i64.mul"]],
]);

/** The instructions of one byte that `typeOf` knows. */
const LEAVES: ReadonlySet<number> = new Set<number>([
  CONSTANT.I32_CONST,
  CONSTANT.I64_CONST,
  CONSTANT.F32_CONST,
  CONSTANT.F64_CONST,
  CONSTANT.REF_NULL,
  CONSTANT.REF_FUNC,
  CONSTANT.GLOBAL_GET,
]);

/**
 * Reads the next instruction, which has no operands; returns its type, or undefined if constant_rules.ts must decide.
 */
function typeOf(valid: ValidModule, reader: ConstantReader, visibleGlobals: number): ValType | undefined {
  const { gate } = valid;
  const opcode = reader.next();
  const { at, index } = reader;
  switch (opcode) {
    case CONSTANT.I32_CONST:
      return I32;
    case CONSTANT.I64_CONST:
      return I64;
    case CONSTANT.F32_CONST:
      return F32;
    case CONSTANT.F64_CONST:
      return F64;
    case CONSTANT.V128_CONST:
      gate.use(FEATURE["simd"], at, "v128.const");
      return V128;
    case CONSTANT.REF_NULL: {
      gate.use(FEATURE["reference-types"], at, "ref.null");
      const type = refType(true, reader.heap);
      gate.use(featureOfType(type), at, valTypeName(type));
      return heapOf(type) < valid.types.length ? type : undefined;
    }
    case CONSTANT.REF_FUNC:
      gate.use(FEATURE["reference-types"], at, "ref.func");
      if (index >= valid.funcTypes.length) return undefined;
      valid.declaredFuncs[index] = 1;
      return funcRef(valid, index);
    case CONSTANT.GLOBAL_GET: {
      // Reading a global of the module itself needs a feature.
      const type = valid.globalTypes[index];
      return index < Math.min(visibleGlobals, valid.importedGlobalCount) && !type.mutable ? type.type : undefined;
    }
    default:
      return undefined;
  }
}

/** Whether `v128.const` begins at `pos`, in its usual encoding. */
function isVector(bytes: Uint8Array, pos: number): boolean {
  return bytes[pos] === CONSTANT.V128_CONST >> 8 && bytes[pos + 1] === (CONSTANT.V128_CONST & 0xff);
}

/** Whether `expr` is constant and of type `type`. False if constant_rules.ts must decide. */
function isKnownConstant(valid: ValidModule, expr: Expr, type: ValType, visibleGlobals: number): boolean {
  const { bytes } = expr;
  const reader = new ConstantReader(bytes, 0, bytes.length, expr.offset);
  const stack: ValType[] = [];
  for (;;) {
    const opcode = bytes[reader.pos];
    const at = reader.offset;
    const binary = BINARY.get(opcode);
    if (binary !== undefined) {
      const [operand, name] = binary;
      if (stack.pop() !== operand || stack.at(-1) !== operand) return false;
      reader.pos++;
      valid.gate.use(FEATURE["extended-const-expressions"], at, `constant expression required: ${name} in one`);
    } else if (opcode === CONSTANT.END) {
      return stack.length === 1 && matchesIn(valid.canonicalIds, stack[0], type) && reader.left === 1;
    } else {
      const isLeaf = LEAVES.has(opcode) || isVector(bytes, reader.pos);
      const found = isLeaf ? typeOf(valid, reader, visibleGlobals) : undefined;
      if (found === undefined) return false;
      stack.push(found);
    }
  }
}

/** Whether `expr` is a reference of type `type` to a function, and nothing else. */
function isFunction(valid: ValidModule, expr: Expr, type: ValType): boolean {
  const index = soleFunction(expr);
  if (index < 0 || index >= valid.funcTypes.length) return false;
  if (!matchesIn(valid.canonicalIds, funcRef(valid, index), type)) return false;
  valid.gate.use(FEATURE["reference-types"], expr.offset, "ref.func");
  valid.declaredFuncs[index] = 1;
  return true;
}

/** Validates `expr` as constant and of type `type`; globals from `visibleGlobals` on are not visible. */
export function validateConstExpr(valid: ValidModule, expr: Expr, type: ValType, visibleGlobals: number): void {
  if (type === I32 && isConstant32(expr)) return;
  if (isFunction(valid, expr, type)) return;
  if (isKnownConstant(valid, expr, type, visibleGlobals)) return;
  CONSTANT_RULES.get().validateConstant(valid, expr, type, visibleGlobals);
}
