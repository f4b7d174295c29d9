/**
 * Generates one module of a case. In: random numbers, the case's features and definitions, the exports of an earlier
 * module. Out: the binary module and its own exports. The steps draw random numbers in a fixed order, so a seed gives
 * the same module in every version of the generator.
 */
import { Bytes } from "../module_bytes.ts";
import type { Random } from "../random.ts";
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
} from "../value_types.ts";
import { type ConstantScope, writeConstant } from "./constants.ts";
import { generateBody } from "./function_body.ts";
import { writeDefinitions, writeSignature } from "./definitions.ts";
import { MARKED, type PlannedFunction, type PlannedMemory, type PlannedTable } from "./plan.ts";
import { type DataSegments, type ElementSegments, generateData, generateElements } from "./segments.ts";
import { WIDE_OPS, wideFunction } from "./wide.ts";

/** The exports of a module that another one can import. */
interface Offer {
  functions: { name: string; signature: Signature; definition: number | undefined; cost: number; tabled: boolean }[];
  globals: { name: string; type: TypeName; mutable: boolean }[];
  memories: ({ name: string } & PlannedMemory)[];
  tables: ({ name: string } & PlannedTable)[];
  tags: { name: string; params: readonly TypeName[] }[];
}

export function emptyOffer(): Offer {
  return { functions: [], globals: [], memories: [], tables: [], tags: [] };
}

/** The common parts of a case's modules. */
export interface Common {
  readonly features: ReadonlySet<string>;
  readonly forced: readonly string[];
  /** Whether the modules are in the form without proposals. */
  readonly standard: boolean;
  readonly definitions: readonly Definition[];
}

interface Import {
  readonly module: string;
  readonly field: string;
  /** Its kind and type. */
  readonly type: Bytes;
}

function isSame(a: Bytes, b: Bytes): boolean {
  return a.taken().join() === b.taken().join();
}

const HOST_COST = 60;
/** The kinds of external values in the binary format. */
const KIND = { func: 0, table: 1, memory: 2, global: 3, tag: 4 } as const;

/** Generates module `number` of a case, which may import the exports in `given`. */
export function generateModule(
  random: Random,
  common: Common,
  given: Offer,
  number: number,
): { bytes: Uint8Array<ArrayBuffer>; offer: Offer } {
  return new ModuleWriter(random, common, given, number).write();
}

class ModuleWriter {
  readonly #random: Random;
  readonly #common: Common;
  readonly #given: Offer;
  readonly #number: number;
  readonly #offer = emptyOffer();
  /** The type index of the first definition: a few types before the definitions shift the others. */
  readonly #shift: number;
  readonly #legacy: boolean;
  /** Types that the host can create, types of function signatures, types of locals. */
  readonly #hostTypes: TypeName[] = ["i32", "i32", "i64", "f32", "f64"];
  readonly #valueTypes: TypeName[];
  readonly #locals: TypeName[];
  /** Signatures after the definitions, in order of first use. */
  readonly #types: Signature[] = [];
  readonly #typeKeys = new Map<string, number>();
  readonly #imports: Import[] = [];
  readonly #exports: Bytes[] = [];
  readonly #functions: PlannedFunction[] = [];
  #importedFunctions = 0;
  #foreignCost = 0;
  readonly #globals: { type: TypeName; mutable: boolean; imported: boolean }[] = [];
  readonly #globalSection: Bytes[] = [];
  readonly #memories: (PlannedMemory & { imported: boolean })[] = [];
  readonly #tables: (PlannedTable & { imported: boolean; initial: boolean })[] = [];
  readonly #tags: { params: readonly TypeName[]; imported: boolean }[] = [];

