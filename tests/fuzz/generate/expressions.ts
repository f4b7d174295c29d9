/**
 * Expressions: code that leaves one value of a wanted type or of a subtype. In: the state of a body, a type and the
 * maximum nesting depth. Out: instructions.
 */
import { LOADS } from "../numeric_rows.ts";
import { isNullable, isReference, type TypeName } from "../value_types.ts";
import { atomicValue } from "./atomics.ts";
import type { Body } from "./body.ts";
import { callAny } from "./calls.ts";
import { block, ifElse, select } from "./control.ts";
import { tryExpression } from "./exceptions.ts";
import { loop } from "./loops.ts";
import { address } from "./memories.ts";
import { CONDITIONS, numeric, OPS_BY_RESULT } from "./numbers.ts";
import { OP, WIDE } from "./opcodes.ts";
import { reference, referenceTest } from "./references.ts";
import { readField } from "./structures.ts";
import { sizeOrGrowth, tableSizeOrGrowth } from "./tables.ts";
import { vector, vectorTest } from "./vectors.ts";
import { leaf, leafConstant } from "./values.ts";
import { wideValue } from "./wide.ts";

/** A condition: an i32, often a comparison. */
export function condition(b: Body, depth: number): void {
  const random = b.random;
  if (depth > 0 && random.chance(70)) {
    if (b.has("gc") && random.chance(12)) return referenceTest(b, depth);
    return numeric(b, random.pick(CONDITIONS), depth);
  }
  b.expression("i32", depth);
}

/** Leaves one value of `type`. */
export function expression(b: Body, type: TypeName, depth: number): void {
  b.step();
  const random = b.random;
  if (depth <= 0 || b.budget <= 0) return leaf(b, type);
  const start = b.out.length;
  const impure = b.impure;
  if (isReference(type)) reference(b, type, depth);
  else plain(b, type, depth);
  const length = b.out.length - start;
  if (impure === b.impure && length > 4 && length < 60 && random.chance(30)) {
    b.snippets.push({ type, code: b.out.taken(start) });
  }
}

/** A kind of expression: its weight, and its generator, which returns false if the kind does not apply. */
interface ExpressionRow {
  readonly weight: number | ((b: Body, type: TypeName) => number);
  readonly write: (b: Body, type: TypeName, depth: number) => boolean;
}

const hasMemory = (b: Body) => b.plan.memories.length > 0;
/** A generator that always applies. */
const always =
  (write: (b: Body, type: TypeName, depth: number) => void) => (b: Body, type: TypeName, depth: number) => {
    write(b, type, depth);
    return true;
  };

/** Kinds of numbers and vectors. The order of the rows is part of a seed's meaning. */
const EXPRESSIONS: readonly ExpressionRow[] = [
  { weight: 50, write: always(operation) },
  { weight: (b) => hasMemory(b) ? 16 : 0, write: always(load) },
  { weight: 14, write: () => false }, // a leaf
  { weight: 4, write: tee },
  { weight: 3, write: always((b, type, depth) => block(b, [type], depth)) },
  { weight: 4, write: always((b, type, depth) => ifElse(b, [type], depth)) },
  { weight: (b) => b.weight < 500 ? 2 : 0, write: always((b, type, depth) => loop(b, [type], depth)) },
  { weight: 5, write: always(select) },
  { weight: 5, write: (b, type, depth) => callAny(b, depth, type) !== undefined },
  { weight: 2, write: branchWithValue },
  { weight: 5, write: repeated },
  { weight: 3, write: (b, type, depth) => (type === "i32" || type === "i64") && sizeOrNullTest(b, type, depth) },
  { weight: (b, type) => b.has("simd") && type !== "v128" ? 5 : 0, write: always(vectorTest) },
  { weight: (b) => b.plan.tags.length > 0 ? 4 : 0, write: always((b, type, depth) => tryExpression(b, [type], depth)) },
  { weight: (b) => b.has("gc") ? 9 : 0, write: fieldOrTest },
  {
    weight: (b, type) => b.has("threads") && hasMemory(b) && (type === "i32" || type === "i64") ? 8 : 0,
    write: always((b, type, depth) => atomicValue(b, type as "i32" | "i64", depth)),
  },
  {
    weight: (b, type) => b.has("wide-arithmetic") && type === "i64" ? 20 : 0,
    write: always((b, _, depth) => wideValue(b, depth)),
  },
  { weight: (_, type) => type === "i32" || type === "i64" ? 4 : 0, write: always(affine) },
];

