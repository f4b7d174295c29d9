/**
 * Exports of a root component for JavaScript, in jco's form. In: the exported items. Out: an object with an object per
 * interface, a function per function and a class per resource. Functions of type `async` return promises. Invariant:
 * functions are made on first use.
 */
import { ComponentError } from "../abi/traps.ts";
import { camelCase, pascalCase } from "../abi/names.ts";
import type { CallLimits } from "../async/call_limits.ts";
import type { Store } from "../async/component_instance.ts";
import type { OnResolve } from "../async/task.ts";
import type { ComponentType, Extern, FuncType } from "../model/types.ts";
import { moveRep, type ResourceClass, resourceClass } from "./host_resources.ts";
import type { FuncItem, InstanceItem, Item } from "./items.ts";
import type { HostFunction } from "./lifted_function.ts";

/** The exports of a component by name: functions, an object per interface, and a class per resource. */
export type HostExports = Record<string, unknown>;

/** The exports of a component. */
export function hostExports(items: ReadonlyMap<string, Item>, store: Store): HostExports {
  const exports: HostExports = Object.create(null);
  const classes = new Map<string, ResourceClass>();
  for (const [name, item] of items) {
    if (item.sort === "type" && item.type.kind === "resource" && item.type.id.owner !== undefined) {
      item.type.id.name = name;
      classes.set(name, resourceClass(item.type.id));
      exports[pascalCase(name)] = classes.get(name);
    }
  }
  for (const [name, item] of items) {
    if (item.sort === "func") addFunction(exports, classes, name, item, store);
    else if (item.sort === "core module") define(exports, name, () => item.module);
    else if (item.sort === "instance") addInstance(exports, name, item, store);
  }
  return exports;
}

/** The name of a constructor, a method or a static function of a resource: its kind, the resource, and its own name. */
const RESOURCE_FUNCTION = /^\[(constructor|method|static)\]([^.]*)(?:\.(.*))?$/;

/** The properties of `hostExports` for a component of this type. */
export function exportNames(type: ComponentType): string[] {
  const own = new Set(type.defined.map(({ id }) => id));
  const isClass = (extern: Extern) =>
    extern.kind === "type" && extern.type.kind === "resource" && own.has(extern.type.id);
  const externs = [...type.exports];
  const classes = new Set(externs.flatMap(([name, extern]) => isClass(extern) ? [name] : []));
  const names = new Set([...classes].map(pascalCase));
  for (const [name, { kind }] of externs) {
    if (kind === "module") names.add(name);
    else if (kind === "instance") names.add(name).add(shortName(name));
    else if (kind === "func" && !classes.has(RESOURCE_FUNCTION.exec(name)?.[2] ?? "")) {
      names.add(camelCase(name)).add(name);
    }
  }
  return [...names];
}

/** The last part of an interface's name, as jco offers it too. */
function shortName(name: string): string {
  return camelCase(/^[^/]*\/([^@]*)/.exec(name)?.[1] ?? name);
}

function addInstance(exports: HostExports, name: string, item: InstanceItem, store: Store): void {
  let made: HostExports | undefined;
  const get = () => made ??= hostExports(item.exports, store);
  define(exports, name, get);
  if (!(shortName(name) in exports)) define(exports, shortName(name), get);
}

/** Defines a property that is computed on first use. */
function define(object: object, name: string, get: () => unknown): void {
  Object.defineProperty(object, name, {
    enumerable: true,
    configurable: true,
    get: () => {
      const value = get();
      Object.defineProperty(object, name, { enumerable: true, configurable: true, value });
      return value;
    },
  });
}

function addFunction(
  exports: HostExports,
  classes: ReadonlyMap<string, ResourceClass>,
  name: string,
  item: FuncItem,
  store: Store,
): void {
  const make = () => exportedFunction(item, store);
  const match = RESOURCE_FUNCTION.exec(name);
  const type = match === null ? undefined : classes.get(match[2]);
  if (match === null || type === undefined) {
    define(exports, camelCase(name), make);
    if (camelCase(name) !== name) define(exports, name, make);
    return;
  }
  const [, kind, resource, method = ""] = match;
  if (kind === "static") define(type, camelCase(method), make);
  else if (kind === "method") {
    let call: HostFunction | undefined;
    Object.defineProperty(type.prototype, camelCase(method), {
      configurable: true,
      writable: true,
      value(this: object, ...args: unknown[]) {
        return (call ??= make())(this, ...args);
      },
    });
  } else exports[pascalCase(resource)] = withConstructor(type, make);
}

