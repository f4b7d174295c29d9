/**
 * Instantiation of components: carries out the definitions in order. In: a decoded component, its arguments by name and
 * the compiled core modules. Out: the items that it exports. Invariant: a definition sees only earlier definitions, so
 * instances form a tree without cycles.
 */
import type { Context, Instance, Module } from "@waft/engine";
import { LinkError, UnsupportedError } from "@waft/engine";
import type { Canon, CanonOption } from "../model/canon.ts";
import { collectOptions } from "../model/canon.ts";
import type { Alias, Component, CoreInstanceExpr, Definition, InstanceExpr } from "../model/definitions.ts";
import { leaving } from "../abi/core_exceptions.ts";
import { trap } from "../abi/traps.ts";
import type { ChannelType } from "../async/channel.ts";
import { ComponentInstance, enterAll, leaveAll, type Store } from "../async/component_instance.ts";
import { RuntimeResource } from "../async/entries.ts";
import { type CoreFunction, HOST_FUNCTIONS } from "../async/core_function.ts";
import { adapterFor, type AdapterPolicy } from "./adapter.ts";
import { builtin, type CanonScope } from "./canon.ts";
import type { ComponentItem, InstanceItem, Item } from "./items.ts";
import { usesTags } from "./known_modules.ts";
import { liftFunction } from "./lift.ts";
import { lowerFunction } from "./lower.ts";
import { RuntimeOptions } from "./options.ts";
import { type CoreExports, Scope } from "./scope.ts";

/** Core and component instances of one instantiation, and definitions that it carries out. */
const MAX_INSTANCES = 10_000;
const MAX_STEPS = 5_000_000;
/** Calls between components that get an adapter; the others go through JavaScript, with the same effects. */
const MAX_ADAPTERS = 2_000;
/** Component instances inside each other. */
const MAX_DEPTH = 200;

/**
 * Counts the work of an instantiation: components that instantiate others several times, which do the same, make
 * exponentially many instances.
 */
export class Quota {
  #instances = 0;
  #steps = 0;
  #adapters = 0;

  /** Counts an instance. Throws RangeError if there are too many. */
  addInstance(): void {
    if (++this.#instances > MAX_INSTANCES) {
      throw new RangeError(`A component can have at most ${MAX_INSTANCES} instances of components and modules`);
    }
  }

  /** The result of `make`, an adapter if there may be another one. */
  adapter<T>(make: () => T | undefined): T | undefined {
    if (this.#adapters >= MAX_ADAPTERS) return undefined;
    const adapter = make();
    if (adapter !== undefined) this.#adapters++;
    return adapter;
  }

  /** Counts a definition. Throws RangeError if there are too many. */
  addStep(): void {
    if (++this.#steps > MAX_STEPS) {
      throw new RangeError(`The instances of a component can have at most ${MAX_STEPS} definitions`);
    }
  }
}

/** State that all instances of one instantiation's tree share. */
export interface Environment {
  readonly store: Store;
  readonly quota: Quota;
  readonly context: Context;
  /** A module that imports a function with one parameter and no results, by which the type of a function is checked. */
  startProbe(parameter: "i32" | "i64"): Module;
  /** The means of making adapters; undefined if all calls go through JavaScript. */
  readonly adapters: AdapterPolicy | undefined;
  /** The compiled form of a core module, by its bytes. */
  moduleOf(bytes: Uint8Array): Module;
  /** Called for each instance of a core module before others can use it. */
  readonly instantiated: ((module: Module, instance: Instance, store: Store) => void) | undefined;
}

/** Finds the argument for an import. */
type Arguments = (
  definition: Extract<Definition, { kind: "import" }>,
  scope: Scope,
) => Item;

/** Instantiates `item`. Returns its exports. */
export function instantiateComponent(
  environment: Environment,
  item: Pick<ComponentItem, "component" | "scope" | "parent">,
  args: Arguments,
): ReadonlyMap<string, Item> {
  environment.quota.addInstance();
  const instance = new ComponentInstance(environment.store, item.parent);
  if (instance.depth > MAX_DEPTH) {
    throw new RangeError(`Component instances are nested too deeply: at most ${MAX_DEPTH} levels are possible`);
  }
  const scope = new Scope(instance, item.scope);
  new Linker(environment, scope, args).run(item.component);
  return scope.exports;
}

const FUNC_OPTIONS = ["realloc", "postReturn", "callback"] as const;

class Linker {
  readonly #environment: Environment;
  readonly #scope: Scope;
  readonly #args: Arguments;

