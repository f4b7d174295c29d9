/**
 * Random modules of WebAssembly 2.0 without vectors, from a seed. In: a seed and the features that may be used. Out: one or two
 * binary modules; the second imports what the first exports (module name "m0"). Imports of module "host" are the fuzzer's own.
 *
 * Exports whose name begins with "t" may be put into tables by the host: they make no indirect calls.
 */
import { BodyGenerator, type ModulePlan, type PlannedFunction } from "./generate_code.ts";
import { Bytes, isReference, type Signature, TYPE, type TypeName } from "./module_bytes.ts";
import { Random } from "./random.ts";

/** Features the generator knows, by the names of engine/features.ts. */
export const GENERATED_FEATURES: readonly string[] = [
  "bulk-memory-operations",
  "extended-const-expressions",
  "multi-value",
  "mutable-global",
  "nontrapping-float-to-int-conversion",
  "reference-types",
  "sign-extension-ops",
  "simd",
];

/** What a module exports, as far as another one can import it. */
interface Offer {
  functions: { name: string; signature: Signature; cost: number; tabled: boolean }[];
  globals: { name: string; type: TypeName; mutable: boolean }[];
  memory: { name: string; min: number; max: number } | undefined;
  tables: { name: string; type: TypeName; min: number; max: number }[];
}

const NOTHING: Offer = { functions: [], globals: [], memory: undefined, tables: [] };
const HOST_COST = 60;

/** The modules of a seed, in the order in which they are to be instantiated. */
export function generateModules(
  seed: number,
  features: readonly string[] = GENERATED_FEATURES,
): Uint8Array<ArrayBuffer>[] {
  const random = new Random(seed);
  const set = new Set(features);
  const first = generateModule(random, set, NOTHING, 0);
  if (random.chance(5)) return [first.bytes, first.bytes]; // two instances that must not meet
  if (!random.chance(12)) return [first.bytes];
  return [first.bytes, generateModule(random, set, first.offer, 1).bytes];
}

