/**
 * The public face of the engine: {@linkcode NewEngine} → `compile` → `instantiate` → `call`. A module is compiled once and
 * instantiated as often as wanted; each instance is isolated from the others.
 *
 * @example
 * ```ts
 * import { NewEngine } from "@waft/engine";
 *
 * const engine = NewEngine();
 * const module = engine.compile(`(module (func (export "add") (param i32 i32) (result i32)
 *   (i32.add (local.get 0) (local.get 1))))`);
 * const instance = module.instantiate();
 * console.log(instance.call({}, "add", 2, 3)); // 5
 * ```
 */
import { type OptimizingCompiler, TierUp } from "./tier_up.ts";
import type { Tiering } from "./settings.ts";
import { decodeModule } from "./binary/decode.ts";
import { inWords, requireKnownNames, requireRecord } from "./base/arguments.ts";
import { cacheKey, CodeCache } from "./cache/code_cache.ts";
import type { Target } from "./codegen/target.ts";
import { compileModule, type CompileOptions } from "./compile.ts";
import { bodySharing, prepareHelpers, sendJob, threadCount } from "./parallel/helper_threads.ts";
import { WaftError } from "./errors.ts";
import type { FeatureSet } from "./features.ts";
import { COLLECTOR_CODE } from "./gc/collector_code.ts";
import type { HeapStatistics } from "./gc/heap.ts";
import { CPU_FEATURES, cpuFeatures, hostArchitecture } from "./host/cpu.ts";
import { currentHost } from "./host/current.ts";
import type { Host } from "./host/host.ts";
import { nodeModule } from "./host/process.ts";
import { ArtifactError } from "./artifact/format.ts";
import { placeImage } from "./link/image.ts";
import {
  type ExportDescriptor,
  type ExportValue,
  type ImportDescriptor,
  Instance,
  Module,
  promising,
} from "./module.ts";
import type { OptimizationSet } from "./optimizations.ts";
import { realmStore, setStoreCompiler } from "./runtime/realm_store.ts";
import { CompiledModule } from "./runtime/code/compiled_module.ts";
import { processCodeOf } from "./runtime/thread/guest_thread.ts";
import { Tag, WasmException } from "./runtime/exceptions/exception.ts";
import { EXTERN, ExternGlobal, ExternTable } from "./runtime/instance/externals.ts";
import { SUSPENDING } from "./runtime/boundary/marshal.ts";
import { InstancePool } from "./runtime/instance/instance_pool.ts";
import { Memory } from "./runtime/memory/memory.ts";
import { hasGuardRoom } from "./runtime/memory/memory_range.ts";
import type { SharedModuleToken } from "./artifact/shared_module.ts";
import { addToPerfMap } from "./runtime/code/perf_map.ts";
import { machineName } from "./artifact/description.ts";
import { serializeCode, serializeModule } from "./artifact/write_module.ts";
import { type LoadedModule, loadModule, loadModuleFile } from "./artifact/read_module.ts";
import type { SharedMemoryToken } from "./runtime/memory/shared_pages.ts";
import type { Store } from "./runtime/instance/store.ts";
import { STRING_CODE } from "./runtime/strings/string_code.ts";
import { type Context, type EngineLimits, type EngineOptions, type Settings, settingsOf } from "./settings.ts";
import {
  codeFacts,
  COLLECTOR_OPTIONS,
  collectorKey,
  hasObjects,
  loadCached,
  looksBinary,
  sourceOf,
  wantsExplicit,
} from "./artifact/find_module.ts";
import { parseModule } from "./text/parse_module.ts";
import { TextPlaces } from "./text/text_places.ts";
import { validateModule } from "./validate/module.ts";
import type { Module as WasmModule } from "./wasm/module.ts";
import { I64 } from "./wasm/types.ts";

/** A machine that code is made for. */
export interface Machine {
  os: "linux";
  arch: "x64" | "arm64";
  /**
   * Optional instructions that its processor has, by the names that the manuals use, such as `avx2` or `lse`. Default: none, so that every processor
   * runs the code. An artifact is refused where one is missing.
   */
  cpu?: readonly string[];
}

async function backendFor(arch: Machine["arch"]): Promise<Target> {
  return arch === "arm64"
    ? (await import("./backend_arm64/target.ts")).ARM64
    : (await import("./backend_x64/target.ts")).X64;
}

