/**
 * References: construction, tests, casts and branches. In: the state of a body and a reference type. Out: instructions
 * that leave a value of that type.
 */
import { definitionOf, heapOf, isNullable, isReference, refType, topOf, type TypeName } from "../value_types.ts";
import type { Body } from "./body.ts";
import { callAny } from "./calls.ts";
import { block, ifElse, select } from "./control.ts";
import { tryExpression } from "./exceptions.ts";
import { OP } from "./opcodes.ts";
import { makeStructure, readField } from "./structures.ts";
import { tableElement } from "./tables.ts";
import { consume, leaf } from "./values.ts";

/** A value of a reference type. */
export function reference(b: Body, type: TypeName, depth: number): void {
  const random = b.random;
  const gc = b.has("gc");
  const typed = b.typed;
  switch (
    random.weighted([
      10, // an element of a table
      10, // select
      10, // call
      3, // if
      10, // leaf
      typed ? 12 : 0, // made
      typed ? 6 : 0, // a null replaced
      typed ? 3 : 0, // ref.as_non_null
      gc ? 10 : 0, // a field
      gc ? 8 : 0, // a cast
      gc ? 4 : 0, // between outside and inside
      b.plan.tags.length > 0 ? 3 : 0,
      typed ? 2 : 0, // block
    ])
  ) {
    case 0:
      if (tableElement(b, type, depth)) return;
      break;
    case 1:
      return select(b, type, depth);
    case 2:
      if (callAny(b, depth, type) !== undefined) return;
      break;
    case 3:
      return ifElse(b, [type], depth);
    case 5:
      return b.construct(type, depth);
    case 6:
      return replaceNull(b, type, depth);
    case 7: {
      if (topOf(heapOf(type), b.plan.definitions) === "exn") break;
      b.expression(refType(heapOf(type), true), depth - 1);
      b.mark("typed-function-references");
      b.out.byte(OP.refAsNonNull);
      return;
    }
    case 8:
      if (readField(b, type, depth)) return;
      break;
    case 9:
      if (castTo(b, type, depth)) return;
      break;
    case 10:
      if (convert(b, type, depth)) return;
      break;
    case 11:
      return tryExpression(b, [type], depth);
    case 12:
      return block(b, [type], depth);
  }
  leaf(b, type);
}

/** A new value of a reference type, or null. */
export function construct(b: Body, type: TypeName, depth: number): void {
  const random = b.random;
  const heap = heapOf(type);
  const definition = definitionOf(heap, b.plan.definitions);
  const none = heap === "exn" || heap.startsWith("no");
  if (isNullable(type) && (none || random.chance(depth > 0 ? 15 : 35))) {
    b.null(type);
    return;
  }
  if (none) throw new Error(`Nothing has type ${type}`);
  if (heap === "func" || definition?.kind === "func") return functionReference(b, type);
  if (heap === "extern") {
    if (!b.has("gc") || (isNullable(type) && random.chance(50))) {
      b.null("externref");
      if (!isNullable(type)) b.out.byte(OP.refAsNonNull);
      return;
    }
    b.expression("(ref any)", depth - 1);
    b.mark("gc");
    b.opcode(OP.externConvertAny);
    return;
  }
  makeStructure(b, heap, depth);
}

/** A function of a type; null if the type allows it and no function matches. */
function functionReference(b: Body, type: TypeName): void {
  const { functions, referable } = b.plan;
  const fitting = referable.filter((i) => {
    const { definition } = functions[i];
    return heapOf(type) === "func" || (definition !== undefined && b.matches(refType(definition, false), type));
  });
  if (fitting.length === 0) {
    b.null(refType(heapOf(type), true));
    if (!isNullable(type)) b.out.byte(OP.refAsNonNull);
    return;
  }
  b.out.byte(OP.refFunc).u32(b.random.pick(fitting));
  if (heapOf(type) !== "func") b.mark("typed-function-references");
}

/** A value, or another one if it is null: by br_on_non_null or br_on_null. */
function replaceNull(b: Body, type: TypeName, depth: number): void {
  const { random, out } = b;
  const heap = heapOf(type);
  const nonNull = refType(heap, false);
  b.impure++;
  if (heap === "exn" || heap.startsWith("no") || (heap === "extern" && !b.has("gc"))) return leaf(b, type);
  if (random.chance(60)) {
    out.byte(OP.block);
    b.blockType([], [nonNull]);
    b.labels.push({ types: [nonNull] });
    b.expression(refType(heap, true), depth - 1);
    b.mark("typed-function-references");
    out.byte(OP.brOnNonNull).u32(0);
    b.construct(nonNull, depth - 1);
    b.labels.pop();
    out.byte(OP.end);
    return;
  }
  out.byte(OP.block);
  b.blockType([], [nonNull]);
  b.labels.push({ types: [nonNull] });
  out.byte(OP.block).byte(0x40);
  b.labels.push({ types: [] });
  b.expression(refType(heap, true), depth - 1);
  b.mark("typed-function-references");
  out.byte(OP.brOnNull).u32(0);
  out.byte(OP.br).u32(1);
  b.labels.pop();
  out.byte(OP.end);
  b.construct(nonNull, depth - 1);
  b.labels.pop();
  out.byte(OP.end);
}

