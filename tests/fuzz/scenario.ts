/**
 * Drives modules on one engine and records everything observable: results, traps, calls of host functions with their
 * arguments, and finally the contents of memories, globals and tables. In: modules, a seed, an engine. Out: the trace,
 * the same for every correct engine.
 *
 * The scenario depends only on the seed and on the engine's behaviour so far, so the first difference between two
 * traces is where the engines diverge.
 */
import { Buffer } from "node:buffer";
import { heapOf, isNullable, type Signature, type TypeName } from "./value_types.ts";
import { Random } from "./random.ts";
import { type ImportType, type ModuleInterface, readInterface, UnknownInterface } from "./read_interface.ts";
import type { Exports, ImportObject, LiveGlobal, LiveMemory, LiveTable, Subject, WasmFunction } from "./subject.ts";

export interface Trace {
  readonly entries: readonly string[];
  /** The features whose instructions were executed, by bit. */
  readonly marks: number;
  /** The stack was exhausted: engines differ in the maximum depth, so the trace ends there. */
  readonly exhausted: boolean;
  readonly calls: number;
  readonly traps: number;
}

/** Maximum number of trace entries, and of calls back from host functions. */
const MAX_ENTRIES = 4000;
const MAX_REENTRIES = 12;

class TooMuch extends Error {}
class HostError extends Error {}

/** Runs the scenario of `seed` over `modules` on `subject`. */
export function runScenario(modules: readonly Uint8Array<ArrayBuffer>[], seed: number, subject: Subject): Trace {
  return new Scenario(modules, seed, subject).run();
}

class Scenario {
  readonly #modules: readonly Uint8Array<ArrayBuffer>[];
  readonly #subject: Subject;
  readonly #random: Random;
  readonly #entries: string[] = [];
  readonly #objects: object[] = Array.from({ length: 4 }, (_, i) => ({ object: i }));
  readonly #interfaces: ModuleInterface[] = [];
  readonly #instances: Exports[] = [];
  /** Every function seen as an export, with its signature and name. */
  readonly #functions = new Map<unknown, { name: string; signature: Signature }>();
  readonly #tabled: WasmFunction[] = [];
  readonly #memories: LiveMemory[] = [];
  /** Tags by import name, shared by all modules. */
  readonly #tags = new Map<string, unknown>();
  /** Tags that exceptions may have, with their payload types. */
  readonly #known: { name: string; tag: unknown; params: readonly TypeName[] }[] = [];
  /** Garbage-collected objects, in order of first appearance. */
  readonly #made: unknown[] = [];
  #fatal: Error | undefined;
  #face: ModuleInterface | undefined;
  #reentries = 0;
  #depth = 0;
  #calls = 0;
  #traps = 0;

  constructor(modules: readonly Uint8Array<ArrayBuffer>[], seed: number, subject: Subject) {
    this.#modules = modules;
    this.#subject = subject;
    this.#random = new Random(seed ^ 0x3c6ef372);
  }

