/**
 * The types of references to what a module itself makes: exact if custom descriptors are on. In: the index of a type or
 * of a function. Out: a reference type. Without the feature no type can ask for exactness, and messages name the types
 * of WebAssembly 3.0.
 */
import { exactHeap } from "../wasm/exact_heap.ts";
import { refType, type ValType } from "../wasm/types.ts";
import { FEATURE } from "./gate.ts";
import type { AnnotatedModule } from "./valid_module.ts";

/** The type of a reference to a new object of type `index`. */
export function newRef({ gate }: Pick<AnnotatedModule, "gate">, index: number): ValType {
  return refType(false, gate.allows(FEATURE["custom-descriptors"]) ? exactHeap(index) : index);
}

/** The type of a reference to function `index`; an import may be of a subtype unless its type is exact. */
export function funcRef(valid: AnnotatedModule, index: number): ValType {
  const type = valid.funcTypeIndices[index];
  const isOpen = index < valid.importedFuncCount && !valid.exactImports.has(index);
  return isOpen ? refType(false, type) : newRef(valid, type);
}
