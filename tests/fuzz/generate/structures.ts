/**
 * Structures, arrays and i31: construction, reads and writes. In: the state of a body. Out: instructions.
 *
 * Arrays usually have at least three elements and are usually read below index three, so that few accesses trap.
 */
import {
  type Definition,
  type Field,
  isNullable,
  isReference,
  refType,
  type TypeName,
  unpacked,
} from "../value_types.ts";
import { Body } from "./body.ts";
import { OP } from "./opcodes.ts";
import { consume, leaf } from "./values.ts";

/** A new value of a heap type below any. Beyond the depth limit, nullable fields are null. */
export function makeStructure(b: Body, heap: string, depth: number): void {
  const { random, plan: { definitions } } = b;
  const wanted = Number.isNaN(Number(heap)) ? undefined : Number(heap);
  const fitting = definitions.filter((d) =>
    d.kind !== "func" &&
    (wanted === undefined ? heap === "any" || heap === "eq" || heap === d.kind : below(d, wanted, definitions))
  );
  if (heap === "i31" || (wanted === undefined && heap !== "struct" && heap !== "array" && random.chance(40))) {
    value(b, "i32", depth);
    b.mark("gc");
    b.opcode(OP.refI31);
    return;
  }
  // The first matching definition is the simplest; a case with gc has a structure and an array.
  const definition = depth > 0 ? random.pick(fitting) : fitting[0];
  if (definition.kind === "struct") newStruct(b, definition, depth);
  else newArray(b, definition, depth);
}

function below(d: Definition, wanted: number, all: readonly Definition[]): boolean {
  return d.index === wanted || (d.above !== undefined && below(all[d.above], wanted, all));
}

/** A value for a field. */
function value(b: Body, type: TypeName, depth: number): void {
  b.step();
  if (depth > 0) return b.expression(type, depth - 1);
  if (!isReference(type)) return leaf(b, type);
  const locals = b.readable(type);
  if (locals.length > 0 && b.random.chance(60)) return b.get(b.random.pick(locals));
  if (isNullable(type)) return b.null(type);
  b.construct(type, -1);
}

const hasDefault = ({ storage }: Field) => Body.hasDefault(unpacked(storage));

function newStruct(b: Body, { index, fields }: Definition, depth: number): void {
  if (fields.every(hasDefault) && b.random.chance(25)) {
    b.mark("gc");
    b.opcode(OP.structNewDefault).out.u32(b.index(index));
    return;
  }
  for (const { storage } of fields) value(b, unpacked(storage), depth);
  b.mark("gc");
  b.opcode(OP.structNew).out.u32(b.index(index));
}

/** The size of an element in a data segment, in bytes; 0 for references. */
function elementSize({ storage }: Field): number {
  if (storage === "i8") return 1;
  if (storage === "i16") return 2;
  if (storage === "v128") return 16;
  if (isReference(storage)) return 0;
  return storage.endsWith("64") ? 8 : 4;
}

function length(b: Body, depth: number): void {
  if (depth > 0 && b.random.chance(15)) {
    b.expression("i32", depth - 1);
    b.mask("i32", 15);
  } else b.constant("i32", b.random.chance(92) ? b.random.between(3, 9) : b.random.pick([0, 1, 2, 100, 700]));
  b.cost += 10 * b.weight;
}

function newArray(b: Body, { index, fields }: Definition, depth: number): void {
  const { random, plan } = b;
  const field = fields[0];
  const type = unpacked(field.storage);
  const type31 = b.index(index);
  const size = elementSize(field);
  const elems = size === 0 ? plan.elems.flatMap((e, i) => b.matches(e.type, type) ? [i] : []) : [];
  b.cost += 10 * b.weight;
  b.impure++; // segments may be dropped later
  if (depth > 0 && random.chance(15) && (size > 0 ? plan.dataLengths.length > 0 : elems.length > 0)) {
    const segment = size > 0 ? random.below(plan.dataLengths.length) : random.pick(elems);
    const room = size > 0 ? Math.floor(plan.dataLengths[segment] / size) : plan.elems[segment].length;
    const count = random.below(Math.min(room, 6) + (random.chance(4) ? 2 : 1));
    b.constant("i32", random.below(Math.max(1, (room - count) * (size || 1) + 1)));
    b.constant("i32", count);
    b.mark("gc");
    b.opcode(size > 0 ? OP.arrayNewData : OP.arrayNewElem).out.u32(type31).u32(segment);
    return;
  }
  if (hasDefault(field) && random.chance(30)) {
    length(b, depth);
    b.mark("gc");
    b.opcode(OP.arrayNewDefault).out.u32(type31);
  } else if (random.chance(50)) {
    value(b, type, depth);
    length(b, depth);
    b.mark("gc");
    b.opcode(OP.arrayNew).out.u32(type31);
  } else {
    const count = depth > 0 ? random.between(3, 6) : 3;
    for (let i = 0; i < count; i++) value(b, type, i === 0 ? depth : 0);
    b.mark("gc");
    b.opcode(OP.arrayNewFixed).out.u32(type31).u32(count);
  }
}

/** A reference to a value of a definition, rarely nullable. */
function holder(b: Body, { index }: Definition, depth: number): void {
  b.expression(refType(index, b.random.chance(12)), depth - 1);
}