/** A class with the prototype of `type` whose constructor calls an exported function. */
function withConstructor(type: ResourceClass, make: () => HostFunction): unknown {
  let call: HostFunction | undefined;
  const made = class {
    constructor(...args: unknown[]) {
      moveRep((call ??= make())(...args) as object, this);
    }
  };
  Object.defineProperty(made, "name", { value: type.name });
  // Static functions that follow the constructor are defined later.
  Object.setPrototypeOf(made, type);
  Object.setPrototypeOf(made.prototype, type.prototype);
  return made;
}

/** The JavaScript function for an exported function; `limits` are those of its calls, if they are tasks. */
export function exportedFunction(item: FuncItem, store: Store, limits?: CallLimits): HostFunction {
  if (item.plain !== undefined) return item.plain;
  if (store.usesAsync) return taskFunction(item, store, limits);
  const call = item.lifted!.direct(undefined);
  return item.type.result?.kind === "result" ? (...args) => unwrap(call(...args)) : call;
}

/** Returns the value of `ok`; throws that of `err`. */
function unwrap(value: unknown): unknown {
  const { tag, val } = value as { tag: string; val: unknown };
  if (tag === "err") throw new ComponentError(val);
  return val;
}

/** A function whose calls are tasks. */
function taskFunction(item: FuncItem, store: Store, limits?: CallLimits): HostFunction {
  const { type } = item;
  return type.async
    ? (...args) => new Promise((resolve, reject) => startPromise(item, store, limits, args, resolve, reject))
    : (...args) => callNow(item, store, limits, args);
}

/**
 * Starts a task for the host, under the limits of its call. `awaits` lets a synchronous function wait for promises of
 * the host.
 */
function startTask(
  item: FuncItem,
  store: Store,
  limits: CallLimits | undefined,
  args: readonly unknown[],
  onResolve: OnResolve,
  awaits = false,
): void {
  const start = () => {
    store.hostLimits = limits;
    store.hostAwaits = awaits;
    try {
      item.start(() => args, onResolve, undefined);
    } finally {
      store.hostLimits = undefined;
      store.hostAwaits = false;
    }
  };
  store.enterHost(limits === undefined ? start : () => limits.run(start));
}

/** The result of a function for JavaScript: a `result` is the value of `ok`, or thrown. */
export function unwrapResult(type: FuncType, value: unknown): unknown {
  return type.result?.kind === "result" ? unwrap(value) : value;
}

function callNow(
  item: FuncItem,
  store: Store,
  limits: CallLimits | undefined,
  args: readonly unknown[],
): unknown {
  let values: readonly unknown[] | undefined;
  let failure: { readonly error: unknown } | undefined;
  startTask(item, store, limits, args, (given, abandoned) => {
    values = given;
    failure = abandoned;
  });
  store.pumpLater();
  if (failure !== undefined) throw failure.error;
  return unwrapResult(item.type, values?.[0]);
}

/** Calls a synchronous function whose component uses async, and waits for promises of the host. */
export function callAwaited(
  item: FuncItem,
  store: Store,
  limits: CallLimits | undefined,
  args: readonly unknown[],
): Promise<unknown> {
  return store.inTurn(() => new Promise((resolve, reject) => startPromise(item, store, limits, args, resolve, reject)));
}

/** Starts a call that ends later. */
function startPromise(
  item: FuncItem,
  store: Store,
  limits: CallLimits | undefined,
  args: readonly unknown[],
  resolve: (value: unknown) => void,
  reject: (reason: unknown) => void,
): void {
  let unwatch = () => {};
  const fail = (error: unknown) => {
    unwatch();
    reject(error);
  };
  const call = { reject: fail };
  store.calls.add(call);
  const onResolve: OnResolve = (values, abandoned) => {
    store.calls.delete(call);
    unwatch();
    if (abandoned !== undefined) return reject(abandoned.error);
    try {
      resolve(unwrapResult(item.type, values?.[0]));
    } catch (error) {
      reject(error);
    }
  };
  try {
    startTask(item, store, limits, args, onResolve, !item.type.async);
  } catch (error) {
    store.calls.delete(call);
    reject(error);
    return;
  }
  if (limits !== undefined && store.calls.has(call)) unwatch = limits.watch((error) => store.expire(error));
  store.pump();
}
