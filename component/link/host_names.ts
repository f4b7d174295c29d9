/**
 * Names of imports in JavaScript objects, in jco's form. In: the imports that a program gives, and names in WIT. Out:
 * interfaces and functions. Invariant: a version is satisfied by a compatible version, or by the name without one.
 */
import { camelCase, pascalCase } from "../abi/names.ts";
import { versionTrack } from "../model/names.ts";
import type { HostFunction } from "./lifted_function.ts";

/** Imports by name: an object per interface, a function, or a class for a resource. */
export type ComponentImports = Readonly<Record<string, unknown>>;

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

/** A function of the host's object or class; undefined for those that all objects or functions of JavaScript have. */
function functionIn(holder: object, key: string): HostFunction | undefined {
  const value = Reflect.get(holder, key) as unknown;
  const isBuiltIn = key === "constructor" || value === Reflect.get(Object.prototype, key) ||
    value === Reflect.get(Function.prototype, key);
  return typeof value === "function" && !isBuiltIn ? value as HostFunction : undefined;
}

/**
 * The function of an interface, a class or an object that implements the function `name`. Functions of resources may
 * also have their names in WIT, `[method]counter.next`; methods then get their resource as first argument.
 */
export function member(name: string, namespace: Readonly<Record<string, unknown>>): HostFunction | undefined {
  const match = /^\[(constructor|method|static)\]([^.]*)(?:\.(.*))?$/.exec(name);
  if (match === null) {
    const found = functionIn(namespace, camelCase(name)) ?? functionIn(namespace, name);
    return found?.bind(namespace) as HostFunction | undefined;
  }
  const direct = functionIn(namespace, name);
  if (direct !== undefined) return direct;
  const [, kind, resource, method = ""] = match;
  const type = namespace[pascalCase(resource)];
  if (typeof type !== "function") return undefined;
  const key = camelCase(method);
  if (kind === "constructor") return (...args) => Reflect.construct(type, args) as object;
  const found = functionIn(kind === "static" ? type : type.prototype as object, key);
  if (found === undefined) return undefined;
  if (kind === "static") return found.bind(type) as HostFunction;
  return (self, ...args) => (self as Record<string, HostFunction>)[key](...args);
}

/** The function of the world that implements the import `name`, whose value is `value`. */
export function rootFunction(name: string, value: unknown, imports: ComponentImports): HostFunction | undefined {
  if (typeof value === "function") return value as HostFunction;
  if (typeof value === "object" && value !== null && "default" in value && typeof value.default === "function") {
    return value.default as HostFunction;
  }
  return member(name, imports);
}
