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
import { decodeModule } from "./binary/decode.ts";
import { cacheKey, type CacheOptions, CodeCache } from "./cache/code_cache.ts";
import { sourceStamp } from "./cache/source_stamp.ts";
import type { Target } from "./codegen/target.ts";
import { compileModule } from "./compile.ts";
import { WaftError } from "./errors.ts";
import { type FeatureName, type FeatureSet, featureSet } from "./features.ts";
import { COLLECTOR_CODE } from "./gc/collector_code.ts";
import type { HeapStatistics } from "./gc/heap.ts";
import { cpuFeatures, hostArchitecture } from "./host/cpu.ts";
import { ArtifactError } from "./link/artifact.ts";
import { engineStamp } from "./link/engine_stamp.ts";
import { placeImage } from "./link/image.ts";
import { type OptimizationName, type OptimizationSet, optimizationSet } from "./optimizations.ts";
import { callAsync } from "./runtime/async_call.ts";
import { CompiledModule } from "./runtime/compiled_module.ts";
import { Tag, WasmException } from "./runtime/exception.ts";
import { EXTERN, ExternGlobal, ExternTable } from "./runtime/externals.ts";
import { funcInfo } from "./runtime/func.ts";
import { SUSPENDING } from "./runtime/marshal.ts";
import type { Instance as RuntimeInstance } from "./runtime/instance.ts";
import { type ControlContext, underControl } from "./runtime/control.ts";
import {
  DEFAULT_LIMITS,
  type Imports,
  type InstanceLimits,
  instantiate,
  instantiateAsync,
} from "./runtime/instantiate.ts";
import { InstancePool } from "./runtime/instance_pool.ts";
import { guardsShared, Memory } from "./runtime/memory.ts";
import { hasGuardRoom } from "./runtime/memory_range.ts";
import { adoptModule, type SharedModuleToken, shareModule, unshareModule } from "./runtime/shared_module.ts";
import { addToPerfMap } from "./runtime/perf_map.ts";
import { loadModule, machineName, optionNames, serializeModule } from "./runtime/saved_module.ts";
import type { SharedMemoryToken } from "./runtime/shared_pages.ts";
import { readSnapshot, writeSnapshot } from "./runtime/snapshot.ts";
import { Store } from "./runtime/store.ts";
import { parseModule } from "./text/parse_module.ts";
import { TextPlaces } from "./text/text_places.ts";
import { validateModule } from "./validate/module.ts";
import type { ExternKind, Module as WasmModule } from "./wasm/module.ts";
import { funcTypeName, I64, valTypeName } from "./wasm/types.ts";

/** How an engine compiles; every field has a default. */
export interface EngineOptions {
  /** Feature switches over the defaults of the feature table. */
  features?: Partial<Record<FeatureName, boolean>>;
  /** Optimization switches over their defaults. */
  optimizations?: Partial<Record<OptimizationName, boolean>>;
  /**
   * How accesses to 32-bit memories are kept in bounds: `guard` (8 GiB of address space per memory, no checks in code) or `explicit` (a
   * compare per access, little address space: for very many instances). Default `auto`: guard while there is address space for it; a module
   * with memories is compiled for `explicit` too when there is none left, or from some thousands of live memories on.
   */
  bounds?: "guard" | "explicit" | "auto";
  /**
   * Compile code that a deadline can stop: it polls at loop headers and in functions that call. Default false; a context with a
   * deadline is refused by instances whose code, or the code they import, does not poll.
   */
  interruptible?: boolean;
  /**
   * Compile code that charges fuel (fuel_prices.ts: one price per instruction of WebAssembly). Default false; a context with fuel is
   * refused by instances whose code, or the code they import, does not charge.
   */
  fuel?: boolean;
  /**
   * Leave nothing to the machine, the compiler or chance: NaNs that arithmetic makes are the positive canonical one, the depth of calls is
   * limited by a count of the instructions' own units (the limit maxStackBytes, whatever frames of machine code need), memories and tables
   * fail to grow by limits only (where the system has no more, the call ends with a RangeError), relaxed instructions have the one result
   * that they always have here, and modules with shared memories are refused. The same module gives the same results, traps and fuel
   * everywhere. Default false.
   */
  deterministic?: boolean;
  /** Limits of instances and of their number, enforced always; these are over the defaults. */
  limits?: EngineLimits;
  /**
   * A folder for compiled modules: what was compiled before, from the same bytes with the same options, is loaded from there. It must be the
   * user's own, since it holds machine code (cache/code_cache.ts); what is damaged in it is compiled again. Default: none.
   */
  cache?: CacheOptions;
  /**
   * Name the functions of all modules in `/tmp/perf-PID.map`, where `perf report` looks for them. Default false. Throws an Error while
   * compiling when the file cannot be written.
   */
  perfMap?: boolean;
  /** Check the compiler's own work (IR and register allocation) while compiling; slow, for tests. */
  verify?: boolean;
}

