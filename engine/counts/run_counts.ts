/**
 * The counts of a run, by function and source line. In: the sites of an instrumented module, their counters, and the
 * module itself. Out: lists without zero entries. Invariant: names and lines are those of the module without
 * instrumentation.
 */
import { decodeModule } from "../binary/decode.ts";
import { reportedName } from "../base/guest_stack.ts";
import type { SourcePlace } from "../base/errors.ts";
import { type CountSite, readCounter } from "../instrument/count_module.ts";
import { type ReadSourceMap, sourcePlaces } from "../runtime/traps/source_places.ts";
import { parseModule } from "../text/parse_module.ts";
import { TextPlaces } from "../text/text_places.ts";
import type { Module, RawBytes } from "../wasm/module.ts";

/** The function of a count, and its source line if that is known. */
export interface CountedPlace {
  /** The name of the function, or `func 7`. */
  readonly name: string;
  readonly funcIndex: number;
  /** The offset in the binary form. */
  readonly offset: number;
  readonly file?: string;
  readonly line?: number;
}

/** The counts of a run. Lists are sorted by count, the largest first, and omit entries with a count of zero. */
export interface RunCounts {
  readonly functions: readonly (CountedPlace & { readonly calls: number })[];
  readonly loops: readonly (CountedPlace & { readonly iterations: number })[];
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

/** The calls of one imported function, and the milliseconds that they took. */
export interface HostCalls {
  readonly module: string;
  readonly name: string;
  readonly calls: number;
  readonly ms: number;
}

/** A module whose counts are read. */
interface NamedModule {
  readonly bytes: Uint8Array;
  /** Its text form, if it was given in that form. */
  readonly text?: string | undefined;
  readonly sourceMap?: ReadSourceMap | undefined;
}

/** Names and source lines of a module. */
class Names {
  readonly #module: Module;
  readonly #imported: number;
  readonly #exported: ReadonlyMap<number, string>;
  readonly #placeOf: (offset: number, from: number, to: number) => SourcePlace | undefined;

  constructor({ bytes, text, sourceMap }: NamedModule) {
    this.#module = decodeModule(bytes);
    this.#imported = this.#module.imports.filter(({ desc }) => desc.kind === "func").length;
    const functions = this.#module.exports.filter(({ kind }) => kind === "func");
    this.#exported = new Map(functions.reverse().map(({ index, name }) => [index, name]));
    this.#placeOf = text === undefined ? debugPlaces(this.#module, sourceMap) : textPlaces(text);
  }

  #body(func: number): RawBytes {
    return this.#module.funcs[func - this.#imported].body;
  }

  of({ func, offset }: CountSite): CountedPlace {
    const name = this.#module.names.funcs.get(func) ?? this.#exported.get(func) ?? `func ${func}`;
    const { offset: from, bytes } = this.#body(func);
    const place = this.#placeOf(offset, from, from + bytes.length);
    return {
      name: reportedName(name),
      funcIndex: func,
      offset,
      ...(place?.file === undefined ? {} : { file: place.file }),
      ...(place?.line === undefined ? {} : { line: place.line }),
    };
  }
}

function debugPlaces(
  module: Module,
  sourceMap: ReadSourceMap | undefined,
): (offset: number, from: number, to: number) => SourcePlace | undefined {
  const places = sourcePlaces(module, sourceMap);
  return (offset, from, to) => places?.placeNear(offset, from, to, "after");
}

function textPlaces(text: string): (offset: number) => SourcePlace | undefined {
  const places = new TextPlaces();
  parseModule(text, { places });
  return (offset) => places.placeOf(offset);
}

/** The counts in the counters of `sites`, which are in `memory`, with names of `module`. */
export function readCounts(
  sites: readonly CountSite[],
  memory: Uint8Array,
  module: NamedModule,
  hostCalls: readonly HostCalls[],
): RunCounts {
  const names = new Names(module);
  const rows = sites.map((site) => ({ site, count: readCounter(memory, site.counter) })).filter(({ count }) =>
    count > 0
  );
  rows.sort((a, b) => b.count - a.count);
  const of = (kind: CountSite["kind"]) => rows.filter(({ site }) => site.kind === kind);
  const second = ({ counter }: CountSite) => readCounter(memory, counter + 1);
  return {
    functions: of("calls").map(({ site, count }) => ({ ...names.of(site), calls: count })),
    loops: of("iterations").map(({ site, count }) => ({ ...names.of(site), iterations: count })),
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