  run(): Trace {
    let exhausted = false;
    let before = 0;
    try {
      this.#modules.forEach((bytes, i) => {
        before = this.#entries.length;
        this.#instantiate(bytes, i);
      });
      for (let round = 0; round < 2; round++) {
        this.#instances.forEach((exports, i) => {
          for (const { name, kind, index } of this.#interfaces[i].exports) {
            if (kind !== "func") continue;
            before = this.#entries.length;
            if (this.#random.chance(15)) this.#touchExport(exports, this.#interfaces[i]);
            this.#call(name, exports[name] as WasmFunction, this.#interfaces[i].functions[index]);
          }
        });
      }
      this.#contents();
    } catch (error) {
      if (error instanceof Exhausted) {
        this.#entries.length = before;
        this.#entries.push("stack exhausted");
        exhausted = true;
        this.#callOn();
      } else if (error instanceof TooMuch) this.#entries.push("too many entries");
      else throw error;
    }
    return { entries: this.#entries, exhausted, calls: this.#calls, traps: this.#traps, marks: this.#marks() };
  }

  /** Calls everything once more without a record: after exhaustion the engine must still work. */
  #callOn(): void {
    const length = this.#entries.length;
    this.#depth = 0;
    this.#fatal = undefined;
    this.#instances.forEach((exports, i) => {
      for (const { name, kind, index } of this.#interfaces[i].exports) {
        if (kind !== "func") continue;
        try {
          this.#entries.length = length;
          this.#call(name, exports[name] as WasmFunction, this.#interfaces[i].functions[index]);
        } catch (error) {
          if (!(error instanceof Exhausted) && !(error instanceof TooMuch)) throw error;
        }
      }
    });
    this.#entries.length = length;
  }

  /** The union of the modules' "marks" globals. */
  #marks(): number {
    let marks = 0;
    for (const exports of this.#instances) {
      const global = exports?.["marks"];
      if (global !== undefined) marks |= Number((global as LiveGlobal).value);
    }
    return marks;
  }

  #note(entry: string): void {
    if (this.#fatal !== undefined) throw this.#fatal; // a module caught the exception: later entries do not count
    if (this.#entries.length >= MAX_ENTRIES) throw this.#fatal = new TooMuch("The trace is full");
    this.#entries.push(entry);
  }

  // ---- instances ----------------------------------------------------------------------------------------------------

  #instantiate(bytes: Uint8Array<ArrayBuffer>, number: number): void {
    const face = readInterface(bytes);
    const imports: ImportObject = {};
    for (const { module, name, type } of face.imports) {
      const namespace = imports[module] ??= {};
      const source = /^m(\d+)$/.exec(module);
      namespace[name] = source === null ? this.#provide(name, type) : this.#instances[Number(source[1])]?.[name];
      if (namespace[name] === undefined) return; // an import was never created
    }
    let exports: Exports;
    try {
      exports = this.#subject.instantiate(bytes, imports);
    } catch (error) {
      this.#note(`instantiate ${number}: ${this.#failure(error)}`);
      return;
    }
    this.#note(`instantiate ${number}`);
    this.#instances[number] = exports;
    this.#interfaces[number] = face;
    for (const { name, kind, index } of face.exports) {
      const value = exports[name];
      if (kind === "memory") this.#memories.push(value as LiveMemory);
      if (kind === "tag") this.#known.push({ name, tag: value, params: face.tags[index].params });
      if (kind !== "func") continue;
      if (!this.#functions.has(value)) this.#functions.set(value, { name, signature: face.functions[index] });
      if (name.startsWith("t")) this.#tabled.push(value as WasmFunction);
    }
  }

  #provide(name: string, type: ImportType): unknown {
    switch (type.kind) {
      case "func":
        return (...args: unknown[]) => this.#hostCall(name, type.signature, args);
      case "memory": {
        if (type.is64 || type.shared) throw new UnknownInterface("an imported memory of 64 bits or shared");
        const memory = this.#subject.memory(type.min, type.max);
        this.#memories.push(memory);
        return memory;
      }
      case "table":
        if (type.is64 || !HOST_TYPES.has(type.type)) throw new UnknownInterface(`an imported table of ${type.type}`);
        return this.#subject.table(type.type, type.min, type.max);
      case "tag":
        return this.#hostTag(name, type.signature.params);
      case "global": {
        if (!HOST_TYPES.has(type.type)) throw new UnknownInterface(`an imported global of ${type.type}`);
        const value = this.#value(type.type) ?? null;
        return this.#subject.global(type.type, type.mutable, value);
      }
    }
  }

  #hostTag(name: string, params: readonly TypeName[]): unknown {
    const old = this.#tags.get(name);
    if (old !== undefined) return old;
    if (!params.every((type) => type === "v128" || HOST_TYPES.has(type))) {
      throw new UnknownInterface(`an imported tag of ${params}`);
    }
    const tag = this.#subject.tag(params);
    this.#tags.set(name, tag);
    this.#known.push({ name, tag, params });
    return tag;
  }

  // ---- calls --------------------------------------------------------------------------------------------------------

  #call(name: string, f: WasmFunction, signature: Signature): void {
    // Exception references do not cross to JavaScript; other tests cover whether such calls are refused or pass null.
    if ([...signature.params, ...signature.results].some((type) => heapOf(type) === "exn")) return;
    const args = signature.params.map((type) => this.#value(type));
    this.#note(`call ${name}(${args.map((a) => this.#text(a)).join(", ")})`);
    this.#calls++;
    let outcome: string;
    this.#depth++;
    try {
      const result = f(...args);
      outcome = signature.results.length > 1
        ? (result as unknown[]).map((r) => this.#text(r)).join(", ")
        : this.#text(result);
    } catch (error) {
      outcome = this.#failure(error);
      this.#traps++;
    }
    this.#depth--;
    this.#note(`= ${outcome}`);
  }

  #failure(error: unknown): string {
    if (error instanceof HostError) return error.message;
    if (error instanceof TooMuch || error instanceof Exhausted) throw error;
    const kind = this.#subject.trapKind(error);
    if (kind === "call stack exhausted") throw this.#fatal = new Exhausted(kind);
    if (kind === undefined) throw error;
    if (kind === "uncaught exception") {
      for (const { name, tag, params } of this.#known) {
        const payload = this.#subject.payload(error, tag, params);
        if (payload !== undefined) return `exception ${name}(${payload.map((v) => this.#text(v)).join(", ")})`;
      }
      return "exception of an unknown tag";
    }
    if (kind === "TypeError") return kind; // from the boundary, without wasm frames
    const frames = this.#subject.frames(error).map(({ offset, func }) => {
      const wrong = func !== undefined && this.#modules.length === 1 && !this.#holds(func, offset);
      return `${offset.toString(16)}${wrong ? ` said to be in function ${func}` : ""}`;
    });
    return `trap ${kind} at ${frames.join(" < ")}`;
  }

  /** Whether `offset` is in the body of function `func` of the only module. */
  #holds(func: number, offset: number): boolean {
    const body = (this.#face ??= readInterface(this.#modules[0])).bodies[func];
    return body !== undefined && offset >= body.start && offset < body.end;
  }

  #hostCall(name: string, signature: Signature, args: unknown[]): unknown {
    this.#note(`host ${name}(${args.map((a) => this.#text(a)).join(", ")})`);
    const random = this.#random;
    if (random.chance(this.#known.length > 0 ? 6 : 2)) throw new HostError(`host error ${this.#entries.length}`);
    if (this.#known.length > 0 && random.chance(12)) {
      const { tag, params } = random.pick(this.#known);
      if (params.every((type) => HOST_TYPES.has(type))) {
        throw this.#subject.exception(tag, params.map((type) => this.#value(type)));
      }
    }
    if (this.#memories.length > 0 && random.chance(15)) this.#touchMemory();
    if (this.#depth < 4 && this.#reentries < MAX_REENTRIES && random.chance(20)) this.#reenter();
    const { results } = signature;
    if (results.length === 0) return undefined;
    if (results.length === 1) return this.#value(results[0]);
    return results.map((type) => this.#value(type));
  }

  #reenter(): void {
    this.#reentries++;
    const choices = [...this.#functions];
    if (choices.length === 0) return;
    const [f, { name, signature }] = this.#random.pick(choices);
    this.#call(name, f as WasmFunction, signature);
  }

  #touchMemory(): void {
    const memory = this.#random.pick(this.#memories);
    if (this.#random.chance(25)) {
      this.#note(`grow ${this.#subject.growMemory(memory, this.#random.below(2))}`);
      return;
    }
    const view = new Uint8Array(memory.buffer);
    if (view.length === 0) return;
    const at = this.#random.below(Math.min(view.length, 4096));
    this.#note(`byte ${view[at]} of ${view.length}`);
    view[at] = this.#random.bits() & 255;
  }

  /** A value of `type` to pass to the engine. */
  #value(type: TypeName): unknown {
    const random = this.#random;
    switch (type) {
      case "i32":
        return random.i32();
      case "i64":
        return random.i64();
      case "f32":
        return random.float(true);
      case "f64":
        return random.float(false);
      case "externref":
        return random.chance(25)
          ? null
          : random.chance(80)
          ? random.pick(this.#objects)
          : random.pick([undefined, 17, "x", -0]);
      case "funcref":
        return this.#tabled.length === 0 || random.chance(30) ? null : random.pick(this.#tabled);
      case "v128":
      case "exnref":
        return null; // has no JavaScript representation: the call is refused
      default:
        return this.#referenceOf(type);
    }
  }

  /** A reference to pass to the engine, usually one that matches; otherwise the call is refused. */
  #referenceOf(type: TypeName): unknown {
    const random = this.#random;
    if (isNullable(type) && random.chance(40)) return null;
    const heap = heapOf(type);
    if (heap === "i31" || ((heap === "any" || heap === "eq") && random.chance(30))) return random.between(-100, 100);
    const functions = [...this.#functions].filter(([, { signature, name }]) =>
      name.startsWith("t") && `${signature.params}>${signature.results}` === this.#typeText(heap)
    );
    if (functions.length > 0) return random.pick(functions)[0];
    if (this.#made.length > 0) return random.pick(this.#made);
    return null;
  }

  /** The signature of a function type by its index in the current module; modules of a case share most indices. */
  #typeText(heap: string): string {
    const signature = this.#interfaces[0]?.types[Number(heap)];
    return signature === undefined ? "" : `${signature.params}>${signature.results}`;
  }

  /** Modifies an exported global, table or memory from outside. */
  #touchExport(exports: Exports, face: ModuleInterface): void {
    const random = this.#random;
    const { name, kind } = random.pick(face.exports);
    if (name === "marks" || name === "reached") return;
    if (kind === "memory") {
      this.#note(`grow ${this.#subject.growMemory(exports[name] as LiveMemory, random.below(3))}`);
    } else if (kind === "global") {
      const global = exports[name] as LiveGlobal;
      const old = readGlobal(global);
      this.#note(`global ${name} was ${this.#text(old)}`);
      if (old === "refused") return;
      const value = typeof old === "bigint" ? random.i64() : typeof old === "number" ? random.float(true) : null;
      try {
        global.value = value;
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        this.#note("it is immutable");
      }
    } else if (kind === "table") {
      const table = exports[name] as LiveTable;
      const length = Number(table.length);
      if (length === 0) return;
      const at = element(table, random.below(length));
      const old = readElement(table, at);
      this.#note(`element ${at} of ${name} was ${this.#text(old)}`);
      const next = this.#tabled.length > 0 && typeof old === "function" ? random.pick(this.#tabled) : null;
      try {
        table.set(at, next);
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        this.#note("it does not fit");
      }
    }
  }

  #text(value: unknown): string {
    switch (typeof value) {
      case "number":
        return Object.is(value, -0) ? "-0" : String(value);
      case "bigint":
        return `${value}n`;
      case "function": {
        const known = this.#functions.get(value);
        return `function ${known?.name ?? (value as WasmFunction).name}`;
      }
      case "object": {
        if (value === null) return "null";
        const index = this.#objects.indexOf(value);
        if (index >= 0) return `object ${index}`;
        const seen = this.#made.indexOf(value);
        return `made ${seen < 0 ? this.#made.push(value) - 1 : seen}`;
      }
      default:
        return String(value);
    }
  }

  // ---- the end ------------------------------------------------------------------------------------------------------

  #contents(): void {
    this.#instances.forEach((exports, i) => {
      for (const { name, kind } of this.#interfaces[i].exports) {
        if (kind === "global") {
          this.#entries.push(`global ${name} = ${this.#text(readGlobal(exports[name] as LiveGlobal))}`);
        } else if (kind === "table") {
          const table = exports[name] as LiveTable;
          const length = Number(table.length);
          const shown = Array.from(
            { length: Math.min(length, 200) },
            (_, n) => this.#text(readElement(table, element(table, n))),
          );
          this.#entries.push(`table ${name} = ${length}: ${shown.join(", ")}`);
        }
      }
    });
    this.#memories.forEach((memory, i) => {
      const bytes = memory.buffer;
      this.#entries.push(`memory ${i} = ${bytes.byteLength}: ${hash(bytes)}`);
    });
  }
}

