/**
 * Components and their instances: {@linkcode compileBinary} → `instantiate` → `exports`. In: a component in binary form
 * and an engine, which compiles its core modules. Out: instances whose exports are JavaScript values in jco's form.
 * Invariant: a component is compiled once; instances share its code and nothing else.
 */
import {
  ArtifactError,
  type Context,
  type Engine,
  type Instance as CoreInstance,
  InstancePool,
  LinkError,
  type Module,
  underLimits,
} from "@waft/engine";
import { Store } from "./async/component_instance.ts";
import { CallLimits } from "./async/call_limits.ts";
import { HOST_FUNCTIONS } from "./async/core_function.ts";
import { hostBytesFor } from "./async/host_quota.ts";
import { runReady } from "./async/task.ts";
import { damaged, joinArtifact, splitArtifact } from "./artifact.ts";
import { decodeComponent } from "./binary/decode.ts";
import { callAwaited, exportedFunction, type HostExports, hostExports } from "./link/host_exports.ts";
import { type CheckedShapes, HostImports } from "./link/host_imports.ts";
import { type ComponentImports, lookUpName } from "./link/host_names.ts";
import type { FuncItem, Item } from "./link/items.ts";
import { ADAPTER_FEATURES, type AdapterPolicy } from "./link/adapter.ts";
import { type Environment, instantiateComponent, Quota } from "./link/instantiate.ts";
import { Scope } from "./link/scope.ts";
import { rememberModule } from "./link/known_modules.ts";
import { callSuspendable } from "./link/suspendable_call.ts";
import { ComponentInstance as Instance } from "./async/component_instance.ts";
import { featuresOf } from "./link/component_features.ts";
import { withinModule } from "./validate/core_types.ts";
import { validateComponent } from "./validate/validate_component.ts";
import type { Component as DecodedComponent, Definition } from "./model/definitions.ts";
import type { ComponentType, FuncType } from "./model/types.ts";

/** A compiled component, which can be instantiated any number of times. Made by `compileComponent`. */
export interface Component {
  /**
   * Creates an instance. `imports` maps the names of imports to objects with functions (camelCase) and classes
   * (PascalCase) per interface, or to functions. A version may be newer than the one that the component names.
   * `context` limits the start functions of the core modules; its `limits` apply to each core instance.
   *
   * Throws LinkError that names all missing imports with their signatures, and TrapError if a start function traps.
   */
  instantiate<Exports extends object = HostExports>(
    context?: Context,
    imports?: ComponentImports,
  ): ComponentInstance<Exports>;

  /**
   * Creates a pool of instances that holds at most `size` (default 16) idle ones, which are reset and reused. All are
   * instantiated with the same context and imports.
   */
  pool(options?: ComponentPoolOptions): InstancePool<ComponentInstance>;

  /**
   * Returns an artifact: the component with the machine code of all its core modules, for `loadComponent` with an
   * engine with the same options, in this or another process.
   */
  serialize(): Uint8Array<ArrayBuffer>;
}

/** The options of `Component.pool`. */
export interface ComponentPoolOptions {
  /** The greatest number of idle instances; 16 by default. */
  size?: number;
  /** The context of every instantiation. */
  context?: Context;
  /** The imports of all instances. */
  imports?: ComponentImports;
}

/** An instance of a component. `Exports` is the type of its exports where the program knows it. */
export interface ComponentInstance<Exports extends object = HostExports> {
  /** Exports by name: an object per interface, under its whole name and its short one, and functions in camelCase. */
  readonly exports: Exports;

  /**
   * Calls an exported function under the limits of `context`. `name` is that of a function of the component, or of an
   * interface and one of its functions: `wasi:cli/run@0.2.0#run`. The version may be older than the exported one.
   *
   * Where the component uses async, the limits apply to all tasks of the call, and reaching one ends the instance.
   *
   * Throws ComponentError for the error case of a `result`, TrapError if the code traps, and TypeError if there is no
   * such function, or for a limit that the code does not enforce.
   */
  call<Result = unknown>(context: Context, name: string, ...args: unknown[]): Result;

  /**
   * Calls an exported function as `call` does, and waits when a function of the host returns a promise, although the
   * functions are not asynchronous in WIT: the component's frames are suspended meanwhile. Calls of one instance are
   * made one after the other. With an `interruptible` engine, the code runs in slices of a few milliseconds.
   *
   * Rejects with the errors of `call`, and with the signal's reason if the signal aborts.
   */
  callAsync<Result = unknown>(context: Context, name: string, ...args: unknown[]): Promise<Result>;