/** An index into an array, rarely out of bounds. */
function element(b: Body, depth: number): void {
  if (b.random.chance(80)) return b.constant("i32", b.random.below(3));
  b.expression("i32", depth - 1);
  b.mask("i32", b.random.pick([1, 3, 7]));
}

/** A field or element that matches `type`, or array.len or i31.get; false if there is none. */
export function readField(b: Body, type: TypeName, depth: number): boolean {
  const { random, plan: { definitions } } = b;
  if (type === "i32" && random.chance(25)) {
    const array = random.chance(60);
    b.expression(refType(array ? "array" : "i31", random.chance(12)), depth - 1);
    b.mark("gc");
    b.opcode(array ? OP.arrayLen : random.pick([OP.i31GetS, OP.i31GetU]));
    return true;
  }
  const fields = definitions.flatMap((definition) =>
    definition.fields.flatMap((field, i) => b.matches(unpacked(field.storage), type) ? [{ definition, field, i }] : [])
  );
  if (fields.length === 0) return false;
  const { definition, field: { storage }, i } = random.pick(fields);
  const packed = storage === "i8" || storage === "i16";
  const form = packed ? random.between(1, 2) : 0; // plain, signed, unsigned
  if (definition.kind === "struct") {
    holder(b, definition, depth);
    b.impure++; // a repeated evaluation may read another value
    b.mark("gc");
    b.opcode(OP.structGet + form).out.u32(b.index(definition.index)).u32(i);
    return true;
  }
  b.impure++;
  const code = OP.arrayGet + form;
  if (random.chance(30)) { // only if the index is below the length
    const array = b.newLocal(refType(definition.index, true), false);
    const at = b.newLocal("i32", false);
    b.expression(refType(definition.index, false), depth - 1);
    b.out.byte(OP.localSet).u32(array);
    b.expression("i32", depth - 1);
    b.out.byte(OP.localTee).u32(at);
    b.get(array);
    b.opcode(OP.arrayLen);
    b.out.byte(0x49).byte(OP.if);
    b.blockType([], [unpacked(storage)]);
    b.labels.push({ types: [unpacked(storage)] });
    b.get(array);
    b.get(at);
    b.mark("gc");
    b.opcode(code).out.u32(b.index(definition.index));
    b.out.byte(OP.else);
    leaf(b, unpacked(storage));
    b.labels.pop();
    b.out.byte(OP.end);
    return true;
  }
  holder(b, definition, depth);
  element(b, depth);
  b.mark("gc");
  b.opcode(code).out.u32(b.index(definition.index));
  return true;
}

/** Writes to fields and elements, copies, fills. */
export function structureStatement(b: Body, depth: number): void {
  const { random, plan: { definitions } } = b;
  b.impure++;
  const fields = definitions.flatMap((definition) =>
    definition.fields.flatMap((field, i) => field.mutable ? [{ definition, field, i }] : [])
  );
  if (fields.length === 0 || random.chance(15)) { // a new object that is dropped or kept in a local
    const type = refType(random.pick(["struct", "array", "any"]), false);
    b.construct(type, depth);
    return consume(b, [type]);
  }
  const { definition, field, i } = random.pick(fields);
  const type = unpacked(field.storage);
  const at = b.index(definition.index);
  holder(b, definition, depth);
  if (definition.kind === "struct") {
    b.expression(type, depth - 1);
    b.mark("gc");
    b.opcode(OP.structSet).out.u32(at).u32(i);
    return;
  }
  b.cost += 10 * b.weight;
  const few = () => b.constant("i32", random.chance(90) ? random.below(3) : random.below(8));
  const size = elementSize(field);
  switch (random.below(6)) {
    case 0:
      few();
      b.expression(type, depth - 1);
      few();
      b.mark("gc");
      b.opcode(OP.arrayFill).out.u32(at);
      return;
    case 1: {
      const sources = definitions.filter((d) =>
        d.kind === "array" &&
        (d.fields[0].storage === field.storage ||
          (size === 0 && d.fields[0].storage.length > 4 && b.matches(unpacked(d.fields[0].storage), type)))
      );
      const source = random.pick(sources);
      few();
      holder(b, source, depth);
      few();
      few();
      b.mark("gc");
      b.opcode(OP.arrayCopy).out.u32(at).u32(b.index(source.index));
      return;
    }
    case 2: {
      const elems = b.plan.elems.flatMap((e, n) => size === 0 && b.matches(e.type, type) ? [n] : []);
      if (size > 0 ? b.plan.dataLengths.length === 0 : elems.length === 0) break;
      const segment = size > 0 ? random.below(b.plan.dataLengths.length) : random.pick(elems);
      const room = size > 0 ? Math.floor(b.plan.dataLengths[segment] / size) : b.plan.elems[segment].length;
      few();
      b.constant("i32", 0);
      b.constant("i32", random.below(Math.min(3, room + 1)));
      b.mark("gc");
      b.opcode(size > 0 ? OP.arrayInitData : OP.arrayInitElem).out.u32(at).u32(segment);
      return;
    }
  }
  element(b, depth);
  b.expression(type, depth - 1);
  b.mark("gc");
  b.opcode(OP.arraySet).out.u32(at);
}
