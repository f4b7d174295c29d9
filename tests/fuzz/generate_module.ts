/**
 * Random modules of WebAssembly 3.0 and threads, from a seed. In: a seed and the features that may or must be used.
 * Out: one or two binary modules; the second imports exports of the first (module name "m0"). Imports from module
 * "host" come from the fuzzer.
 *
 * Exports whose names begin with "t" make no indirect calls, so the host may put them into tables. The bits of the
 * exported global "marks" (plan.ts) record the features whose instructions were executed.
 */
import { type ConstantScope, writeConstant } from "./generate/constants.ts";
import { generateBody } from "./generate/control.ts";
import { generateDefinitions, writeDefinitions, writeSignature } from "./generate/definitions.ts";
import type { ModulePlan, PlannedFunction, PlannedMemory, PlannedTable } from "./generate/plan.ts";
import { generateData, generateElements } from "./generate/segments.ts";
import { Bytes } from "./module_bytes.ts";
import { Random } from "./random.ts";
import {
  type Definition,
  definitionOf,
  heapOf,
  isNullable,
  isReference,
  refType,
  type Signature,
  type TypeName,
  writeType,
} from "./value_types.ts";

/** Features of WebAssembly 2.0 without vectors, which every module uses if allowed. */
const BASE: readonly string[] = [
  "bulk-memory-operations",
  "extended-const-expressions",
  "multi-value",
  "mutable-global",
  "nontrapping-float-to-int-conversion",
  "reference-types",
  "sign-extension-ops",
];
/** Features that a case uses or not, at random. */
const DRAWN: readonly string[] = [
  "exception-handling",
  "gc",
  "memory64",
  "multi-memory",
  "simd",
  "table64",
  "tail-call",
  "threads",
  "typed-function-references",
];

/** Features that the generator supports, by the names of engine/features.ts. */
export const GENERATED_FEATURES: readonly string[] = [...BASE, ...DRAWN];

/** The exports of a module that another one can import. */
interface Offer {
  functions: { name: string; signature: Signature; definition: number | undefined; cost: number; tabled: boolean }[];
  globals: { name: string; type: TypeName; mutable: boolean }[];
  memories: ({ name: string } & PlannedMemory)[];
  tables: ({ name: string } & PlannedTable)[];
  tags: { name: string; params: readonly TypeName[] }[];
}

function nothing(): Offer {
  return { functions: [], globals: [], memories: [], tables: [], tags: [] };
}

/** The common parts of a case's modules. */
interface Common {
  readonly features: ReadonlySet<string>;
  readonly forced: readonly string[];
  readonly definitions: readonly Definition[];
}

const HOST_COST = 60;

/** The modules of a seed, in order of instantiation; `forced` features are used for certain. */
export function generateModules(
  seed: number,
  features: readonly string[] = GENERATED_FEATURES,
  forced: readonly string[] = [],
): Uint8Array<ArrayBuffer>[] {
  const random = new Random(seed);
  const set = new Set(features.filter((f) => !DRAWN.includes(f)));
  // Some cases use few of the features, others most of them.
  const share = random.pick([15, 50, 50, 80]);
  for (const feature of DRAWN) {
    if (features.includes(feature) && (forced.includes(feature) || random.chance(share))) set.add(feature);
  }
  for (const feature of forced) set.add(feature);
  const common: Common = { features: set, forced, definitions: generateDefinitions(random, set) };
  const first = generateModule(random, common, nothing(), 0);
  if (random.chance(5)) return [first.bytes, first.bytes]; // two independent instances
  const other = set.has("exception-handling") || set.has("tail-call") || set.has("typed-function-references") ? 25 : 12;
  if (!random.chance(other)) return [first.bytes];
  return [first.bytes, generateModule(random, common, first.offer, 1).bytes];
}