  /** Whether there is a function `name`, as `call` takes it. */
  has(name: string): boolean;

  /**
   * Restores the state after instantiation: memories, tables and globals of all core instances, and the tables of
   * handles. Resources of the host that the component still owns are disposed of; objects of its own resources can no
   * longer be used. An instance that has trapped is usable again.
   *
   * Throws an Error if the instance was not instantiated with `resettable`, is closed or is not idle: a call or a task
   * is in progress.
   */
  reset(): void;

  /**
   * Closes the instance: calls of its exports throw from now on, the pages of its memories are released, and resources
   * of the host that it still owns are disposed of.
   */
  close(): void;
}

type CoreModule = Extract<Definition, { kind: "core module" }>;

/** The core modules of a component and of those nested in it, in order of definition. */
function* coreModules(component: DecodedComponent): Generator<CoreModule> {
  for (const definition of component.definitions) {
    if (definition.kind === "core module") yield definition;
    else if (definition.kind === "component") yield* coreModules(definition.component);
  }
}

/** The implementation of {@linkcode Component}. */
class CompiledComponent implements Component {
  readonly #engine: Engine;
  readonly #decoded: DecodedComponent;
  readonly #modules = new Map<Uint8Array, Module>();
  /** Compiled adapters by their text, for all instances. */
  readonly #adapters = new Map<string, Module>();
  readonly #features: { readonly usesAsync: boolean; readonly needsTasks: boolean };
  readonly #adapterPolicy: AdapterPolicy | undefined;
  readonly #checkedShapes: CheckedShapes = new WeakMap();
  readonly #bytes: Uint8Array;
  readonly #instantiated: Environment["instantiated"];

  /**
   * `load` gives the core modules, in order of definition; without it they are compiled. `instantiated` is called for
   * each instance of a core module.
   */
  constructor(
    engine: Engine,
    bytes: Uint8Array,
    decoded: DecodedComponent,
    callsBefore: number,
    load?: (module: CoreModule) => Module,
    instantiated?: Environment["instantiated"],
  ) {
    this.#instantiated = instantiated;
    this.#engine = engine;
    this.#bytes = bytes;
    this.#decoded = decoded;
    const fuses = callsBefore < Infinity && ADAPTER_FEATURES.every((name) => engine.features[name]);
    const hasRoom = () => engine.hasSpareInstances;
    this.#adapterPolicy = fuses ? { compile: (text) => this.#adapter(text), callsBefore, hasRoom } : undefined;
    this.#features = featuresOf(decoded);
    const modules = [...coreModules(decoded)];
    const programBytes = modules.reduce((sum, module) => sum + module.bytes.length, 0);
    for (const module of modules) {
      const { bytes, offset } = module;
      const compiled = load?.(module) ?? withinModule(offset, () => engine.compilePart(bytes, programBytes));
      rememberModule(compiled, bytes);
      this.#modules.set(bytes, compiled);
    }
  }

