/**
 * Expressions: code that leaves one value of a wanted type or of a subtype. In: the state of a body, a type and the
 * maximum nesting depth. Out: instructions.
 */
import { LOADS } from "../numeric_rows.ts";
import { isNullable, isReference, type TypeName } from "../value_types.ts";
import { atomicValue } from "./atomics.ts";
import type { Body } from "./body.ts";
import { callAny } from "./calls.ts";
import { block, ifElse } from "./control.ts";
import { tryExpression } from "./exceptions.ts";
import { loop } from "./loops.ts";
import { address } from "./memories.ts";
import { CONDITIONS, numeric, OPS_BY_RESULT } from "./numbers.ts";
import { OP } from "./opcodes.ts";
import { construct, reference, referenceTest } from "./references.ts";
import { readField } from "./structures.ts";
import { sizeOrGrowth, tableSizeOrGrowth } from "./tables.ts";
import { vector, vectorTest } from "./vectors.ts";

/** A condition: an i32, often a comparison. */
export function condition(b: Body, depth: number): void {
  const random = b.random;
  if (depth > 0 && random.chance(70)) {
    if (b.has("gc") && random.chance(12)) return referenceTest(b, depth);
    return numeric(b, random.pick(CONDITIONS), depth);
  }
  expression(b, "i32", depth);
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

/** A number or a vector. */
function plain(b: Body, type: TypeName, depth: number): void {
  const random = b.random;
  const out = b.out;
  const memories = b.plan.memories.length > 0;
  const vectors = b.has("simd");
  switch (
    random.weighted([
      50, // numeric
      memories ? 16 : 0,
      14, // leaf
      4, // tee
      3, // block
      4, // if
      b.weight < 500 ? 2 : 0,
      5, // select
      5, // call
      2, // br_if with values
      5, // repeated expression
      3, // odds and ends
      vectors && type !== "v128" ? 5 : 0, // a lane or a test of a vector
      b.plan.tags.length > 0 ? 4 : 0,
      b.has("gc") ? 9 : 0,
      b.has("threads") && memories && (type === "i32" || type === "i64") ? 8 : 0,
    ])
  ) {
    case 0:
      if (type === "v128") return vector(b, depth);
      return numeric(b, random.pick(OPS_BY_RESULT[type]), depth);
    case 1: {
      if (type === "v128") return vector(b, depth, true);
      const op = random.pick(LOADS.filter((l) => l.type === type));
      const memory = b.memory()!;
      const { offset } = address(b, depth, 1 << op.align, memory);
      return b.access(op.code, op.align, offset, memory);
    }
    case 3: {
      const locals = b.locals.flatMap((t, i) => t === type && b.writable[i] ? [i] : []);
      if (locals.length === 0) break;
      expression(b, type, depth - 1);
      b.impure++;
      out.byte(OP.localTee).u32(random.pick(locals));
      return;
    }
    case 4:
      return block(b, [type], depth);
    case 5:
      return ifElse(b, [type], depth);
    case 6:
      return loop(b, [type], depth);
    case 7:
      return select(b, type, depth);
    case 8:
      if (callAny(b, depth, type) !== undefined) return;
      break;
    case 9: {
      const labels = b.branchTargets().filter((l) => b.labelTypes(l).join() === type);
      if (labels.length === 0) break;
      expression(b, type, depth - 1);
      condition(b, depth - 1);
      b.impure++;
      out.byte(OP.brIf).u32(random.pick(labels));
      return;
    }
    case 10: {
      const fitting = b.snippets.filter((s) => s.type === type);
      if (fitting.length === 0) break;
      out.bytes(random.pick(fitting).code);
      b.cost += 20 * b.weight;
      return;
    }
    case 11:
      if ((type === "i32" || type === "i64") && odd(b, type, depth)) return;
      break;
    case 12:
      return vectorTest(b, type, depth);
    case 13:
      return tryExpression(b, [type], depth);
    case 14:
      if (readField(b, type, depth)) return;
      if (type === "i32") return referenceTest(b, depth);
      break;
    case 15:
      return atomicValue(b, type as "i32" | "i64", depth);
  }
  leaf(b, type);
}

export function select(b: Body, type: TypeName, depth: number): void {
  expression(b, type, depth - 1);
  expression(b, type, depth - 1);
  condition(b, depth - 1);
  if (isReference(type) || (b.has("reference-types") && b.random.chance(20))) {
    b.out.byte(OP.selectTyped).u32(1);
    b.type(type);
  } else b.out.byte(OP.select);
}

/** Sizes, growth, null tests; false if none applies. */
function odd(b: Body, type: "i32" | "i64", depth: number): boolean {
  const random = b.random;
  const memory = b.memory((m) => m.is64 === (type === "i64"));
  const tables = b.plan.tables.flatMap((t, i) => t.is64 === (type === "i64") ? [i] : []);
  if (memory !== undefined && random.chance(40)) sizeOrGrowth(b, memory);
  else if (b.has("reference-types") && tables.length > 0 && random.chance(50)) {
    tableSizeOrGrowth(b, random.pick(tables), depth);
  } else if (b.has("reference-types") && type === "i32") {
    const references = b.plan.types.filter((t) => isReference(t) && isNullable(t));
    expression(b, references.length === 0 ? "funcref" : random.pick(references), depth - 1);
    b.out.byte(OP.refIsNull);
    return true;
  } else return false;
  b.impure++;
  return true;
}

/** A value without subexpressions: a local, a global, a constant, a new object. */
export function leaf(b: Body, type: TypeName): void {
  const random = b.random;
  if (random.chance(12)) {
    const globals = b.plan.globals.flatMap((g, i) => b.matches(g.type, type) ? [i] : []);
    if (globals.length > 0) {
      b.out.byte(OP.globalGet).u32(random.pick(globals));
      return;
    }
  }
  const locals = b.readable(type);
  if (locals.length > 0 && random.chance(75)) return b.get(random.pick(locals));
  leafConstant(b, type);
}

export function leafConstant(b: Body, type: TypeName): void {
  const random = b.random;
  switch (type) {
    case "i32":
      b.out.byte(0x41).s32(random.i32());
      return;
    case "i64":
      b.out.byte(0x42).s64(random.i64());
      return;
    case "f32":
      b.out.byte(0x43).f32(random.float(true));
      return;
    case "f64":
      b.out.byte(0x44).f64(random.float(false));
      return;
    case "v128":
      return vectorConstant(b);
    default:
      return construct(b, type, 0);
  }
}

/** A constant vector: zero, ones, equal lanes or anything. */
function vectorConstant(b: Body): void {
  const random = b.random;
  b.opcode(0xfd00c);
  const bytes = new Uint8Array(16);
  switch (random.below(5)) {
    case 0:
      break;
    case 1:
      bytes.fill(255);
      break;
    case 2: {
      const width = random.pick([1, 2, 4, 8]);
      for (let i = 0; i < width; i++) bytes[i] = random.bits();
      for (let i = width; i < 16; i++) bytes[i] = bytes[i - width];
      break;
    }
    case 3: {
      const lanes = new Int32Array(bytes.buffer);
      for (let i = 0; i < 4; i++) lanes[i] = random.i32();
      break;
    }
    default:
      for (let i = 0; i < 16; i++) bytes[i] = random.pick([0, 1, 127, 128, 255, random.bits() & 255]);
  }
  b.out.bytes(bytes);
}
