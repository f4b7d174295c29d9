/**
 * Index spaces for the rules. In: an index. Out: the entity with that index; an index out of range, or a type of the
 * wrong form, is the specification suite's "unknown …" error at the current instruction.
 */
import type { ElementSegment } from "../wasm/module.ts";
import type { ArrayType, FuncType, GlobalType, MemoryType, StructType, TableType } from "../wasm/types.ts";
import { FEATURE } from "./gate.ts";
import type { Walker } from "./walker.ts";

const GC = FEATURE.gc;

/** The function type with type index `index`. */
export function funcTypeAt(walker: Walker, index: number): FuncType {
  const type = walker.valid.types[index];
  if (type === undefined) walker.fail(`unknown type ${index}`);
  if (type.composite.kind !== "func") walker.fail(`type mismatch: type ${index} is not a function type`);
  return type.composite;
}

/** The structure type with type index `index`. */
export function structTypeAt(walker: Walker, index: number): StructType {
  const type = walker.valid.types[index];
  if (type === undefined) walker.fail(`unknown type ${index}`);
  if (type.composite.kind !== "struct") walker.fail(`type mismatch: type ${index} is not a structure type`);
  return type.composite;
}

/** The array type with type index `index`. */
export function arrayTypeAt(walker: Walker, index: number): ArrayType {
  const type = walker.valid.types[index];
  if (type === undefined) walker.fail(`unknown type ${index}`);
  if (type.composite.kind !== "array") walker.fail(`type mismatch: type ${index} is not an array type`);
  return type.composite;
}

/** The type of function `index`. */
export function funcAt(walker: Walker, index: number): FuncType {
  const type = walker.valid.funcTypes[index];
  if (type === undefined) walker.fail(`unknown function ${index}`);
  return type;
}

/** The type of table `index`. */
export function tableAt(walker: Walker, index: number): TableType {
  const type = walker.valid.tableTypes[index];
  if (type === undefined) walker.fail(`unknown table ${index}`);
  return type;
}

/** The type of memory `index`. */
export function memoryAt(walker: Walker, index: number): MemoryType {
  const type = walker.valid.memoryTypes[index];
  if (type === undefined) walker.fail(`unknown memory ${index}`);
  return type;
}

/** The type of global `index`, which must be visible to the current expression. */
export function globalAt(walker: Walker, index: number): GlobalType {
  if (index >= walker.visibleGlobals) walker.fail(`unknown global ${index}`);
  const type = walker.valid.globalTypes[index];
  if (walker.funcIndex < 0) {
    if (type.mutable) walker.fail(`constant expression required: global ${index} is mutable`);
    // Before the gc proposal, constant expressions could read imported globals only.
    if (index >= walker.valid.importedGlobalCount && walker.at < walker.valid.gate.firstUse[GC]) {
      walker.valid.gate.use(GC, walker.at, "a constant expression that reads a global of its own module");
    }
  }
  return type;
}

/** The type of tag `index`: its parameters are the payload. */
export function tagAt(walker: Walker, index: number): FuncType {
  const type = walker.valid.tagTypes[index];
  if (type === undefined) walker.fail(`unknown tag ${index}`);
  return type;
}

/** Element segment `index`. */
export function elemAt(walker: Walker, index: number): ElementSegment {
  const segment = walker.valid.elems.at(index);
  if (segment === undefined) walker.fail(`unknown elem segment ${index}`);
  return segment;
}

/** Checks that data segment `index` exists. */
export function checkData(walker: Walker, index: number): void {
  if (index >= walker.valid.datas.length) walker.fail(`unknown data segment ${index}`);
}
