/**
 * Data and element segments of every form. In: the memories, tables and functions of a module. Out: the entries of the
 * sections, and the lengths and types that bodies use.
 */
import { Bytes } from "../module_bytes.ts";
import { refType, type TypeName, writeType } from "../value_types.ts";
import { type ConstantScope, writeConstant, writeOffset } from "./constants.ts";
import type { PlannedMemory, PlannedTable } from "./plan.ts";

export interface DataSegments {
  readonly section: Bytes[];
  readonly lengths: number[];
}

export function generateData(memories: readonly PlannedMemory[], scope: ConstantScope): DataSegments {
  const { random, features } = scope;
  const section: Bytes[] = [];
  const lengths: number[] = [];
  const bulk = features.has("bulk-memory-operations");
  for (let i = memories.length === 0 ? 0 : random.below(4); i > 0; i--) {
    const bytes = Array.from({ length: random.below(40) }, () => random.bits() & 255);
    const entry = new Bytes();
    if (bulk && random.chance(40)) entry.byte(1);
    else {
      const memory = random.below(memories.length);
      const { min, is64 } = memories[memory];
      const end = min * 65536 - bytes.length;
      const at = random.chance(2)
        ? end + random.between(0, 2)
        : end > 0
        ? random.below(random.chance(80) ? Math.min(end, 300) : end)
        : 0;
      if (memory > 0 || (bulk && random.chance(5))) entry.byte(2).u32(memory);
      else entry.byte(0);
      writeOffset(entry, at, is64, scope);
      if (end < 0) bytes.length = 0;
    }
    section.push(entry.u32(bytes.length).bytes(bytes));
    lengths.push(bytes.length);
  }
  return { section, lengths };
}

export interface ElementSegments {
  readonly section: Bytes[];
  readonly elems: { type: TypeName; length: number }[];
}

export function generateElements(tables: readonly PlannedTable[], scope: ConstantScope): ElementSegments {
  const { random, features, functions, definitions } = scope;
  const references = features.has("reference-types");
  const section: Bytes[] = [];
  const elems: { type: TypeName; length: number }[] = [];
  tables.forEach((table, index) => {
    if (!random.chance(85)) return;
    if (!references && index > 0) return;
    const count = random.below(table.min + 1);
    const at = random.below(table.min - count + 1) + (random.chance(2) ? 20 : 0);
    section.push(activeSegment(table, index, at, count, scope));
    elems.push({ type: table.type, length: references ? 0 : count });
  });
  if (!references) return { section, elems };
  for (let i = random.below(3); i > 0; i--) {
    const definition = definitions.length > 0 && random.chance(50) ? random.pick(definitions) : undefined;
    const type: TypeName = definition !== undefined
      ? refType(definition.index, random.chance(50) || (definition.kind === "func" && functions.length === 0))
      : random.chance(75)
      ? "funcref"
      : "externref";
    const count = random.below(8);
    if (type === "funcref" && random.chance(40) && functions.length > 0) {
      const entry = new Bytes().byte(random.chance(50) ? 1 : 3).byte(0).u32(count);
      for (let n = 0; n < count; n++) entry.u32(random.pick(functions).index);
      section.push(entry);
    } else {
      const entry = new Bytes().byte(random.chance(70) ? 5 : 7);
      writeType(entry, type, scope.shift);
      entry.u32(count);
      for (let n = 0; n < count; n++) writeConstant(entry, type, { ...scope, globals: [] });
      section.push(entry);
    }
    elems.push({ type, length: count });
  }
  if (functions.length > 0) { // declares all targets of ref.func
    const entry = new Bytes().byte(3).byte(0).u32(functions.length);
    for (const { index } of functions) entry.u32(index);
    section.push(entry);
    elems.push({ type: "funcref", length: 0 });
  }
  return { section, elems };
}

function activeSegment(table: PlannedTable, index: number, at: number, count: number, scope: ConstantScope): Bytes {
  const { random, features, functions } = scope;
  const references = features.has("reference-types");
  const { type } = table;
  const entry = new Bytes();
  if (type === "funcref" && functions.length > 0 && (!references || random.chance(60))) {
    const short = index === 0 && (!references || random.chance(80));
    if (short) entry.byte(0);
    else entry.byte(2).u32(index);
    writeOffset(entry, at, table.is64, scope);
    if (!short) entry.byte(0);
    entry.u32(count);
    for (let i = 0; i < count; i++) entry.u32(random.pick(functions).index);
    return entry;
  }
  const short = index === 0 && type === "funcref";
  if (short) entry.byte(4);
  else entry.byte(6).u32(index);
  writeOffset(entry, at, table.is64, scope);
  if (!short) writeType(entry, type, scope.shift);
  entry.u32(count);
  for (let i = 0; i < count; i++) writeConstant(entry, type, { ...scope, globals: [] });
  return entry;
}
