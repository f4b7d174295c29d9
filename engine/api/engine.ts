/**
 * The public API of the engine: {@linkcode NewEngine} → `compile` → `instantiate` → `call`. A module is compiled once
 * and can be instantiated any number of times; instances are isolated from each other.
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
import { now } from "../host/clocks.ts";
import { type OptimizingCompiler, TierUp } from "../tiers/tier_up.ts";
import type { Tiering } from "./settings.ts";
import { backendFor, hostBackend } from "../compile/backends.ts";
import { fromBase64 } from "../base/base64.ts";
import { decodeModule } from "../binary/decode.ts";
import { bytesIn, inWords, requireKnownNames, requireRecord, requireTexts } from "../base/arguments.ts";
import { rememberCode, type ReusableCode, reusableCode } from "./code_reuse.ts";
import { kernelForm, setNativeMaker } from "../baseline/kernel_forms.ts";
import { LazyBodies } from "../baseline/lazy_bodies.ts";
import { type CompilationReport, FunctionNotes, type FunctionReport } from "./compilation_report.ts";
import { cacheKey, CodeCache } from "../cache/code_cache.ts";
import {
  compileBatch,
  type CompiledCode,
  compileLoopEntry,
  compileModule,
  type CompileOptions,
  optimizingForm,
  prepareBodyCompiler,
  validateWhole,
} from "../compile/compile.ts";
import { bodySharing, prepareHelpers, sendJob, threadCount } from "../parallel/helper_threads.ts";
import { callSoon, workerCount } from "../host/workers.ts";
import { WaftError } from "../base/errors.ts";
import type { FeatureSet } from "../settings/features.ts";
import { COLLECTOR_MODULE } from "../gc/generated_collector.ts";
import type { HeapStatistics } from "../gc/heap.ts";
import { CPU_FEATURES, cpuFeatures } from "../host/cpu.ts";
import { currentHost } from "../host/current.ts";
import type { Host } from "../host/host.ts";
import { formatAs } from "../host/inspect.ts";
import { nodeModule } from "../host/process.ts";
import { NativeJobs } from "../tiers/native_job.ts";
import { nativeKernels } from "../tiers/native_kernel.ts";
import { ArtifactError } from "../artifact/format.ts";
import type { CodeArena } from "../host/memory/code_arena.ts";
import { type CodeImage, ImagePlace, placeImage } from "../link/image.ts";
import {
  Delivery,
  type ExportDescriptor,
  type ExportValue,
  type ImportDescriptor,
  Instance,
  Module,
  promising,
  setSharedModuleCompiler,
  startCall,
  Suspension,
  underLimits,
} from "./module.ts";
import { type ChosenSettings, chosenSettings, codeSettings, type StackRule } from "../settings/code_settings.ts";
import type { NanRule } from "../settings/nans.ts";
import type { OptimizationSet } from "../settings/optimizations.ts";
import { Budget } from "../runtime/suspension/budget.ts";
import { ProcessorAccount } from "../runtime/suspension/processor_account.ts";
import { realmStore, setStoreCompiler } from "../runtime/realm_store.ts";
import { CompiledModule } from "../runtime/code/compiled_module.ts";
import { processCodeOf } from "../runtime/thread/process_entry.ts";
import { Tag, WasmException } from "../runtime/exceptions/exception.ts";
import { EXTERN, ExternGlobal, ExternTable, makeTag } from "../runtime/instance/externals.ts";
import { SUSPENDING } from "../runtime/boundary/marshal.ts";
import { InstancePool } from "../runtime/instance/instance_pool.ts";
import { Memory } from "../runtime/memory/memory.ts";
import { STRING_MODULE } from "../runtime/strings/generated_strings.ts";
import { hasGuardRoom } from "../runtime/memory/memory_range.ts";
import type { BaselineSharing, SharedModuleToken } from "../artifact/shared_module.ts";
import type { ProfileOptions, Profiler } from "../profile/profiler.ts";
import { addToPerfMap } from "../runtime/code/perf_map.ts";
import { machineName } from "../artifact/description.ts";
import { serializeCode, serializeModule } from "../artifact/write_module.ts";
import { type LoadedModule, loadModule, loadModuleFile } from "../artifact/read_module.ts";
import type { SharedMemoryToken } from "../runtime/memory/shared_pages.ts";
import type { Store } from "../runtime/instance/store.ts";
import {
  type Context,
  type EngineLimits,
  type EngineOptions,
  requireLoading,
  type Settings,
  settingsOf,
} from "./settings.ts";
import {
  codeFacts,
  COLLECTOR_OPTIONS,
  collectorKey,
  hasObjects,
  loadCached,
  looksBinary,
  sourceOf,
  wantsExplicit,
  wasMarked,
} from "../artifact/find_module.ts";
import { compileProven } from "../compile/compile_proven.ts";
import { parseModule } from "../text/text_format.ts";
import { TextPlaces } from "../text/text_places.ts";
import { pricesOf } from "../wasm/late_fuel_groups.ts";
import type { Module as WasmModule } from "../wasm/module.ts";
import { isGuardable } from "../wasm/types.ts";

/** A target machine for cross-compilation. */
export interface Machine {
  /** The operating system; on Windows, the architecture is x64. */
  os: "linux" | "darwin" | "windows";
  /** The processor architecture. */
  arch: "x64" | "arm64";
  /**
   * Optional instruction sets of the processor, by the names in the manuals, such as `avx2` or `lse`. The artifact is
   * refused on processors that lack one of them. Default: none, so that the code runs on every processor of the
   * architecture.
   */
  cpu?: readonly string[];
}