/** A number or a vector. */
function plain(b: Body, type: TypeName, depth: number): void {
  const weights = EXPRESSIONS.map(({ weight }) => typeof weight === "number" ? weight : weight(b, type));
  if (!EXPRESSIONS[b.random.weighted(weights)].write(b, type, depth)) leaf(b, type);
}

function operation(b: Body, type: TypeName, depth: number): void {
  if (type === "v128") vector(b, depth);
  else numeric(b, b.random.pick(OPS_BY_RESULT[type]), depth);
}

/** A product by 3, 5 or 9, which an address computation can make, and mostly the sum of it and a constant. */
function affine(b: Body, type: TypeName, depth: number): void {
  const random = b.random;
  const wide = type === "i64" ? WIDE : 0;
  b.expression(type, depth - 1);
  b.constant(type, random.pick([3, 5, 9]));
  b.out.byte(0x6c + wide);
  if (random.chance(20)) return;
  if (random.chance(70)) b.constant(type, random.pick([1, -1, 7, 127, 128, -129, 0x7fffffff, -0x80000000]));
  else leafConstant(b, type);
  b.out.byte(random.pick([0x6a, 0x6a, 0x6b]) + wide);
}

function load(b: Body, type: TypeName, depth: number): void {
  if (type === "v128") return vector(b, depth, true);
  const op = b.random.pick(LOADS.filter((l) => l.type === type));
  const memory = b.memory()!;
  const { offset } = address(b, depth, 1 << op.align, memory);
  b.access(op.code, op.align, offset, memory);
}

function tee(b: Body, type: TypeName, depth: number): boolean {
  const locals = b.locals.flatMap((t, i) => t === type && b.writable[i] ? [i] : []);
  if (locals.length === 0) return false;
  b.expression(type, depth - 1);
  b.impure++;
  b.out.byte(OP.localTee).u32(b.random.pick(locals));
  return true;
}

/** A value that a br_if may take along. */
function branchWithValue(b: Body, type: TypeName, depth: number): boolean {
  const labels = b.branchTargets().filter((l) => b.labelTypes(l).join() === type);
  if (labels.length === 0) return false;
  b.expression(type, depth - 1);
  b.condition(depth - 1);
  b.impure++;
  b.out.byte(OP.brIf).u32(b.random.pick(labels));
  return true;
}

/** A copy of an earlier expression, for common subexpression elimination. */
function repeated(b: Body, type: TypeName): boolean {
  const fitting = b.snippets.filter((s) => s.type === type);
  if (fitting.length === 0) return false;
  b.out.bytes(b.random.pick(fitting).code);
  b.cost += 20 * b.weight;
  return true;
}

function fieldOrTest(b: Body, type: TypeName, depth: number): boolean {
  if (readField(b, type, depth)) return true;
  if (type !== "i32") return false;
  referenceTest(b, depth);
  return true;
}

/** Sizes, growth, null tests; false if none applies. */
function sizeOrNullTest(b: Body, type: "i32" | "i64", depth: number): boolean {
  const random = b.random;
  const memory = b.memory((m) => m.is64 === (type === "i64"));
  const tables = b.plan.tables.flatMap((t, i) => t.is64 === (type === "i64") ? [i] : []);
  if (memory !== undefined && random.chance(40)) sizeOrGrowth(b, memory);
  else if (b.has("reference-types") && tables.length > 0 && random.chance(50)) {
    tableSizeOrGrowth(b, random.pick(tables), depth);
  } else if (b.has("reference-types") && type === "i32") {
    const references = b.plan.types.filter((t) => isReference(t) && isNullable(t));
    b.expression(references.length === 0 ? "funcref" : random.pick(references), depth - 1);
    b.out.byte(OP.refIsNull);
    return true;
  } else return false;
  b.impure++;
  return true;
}
