/**
 * Exact heap types (proposal "custom descriptors", "Exact Types"). In: heap types (types.ts). Out: those that are type
 * indices with or without a bit, which says that values are of that type itself, not of a subtype. The compiler of
 * functions runs this file, so it refers to no other.
 */

/** A bit of the heap types that are type indices, and of reference types, beyond the bits of indices. */
export const EXACT: number = 1 << 26;

/** The heap type `(exact index)`. */
export function exactHeap(index: number): number {
  return index | EXACT;
}

/** Whether heap type `heap` is exact. */
export function isExact(heap: number): boolean {
  return heap >= EXACT;
}

/** Heap type `heap` without its exactness: a type index, or an abstract heap type. */
export function inexact(heap: number): number {
  return heap >= EXACT ? heap & ~EXACT : heap;
}