  constructor(environment: Environment, scope: Scope, args: Arguments) {
    this.#environment = environment;
    this.#scope = scope;
    this.#args = args;
  }

  run(component: Component): void {
    for (const definition of component.definitions) this.#define(definition);
  }

  #define(definition: Definition): void {
    this.#environment.quota.addStep();
    const scope = this.#scope;
    switch (definition.kind) {
      case "core module":
        scope.coreModules.push(this.#environment.moduleOf(definition.bytes));
        return;
      case "core instance":
        scope.coreInstances.push(this.#coreInstance(definition.expr));
        return;
      case "core type":
        return;
      case "component":
        scope.components.push({
          sort: "component",
          component: definition.component,
          scope,
          parent: scope.instance,
        });
        return;
      case "instance":
        scope.instances.push(this.#instance(definition.expr));
        return;
      case "alias":
        this.#alias(definition.alias);
        return;
      case "type":
        this.#type(definition.type);
        return;
      case "canon":
        this.#canon(definition.canon);
        return;
      case "import":
        scope.add(this.#args(definition, scope));
        return;
      case "export": {
        const item = scope.item(definition.sort, definition.index);
        scope.exports.set(definition.name, item);
        scope.add(item);
        return;
      }
      case "start":
      case "value":
        throw new UnsupportedError("component values", "components with values are not supported");
    }
  }

  #coreInstance(expr: CoreInstanceExpr): CoreExports {
    const scope = this.#scope;
    if (expr.kind === "exports") {
      const exports: Record<string, unknown> = Object.create(null);
      for (const { name, sort, index } of expr.exports) exports[name] = scope.core[sort as "func"][index];
      return exports;
    }
    this.#environment.quota.addInstance();
    const imports: Record<string, Record<string, unknown>> = Object.create(null);
    for (const { name, instance } of expr.args) imports[name] = scope.coreInstances[instance];
    const { context, store, instantiated } = this.#environment;
    const module = scope.coreModules[expr.module];
    scope.instance.throws ||= usesTags(module);
    return this.#running(() => {
      const instance = module.instantiate(context, imports);
      store.coreInstances.push(instance);
      instantiated?.(module, instance, store);
      return instance.exports;
    });
  }

  /** Runs the start function of a core module: its instance is entered, and its imports may be called. */
  #running<T>(action: () => T): T {
    const entering = this.#scope.instance.enteringSet(undefined).filter(({ mayEnter }) => mayEnter);
    enterAll(entering);
    try {
      const result = action();
      leaveAll(entering);
      return result;
    } catch (error) {
      throw leaving(error);
    }
  }

