/**
 * Compiled modules and their instances as embedders see them. In: a CompiledModule, compiled (engine.ts), loaded or
 * shared, and the settings of its engine. Out: the public classes Module and Instance. Invariant: this file imports no
 * part of the compiler, so that a module compiled earlier runs without it.
 */
import { Bug } from "../base/errors.ts";
import type { TierUp } from "../tiers/tier_up.ts";
import type { ProcessorAccount } from "../runtime/suspension/processor_account.ts";
import { callAsync, startCall as startSuspendableCall } from "../runtime/suspension/async_call.ts";
import { Delivery, Suspension } from "../runtime/boundary/suspension.ts";
import type { CompiledModule } from "../runtime/code/compiled_module.ts";
import type { Tag } from "../runtime/exceptions/exception.ts";
import { ExternGlobal, ExternTable } from "../runtime/instance/externals.ts";
import { funcInfo } from "../runtime/instance/func.ts";
import { type Instance as RuntimeInstance, instanceOf } from "../runtime/instance/instance.ts";
import { checkpointInstance, resetInstance } from "../runtime/instance/instance_state.ts";
import { bytesIn, inWords, requireKnownNames, requireRecord } from "../base/arguments.ts";
import { checkContext, checkSettings, underControl } from "../runtime/suspension/call_limits.ts";
import { type Imports, type InstanceLimits, instantiate, instantiateAsync } from "../runtime/instance/instantiate.ts";
import { InstancePool } from "../runtime/instance/instance_pool.ts";
import { prepareCallIns } from "../runtime/boundary/marshal.ts";
import { Memory } from "../runtime/memory/memory.ts";
import { hasGuardRoom } from "../runtime/memory/memory_range.ts";
import {
  adoptModule,
  type BaselineSharing,
  type SharedModuleToken,
  shareModule,
  unshareModule,
} from "../artifact/shared_module.ts";
import { serializeModule } from "../artifact/write_module.ts";
import { readSnapshot, writeSnapshot } from "../runtime/snapshot/snapshot.ts";
import type { Store } from "../runtime/instance/store.ts";
import { realmStore } from "../runtime/realm_store.ts";
import {
  completeLimits,
  type Context,
  type EngineOptions,
  requireStackFence,
  type Settings,
  settingsOf,
} from "./settings.ts";
import type { ExternKind } from "../wasm/module.ts";
import {
  type FuncType,
  funcTypeName,
  type GlobalType,
  isGuardable,
  type MemoryType,
  PAGE_BYTES,
  type TableType,
  valTypeName,
} from "../wasm/types.ts";

/** The kinds of imports and exports. */
export type ExportKind = "func" | "table" | "memory" | "global" | "tag";

/** An import of a module. */
export interface ImportDescriptor {
  /** The module name, the first part of the import's name. */
  module: string;
  /** The second part of the import's name. */
  name: string;
  /** The kind of the required value. */
  kind: ExportKind;
  /** The type in the notation of the text format, such as `[i32] -> [i64]` or `i32`. */
  type: string;
}

/** An export of a module. */
export interface ExportDescriptor {
  /** The name, unique among the exports of the module. */
  name: string;
  /** The kind of the exported value. */
  kind: ExportKind;
  /** The type in the notation of the text format. */
  type: string;
}

/** The value of an export: a function, memory, table, global or tag. */
export type ExportValue = ((...args: unknown[]) => unknown) | Memory | ExternTable | ExternGlobal | Tag;

/** The services of the compiler for modules of other realms. */
interface SharedModuleCompiler {
  /** Lets a module with baseline code move up. */
  tierUpOf(space: Store, compiled: CompiledModule, baseline: BaselineSharing): TierUp;
  /** Compiles the entries of a module, whose bodies have been validated. */
  compile(space: Store, binary: Uint8Array<ArrayBuffer>, baseline: BaselineSharing): {
    readonly compiled: CompiledModule;
    readonly tierUp: TierUp | undefined;
  };
}

let compiler: SharedModuleCompiler | undefined;

/** Lets modules of other realms be compiled and move up. Without it, they keep the code that they bring. */
export function setSharedModuleCompiler(given: SharedModuleCompiler): void {
  compiler = given;
}

/** The tier-ups of modules that this realm has compiled: modules with the same code have one together. */
const TIER_UPS = new WeakMap<CompiledModule, TierUp>();

