/**
 * Memory that machine code and the collector share: references, objects, type descriptors, allocation cells. Offsets in bytes; this file
 * is the only place that says where a field is (what only the collector touches is in gc/collector_layout.ts).
 *
 * References (IR type REF, 64 bits) describe themselves by their low bits, whatever their static type:
 *
 *     0                     null
 *     …1                    i31: (value << 1) | 1 in 32 bits, zero-extended
 *     …010                  host handle (an externref, or an anyref made of one): number * 8 + 2
 *     …100                  exception: number * 8 + 4
 *     …000 in the heap      address of an object
 *     …000 elsewhere        address of a function record (context_layout.ts)
 *
 * Objects never move. Compiled code keeps them alive simply by having their address, or one inside them, on the guest stack or in the
 * slots or the overflow buffer of the thread; it may be interrupted by the collector at any call and at no other place.
 *
 * Inline allocation of `bytes` (header included; the class is known for structures, and for arrays it is read from CLASS_OF):
 *
 *     cells = load [context + CONTEXT.HEAP]
 *     object = load [cells + CELLS.FREE + 8 * class]            the first of a list of free slots
 *     if object == 0: object = call builtin gc_allocate(bytes)  (also for what has no class); may collect, may trap
 *     else: store [cells + CELLS.FREE + 8 * class] = load [object]
 *     store64 [object] = type id | array length << 32           always all eight bytes: they held the link
 *
 * A slot comes zeroed except for its first eight bytes. What is not yet written is therefore null or zero for the collector.
 */

/** An object: its header, then fields (layoutFields) or elements side by side; v128 is not aligned beyond 8. */
export const OBJECT = {
  /** Canonical type id, u32; never 0, which says that the slot is free. */
  TYPE_ID: 0,
  /** Elements of an array, u32; 0 for structures. */
  LENGTH: 4,
  /** First field or element. */
  FIELDS: 8,
} as const;

/** Low bits of references that are not addresses. */
export const REF_TAG = { I31: 1, HOST: 2, EXCEPTION: 4 } as const;

/** The largest object, header included; larger ones trap with "allocation size too large". */
export const MAX_OBJECT_BYTES: number = 2 ** 30;

/** Sizes of slots of small objects: class numbers are indices. Multiples of 8, so that any address inside finds its slot. */
export const SIZE_CLASSES: readonly number[] = sizeClasses();

/** Objects up to this size have a class. */
export const MAX_SMALL_BYTES = 32768;

function sizeClasses(): number[] {
  const sizes: number[] = [];
  for (const [upTo, step] of [[128, 8], [256, 16], [512, 32], [1024, 64], [2048, 128]] as const) {
    for (let size = (sizes.at(-1) ?? 8) + step; size <= upTo; size += step) sizes.push(size);
  }
  // From here on: what divides a block of 64 KiB into so many.
  for (const count of [28, 24, 20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2]) sizes.push(Math.floor(65536 / count) & ~7);
  return sizes;
}

/** The class of an object of `bytes`, header included; −1 when it is too large for any. */
export function sizeClassOf(bytes: number): number {
  if (bytes > MAX_SMALL_BYTES) return -1;
  let low = 0;
  let high = SIZE_CLASSES.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (SIZE_CLASSES[middle]! < bytes) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The allocation cells, at CONTEXT.HEAP: one such area per thread, at a fixed address for its life. */
export const CELLS = {
  /** By class: address of the first free slot, 0 for none. A free slot's first word is the address of the next. */
  FREE: 0,
  /** Address of the type descriptors (DESCRIPTOR.SIZE bytes per canonical type id). */
  TYPES: 512,
  /** u8 by (bytes + 7) >> 3 of an object of at most MAX_SMALL_BYTES: its class. */
  CLASS_OF: 1024,
  SIZE: 8192,
} as const;

/** Kinds of types, in descriptors. */
export const TYPE_KIND = { NONE: 0, STRUCT: 1, ARRAY: 2, FUNC: 3 } as const;

/**
 * A type descriptor. It is there for every type of every module that has been instantiated, function types included.
 *
 * An object (or function record) with type id `t` is of type `s` at depth `d` (wasm/subtype.ts: subtypeDepth) exactly when t == s, or
 * DISPLAY[d] of t is s. For d >= DISPLAY_LENGTH: when the u32 at DEEP + 4 * d of t is s. Entries beyond a type's own depth are 0,
 * in the deep display as well, which has MAX_SUBTYPE_DEPTH + 1 entries.
 */
export const DESCRIPTOR = {
  /** TYPE_KIND, u32. */
  KIND: 0,
  /** Structure: its size in bytes, header included; array: size of an element. u32. */
  BYTES: 4,
  /**
   * Structure: which fields are references (any hierarchy), bit i for the word at offset OBJECT.FIELDS + 8 * i; when there are more than
   * LONG_WORDS words, the address of such a bitmap with a u64 per 64 words. Array: 1 when elements are references.
   */
  REFERENCES: 8,
  /**
   * Those of them that can only lead to objects without references, as their static type says: the collector need not look into these.
   * 0 when the bitmap is elsewhere.
   */
  LEAVES: 16,
  /** u32 each: the supertypes from the root down, and the type itself. */
  DISPLAY: 24,
  /** Address of the whole display. */
  DEEP: 56,
  SIZE: 64,
} as const;

/** Entries of a descriptor's own display. */
export const DISPLAY_LENGTH = 8;

/** Words of a structure's fields that the bitmap in its descriptor covers. */
export const LONG_WORDS = 64;

/** Offsets of a structure's fields, given their sizes (wasm/types.ts: byteSize), and its size: aligned in declared order. */
export function layoutFields(sizes: readonly number[]): { offsets: number[]; bytes: number } {
  const offsets: number[] = [];
  let at: number = OBJECT.FIELDS;
  for (const size of sizes) {
    const align = Math.min(size, 8);
    at = Math.ceil(at / align) * align;
    offsets.push(at);
    at += size;
  }
  return { offsets, bytes: Math.ceil(at / 8) * 8 };
}
