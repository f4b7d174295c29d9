/**
 * Imports that name string builtins (JavaScript API, "JS String Builtins"), recognized by name and type. In: a module.
 * Out: function indices by builtin. Unless the options of the compilation provide the builtins, the values given for
 * such imports may be other functions.
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

/** The types by which imports are recognized. */
interface Types {
  readonly types: readonly SubType[];
  readonly recGroups: readonly { readonly start: number; readonly count: number }[];
}

/** Whether the type at `index` is alone in its recursive group; in a larger group it would be another type. */
function isAlone({ recGroups }: Types, index: number): boolean {
  return recGroups.some(({ start, count }) => start === index && count === 1);
}

function letterOf(module: Types, type: ValType): string {
  if (type === I32) return "i";
  if (type === EXTERNREF) return "e";
  if (type === STRING) return "s";
  if (!isRef(type) || !isNullable(type)) return "?";
  const heap = heapOf(type);
  const composite = module.types[heap]?.composite;
  const isText = composite?.kind === "array" && composite.field.storage === I16 && composite.field.mutable;
  return isText && isAlone(module, heap) ? "a" : "?";
}

function shortType(module: Types, { params, results }: FuncType): string {
  const letters = (list: readonly ValType[]) => list.map((type) => letterOf(module, type)).join("");
  return `${letters(params)}>${letters(results)}`;
}

/** Whether an import has the type of builtin `name`. */
export function hasBuiltinType(module: Types, { desc }: Import, name: StringBuiltin): boolean {
  if (desc.kind !== "func" || !isAlone(module, desc.typeIndex)) return false;
  const { composite } = module.types[desc.typeIndex];
  return composite.kind === "func" && shortType(module, composite) === STRING_BUILTINS[name];
}

/** By number of a builtin: the function index of its first import, −1 if there is none. */
export function stringImports(module: Types & { readonly imports: readonly Import[] }): Int32Array {
  const found = new Int32Array(STRING_BUILTIN_NAMES.length).fill(-1);
  let index = 0;
  for (const entry of module.imports) {
    if (entry.desc.kind !== "func") continue;
    const k = entry.module === STRING_MODULE ? STRING_BUILTIN_NAMES.indexOf(entry.name as StringBuiltin) : -1;
    if (k >= 0 && found[k] === -1 && hasBuiltinType(module, entry, STRING_BUILTIN_NAMES[k])) found[k] = index;
    index++;
  }
  return found;
}