/** The machines that `compileFor` knows. */
const TARGET_MACHINES: readonly string[] = ["linux/x64", "linux/arm64", "darwin/x64", "darwin/arm64", "windows/x64"];

/**
 * The largest program, in bytes, that `compile` optimizes at once when it finds that it has run before: a module, or
 * the modules of a component together. Larger ones would delay their second run by half a second and more.
 */
const MAX_BYTES_AT_ONCE = 1 << 16;

/** An entry of the cache for bytes that contain several modules. */
interface CacheSlot {
  read(): Uint8Array | undefined;
  /** Returns whether the content was stored. */
  write(content: Uint8Array): boolean;
  remove(): void;
}

/** The optimization of a module for the cache. */
interface TierUpPlan {
  /** The module has run before: a helper thread compiles it from its first instance on. */
  readonly startsAtOnce: boolean;
  readonly finished: NonNullable<OptimizingCompiler["finished"]>;
}

/** True once a module of tier `auto` was compiled: programs of the other tiers start no thread. */
let mayStartThreads = false;

/** How soon another thread can compile, if native threads are in this state. */
function readiness(native: NativeJobs["state"]): ReturnType<OptimizingCompiler["readiness"]> {
  if (native === "loaded") return native;
  if (workerCount() > 0) return "worker";
  return native === "possible" ? "native" : "absent";
}

/** Compiles code with `compile`, possibly to its place, and makes it executable. */
function compileInto(
  arena: CodeArena,
  compile: (place: ImagePlace) => CompiledCode,
): { code: CompiledCode; image: CodeImage } {
  const place = new ImagePlace(arena);
  try {
    const code = compile(place);
    return { code, image: place.place(code) };
  } finally {
    place.release();
  }
}

/**
 * The lazy compilation of the bodies of `code`, if it has only their entries. Frees `image` if that is not possible.
 */
function lazyBodies(
  { arena, unwindTable }: Store["thread"],
  { valid, lazyPlan }: CompiledCode,
  image: CodeImage,
): LazyBodies | undefined {
  if (lazyPlan === undefined) return undefined;
  try {
    return new LazyBodies(valid, lazyPlan, image, () => unwindTable.forget(image.base));
  } catch (error) {
    arena.release(image.base, image.capacity);
    throw error;
  }
}

/** The address of a function in optimized code, which is made now unless it exists. */
function optimizedFunction(tierUp: TierUp, index: number): number {
  const { base, tables } = tierUp.complete().image;
  return base + tables.functionStart[index];
}

/** Compiles an intrinsic module, which has unchecked access to the address space; does not place its code. */
function intrinsicCode(host: Host, binary: string, tier: "baseline" | "optimizing"): CompiledCode {
  return compileModule(decodeModule(fromBase64(binary)), { ...intrinsicOptions(host), target: hostBackend(), tier });
}

function intrinsicOptions(host: Host): OptimizingCompiler["options"] {
  const { features, optimizations } = COLLECTOR_OPTIONS;
  return { features, optimizations, settings: codeSettings(), unchecked: true, cpu: cpuFeatures(host) };
}

/**
 * Compiles an intrinsic module for `store`: with the optimizing compiler if this thread has used it, otherwise with the
 * baseline tier first.
 */
function compileIntrinsic(store: Store, binary: string): CompiledModule {
  const { thread } = store;
  const code = intrinsicCode(
    thread.host,
    binary,
    optimizingForm(hostBackend().name) === undefined ? "baseline" : "optimizing",
  );
  const compiled = new CompiledModule(thread, code.valid, {
    ...code,
    image: placeImage(thread.arena, code.bytes, code.tables),
  });
  compiled.internal = true;
  store.addModule(compiled);
  if (code.replaceable !== undefined) {
    new TierUp(store, compiled, code.replaceable, {
      target: hostBackend(),
      options: intrinsicOptions(thread.host),
      readiness: () => readiness("absent"),
      callSoon,
      send: (message, isUnderWay) => mayStartThreads && sendJob(message, isUnderWay),
      compileHere: () => intrinsicCode(thread.host, binary, "optimizing"),
    }).begin();
  }
  return compiled;
}

/** Stores the collector in the cache with modules that need it, so that they can run without loading the compiler. */
function cacheCollector(cache: CodeCache): void {
  const key = collectorKey();
  if (cache.find(key) !== undefined) return;
  const { host, code: process } = realmStore().thread;
  const machine = { name: machineName(host), cpu: cpuFeatures(host), process };
  const code = intrinsicCode(host, COLLECTOR_MODULE, "optimizing");
  cache.write(key, serializeCode(machine, COLLECTOR_OPTIONS, code.valid, { ...code, statistics: {} }));
}