/** The backend for this machine: no other is loaded unless it is asked for. */
const TARGET: Target = await backendFor(hostArchitecture());

/** The machine code of a module of our own, whose memory is the whole address space; not placed yet. */
function ownCode(host: Host, text: string) {
  const { features, optimizations } = COLLECTOR_OPTIONS;
  return compileModule(parseModule(text), {
    target: TARGET,
    features,
    optimizations,
    explicitBounds: false,
    unchecked: true,
    cpu: cpuFeatures(host),
  });
}

function compileOwn(store: Store, text: string): CompiledModule {
  const { thread } = store;
  const code = ownCode(thread.host, text);
  const compiled = new CompiledModule(thread, code.valid, {
    ...code,
    image: placeImage(thread.arena, code.bytes, code.tables),
  });
  compiled.internal = true;
  store.addModule(compiled);
  return compiled;
}

/** Keeps the collector with modules that need it, for who runs them without a compiler. */
function keepCollector(cache: CodeCache): void {
  const key = collectorKey();
  if (cache.find(key) !== undefined) return;
  const { host, code: process } = realmStore().thread;
  const machine = { name: machineName(host), cpu: cpuFeatures(host), process };
  const code = ownCode(host, COLLECTOR_CODE);
  cache.write(key, serializeCode(machine, COLLECTOR_OPTIONS, code.valid, { ...code, statistics: {} }));
}

setStoreCompiler({
  processCode: () => processCodeOf(TARGET, currentHost().os),
  compileCollector: (store) => compileOwn(store, COLLECTOR_CODE),
  compileStrings: (store) => compileOwn(store, STRING_CODE),
});

/**
 * Frees the structures, arrays, host references and exceptions that nothing holds, now instead of when it is due, and gives memory back to
 * the system. What a host function that is running calls it for is safe.
 */
export function collectGarbage(): void {
  realmStore().collect();
}

/** What the collector of structures and arrays has done in this JavaScript realm so far, and how long its pauses were. */
export function gcStatistics(): HeapStatistics {
  return realmStore().heap.statistics;
}

/**
 * Makes an engine, as `new Engine(options)` does.
 *
 * @example
 * ```ts
 * import { NewEngine } from "@waft/engine";
 *
 * const instance = NewEngine().compile(`(module
 *   (import "console" "log" (func $log (param i32)))
 *   (func (export "add") (param i32 i32) (result i32)
 *     (call $log (i32.add (local.get 0) (local.get 1)))
 *     (i32.add (local.get 0) (local.get 1))))`).instantiate({}, { console: { log: console.log } });
 * if (instance.call({}, "add", 20, 22) !== 42) throw new Error("no answer");
 * ```
 */
export function NewEngine(options: EngineOptions = {}): Engine {
  return new Engine(options);
}

/**
 * Compiles modules with one set of options.
 *
 * @example
 * ```ts
 * import { Engine } from "@waft/engine";
 *
 * const engine = new Engine({ interruptible: true, limits: { maxMemoryPages: 256 } });
 * const module = engine.compile(`(module (func (export "answer") (result i32) (i32.const 42)))`);
 * const answer = module.instantiate().call({ deadline: 100 }, "answer");
 * if (answer !== 42) throw new Error("no answer");
 * ```
 */
export class Engine implements Settings {
  /** Which features of WebAssembly its modules may use. */
  readonly features: FeatureSet;
  /** Which optimizations it makes. */
  readonly optimizations: OptimizationSet;
  /** The option `bounds`. */
  readonly bounds: "guard" | "explicit" | "auto";
  /** The option `tier`. */
  readonly tier: Tiering;
  /** The option `interruptible`. */
  readonly interruptible: boolean;
  /** The option `fuel`. */
  readonly fuel: boolean;
  /** The option `deterministic`. */
  readonly deterministic: boolean;
  /** Limits of its modules' instances, defaults included. */
  readonly limits: Required<EngineLimits>;
  readonly #threads: number;
  readonly #verify: boolean;
  readonly #tierUpCalls: number | undefined;
  readonly #cache: CodeCache | undefined;
  readonly #perfMap: boolean;