  constructor(random: Random, common: Common, given: Offer, number: number) {
    this.#random = random;
    this.#common = common;
    this.#given = given;
    this.#number = number;
    this.#shift = common.definitions.length > 0 && random.chance(40) ? random.between(1, 3) : 0;
    this.#legacy = this.#has("exception-handling") && random.chance(45);
    if (this.#has("reference-types") && random.chance(50)) this.#hostTypes.push("funcref", "externref");
    this.#valueTypes = this.#hostTypes.slice();
    const wide: TypeName[] = this.#has("memory64") || this.#has("table64") ? ["i64", "i64"] : [];
    this.#locals = ["i32", "i32", "i32", "i64", "i64", "f32", "f64", "f64", ...wide];
  }

  write(): { bytes: Uint8Array<ArrayBuffer>; offer: Offer } {
    this.#addFeatureTypes();
    this.#importFunctions();
    this.#declareFunctions();
    this.#importGlobals();
    this.#addMemories();
    this.#addTables();
    if (this.#has("exception-handling")) this.#addTags();
    const scope = this.#defineGlobals();
    const marks = this.#has("mutable-global") ? this.#globals.length : undefined;
    const data = generateData(this.#memories, scope);
    const elements = generateElements(this.#tables, scope);
    if (marks !== undefined) {
      this.#globalSection.push(
        new Bytes().byte(0x7f).byte(1).byte(0x41).s32(this.#firstMarks(scope)).byte(0x0b),
      );
    }
    const ring = this.#ringTable(elements);
    const bodies = this.#generateBodies(data, elements, ring, marks);
    this.#exportAll(marks);
    return { bytes: this.#binary(scope, data, elements, ring, bodies), offer: this.#offer };
  }

  /** The marks of features that take effect before any instruction is executed. */
  #firstMarks({ extended }: ConstantScope): number {
    const compact = this.#has("compact-import-section");
    return (extended ? 1 << MARKED.indexOf("extended-const-expressions") : 0) |
      (compact ? 1 << MARKED.indexOf("compact-import-section") : 0);
  }

  #has(feature: string): boolean {
    return this.#common.features.has(feature);
  }

  /** Functions in tables, which constant expressions may name. */
  get #tabled(): PlannedFunction[] {
    return this.#functions.filter((f) => f.tabled);
  }

  #typeIndex(signature: Signature): number {
    const key = `${signature.params.join()}>${signature.results.join()}`;
    let index = this.#typeKeys.get(key);
    if (index === undefined) {
      index = this.#types.push(signature) - 1;
      this.#typeKeys.set(key, index);
    }
    return index + this.#shift + this.#common.definitions.length;
  }

  #typed(out: Bytes, type: TypeName): Bytes {
    writeType(out, type, this.#shift);
    return out;
  }

  #import(module: string, field: string, kind: keyof typeof KIND): Bytes {
    const type = new Bytes().byte(KIND[kind]);
    this.#imports.push({ module, field, type });
    return type;
  }