setStoreCompiler({
  processCode: () => processCodeOf(hostBackend(), currentHost().os),
  compileCollector: (store) => compileIntrinsic(store, COLLECTOR_MODULE),
  compileStrings: (store) => compileIntrinsic(store, STRING_MODULE),
});

/** Moves a module of another realm up, with the job of that realm. */
function sharedTierUp(
  space: Store,
  compiled: CompiledModule,
  replaceable: Uint8Array,
  { job, afterCalls }: BaselineSharing,
  isBound: boolean,
): TierUp {
  const options = { ...job.options, cpu: new Set(job.cpu) };
  return new TierUp(space, compiled, replaceable, {
    target: hostBackend(),
    options,
    shared: job,
    isBound,
    readiness: () => readiness("absent"),
    callSoon,
    send: sendJob,
    ...(afterCalls === undefined ? {} : { afterCalls }),
    compileHere: () =>
      compileModule(decodeModule(new Uint8Array(job.binary).slice()), {
        ...options,
        target: hostBackend(),
        hasValidBodies: true,
      }),
  });
}

setSharedModuleCompiler({
  tierUpOf: (space, compiled, sharing) => sharedTierUp(space, compiled, sharing.replaceable!, sharing, false),
  compile: (space, binary, sharing) => {
    const { thread } = space;
    const { options, cpu } = sharing.job;
    mayStartThreads = true;
    const { code, image } = compileInto(thread.arena, ({ open, openGrowing }) =>
      compileModule(decodeModule(binary), {
        ...options,
        cpu: new Set(cpu),
        target: hostBackend(),
        tier: "baseline",
        polls: true,
        storage: open,
        growing: openGrowing,
        lazyFrom: 0,
        isValidated: true,
      }));
    const { replaceable } = code;
    const bodies = lazyBodies(thread, code, image);
    const compiled: CompiledModule = new CompiledModule(
      thread,
      { ...code.valid, hasUnknownFeatures: true }, // those of the bodies have not been looked for
      { ...code, image },
    );
    space.addModule(compiled);
    const tierUp = replaceable && sharedTierUp(space, compiled, replaceable, sharing, true);
    if (bodies !== undefined) {
      compiled.lazy = { compile: (index) => bodies.compile(index) ?? optimizedFunction(tierUp!, index) };
    }
    return { compiled, tierUp };
  },
});

setNativeMaker(nativeKernels(() => realmStore().thread));

/**
 * Collects garbage now: frees unreachable structs, arrays, host references and exceptions of this JavaScript realm, and
 * returns memory to the system. Safe to call from a host function.
 */
export function collectGarbage(): void {
  realmStore().sweeps.collect();
}

/** Statistics of the garbage collector in this JavaScript realm: collections, sizes and pause times. */
export function gcStatistics(): HeapStatistics {
  return realmStore().heap.statistics;
}

/**
 * Creates an engine, as `new Engine(options)` does. Throws TypeError or RangeError for invalid options.
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
 * if (instance.call({}, "add", 20, 22) !== 42) throw new Error("wrong result");
 * ```
 */
export function NewEngine(options: EngineOptions = {}): Engine {
  return new Engine(options);
}

/**
 * An engine: compiles modules with one set of options.
 *
 * @example
 * ```ts
 * import { Engine } from "@waft/engine";
 *
 * const engine = new Engine({ interruptible: true, limits: { maxMemoryPages: 256 } });
 * const module = engine.compile(`(module (func (export "answer") (result i32) (i32.const 42)))`);
 * const answer = module.instantiate().call({ deadline: 100 }, "answer");
 * if (answer !== 42) throw new Error("wrong result");
 * ```
 */
export class Engine implements Settings {
  /** The WebAssembly features that modules may use. */
  readonly features: FeatureSet;
  /** The enabled optimizations. */
  readonly optimizations: OptimizationSet;
  /** The option `bounds`. */
  readonly bounds: "guard" | "explicit" | "auto";
  /** The option `tier`. */
  readonly tier: Tiering;
  /** The option `interruptible`. */
  readonly interruptible: boolean;
  /** The option `fuel`. */
  readonly fuel: boolean;
  /** The prices of instructions that differ from the defaults, as text: `call=10,i32.div_s=8`. */
  readonly fuelPrices: string;
  /** The option `deterministic`. */
  readonly deterministic: boolean;
  /** The option `nans`: `processor` is the name of this machine's. */
  readonly nans: NanRule;
  /** The option `stack`. */
  readonly stack: StackRule;
  /** The limits of instances, defaults included. */
  readonly limits: Required<EngineLimits>;
  readonly #threads: number;
  /** The bytes of the program that the module being compiled is a part of; 0 for a module of its own. */
  #programBytes = 0;
  readonly #verify: boolean;
  readonly #provesCode: boolean;
  readonly #tierUpCalls: number | undefined;
  readonly #tierUpIterations: number | undefined;
  readonly #tierUpBatches: boolean;
  readonly #lazyFrom: number | undefined;
  readonly #cache: CodeCache | undefined;
  readonly #explain: EngineOptions["explain"];
  readonly #progress: EngineOptions["progress"];
  readonly #perfMap: boolean;
  readonly #chosen: ChosenSettings;
  /** Everything that decides code besides the bytes and the bounds. */
  readonly #codeKey: string;

