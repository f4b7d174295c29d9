/**
 * Inputs of the conformance rows: a `WebAssembly`, the host's own or waft's, and helpers that use it. waft's parser
 * compiles the text of the modules for both.
 *
 * Invariant: an outcome is plain data, so that the outcomes of two implementations can be compared; functions, errors
 * and objects of the API are described, not included.
 */
import { NewEngine } from "@waft/engine";

/** A namespace whose members a row may call in any way, including incorrect ones. */
// deno-lint-ignore no-explicit-any
export type Namespace = any;

/** A row: its name, and a function of a namespace. */
export type Row = readonly [name: string, run: (W: Namespace) => unknown];

const parser = NewEngine();
const known = new Map<string, Uint8Array<ArrayBuffer>>();

/** The binary form of a module's text. */
export function wasm(text: string): Uint8Array<ArrayBuffer> {
  let bytes = known.get(text);
  if (bytes === undefined) known.set(text, bytes = new Uint8Array(parser.parse(text).bytes));
  return bytes;
}

/** The exports of a new instance of `text`. */
// deno-lint-ignore no-explicit-any
export function run(W: Namespace, text: string, imports?: object): any {
  return new W.Instance(new W.Module(wasm(text)), imports).exports;
}

/** Describes the error that `action` throws: its class name, and whether it is an instance of that class. */
export function thrown(W: Namespace, action: () => unknown): string {
  try {
    return `no error: ${describe(W, action())}`;
  } catch (error) {
    return describeError(W, error);
  }
}

/** An error in words. */
export function describeError(W: Namespace, error: unknown): string {
  for (const name of ["CompileError", "LinkError", "RuntimeError"]) {
    if (error instanceof W[name]) return `WebAssembly.${name} ${(error as Error).name} ${error instanceof Error}`;
  }
  for (const kind of [TypeError, RangeError, SyntaxError]) {
    if (error instanceof kind) return kind.name;
  }
  if (error instanceof W.Exception) return "WebAssembly.Exception";
  return `thrown ${describe(W, error)}`;
}

/** A value as plain data. */
export function describe(W: Namespace, value: unknown): unknown {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "symbol") return String(value);
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : Number.isFinite(value) ? value : String(value);
  if (typeof value === "function") return `function ${value.name}/${value.length}`;
  if (typeof value !== "object" || value === null) return value === undefined ? "undefined" : value;
  if (Array.isArray(value)) return value.map((item) => describe(W, item));
  const name = Object.prototype.toString.call(value);
  if (value instanceof Error) return describeError(W, value);
  if (name !== "[object Object]" || Object.getPrototypeOf(value) === null) {
    return Object.getPrototypeOf(value) === null ? { null: describeEntries(W, value) } : name;
  }
  return describeEntries(W, value);
}

function describeEntries(W: Namespace, value: object): object {
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, describe(W, item)]));
}

/** The attributes of a property. */
export function attributes(object: object, key: PropertyKey): unknown {
  const found = Object.getOwnPropertyDescriptor(object, key);
  if (found === undefined) return "absent";
  const kind = found.get === undefined ? `value writable:${found.writable}` : `accessor set:${found.set !== undefined}`;
  return `${kind} enumerable:${found.enumerable} configurable:${found.configurable}`;
}
