/**
 * Imports of a root component from JavaScript. In: an object with a value per import, in jco's form. Out: items. Names
 * with a version are satisfied by a compatible version, or by the name without a version. Invariant: every import that
 * is missing is reported, with its signature, before code that could call it runs.
 */
import { whenSettled } from "@waft/engine/internal/runtime/suspension";
import { payloadOf } from "../abi/traps.ts";
import { camelCase } from "../abi/names.ts";
import type { Store } from "../async/component_instance.ts";
import { cancelOf, mapCall } from "../async/host_calls.ts";
import type { FuncInst } from "../async/task.ts";
import type { Definition } from "../model/definitions.ts";
import { Module } from "@waft/engine";
import type { ComponentType, Extern, FuncType } from "../model/types.ts";
import { moduleMismatch } from "../validate/core_subtype.ts";
import { moduleTypeOf } from "./known_modules.ts";
import { type ComponentImports, lookUpName, member, rootFunction } from "./host_names.ts";
import type { FuncItem, InstanceItem, Item } from "./items.ts";
import type { HostFunction } from "./lifted_function.ts";
import { makeHostResource } from "./host_resources.ts";
import type { Scope } from "./scope.ts";
import { type DeclaredExport, declaredExports } from "./type_space.ts";
import { functionShape, signature } from "../abi/type_name.ts";

/**
 * The property of an interface's object that knows the types of its functions: it returns the shapes (functionShape) of
 * a function, none for an unknown name. Functions that a component declares with other types are not passed to it.
 */
export const SHAPES: unique symbol = Symbol("shapes");

/** The shapes of the function with a name. */
export type ShapesOf = (name: string) => readonly string[];

type Import = Extract<Definition, { kind: "import" }>;

/** The functions of a component that have the shapes of an interface, by their paths. */
export type CheckedShapes = WeakMap<ShapesOf, Set<string>>;

/** Makes the items of imports, and collects those that are missing. */
export class HostImports {
  readonly missing: string[] = [];
  readonly #imports: ComponentImports;
  readonly #store: Store;
  readonly #checked: CheckedShapes;

  readonly #type: () => ComponentType;

  /**
   * `checked` is that of the component, whose functions have the same types in every instance; `type` is its type.
   */
  constructor(imports: ComponentImports, store: Store, checked: CheckedShapes, type: () => ComponentType) {
    this.#type = type;
    this.#imports = imports;
    this.#store = store;
    this.#checked = checked;
  }

  item(definition: Import, scope: Scope): Item {
    const { name, type } = definition;
    const value = lookUpName(this.#imports, name);
    switch (type.kind) {
      case "func":
        return this.#func(scope.types.func(type.type), rootFunction(name, value, this.#imports), name);
      case "instance":
        return this.#instance(name, value, scope, type.type);
      case "type":
        if (type.eq !== undefined) return { sort: "type", type: scope.types.get(type.eq) };
        return { sort: "type", type: { kind: "resource", id: makeHostResource(name, this.#store) } };
      case "module":
        return this.#module(value, this.#type().imports.get(name), name);
      default:
        this.missing.push(`a ${type.kind} "${name}", which the host cannot provide`);
        return { sort: "instance", exports: new Map() };
    }
  }

  #instance(name: string, value: unknown, scope: Scope, type: number): InstanceItem {
    const entry = scope.types.get(type);
    const exports = new Map<string, Item>();
    if (entry.kind !== "expr" || entry.expr.kind !== "instance") return { sort: "instance", exports };
    const namespace = typeof value === "object" && value !== null ? value as Record<string, unknown> : undefined;
    const declared = declaredExports(
      entry.expr.declarations,
      entry.scope,
      (name) => makeHostResource(name, this.#store),
    );
    this.#addExports([name], declared, namespace, exports);
    return { sort: "instance", exports };
  }

  #addExports(
    names: readonly string[],
    declared: readonly DeclaredExport[],
    namespace: Record<string, unknown> | undefined,
    exports: Map<string, Item>,
  ): void {
    const path = names.join("/");
    for (const { name, kind, func, type, instance } of declared) {
      if (func !== undefined) {
        const implementation = namespace === undefined ? undefined : member(name, namespace);
        this.#checkShape(func, name, path, namespace);
        exports.set(name, this.#func(func, implementation, `${path}#${name}`));
      } else if (type !== undefined) exports.set(name, { sort: "type", type });
      else if (instance !== undefined) {
        const nested = new Map<string, Item>();
        const value = namespace?.[camelCase(name)] ?? namespace?.[name];
        this.#addExports([...names, name], instance, value as Record<string, unknown> | undefined, nested);
        exports.set(name, { sort: "instance", exports: nested });
      } else if (kind === "module") {
        const value = namespace?.[camelCase(name)] ?? namespace?.[name];
        exports.set(name, this.#module(value, externAt(this.#type().imports, [...names, name]), `${path}#${name}`));
      }
    }
  }

  /** Reports a function that its interface does not have with this type: its implementation does not expect others. */
  #checkShape(type: FuncType, name: string, path: string, namespace: object | undefined): void {
    const shapesOf = (namespace as { readonly [SHAPES]?: ShapesOf } | undefined)?.[SHAPES];
    if (shapesOf === undefined) return;
    const checked = this.#checked.get(shapesOf) ?? new Set();
    this.#checked.set(shapesOf, checked);
    if (checked.has(`${path}#${name}`)) return;
    const shapes = shapesOf(name);
    if (shapes.includes(functionShape(type))) return void checked.add(`${path}#${name}`);
    const expected = shapes.length === 0 ? "no such function" : shapes.join(" or ");
    this.missing.push(`${path}#${name}: ${signature(type)}; the interface has ${expected}`);
  }

  /** A core module that another component exported. */
  #module(value: unknown, expected: Extern | undefined, path: string): Item {
    if (!(value instanceof Module) || expected?.kind !== "module") {
      this.missing.push(`${path}: a core module`);
      return { sort: "instance", exports: new Map() };
    }
    const actual = moduleTypeOf(value);
    const mismatch = actual === undefined
      ? "only core modules that a component exports can be passed on"
      : moduleMismatch(actual, expected.type);
    if (mismatch !== undefined) this.missing.push(`${path}: a core module: ${mismatch}`);
    return { sort: "core module", module: value };
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

/** The import, or the export of an imported instance, with a path of names. */
function externAt(externs: ReadonlyMap<string, Extern>, [name, ...rest]: readonly string[]): Extern | undefined {
  const found = externs.get(name);
  if (rest.length === 0) return found;
  return found?.kind === "instance" ? externAt(found.type.exports, rest) : undefined;
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
    const { limits } = store;
    let over = false;
    const ended = (action: () => void) => {
      if (over) return;
      over = true;
      store.hostCalls--;
      try {
        store.runFor(limits, action);
      } catch (error) {
        store.trapped ??= { error };
      }
      store.pump();
    };
    // Throws here if the value cannot be awaited; otherwise reports later.
    whenSettled(
      value,
      (value) => ended(() => resolve(value)),
      (error: unknown) =>
        ended(() => {
          throw error;
        }),
    );
    store.hostCalls++;
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
