/**
 * Compiled modules and their instances, as embedders see them. In: a CompiledModule, compiled (engine.ts), loaded or shared, and the settings of its
 * engine. Invariant: nothing of the compiler is imported, so that a module that was compiled before runs without it.
 */
import type { TierUp } from "./tier_up.ts";
import { callAsync } from "./runtime/suspension/async_call.ts";
import type { CompiledModule } from "./runtime/code/compiled_module.ts";
import type { Tag } from "./runtime/exceptions/exception.ts";
import { ExternGlobal, ExternTable } from "./runtime/instance/externals.ts";
import { funcInfo } from "./runtime/instance/func.ts";
import { type Instance as RuntimeInstance, instanceOf } from "./runtime/instance/instance.ts";
import { resetInstance } from "./runtime/instance/instance_state.ts";
import { inWords, requireKnownNames, requireRecord } from "./base/arguments.ts";
import { checkContext, checkSettings, underControl } from "./runtime/suspension/call_limits.ts";
import { type Imports, type InstanceLimits, instantiate, instantiateAsync } from "./runtime/instance/instantiate.ts";
import { InstancePool } from "./runtime/instance/instance_pool.ts";
import { Memory } from "./runtime/memory/memory.ts";
import { hasGuardRoom } from "./runtime/memory/memory_range.ts";
import { adoptModule, type SharedModuleToken, shareModule, unshareModule } from "./artifact/shared_module.ts";
import { serializeModule } from "./artifact/write_module.ts";
import { readSnapshot, writeSnapshot } from "./runtime/snapshot/snapshot.ts";
import type { Store } from "./runtime/instance/store.ts";
import { realmStore } from "./runtime/realm_store.ts";
import {
  completeLimits,
  type Context,
  type EngineOptions,
  requireStackFence,
  type Settings,
  settingsOf,
} from "./settings.ts";
import type { ExternKind } from "./wasm/module.ts";
import { funcTypeName, I64, valTypeName } from "./wasm/types.ts";

/** What modules import and export. */
export type ExportKind = "func" | "table" | "memory" | "global" | "tag";

/** One entry of a module's imports. */
export interface ImportDescriptor {
  /** The first of its two names. */
  module: string;
  /** The second of its two names. */
  name: string;
  /** What has to be given. */
  kind: ExportKind;
  /** The type in the text format's words, such as `[i32] -> [i64]` or `i32`. */
  type: string;
}

/** One entry of a module's exports. */
export interface ExportDescriptor {
  /** Its name, unique among the module's exports. */
  name: string;
  /** What it is. */
  kind: ExportKind;
  /** The type in the text format's words. */
  type: string;
}

/** What an instance exports under a name. */
export type ExportValue = ((...args: unknown[]) => unknown) | Memory | ExternTable | ExternGlobal | Tag;

/** A compiled module: instantiate it as often as wanted. */
export class Module {
  readonly #settings: Settings;
  readonly #store: Store;
  readonly #compiled: CompiledModule;
  readonly #statistics: Readonly<Record<string, number>>;
  /** Makes the form of the module with explicit bounds, for when there is no address space for guards. */
  readonly #makeFallback: (() => CompiledModule) | undefined;
  #explicitFallback: CompiledModule | undefined;
  /** What replaces baseline code by optimized code; undefined where the code is final. */
  readonly #tierUp: TierUp | undefined;

  /**
   * Modules are made by engines.
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
    this.#makeFallback = makeFallback;
    this.#settings = settings;
    this.#store = space;
    this.#compiled = compiled;
    this.#statistics = statistics;
  }

  /** How often each optimization applied while compiling, by key. */
  get statistics(): Readonly<Record<string, number>> {
    return this.#tierUp?.statistics ?? this.#statistics;
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
    const entry = this.#compiled.exportNamed(name);
    return entry?.kind === "func" ? this.#compiled.valid.funcTypes[entry.index] : undefined;
  }