/** A compiled module, which can be instantiated any number of times. */
export class Module {
  readonly #settings: Settings;
  readonly #store: Store;
  readonly #compiled: CompiledModule;
  readonly #statistics: Readonly<Record<string, number>>;
  /** Compiles the module with explicit bounds checks, for use when address space for guard pages is exhausted. */
  readonly #makeFallback: (() => CompiledModule) | undefined;
  #explicitFallback: CompiledModule | undefined;
  #readSourceMap: ((url: string) => string | undefined) | undefined;
  /** Replaces baseline code by optimized code; undefined if the code is final. */
  readonly #tierUp: TierUp | undefined;

  /**
   * Modules are created by engines.
   *
   * @internal
   */
  constructor(
    space: Store,
    compiled: CompiledModule,
    statistics: Readonly<Record<string, number>>,
    settings: Settings,
    makeFallback?: () => CompiledModule,
    tierUp?: TierUp,
  ) {
    this.#tierUp = tierUp;
    if (tierUp !== undefined) TIER_UPS.set(compiled, tierUp);
    this.#makeFallback = makeFallback;
    this.#settings = settings;
    this.#store = space;
    this.#compiled = compiled;
    this.#statistics = statistics;
  }

  /** The number of applications of each optimization during compilation, by key. */
  get statistics(): Readonly<Record<string, number>> {
    return this.#tierUp?.statistics ?? this.#statistics;
  }

  /** The imports of the module, in order. */
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

