/**
 * Encoding of regions, alias classes, access widths and bounds in the columns of memory instructions. In: the parts of
 * a word. Out: the word, and its parts again. The description of a module uses regions before any function is
 * translated, so this file imports nothing of the IR.
 */

/**
 * Regions: the memory that an access touches; column c of LOAD and STORE. Bits 0-3 kind, bits 4-7 zero (atomicWord),
 * bits 8-31 alias class.
 */
export const REGION = {
  /** Linear memory 0 through the pinned base register; a = i32 (zero-extended) or i64 address. */
  MEMORY0: 0,
  /** The VM context: a = 0 (no value), imm = offset (context_layout.ts). */
  CONTEXT: 1,
  /** Any 64-bit pointer in a (other memories, tables, records, imported globals, objects). */
  POINTER: 2,
  /**
   * An object of the collected heap, or null, in a: an access of null traps with NULL_STRUCTURE. The offset is below
   * 4096.
   */
  STRUCT: 3,
} as const;

/**
 * Alias classes (bits 8-31 of a region): accesses of different classes never overlap. CLASS_* below; further classes
 * are numbered by translate/ from CLASS_FIRST_FREE on: one per memory beyond 0, per global, per table, per GC field.
 * CLASS_CONSTANT is never written while the function runs (record fields, immutable globals, type ids).
 */
export const CLASS_MEMORY0 = 0;
export const CLASS_CONSTANT = 1;
/** Sizes and bases of memories and tables: written by calls only. */
export const CLASS_SIZES = 2;
export const CLASS_FIRST_FREE = 3;

/** The region word of a kind and an alias class. */
export function region(kind: number, aliasClass: number): number {
  return kind | (aliasClass << 8);
}
/** The kind in the column c of an access, atomic or not. */
export function regionKind(word: number): number {
  return word & 15;
}
export function regionClass(word: number): number {
  return word >>> 8;
}

/** Column c of atomic operations: a region, and the width as log2 of its bytes (0 to 3) where regions have zeros. */
export function atomicWord(regionWord: number, width: number): number {
  return regionWord | (width << 4);
}
export function atomicRegion(word: number): number {
  return word & ~0xf0;
}
export function atomicWidth(word: number): number {
  return (word >> 4) & 3;
}

/** Column c of BOUNDS: the memory, and the number of bytes (1 to 16) that are accessed. */
export function boundsWord(memory: number, bytes: number): number {
  return (memory << 8) | bytes;
}
export function boundsMemory(word: number): number {
  return word >>> 8;
}
export function boundsBytes(word: number): number {
  return word & 0xff;
}
