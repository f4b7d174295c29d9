/**
 * Memory shared by machine code and the garbage collector: references, objects, type descriptors and allocation cells.
 * Offsets are in bytes. This file is the only definition of these layouts; collector-private structures are in
 * gc/collector_layout.ts.
 *
 * The low bits of a reference (IR type REF, 64 bits) give its kind, independent of its static type:
 *
 *     0                     null
 *     …1                    i31: (value << 1) | 1 in 32 bits, zero-extended
 *     …010                  host handle (an externref, or an anyref converted from one): number * 8 + 2
 *     …100                  exception: number * 8 + 4
 *     …000 in the heap      address of an object
 *     …000 elsewhere        address of a function record (context_layout.ts)
 *
 * Objects never move. The collector scans the guest stack and the thread's slots and overflow buffer conservatively: an
 * object's address, or an address inside it, keeps the object alive. A collection can happen at any call and nowhere
 * else.
 *
 * Inline allocation of `bytes` (header included; the class is static for structs and read from CLASS_OF for arrays):
 *
 *     cells = load [context + CONTEXT.HEAP]
 *     object = load [cells + CELLS.FREE + 8 * class]            head of a free list
 *     if object == 0: object = call builtin gc_allocate(bytes)  also without a class; may collect, may trap
 *     else: store [cells + CELLS.FREE + 8 * class] = load [object]      x64 predicts object + slot size for a struct
 *     store64 [object] = type id | array length << 32           all eight bytes: they held the link
 *
 * A free slot is zero except for its first eight bytes, so the collector sees fields not yet written as null or zero.
 */

/**
 * An object: its header, then its fields and descriptor (layoutFields) or its packed elements; v128 is aligned to 8
 * bytes.
 */
export const OBJECT = {
  /** Canonical type id, u32; 0 only in a free slot. */
  TYPE_ID: 0,
  /** Number of elements of an array, u32; 0 for structs. */
  LENGTH: 4,
  /** First field or element. */
  FIELDS: 8,
} as const;

/** Low bits of references that are not addresses. */
export const REF_TAG = { I31: 1, HOST: 2, EXCEPTION: 4 } as const;
/** The low bits of a reference: 0 for addresses and null, else its tag (an i31 uses only the lowest). */
export const REF_TAG_MASK = 7;

/** The maximum object size in bytes, header included; larger allocations trap with "allocation size too large". */
export const MAX_OBJECT_BYTES: number = 2 ** 30;

/**
 * Slot sizes in bytes of small objects, indexed by size class. All are multiples of 8, so that an interior address
 * identifies its slot.
 */
export const SIZE_CLASSES: readonly number[] = sizeClasses();

/** The maximum size in bytes of an object with a size class. */
export const MAX_SMALL_BYTES = 32768;

function sizeClasses(): number[] {
  const sizes: number[] = [];
  for (const [upTo, step] of [[128, 8], [256, 16], [512, 32], [1024, 64], [2048, 128]] as const) {
    for (let size = (sizes.at(-1) ?? 8) + step; size <= upTo; size += step) sizes.push(size);
  }
  // Larger classes divide a block of 64 KiB into `count` slots.
  for (const count of [28, 24, 20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2]) sizes.push(Math.floor(65536 / count) & ~7);
  return sizes;
}

/** The size class of an object of `bytes`, header included; −1 if it is too large for any class. */
export function sizeClassOf(bytes: number): number {
  if (bytes > MAX_SMALL_BYTES) return -1;
  let low = 0;
  let high = SIZE_CLASSES.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (SIZE_CLASSES[middle] < bytes) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The allocation cells, at CONTEXT.HEAP: one area per thread, and one per instance whose objects are counted, each at a
 * fixed address for the lifetime of the instances that use it.
 */
export const CELLS = {
  /**
   * By size class: address of the first free slot, 0 if there is none. The first word of a free slot links to the next.
   */
  FREE: 0,
  /** Address of the type descriptors (DESCRIPTOR.SIZE bytes per canonical type id). */
  TYPES: 512,
  /**
   * For the collector, u32 by size class: number of the first block that waits to be swept, plus 1; 0 for none. Linked
   * by BLOCK.NEXT.
   */
  PENDING: 528,
  /** Size classes by object size: a u8 at index (bytes + 7) >> 3, for objects of at most MAX_SMALL_BYTES. */
  CLASS_OF: 1024,
  SIZE: 8192,
} as const;

/** Kinds of types in descriptors. */
export const TYPE_KIND = { NONE: 0, STRUCT: 1, ARRAY: 2, FUNC: 3 } as const;

/**
 * A type descriptor; every type of every instantiated module has one, function types included.
 *
 * An object or function record with type id `t` is of type `s` at depth `d` (wasm/subtype.ts: subtypeDepth) if and only
 * if t == s or DISPLAY[d] of t is s; for d >= DISPLAY_LENGTH, the u32 at DEEP + 4 * d of t takes the place of
 * DISPLAY[d]. Entries beyond the depth of the type are 0, also in the deep display, which has MAX_SUBTYPE_DEPTH + 1
 * entries.
 */
export const DESCRIPTOR = {
  /** TYPE_KIND, u32. */
  KIND: 0,
  /** Struct: size in bytes, header included; array: size of an element in bytes. u32. */
  BYTES: 4,
  /**
   * Struct: a bitmap of reference fields of any hierarchy, bit i for the word at offset OBJECT.FIELDS + 8 * i; with
   * more than LONG_WORDS words, the address of such a bitmap with a u64 per 64 words. Array: 1 if the elements are
   * references.
   */
  REFERENCES: 8,
  /**
   * The subset of REFERENCES whose static types reach only objects without references, which the collector marks
   * without scanning. 0 if the bitmap is out of line.
   */
  LEAVES: 16,
  /** u32 each: the supertypes from the root down, then the type itself. */
  DISPLAY: 24,
  /** Address of the complete display. */
  DEEP: 56,
  SIZE: 64,
} as const;

/** Number of display entries inside a descriptor. */
export const DISPLAY_LENGTH = 8;

/** Number of field words that the inline bitmap of a descriptor covers. */
export const LONG_WORDS = 64;

/** The offsets of a struct's fields, and its size in bytes, header included. */
export interface FieldLayout {
  readonly offsets: readonly number[];
  /** Offset of the reference to the object's descriptor; 0 for types without one. */
  readonly descriptor: number;
  readonly bytes: number;
}

/**
 * The layout of a struct, given the field sizes (wasm/types.ts: byteSize). Fields keep their declared order and are
 * aligned to their size, at most 8. The reference to the descriptor follows the first `beforeDescriptor` fields, those
 * of the supertypes without descriptors; −1: there is none.
 */
export function layoutFields(sizes: readonly number[], beforeDescriptor = -1): FieldLayout {
  const offsets: number[] = [];
  let at: number = OBJECT.FIELDS;
  const place = (size: number) => {
    const align = Math.min(size, 8);
    const offset = Math.ceil(at / align) * align;
    at = offset + size;
    return offset;
  };
  let descriptor = 0;
  for (let k = 0; k <= sizes.length; k++) {
    if (k === beforeDescriptor) descriptor = place(REFERENCE_BYTES);
    if (k < sizes.length) offsets.push(place(sizes[k]));
  }
  return { offsets, descriptor, bytes: Math.ceil(at / 8) * 8 };
}

const REFERENCE_BYTES = 8;
