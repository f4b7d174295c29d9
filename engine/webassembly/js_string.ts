/**
 * Strings of JavaScript as builtins of modules (JavaScript API, "JS String Builtins"): imports from "wasm:js-string", and constants whose import
 * names are the strings themselves. In: the options of the compilation and a module's imports. Out: functions and globals to link; an
 * InvalidError when an import has another type than the builtin.
 *
 * One row per builtin: its type in short (e externref, s the same but not null, a array of i16, i i32), and what it does. A string that is
 * none, or an index out of bounds, traps.
 */
import { InvalidError } from "../errors.ts";
import { realmStore } from "../engine.ts";
import { OBJECT } from "../gc_layout.ts";
import type { Module as WasmModule } from "../wasm/module.ts";
import {
  EXTERNREF,
  type FuncType,
  HEAP,
  heapOf,
  I16,
  I32,
  isNullable,
  isRef,
  refType,
  type ValType,
} from "../wasm/types.ts";
import { runtimeError } from "./errors.ts";

/** What the options of a compilation provide. */
export interface StringOptions {
  /** Are the builtins there? */
  builtins: boolean;
  /** The module name of constants, if any. */
  constants: string | undefined;
}

export const NO_STRINGS: StringOptions = { builtins: false, constants: undefined };

function text(value: unknown): string {
  if (typeof value !== "string") throw runtimeError("illegal cast");
  return value;
}

/** The elements `from` to `to` of an array of i16, in place until the next allocation. */
function units(array: unknown, from: number, to: number): Uint16Array {
  const store = realmStore();
  const address = store.heap.references.addressOf(array);
  if (address === undefined) throw runtimeError("null array reference");
  const { host } = store.thread;
  const length = new Uint32Array(host.view(address + OBJECT.LENGTH, 4))[0]!;
  if (from > to || to > length) throw runtimeError("out of bounds array access");
  return from === to ? NONE : new Uint16Array(host.view(address + OBJECT.FIELDS + from * 2, (to - from) * 2));
}

const NONE = new Uint16Array(0);
/** How many arguments String.fromCharCode is given at once. */
const CHUNK = 4096;

function fromUnits(array: unknown, start: number, end: number): string {
  const codes = units(array, start >>> 0, end >>> 0);
  let made = "";
  for (let at = 0; at < codes.length; at += CHUNK) made += String.fromCharCode(...codes.subarray(at, at + CHUNK));
  return made;
}

function intoUnits(value: unknown, array: unknown, start: number): number {
  const string = text(value);
  const from = start >>> 0;
  const codes = units(array, from, from + string.length);
  for (let i = 0; i < string.length; i++) codes[i] = string.charCodeAt(i);
  return string.length;
}

function at(value: unknown, index: number): string {
  const string = text(value);
  if (index >>> 0 >= string.length) throw runtimeError("string index out of bounds");
  return string;
}

function fromCodePoint(code: number): string {
  if (code >>> 0 > 0x10ffff) throw runtimeError("invalid code point");
  return String.fromCodePoint(code >>> 0);
}

function substring(value: unknown, start: number, end: number): string {
  const string = text(value);
  const from = start >>> 0;
  const to = end >>> 0;
  return from > to || from > string.length ? "" : string.substring(from, to);
}

function equals(a: unknown, b: unknown): number {
  if (a !== null) text(a);
  if (b !== null) text(b);
  return a === b ? 1 : 0;
}

function compare(a: unknown, b: unknown): number {
  const first = text(a);
  const second = text(b);
  return first === second ? 0 : first < second ? -1 : 1;
}

const BUILTINS: Readonly<Record<string, readonly [type: string, call: (...args: never[]) => unknown]>> = {
  cast: ["e>s", text],
  test: ["e>i", (value: unknown) => typeof value === "string" ? 1 : 0],
  fromCharCodeArray: ["aii>s", fromUnits],
  intoCharCodeArray: ["eai>i", intoUnits],
  fromCharCode: ["i>s", (code: number) => String.fromCharCode(code)],
  fromCodePoint: ["i>s", fromCodePoint],
  charCodeAt: ["ei>i", (value: unknown, index: number) => at(value, index).charCodeAt(index >>> 0)],
  codePointAt: ["ei>i", (value: unknown, index: number) => at(value, index).codePointAt(index >>> 0)],
  length: ["e>i", (value: unknown) => text(value).length],
  concat: ["ee>s", (a: unknown, b: unknown) => text(a) + text(b)],
  substring: ["eii>s", substring],
  equals: ["ee>i", equals],
  compare: ["ee>i", compare],
};

const STRING = refType(false, HEAP.extern);

function letterOf(module: WasmModule, type: ValType): string {
  if (type === I32) return "i";
  if (type === EXTERNREF) return "e";
  if (type === STRING) return "s";
  const composite = isRef(type) && isNullable(type) ? module.types[heapOf(type)]?.composite : undefined;
  return composite?.kind === "array" && composite.field.storage === I16 && composite.field.mutable ? "a" : "?";
}

function shortType(module: WasmModule, { params, results }: FuncType): string {
  const letters = (types: readonly ValType[]) => types.map((type) => letterOf(module, type)).join("");
  return `${letters(params)}>${letters(results)}`;
}

/** Throws InvalidError when an import that the options provide has another type than what they provide. */
export function checkStringImports(module: WasmModule, { builtins, constants }: StringOptions): void {
  for (const { module: namespace, name, desc, offset } of module.imports) {
    if (namespace === constants) {
      const fits = desc.kind === "global" && !desc.type.mutable &&
        (desc.type.type === EXTERNREF || desc.type.type === STRING);
      if (!fits) {
        throw new InvalidError(`The string constant ${JSON.stringify(name)} must be an immutable global of externref`, {
          offset,
        });
      }
    } else if (builtins && namespace === "wasm:js-string") {
      const row = Object.hasOwn(BUILTINS, name) ? BUILTINS[name] : undefined;
      if (row === undefined) throw new InvalidError(`There is no builtin "wasm:js-string" "${name}"`, { offset });
      const composite = desc.kind === "func" ? module.types[desc.typeIndex]?.composite : undefined;
      if (composite?.kind !== "func" || shortType(module, composite) !== row[0]) {
        throw new InvalidError(`The builtin "wasm:js-string" "${name}" has another type`, { offset });
      }
    }
  }
}

/** What the options provide for the import `name` of `namespace`. */
export function provideString({ constants }: StringOptions, namespace: string, name: string): unknown {
  return namespace === constants ? name : BUILTINS[name]![1];
}