  #export(field: string, kind: keyof typeof KIND, index: number): void {
    this.#exports.push(new Bytes().name(field).byte(KIND[kind]).u32(index));
  }

  #signature(types: readonly TypeName[]): Signature {
    return randomSignature(this.#random, this.#common.features, types);
  }

  // ---- declarations -------------------------------------------------------------------------------------------------

  /** Adds the types of the case's features to those of signatures and locals. */
  #addFeatureTypes(): void {
    const random = this.#random;
    const locals = this.#locals;
    const { definitions, forced } = this.#common;
    if (this.#has("reference-types")) locals.push("funcref", "externref");
    if (this.#has("simd")) {
      locals.push("v128", "v128", "v128");
      if (forced.includes("simd")) locals.push("v128", "v128", "v128", "v128");
      if (random.chance(50)) this.#valueTypes.push("v128");
    }
    if (this.#has("exception-handling") && !this.#legacy) locals.push("exnref");
    for (const { index } of definitions) {
      locals.push(refType(index, true));
      if (random.chance(50)) this.#valueTypes.push(refType(index, random.chance(50)));
    }
    if (!this.#has("gc")) return;
    for (const heap of ["any", "eq", "i31", "struct", "array"]) {
      locals.push(refType(heap, true));
      if (random.chance(20)) this.#valueTypes.push(refType(heap, random.chance(60)));
    }
    if (random.chance(20)) locals.push(random.pick(["(ref null none)", "(ref null nofunc)", "(ref null noextern)"]));
  }

  #importFunctions(): void {
    const random = this.#random;
    const functions = this.#functions;
    const hostCount = random.below(4) + (this.#has("compact-import-section") ? 1 : 0);
    for (let i = 0; i < hostCount; i++) {
      const signature = this.#signature(this.#hostTypes);
      this.#import("host", `f${i}`, "func").u32(this.#typeIndex(signature));
      functions.push({
        index: functions.length,
        signature,
        definition: undefined,
        tabled: true,
        style: "plain",
        cost: HOST_COST,
      });
    }
    for (const { name, signature, definition, cost, tabled } of this.#given.functions) {
      if (tabled) this.#foreignCost = Math.max(this.#foreignCost, cost);
      if (!random.chance(60)) continue;
      const type = definition === undefined ? this.#typeIndex(signature) : definition + this.#shift;
      this.#import("m0", name, "func").u32(type);
      functions.push({ index: functions.length, signature, definition, tabled, style: "plain", cost });
    }
    this.#importedFunctions = functions.length;
  }

  #declare(
    signature: Signature,
    tabled: boolean,
    style: PlannedFunction["style"],
    definition?: number,
    forced?: readonly string[],
  ): void {
    this.#functions.push({
      index: this.#functions.length,
      signature,
      definition,
      tabled,
      style,
      cost: undefined,
      ...(forced === undefined ? {} : { forced }),
    });
    if (definition === undefined) this.#typeIndex(signature);
  }

  #declareFunctions(): void {
    const random = this.#random;
    for (const { kind, index, signature } of this.#common.definitions) {
      if (kind === "func") this.#declare(signature!, true, "plain", index);
    }
    const definedCount = random.chance(10) ? random.between(6, 14) : random.between(1, 6);
    const tabledCount = Math.ceil(definedCount / 2);
    for (let i = 0; i < definedCount; i++) {
      const tabled = i < tabledCount;
      const style = random.chance(10) ? "falling" : !tabled && random.chance(3) ? "endless" : "plain";
      // Functions that the host can call run more often than others.
      let signature = this.#signature(random.chance(65) ? this.#hostTypes : this.#valueTypes);
      if (style === "falling") signature = { params: ["i32", ...signature.params], results: signature.results };
      this.#declare(signature, tabled, style);
    }
    if (this.#has("tail-call") && random.chance(40)) this.#declareRing();
    if (random.chance(25)) this.#declarePair();
    for (const feature of this.#common.forced) this.#declareForced(feature);
  }

  #declareRing(): void {
    const { results } = this.#signature(this.#valueTypes);
    for (let i = this.#random.between(1, 3); i > 0; i--) {
      this.#declare({ params: ["i32", ...this.#signature(this.#valueTypes).params], results }, false, "ring");
    }
  }

  /** Two functions with one result of a type. */
  #declarePair(): void {
    const random = this.#random;
    const numbers = this.#hostTypes.slice(0, 5);
    const results = [random.pick(numbers)];
    for (let i = 0; i < 2; i++) {
      const params = Array.from({ length: random.below(3) }, () => random.pick(numbers));
      this.#declare({ params: ["i32", ...params], results }, false, "pair");
    }
  }

  /** One function per forced feature: a trap in one must not hide another. */
  #declareForced(feature: string): void {
    const random = this.#random;
    // The results of an existing function, so that it can end in a call of that one.
    const { results } = random.pick(this.#functions.filter((f) => f.style !== "endless")).signature;
    const simple = this.#hostTypes.slice(0, 5);
    const params = Array.from({ length: random.below(3) }, () => random.pick(simple));
    this.#declare({ params, results }, false, "plain", undefined, [feature]);
  }

  #importGlobals(): void {
    const random = this.#random;
    const globals = this.#globals;
    for (let i = random.below(3); i > 0; i--) {
      const type = random.pick(this.#hostTypes);
      const mutable = this.#has("mutable-global") && random.chance(40);
      const entry = this.#import("host", `g${globals.length}_${type}_${mutable ? 1 : 0}`, "global");
      this.#typed(entry, type).byte(mutable ? 1 : 0);
      globals.push({ type, mutable, imported: true });
    }
    const given = this.#given.globals;
    for (const { name, type, mutable } of [...given, ...given]) { // twice: two names for one cell
      if (!random.chance(50)) continue;
      this.#typed(this.#import("m0", name, "global"), type).byte(mutable ? 1 : 0);
      globals.push({ type, mutable, imported: true });
    }
  }

  #memoryCount(): number {
    if (this.#has("multi-memory")) return this.#random.between(2, 4);
    if (this.#common.forced.some((f) => f !== "gc")) return 1;
    return this.#random.chance(85) ? 1 : 0;
  }

  #addMemories(): void {
    const random = this.#random;
    const memories = this.#memories;
    const count = this.#memoryCount();
    for (const { name, ...memory } of this.#given.memories) {
      if (memories.length === count || !random.chance(70)) continue;
      this.#import("m0", name, "memory").bytes(this.#memoryLimits(memory));
      memories.push({ ...memory, imported: true });
    }
    while (memories.length < count) this.#addMemory();
    if (this.#has("custom-page-sizes") && !memories.some((m) => m.bytePages)) {
      const last = memories.length - 1;
      if (!memories[last].imported) memories[last] = { ...memories[last], bytePages: true };
      else memories.push({ min: 1, max: 3, is64: false, shared: false, bytePages: true, imported: false });
    }
    if (!this.#has("memory64") || memories.length === 0 || memories.some((m) => m.is64)) return;
    const last = memories.length - 1;
    if (!memories[last].imported) memories[last] = { ...memories[last], is64: true };
    else if (this.#has("multi-memory")) {
      memories.push({ min: 1, max: 3, is64: true, shared: false, imported: false });
    }
  }

  #addMemory(): void {
    const random = this.#random;
    const memories = this.#memories;
    const min = random.pick([1, 1, 1, 1, 2, 3, 0]);
    const max = random.between(3, 6);
    if (memories.every((m) => m.imported) && random.chance(20)) {
      this.#import("host", `mem${memories.length}_${min}_${max}`, "memory").u32(1).u32(min).u32(max);
      memories.push({ min, max, is64: false, shared: false, imported: true });
      return;
    }
    memories.push({
      min,
      max,
      is64: this.#has("memory64") && random.chance(55),
      shared: this.#has("threads") && random.chance(65),
      imported: false,
      ...(this.#has("custom-page-sizes") && random.chance(60) ? { bytePages: true } : {}),
    });
  }

  #addTables(): void {
    const random = this.#random;
    const tables = this.#tables;
    const references = this.#has("reference-types");
    const given = this.#given.tables;
    for (const { name, ...table } of references ? [...given, ...given] : given) {
      if (!random.chance(60) || (!references && tables.length > 0)) continue;
      this.#typed(this.#import("m0", name, "table"), table.type).bytes(tableLimits(table));
      tables.push({ ...table, imported: true, initial: false });
    }
    for (let i = references ? random.below(4) : random.below(2); i > 0; i--) {
      if (!references && tables.length > 0) break;
      this.#addTable();
    }
    if (this.#has("table64") && !tables.some((t) => t.is64)) {
      tables.push({ type: "funcref", min: 8, max: 16, is64: true, imported: false, initial: false });
    }
  }

  #addTable(): void {
    const random = this.#random;
    const tables = this.#tables;
    const { definitions } = this.#common;
    let type: TypeName = this.#has("reference-types") && random.chance(30) ? "externref" : "funcref";
    const min = random.pick([0, 1, 4, 8, 10]);
    const max = min + random.below(12);
    if (tables.every((t) => t.imported) && random.chance(15)) {
      const entry = this.#import("host", `tab${tables.length}_${type}_${min}_${max}`, "table");
      this.#typed(entry, type).u32(1).u32(min).u32(max);
      tables.push({ type, min, max, is64: false, imported: true, initial: false });
      return;
    }
    let initial = false;
    if (definitions.length > 0 && random.chance(45)) {
      initial = random.chance(40);
      const heap = this.#has("gc") && random.chance(30)
        ? random.pick(["any", "eq", "struct", "i31"])
        : random.pick(definitions).index;
      type = refType(heap, !initial);
    }
    tables.push({ type, min, max, is64: this.#has("table64") && random.chance(55), imported: false, initial });
  }

  #addTags(): void {
    const random = this.#random;
    const tags = this.#tags;
    const type = (params: readonly TypeName[]) => this.#typeIndex({ params, results: [] });
    for (let i = random.below(3); i > 0; i--) {
      const params = Array.from({ length: random.below(4) }, () => random.pick(this.#hostTypes));
      // All modules share a host tag, whose name is its type.
      this.#import("host", `tag_${params.join("_")}`, "tag").byte(0).u32(type(params));
      tags.push({ params, imported: true });
    }
    for (const { name, params } of [...this.#given.tags, ...this.#given.tags]) {
      if (!random.chance(60)) continue;
      this.#import("m0", name, "tag").byte(0).u32(type(params));
      tags.push({ params, imported: true });
    }
    for (let i = random.between(tags.length === 0 ? 1 : 0, 3); i > 0; i--) {
      const params = Array.from({ length: random.pick([0, 1, 1, 2, 3, 7]) }, () => random.pick(this.#valueTypes));
      type(params);
      tags.push({ params, imported: false });
    }
  }

  // ---- definitions --------------------------------------------------------------------------------------------------

  /**
   * Defines globals by constants, earlier immutable globals and references; returns the scope of constant expressions.
   */
  #defineGlobals(): ConstantScope {
    const random = this.#random;
    const { features, definitions, forced } = this.#common;
    const scope: ConstantScope = {
      random,
      features,
      definitions,
      shift: this.#shift,
      globals: this.#globals.slice(),
      functions: this.#tabled,
      extended: false,
    };
    for (let i = random.below(6); i > 0; i--) {
      const type = random.pick(this.#valueTypes);
      if (isReference(type) && !isNullable(type) && !makeable(type, definitions, this.#tabled)) continue;
      const mutable = random.chance(75);
      const entry = this.#typed(new Bytes(), type).byte(mutable ? 1 : 0);
      writeConstant(entry, type, scope);
      this.#globalSection.push(entry);
      this.#globals.push({ type, mutable, imported: false });
      if (this.#has("gc")) scope.globals.push({ type, mutable }); // later expressions may name the module's own globals
    }
    if (forced.includes("extended-const-expressions")) {
      const entry = new Bytes().byte(0x7e).byte(0); // an i64: sum, difference and product
      for (let i = 0; i < 4; i++) entry.byte(0x42).s64(random.i64());
      for (let i = 0; i < 3; i++) entry.byte(random.pick([0x7c, 0x7d, 0x7e]));
      this.#globalSection.push(entry.byte(0x0b));
      this.#globals.push({ type: "i64", mutable: false, imported: false });
      scope.extended = true;
    }
    return scope;
  }

  /** Fills a table that contains only the ring's functions; returns its index, or undefined without a ring. */
  #ringTable({ section }: ElementSegments): number | undefined {
    const ring = this.#functions.filter((f) => f.style === "ring");
    if (ring.length === 0 || !this.#has("reference-types")) return undefined;
    const table = this.#tables.length;
    const entry = new Bytes().byte(2).u32(table).byte(0x41).s32(0).byte(0x0b).byte(0).u32(ring.length);
    for (const { index } of ring) entry.u32(index);
    section.push(entry);
    return table;
  }

  /** Generates all bodies: functions in tables first, in random order; forced ones last. */
  #generateBodies(
    data: DataSegments,
    { elems }: ElementSegments,
    ringTable: number | undefined,
    marks: number | undefined,
  ): Bytes[] {
    const random = this.#random;
    const references = this.#has("reference-types");
    const plan = {
      random,
      features: this.#common.features,
      definitions: this.#common.definitions,
      shift: this.#shift,
      functions: this.#functions,
      globals: this.#globals,
      memories: this.#memories,
      tables: this.#tables,
      tags: this.#tags,
      legacy: this.#legacy,
      dataLengths: this.#has("bulk-memory-operations") ? data.lengths : [],
      elems: references ? elems : [],
      referable: references ? this.#tabled.map((f) => f.index) : [],
      ringTable,
      marks,
      foreignCost: this.#foreignCost,
      standard: this.#common.standard,
      wideFunctions: this.#functions.length,
      types: this.#locals,
      typeIndex: (signature: Signature) => this.#typeIndex(signature),
    };
    const defined = this.#functions.slice(this.#importedFunctions);
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
      bodies[f.index - this.#importedFunctions] = code;
    }
    return bodies;
  }

  #exportAll(marks: number | undefined): void {
    const n = this.#number;
    const offer = this.#offer;
    for (
      const { index, tabled, style, signature, definition, cost } of this.#functions.slice(this.#importedFunctions)
    ) {
      const name = `${tabled ? "t" : "f"}${n}_${index}`;
      this.#export(name, "func", index);
      if (style !== "endless") offer.functions.push({ name, signature, definition, cost: cost!, tabled });
    }
    this.#globals.forEach(({ type, mutable, imported }, i) => {
      if (mutable && !this.#has("mutable-global")) return;
      this.#export(`g${n}_${i}`, "global", i);
      if (!imported) offer.globals.push({ name: `g${n}_${i}`, type, mutable });
    });
    if (marks !== undefined) this.#export("marks", "global", marks);
    this.#memories.forEach(({ imported, ...memory }, i) => {
      this.#export(`mem${n}_${i}`, "memory", i);
      if (!imported) offer.memories.push({ name: `mem${n}_${i}`, ...memory });
    });
    this.#tables.forEach(({ imported, type, min, max, is64 }, i) => {
      this.#export(`tab${n}_${i}`, "table", i);
      if (!imported) offer.tables.push({ name: `tab${n}_${i}`, type, min, max, is64 });
    });
    this.#tags.forEach(({ imported, params }, i) => {
      this.#export(`tag${n}_${i}`, "tag", i);
      if (!imported) offer.tags.push({ name: `tag${n}_${i}`, params });
    });
  }

  // ---- sections -----------------------------------------------------------------------------------------------------

  #binary(
    scope: ConstantScope,
    data: DataSegments,
    elements: ElementSegments,
    ringTable: number | undefined,
    bodies: Bytes[],
  ): Uint8Array<ArrayBuffer> {
    const defined = this.#functions.slice(this.#importedFunctions);
    const starters = defined.filter(({ signature, style }) =>
      signature.params.length + signature.results.length === 0 && style === "plain"
    );
    const start = starters.length > 0 && this.#random.chance(40) ? this.#random.pick(starters) : undefined;
    const functionTypes = defined.map(({ definition, signature }) =>
      new Bytes().u32(definition === undefined ? this.#typeIndex(signature) : definition + this.#shift)
    );
    if (this.#common.standard && this.#has("wide-arithmetic")) {
      functionTypes.push(...WIDE_OPS.map(({ signature }) => new Bytes().u32(this.#typeIndex(signature))));
      bodies.push(...WIDE_OPS.map(wideFunction));
    }
    const out = new Bytes().bytes([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
    const section = (id: number, entries: readonly Bytes[]) => {
      if (entries.length > 0) out.section(id, new Bytes().vector(entries));
    };
    out.section(1, new Bytes().vector(this.#typeSection()));
    section(2, this.#importSection());
    out.section(3, new Bytes().vector(functionTypes));
    section(4, this.#tableSection(scope, ringTable));
    section(5, this.#memories.filter((m) => !m.imported).map((m) => new Bytes().bytes(this.#memoryLimits(m))));
    section(
      13,
      this.#tags.filter((t) => !t.imported).map(({ params }) =>
        new Bytes().byte(0).u32(this.#typeIndex({ params, results: [] }))
      ),
    );
    section(6, this.#globalSection);
    out.section(7, new Bytes().vector(this.#exports));
    if (start !== undefined) out.section(8, new Bytes().u32(start.index));
    section(9, elements.section);
    if (this.#has("bulk-memory-operations") && data.section.length > 0) {
      out.section(12, new Bytes().u32(data.section.length));
    }
    out.section(10, new Bytes().vector(bodies));
    section(11, data.section);
    return out.taken() as Uint8Array<ArrayBuffer>;
  }

  /** Imports; those of one module that follow each other are often in a group, sometimes of one type. */
  #importSection(): Bytes[] {
    const imports = this.#imports;
    const single = ({ module, field, type }: Import) => new Bytes().name(module).name(field).bytes(type.taken());
    if (!this.#has("compact-import-section")) return imports.map(single);
    const entries: Bytes[] = [];
    for (let start = 0; start < imports.length;) {
      const { module, type } = imports[start];
      const isGroup = start === 0 || this.#random.chance(70), sameType = this.#random.chance(40);
      let end = start + 1;
      while (isGroup && imports[end]?.module === module && (!sameType || isSame(imports[end].type, type))) end++;
      const group = imports.slice(start, end);
      start = end;
      if (this.#common.standard || !isGroup) entries.push(...group.map(single));
      else if (sameType) {
        const fields = new Bytes().vector(group.map(({ field }) => new Bytes().name(field)));
        entries.push(new Bytes().name(module).byte(0).byte(0x7e).bytes(type.taken()).bytes(fields.taken()));
      } else {
        const fields = new Bytes().vector(
          group.map(({ field, type }) => new Bytes().name(field).bytes(type.taken())),
        );
        entries.push(new Bytes().name(module).byte(0).byte(0x7f).bytes(fields.taken()));
      }
    }
    return entries;
  }

  #memoryLimits({ min, max, is64, shared, bytePages }: PlannedMemory): Uint8Array {
    const flags = 1 | (shared ? 2 : 0) | (is64 ? 4 : 0);
    if (!bytePages || this.#common.standard) return new Bytes().u32(flags).u32(min).u32(max).taken();
    return new Bytes().u32(flags | 8).u32(min * 65536).u32(max * 65536).u32(0).taken();
  }

  #typeSection(): Bytes[] {
    return [
      ...Array.from({ length: this.#shift }, (_, i) => new Bytes().bytes([0x60, i, ...Array(i).fill(0x7f), 0])),
      ...writeDefinitions(this.#common.definitions, this.#shift, this.#has("gc")),
      ...this.#types.map((signature) => writeSignature(new Bytes(), signature, this.#shift)),
    ];
  }

  #tableSection(scope: ConstantScope, ringTable: number | undefined): Bytes[] {
    const globals = this.#globals.filter((g) => g.imported);
    const own = this.#tables.filter((t) => !t.imported).map((table) => {
      const entry = new Bytes();
      if (table.initial) entry.byte(0x40).byte(0);
      this.#typed(entry, table.type).bytes(tableLimits(table));
      if (table.initial) writeConstant(entry, table.type, { ...scope, globals });
      return entry;
    });
    if (ringTable === undefined) return own;
    const count = this.#functions.filter((f) => f.style === "ring").length;
    return [...own, new Bytes().byte(0x70).byte(0).u32(count)];
  }
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