  /**
   * Plain data to send to Workers, each of which makes the same module of it with {@linkcode Module.fromShared}: the machine code is used
   * where it is. The module stays alive until {@linkcode Module.unshare}.
   */
  share(): SharedModuleToken {
    return shareModule(this.#optimized(), this.#settings.features);
  }

  /** No further Worker will ask for the module; those that have it keep it for as long as they need it. */
  unshare(): void {
    unshareModule(this.#tierUp?.current ?? this.#compiled);
  }

  /**
   * The module that `token` stands for, in this realm. `options` are those of its instances: limits.
   *
   * Throws TypeError for what `share` has not made, an Error when the module was unshared and is gone.
   */
  static fromShared(token: SharedModuleToken, options: Pick<EngineOptions, "limits"> = {}): Module {
    const space = realmStore();
    const compiled = adoptModule(space, token);
    return new Module(space, compiled, {}, settingsOf({ ...options, features: token.features }));
  }

  /** A memory as the import `name` of namespace `module` asks for. Throws TypeError when there is no such import. */
  memoryForImport(module: string, name: string): Memory {
    const { valid, explicitBounds } = this.#compiled;
    const entry = valid.imports.find((e) => e.module === module && e.name === name && e.desc.kind === "memory");
    if (entry?.desc.kind !== "memory") throw new TypeError(`The module does not import a memory "${module}" "${name}"`);
    const { type } = entry.desc;
    return new Memory(this.#store.thread.host, type, {
      guarded: !explicitBounds && type.limits.address !== I64,
      maxPages: this.#settings.limits.maxMemoryPages,
    });
  }

  /**
   * The compiled module as bytes, for `Engine.load` of an engine with the same options: the same version of waft, the same system, a processor
   * that can what this one can. The same module and options give the same bytes.
   */
  serialize(): Uint8Array<ArrayBuffer> {
    return serializeModule(this.#optimized(), this.#settings, this.statistics);
  }

  /** Size of the machine code in bytes. */
  get codeSize(): number {
    return (this.#tierUp?.current ?? this.#compiled).image.size;
  }

  /**
   * Makes an isolated instance and runs its start function.
   *
   * Throws LinkError when an import is missing or does not match, TrapError when a segment or the start function traps (also
   * when the context's deadline passes or its fuel runs out), RangeError when a limit is exceeded.
   */
  instantiate(context: Context = {}, imports: Imports = {}): Instance {
    return this.#make(this.#usableCode(), context, imports);
  }

  /**
   * Makes an instance as `instantiate` does, with a start function that may wait: it is called as `Instance.callAsync` calls. Rejects with what
   * `instantiate` throws.
   */
  async instantiateAsync(context: Context = {}, imports: Imports = {}): Promise<Instance> {
    return new Instance(
      await instantiateAsync(this.#store, this.#usableCode(), imports, this.#instanceLimits(context), context),
    );
  }

  /**
   * Makes an instance whose state is that of `snapshot`, which `Instance.snapshot` of this module returned, in this process or another. No
   * segment and no start function runs; `reset` goes back to this state.
   *
   * Throws WaftError for bytes that are no snapshot of this module, and what `instantiate` throws.
   */
  restore(snapshot: Uint8Array, context: Context = {}, imports: Imports = {}): Instance {
    this.#optimized(); // which may take tables for constant that a snapshot must then not change
    const compiled = this.#usableCode();
    return this.#make(compiled, context, imports, readSnapshot(snapshot, compiled));
  }

  /**
   * A pool of instances, of which at most `size` (default 16) wait for use. All are made with the same context, which applies to each
   * instantiation anew, and imports.
   */
  pool(options: { size?: number; context?: Context; imports?: Imports } = {}): InstancePool<Instance> {
    requireRecord(options, "The options of a pool");
    requireKnownNames("option of a pool", options, { size: true, context: true, imports: true });
    const { size = 16, context, imports } = options;
    checkContext(context ?? {});
    return new InstancePool(() => this.instantiate({ resettable: true, ...context }, imports), size);
  }

  /** The form of the module for whose memories there is address space. */
  #usableCode(): CompiledModule {
    if (this.#makeFallback === undefined || hasGuardRoom(this.#store.thread.host)) {
      this.#tierUp?.begin();
      return this.#tierUp?.current ?? this.#compiled;
    }
    return this.#explicitFallback ??= this.#makeFallback();
  }

  /** The module with optimized code, compiled now if it has baseline code so far. */
  #optimized(): CompiledModule {
    return this.#tierUp?.complete() ?? this.#compiled;
  }

  /**
   * Does the module start with baseline code that optimized code replaces?
   *
   * @internal
   */
  get isTieringUp(): boolean {
    return this.#tierUp !== undefined;
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
    checkContext(context);
    checkSettings(context);
    const { maxInstances, ...own } = this.#settings.limits;
    if (this.#store.openInstances >= maxInstances) {
      throw new RangeError(`Too many instances: the limit of ${maxInstances} is reached; close some`);
    }
    const limits = context.limits === undefined ? own : completeLimits(own, context.limits);
    requireStackFence(this.#settings.optimizations, limits);
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

  /**
   * Instances are made by modules.
   *
   * @internal
   */
  constructor(instance: RuntimeInstance) {
    this.#instance = instance;
  }

  /**
   * The runtime's own view of the instance, for tools inside this repository.
   *
   * @internal
   */
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
    checkContext(context);
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
      checkContext(context);
      const info = funcInfo(this.#function(name))!;
      return callAsync(instanceOf(info), info.funcIndex, context, args);
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
    resetInstance(this.#instance);
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
    if (typeof name !== "string") throw new TypeError(`The name of an export must be a string, not ${inWords(name)}`);
    throw new TypeError(
      value === undefined ? `There is no export "${name}"` : `The export "${name}" is not a function`,
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
  checkContext(context);
  return (...args) => callAsync(instanceOf(info), info.funcIndex, { ...context }, args);
}