function generateModule(
  random: Random,
  { features, forced, definitions }: Common,
  given: Offer,
  number: number,
): { bytes: Uint8Array<ArrayBuffer>; offer: Offer } {
  const has = (feature: string) => features.has(feature);
  // Types: some that only move the others, the definitions, then signatures as they come.
  const gc = has("gc");
  const shift = definitions.length > 0 && random.chance(40) ? random.between(1, 3) : 0;
  const types: Signature[] = [];
  const keys = new Map<string, number>();
  const typeIndex = (signature: Signature) => {
    const key = `${signature.params.join()}>${signature.results.join()}`;
    let index = keys.get(key);
    if (index === undefined) {
      index = types.push(signature) - 1;
      keys.set(key, index);
    }
    return index + shift + definitions.length;
  };
  const imports: Bytes[] = [];
  const exports: Bytes[] = [];
  const name = (module: string, field: string) => new Bytes().name(module).name(field);
  const exported = (field: string, kind: number, index: number) =>
    exports.push(new Bytes().name(field).byte(kind).u32(index));
  const typed = (out: Bytes, type: TypeName) => {
    writeType(out, type, shift);
    return out;
  };
  const references = has("reference-types");
  const exceptions = has("exception-handling");
  const legacy = exceptions && random.chance(45);

  // What the host can make, what may be exchanged between functions, what locals may be.
  const hostTypes: TypeName[] = ["i32", "i32", "i64", "f32", "f64"];
  if (references && random.chance(50)) hostTypes.push("funcref", "externref");
  const valueTypes = hostTypes.slice();
  const types64: TypeName[] = has("memory64") || has("table64") ? ["i64", "i64"] : [];
  const locals: TypeName[] = ["i32", "i32", "i32", "i64", "i64", "f32", "f64", "f64", ...types64];
  if (references) locals.push("funcref", "externref");
  if (has("simd")) {
    locals.push("v128", "v128", "v128");
    if (forced.includes("simd")) locals.push("v128", "v128", "v128", "v128");
    if (random.chance(50)) valueTypes.push("v128");
  }
  if (exceptions && !legacy) locals.push("exnref");
  for (const { index } of definitions) {
    locals.push(refType(index, true));
    if (random.chance(50)) valueTypes.push(refType(index, random.chance(50)));
  }
  if (gc) {
    for (const heap of ["any", "eq", "i31", "struct", "array"]) {
      locals.push(refType(heap, true));
      if (random.chance(20)) valueTypes.push(refType(heap, random.chance(60)));
    }
    if (random.chance(20)) locals.push(random.pick(["(ref null none)", "(ref null nofunc)", "(ref null noextern)"]));
  }

  const offer = nothing();

  // Functions: imported, then defined ones in random order of generation.
  const functions: PlannedFunction[] = [];
  const hostCount = random.below(4);
  for (let i = 0; i < hostCount; i++) {
    const signature = randomSignature(random, features, hostTypes);
    imports.push(name("host", `f${i}`).byte(0).u32(typeIndex(signature)));
    functions.push({
      index: functions.length,
      signature,
      definition: undefined,
      tabled: true,
      style: "plain",
      cost: HOST_COST,
    });
  }
  let foreignCost = 0;
  for (const { name: field, signature, definition, cost, tabled } of given.functions) {
    if (tabled) foreignCost = Math.max(foreignCost, cost);
    if (!random.chance(60)) continue;
    imports.push(name("m0", field).byte(0).u32(definition === undefined ? typeIndex(signature) : definition + shift));
    functions.push({ index: functions.length, signature, definition, tabled, style: "plain", cost });
  }
  const importedFunctions = functions.length;
  const define = (
    signature: Signature,
    tabled: boolean,
    style: PlannedFunction["style"],
    definition?: number,
    forced?: readonly string[],
  ) => {
    functions.push({
      index: functions.length,
      signature,
      definition,
      tabled,
      style,
      cost: undefined,
      ...(forced === undefined ? {} : { forced }),
    });
    if (definition === undefined) typeIndex(signature);
  };
  for (const { kind, index, signature } of definitions) {
    if (kind === "func") define(signature!, true, "plain", index);
  }
  const definedCount = random.chance(10) ? random.between(6, 14) : random.between(1, 6);
  const tabledCount = Math.ceil(definedCount / 2);
  for (let i = 0; i < definedCount; i++) {
    const tabled = i < tabledCount;
    const style = random.chance(10) ? "falling" : !tabled && random.chance(3) ? "endless" : "plain";
    // What the host can call runs more often than what it cannot.
    let signature = randomSignature(random, features, random.chance(65) ? hostTypes : valueTypes);
    if (style === "falling") signature = { params: ["i32", ...signature.params], results: signature.results };
    define(signature, tabled, style);
  }
  if (has("tail-call") && random.chance(40)) {
    const { results } = randomSignature(random, features, valueTypes);
    for (let i = random.between(1, 3); i > 0; i--) {
      define(
        { params: ["i32", ...randomSignature(random, features, valueTypes).params], results },
        false,
        "ring",
      );
    }
  }
  for (const feature of forced) { // one function each: a trap in one must not hide another
    const like = random.pick(functions.filter((f) => f.style !== "endless")); // so that it can end in a call of that
    const simple = hostTypes.slice(0, 5);
    define(
      { params: Array.from({ length: random.below(3) }, () => random.pick(simple)), results: like.signature.results },
      false,
      "plain",
      undefined,
      [feature],
    );
  }

  // Globals.
  const globals: { type: TypeName; mutable: boolean; imported: boolean }[] = [];
  for (let i = random.below(3); i > 0; i--) {
    const type = random.pick(hostTypes);
    const mutable = has("mutable-global") && random.chance(40);
    imports.push(
      typed(name("host", `g${globals.length}_${type}_${mutable ? 1 : 0}`).byte(3), type).byte(mutable ? 1 : 0),
    );
    globals.push({ type, mutable, imported: true });
  }
  for (const { name: field, type, mutable } of [...given.globals, ...given.globals]) { // twice: two names for one cell
    if (!random.chance(50)) continue;
    imports.push(typed(name("m0", field).byte(3), type).byte(mutable ? 1 : 0));
    globals.push({ type, mutable, imported: true });
  }

  // Memories and tables, imported or own.
  const memories: (PlannedMemory & { imported: boolean })[] = [];
  const wantedMemories = has("multi-memory")
    ? random.between(2, 4)
    : forced.some((f) => f !== "gc")
    ? 1
    : random.chance(85)
    ? 1
    : 0;
  for (const { name: field, ...memory } of given.memories) {
    if (memories.length === wantedMemories || !random.chance(70)) continue;
    imports.push(name("m0", field).byte(2).bytes(memoryLimits(memory)));
    memories.push({ ...memory, imported: true });
  }
  while (memories.length < wantedMemories) {
    const min = random.pick([1, 1, 1, 1, 2, 3, 0]);
    const max = random.between(3, 6);
    if (memories.every((m) => m.imported) && random.chance(20)) {
      imports.push(name("host", `mem${memories.length}_${min}_${max}`).byte(2).u32(1).u32(min).u32(max));
      memories.push({ min, max, is64: false, shared: false, imported: true });
      continue;
    }
    memories.push({
      min,
      max,
      is64: has("memory64") && random.chance(55),
      shared: has("threads") && random.chance(65),
      imported: false,
    });
  }
  if (has("memory64") && memories.length > 0 && !memories.some((m) => m.is64)) {
    const last = memories.length - 1;
    if (memories[last]!.imported) {
      if (has("multi-memory")) memories.push({ min: 1, max: 3, is64: true, shared: false, imported: false });
    } else memories[last] = { ...memories[last]!, is64: true };
  }

  const tables: (PlannedTable & { imported: boolean; initial: boolean })[] = [];
  for (const { name: field, ...table } of references ? [...given.tables, ...given.tables] : given.tables) {
    if (!random.chance(60) || (!references && tables.length > 0)) continue;
    imports.push(typed(name("m0", field).byte(1), table.type).bytes(tableLimits(table)));
    tables.push({ ...table, imported: true, initial: false });
  }
  const tabled = functions.filter((f) => f.tabled);
  for (let i = references ? random.below(4) : random.below(2); i > 0; i--) {
    if (!references && tables.length > 0) break;
    let type: TypeName = references && random.chance(30) ? "externref" : "funcref";
    const min = random.pick([0, 1, 4, 8, 10]);
    const max = min + random.below(12);
    if (tables.every((t) => t.imported) && random.chance(15)) {
      imports.push(
        typed(name("host", `tab${tables.length}_${type}_${min}_${max}`).byte(1), type).u32(1).u32(min).u32(max),
      );
      tables.push({ type, min, max, is64: false, imported: true, initial: false });
      continue;
    }
    let initial = false;
    if (definitions.length > 0 && random.chance(45)) {
      initial = random.chance(40);
      const heap = gc && random.chance(30)
        ? random.pick(["any", "eq", "struct", "i31"])
        : random.pick(definitions).index;
      type = refType(heap, !initial);
    }
    tables.push({ type, min, max, is64: has("table64") && random.chance(55), imported: false, initial });
  }
  if (has("table64") && !tables.some((t) => t.is64)) {
    tables.push({ type: "funcref", min: 8, max: 16, is64: true, imported: false, initial: false });
  }
  // Tags.
  const tags: { params: readonly TypeName[]; imported: boolean }[] = [];
  if (exceptions) {
    for (let i = random.below(3); i > 0; i--) {
      const params = Array.from({ length: random.below(4) }, () => random.pick(hostTypes));
      // A tag of the host is one for all modules: its name is its type.
      imports.push(name("host", `tag_${params.join("_")}`).byte(4).byte(0).u32(typeIndex({ params, results: [] })));
      tags.push({ params, imported: true });
    }
    for (const { name: field, params } of [...given.tags, ...given.tags]) {
      if (!random.chance(60)) continue;
      imports.push(name("m0", field).byte(4).byte(0).u32(typeIndex({ params, results: [] })));
      tags.push({ params, imported: true });
    }
    for (let i = random.between(tags.length === 0 ? 1 : 0, 3); i > 0; i--) {
      const params = Array.from({ length: random.pick([0, 1, 1, 2, 3, 7]) }, () => random.pick(valueTypes));
      typeIndex({ params, results: [] });
      tags.push({ params, imported: false });
    }
  }

  // Definitions of globals: constants, earlier immutable imports, references.
  const scope: ConstantScope = {
    random,
    features,
    definitions,
    shift,
    globals: globals.slice(),
    functions: tabled,
    extended: false,
  };
  const globalSection: Bytes[] = [];
  for (let i = random.below(6); i > 0; i--) {
    const type = random.pick(valueTypes);
    if (isReference(type) && !isNullable(type) && !makeable(type, definitions, tabled)) continue;
    const mutable = random.chance(75);
    const entry = typed(new Bytes(), type).byte(mutable ? 1 : 0);
    writeConstant(entry, type, scope);
    globalSection.push(entry);
    globals.push({ type, mutable, imported: false });
    if (gc) scope.globals.push({ type, mutable }); // earlier ones of the module itself may be named
  }
  if (forced.includes("extended-const-expressions")) {
    const entry = new Bytes().byte(0x7e).byte(0); // an i64: sum, difference and product
    for (let i = 0; i < 4; i++) entry.byte(0x42).s64(random.i64());
    for (let i = 0; i < 3; i++) entry.byte(random.pick([0x7c, 0x7d, 0x7e]));
    globalSection.push(entry.byte(0x0b));
    globals.push({ type: "i64", mutable: false, imported: false });
    scope.extended = true;
  }
  const marks = has("mutable-global") ? globals.length : undefined;
  const data = generateData(memories, scope);
  const { section: elemSection, elems } = generateElements(tables, scope);
  if (marks !== undefined) {
    globalSection.push(new Bytes().byte(0x7f).byte(1).byte(0x41).s32(scope.extended ? 1 << 9 : 0).byte(0x0b));
  }

  // A table that only the ring's functions are in.
  const ring = functions.filter((f) => f.style === "ring");
  const ringTable = ring.length > 0 && references ? tables.length : undefined;
  if (ringTable !== undefined) {
    const entry = new Bytes().byte(2).u32(ringTable).byte(0x41).s32(0).byte(0x0b).byte(0).u32(ring.length);
    for (const { index } of ring) entry.u32(index);
    elemSection.push(entry);
  }

  // Bodies: those that may lie in tables first, in random order; the forced one last.
  const plan: ModulePlan = {
    random,
    features,
    definitions,
    shift,
    functions,
    globals,
    memories,
    tables,
    tags,
    legacy,
    dataLengths: has("bulk-memory-operations") ? data.lengths : [],
    elems: references ? elems : [],
    referable: references ? tabled.map((f) => f.index) : [],
    ringTable,
    marks,
    foreignCost,
    types: locals,
    typeIndex,
  };
  const defined = functions.slice(importedFunctions);
  const order = [
    ...random.shuffled(defined.filter((f) => f.tabled)),
    ...random.shuffled(defined.filter((f) => !f.tabled && f.forced === undefined)),
    ...defined.filter((f) => f.forced !== undefined),
  ];
  const bodies: Bytes[] = [];
  for (const f of order) {
    const budget = random.pick([10, 20, 30, 60, 60, 100, 200, random.chance(20) ? 700 : 60]);
    const { code, cost } = generateBody(plan, f, f.style === "ring" ? Math.min(budget, 60) : budget);
    f.cost = cost;
    bodies[f.index - importedFunctions] = code;
  }

  // Exports.
  for (const f of defined) {
    const field = `${f.tabled ? "t" : "f"}${number}_${f.index}`;
    exported(field, 0, f.index);
    if (f.style !== "endless") {
      const { signature, definition, cost } = f;
      offer.functions.push({ name: field, signature, definition, cost: cost!, tabled: f.tabled });
    }
  }
  globals.forEach((g, i) => {
    if (g.mutable && !has("mutable-global")) return;
    exported(`g${number}_${i}`, 3, i);
    if (!g.imported) offer.globals.push({ name: `g${number}_${i}`, type: g.type, mutable: g.mutable });
  });
  if (marks !== undefined) exported("marks", 3, marks);
  memories.forEach(({ imported, ...memory }, i) => {
    exported(`mem${number}_${i}`, 2, i);
    if (!imported) offer.memories.push({ name: `mem${number}_${i}`, ...memory });
  });
  tables.forEach(({ imported, type, min, max, is64 }, i) => {
    exported(`tab${number}_${i}`, 1, i);
    if (!imported) offer.tables.push({ name: `tab${number}_${i}`, type, min, max, is64 });
  });
  tags.forEach(({ imported, params }, i) => {
    exported(`tag${number}_${i}`, 4, i);
    if (!imported) offer.tags.push({ name: `tag${number}_${i}`, params });
  });
  const starters = defined.filter((f) =>
    f.signature.params.length + f.signature.results.length === 0 && f.style === "plain"
  );
  const start = starters.length > 0 && random.chance(40) ? random.pick(starters) : undefined;

  const out = new Bytes().bytes([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
  const functionTypes = new Bytes().vector(
    defined.map((f) => new Bytes().u32(f.definition === undefined ? typeIndex(f.signature) : f.definition + shift)),
  );
  out.section(
    1,
    new Bytes().vector([
      ...Array.from({ length: shift }, (_, i) => new Bytes().bytes([0x60, i, ...Array(i).fill(0x7f), 0])),
      ...writeDefinitions(definitions, shift, gc),
      ...types.map((signature) => writeSignature(new Bytes(), signature, shift)),
    ]),
  );
  if (imports.length > 0) out.section(2, new Bytes().vector(imports));
  out.section(3, functionTypes);
  const ownTables = tables.filter((t) => !t.imported).map((table) => {
    const entry = new Bytes();
    if (table.initial) entry.byte(0x40).byte(0);
    typed(entry, table.type).bytes(tableLimits(table));
    if (table.initial) writeConstant(entry, table.type, { ...scope, globals: globals.filter((g) => g.imported) });
    return entry;
  });
  if (ringTable !== undefined) ownTables.push(new Bytes().byte(0x70).byte(0).u32(ring.length));
  if (ownTables.length > 0) out.section(4, new Bytes().vector(ownTables));
  const ownMemories = memories.filter((m) => !m.imported);
  if (ownMemories.length > 0) {
    out.section(5, new Bytes().vector(ownMemories.map((m) => new Bytes().bytes(memoryLimits(m)))));
  }
  const ownTags = tags.filter((t) => !t.imported);
  if (ownTags.length > 0) {
    out.section(
      13,
      new Bytes().vector(ownTags.map(({ params }) => new Bytes().byte(0).u32(typeIndex({ params, results: [] })))),
    );
  }
  if (globalSection.length > 0) out.section(6, new Bytes().vector(globalSection));
  out.section(7, new Bytes().vector(exports));
  if (start !== undefined) out.section(8, new Bytes().u32(start.index));
  if (elemSection.length > 0) out.section(9, new Bytes().vector(elemSection));
  if (has("bulk-memory-operations") && data.section.length > 0) out.section(12, new Bytes().u32(data.section.length));
  out.section(10, new Bytes().vector(bodies));
  if (data.section.length > 0) out.section(11, new Bytes().vector(data.section));
  return { bytes: out.taken() as Uint8Array<ArrayBuffer>, offer };
}

/** Whether a constant expression can construct a value of a non-nullable type. */
function makeable(
  type: TypeName,
  definitions: readonly Definition[],
  functions: readonly { definition: number | undefined }[],
): boolean {
  const heap = heapOf(type);
  if (heap === "extern" || heap === "exn") return false;
  const definition = definitionOf(heap, definitions);
  if (heap === "func") return functions.length > 0;
  if (definition?.kind === "func") return functions.some((f) => f.definition === definition.index);
  return (definition?.fields ?? []).every(({ storage }) =>
    storage === "i8" || storage === "i16" || !isReference(storage) || isNullable(storage) ||
    makeable(storage, definitions, functions)
  );
}

function memoryLimits({ min, max, is64, shared }: PlannedMemory): Uint8Array {
  return new Bytes().u32(1 | (shared ? 2 : 0) | (is64 ? 4 : 0)).u32(min).u32(max).taken();
}

function tableLimits({ min, max, is64 }: PlannedTable): Uint8Array {
  return new Bytes().u32(is64 ? 5 : 1).u32(min).u32(max).taken();
}

function randomSignature(random: Random, features: ReadonlySet<string>, types: readonly TypeName[]): Signature {
  const many = random.chance(8) ? random.between(6, random.chance(20) ? 40 : 14) : random.below(5);
  const params = Array.from({ length: many }, () => random.pick(types));
  const most = features.has("multi-value")
    ? random.pick([0, 1, 1, 1, 2, 3, random.chance(20) ? random.between(4, 20) : 2])
    : random.below(2);
  return { params, results: Array.from({ length: most }, () => random.pick(types)) };
}
