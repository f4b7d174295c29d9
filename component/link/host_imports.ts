/**
 * Imports of a root component from JavaScript. In: an object with a value per import, in jco's form. Out: items. Names
 * with a version are satisfied by a compatible version, or by the name without a version. Invariant: every import that
 * is missing is reported, with its signature, before code that could call it runs.
 */
import { payloadOf } from "../abi/traps.ts";
import { camelCase, pascalCase } from "../abi/names.ts";
import type { Store } from "../async/component_instance.ts";
import { cancelOf, mapCall } from "../async/host_calls.ts";
import type { FuncInst } from "../async/task.ts";
import type { Definition } from "../model/definitions.ts";
import { versionTrack } from "../model/names.ts";
import type { FuncType } from "../model/types.ts";
import type { FuncItem, HostFunction, InstanceItem, Item } from "./items.ts";
import { makeHostResource } from "./host_resources.ts";
import type { Scope } from "./scope.ts";
import { type DeclaredExport, declaredExports } from "./type_space.ts";
import { signature } from "../abi/type_name.ts";

/** Imports by name: an object per interface, a function, or a class for a resource. */
export type ComponentImports = Readonly<Record<string, unknown>>;

type Import = Extract<Definition, { kind: "import" }>;

/** The value for the import `name`. */
export function lookUpName(imports: ComponentImports, name: string): unknown {
  if (Object.hasOwn(imports, name)) return imports[name];
  const at = name.lastIndexOf("@");
  if (at < 0) return undefined;
  const plain = name.slice(0, at);
  const track = versionTrack(name.slice(at + 1));
  for (const key of Object.keys(imports)) {
    if (key.startsWith(`${plain}@`) && versionTrack(key.slice(plain.length + 1)) === track) return imports[key];
  }
  return Object.hasOwn(imports, plain) ? imports[plain] : undefined;
}

/** Makes the items of imports, and collects those that are missing. */
export class HostImports {
  readonly missing: string[] = [];
  readonly #imports: ComponentImports;
  readonly #store: Store;

  constructor(imports: ComponentImports, store: Store) {
    this.#imports = imports;
    this.#store = store;
  }

  item(definition: Import, scope: Scope): Item {
    const { name, type } = definition;
    const value = lookUpName(this.#imports, name);
    switch (type.kind) {
      case "func":
        return this.#func(scope.types.func(type.type), this.#rootFunction(name, value), name);
      case "instance":
        return this.#instance(name, value, scope, type.type);
      case "type":
        if (type.eq !== undefined) return { sort: "type", type: scope.types.get(type.eq) };
        return { sort: "type", type: { kind: "resource", id: makeHostResource(name) } };
      default:
        this.missing.push(`a ${type.kind} "${name}", which the host cannot provide`);
        return { sort: "instance", exports: new Map() };
    }
  }

  #rootFunction(name: string, value: unknown): HostFunction | undefined {
    if (typeof value === "function") return value as HostFunction;
    if (typeof value === "object" && value !== null && "default" in value && typeof value.default === "function") {
      return value.default as HostFunction;
    }
    return member(name, this.#imports);
  }

  #instance(name: string, value: unknown, scope: Scope, type: number): InstanceItem {
    const entry = scope.types.get(type);
    const exports = new Map<string, Item>();
    if (entry.kind !== "expr" || entry.expr.kind !== "instance") return { sort: "instance", exports };
    const namespace = typeof value === "object" && value !== null ? value as Record<string, unknown> : undefined;
    const declared = declaredExports(entry.expr.declarations, entry.scope, makeHostResource);
    this.#addExports(name, declared, namespace, exports);
    return { sort: "instance", exports };
  }

  #addExports(
    path: string,
    declared: readonly DeclaredExport[],
    namespace: Record<string, unknown> | undefined,
    exports: Map<string, Item>,
  ): void {
    for (const { name, func, type, instance } of declared) {
      if (func !== undefined) {
        const implementation = namespace === undefined ? undefined : member(name, namespace);
        exports.set(name, this.#func(func, implementation, `${path}#${name}`));
      } else if (type !== undefined) exports.set(name, { sort: "type", type });
      else if (instance !== undefined) {
        const nested = new Map<string, Item>();
        const value = namespace?.[camelCase(name)] ?? namespace?.[name];
        this.#addExports(`${path}/${name}`, instance, value as Record<string, unknown> | undefined, nested);
        exports.set(name, { sort: "instance", exports: nested });
      }
    }
  }

  #func(type: FuncType, implementation: HostFunction | undefined, path: string): FuncItem {
    if (implementation === undefined) {
      this.missing.push(`${path}: ${signature(type)}`);
      return { sort: "func", type, start: () => () => {}, host: () => undefined };
    }
    const host = type.result?.kind === "result" ? withResult(implementation) : implementation;
    return { sort: "func", type, host, plain: implementation, start: hostStart(host, type, this.#store) };
  }
}

/** The function of an interface, a class or an object that implements the function `name`. */
function member(name: string, namespace: Readonly<Record<string, unknown>>): HostFunction | undefined {
  const match = /^\[(constructor|method|static)\]([^.]*)(?:\.(.*))?$/.exec(name);
  if (match === null) {
    const value = namespace[camelCase(name)] ?? namespace[name];
    return typeof value === "function" ? value.bind(namespace) as HostFunction : undefined;
  }
  const [, kind, resource, method = ""] = match;
  const type = namespace[pascalCase(resource)];
  if (typeof type !== "function") return undefined;
  const key = camelCase(method);
  if (kind === "constructor") return (...args) => Reflect.construct(type, args) as object;
  const holder = (kind === "static" ? type : type.prototype) as Record<string, unknown>;
  const found = holder[key];
  if (typeof found !== "function") return undefined;
  if (kind === "static") return found.bind(type) as HostFunction;
  return (self, ...args) => (self as Record<string, HostFunction>)[key](...args);
}

/** Maps return values and thrown errors to the cases of a `result`. */
function withResult(implementation: HostFunction): HostFunction {
  const ok = (val: unknown) => ({ tag: "ok", val });
  const err = (error: unknown) => ({ tag: "err", val: payloadOf(error) });
  return (...args) => {
    let value: unknown;
    try {
      value = implementation(...args);
    } catch (error) {
      return err(error);
    }
    return value instanceof Promise ? mapCall(value, ok, err) : ok(value);
  };
}

/** The function of the host as one that may block. */
function hostStart(host: HostFunction, type: FuncType, store: Store): FuncInst {
  return (onStart, onResolve) => {
    const value = host(...onStart());
    const resolve = (value: unknown) => onResolve(type.result === undefined ? [] : [value]);
    if (!(value instanceof Promise)) {
      resolve(value);
      return () => {};
    }
    store.hostCalls++;
    let over = false;
    const ended = (action: () => void) => {
      if (over) return;
      over = true;
      store.hostCalls--;
      try {
        action();
      } catch (error) {
        store.trapped ??= { error };
      }
      store.pump();
    };
    value.then(
      (value) => ended(() => resolve(value)),
      (error: unknown) =>
        ended(() => {
          throw error;
        }),
    );
    return () => {
      const cancel = cancelOf(value);
      if (over || cancel === undefined) return;
      over = true;
      store.hostCalls--;
      cancel();
      onResolve(undefined);
    };
  };
}
