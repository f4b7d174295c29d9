/**
 * Which imports of a module are builtins for strings (JavaScript API, "JS String Builtins"): by name and type. What is given for them may still be
 * something else, unless the options of the compilation provide them.
 */
import { STRING_BUILTIN_NAMES, STRING_BUILTINS, STRING_MODULE, type StringBuiltin } from "../abi/string_layout.ts";
import type { Import } from "./module.ts";
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
  type SubType,
  type ValType,
} from "./types.ts";

const STRING = refType(false, HEAP.extern);

function letterOf(types: readonly SubType[], type: ValType): string {
  if (type === I32) return "i";
  if (type === EXTERNREF) return "e";
  if (type === STRING) return "s";
  const composite = isRef(type) && isNullable(type) ? types[heapOf(type)]?.composite : undefined;
  return composite?.kind === "array" && composite.field.storage === I16 && composite.field.mutable ? "a" : "?";
}

function shortType(types: readonly SubType[], { params, results }: FuncType): string {
  const letters = (list: readonly ValType[]) => list.map((type) => letterOf(types, type)).join("");
  return `${letters(params)}>${letters(results)}`;
}

/** Has an import the type of builtin `name`? */
export function hasBuiltinType(types: readonly SubType[], { desc }: Import, name: StringBuiltin): boolean {
  const composite = desc.kind === "func" ? types[desc.typeIndex]?.composite : undefined;
  return composite?.kind === "func" && shortType(types, composite) === STRING_BUILTINS[name];
}

/** By number of a builtin: the function index of its first import, −1 when there is none. */
export function stringImports(module: { imports: readonly Import[]; types: readonly SubType[] }): Int32Array {
  const found = new Int32Array(STRING_BUILTIN_NAMES.length).fill(-1);
  let index = 0;
  for (const entry of module.imports) {
    if (entry.desc.kind !== "func") continue;
    const k = entry.module === STRING_MODULE ? STRING_BUILTIN_NAMES.indexOf(entry.name as StringBuiltin) : -1;
    if (k >= 0 && found[k] === -1 && hasBuiltinType(module.types, entry, STRING_BUILTIN_NAMES[k]!)) found[k] = index;
    index++;
  }
  return found;
}
