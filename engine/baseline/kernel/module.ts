/**
 * The index spaces that a body refers to: types, functions, globals, memories, tables and segments of the module, and
 * the enabled features. An unknown index fails the body, and so does a disabled feature.
 */
import {
  FEATURE_CUSTOM_DESCRIPTORS,
  FEATURE_EXCEPTION_HANDLING,
  FEATURE_GC,
  FEATURE_REFERENCE_TYPES,
  FEATURE_SIMD,
  FEATURE_STACK_SWITCHING,
  FEATURE_TYPED_FUNCTION_REFERENCES,
} from "./constants.ts";
import * as layout from "./layout.ts";
import { type i32, load32, load8, store32 } from "./memory.ts";
import { fail, instructionOffset } from "./reader.ts";
import {
  exactHeap,
  EXTERNREF,
  FUNCREF,
  HEAP_CONT,
  HEAP_EXN,
  HEAP_EXTERN,
  HEAP_FUNC,
  HEAP_NOCONT,
  HEAP_NOEXN,
  heapOf,
  inexact,
  isExact,
  isNullable,
  isRef,
  refType,
  typeRow,
  V128,
} from "./types.ts";

/** Whether feature number `feature` is enabled. */
function allows(feature: i32): boolean {
  return load32(layout.FEATURES + feature * 4) !== 0;
}

/** Records a use of feature number `feature` (0: none) by the current instruction. Fails if the feature is disabled. */
export function useFeature(feature: i32): void {
  if (feature === 0) return;
  if (!allows(feature)) fail();
  const use = layout.FEATURE_USES + feature * 4;
  if (instructionOffset < load32(use)) store32(use, instructionOffset);
}

/** The number of the feature that introduced a value type; 0 for those of version 1.0. */
function featureOf(type: i32): i32 {
  if (!isRef(type)) return type === V128 ? FEATURE_SIMD : 0;
  if (type === FUNCREF || type === EXTERNREF) return FEATURE_REFERENCE_TYPES;
  const heap = heapOf(type);
  if (isExact(heap)) return FEATURE_CUSTOM_DESCRIPTORS;
  if (heap >= 0) return FEATURE_TYPED_FUNCTION_REFERENCES;
  if (heap === HEAP_EXN || heap === HEAP_NOEXN) return FEATURE_EXCEPTION_HANDLING;
  if (heap === HEAP_CONT || heap === HEAP_NOCONT) return FEATURE_STACK_SWITCHING;
  const isOld = heap === HEAP_FUNC || heap === HEAP_EXTERN;
  return isOld && !isNullable(type) ? FEATURE_TYPED_FUNCTION_REFERENCES : FEATURE_GC;
}

/** Checks a value type that the current instruction names: its feature and its type index. */
export function useType(type: i32): void {
  useFeature(featureOf(type));
  if (isRef(type)) checkTypeIndex(inexact(heapOf(type)));
}

/** Whether `index`, unsigned, is below `count`. Fails if not. */
export function isIndex(index: i32, count: i32): boolean {
  if (index >= 0 && index < count) return true;
  fail();
  return false;
}

/** Checks that type `heap` exists when it is an index. */
function checkTypeIndex(heap: i32): void {
  if (heap >= load32(layout.H_TYPE_COUNT)) fail();
}

/** The row of function type `index`; 0 after a failure. */
export function funcTypeAt(index: i32): i32 {
  if (!isIndex(index, load32(layout.H_TYPE_COUNT))) return 0;
  const row = typeRow(index);
  if (load32(row + layout.TYPE_KIND) === layout.TYPE_IS_FUNC) return row;
  fail();
  return 0;
}

/** The type index of function `index`. */
export function typeIndexOf(index: i32): i32 {
  return load32(load32(layout.H_FUNCS) + index * 4);
}

/** The row of the type of function `index`; 0 after a failure. */
export function functionAt(index: i32): i32 {
  return isIndex(index, load32(layout.H_FUNC_COUNT)) ? typeRow(typeIndexOf(index)) : 0;
}

/** The FUNC_ bits of function `index`. */
function bitsOf(index: i32): i32 {
  return load8(load32(layout.H_DECLARED) + index);
}

export function isDeclared(index: i32): boolean {
  return (bitsOf(index) & layout.FUNC_DECLARED) !== 0;
}

/** Whether function `index` counts the depth of calls. */
export function countsDepth(index: i32): boolean {
  return (bitsOf(index) & layout.FUNC_COUNTED) !== 0;
}

/** The type of a reference to a new object of type `index`: exact if custom descriptors are enabled. */
export function newRef(index: i32): i32 {
  return refType(0, allows(FEATURE_CUSTOM_DESCRIPTORS) ? exactHeap(index) : index);
}

/** The type of a reference to function `index`; an import may be of a subtype unless its type is exact. */
export function funcRef(index: i32): i32 {
  const type = typeIndexOf(index);
  const isOpen = index < load32(layout.H_IMPORTED_FUNCS) && (bitsOf(index) & layout.FUNC_EXACT) === 0;
  return isOpen ? refType(0, type) : newRef(type);
}

export function hasMemory(index: i32): boolean {
  return isIndex(index, load32(layout.H_MEMORY_COUNT));
}

export function hasTable(index: i32): boolean {
  return isIndex(index, load32(layout.H_TABLE_COUNT));
}

export function hasGlobal(index: i32): boolean {
  return isIndex(index, load32(layout.H_GLOBAL_COUNT));
}

export function hasElem(index: i32): boolean {
  return isIndex(index, load32(layout.H_ELEM_COUNT));
}

export function hasData(index: i32): boolean {
  return isIndex(index, load32(layout.H_DATA_COUNT));
}

/** The row of the type of tag `index`; 0 after a failure. */
export function tagAt(index: i32): i32 {
  if (!isIndex(index, load32(layout.H_TAG_COUNT))) return 0;
  return typeRow(load32(load32(layout.H_TAGS) + index * 4));
}

/** The type of the elements of segment `index`. */
export function elemType(index: i32): i32 {
  return load32(load32(layout.H_ELEMS) + index * 4);
}