  /** The exports of the module, in order. */
  get exports(): ExportDescriptor[] {
    return this.#compiled.valid.exports.map(({ name, kind, index }) => ({
      name,
      kind,
      type: this.#typeName(kind, index),
    }));
  }

  /**
   * The types of the imports or exports, in order.
   *
   * @internal
   */
  externTypes(of: "imports" | "exports"): (FuncType | TableType | MemoryType | GlobalType)[] {
    const { valid } = this.#compiled;
    const typeOf = (kind: ExternKind, index: number) => {
      switch (kind) {
        case "func":
          return valid.funcTypes[index];
        case "table":
          return valid.tableTypes[index];
        case "memory":
          return valid.memoryTypes[index];
        case "global":
          return valid.globalTypes[index];
        case "tag":
          return valid.tagTypes[index];
      }
    };
    const next = { func: 0, table: 0, memory: 0, global: 0, tag: 0 };
    return of === "imports"
      ? valid.imports.map(({ desc: { kind } }) => typeOf(kind, next[kind]++))
      : valid.exports.map(({ kind, index }) => typeOf(kind, index));
  }

  /**
   * The parameter and result types of the exported function `name`, as encoded in wasm/types.ts; undefined if there is
   * no such function.
   */
  functionType(name: string): { params: readonly number[]; results: readonly number[] } | undefined {
    const entry = this.#compiled.exportNamed(name);
    return entry?.kind === "func" ? this.#compiled.valid.funcTypes[entry.index] : undefined;
  }

  /**
   * Returns a token: plain data for `postMessage`, from which {@linkcode Module.fromShared} makes the same module in
   * another worker, without copying its machine code. A worker that has it can damage the module: give it only to those
   * that may do whatever this one may. The module stays alive until {@linkcode Module.unshare}.
   */
  share(): SharedModuleToken {
    const { features } = this.#settings;
    const baseline = this.#tierUp?.shareable;
    return baseline === undefined
      ? shareModule(this.#optimized(), this, features)
      : shareModule(this.#compiled, this, features, baseline);
  }

  /**
   * Ends the lifetime extension by {@linkcode Module.share}: no further worker may adopt the module. Workers that have
   * adopted it keep it as long as they need it.
   */
  unshare(): void {
    unshareModule(this.#compiled, this);
    if (this.#tierUp !== undefined) unshareModule(this.#tierUp.current, this);
  }

  /**
   * Returns the module of a token made by {@linkcode Module.share}, in this realm. `options` sets the limits of its
   * instances.
   *
   * Throws TypeError if `token` was not made by a worker of this process, and an Error if the module was unshared and
   * has been released.
   */
  static fromShared(token: SharedModuleToken, options: Pick<EngineOptions, "limits"> = {}): Module {
    const space = realmStore();
    const { module, features, baseline } = adoptModule(space, token, (binary, sharing) => {
      if (compiler === undefined) throw new Bug("A module without code requires a compiler");
      const { compiled, tierUp } = compiler.compile(space, binary, sharing);
      if (tierUp !== undefined) TIER_UPS.set(compiled, tierUp);
      return compiled;
    });
    const tierUp = TIER_UPS.get(module) ??
      (baseline?.replaceable && compiler?.tierUpOf(space, module, baseline));
    return new Module(space, module, {}, settingsOf({ ...options, features }), undefined, tierUp);
  }

  /**
   * Creates a memory with the type of the memory import `name` of `module`. Throws TypeError if there is no such
   * import.
   */
  memoryForImport(module: string, name: string): Memory {
    const { valid, settings: { explicitBounds } } = this.#compiled;
    const entry = valid.imports.find((e) => e.module === module && e.name === name && e.desc.kind === "memory");
    if (entry?.desc.kind !== "memory") throw new TypeError(`The module does not import a memory "${module}" "${name}"`);
    const { type } = entry.desc;
    return new Memory(this.#store.thread.host, type, {
      guarded: !explicitBounds && isGuardable(type),
      maxBytes: this.#settings.limits.maxMemoryPages * PAGE_BYTES,
    });
  }

  /**
   * Serializes the compiled module to an artifact for `Engine.load`, by an engine of the same version with the same
   * options, on the same operating system and a processor with the same instruction sets. Equal modules and options
   * yield equal bytes.
   */
  serialize(): Uint8Array<ArrayBuffer> {
    return serializeModule(this.#optimized(), this.#settings, this.statistics);
  }

  /** The size of the machine code in bytes. */
  get codeSize(): number {
    return (this.#tierUp?.current ?? this.#compiled).image.size;
  }

  /**
   * Creates an isolated instance and runs its start function. `imports` maps module names to objects with the import
   * values.
   *
   * Throws LinkError if an import is missing or has an incompatible type, TrapError if a segment or the start function
   * traps (also if the context's deadline passes or its fuel is used up), and RangeError if a limit is exceeded.
   */
  instantiate<Exports extends object = Readonly<Record<string, ExportValue>>>(
    context: Context = {},
    imports: Imports = {},
  ): Instance<Exports> {
    return this.#make(this.#usableCode(), context, imports);
  }

  /**
   * Creates an instance as `instantiate` does, with a start function that may be suspended: it is called as by
   * `Instance.callAsync`. Rejects with the errors of `instantiate`.
   */
  async instantiateAsync<Exports extends object = Readonly<Record<string, ExportValue>>>(
    context: Context = {},
    imports: Imports = {},
  ): Promise<Instance<Exports>> {
    return new Instance<Exports>(
      await instantiateAsync(this.#store, this.#usableCode(), imports, this.#instanceLimits(context), context),
    );
  }

  /**
   * Creates an instance with the state in `snapshot`, which `Instance.snapshot` returned for an instance of this module
   * in this or another process. No segments and no start function run. `reset` restores this state.
   *
   * Throws WaftError if the bytes are not a snapshot of this module, and the errors of `instantiate`.
   */
  restore<Exports extends object = Readonly<Record<string, ExportValue>>>(
    snapshot: Uint8Array,
    context: Context = {},
    imports: Imports = {},
  ): Instance<Exports> {
    this.#optimized(); // optimized code may assume constant tables, which the snapshot must respect
    const compiled = this.#usableCode();
    return this.#make(compiled, context, imports, readSnapshot(bytesIn(snapshot, "A snapshot"), compiled));
  }

  /**
   * Creates a pool of instances that holds at most `size` (default 16) idle ones. All are instantiated with the same
   * context and imports; the context applies to each instantiation separately.
   */
  pool<Exports extends object = Readonly<Record<string, ExportValue>>>(
    options: { size?: number; context?: Context; imports?: Imports } = {},
  ): InstancePool<Instance<Exports>> {
    requireRecord(options, "The options of a pool");
    requireKnownNames("pool option", options, { size: true, context: true, imports: true });
    const { size = 16, context, imports } = options;
    checkContext(context ?? {});
    return new InstancePool(() => this.instantiate<Exports>({ resettable: true, ...context }, imports), size);
  }

  /**
   * The compiled form that can be instantiated now: with explicit bounds checks if there is no address space for guard
   * pages.
   */
  #usableCode(): CompiledModule {
    if (this.#makeFallback === undefined || hasGuardRoom(this.#store.thread.host)) {
      this.#tierUp?.begin();
      return this.#tierUp?.current ?? this.#compiled;
    }
    if (this.#explicitFallback === undefined) {
      this.#explicitFallback = this.#makeFallback();
      if (this.#readSourceMap !== undefined) this.#explicitFallback.debugPlaces.setSourceMap(this.#readSourceMap);
    }
    return this.#explicitFallback;
  }

  /**
   * Gives the frames of traps the places in the sources that the module's source map names. `read` returns the text of
   * the map at the address in the module, undefined if there is none; it is called at the first trap, and must not
   * throw. Maps in the module itself (`data:` URLs) are found without it. Modules of equal bytes share their code, and
   * with it the map.
   */
  setSourceMap(read: (url: string) => string | undefined): void {
    if (typeof read !== "function") {
      throw new TypeError(`The reader of a source map must be a function, not ${inWords(read)}`);
    }
    this.#readSourceMap = read;
    this.#compiled.debugPlaces.setSourceMap(read);
    this.#explicitFallback?.debugPlaces.setSourceMap(read);
  }

  /** The module with optimized code, compiled now if it only has baseline code. */
  #optimized(): CompiledModule {
    return this.#tierUp?.complete() ?? this.#compiled;
  }

  /**
   * The compiled form for a new instance, for tools that instantiate it themselves.
   *
   * @internal
   */
  get internal(): CompiledModule {
    return this.#usableCode();
  }

  /**
   * The number of frames that have continued in optimized code at a loop header.
   *
   * @internal
   */
  get loopsEntered(): number {
    return this.#tierUp?.loopsEntered ?? 0;
  }

  /**
   * The number of bytes of baseline code whose memory was given back.
   *
   * @internal
   */
  get givenBack(): number {
    return this.#tierUp?.givenBack ?? 0;
  }

  /**
   * Whether the module starts with baseline code that optimized code replaces.
   *
   * @internal
   */
  get isTieringUp(): boolean {
    return this.#tierUp !== undefined;
  }

  #make<Exports extends object>(
    compiled: CompiledModule,
    context: Context,
    imports: Imports,
    restored?: Parameters<typeof instantiate>[5],
  ): Instance<Exports> {
    return new Instance<Exports>(
      instantiate(this.#store, compiled, imports, this.#instanceLimits(context), context, restored),
    );
  }

  /** The limits of a new instance. Throws RangeError if there are too many instances. */
  #instanceLimits(context: Context): Required<InstanceLimits> {
    checkContext(context);
    checkSettings(context);
    const { maxInstances, ...own } = this.#settings.limits;
    if (this.#store.instances.open >= maxInstances) {
      throw new RangeError(`Too many instances: the limit is ${maxInstances}; close some first`);
    }
    const limits = context.limits === undefined ? own : completeLimits(own, context.limits);
    requireStackFence(this.#settings.optimizations, limits);
    return limits;
  }

  #typeName(kind: ExternKind, index: number): string {
    const { valid } = this.#compiled;
    switch (kind) {
      case "func":
        return funcTypeName(valid.funcTypes[index]);
      case "table":
        return valTypeName(valid.tableTypes[index].element);
      case "memory":
        return `${valid.memoryTypes[index].limits.min} pages`;
      case "global":
        return `${valid.globalTypes[index].mutable ? "mut " : ""}${valTypeName(valid.globalTypes[index].type)}`;
      case "tag":
        return funcTypeName(valid.tagTypes[index]);
    }
  }
}

/** The names of the functions among known exports; none where the program does not know the exports. */
export type ExportedFunctionName<Exports> = string extends keyof Exports ? never
  : {
    [Name in keyof Exports & string]: Exports[Name] extends (...args: never[]) => unknown ? Name : never;
  }[keyof Exports & string];

/** Any name, where the program does not know the exports. */
export type UnknownExportName<Exports> = string extends keyof Exports ? string : never;

/** The arguments of an exported function. */
export type ExportArguments<Export> = Export extends (...args: infer Arguments) => unknown ? Arguments : never;

/** The result of an exported function. */
export type ExportResult<Export> = Export extends (...args: never[]) => infer Result ? Result : never;

/**
 * An instance of a module. `Exports` is the type of its exports where the program knows it:
 * `module.instantiate<{ add(a: number, b: number): number }>()`. `call` then checks names and arguments, and knows the
 * results. `waft types MODULE` writes such a type.
 */
export class Instance<Exports extends object = Readonly<Record<string, ExportValue>>> {
  readonly #instance: RuntimeInstance;
  readonly #byName: Map<string, ExportValue> = new Map();
  #exports: Exports | undefined;

  /**
   * Instances are created by modules.
   *
   * @internal
   */
  constructor(instance: RuntimeInstance) {
    this.#instance = instance;
  }

  /**
   * The runtime's instance, for tools in this repository.
   *
   * @internal
   */
  get internal(): RuntimeInstance {
    return this.#instance;
  }

  /** All exports by name: a frozen object without prototype, created on first use. */
  get exports(): Exports {
    if (this.#exports === undefined) {
      const exports: Record<string, ExportValue> = Object.create(null);
      const { module } = this.#instance;
      const entries = module.valid.exports;
      prepareCallIns(entries.flatMap(({ kind, index }) => kind === "func" ? module.funcType(index) : []));
      for (const { name } of entries) exports[name] = this.#export(name)!;
      this.#exports = Object.freeze(exports) as Exports;
    }
    return this.#exports;
  }

  /**
   * Calls the exported function `name` under the limits of `context`. Arguments are converted as in the JavaScript API
   * (an i64 is a bigint). Returns undefined for no result, the value for one, an array for several.
   *
   * Throws TrapError if the code traps (`interrupted` if the context's deadline or processor time passes, `out of
   * fuel`), TypeError if there is no such function or an argument cannot be converted, and the errors of host
   * functions. The instance remains usable.
   */
  call<Name extends ExportedFunctionName<Exports>>(
    context: Context,
    name: Name,
    ...args: ExportArguments<Exports[Name]>
  ): ExportResult<Exports[Name]>;
  /** The same for exports whose types the program does not know: `Result` is what it expects. */
  call<Result = unknown>(context: Context, name: UnknownExportName<Exports>, ...args: unknown[]): Result;
  call(context: Context, name: string, ...args: unknown[]): unknown {
    checkContext(context);
    const value = this.#function(name);
    const { deadline, processorTime, fuel, budget, signal } = context;
    if (
      deadline === undefined && processorTime === undefined && fuel === undefined && budget === undefined &&
      signal === undefined
    ) {
      return value(...args);
    }
    return underControl(this.#instance, context, () => value(...args));
  }

  /**
   * Calls the exported function `name` as `call` does, and waits when a host function returns a promise: the guest is
   * suspended while the event loop runs, and resumes with the value, or with the rejection as an exception. Any number
   * of calls may be in progress, also of one instance, which may be called in any way while a call is suspended.
   *
   * Code of an `interruptible` engine runs in slices of a few milliseconds, so that the event loop runs and the
   * context's signal takes effect. While a call is preempted between two slices, synchronous calls of its instance, and
   * of instances that share state with it, throw an Error, and asynchronous ones wait.
   *
   * Rejects with the errors of `call`, and with the signal's reason if the signal aborts.
   */
  callAsync<Name extends ExportedFunctionName<Exports>>(
    context: Context,
    name: Name,
    ...args: ExportArguments<Exports[Name]>
  ): Promise<ExportResult<Exports[Name]>>;
  /** The same for exports whose types the program does not know: `Result` is what it expects. */
  callAsync<Result = unknown>(context: Context, name: UnknownExportName<Exports>, ...args: unknown[]): Promise<Result>;
  callAsync(context: Context, name: string, ...args: unknown[]): Promise<unknown> {
    try {
      checkContext(context);
      const info = funcInfo(this.#function(name))!;
      return callAsync(instanceOf(info), info.funcIndex, context, args);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Resets everything that the instance defines (memories, tables, globals, segments), and the contents of its objects,
   * to its state after instantiation. Imports are unaffected. Views of its memories stay valid, unless the memory has
   * grown; such views read as zeros afterwards.
   *
   * Throws an Error if the instance is closed or not idle (a call of it is in progress, suspended ones included), if it
   * has a start function and was not instantiated with `resettable`, if it defines a shared memory, or if it shares
   * objects with another instance. Closes the instance and throws RangeError or TrapError if there is no memory.
   */
  reset(): void {
    resetInstance(this.#instance);
  }

  /**
   * Records the current state of everything that the instance defines: `reset` restores it from now on. For instances
   * that are part of a whole, whose memories and tables other instances fill after the instantiation.
   *
   * Throws an Error if the instance is closed or not idle, or if it defines a shared memory.
   */
  checkpoint(): void {
    checkpointInstance(this.#instance);
  }

  /**
   * Serializes the state that the instance defines, for `Module.restore`: its memories, tables, mutable globals and
   * dropped segments. Stack frames are not part of it, so the instance must be idle.
   *
   * Throws an Error that names the state that cannot be saved: imported memories, tables and mutable globals, and
   * references to host values, to objects, or to functions of other instances.
   */
  snapshot(): Uint8Array<ArrayBuffer> {
    return writeSnapshot(this.#instance);
  }

  /**
   * Closes the instance: calls of its exports throw an Error from now on. The pages of its memories are released
   * immediately, unless other instances may use them or its code is running; existing views read as zeros.
   */
  close(): void {
    this.#instance.close();
  }

  #function(name: string): (...args: unknown[]) => unknown {
    const value = this.#export(name);
    if (typeof value === "function") return value;
    if (typeof name !== "string") throw new TypeError(`The name of an export must be a string, not ${inWords(name)}`);
    throw new TypeError(
      value === undefined ? `Unknown export "${name}"` : `The export "${name}" is not a function`,
    );
  }

  #export(name: string): ExportValue | undefined {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const instance = this.#instance;
    const entry = instance.module.exportNamed(name);
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
      return instance.memories[index];
    case "table":
      return ExternTable.of(instance.store, instance.tables[index]);
    case "global":
      return ExternGlobal.of(instance.store, instance.globals[index]);
    case "tag":
      return instance.tags[index];
  }
}

/**
 * Returns an asynchronous form of an exported function: it calls the function as `Instance.callAsync` does, under the
 * limits of `context`. Throws TypeError if `exported` is not an exported function of an instance.
 */
export function promising(
  exported: (...args: never[]) => unknown,
  context: Context = {},
): (...args: unknown[]) => Promise<unknown> {
  const info = funcInfo(exported);
  if (info === undefined) throw new TypeError("Only exported functions of instances can be made asynchronous");
  checkContext(context);
  return (...args) => callAsync(instanceOf(info), info.funcIndex, { ...context }, args);
}

/**
 * Calls an exported function as `Instance.callAsync` does, but reports the end to `done` or `failed` at the moment at
 * which the guest returns. Together with {@linkcode Suspension}, a host can schedule suspended calls itself: unless
 * `preempts`, the guest is never preempted, so that it stops only where a host function suspends it. Calls that name
 * the same `account` share its processor time, in place of the context's.
 *
 * Throws TypeError if `exported` is not an exported function of an instance.
 */
export function startCall(
  exported: (...args: never[]) => unknown,
  context: Context,
  args: readonly unknown[],
  done: (value: unknown) => void,
  failed: (reason: unknown) => void,
  preempts = false,
  account?: ProcessorAccount,
): void {
  const info = funcInfo(exported);
  if (info === undefined) throw new TypeError("Only exported functions of instances can be started");
  checkContext(context);
  startSuspendableCall(instanceOf(info), info.funcIndex, context, args, done, failed, preempts, account);
}

/** The controls that the code of an engine has. */
export interface Controls {
  /** The code enforces deadlines and limits of processor time. */
  readonly interruptible: boolean;
  /** The code counts fuel. */
  readonly fuel: boolean;
}

/**
 * Runs `action` under the limits of `context`, as `Instance.call` runs an export: for host code that makes several
 * calls on behalf of one. `subject` is an exported function of one of the instances that it calls, or an engine, whose
 * modules alone `action` instantiates and calls. Its processor time is charged to `account`, in place of the context's.
 *
 * Throws TypeError if `subject` is neither, and the errors of `Instance.call`.
 */
export function underLimits<T>(
  subject: ((...args: never[]) => unknown) | Controls,
  context: Context,
  action: () => T,
  account?: ProcessorAccount,
): T {
  checkContext(context);
  if (typeof subject !== "function") {
    const { interruptible, fuel } = subject;
    const code = { store: realmStore(), module: { settings: { interruptible, fuel } }, neighbours: () => [] };
    return underControl(code, context, action, account);
  }
  const info = funcInfo(subject);
  if (info === undefined) throw new TypeError("Only exported functions of instances have limits");
  return underControl(instanceOf(info), context, action, account);
}

export { Delivery, Suspension };