  /**
   * Creates an engine. Throws TypeError for unknown or conflicting options, RangeError for limits that are not
   * non-negative integers.
   */
  constructor(options: EngineOptions = {}) {
    const settings = settingsOf(options);
    this.features = settings.features;
    this.optimizations = settings.optimizations;
    this.bounds = settings.bounds;
    this.tier = settings.tier;
    this.interruptible = settings.interruptible;
    this.fuel = settings.fuel;
    this.fuelPrices = settings.fuelPrices;
    pricesOf(this.fuelPrices); // refuses unknown names
    this.deterministic = settings.deterministic;
    this.nans = settings.nans;
    this.stack = settings.stack;
    this.limits = settings.limits;
    this.#threads = threadCount(options.parallel);
    this.#verify = options.verify === true;
    this.#provesCode = options.verify === "code";
    this.#tierUpCalls = options.tierUpCalls;
    this.#lazyFrom = options.lazyFrom;
    this.#tierUpIterations = hostBackend().loopEntry === undefined ? undefined : options.tierUpIterations;
    this.#tierUpBatches = options.tierUpBatches ?? false;
    this.#perfMap = options.perfMap ?? false;
    this.#explain = options.explain;
    this.#progress = options.progress;
    // Code in the cache was proven by the process that wrote it, if at all.
    this.#cache = options.cache && !this.#provesCode ? new CodeCache(options.cache) : undefined;
    this.#chosen = chosenSettings(settings);
    this.#codeKey = JSON.stringify([settings.features, settings.optimizations, settings.tier, this.#chosen]);
  }

  /**
   * True while at least half of the instances that `limits.maxInstances` allows can still be made: instances that only
   * save time may be made then.
   *
   * @internal
   */
  get hasSpareInstances(): boolean {
    return realmStore().instances.open < this.limits.maxInstances / 2;
  }