/** What a call or an instantiation is subject to; `instantiate` runs the start function under it. */
export interface Context extends ControlContext {
  /** Limits of the instance that is made, over the engine's; only read by `instantiate`. */
  limits?: InstanceLimits;
}

/** Limits that an engine sets for its modules: of each instance, and of how many there are. */
export interface EngineLimits extends InstanceLimits {
  /** The most instances that are alive and not closed in this JavaScript realm. Default 100,000. */
  maxInstances?: number;
}

const DEFAULT_MAX_INSTANCES = 100_000;

/** `limits` over `defaults`; throws RangeError for what is no limit. */
function completeLimits<Limits extends object>(defaults: Limits, limits: Partial<Limits> = {}): Limits {
  const known = { ...defaults } as Record<string, unknown>;
  for (const [name, value] of Object.entries(limits)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(defaults, name)) throw new TypeError(`There is no limit "${name}"`);
    if (!Number.isSafeInteger(value) || (value as number) < 0) {
      throw new RangeError(`The limit ${name} must be a whole number, not ${value}`);
    }
    known[name] = value;
  }
  return known as Limits;
}

/** One entry of a module's imports. */
export interface ImportDescriptor {
  module: string;
  name: string;
  kind: ExternKind;
  /** The type in the text format's words, such as `[i32] -> [i64]` or `i32`. */
  type: string;
}

/** One entry of a module's exports. */
export interface ExportDescriptor {
  name: string;
  kind: ExternKind;
  /** The type in the text format's words. */
  type: string;
}

/** What an instance exports under a name. */
export type ExportValue = ((...args: unknown[]) => unknown) | Memory | ExternTable | ExternGlobal | Tag;

/** The backend for this machine: only it is loaded. */
const TARGET: Target = hostArchitecture() === "arm64"
  ? (await import("./backend_arm64/target.ts")).ARM64
  : (await import("./backend_x64/target.ts")).X64;

let store: Store | undefined;

/** The store of this realm, for other parts of the engine: made by the first instantiation or compilation. */
export function realmStore(): Store {
  return store ??= makeStore();
}

function makeStore(): Store {
  const made = new Store(TARGET);
  made.compileCollector = () => {
    const { thread } = made;
    const code = compileModule(parseModule(COLLECTOR_CODE), {
      target: thread.target,
      features: featureSet(),
      optimizations: optimizationSet(),
      explicitBounds: false,
      unchecked: true,
      cpu: cpuFeatures(thread.host),
    });
    const compiled = new CompiledModule(thread, code.valid, {
      ...code,
      image: placeImage(thread.arena, code.bytes, code.tables),
    });
    made.addModule(compiled);
    return compiled;
  };
  return made;
}

/** Does `module` define or import a shared memory? */
function hasSharedMemory(module: WasmModule): boolean {
  return module.memories.some(({ shared }) => shared) ||
    module.imports.some(({ desc }) => desc.kind === "memory" && desc.type.shared);
}

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

/** Makes an engine. */
export function NewEngine(options: EngineOptions = {}): Engine {
  return new Engine(options);
}

