/**
 * Asynchronous calls of random modules: host functions return values, promises, rejected promises and promises that
 * take several turns, so that guests are suspended, resumed and trap afterwards. In: a module, a seed, an engine. Out:
 * the trace, and the number of calls that were suspended. V8's counterpart is JavaScript Promise Integration.
 */
import { Engine, type EngineOptions, promising } from "../../engine/api/engine.ts";
import { Random } from "./random.ts";
import { type ImportType, readInterface, UnknownInterface } from "./read_interface.ts";
import { type Exports, type ImportObject, type Subject, V8, waft, type WasmFunction } from "./subject.ts";
import type { Signature, TypeName } from "./value_types.ts";

type Binary = Uint8Array<ArrayBuffer>;
type AsyncFunction = (...args: unknown[]) => Promise<unknown>;

/** An engine whose exports may wait for host functions. */
interface AsyncSubject {
  readonly base: Subject;
  instantiate(bytes: Binary, imports: ImportObject): Exports;
  /** A host function that may return promises. */
  suspending(f: WasmFunction): unknown;
  promising(f: WasmFunction): AsyncFunction;
}

const Integration = WebAssembly as unknown as {
  Suspending: new (f: WasmFunction) => unknown;
  promising(f: WasmFunction): AsyncFunction;
};

export const ASYNC_V8: AsyncSubject = {
  base: V8,
  instantiate: V8.instantiate,
  suspending: (f) => new Integration.Suspending(f),
  promising: (f) => Integration.promising(f),
};

export function asyncWaft(options: EngineOptions): AsyncSubject {
  const engine = new Engine(options);
  return {
    base: waft("waft", options),
    instantiate: (bytes, imports) => engine.compile(bytes).instantiate({}, imports).exports,
    suspending: (f) => f,
    promising: (f) => promising(f as never) as AsyncFunction,
  };
}

interface AsyncTrace {
  readonly entries: readonly string[];
  /** Calls that waited for a promise. */
  readonly suspended: number;
  readonly exhausted: boolean;
}

const NUMBERS: readonly TypeName[] = ["i32", "i64", "f32", "f64"];
const MAX_ENTRIES = 2000;

/** Runs every exported function of numbers twice. Throws {@linkcode UnknownInterface} for other imports. */
export async function runAsync(bytes: Binary, seed: number, subject: AsyncSubject): Promise<AsyncTrace> {
  const run = new AsyncRun(seed, subject);
  return await run.run(bytes);
}

class HostError extends Error {}

class AsyncRun {
  readonly #subject: AsyncSubject;
  readonly #random: Random;
  readonly #entries: string[] = [];
  #suspended = 0;
  #waited = false;

  constructor(seed: number, subject: AsyncSubject) {
    this.#subject = subject;
    this.#random = new Random(seed ^ 0x7f4a7c15);
  }

  async run(bytes: Binary): Promise<AsyncTrace> {
    const face = readInterface(bytes);
    if (face.start) throw new UnknownInterface("a start function, which cannot wait");
    const imports: ImportObject = {};
    for (const { module, name, type } of face.imports) (imports[module] ??= {})[name] = this.#provide(name, type);
    let exports: Exports;
    try {
      exports = this.#subject.instantiate(bytes, imports);
    } catch (error) {
      return { entries: [`instantiate: ${this.#failure(error)}`], suspended: 0, exhausted: false };
    }
    const callees = face.exports.filter(({ kind, index }) =>
      kind === "func" && [...face.functions[index].params, ...face.functions[index].results].every(isNumber)
    );
    for (const { name, index } of [...callees, ...callees]) {
      const exhausted = await this.#call(name, exports[name] as WasmFunction, face.functions[index]);
      if (exhausted) return { entries: this.#entries, suspended: this.#suspended, exhausted };
      if (this.#entries.length > MAX_ENTRIES) break;
    }
    return { entries: this.#entries, suspended: this.#suspended, exhausted: false };
  }

  #provide(name: string, type: ImportType): unknown {
    const { base } = this.#subject;
    if (type.kind === "func") return this.#subject.suspending((...args) => this.#hostCall(name, type.signature, args));
    if (type.kind === "memory" && !type.is64 && !type.shared) return base.memory(type.min, type.max);
    if (type.kind === "table" && !type.is64 && type.type === "funcref") {
      return base.table("funcref", type.min, type.max);
    }
    if (type.kind === "global" && isNumber(type.type)) {
      return base.global(type.type, type.mutable, this.#value(type.type));
    }
    throw new UnknownInterface(`an imported ${type.kind}`);
  }

  async #call(name: string, f: WasmFunction, { params }: Signature): Promise<boolean> {
    const args = params.map((type) => this.#value(type));
    this.#entries.push(`call ${name}(${args.map(textOf)})`);
    this.#waited = false;
    try {
      this.#entries.push(`= ${[await this.#subject.promising(f)(...args)].flat().map(textOf)}`);
    } catch (error) {
      const failure = this.#failure(error);
      this.#entries.push(failure);
      if (failure === "trap call stack exhausted") return true;
    }
    if (this.#waited) this.#suspended++;
    return false;
  }

  #failure(error: unknown): string {
    if (error instanceof HostError) return error.message;
    const kind = this.#subject.base.trapKind(error);
    if (kind === undefined) throw error;
    return `trap ${kind}`;
  }

  #hostCall(name: string, { results }: Signature, args: unknown[]): unknown {
    const random = this.#random;
    if (this.#entries.length < MAX_ENTRIES) this.#entries.push(`host ${name}(${args.map(textOf)})`);
    const turns = random.pick([0, 1, 1, 1, 2, 4]);
    const fails = random.chance(12);
    const values = results.map((type) => this.#value(type));
    const value = results.length < 2 ? values[0] : values;
    if (turns === 0) {
      if (fails) throw new HostError(`host error ${this.#entries.length}`);
      return value;
    }
    this.#waited = true;
    return this.#later(turns, fails ? new HostError(`late host error ${this.#entries.length}`) : undefined, value);
  }

  async #later(turns: number, error: HostError | undefined, value: unknown): Promise<unknown> {
    for (let n = 1; n < turns; n++) await undefined;
    if (error !== undefined) throw error;
    return value;
  }

  #value(type: TypeName): unknown {
    const random = this.#random;
    if (type === "i32") return random.i32();
    if (type === "i64") return random.i64();
    if (type === "f32" || type === "f64") return random.float(type === "f32");
    return null;
  }
}

/** The text of a value: of objects and functions only the kind, since their identities depend on the engine. */
function textOf(value: unknown): string {
  return typeof value === "object" && value !== null || typeof value === "function" ? typeof value : String(value);
}

function isNumber(type: TypeName): boolean {
  return NUMBERS.includes(type);
}