  /**
   * Validates and compiles a module, given in binary form or as text.
   *
   * Throws MalformedError, InvalidError or UnsupportedError with the place in the input, RangeError for modules beyond
   * the implementation limits, and TypeError if `source` is neither bytes nor text.
   */
  compile(source: Uint8Array | ArrayBuffer | string): Module {
    const given = privateSource(source);
    if (this.#cache !== undefined && typeof given !== "string" && looksBinary(given)) {
      return this.#compileCached(given, this.#cache);
    }
    if (this.tier === "optimizing") prepareHelpers(this.#threads, given.length);
    const places = new TextPlaces();
    const isText = typeof given === "string" || !looksBinary(given);
    return withPlaces(places, () => this.compileParsed(parsePrivate(given, places), isText ? places : undefined));
  }

  /**
   * Compiles a module that is one of several, of `programBytes` bytes together.
   *
   * @internal
   */
  compilePart(bytes: Uint8Array, programBytes: number): Module {
    this.#programBytes = programBytes;
    try {
      return this.compile(bytes);
    } finally {
      this.#programBytes = 0;
    }
  }

  /**
   * Compiles a binary form, or loads its artifact from the cache. Text is not cached, because artifacts do not record
   * its lines.
   */
  #compileCached(bytes: Uint8Array, cache: CodeCache): Module {
    // Another engine may have another cache, which has to get the code, too.
    const settings = `cached by ${this.#number}`;
    const known = this.#ownsCode ? undefined : reusableCode(bytes, settings);
    if (known !== undefined && known.compiled.settings.explicitBounds === wantsExplicit(this, known.compiled.valid)) {
      return this.#moduleOf(known, bytes);
    }
    const key = cacheKey(bytes, codeFacts(this));
    const start = now();
    const stored = loadCached(cache, key, this);
    if (stored !== undefined) {
      if (!this.#ownsCode) rememberCode(bytes, settings, { ...stored, tierUp: undefined });
      return this.#fromCache(stored, bytes, now() - start);
    }
    const hasRun = this.tier === "auto" && wasMarked(cache, key);
    const isSmall = bytes.length <= MAX_BYTES_AT_ONCE;
    const isOptimized = hasRun && isSmall && this.#programBytes <= MAX_BYTES_AT_ONCE;
    // The small modules of a large program are optimized as in their first run: once they have run for long enough.
    const startsAtOnce = hasRun && (isOptimized || !isSmall);
    const tier = isOptimized ? "optimizing" : this.tier;
    if (tier === "optimizing") prepareHelpers(this.#threads, bytes.length);
    const parsed = decodeModule(bytes);
    const write = (artifact: Uint8Array) => cache.write(key, artifact);
    const module = this.compileParsed(
      parsed,
      undefined,
      { startsAtOnce, finished: (compiled, statistics) => write(serializeModule(compiled, this, statistics)) },
      tier,
      (code) => this.#ownsCode || rememberCode(bytes, settings, code),
    );
    if (!module.isTieringUp) write(module.serialize());
    if (hasObjects(parsed)) cacheCollector(cache);
    return module;
  }

  /** The module of an artifact from the cache; its `bytes` are compiled if there is no room for guard pages. */
  #fromCache({ compiled, statistics }: LoadedModule, bytes: Uint8Array, ms: number): Module {
    const parts = { tier: "optimizing", kernel: undefined, origin: "cache", ms } as const;
    this.#explain?.(new FunctionNotes().report(compiled, parts));
    if (this.#perfMap) addToPerfMap(compiled);
    return this.#moduleOf({ compiled, statistics, tierUp: undefined }, bytes);
  }

  /** A module with existing code; its `bytes` are compiled if there is no room for guard pages. */
  #moduleOf({ compiled, statistics, tierUp }: ReusableCode, bytes: Uint8Array): Module {
    const space = realmStore();
    const fallback = () => this.#compileFor(space, decodeModule(bytes), undefined, true).compiled;
    const hasMemory = compiled.valid.memories.some(isGuardable);
    const wantsFallback = this.bounds === "auto" && !compiled.settings.explicitBounds && hasMemory;
    return new Module(space, compiled, statistics, this, wantsFallback ? fallback : undefined, tierUp);
  }

  /**
   * The entry of the engine's cache for `bytes` that contain several modules; undefined if the engine has no cache.
   *
   * @internal
   */
  cacheEntry(bytes: Uint8Array): CacheSlot | undefined {
    const cache = this.#cache;
    if (cache === undefined) return undefined;
    const key = cacheKey(bytes, codeFacts(this));
    return {
      read: () => cache.read(key),
      write: (content) => cache.write(key, content),
      remove: () => cache.remove(key),
    };
  }

  /**
   * Loads an artifact of the module `bytes` that is a part of an entry of the cache.
   *
   * @internal
   */
  loadCachedPart(artifact: Uint8Array, bytes: Uint8Array): Module {
    const start = now();
    const loaded = loadModule(realmStore, artifact, this, (valid) => wantsExplicit(this, valid));
    return this.#fromCache(loaded, bytes, now() - start);
  }

  /**
   * Compiles a module returned by `parse`. `places` maps offsets to the text that it came from, if any.
   *
   * @internal
   */
  compileParsed(
    module: WasmModule,
    places?: TextPlaces,
    plan?: TierUpPlan,
    tier: Tiering = this.tier,
    remember: (code: ReusableCode) => void = () => {},
  ): Module {
    const space = realmStore();
    const explicit = wantsExplicit(this, module);
    const code = this.#compileFor(space, module, places, explicit, tier, plan);
    remember(code);
    const { compiled, statistics, tierUp } = code;
    const hasMemory = module.memories.some(isGuardable);
    const fallback = this.bounds === "auto" && !explicit && hasMemory
      ? () => this.#compileFor(space, module, places, true, "optimizing").compiled
      : undefined;
    return new Module(space, compiled, statistics, this, fallback, tierUp);
  }

  /**
   * Cross-compiles a module. Returns an artifact for `load` by an engine with the same options on the target machine:
   * the bytes that `compile` and `serialize` return on a `machine` with exactly the named instruction sets. With
   * `bounds: "auto"` the code uses guard pages. Nothing is placed in memory here.
   *
   * Rejects with the errors of `compile`, and with TypeError for an unsupported machine, or arm64 with
   * `verify: "code"`.
   */
  async compileFor(machine: Machine, source: Uint8Array | ArrayBuffer | string): Promise<Uint8Array<ArrayBuffer>> {
    requireRecord(machine, "A machine");
    requireKnownNames("machine field", machine, { os: true, arch: true, cpu: true });
    const { os, arch, cpu = [] } = machine;
    if (!TARGET_MACHINES.includes(`${os}/${arch}`)) {
      throw new TypeError(`Unsupported machine ${os}/${arch}: expected one of ${TARGET_MACHINES.join(", ")}`);
    }
    requireTexts(cpu, "The instruction sets of a machine");
    const unknown = cpu.find((name) => !CPU_FEATURES[arch].includes(name));
    if (unknown !== undefined) {
      throw new TypeError(
        `Unknown instruction set "${unknown}" of ${arch}: expected one of ${CPU_FEATURES[arch].join(", ")}`,
      );
    }
    const target = backendFor(arch);
    await prepareBodyCompiler(arch);
    const places = new TextPlaces();
    return withPlaces(places, () => {
      const features = new Set(cpu);
      const code = this.#compileProven(this.#parse(source, places), {
        progress: this.#progress,
        target,
        features: this.features,
        optimizations: this.optimizations,
        settings: codeSettings({ ...this.#chosen, explicitBounds: this.bounds === "explicit" }),
        cpu: features,
        verify: this.#verify,
      });
      const name = machineName({ os, arch });
      return serializeCode({ name, cpu: features, process: processCodeOf(target, os) }, this, code.valid, code);
    });
  }

  /**
   * Loads an artifact that `Module.serialize` returned for an engine with the same options, in this or another process.
   * Nothing is compiled. The bytes must not change while the module is in use.
   *
   * An artifact is machine code. Throws ArtifactError if it is damaged, or made by another version, for another machine
   * or with other options. These checks do not authenticate it: load only artifacts from sources whose programs you
   * would run.
   */
  load(artifact: Uint8Array | ArrayBuffer): Module {
    requireLoading({ verify: this.#provesCode ? "code" : false });
    const bytes = bytesIn(artifact, "An artifact");
    return this.#load(loadModule(realmStore, bytes, this, (valid) => wantsExplicit(this, valid)));
  }

  /**
   * Loads the artifact in a file, as `load` does for bytes, but faster: large code is not copied, because the pages of
   * the file are mapped and executed in place. The file must not be modified while the module is in use. It may be
   * removed, or replaced by renaming another file over it.
   *
   * Throws the errors of `load`, and those of `node:fs` if the file cannot be read.
   */
  loadFile(path: string | URL): Module {
    requireLoading({ verify: this.#provesCode ? "code" : false });
    const name = path instanceof URL ? nodeModule("node:url").fileURLToPath(path) : path;
    return this.#load(loadModuleFile(realmStore, name, this, (valid) => wantsExplicit(this, valid)));
  }

  #load({ compiled, statistics }: LoadedModule): Module {
    if (this.#perfMap) addToPerfMap(compiled);
    if (this.bounds === "guard" && compiled.settings.explicitBounds) {
      throw new ArtifactError(
        "The artifact's code has explicit bounds checks, but the engine's option bounds is guard",
      );
    }
    return new Module(realmStore(), compiled, statistics, this);
  }

  /** The options for the optimizing compiler. */
  #codeOptions(explicitBounds: boolean): Omit<CompileOptions, "target" | "share" | "tier" | "note"> {
    return {
      features: this.features,
      optimizations: this.optimizations,
      settings: codeSettings({ ...this.#chosen, explicitBounds }),
      cpu: cpuFeatures(currentHost()),
      verify: this.#verify,
    };
  }

  static #engines = 0;
  readonly #number = Engine.#engines++;

  /** Whether the modules of this engine do not share code with others of the same bytes. */
  get #ownsCode(): boolean {
    return this.#verify || this.#provesCode || this.#tierUpCalls !== undefined ||
      this.#tierUpIterations !== undefined ||
      this.#lazyFrom !== undefined || this.#explain !== undefined;
  }

  /** Compiles a module, or takes the code of equal bytes: not for text, whose lines are the module's own. */
  #compileFor(
    space: Store,
    module: WasmModule,
    places: TextPlaces | undefined,
    explicitBounds: boolean,
    tier: Tiering = this.tier,
    plan?: TierUpPlan,
  ): ReusableCode {
    if (places !== undefined || plan !== undefined || this.#ownsCode) {
      return this.#compileAnew(space, module, places, explicitBounds, tier, plan);
    }
    const settings = `${explicitBounds} ${tier} ${this.#codeKey}`;
    const known = reusableCode(module.bytes, settings);
    if (known !== undefined) return known;
    const code = this.#compileAnew(space, module, places, explicitBounds, tier);
    rememberCode(module.bytes, settings, code);
    return code;
  }

  /** Compiles a module; with the option `verify: "code"`, throws UnprovenCodeError unless its code is proven. */
  #compileProven(module: WasmModule, options: CompileOptions): CompiledCode {
    return this.#provesCode ? compileProven(module, options) : compileModule(module, options);
  }

  #compileAnew(
    space: Store,
    module: WasmModule,
    places: TextPlaces | undefined,
    explicitBounds: boolean,
    tier: Tiering,
    plan?: TierUpPlan,
  ): ReusableCode {
    const { thread } = space;
    const notes = this.#explain && new FunctionNotes();
    const start = now();
    // Programs with threads send their module to Workers, which must not wait until it is optimized.
    const isShareable = hasSharedMemory(module);
    // Code of the other tiers may be serialized or proven, and must not contain addresses.
    const isBound = tier === "auto" && !this.#provesCode && !isShareable;
    const { code, image } = compileInto(thread.arena, ({ open, openGrowing }) =>
      this.#compileProven(module, {
        ...this.#codeOptions(explicitBounds),
        target: hostBackend(),
        note: notes?.note,
        progress: this.#progress,
        tier: tier === "optimizing" ? "optimizing" : "baseline",
        polls: tier === "auto",
        share: bodySharing(this.#threads),
        ...(isBound ? { storage: open } : {}),
        ...(isBound && !this.#perfMap ? { growing: openGrowing, lazyFrom: this.#lazyFrom } : {}),
      }));
    const bodies = lazyBodies(thread, code, image);
    const compiled: CompiledModule = new CompiledModule(thread, code.valid, {
      ...code,
      image,
      placeOf: (offset) => places?.placeOf(offset),
    });
    space.addModule(compiled);
    if (this.#perfMap) addToPerfMap(compiled);
    const { replaceable, statistics } = code;
    if (notes !== undefined) {
      const kernel = replaceable === undefined ? undefined : kernelForm();
      const tier = kernel === undefined ? "optimizing" : "baseline";
      this.#explain?.(notes.report(compiled, { tier, kernel, origin: "compile", ms: now() - start }));
    }
    const tierUp = tier === "auto" && replaceable !== undefined
      ? this.#tierUp(space, compiled, replaceable, module, explicitBounds, isShareable, plan)
      : undefined;
    if (bodies !== undefined) {
      compiled.lazy = { compile: (index) => bodies.compile(index) ?? optimizedFunction(tierUp!, index) };
    }
    return { compiled, statistics, tierUp };
  }

  /** Prepares optimized code for a module with baseline code. */
  #tierUp(
    space: Store,
    compiled: CompiledModule,
    replaceable: Uint8Array,
    module: WasmModule,
    explicitBounds: boolean,
    shared: boolean,
    plan: TierUpPlan | undefined,
  ): TierUp {
    mayStartThreads = true;
    const options = this.#codeOptions(explicitBounds);
    const notes = new FunctionNotes();
    const by = { tier: "optimizing", kernel: undefined } as const;
    const isHere = this.#tierUpCalls !== undefined || this.#tierUpIterations !== undefined;
    let origin: CompilationReport["origin"] = "background";
    const native = new NativeJobs(space.thread, compiled.valid, { ...options, target: hostBackend() });
    return new TierUp(space, compiled, replaceable, {
      target: hostBackend(),
      options,
      shared,
      isProven: this.#provesCode,
      startsAtOnce: plan?.startsAtOnce ?? false,
      readiness: () => readiness(native.state),
      callSoon,
      send: sendJob,
      startNative: (loop, now, otherwise) => native.start(loop, now, otherwise),
      ...(this.#tierUpCalls === undefined ? {} : { afterCalls: this.#tierUpCalls }),
      ...(this.#tierUpIterations === undefined ? {} : { afterIterations: this.#tierUpIterations }),
      hasBatches: true,
      ...(this.#tierUpBatches && !compiled.settings.deterministic
        ? {
          compileBatchHere: ({ wanted, mostBytes }) =>
            compileBatch(module, { ...options, target: hostBackend(), hasValidBodies: true }, wanted, mostBytes),
        }
        : {}),
      compileLoopHere: (place) =>
        compileLoopEntry(module, { ...options, target: hostBackend(), hasValidBodies: true }, place),
      compileHere: () => {
        origin = "compile";
        return compileModule(module, {
          ...options,
          target: hostBackend(),
          hasValidBodies: true,
          note: this.#explain && notes.note,
        });
      },
      movedUp: (part, times) => {
        if (this.#perfMap) addToPerfMap(part);
        this.#explain?.(notes.report(part, { ...by, origin: isHere ? "compile" : "background", ...times }));
      },
      finished: (optimized, statistics, times) => {
        if (this.#perfMap) addToPerfMap(optimized);
        this.#explain?.(notes.report(optimized, { ...by, origin, ...times }));
        plan?.finished(optimized, statistics, times);
      },
    });
  }

  /**
   * Starts to sample the compiled code of this thread, of all engines, every `interval` milliseconds (default 1), until
   * `stop()` of the result returns the profile. The code runs unchanged, a few percent slower at most. Inlined
   * functions and exact lines are known of code that an engine with the same options has compiled. `sourceMap` returns
   * the text of the source map at the address that a module names. Time outside of calls into compiled code is not part
   * of the profile.
   *
   * Rejects with RangeError for an interval that is not 0.1 to 1000, and with Error on systems other than Linux.
   *
   * @example
   * ```ts
   * import { NewEngine } from "@waft/engine";
   *
   * const engine = NewEngine();
   * const instance = engine.compile(`(module (func (export "count") (param i32) (loop $l
   *   (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))`).instantiate();
   * const profiler = await engine.profile();
   * instance.call({}, "count", 100_000_000);
   * const [busiest] = profiler.stop().functions();
   * if (busiest?.name !== "count") throw new Error("wrong result");
   * ```
   */
  async profile(sampling: ProfileOptions = {}): Promise<Profiler> {
    const { Profiler } = await import("../profile/profiler.ts");
    const { features, optimizations } = this;
    const store = realmStore();
    return new Profiler(
      store,
      { features, optimizations, target: hostBackend(), cpu: cpuFeatures(store.thread.host) },
      sampling,
    );
  }

  /**
   * Validates a module without compiling it. Throws the errors of `compile`, except that it accepts features that this
   * build cannot compile.
   */
  validate(source: Uint8Array | ArrayBuffer | string): void {
    const places = new TextPlaces();
    withPlaces(places, () => this.validateParsed(this.#parse(source, places)));
  }

  /**
   * Validates a module returned by `parse`.
   *
   * @internal
   */
  validateParsed(module: WasmModule): void {
    const { features, optimizations } = this;
    validateWhole(module, { features, optimizations, target: hostBackend(), cpu: cpuFeatures(currentHost()) });
  }

  /**
   * Decodes a module in binary form (`\0asm…`) or parses its text; `bytes` of the result is a private copy
   * of the binary form. Throws MalformedError.
   *
   * @internal
   */
  parse(source: Uint8Array | ArrayBuffer | string): WasmModule {
    return this.#parse(source, new TextPlaces());
  }

  #parse(source: Uint8Array | ArrayBuffer | string, places: TextPlaces): WasmModule {
    return parsePrivate(privateSource(source), places);
  }
}

/**
 * The text of a module, or a copy of its bytes, which no program can change: the module reads them again when its code
 * is optimized, and the caller's buffer may be shared with threads or be the memory of a guest.
 */
function privateSource(source: unknown): Uint8Array<ArrayBuffer> | string {
  const given = sourceOf(source);
  return typeof given === "string" ? given : new Uint8Array(given);
}

/** Whether a module defines or imports a memory that threads can share. */
function hasSharedMemory({ imports, memories }: WasmModule): boolean {
  return memories.some(({ shared }) => shared) ||
    imports.some(({ desc }) => desc.kind === "memory" && desc.type.shared);
}

function parsePrivate(source: Uint8Array | string, places: TextPlaces): WasmModule {
  const isBinary = typeof source !== "string" && looksBinary(source);
  return isBinary ? decodeModule(source) : parseModule(source, { places });
}

formatAs(Engine.prototype, (engine) => {
  const { bounds, tier } = engine;
  const switches = (["interruptible", "fuel", "deterministic"] as const).filter((name) => engine[name]);
  return `Engine { ${[`bounds: ${bounds}`, `tier: ${tier}`, ...switches].join(", ")} }`;
});

/** Runs `action` and adds the place in the text to errors with an offset in the binary form. */
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

/** Creates objects that a host program passes to modules as imports. */
export interface HostObjects {
  /** Creates a memory of `initial` to `maximum` pages of 64 KiB. Throws TypeError or RangeError for invalid sizes. */
  memory(initial: number, maximum?: number, bounds?: "guard" | "explicit" | "auto"): Memory;
  /** Creates a memory that several workers can use. `maximum` is required. */
  sharedMemory(initial: number, maximum: number, bounds?: "guard" | "explicit" | "auto"): Memory;
  /** Creates a table of `initial` to `maximum` references of `type`. */
  table(type: "funcref" | "externref", initial: number, maximum?: number): ExternTable;
  /**
   * Creates a global of the value type `type`, such as `i32` or `externref`, with the given initial value. Throws
   * TypeError if the type is unknown or the value does not have it.
   */
  global(type: string, mutable: boolean, value: unknown): ExternGlobal;
  /**
   * Creates a tag for exceptions with a payload of the given value types: an import for modules, and the argument of
   * `new WasmException(tag, values)`. Throws TypeError if a type is unknown.
   */
  tag(...parameters: string[]): Tag;
}

function isGuarded(bounds: "guard" | "explicit" | "auto"): boolean {
  if (!["guard", "explicit", "auto"].includes(bounds)) {
    throw new TypeError(`The bounds of a memory must be guard, explicit or auto, not ${inWords(bounds)}`);
  }
  return bounds === "guard" || (bounds === "auto" && hasGuardRoom(realmStore().thread.host));
}

/**
 * Memories, tables, globals and tags created by the host, for modules to import.
 *
 * @example
 * ```ts
 * import { host, NewEngine } from "@waft/engine";
 *
 * const memory = host.memory(1, 10);
 * new Uint8Array(memory.buffer)[5] = 42;
 * const module = NewEngine().compile(`(module (import "m" "m" (memory 1))
 *   (func (export "load") (param i32) (result i32) (i32.load8_u (local.get 0))))`);
 * const instance = module.instantiate({}, { m: { m: memory } });
 * if (instance.call({}, "load", 5) !== 42) throw new Error("wrong result");
 * ```
 */
export const host: HostObjects = {
  memory: (initial, maximum, bounds = "auto") =>
    ExternTable.hostMemory(realmStore(), initial, maximum, isGuarded(bounds)),
  sharedMemory: (initial, maximum, bounds = "auto") =>
    ExternTable.hostMemory(realmStore(), initial, maximum, isGuarded(bounds), true),
  table: (type, initial, maximum) => ExternTable.make(realmStore(), type, initial, maximum),
  global: (type, mutable, value) => ExternGlobal.make(realmStore(), type, mutable, value),
  tag: (...parameters) => makeTag(realmStore(), parameters),
};

export {
  ArtifactError,
  Budget,
  type CompilationReport,
  type Context,
  Delivery,
  type EngineLimits,
  type EngineOptions,
  type ExportDescriptor,
  type ExportValue,
  EXTERN,
  type FunctionReport,
  type ImportDescriptor,
  Instance,
  InstancePool,
  Memory,
  Module,
  ProcessorAccount,
  promising,
  realmStore,
  type SharedMemoryToken,
  type SharedModuleToken,
  startCall,
  SUSPENDING,
  Suspension,
  Tag,
  underLimits,
  WaftError,
  WasmException,
};
