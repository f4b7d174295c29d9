/**
 * `waft profile --counts`: runs a module once in instrumented form. In: the inputs of a run. Out: how often functions
 * were called and loops turned, how many objects were allocated, by how much memories grew, and which host functions
 * were called for how long; also if the program traps or ends with a status. Invariant: the program's results and
 * effects are those of `waft run`; only its time differs.
 */
import { type Memory, TrapError } from "@waft/engine";
import { decodeModule } from "@waft/engine/internal/binary/decode";
import { describeTrap, shortName, type SourcePlace } from "@waft/engine/internal/errors";
import { sourcePlaces } from "@waft/engine/internal/runtime/source_places";
import { parseModule } from "@waft/engine/internal/text_format";
import { TextPlaces } from "@waft/engine/internal/text/text_places";
import type { Module, RawBytes } from "@waft/engine/internal/wasm/module";
import { FileFailure, UsageError } from "../base/failure.ts";
import { countModule, type CountSite, readCounter } from "../instrument/count_module.ts";
import { checkImports, type RunOptions } from "./run.ts";
import { compileInstrumented, instrumenting } from "./instrumented_module.ts";
import { readModule } from "./read_module.ts";
import { callGuest, type ImportStubs, inFile, planCall, startsThreads, wasiFor, withStubs } from "./run_module.ts";
import { readSourceMap } from "./source_files.ts";

/** The function of a count, and its source line if that is known. */
interface CountedPlace {
  /** The name of the function, or `func 7`. */
  readonly name: string;
  readonly funcIndex: number;
  /** The offset in the binary form. */
  readonly offset: number;
  readonly file?: string;
  readonly line?: number;
}

/** The counts of a run. Lists have only what occurred, the most frequent first. */
export interface RunCounts {
  readonly functions: readonly (CountedPlace & { readonly calls: number })[];
  readonly loops: readonly (CountedPlace & { readonly turns: number })[];
  /** Allocations of garbage-collected objects; `elements` are those of arrays. */
  readonly allocations: readonly (CountedPlace & {
    readonly instruction: string;
    readonly type: number;
    readonly objects: number;
    readonly elements: number;
  })[];
  /** Executions of `memory.grow`, and the pages by which they enlarged the memory. */
  readonly growth: readonly (CountedPlace & {
    readonly memory: number;
    readonly calls: number;
    readonly pages: number;
  })[];
  /** Calls of imported functions with the milliseconds that they took, including guest functions that they called. */
  readonly hostCalls: readonly HostCalls[];
}

interface HostCalls {
  readonly module: string;
  readonly name: string;
  readonly calls: number;
  readonly ms: number;
}

/** The lines that the program's results give, its failure, and the counts. */
interface CountedRun {
  readonly lines: readonly string[];
  readonly failure?: unknown;
  readonly counts: RunCounts;
}

/** Runs `file` and counts. Throws FileFailure and UsageError if it cannot start. */
export async function countFile(file: string, args: readonly string[], options: RunOptions): Promise<CountedRun> {
  const { bytes, text, shape } = await readModule(file, options.engine, "counted");
  if (startsThreads(shape)) throw new UsageError(`${file} starts threads; counts are those of one thread only`);
  const plan = planCall(file, shape, args, options.invoke);
  const stubs = checkImports(file, shape, undefined, options.unknownImports ?? "refuse");
  const { limits } = options.engine;
  const counted = instrumenting(file, "counted", () => countModule(bytes, limits?.maxMemoryPages));
  const { maxMemoryPages } = counted;
  const module = compileInstrumented(file, counted.bytes, "counted", {
    ...options.engine,
    ...(maxMemoryPages === undefined ? {} : { limits: { ...limits, maxMemoryPages } }),
  });
  const { wasi, imports } = wasiFor(module, [file, ...args], options);
  const clock = new HostClock();
  const { context } = options;
  const instance = inFile(file, () => module.instantiate(context, clock.timed(withStubs(imports, stubs))));
  wasi?.attach(instance);
  const guest = {
    call: (name: string, ...values: unknown[]) => instance.call(context, name, ...values),
    close: () => {},
  };
  const { lines, failure } = await ended(() => callGuest(file, guest, plan));
  const memory = (instance.exports as Record<string, unknown>)[counted.memory] as Memory;
  const counts = readCounts(counted.sites, memory.bytes, new Names(bytes, text, file), clock.calls());
  instance.close();
  return { lines, counts, ...(failure === undefined ? {} : { failure: withoutFrames(file, failure) }) };
}

async function ended(run: () => Promise<string[]>): Promise<{ lines: string[]; failure?: unknown }> {
  try {
    return { lines: await run() };
  } catch (failure) {
    return { lines: [], failure };
  }
}