/** Compiles modules with one set of options. */
export class Engine {
  readonly features: FeatureSet;
  readonly optimizations: OptimizationSet;
  readonly bounds: "guard" | "explicit" | "auto";
  readonly interruptible: boolean;
  readonly fuel: boolean;
  readonly deterministic: boolean;
  readonly limits: Required<EngineLimits>;
  readonly #verify: boolean;
  readonly #cache: CodeCache | undefined;
  readonly #perfMap: boolean;

  constructor(options: EngineOptions = {}) {
    this.deterministic = options.deterministic ?? false;
    if (this.deterministic && options.features?.threads === true) {
      throw new TypeError(
        "Threads are not deterministic: the options deterministic and features.threads exclude each other",
      );
    }
    this.features = featureSet(this.deterministic ? { ...options.features, threads: false } : options.features);
    this.optimizations = optimizationSet(
      this.deterministic ? { ...options.optimizations, "stack-fence": true } : options.optimizations,
    );
    this.bounds = options.bounds ?? "auto";
    this.interruptible = options.interruptible ?? false;
    this.fuel = options.fuel ?? false;
    this.limits = completeLimits({ ...DEFAULT_LIMITS, maxInstances: DEFAULT_MAX_INSTANCES }, options.limits);
    requireStackFence(this.optimizations, this.limits);
    this.#verify = options.verify ?? false;
    this.#perfMap = options.perfMap ?? false;
    this.#cache = options.cache && new CodeCache(options.cache);
  }

