/**
 * Shared layout of the collector's two halves: the control area through which TypeScript directs the machine code of
 * collector_code.ts, the table of blocks, and sizes. Offsets in bytes. Compiled programs do not access it
 * (gc_layout.ts).
 *
 *     heap     [BASE, BASE + USED)      blocks of 64 KiB: each one size class, or a part of a large object, or free
 *     blocks   BLOCK.SIZE_OF per block
 *     marks    a bit per 16 bytes of heap: that of an object's first byte is set if the object is alive
 */

/** log2 of the size of a block. */
export const BLOCK_SHIFT = 16;
export const BLOCK_BYTES: number = 1 << BLOCK_SHIFT;
/** log2 of the bytes of heap per byte of mark bits. */
export const MARKS_SHIFT = 7;

/** The control area; u64 each unless said otherwise. */
export const CONTROL = {
  /** First address of the heap. */
  BASE: 0,
  /** Bytes from there up to the end of the last block that has ever been used. */
  USED: 8,
  /** Address of the table of blocks. */
  BLOCKS: 16,
  /** Address of the mark bits. */
  MARKS: 24,
  /** Stack of objects that are marked but not yet visited: its bottom, its end, and the furthest end so far. */
  STACK: 32,
  STACK_TOP: 40,
  STACK_PEAK: 48,
  /** Bottom of the stack of long arrays that are partly traced, { address, next element } each. */
  ARRAYS: 56,
  /** Address of the type descriptors. */
  TYPES: 72,
  /** Argument of `begin`, `sweep` and `take`: address of the allocation cells. */
  CELLS: 80,
  /** A byte per host handle, and how many there are. */
  HOST_MARKS: 88,
  HOST_COUNT: 96,
  /**
   * The same for exceptions; and the numbers of those marked since the queue was emptied, u32 each, with their count.
   */
  EXCEPTION_MARKS: 104,
  EXCEPTION_COUNT: 112,
  EXCEPTION_QUEUE: 120,
  EXCEPTION_QUEUED: 128,
  /** Arguments of `scan`: a range of words. */
  LOW: 144,
  HIGH: 152,
  /** Argument of `sweep` and `take`: the class, u32. */
  CLASS: 160,
  /** Result of `take`: the slot. */
  SLOT: 184,
  /** Result of `classify`: bytes of small objects that are alive; their number. */
  LIVE_BYTES: 168,
  LIVE_OBJECTS: 176,
  SIZE: 256,
} as const;

/** A row of the table of blocks; u32 each unless said otherwise. */
export const BLOCK = {
  /** Size of its slots; 0 when the block is free, LARGE when it belongs to a large object. */
  SLOT_BYTES: 0,
  /** 2^32 / slot size, rounded up: an offset in the block times this is, in the upper half, the number of the slot. */
  RECIPROCAL: 4,
  /** Number of slots. */
  COUNT: 8,
  /** Small: number of the next block that waits, plus 1; large: number of the block where the object begins. */
  NEXT: 12,
  /** The number of objects that the last collection found alive; for a large object 0 or 1, in its first block. */
  LIVE: 16,
  /** Not 0 while its pages are new from the system, which zeroes them. */
  ZERO: 20,
  /** Address of the allocation cells that receive its free slots, u64. */
  CELLS: 24,
  SIZE_OF: 32,
} as const;

/** BLOCK.SLOT_BYTES of the blocks of large objects. */
export const LARGE = 0xffffffff;

/**
 * The functions of the collector's machine code (documented in collector_code.ts, which need not be loaded to call
 * them).
 */
export const COLLECTOR_FUNCTIONS = ["begin", "clear", "scan", "drain", "classify", "sweep", "take"] as const;