/** The failure of a run; frames of a trap are those of the instrumented module, which no user knows. */
function withoutFrames(file: string, failure: unknown): unknown {
  const cause = failure instanceof FileFailure ? failure.cause : failure;
  return cause instanceof TrapError ? new FileFailure(file, new TrapError(describeTrap(cause))) : failure;
}

/** Counts and times calls of host functions. */
class HostClock {
  readonly #rows: { module: string; name: string; calls: number; ms: number }[] = [];

  /** The imports with functions that count. */
  timed(imports: ImportStubs): Record<string, Record<string, unknown>> {
    return mapped(
      imports,
      (module, functions) =>
        mapped(functions, (name, value) => isFunction(value) ? this.#timed(module, name, value) : value),
    );
  }

  #timed(module: string, name: string, run: (...args: unknown[]) => unknown): (...args: unknown[]) => unknown {
    const row = { module, name, calls: 0, ms: 0 };
    this.#rows.push(row);
    return (...args) => {
      row.calls++;
      const start = performance.now();
      try {
        return run(...args);
      } finally {
        row.ms += performance.now() - start;
      }
    };
  }

  /** The functions that were called. */
  calls(): HostCalls[] {
    return this.#rows.filter(({ calls }) => calls > 0).sort((a, b) => b.ms - a.ms || b.calls - a.calls);
  }
}

function isFunction(value: unknown): value is (...args: unknown[]) => unknown {
  return typeof value === "function";
}

function mapped<A, B>(record: Readonly<Record<string, A>>, change: (key: string, value: A) => B): Record<string, B> {
  const result: Record<string, B> = Object.create(null);
  for (const [key, value] of Object.entries(record)) result[key] = change(key, value);
  return result;
}

/** Names and source lines of a module. */
class Names {
  readonly #module: Module;
  readonly #imported: number;
  readonly #exported: ReadonlyMap<number, string>;
  readonly #placeOf: (offset: number, from: number, to: number) => SourcePlace | undefined;

  constructor(bytes: Uint8Array, text: string | undefined, file: string) {
    this.#module = decodeModule(bytes);
    this.#imported = this.#module.imports.filter(({ desc }) => desc.kind === "func").length;
    const functions = this.#module.exports.filter(({ kind }) => kind === "func");
    this.#exported = new Map(functions.reverse().map(({ index, name }) => [index, name]));
    this.#placeOf = text === undefined ? debugPlaces(this.#module, file) : textPlaces(text);
  }

  #body(func: number): RawBytes {
    return this.#module.funcs[func - this.#imported]!.body;
  }

  of({ func, offset }: CountSite): CountedPlace {
    const name = this.#module.names.funcs.get(func) ?? this.#exported.get(func) ?? `func ${func}`;
    const { offset: from, bytes } = this.#body(func);
    const place = this.#placeOf(offset, from, from + bytes.length);
    return {
      name: shortName(name),
      funcIndex: func,
      offset,
      ...(place?.file === undefined ? {} : { file: place.file }),
      ...(place?.line === undefined ? {} : { line: place.line }),
    };
  }
}

function debugPlaces(
  module: Module,
  file: string,
): (offset: number, from: number, to: number) => SourcePlace | undefined {
  const places = sourcePlaces(module, (url) => readSourceMap(file, url));
  return (offset, from, to) => places?.placeNear(offset, from, to, "after");
}

function textPlaces(text: string): (offset: number) => SourcePlace | undefined {
  const places = new TextPlaces();
  parseModule(text, { places });
  return (offset) => places.placeOf(offset);
}

function readCounts(
  sites: readonly CountSite[],
  memory: Uint8Array,
  names: Names,
  hostCalls: readonly HostCalls[],
): RunCounts {
  const rows = sites.map((site) => ({ site, count: readCounter(memory, site.counter) })).filter(({ count }) =>
    count > 0
  );
  rows.sort((a, b) => b.count - a.count);
  const of = (kind: CountSite["kind"]) => rows.filter(({ site }) => site.kind === kind);
  const second = ({ counter }: CountSite) => readCounter(memory, counter + 1);
  return {
    functions: of("calls").map(({ site, count }) => ({ ...names.of(site), calls: count })),
    loops: of("turns").map(({ site, count }) => ({ ...names.of(site), turns: count })),
    allocations: of("objects").map(({ site, count }) => ({
      ...names.of(site),
      instruction: site.instruction ?? "",
      type: site.index ?? 0,
      objects: count,
      elements: second(site),
    })),
    growth: of("growth").map(({ site, count }) => ({
      ...names.of(site),
      memory: site.index ?? 0,
      calls: count,
      pages: second(site),
    })),
    hostCalls,
  };
}