/** A branch taken if a value is null, or if it is not. */
export function nullBranch(b: Body, depth: number): void {
  const { random, out } = b;
  const types = b.plan.types.filter((t) => isReference(t) && heapOf(t) !== "exn");
  if (types.length === 0) return consume(b, []);
  const type = random.pick(types);
  const heap = heapOf(type);
  b.impure++;
  const nonNull = refType(heap, false);
  const labels = b.targetsOf([nonNull]);
  if (labels.length > 0 && random.chance(50)) {
    b.expression(type, depth - 1);
    b.mark("typed-function-references");
    out.byte(OP.brOnNonNull).u32(random.pick(labels));
    return;
  }
  const empty = b.targetsOf([]);
  if (empty.length === 0) {
    b.expression(type, depth - 1);
    return consume(b, [type]);
  }
  b.expression(type, depth - 1);
  b.mark("typed-function-references");
  out.byte(OP.brOnNull).u32(random.pick(empty));
  consume(b, [nonNull]);
}

/** Types in the hierarchy that casts may convert between. */
function relatives(b: Body, top: "any" | "func"): TypeName[] {
  const list: TypeName[] = [];
  const heaps = top === "any" ? ["any", "any", "eq", "i31", "struct", "array"] : ["func"];
  for (const heap of heaps) list.push(refType(heap, true), refType(heap, false));
  for (const d of b.plan.definitions) {
    if ((d.kind === "func") === (top === "func")) list.push(refType(d.index, true), refType(d.index, false));
  }
  return list;
}

function top(b: Body, type: TypeName): "any" | "func" | undefined {
  const found = topOf(heapOf(type), b.plan.definitions);
  return found === "any" || found === "func" ? found : undefined;
}

/** Writes ref.test or ref.eq: an i32. */
export function referenceTest(b: Body, depth: number): void {
  const { random } = b;
  if (random.chance(35)) {
    for (let i = 0; i < 2; i++) {
      const types = relatives(b, "any").filter((t) => b.matches(t, "(ref null eq)"));
      b.expression(random.pick(types), depth - 1);
    }
    b.mark("gc");
    b.out.byte(OP.refEq);
    return;
  }
  const all = relatives(b, random.chance(85) ? "any" : "func");
  const from = random.pick(all.slice(0, 8));
  const to = random.pick(all);
  b.expression(from, depth - 1);
  b.mark("gc");
  b.opcode(isNullable(to) ? OP.refTestNull : OP.refTest);
  b.heap(heapOf(to));
}

/** A value of `type` from a wider type: by br_on_cast with a fallback, or by ref.cast, which may trap. */
function castTo(b: Body, type: TypeName, depth: number): boolean {
  const { random, out } = b;
  const hierarchy = top(b, type);
  if (hierarchy === undefined) return false;
  const wider = relatives(b, hierarchy).filter((t) => b.matches(type, t));
  const from = random.pick(wider);
  b.impure++;
  if (random.chance(12)) {
    b.expression(from, depth - 1);
    b.mark("gc");
    b.opcode(isNullable(type) ? OP.refCastNull : OP.refCast);
    b.heap(heapOf(type));
    return true;
  }
  const flags = (isNullable(from) ? 1 : 0) | (isNullable(type) ? 2 : 0);
  out.byte(OP.block);
  b.blockType([], [type]);
  b.labels.push({ types: [type] });
  if (random.chance(50)) {
    b.expression(from, depth - 1);
    b.mark("gc");
    b.opcode(OP.brOnCast).out.byte(flags).u32(0);
    b.heap(heapOf(from));
    b.heap(heapOf(type));
    out.byte(OP.drop);
  } else {
    const rest = isNullable(type) ? refType(heapOf(from), false) : from;
    out.byte(OP.block);
    b.blockType([], [rest]);
    b.labels.push({ types: [rest] });
    b.expression(from, depth - 1);
    b.mark("gc");
    b.opcode(OP.brOnCastFail).out.byte(flags).u32(0);
    b.heap(heapOf(from));
    b.heap(heapOf(type));
    out.byte(OP.br).u32(1);
    b.labels.pop();
    out.byte(OP.end).byte(OP.drop);
  }
  if (random.chance(50)) b.construct(type, depth - 1);
  else leaf(b, type);
  b.labels.pop();
  out.byte(OP.end);
  return true;
}

/** Converts externref from anyref and back. */
function convert(b: Body, type: TypeName, depth: number): boolean {
  const heap = heapOf(type);
  if (heap === "extern") {
    b.expression(refType(b.random.pick(["any", "eq", "struct", "i31"]), isNullable(type)), depth - 1);
    b.mark("gc");
    b.opcode(OP.externConvertAny);
    return true;
  }
  if (heap !== "any") return false;
  if (isNullable(type)) b.expression("externref", depth - 1);
  else b.expression("(ref extern)", depth - 1);
  b.mark("gc");
  b.opcode(OP.anyConvertExtern);
  return true;
}