class Exhausted extends Error {}

/** Types whose values the host can create. */
const HOST_TYPES: ReadonlySet<TypeName> = new Set(["i32", "i64", "f32", "f64", "funcref", "externref"]);

/** An index of the type that the table expects: a bigint if its length is one. */
function element(table: LiveTable, index: number): number {
  return typeof table.length === "number" ? index : BigInt(index) as unknown as number;
}

/** The value of a global, or "refused" for a vector or an exception, which JavaScript cannot read. */
function readGlobal(global: LiveGlobal): unknown {
  return orRefused(() => global.value);
}

/** The same for an element of a table. */
function readElement(table: LiveTable, at: number): unknown {
  return orRefused(() => table.get(at));
}

function orRefused(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    if (error instanceof TypeError) return "refused";
    throw error;
  }
}

/** Bytes that {@linkcode hash} skips at once if all of them are zero. */
const ZEROS = Buffer.alloc(4096);

/** A hash of a memory that skips zeros, since most of a memory is zero. */
function hash(buffer: ArrayBuffer): string {
  const words = new Int32Array(buffer);
  const bytes = Buffer.from(buffer);
  let h = 0;
  for (let start = 0; start < bytes.length; start += ZEROS.length) {
    if (bytes.compare(ZEROS, 0, ZEROS.length, start, start + ZEROS.length) === 0) continue;
    for (let i = start / 4, end = i + ZEROS.length / 4; i < end; i++) {
      const word = words[i];
      if (word !== 0) h = Math.imul(h ^ word ^ Math.imul(i, 0x9e3779b1), 0x85ebca6b) ^ (h >>> 13);
    }
  }
  return (h >>> 0).toString(16);
}