  /**
   * Validates and compiles a module: its binary form, or its text.
   *
   * Throws MalformedError, InvalidError or UnsupportedError with the place in the input.
   */
  compile(source: Uint8Array | ArrayBuffer | string): Module {
    if (this.#cache !== undefined && typeof source !== "string") {
      const bytes = source instanceof ArrayBuffer ? new Uint8Array(source) : source;
      if (looksBinary(bytes)) return this.#compileCached(bytes, this.#cache);
    }
    const places = new TextPlaces();
    return withPlaces(places, () => this.compileParsed(this.#parse(source, places), places));
  }

  /** Compiles a binary form, or takes what the cache has of it. Text is not cached: artifacts do not know its lines. */
  #compileCached(bytes: Uint8Array, cache: CodeCache): Module {
    const space = realmStore();
    const { host } = space.thread;
    const key = cacheKey(bytes, [
      engineStamp(),
      sourceStamp(),
      machineName(host),
      this.bounds,
      String(this.bounds === "auto" && !hasGuardRoom(host)),
      ...cpuFeatures(host),
      ...optionNames(this),
    ]);
    const artifact = cache.read(key);
    if (artifact !== undefined) {
      try {
        const { compiled, hits } = loadModule(space, artifact, this, (valid) => this.#wantsExplicit(space, valid));
        if (this.#perfMap) addToPerfMap(compiled);
        const spare = () => this.#compileFor(space, decodeModule(bytes), new TextPlaces(), true).compiled;
        const hasMemory = compiled.valid.memories.some(({ limits }) => limits.address !== I64);
        const wantsSpare = this.bounds === "auto" && !compiled.explicitBounds && hasMemory;
        return new Module(space, compiled, hits, this, wantsSpare ? spare : undefined);
      } catch (error) {
        if (!(error instanceof ArtifactError)) throw error;
        cache.remove(key);
      }
    }
    const module = this.compileParsed(decodeModule(bytes));
    cache.write(key, module.serialize());
    return module;
  }

  /** Compiles what `parse` returned. `places` are those of the text it came from, if any. */
  compileParsed(module: WasmModule, places: TextPlaces = new TextPlaces()): Module {
    const space = realmStore();
    const explicit = this.#wantsExplicit(space, module);
    const { compiled, hits } = this.#compileFor(space, module, places, explicit);
    const hasMemory = module.memories.some(({ limits }) => limits.address !== I64);
    const spare = this.bounds === "auto" && !explicit && hasMemory
      ? () => this.#compileFor(space, module, places, true).compiled
      : undefined;
    return new Module(space, compiled, hits, this, spare);
  }

  /**
   * The module of an artifact, which `Module.serialize` returned for an engine with the same options, in this process or another: nothing is
   * compiled. The bytes must not change while the module is in use.
   *
   * An artifact is machine code. One that is damaged, or made by another version, for another machine or with other options, is refused
   * with an ArtifactError; beyond that its source is trusted, as that of a program that you run.
   */
  load(artifact: Uint8Array | ArrayBuffer): Module {
    const space = realmStore();
    const bytes = artifact instanceof ArrayBuffer ? new Uint8Array(artifact) : artifact;
    const { compiled, hits } = loadModule(space, bytes, this, (valid) => this.#wantsExplicit(space, valid));
    if (this.#perfMap) addToPerfMap(compiled);
    if (this.bounds === "guard" && compiled.explicitBounds) {
      throw new ArtifactError("The artifact's code checks bounds, this engine's option bounds is guard");
    }
    return new Module(space, compiled, hits, this);
  }

  /** Is code with explicit bounds the one to use for `module`? */
  #wantsExplicit({ thread: { host } }: Store, module: WasmModule): boolean {
    return this.bounds === "explicit" || (hasSharedMemory(module) && !guardsShared(host)) ||
      (this.bounds === "auto" && !hasGuardRoom(host));
  }

  #compileFor(
    space: Store,
    module: WasmModule,
    places: TextPlaces,
    explicitBounds: boolean,
  ): { compiled: CompiledModule; hits: Readonly<Record<string, number>> } {
    const { thread } = space;
    const code = compileModule(module, {
      target: thread.target,
      features: this.features,
      optimizations: this.optimizations,
      explicitBounds,
      cpu: cpuFeatures(thread.host),
      interruptible: this.interruptible,
      fuel: this.fuel,
      deterministic: this.deterministic,
      verify: this.#verify,
    });
    const image = placeImage(thread.arena, code.bytes, code.tables);
    const compiled = new CompiledModule(thread, code.valid, {
      ...code,
      image,
      placeOf: (offset) => places.placeOf(offset),
    });
    space.addModule(compiled);
    if (this.#perfMap) addToPerfMap(compiled);
    return { compiled, hits: code.hits };
  }

  /** Checks a module without compiling it; throws as `compile` does, but accepts features that this build cannot compile. */
  validate(source: Uint8Array | ArrayBuffer | string): void {
    const places = new TextPlaces();
    withPlaces(places, () => this.validateParsed(this.#parse(source, places)));
  }

  /** Checks what `parse` returned. */
  validateParsed(module: WasmModule): void {
    validateModule(module, this.features);
  }

  /** Reads a module from its binary form (`\0asm…`) or its text. */
  parse(source: Uint8Array | ArrayBuffer | string): WasmModule {
    return this.#parse(source, new TextPlaces());
  }

  #parse(source: Uint8Array | ArrayBuffer | string, places: TextPlaces): WasmModule {
    if (typeof source === "string") return parseModule(source, { places });
    const bytes = source instanceof ArrayBuffer ? new Uint8Array(source) : source;
    return looksBinary(bytes) ? decodeModule(bytes) : parseModule(bytes, { places });
  }
}

/** Refuses a limit of the stack that code without `stack-fence` does not keep. */
function requireStackFence(optimizations: OptimizationSet, { maxStackBytes }: InstanceLimits): void {
  if (maxStackBytes !== DEFAULT_LIMITS.maxStackBytes && optimizations["stack-fence"] !== true) {
    throw new TypeError("The limit maxStackBytes needs the optimization stack-fence");
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

/** Binary modules begin with a zero byte, which no text contains. */
function looksBinary(bytes: Uint8Array): boolean {
  return bytes.length === 0 || bytes[0] === 0;
}

/** A compiled module: instantiate it as often as wanted. */
export class Module {
  readonly #engine: Engine;
  readonly #store: Store;
  readonly #compiled: CompiledModule;
  /** How often each optimization applied while compiling, by key. */
  readonly hits: Readonly<Record<string, number>>;
  /** Makes the form of the module with explicit bounds, for when there is no address space for guards. */
  readonly #makeSpare: (() => CompiledModule) | undefined;
  #spare: CompiledModule | undefined;

  constructor(
    space: Store,
    compiled: CompiledModule,
    hits: Readonly<Record<string, number>>,
    engine: Engine,
    makeSpare?: () => CompiledModule,
  ) {
    this.#makeSpare = makeSpare;
    this.#engine = engine;
    this.#store = space;
    this.#compiled = compiled;
    this.hits = hits;
  }

  /** What the module imports, in order. */
  get imports(): ImportDescriptor[] {
    const { valid } = this.#compiled;
    const next = { func: 0, table: 0, memory: 0, global: 0, tag: 0 };
    return valid.imports.map(({ module, name, desc }) => ({
      module,
      name,
      kind: desc.kind,
      type: this.#typeName(desc.kind, next[desc.kind]++),
    }));
  }

  /** What the module exports, in order. */
  get exports(): ExportDescriptor[] {
    return this.#compiled.valid.exports.map(({ name, kind, index }) => ({
      name,
      kind,
      type: this.#typeName(kind, index),
    }));
  }

  /** Parameter and result types of the exported function `name`, if there is one (wasm/types.ts says what the numbers mean). */
  functionType(name: string): { params: readonly number[]; results: readonly number[] } | undefined {
    const { valid } = this.#compiled;
    const entry = valid.exports.find((e) => e.kind === "func" && e.name === name);
    return entry && valid.funcTypes[entry.index];
  }

  /**
   * Plain data to send to Workers, each of which makes the same module of it with {@linkcode Module.fromShared}: the machine code is used
   * where it is. The module stays alive until {@linkcode Module.unshare}.
   */
  share(): SharedModuleToken {
    return shareModule(this.#compiled, this.#engine.features);
  }

  /** No further Worker will ask for the module; those that have it keep it for as long as they need it. */
  unshare(): void {
    unshareModule(this.#compiled);
  }

  /**
   * The module that `token` stands for, in this realm. `options` are those of its instances: limits.
   *
   * Throws TypeError for what `share` has not made, an Error when the module was unshared and is gone.
   */
  static fromShared(token: SharedModuleToken, options: Pick<EngineOptions, "limits"> = {}): Module {
    const space = realmStore();
    const compiled = adoptModule(space, token);
    return new Module(space, compiled, {}, new Engine({ ...options, features: token.features }));
  }

  /** A memory as the import `name` of namespace `module` asks for. Throws TypeError when there is no such import. */
  memoryForImport(module: string, name: string): Memory {
    const { valid, explicitBounds } = this.#compiled;
    const entry = valid.imports.find((e) => e.module === module && e.name === name && e.desc.kind === "memory");
    if (entry?.desc.kind !== "memory") throw new TypeError(`The module does not import a memory "${module}" "${name}"`);
    const { type } = entry.desc;
    return new Memory(this.#store.thread.host, type, {
      guarded: !explicitBounds && type.limits.address !== I64,
      maxPages: this.#engine.limits.maxMemoryPages,
    });
  }

  /**
   * The compiled module as bytes, for `Engine.load` of an engine with the same options: the same version of waft, the same system, a processor
   * that can what this one can. The same module and options give the same bytes.
   */
  serialize(): Uint8Array<ArrayBuffer> {
    return serializeModule(this.#compiled, this.#engine, this.hits);
  }

  /** Size of the machine code in bytes. */
  get codeSize(): number {
    return this.#compiled.image.size;
  }

  /**
   * Makes an isolated instance and runs its start function.
   *
   * Throws LinkError when an import is missing or does not match, TrapError when a segment or the start function traps (also
   * when the context's deadline passes or its fuel runs out), RangeError when a limit is exceeded.
   */
  instantiate(context: Context = {}, imports: Imports = {}): Instance {
    return this.#make(this.#fitting(), context, imports);
  }

  /**
   * Makes an instance as `instantiate` does, with a start function that may wait: it is called as `Instance.callAsync` calls. Rejects with what
   * `instantiate` throws.
   */
  async instantiateAsync(context: Context = {}, imports: Imports = {}): Promise<Instance> {
    return new Instance(
      await instantiateAsync(this.#store, this.#fitting(), imports, this.#instanceLimits(context), context),
    );
  }

  /**
   * Makes an instance whose state is that of `snapshot`, which `Instance.snapshot` of this module returned, in this process or another. No
   * segment and no start function runs; `reset` goes back to this state.
   *
   * Throws WaftError for bytes that are no snapshot of this module, and what `instantiate` throws.
   */
  restore(snapshot: Uint8Array, context: Context = {}, imports: Imports = {}): Instance {
    const compiled = this.#fitting();
    return this.#make(compiled, context, imports, readSnapshot(snapshot, compiled));
  }

  /**
   * A pool of instances, of which at most `size` (default 16) wait for use. All are made with the same context, which applies to each
   * instantiation anew, and imports.
   */
  pool(options: { size?: number; context?: Context; imports?: Imports } = {}): InstancePool<Instance> {
    const { size = 16, context, imports } = options;
    return new InstancePool(() => this.instantiate({ resettable: true, ...context }, imports), size);
  }

  /** The form of the module for whose memories there is address space. */
  #fitting(): CompiledModule {
    if (this.#makeSpare === undefined || hasGuardRoom(this.#store.thread.host)) return this.#compiled;
    return this.#spare ??= this.#makeSpare();
  }

  #make(
    compiled: CompiledModule,
    context: Context,
    imports: Imports,
    restored?: Parameters<typeof instantiate>[5],
  ): Instance {
    return new Instance(instantiate(this.#store, compiled, imports, this.#instanceLimits(context), context, restored));
  }

  /** Limits of an instance that is about to be made. Throws RangeError when there are too many. */
  #instanceLimits(context: Context): Required<InstanceLimits> {
    const { maxInstances, ...own } = this.#engine.limits;
    if (this.#store.openInstances >= maxInstances) {
      throw new RangeError(`Too many instances: the limit of ${maxInstances} is reached; close some`);
    }
    const limits = context.limits === undefined ? own : completeLimits(own, context.limits);
    requireStackFence(this.#engine.optimizations, limits);
    return limits;
  }

  #typeName(kind: ExternKind, index: number): string {
    const { valid } = this.#compiled;
    switch (kind) {
      case "func":
        return funcTypeName(valid.funcTypes[index]!);
      case "table":
        return valTypeName(valid.tableTypes[index]!.element);
      case "memory":
        return `${valid.memoryTypes[index]!.limits.min} pages`;
      case "global":
        return `${valid.globalTypes[index]!.mutable ? "mut " : ""}${valTypeName(valid.globalTypes[index]!.type)}`;
      case "tag":
        return funcTypeName(valid.tagTypes[index]!);
    }
  }
}

/** An instance of a module. */
export class Instance {
  readonly #instance: RuntimeInstance;
  readonly #byName: Map<string, ExportValue> = new Map();
  #exports: Readonly<Record<string, ExportValue>> | undefined;

  constructor(instance: RuntimeInstance) {
    this.#instance = instance;
  }

  /** The runtime's own view of the instance, for tools inside this repository. */
  get internal(): RuntimeInstance {
    return this.#instance;
  }

  /** Everything exported, by name; a frozen object without prototype, made on first use. */
  get exports(): Readonly<Record<string, ExportValue>> {
    if (this.#exports === undefined) {
      const exports = Object.create(null) as Record<string, ExportValue>;
      for (const { name } of this.#instance.module.valid.exports) exports[name] = this.#export(name)!;
      this.#exports = Object.freeze(exports);
    }
    return this.#exports;
  }

  /**
   * Calls the exported function `name`. Arguments are converted as the JavaScript API does (i64 is a bigint); one result is returned
   * as it is, several as an array, none as undefined.
   *
   * Throws TrapError when the code traps (`interrupted` when the context's deadline has passed, `out of fuel`), and whatever a
   * host function throws. The instance stays usable.
   */
  call(context: Context, name: string, ...args: unknown[]): unknown {
    const value = this.#function(name);
    if (context.deadline === undefined && context.fuel === undefined && context.signal === undefined) {
      return value(...args);
    }
    return underControl(this.#instance, context, () => value(...args));
  }

  /**
   * Calls the exported function `name` as `call` does, and waits where a host function returns a promise: the guest is suspended, the event
   * loop goes on, and the guest gets the value, or the rejection as an exception. Any number of calls may be in flight, also on one
   * instance, which may be called meanwhile in any way. Code of an `interruptible` engine runs in slices of a few milliseconds, so
   * that the event loop turns and the context's signal is heard; until such a call goes on, synchronous calls of its instance, and
   * of those that share state with it, throw an Error, and asynchronous ones wait.
   *
   * Rejects with whatever `call` throws, and with the signal's reason when it is aborted.
   */
  callAsync(context: Context, name: string, ...args: unknown[]): Promise<unknown> {
    try {
      const info = funcInfo(this.#function(name))!;
      return callAsync(info.instance, info.funcIndex, context, args);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Makes everything that the instance defines (memories, tables, globals, dropped segments) what it was after instantiation; what it imports
   * is not touched. Views of its memories stay, unless the memory has grown, and then read as zeros.
   *
   * Throws an Error when the instance is closed or not at rest (a call of it is under way, waiting ones included), when it has a start
   * function and was not instantiated with `resettable`, or when a memory of its own is shared.
   */
  reset(): void {
    this.#instance.reset();
  }

  /**
   * The state that the instance defines, as bytes for `Module.restore`: its memories, tables, mutable globals and dropped segments. What is on
   * no stack is not in it, so the instance must be at rest.
   *
   * Throws an Error that names what cannot be saved: imported memories, tables and mutable globals, and references to host values, to
   * objects, or to functions that are not the module's own.
   */
  snapshot(): Uint8Array<ArrayBuffer> {
    return writeSnapshot(this.#instance);
  }

  /**
   * Ends the instance: calling its exports throws an Error from now on. The pages of its memories are given back at once, unless other
   * instances may use them or its own code is just running; views that were kept read as zeros.
   */
  close(): void {
    this.#instance.close();
  }

  #function(name: string): (...args: unknown[]) => unknown {
    const value = this.#export(name);
    if (typeof value === "function") return value;
    throw new TypeError(
      value === undefined ? `There is no export "${name}"` : `The export "${name}" is not a function`,
    );
  }

  #export(name: string): ExportValue | undefined {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const instance = this.#instance;
    const entry = instance.module.valid.exports.find((e) => e.name === name);
    if (entry === undefined) return undefined;
    const value = exportValue(instance, entry.kind, entry.index);
    this.#byName.set(name, value);
    return value;
  }
}

function exportValue(instance: RuntimeInstance, kind: ExternKind, index: number): ExportValue {
  switch (kind) {
    case "func":
      return instance.exportedFunc(index);
    case "memory":
      return instance.memories[index]!;
    case "table":
      return ExternTable.of(instance.store, instance.tables[index]!);
    case "global":
      return ExternGlobal.of(instance.store, instance.globals[index]!);
    case "tag":
      return instance.tags[index]!;
  }
}

/**
 * The asynchronous form of an exported function: calls of it are made as `Instance.callAsync` makes them, subject to `context`. Throws TypeError
 * for what is no exported function of an instance.
 */
export function promising(
  exported: (...args: never[]) => unknown,
  context: Context = {},
): (...args: unknown[]) => Promise<unknown> {
  const info = funcInfo(exported);
  if (info === undefined) throw new TypeError("Only exported functions of instances can be made asynchronous");
  return (...args) => callAsync(info.instance, info.funcIndex, { ...context }, args);
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
  return bounds === "guard" || (bounds === "auto" && hasGuardRoom(realmStore().thread.host));
}

/** Memories, tables and globals of the host. */
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
  EXTERN,
  InstancePool,
  Memory,
  type SharedMemoryToken,
  type SharedModuleToken,
  SUSPENDING,
  Tag,
  WaftError,
  WasmException,
};