  #instance(expr: InstanceExpr): InstanceItem {
    const scope = this.#scope;
    if (expr.kind === "exports") {
      const exports = new Map(expr.exports.map(({ name, sort, index }) => [name, scope.item(sort, index)]));
      return { sort: "instance", exports };
    }
    const args = new Map(expr.args.map(({ name, sort, index }) => [name, scope.item(sort, index)]));
    const { component, scope: outer } = scope.components[expr.component];
    const target = { component, scope: outer, parent: scope.instance };
    const exports = instantiateComponent(this.#environment, target, ({ name }) => {
      const item = args.get(name);
      if (item === undefined) throw new LinkError(`The argument "${name}" of a component is missing`);
      return item;
    });
    return { sort: "instance", exports };
  }

  #alias(alias: Alias): void {
    const scope = this.#scope;
    switch (alias.kind) {
      case "export": {
        const item = scope.instances[alias.instance].exports.get(alias.name);
        if (item === undefined) throw new LinkError(`An instance does not export "${alias.name}"`);
        scope.add(item);
        return;
      }
      case "core export": {
        const sort = alias.sort.slice("core ".length) as "func";
        scope.core[sort].push(scope.coreInstances[alias.instance][alias.name]);
        return;
      }
      case "outer":
        if (alias.sort !== "core type") scope.add(scope.outer(alias.count).item(alias.sort, alias.index));
    }
  }

  #type(expr: Extract<Definition, { kind: "type" }>["type"]): void {
    const { types } = this.#scope;
    if (expr.kind !== "resource") return types.define(expr);
    const { instance } = this.#scope;
    const resource = new RuntimeResource("resource", instance);
    const dtor = expr.dtor === undefined ? undefined : this.#scope.coreFunc(expr.dtor);
    resource.destroy = destructor(instance, dtor);
    types.add({ kind: "resource", id: resource });
  }

  #canon(canon: Canon): void {
    const scope = this.#scope;
    switch (canon.name) {
      case "lift": {
        const options = this.#options(canon.options);
        scope.funcs.push(liftFunction(scope.coreFunc(canon.func), scope.types.func(canon.type), options));
        return;
      }
      case "lower": {
        const item = scope.funcs[canon.func];
        const { quota, adapters } = this.#environment;
        const options = this.#options(canon.options);
        const slow = () => lowerFunction(item, item.type, options);
        const adapter = adapters === undefined
          ? undefined
          : quota.adapter(() => adapterFor(item, options, adapters, slow));
        scope.core.func.push(adapter ?? slow());
        return;
      }
      default: {
        const core = builtin(canon, this.#canonScope());
        HOST_FUNCTIONS.add(core);
        scope.core.func.push(core);
      }
    }
  }

  #canonScope(): CanonScope {
    const { instance, types, core } = this.#scope;
    return {
      instance,
      resource: (type) => types.resource(type),
      channel: (type) => types.value(type) as ChannelType,
      value: (reference) => types.value(reference),
      options: (options) => this.#options(options),
      memory: (index) => core.memory[index],
      table: (index) => core.table[index],
      startFunction: (element, parameter) => this.#startFunction(element, parameter),
    };
  }

  #startFunction(element: unknown, parameter: "i32" | "i64"): CoreFunction {
    if (typeof element !== "function") trap("the table has no function at this index");
    const probe = this.#environment.startProbe(parameter);
    try {
      probe.instantiate({}, { "": { f: element } });
    } catch (error) {
      if (error instanceof LinkError) trap("the function of a thread has another type");
      throw error;
    }
    return element as CoreFunction;
  }

  #options(options: readonly CanonOption[]): RuntimeOptions {
    const scope = this.#scope;
    const given = collectOptions(options);
    const [realloc, postReturn, callback] = FUNC_OPTIONS.map((name): CoreFunction | undefined => {
      const index = given[name];
      return index === undefined ? undefined : scope.coreFunc(index);
    });
    return new RuntimeOptions(scope.instance, {
      encoding: given.encoding,
      isAsync: given.async,
      memory: given.memory === undefined ? undefined : scope.core.memory[given.memory],
      realloc,
      postReturn,
      callback,
    });
  }
}

/** Runs `action`. If it traps inside an adapter, whose code after the call is skipped, its thread no longer runs. */
function keepingThread(store: Store, action: () => void): void {
  const before = store.current;
  try {
    action();
  } catch (error) {
    store.current = before;
    throw leaving(error);
  }
}

/** Destroys a resource of `instance`: enters it, as a call of its destructor does. */
function destructor(
  instance: ComponentInstance,
  dtor: CoreFunction | undefined,
): (rep: number, caller: ComponentInstance | undefined) => void {
  const { store } = instance;
  if (dtor !== undefined && store.usesAsync) {
    const type = { kind: "func", async: false, params: [{ name: "rep", type: { kind: "u32" } }] } as const;
    const options = new RuntimeOptions(instance, {
      encoding: "utf8",
      isAsync: false,
      memory: undefined,
      realloc: undefined,
      postReturn: undefined,
      callback: undefined,
    });
    const { start } = liftFunction(dtor, type, options);
    return (rep, caller) => void start(() => [rep], () => {}, caller);
  }
  return (rep, caller) => {
    const entering = instance.enteringSet(caller);
    enterAll(entering);
    if (dtor !== undefined) keepingThread(store, () => dtor(rep));
    leaveAll(entering);
  };
}