function generateModule(
  random: Random,
  features: ReadonlySet<string>,
  given: Offer,
  number: number,
): { bytes: Uint8Array<ArrayBuffer>; offer: Offer } {
  const types: Signature[] = [];
  const keys = new Map<string, number>();
  const typeIndex = (signature: Signature) => {
    const key = `${signature.params.join()}>${signature.results.join()}`;
    let index = keys.get(key);
    if (index === undefined) {
      index = types.push(signature) - 1;
      keys.set(key, index);
    }
    return index;
  };
  const imports: Bytes[] = [];
  const exports: Bytes[] = [];
  const name = (module: string, field: string) => new Bytes().name(module).name(field);
  const exported = (field: string, kind: number, index: number) =>
    exports.push(new Bytes().name(field).byte(kind).u32(index));
  const references = features.has("reference-types");
  const valueTypes: TypeName[] = ["i32", "i32", "i64", "f32", "f64"];
  if (references && random.chance(50)) valueTypes.push("funcref", "externref");

  const offer: Offer = { functions: [], globals: [], memory: undefined, tables: [] };

  // Functions: imported, then defined ones in random order of generation.
  const functions: PlannedFunction[] = [];
  const hostCount = random.below(4);
  for (let i = 0; i < hostCount; i++) {
    const signature = randomSignature(random, features, valueTypes);
    imports.push(name("host", `f${i}`).byte(0).u32(typeIndex(signature)));
    functions.push({ index: functions.length, signature, tabled: true, style: "plain", cost: HOST_COST });
  }
  for (const { name: field, signature, cost, tabled } of given.functions) {
    if (!random.chance(60)) continue;
    imports.push(name("m0", field).byte(0).u32(typeIndex(signature)));
    functions.push({ index: functions.length, signature, tabled, style: "plain", cost });
  }
  const importedFunctions = functions.length;
  const definedCount = random.chance(10) ? random.between(6, 14) : random.between(1, 6);
  const tabledCount = Math.ceil(definedCount / 2);
  for (let i = 0; i < definedCount; i++) {
    const tabled = i < tabledCount;
    const style = random.chance(10) ? "falling" : !tabled && random.chance(3) ? "endless" : "plain";
    let signature = randomSignature(random, features, valueTypes);
    if (style === "falling") signature = { params: ["i32", ...signature.params], results: signature.results };
    functions.push({ index: functions.length, signature, tabled, style, cost: undefined });
    typeIndex(signature);
  }

  // Globals.
  const globals: { type: TypeName; mutable: boolean; imported: boolean }[] = [];
  for (let i = random.below(3); i > 0; i--) {
    const type = random.pick(valueTypes);
    const mutable = features.has("mutable-global") && random.chance(40);
    imports.push(
      name("host", `g${globals.length}_${type}_${mutable ? 1 : 0}`).byte(3).byte(TYPE[type]).byte(mutable ? 1 : 0),
    );
    globals.push({ type, mutable, imported: true });
  }
  for (const { name: field, type, mutable } of [...given.globals, ...given.globals]) { // twice: two names for one cell
    if (!random.chance(50)) continue;
    imports.push(name("m0", field).byte(3).byte(TYPE[type]).byte(mutable ? 1 : 0));
    globals.push({ type, mutable, imported: true });
  }

  // Memory and tables, imported or own.
  let memory: { min: number; max: number } | undefined;
  let memoryImported = false;
  if (given.memory !== undefined && random.chance(70)) {
    memory = { min: given.memory.min, max: given.memory.max };
    imports.push(name("m0", given.memory.name).byte(2).bytes(limits(memory.min, memory.max).taken()));
    memoryImported = true;
  } else if (random.chance(85)) {
    memory = { min: random.pick([1, 1, 1, 1, 2, 3, 0]), max: random.between(3, 6) };
    if (random.chance(20)) {
      imports.push(
        name("host", `mem_${memory.min}_${memory.max}`).byte(2).bytes(limits(memory.min, memory.max).taken()),
      );
      memoryImported = true;
    }
  }
  const tables: { type: TypeName; min: number; max: number; imported: boolean }[] = [];
  for (const { name: field, type, min, max } of references ? [...given.tables, ...given.tables] : given.tables) {
    if (!random.chance(60) || (!references && tables.length > 0)) continue;
    imports.push(name("m0", field).byte(1).byte(TYPE[type]).bytes(limits(min, max).taken()));
    tables.push({ type, min, max, imported: true });
  }
  for (let i = references ? random.below(4) : random.below(2); i > 0; i--) {
    if (!references && tables.length > 0) break;
    const type = references && random.chance(30) ? "externref" : "funcref";
    const min = random.pick([0, 1, 4, 8, 10]);
    const max = min + random.below(12);
    const imported = tables.every((t) => t.imported) && random.chance(15);
    if (imported) {
      imports.push(
        name("host", `tab${tables.length}_${type}_${min}_${max}`).byte(1).byte(TYPE[type]).bytes(
          limits(min, max).taken(),
        ),
      );
    }
    tables.push({ type, min, max, imported });
  }

  // Definitions of globals: constants, earlier immutable imports, references.
  const tabledFunctions = functions.filter((f) => f.tabled).map((f) => f.index);
  const globalSection: Bytes[] = [];
  const importedGlobals = globals.length;
  for (let i = random.below(6); i > 0; i--) {
    const type = random.pick(valueTypes);
    const mutable = random.chance(75);
    const entry = new Bytes().byte(TYPE[type]).byte(mutable ? 1 : 0);
    constant(entry, type, { random, features, globals: globals.slice(0, importedGlobals), functions: tabledFunctions });
    globalSection.push(entry);
    globals.push({ type, mutable, imported: false });
  }

  // Segments.
  const dataSection: Bytes[] = [];
  const dataLengths: number[] = [];
  const bulk = features.has("bulk-memory-operations");
  if (memory !== undefined) {
    for (let i = random.below(4); i > 0; i--) {
      const bytes = Array.from({ length: random.below(40) }, () => random.bits() & 255);
      const entry = new Bytes();
      if (bulk && random.chance(40)) entry.byte(1);
      else {
        const end = memory.min * 65536 - bytes.length;
        const at = random.chance(2)
          ? end + random.between(0, 2)
          : end > 0
          ? random.below(random.chance(80) ? Math.min(end, 300) : end)
          : 0;
        offset(entry.byte(0), at, features, random);
        if (end < 0) bytes.length = 0;
      }
      dataSection.push(entry.u32(bytes.length).bytes(bytes));
      dataLengths.push(bytes.length);
    }
  }
  const elemSection: Bytes[] = [];
  const elems: { type: TypeName; length: number }[] = [];
  tables.forEach((table, index) => {
    if (!random.chance(85)) return;
    if (!references && index > 0) return;
    const count = random.below(table.min + 1);
    const at = random.below(table.min - count + 1) + (random.chance(2) ? 20 : 0);
    elemSection.push(activeElem(random, features, table.type, index, at, count, tabledFunctions));
    elems.push({ type: table.type, length: references ? 0 : count });
  });
  if (references) {
    for (let i = random.below(3); i > 0; i--) {
      const type = random.chance(75) ? "funcref" : "externref";
      const count = random.below(8);
      if (type === "funcref" && random.chance(40) && tabledFunctions.length > 0) {
        const entry = new Bytes().byte(random.chance(50) ? 1 : 3).byte(0).u32(count);
        for (let n = 0; n < count; n++) entry.u32(random.pick(tabledFunctions));
        elemSection.push(entry);
      } else {
        const entry = new Bytes().byte(random.chance(70) ? 5 : 7).byte(TYPE[type]).u32(count);
        for (let n = 0; n < count; n++) {
          constant(entry, type, { random, features, globals: [], functions: tabledFunctions });
        }
        elemSection.push(entry);
      }
      elems.push({ type, length: count });
    }
    if (tabledFunctions.length > 0) { // declares everything that ref.func names
      const entry = new Bytes().byte(3).byte(0).u32(tabledFunctions.length);
      for (const index of tabledFunctions) entry.u32(index);
      elemSection.push(entry);
      elems.push({ type: "funcref", length: 0 });
    }
  }

  // Bodies: those that may lie in tables first, in random order.
  const plan: ModulePlan = {
    random,
    features,
    functions,
    globals,
    memory,
    tables,
    dataLengths,
    elems: references ? elems : [],
    referable: references ? tabledFunctions : [],
    typeIndex,
  };
  const defined = functions.slice(importedFunctions);
  const order = [
    ...random.shuffled(defined.filter((f) => f.tabled)),
    ...random.shuffled(defined.filter((f) => !f.tabled)),
  ];
  const bodies: Bytes[] = [];
  for (const f of order) {
    const budget = random.pick([10, 20, 30, 60, 60, 100, 200, random.chance(20) ? 700 : 60]);
    const { code, cost } = new BodyGenerator(plan, f, budget).generate();
    f.cost = cost;
    bodies[f.index - importedFunctions] = code;
  }

  // Exports.
  for (const f of defined) {
    const field = `${f.tabled ? "t" : "f"}${number}_${f.index}`;
    exported(field, 0, f.index);
    if (f.style !== "endless") {
      offer.functions.push({ name: field, signature: f.signature, cost: f.cost!, tabled: f.tabled });
    }
  }
  globals.forEach((g, i) => {
    if (g.mutable && !features.has("mutable-global")) return;
    exported(`g${number}_${i}`, 3, i);
    if (!g.imported) offer.globals.push({ name: `g${number}_${i}`, type: g.type, mutable: g.mutable });
  });
  if (memory !== undefined) {
    exported(`mem${number}`, 2, 0);
    if (!memoryImported) offer.memory = { name: `mem${number}`, ...memory };
  }
  tables.forEach((t, i) => {
    exported(`tab${number}_${i}`, 1, i);
    if (!t.imported) offer.tables.push({ name: `tab${number}_${i}`, type: t.type, min: t.min, max: t.max });
  });
  const starters = defined.filter((f) =>
    f.signature.params.length + f.signature.results.length === 0 && f.style === "plain"
  );
  const start = starters.length > 0 && random.chance(40) ? random.pick(starters) : undefined;

  const out = new Bytes().bytes([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
  out.section(1, new Bytes().vector(types.map(functionType)));
  if (imports.length > 0) out.section(2, new Bytes().vector(imports));
  out.section(3, new Bytes().vector(defined.map((f) => new Bytes().u32(typeIndex(f.signature)))));
  const ownTables = tables.filter((t) => !t.imported);
  if (ownTables.length > 0) {
    out.section(
      4,
      new Bytes().vector(ownTables.map((t) => new Bytes().byte(TYPE[t.type]).bytes(limits(t.min, t.max).taken()))),
    );
  }
  if (memory !== undefined && !memoryImported) out.section(5, new Bytes().vector([limits(memory.min, memory.max)]));
  if (globalSection.length > 0) out.section(6, new Bytes().vector(globalSection));
  out.section(7, new Bytes().vector(exports));
  if (start !== undefined) out.section(8, new Bytes().u32(start.index));
  if (elemSection.length > 0) out.section(9, new Bytes().vector(elemSection));
  if (bulk && dataSection.length > 0) out.section(12, new Bytes().u32(dataSection.length));
  out.section(10, new Bytes().vector(bodies));
  if (dataSection.length > 0) out.section(11, new Bytes().vector(dataSection));
  return { bytes: out.taken() as Uint8Array<ArrayBuffer>, offer };
}

function limits(min: number, max: number): Bytes {
  return new Bytes().byte(1).u32(min).u32(max);
}

function functionType({ params, results }: Signature): Bytes {
  const entry = new Bytes().byte(0x60).u32(params.length);
  for (const type of params) entry.byte(TYPE[type]);
  entry.u32(results.length);
  for (const type of results) entry.byte(TYPE[type]);
  return entry;
}

function randomSignature(random: Random, features: ReadonlySet<string>, types: readonly TypeName[]): Signature {
  const many = random.chance(8) ? random.between(6, random.chance(20) ? 40 : 14) : random.below(5);
  const params = Array.from({ length: many }, () => random.pick(types));
  const most = features.has("multi-value")
    ? random.pick([0, 1, 1, 1, 2, 3, random.chance(20) ? random.between(4, 20) : 2])
    : random.below(2);
  return { params, results: Array.from({ length: most }, () => random.pick(types)) };
}

interface ConstantScope {
  random: Random;
  features: ReadonlySet<string>;
  globals: readonly { type: TypeName; mutable: boolean }[];
  functions: readonly number[];
}

/** A constant expression of `type`, its end included. */
function constant(out: Bytes, type: TypeName, { random, features, globals, functions }: ConstantScope): void {
  const usable = globals.flatMap((g, i) => g.type === type && !g.mutable ? [i] : []);
  if (usable.length > 0 && random.chance(60)) {
    out.byte(0x23).u32(random.pick(usable));
    if (type === "i32" && features.has("extended-const-expressions") && random.chance(50)) {
      out.byte(0x41).s32(random.i32()).byte(random.pick([0x6a, 0x6b, 0x6c]));
    }
    out.byte(0x0b);
    return;
  }
  if (type === "i32") {
    out.byte(0x41).s32(random.i32());
    if (features.has("extended-const-expressions") && random.chance(20)) {
      out.byte(0x41).s32(random.i32()).byte(random.pick([0x6a, 0x6b, 0x6c]));
    }
  } else if (type === "i64") {
    out.byte(0x42).s64(random.i64());
    if (features.has("extended-const-expressions") && random.chance(20)) {
      out.byte(0x42).s64(random.i64()).byte(random.pick([0x7c, 0x7d, 0x7e]));
    }
  } else if (type === "f32") out.byte(0x43).f32(random.float(true));
  else if (type === "f64") out.byte(0x44).f64(random.float(false));
  else if (isReference(type) && type === "funcref" && functions.length > 0 && random.chance(70)) {
    out.byte(0xd2).u32(random.pick(functions));
  } else out.byte(0xd0).byte(TYPE[type]);
  out.byte(0x0b);
}

/** The offset expression of an active segment. */
function offset(out: Bytes, at: number, features: ReadonlySet<string>, random: Random): void {
  if (features.has("extended-const-expressions") && random.chance(20)) {
    const part = random.i32();
    out.byte(0x41).s32(at - part).byte(0x41).s32(part).byte(0x6a).byte(0x0b);
  } else out.byte(0x41).s32(at).byte(0x0b);
}

function activeElem(
  random: Random,
  features: ReadonlySet<string>,
  type: TypeName,
  table: number,
  at: number,
  count: number,
  functions: readonly number[],
): Bytes {
  const entry = new Bytes();
  const plain = type === "funcref" && functions.length > 0 && (!features.has("reference-types") || random.chance(60));
  if (plain) {
    if (table === 0 && random.chance(80)) entry.byte(0);
    else entry.byte(2).u32(table);
    if (!features.has("reference-types") && entry.length > 1) {
      return activeElem(random, features, type, table, at, count, functions);
    }
    const explicit = entry.length > 1;
    offset(entry, at, features, random);
    if (explicit) entry.byte(0);
    entry.u32(count);
    for (let i = 0; i < count; i++) entry.u32(random.pick(functions));
    return entry;
  }
  const short = table === 0 && type === "funcref";
  if (short) entry.byte(4);
  else entry.byte(6).u32(table);
  offset(entry, at, features, random);
  if (!short) entry.byte(TYPE[type]);
  entry.u32(count);
  for (let i = 0; i < count; i++) constant(entry, type, { random, features, globals: [], functions });
  return entry;
}