  /** Throws TypeError for options that exclude each other or are none, RangeError for limits that are no whole numbers. */
  constructor(options: EngineOptions = {}) {
    const settings = settingsOf(options);
    this.features = settings.features;
    this.optimizations = settings.optimizations;
    this.bounds = settings.bounds;
    this.tier = settings.tier;
    this.interruptible = settings.interruptible;
    this.fuel = settings.fuel;
    this.deterministic = settings.deterministic;
    this.limits = settings.limits;
    this.#threads = threadCount(options.parallel);
    this.#verify = options.verify ?? false;
    this.#tierUpCalls = options.tierUpCalls;
    this.#perfMap = options.perfMap ?? false;
    this.#cache = options.cache && new CodeCache(options.cache);
  }

  /**
   * Validates and compiles a module: its binary form, or its text.
   *
   * Throws MalformedError, InvalidError or UnsupportedError with the place in the input.
   */
  compile(source: Uint8Array | ArrayBuffer | string): Module {
    const given = sourceOf(source);
    if (this.#cache !== undefined && typeof given !== "string" && looksBinary(given)) {
      return this.#compileCached(given, this.#cache);
    }
    prepareHelpers(this.#threads, given.length);
    const places = new TextPlaces();
    return withPlaces(places, () => this.compileParsed(this.#parse(given, places), places));
  }

  /** Compiles a binary form, or takes what the cache has of it. Text is not cached: artifacts do not know its lines. */
  #compileCached(bytes: Uint8Array, cache: CodeCache): Module {
    const key = cacheKey(bytes, codeFacts(this));
    const stored = loadCached(cache, key, this);
    if (stored !== undefined) {
      const { compiled, statistics } = stored;
      if (this.#perfMap) addToPerfMap(compiled);
      const space = realmStore();
      const fallback = () => this.#compileFor(space, decodeModule(bytes), new TextPlaces(), true).compiled;
      const hasMemory = compiled.valid.memories.some(({ limits }) => limits.address !== I64);
      const wantsFallback = this.bounds === "auto" && !compiled.explicitBounds && hasMemory;
      return new Module(space, compiled, statistics, this, wantsFallback ? fallback : undefined);
    }
    prepareHelpers(this.#threads, bytes.length);
    const parsed = decodeModule(bytes);
    const write = (artifact: Uint8Array) => cache.write(key, artifact);
    const module = this.compileParsed(
      parsed,
      undefined,
      (compiled, statistics) => write(serializeModule(compiled, this, statistics)),
    );
    if (!module.isTieringUp) write(module.serialize());
    if (hasObjects(parsed)) keepCollector(cache);
    return module;
  }

  /**
   * Compiles what `parse` returned. `places` are those of the text it came from, if any.
   *
   * @internal
   */
  compileParsed(
    module: WasmModule,
    places: TextPlaces = new TextPlaces(),
    finished?: OptimizingCompiler["finished"],
  ): Module {
    const space = realmStore();
    const explicit = wantsExplicit(this, module);
    const { compiled, statistics, replaceable } = this.#compileFor(space, module, places, explicit);
    const hasMemory = module.memories.some(({ limits }) => limits.address !== I64);
    const fallback = this.bounds === "auto" && !explicit && hasMemory
      ? () => this.#compileFor(space, module, places, true, "optimizing").compiled
      : undefined;
    const tierUp = this.tier === "auto" && replaceable !== undefined
      ? new TierUp(space, compiled, replaceable, {
        target: TARGET,
        options: this.#codeOptions(explicit),
        send: sendJob,
        ...(this.#tierUpCalls === undefined ? {} : { afterCalls: this.#tierUpCalls }),
        compileHere: () => compileModule(module, { ...this.#codeOptions(explicit), target: TARGET }),
        ...(finished === undefined ? {} : { finished }),
      })
      : undefined;
    return new Module(space, compiled, statistics, this, fallback, tierUp);
  }

  /**
   * The artifact of a module for another machine, for `load` of an engine with the same options there: the bytes that `compile` and `serialize` give
   * on a `machine` with just the features named. With `bounds: "auto"` it is code for guard pages. Nothing is placed in memory here.
   *
   * Rejects with what `compile` throws, and a TypeError for a machine that waft makes no code for.
   */
  async compileFor(machine: Machine, source: Uint8Array | ArrayBuffer | string): Promise<Uint8Array<ArrayBuffer>> {
    requireRecord(machine, "A machine");
    requireKnownNames("field of a machine", machine, { os: true, arch: true, cpu: true });
    const { os, arch, cpu = [] } = machine;
    if (os !== "linux" || !Object.hasOwn(CPU_FEATURES, arch)) {
      throw new TypeError(`There is no code for the machine ${os}/${arch}: linux/x64 and linux/arm64 are known`);
    }
    const unknown = cpu.find((name) => !CPU_FEATURES[arch].includes(name));
    if (unknown !== undefined) {
      throw new TypeError(`${arch} has no feature "${unknown}", but: ${CPU_FEATURES[arch].join(", ")}`);
    }
    const target = await backendFor(arch);
    const places = new TextPlaces();
    return withPlaces(places, () => {
      const features = new Set(cpu);
      const code = compileModule(this.#parse(source, places), {
        target,
        features: this.features,
        optimizations: this.optimizations,
        explicitBounds: this.bounds === "explicit",
        cpu: features,
        interruptible: this.interruptible,
        fuel: this.fuel,
        deterministic: this.deterministic,
        verify: this.#verify,
      });
      const name = machineName({ os, arch });
      return serializeCode({ name, cpu: features, process: processCodeOf(target, os) }, this, code.valid, code);
    });
  }

  /**
   * The module of an artifact, which `Module.serialize` returned for an engine with the same options, in this process or another: nothing is
   * compiled. The bytes must not change while the module is in use.
   *
   * An artifact is machine code. One that is damaged, or made by another version, for another machine or with other options, is refused
   * with an ArtifactError; beyond that its source is trusted, as that of a program that you run.
   */
  load(artifact: Uint8Array | ArrayBuffer): Module {
    const bytes = artifact instanceof ArrayBuffer ? new Uint8Array(artifact) : artifact;
    return this.#load(loadModule(realmStore, bytes, this, (valid) => wantsExplicit(this, valid)));
  }

  /**
   * The module of an artifact in a file, as `load` makes it of bytes, but in less time: big code is not copied, the file's pages are what runs. So
   * the file must not be changed while the module is in use, as that of a library; one that is removed, or replaced by renaming another, stays as it was.
   *
   * Throws what `load` throws, and what `node:fs` throws for a file that cannot be read.
   */
  loadFile(path: string | URL): Module {
    const name = path instanceof URL ? nodeModule("node:url").fileURLToPath(path) : path;
    return this.#load(loadModuleFile(realmStore, name, this, (valid) => wantsExplicit(this, valid)));
  }

  #load({ compiled, statistics }: LoadedModule): Module {
    if (this.#perfMap) addToPerfMap(compiled);
    if (this.bounds === "guard" && compiled.explicitBounds) {
      throw new ArtifactError("The artifact's code checks bounds, this engine's option bounds is guard");
    }
    return new Module(realmStore(), compiled, statistics, this);
  }

  /** The options of code that the optimizing compiler makes. */
  #codeOptions(explicitBounds: boolean): Omit<CompileOptions, "target" | "share" | "tier"> {
    return {
      features: this.features,
      optimizations: this.optimizations,
      explicitBounds,
      cpu: cpuFeatures(currentHost()),
      interruptible: this.interruptible,
      fuel: this.fuel,
      deterministic: this.deterministic,
      verify: this.#verify,
    };
  }

  #compileFor(
    space: Store,
    module: WasmModule,
    places: TextPlaces,
    explicitBounds: boolean,
    tier: Tiering = this.tier,
  ): { compiled: CompiledModule; statistics: Readonly<Record<string, number>>; replaceable: Uint8Array | undefined } {
    const { thread } = space;
    const code = compileModule(module, {
      ...this.#codeOptions(explicitBounds),
      target: TARGET,
      tier: tier === "optimizing" ? "optimizing" : "baseline",
      polls: tier === "auto",
      share: bodySharing(this.#threads),
    });
    const image = placeImage(thread.arena, code.bytes, code.tables);
    const compiled = new CompiledModule(thread, code.valid, {
      ...code,
      image,
      placeOf: (offset) => places.placeOf(offset),
    });
    space.addModule(compiled);
    if (this.#perfMap) addToPerfMap(compiled);
    return { compiled, statistics: code.statistics, replaceable: code.replaceable };
  }

  /** Checks a module without compiling it; throws as `compile` does, but accepts features that this build cannot compile. */
  validate(source: Uint8Array | ArrayBuffer | string): void {
    const places = new TextPlaces();
    withPlaces(places, () => this.validateParsed(this.#parse(source, places)));
  }

  /**
   * Checks what `parse` returned.
   *
   * @internal
   */
  validateParsed(module: WasmModule): void {
    validateModule(module, this.features);
  }

  /**
   * Reads a module from its binary form (`\0asm…`) or its text; `bytes` of the result is its binary form. Throws MalformedError.
   *
   * @internal
   */
  parse(source: Uint8Array | ArrayBuffer | string): WasmModule {
    return this.#parse(source, new TextPlaces());
  }

  #parse(source: Uint8Array | ArrayBuffer | string, places: TextPlaces): WasmModule {
    const given = sourceOf(source);
    const isBinary = typeof given !== "string" && looksBinary(given);
    return isBinary ? decodeModule(given) : parseModule(given, { places });
  }
}

/** Runs `action`; an error in the binary form of a text gets its place in the text. */
function withPlaces<T>(places: TextPlaces, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof WaftError && error.place.offset !== undefined && error.place.line === undefined) {
      error.place = { ...error.place, ...places.placeOf(error.place.offset) };
    }
    throw error;
  }
}

/** Makes what host programs import into modules. */
export interface HostObjects {
  /** A memory of `initial` to `maximum` pages of 64 KiB. */
  memory(initial: number, maximum?: number, bounds?: "guard" | "explicit" | "auto"): Memory;
  /** A memory that several Workers can use; it needs a maximum. */
  sharedMemory(initial: number, maximum: number, bounds?: "guard" | "explicit" | "auto"): Memory;
  /** A table of references of `type` ("funcref" or "externref"). */
  table(type: "funcref" | "externref", initial: number, maximum?: number): ExternTable;
  /** A global of a number or reference type. */
  global(type: string, mutable: boolean, value: unknown): ExternGlobal;
  /** A tag for exceptions with a payload of the given types, to be imported, or thrown with by `new WasmException(tag, values)`. */
  tag(...parameters: string[]): Tag;
}

function isGuarded(bounds: "guard" | "explicit" | "auto"): boolean {
  if (!["guard", "explicit", "auto"].includes(bounds)) {
    throw new TypeError(`The bounds of a memory are guard, explicit or auto, not ${inWords(bounds)}`);
  }
  return bounds === "guard" || (bounds === "auto" && hasGuardRoom(realmStore().thread.host));
}

/**
 * Memories, tables, globals and tags of the host, for modules to import.
 *
 * @example
 * ```ts
 * import { host, NewEngine } from "@waft/engine";
 *
 * const memory = host.memory(1, 10);
 * new Uint8Array(memory.buffer)[5] = 42;
 * const instance = NewEngine().compile(`(module (import "m" "m" (memory 1))
 *   (func (export "load") (param i32) (result i32) (i32.load8_u (local.get 0))))`).instantiate({}, { m: { m: memory } });
 * if (instance.call({}, "load", 5) !== 42) throw new Error("it is another memory");
 * ```
 */
export const host: HostObjects = {
  memory: (initial, maximum, bounds = "auto") =>
    ExternTable.hostMemory(realmStore(), initial, maximum, isGuarded(bounds)),
  sharedMemory: (initial, maximum, bounds = "auto") =>
    ExternTable.hostMemory(realmStore(), initial, maximum, isGuarded(bounds), true),
  table: (type, initial, maximum) => ExternTable.make(realmStore(), type, initial, maximum),
  global: (type, mutable, value) => ExternGlobal.make(realmStore(), type, mutable, value),
  tag: (...parameters) => {
    for (const name of parameters) {
      if (!/^\w+$/.test(name)) throw new TypeError(`"${name}" is not a value type`);
    }
    return NewEngine().compile(`(module (tag (export "") (param ${parameters.join(" ")})))`).instantiate()
      .exports[""] as Tag;
  },
};

export {
  ArtifactError,
  type Context,
  type EngineLimits,
  type EngineOptions,
  type ExportDescriptor,
  type ExportValue,
  EXTERN,
  type ImportDescriptor,
  Instance,
  InstancePool,
  Memory,
  Module,
  promising,
  realmStore,
  type SharedMemoryToken,
  type SharedModuleToken,
  SUSPENDING,
  Tag,
  WaftError,
  WasmException,
};