  /** The type of the component, which linking needs only for imported core modules. */
  #typeOfAll(): ComponentType {
    const { features } = this.#engine;
    return this.#type ??= validateComponent(this.#decoded, { features, bodies: false }).type;
  }
  #type: ComponentType | undefined;

  /** The core modules, in order of definition. */
  #compiled(): Module[] {
    return [...coreModules(this.#decoded)].map(({ bytes }) => this.#modules.get(bytes)!);
  }

  serialize(): Uint8Array<ArrayBuffer> {
    const modules = this.#compiled().map((module) => module.serialize());
    return joinArtifact({ component: this.#bytes, modules });
  }

  /** The artifacts of the core modules, for the cache; undefined while one of them is still to be optimized. */
  codeForCache(): Uint8Array | undefined {
    const modules = this.#compiled();
    if (modules.length === 0 || modules.some((module) => module.isTieringUp)) return undefined;
    return joinArtifact({ component: new Uint8Array(0), modules: modules.map((module) => module.serialize()) });
  }

  #adapter(text: string): Module {
    let module = this.#adapters.get(text);
    if (module === undefined) this.#adapters.set(text, module = this.#engine.compile(text));
    return module;
  }

  instantiate<Exports extends object = HostExports>(
    context: Context = {},
    imports: ComponentImports = {},
  ): ComponentInstance<Exports> {
    const { usesAsync, needsTasks } = this.#features;
    const { resettable = false, ...coreContext } = context;
    const { maxMemoryPages = this.#engine.limits.maxMemoryPages } = coreContext.limits ?? {};
    const store = new Store(usesAsync, needsTasks, runReady, hostBytesFor(maxMemoryPages));
    const host = new HostImports(imports, store, this.#checkedShapes, () => this.#typeOfAll());
    const environment: Environment = {
      store,
      quota: new Quota(),
      context: withoutLimits(coreContext),
      moduleOf: (bytes) => this.#modules.get(bytes)!,
      startProbe: (parameter) => this.#adapter(`(module (import "" "f" (func (param ${parameter}))))`),
      adapters: this.#adapterPolicy,
      instantiated: this.#instantiated,
    };
    this.#checkImports(host, store);
    try {
      // The limits apply to all core instances together.
      const items = underLimits(this.#engine, context, () =>
        instantiateComponent(
          environment,
          { component: this.#decoded, scope: undefined, parent: undefined },
          (definition, scope) => {
            const item = host.item(definition, scope);
            // An import may follow definitions that refer to instances, which are not there before.
            requireAll(host);
            return item;
          },
        ));
      if (resettable) store.checkpoint();
      return new LinkedInstance<Exports>(items, store);
    } catch (error) {
      store.close();
      throw error;
    }
  }

  pool({ size = 16, context = {}, imports = {} }: ComponentPoolOptions = {}): InstancePool<ComponentInstance> {
    return new InstancePool(() => this.instantiate({ ...context, resettable: true }, imports), size);
  }

  /** Throws unless every import is there. Imports refer to types only, so they can be resolved before anything runs. */
  #checkImports(host: HostImports, store: Store): void {
    const scope = new Scope(new Instance(store, undefined), undefined);
    for (const definition of this.#decoded.definitions) {
      if (definition.kind === "import") scope.add(host.item(definition, scope));
      else if (definition.kind === "type" && definition.type.kind !== "resource") scope.types.define(definition.type);
      else if (definition.kind === "alias" && definition.alias.kind === "export" && definition.alias.sort === "type") {
        const item = scope.instances[definition.alias.instance]?.exports.get(definition.alias.name);
        if (item === undefined) break;
        scope.add(item);
      } else if (definition.kind !== "core module" && definition.kind !== "core type") break;
    }
    requireAll(host);
  }
}

/** Throws LinkError if imports are missing. */
function requireAll({ missing }: HostImports): void {
  if (missing.length === 0) return;
  const list = missing.map((entry) => `\n  ${entry}`).join("");
  throw new LinkError(`The component's imports are missing:${list}`, {}, missing);
}

/** The fields of a context that limit a call. */
const LIMITS = ["deadline", "processorTime", "fuel", "signal"] as const;

/** The settings of a context. */
function withoutLimits(context: Context): Context {
  const settings = { ...context };
  for (const name of LIMITS) delete settings[name];
  return settings;
}

function hasLimits(context: Context): boolean {
  return LIMITS.some((name) => context[name] !== undefined);
}

/** The names that an instance remembers, with the functions that they have led to. */
const MAX_KNOWN_NAMES = 64;

/** The implementation of {@linkcode ComponentInstance}. */
class LinkedInstance<Exports extends object> implements ComponentInstance<Exports> {
  readonly #items: ReadonlyMap<string, Item>;
  readonly #store: Store;
  /** Functions by the names that calls have used. */
  readonly #found = new Map<string, FuncItem | null>();
  #exports: Exports | undefined;

  constructor(items: ReadonlyMap<string, Item>, store: Store) {
    this.#items = items;
    this.#store = store;
  }

  get exports(): Exports {
    return this.#exports ??= hostExports(this.#items, this.#store) as Exports;
  }

  call<Result = unknown>(context: Context, name: string, ...args: unknown[]): Result {
    const item = this.#function(name);
    const store = this.#store;
    const core = item.lifted?.core;
    const call = (limits?: CallLimits) => exportedFunction(item, store, limits)(...args) as Result;
    if (core === undefined || (!hasLimits(context) && HOST_FUNCTIONS.has(core))) return call();
    if (!store.usesAsync || !hasLimits(context)) return underLimits(core, context, () => call());
    return call(new CallLimits(core, context));
  }

  async callAsync<Result = unknown>(context: Context, name: string, ...args: unknown[]): Promise<Result> {
    const item = this.#function(name);
    const core = item.lifted?.core;
    if (core === undefined || HOST_FUNCTIONS.has(core)) return await this.call(context, name, ...args);
    if (!this.#store.usesAsync) return await callSuspendable(item, this.#store, context, args) as Result;
    if (item.type.async) return await this.call(context, name, ...args);
    const limits = hasLimits(context) ? new CallLimits(core, context) : undefined;
    return await callAwaited(item, this.#store, limits, args) as Result;
  }

  has(name: string): boolean {
    return this.#find(name) !== undefined;
  }

  reset(): void {
    this.#store.reset();
  }

  close(): void {
    this.#store.close();
  }

  /** Whether no call or task is in progress. */
  get isIdle(): boolean {
    return this.#store.isIdle;
  }

  /** The types of all exported functions, by the names that `call` takes. */
  functionTypes(): Map<string, FuncType> {
    const types = new Map<string, FuncType>();
    const add = (items: ReadonlyMap<string, Item>, prefix: string) => {
      for (const [name, item] of items) {
        if (item.sort === "func") types.set(prefix + name, item.type);
        else if (item.sort === "instance" && prefix === "") add(item.exports, `${name}#`);
      }
    };
    add(this.#items, "");
    return types;
  }

  /** The type of the function `name`, as `call` takes it. */
  functionType(name: string): FuncType | undefined {
    return this.#find(name)?.type;
  }

  #function(name: string): FuncItem {
    const item = this.#find(name);
    if (item === undefined) throw new TypeError(`There is no exported function "${name}"`);
    return item;
  }

  #find(name: string): FuncItem | undefined {
    const known = this.#found.get(name);
    if (known !== undefined) return known ?? undefined;
    const [first, second] = name.split("#");
    const item = lookUpName(Object.fromEntries(this.#items), first) as Item | undefined;
    const found = second === undefined ? item : item?.sort === "instance" ? item.exports.get(second) : undefined;
    const func = found?.sort === "func" ? found : undefined;
    // Each function has many names, with other versions.
    if (this.#found.size < MAX_KNOWN_NAMES) this.#found.set(name, func ?? null);
    return func;
  }
}

/** The types of all exported functions of an instance, by the names that `call` takes. */
export function functionTypes(instance: ComponentInstance): Map<string, FuncType> {
  if (!(instance instanceof LinkedInstance)) throw new TypeError("Not an instance of a component");
  return instance.functionTypes();
}

/** The type of an exported function, whose name is one that `call` takes; undefined if there is none. */
export function functionType(instance: ComponentInstance, name: string): FuncType | undefined {
  if (!(instance instanceof LinkedInstance)) throw new TypeError("Not an instance of a component");
  return instance.functionType(name);
}

/** Whether no call or task of an instance is in progress, so that it can be called again. */
export function isIdle(instance: ComponentInstance): boolean {
  return instance instanceof LinkedInstance && instance.isIdle;
}

/** The linking of a component's instances. */
export interface LinkOptions {
  /**
   * The calls of a function of another component that go through JavaScript before an adapter is compiled for it;
   * Infinity for no adapters.
   */
  readonly callsBeforeAdapter?: number;
  /** Debugs the component's core modules. */
  readonly coreDebugger?: CoreDebugger;
}

/** A debugger, which has forms of its own of core modules. */
export interface CoreDebugger {
  /** The form that is compiled in place of a core module; it imports and exports all that the module does. */
  formOf(bytes: Uint8Array): Uint8Array;
  /** Called for each new instance of such a form; `bytes` are those of the module. Start functions are up to it. */
  instantiated(bytes: Uint8Array, instance: CoreInstance, tasks: DebuggedTasks | undefined): void;
}

/** The tasks of a component with asynchronous functions, for its debugger. */
export interface DebuggedTasks {
  /** Stops the running thread, and with it all others, until `until`; returns what its host function must return. */
  hold(until: Promise<void>): unknown;
  /** Calls `switched` at each switch of threads, with the thread that continues. */
  listen(switched: (thread: object) => void): void;
}

/** Functions that are called less often are not worth the milliseconds that an adapter takes to compile. */
const CALLS_BEFORE_ADAPTER = 16;

/** Adapters consume fuel, and JavaScript does not: where that can be observed, the first call is like all others. */
function callsBefore({ fuel, deterministic }: Engine): number {
  return fuel || deterministic ? 0 : CALLS_BEFORE_ADAPTER;
}

/**
 * Decodes and validates a component in binary form and compiles its core modules, as `compileComponent` does. The cache
 * of the engine holds the code of the whole component once all of its modules are optimized: it is stored under the
 * hash of the component's bytes, which are known to be valid then.
 */
export function compileBinary(
  engine: Engine,
  bytes: Uint8Array,
  { callsBeforeAdapter = callsBefore(engine), coreDebugger }: LinkOptions = {},
): Component {
  const decoded = decodeComponent(bytes);
  if (coreDebugger !== undefined) return debugged(engine, bytes, decoded, callsBeforeAdapter, coreDebugger);
  const entry = engine.cacheEntry(bytes);
  const stored = entry?.read();
  if (stored !== undefined) {
    try {
      return fromArtifacts(engine, bytes, decoded, callsBeforeAdapter, splitArtifact(stored).modules, true);
    } catch (error) {
      if (!(error instanceof ArtifactError)) throw error;
      entry?.remove();
    }
  }
  // The engine validates bodies when it compiles them, and knows those in its cache to be valid.
  validateComponent(decoded, { features: engine.features, bodies: false });
  const component = new CompiledComponent(engine, bytes, decoded, callsBeforeAdapter);
  const code = entry === undefined ? undefined : component.codeForCache();
  if (code !== undefined) entry?.write(code);
  return component;
}

/** A component whose core modules are compiled in the forms of a debugger. */
function debugged(
  engine: Engine,
  bytes: Uint8Array,
  decoded: DecodedComponent,
  callsBeforeAdapter: number,
  coreDebugger: CoreDebugger,
): Component {
  validateComponent(decoded, { features: engine.features });
  const { usesAsync } = featuresOf(decoded);
  const sources = new Map<Module, Uint8Array>();
  const load = ({ bytes }: CoreModule): Module => {
    const module = engine.compile(coreDebugger.formOf(bytes));
    sources.set(module, bytes);
    return module;
  };
  return new CompiledComponent(engine, bytes, decoded, callsBeforeAdapter, load, (module, instance, store) => {
    const source = sources.get(module);
    if (source !== undefined) coreDebugger.instantiated(source, instance, usesAsync ? debuggedTasks(store) : undefined);
  });
}

function debuggedTasks(store: Store): DebuggedTasks {
  return {
    hold: (until) => store.hold(until),
    listen(switched) {
      const { onThread } = store;
      store.onThread = (thread) => {
        onThread?.(thread);
        switched(thread);
      };
    },
  };
}

/** A component of the artifacts of its core modules, in order of definition. Throws ArtifactError if one is missing. */
function fromArtifacts(
  engine: Engine,
  bytes: Uint8Array,
  decoded: DecodedComponent,
  callsBeforeAdapter: number,
  artifacts: readonly Uint8Array[],
  isCached: boolean,
): CompiledComponent {
  if ([...coreModules(decoded)].length !== artifacts.length) throw damaged();
  const next = artifacts.values();
  return new CompiledComponent(engine, bytes, decoded, callsBeforeAdapter, (module) => {
    const artifact = next.next().value as Uint8Array;
    return isCached ? engine.loadCachedPart(artifact, module.bytes) : engine.load(artifact);
  });
}

/**
 * Loads an artifact that `Component.serialize` returned for an engine with the same options. Nothing is compiled. The
 * bytes must not change while the component is in use.
 *
 * An artifact is machine code. Throws ArtifactError if it is damaged, or made by another version, for another machine
 * or with other options. These checks do not authenticate it: load only artifacts from sources whose programs you
 * would run.
 */
export function loadComponent(engine: Engine, artifact: Uint8Array | ArrayBuffer): Component {
  const bytes = artifact instanceof ArrayBuffer ? new Uint8Array(artifact) : artifact;
  const { component, modules } = splitArtifact(bytes);
  const decoded = decodeComponent(component);
  validateComponent(decoded, { features: engine.features, bodies: false });
  return fromArtifacts(engine, component, decoded, callsBefore(engine), modules, false);
}
