/**
 * Exact counts of a module's runs. In: a module, and options as for an engine. Out: instances of its instrumented form,
 * and their counts. Invariant: results and effects are those of the module itself.
 */
import { looksBinary, sourceOf } from "../artifact/find_module.ts";
import { requireKnownNames, requireRecord } from "../base/arguments.ts";
import { NewEngine } from "../api/engine.ts";
import { countModule, type CountSite } from "../instrument/count_module.ts";
import type { Instance, Module } from "../api/module.ts";
import type { Imports } from "../runtime/instance/instantiate.ts";
import type { Memory } from "../runtime/memory/memory.ts";
import type { ReadSourceMap } from "../runtime/traps/source_places.ts";
import type { EngineOptions } from "../api/settings.ts";
import { parseModule } from "../text/parse_module.ts";
import { HostClock } from "./host_clock.ts";
import { instrumentedOptions, instrumenting } from "./instrumented_form.ts";
import { readCounts, type RunCounts } from "./run_counts.ts";

/** Options of counts. */
export interface CountOptions {
  /** The options with which the instrumented form is compiled, except for `fuel`. */
  readonly engine?: EngineOptions;
  /** Returns the source map at the address that a module names; undefined if there is none. */
  readonly sourceMap?: ReadSourceMap;
}

const OPTION_NAMES: Readonly<Record<keyof CountOptions, true>> = { engine: true, sourceMap: true };

/** An instance that counts. */
export interface CountedInstance {
  /** The instance of the instrumented form. It has one additional export: the memory with the counters. */
  readonly instance: Instance;
  /** The counts since the instantiation; also after a trap, until the instance is closed. */
  counts(): RunCounts;
}

/**
 * A module in an instrumented form that counts calls of functions, iterations of loops, allocated objects, growth of
 * memories and calls of the host. It works on every system. Only host functions are timed, because the instrumented
 * code is slower than the original.
 *
 * @example
 * ```ts
 * import { CountedModule } from "@waft/engine/counts";
 *
 * const counted = new CountedModule(`(module (func $odd (param i32) (result i32)
 *   (i32.and (local.get 0) (i32.const 1)))
 *   (func (export "both") (result i32) (i32.add (call $odd (i32.const 3)) (call $odd (i32.const 4)))))`);
 * const { instance, counts } = counted.instantiate();
 * instance.call({}, "both");
 * const [odd] = counts().functions;
 * if (odd?.name !== "odd" || odd.calls !== 2) throw new Error("wrong counts");
 * ```
 */
export class CountedModule {
  readonly #module: Module;
  readonly #bytes: Uint8Array;
  readonly #text: string | undefined;
  readonly #sourceMap: ReadSourceMap | undefined;
  readonly #sites: readonly CountSite[];
  readonly #memory: string;

  /**
   * Compiles the instrumented form of a module in binary or text form. Throws the errors of `Engine.compile`, TypeError
   * for `fuel`, which would count the added instructions too, and Error for a module whose form is too large.
   */
  constructor(source: Uint8Array | ArrayBuffer | string, options: CountOptions = {}) {
    requireRecord(options, "The options of counts");
    requireKnownNames("option of counts", options, OPTION_NAMES);
    const { engine = {}, sourceMap } = options;
    if (engine.fuel === true) {
      throw new TypeError("Counting instruments the code, which would distort fuel: omit the option fuel");
    }
    NewEngine(engine).validate(source);
    const given = sourceOf(source);
    const isText = typeof given === "string" || !looksBinary(given);
    this.#text = isText ? typeof given === "string" ? given : new TextDecoder().decode(given) : undefined;
    this.#bytes = isText ? parseModule(given).bytes : given.slice();
    this.#sourceMap = sourceMap;
    const { limits } = engine;
    const form = instrumenting("counted", () => countModule(this.#bytes, limits?.maxMemoryPages));
    this.#sites = form.sites;
    this.#memory = form.memory;
    const { maxMemoryPages } = form;
    const limited = maxMemoryPages === undefined ? engine : { ...engine, limits: { ...limits, maxMemoryPages } };
    this.#module = instrumenting("counted", () => NewEngine(instrumentedOptions(limited)).compile(form.bytes));
  }

  /**
   * Creates an instance whose counts begin at zero, as `Module.instantiate` does with the same arguments. Functions
   * among the imports count as functions of the host, also those of other instances.
   */
  instantiate(context: Parameters<Module["instantiate"]>[0] = {}, imports: Imports = {}): CountedInstance {
    const clock = new HostClock();
    const instance = this.#module.instantiate(context, clock.timed(imports));
    const memory = (instance.exports as Record<string, unknown>)[this.#memory] as Memory;
    const named = { bytes: this.#bytes, text: this.#text, sourceMap: this.#sourceMap };
    return { instance, counts: () => readCounts(this.#sites, memory.bytes, named, clock.calls()) };
  }
  /** Creates a memory for the memory import `name` of `module`, as `Module.memoryForImport` does. */
  memoryForImport(module: string, name: string): Memory {
    return this.#module.memoryForImport(module, name);
  }
}
