/**
 * The kinds of values that the verifier distinguishes. In: nothing. Out: the number of each kind, and properties of
 * kinds as columns by number. Invariant: a kind is described here only. The columns of Facts have a name for each use
 * (columns.ts), which the comments quote, and kind_facts.ts sets all columns of a kind.
 */

/** Kinds of values. */
export const VALUE = {
  NUMBER: 0,
  /** The VM context of the function's instance. */
  CONTEXT: 1,
  /** The stack; distances are from the stack pointer at the function's entry. */
  STACK: 2,
  /** Memory `index`. */
  MEMORY: 3,
  /** Elements of table `index`. */
  TABLE: 4,
  THREAD: 5,
  OVERFLOW: 6,
  /** The cell of imported global `index`. */
  CELL: 7,
  /**
   * A reference: heap, known, leastLength.
   */
  REFERENCE: 8,
  /** The image. */
  IMAGE: 9,
  /** The context in the record named `subject`. */
  RECORD_CONTEXT: 10,
  /** Base and length of memory 0 of that context. */
  RECORD_MEMORY: 11,
  RECORD_LENGTH: 12,
  /** The stub for returns from tail calls. */
  TAIL_RETURN: 13,
  /** The length `lengthLimit` (limits.ts), now or earlier. */
  LENGTH: 14,
  /** The canonical type id of the record named `subject`. */
  TYPE_ID: 15,
  /** The canonical id of type `index` of the module. */
  EXPECTED_TYPE: 16,
  /** The word with the current length of shared memory `index`. */
  LENGTH_CELL: 17,
  /** Entries `firstEntry` … `lastEntry` of the jump table at `imageOffset`; the address of the code that one names. */
  JUMP_ENTRY: 18,
  JUMP_TARGET: 19,
  /** The lowest stack pointer allowed. */
  STACK_LIMIT: 20,
  /** Allocation cells of the heap, type descriptors, the descriptor of the type of the record named `subject`. */
  CELLS: 21,
  DESCRIPTORS: 22,
  DESCRIPTOR: 23,
  /** That type's distance from the start of the descriptors. */
  DESCRIPTOR_OFFSET: 24,
  /** The ancestor at `depth` of the type of the record named `subject`. */
  ANCESTOR: 25,
  /** Address of the complete display of the type of the record named `subject`. */
  DISPLAY: 26,
  RETURN_ADDRESS: 27,
  /** The address of a jump, one of `firstEntry` … `lastEntry` at `imageOffset`, of Machine.jumpBytes each. */
  JUMP_PLACE: 29,
  /** The low byte is 0 or 1; nothing is known of the others. */
  LOW_FLAG: 30,
  /** The low bits, mask `tagMask`, of the reference named `subject`. */
  TAG_BITS: 31,
  /** TYPE_KIND of the type of the object named `subject`, and the length of the array named `subject`. */
  TYPE_KIND: 32,
  ARRAY_LENGTH: 33,
  /**
   * The address at distance `low` = `high` from element x of the array with the name in `of` (elementLimit), of type
   * `arrayType`; name, delta: those of x; room: x + room is at most the length.
   */
  ELEMENT: 34,
  /** The identity of the exception that was caught, and that of tag `index` of the module. */
  CAUGHT_TAG: 35,
  TAG: 36,
  /**
   * A slot of the heap without a header, or null: slotClass, known, slotBytes; of, room: its bytes as a product.
   */
  FREE_SLOT: 37,
  /** The link in the free slot named `subject`. */
  FREE_LINK: 38,
  /** A slot with `arrayType` in its header, but no length. */
  NEW_ARRAY: 39,
  /** The class for the size in of, room; the address of the class's free list; the address of the class of a size. */
  SIZE_CLASS: 40,
  CLASS_CELL: 41,
  SIZE_CELL: 42,
  /**
   * 0, or 1 and the reference named `subject` is of type `testedHeap`, and not null unless `orNull` is 1; TYPE_FLAG: in
   * the low byte only.
   */
  TYPE_TEST: 43,
  TYPE_FLAG: 44,
  /** The address of the code of the record named `subject`. */
  RECORD_CODE: 45,
  /** The distance to the poll page in the word at `imageOffset`, and the address at that distance from the word. */
  POLL_DISTANCE: 46,
  POLL_PLACE: 47,
  /** Zero, or ones in all of the low `maskBytes` bytes and zeros above. */
  MASK: 48,
} as const;

/** The name of a kind. */
type KindName = keyof typeof VALUE;

/** By kind of value: 1 for the kinds with the property. */
function flagsOf(property: keyof KindRow): Uint8Array {
  const flags = new Uint8Array(64);
  for (const [name, row] of Object.entries(KINDS)) if (row[property] === true) flags[VALUE[name as KindName]] = 1;
  return flags;
}

/** Properties of a kind of values, apart from the meaning of its columns (kind_facts.ts). */
interface KindRow {
  /** It is about another value, whose name is `subject`. */
  readonly namesId?: true;
  /** It keeps its use where no location has that value: it is about some object. */
  readonly outlives?: true;
  /** `low`, `high` and `room` are not bounds: a join keeps them only if they are equal. */
  readonly exact?: true;
  /** The value always has 32 bits. */
  readonly short?: true;
  /** A compare with a length bounds the value. */
  readonly hasLimit?: true;
  /** The value is bounded above with the others that have its name. */
  readonly isBounded?: true;
}

/** Kinds with properties; the others have none. */
const KINDS: Readonly<Partial<Record<KindName, KindRow>>> = {
  ANCESTOR: { namesId: true, exact: true, short: true },
  ARRAY_LENGTH: { namesId: true, short: true, hasLimit: true, isBounded: true },
  CLASS_CELL: { exact: true },
  DESCRIPTOR: { namesId: true, outlives: true },
  DESCRIPTOR_OFFSET: { namesId: true, outlives: true },
  DISPLAY: { namesId: true, outlives: true },
  EXPECTED_TYPE: { short: true },
  FREE_LINK: { namesId: true },
  LENGTH: { hasLimit: true, isBounded: true },
  MASK: { exact: true },
  MEMORY: { hasLimit: true },
  NEW_ARRAY: { exact: true },
  NUMBER: { hasLimit: true, isBounded: true },
  RECORD_CODE: { namesId: true },
  RECORD_CONTEXT: { namesId: true },
  RECORD_LENGTH: { namesId: true },
  RECORD_MEMORY: { namesId: true },
  SIZE_CELL: { exact: true },
  SIZE_CLASS: { exact: true },
  TAG_BITS: { namesId: true, exact: true, short: true },
  TYPE_FLAG: { namesId: true, exact: true },
  TYPE_ID: { namesId: true, outlives: true, short: true },
  TYPE_KIND: { namesId: true, short: true },
  TYPE_TEST: { namesId: true, short: true },
};

/** By kind of value: 1 if it is about another value, whose name is `subject`. */
export const NAMES_ID: Uint8Array = flagsOf("namesId");
/** By kind of value: 1 if the fact is useful even after its subject has been overwritten everywhere. */
export const OUTLIVES_SUBJECT: Uint8Array = flagsOf("outlives");
/** By kind of value: 1 if `low`, `high` and `room` are not bounds. */
export const EXACT_KINDS: Uint8Array = flagsOf("exact");
/** By kind of value: 1 if a compare with a length bounds the value. */
export const HAVE_LIMITS: Uint8Array = flagsOf("hasLimit");
/** By kind of value: 1 if the value is bounded above with the others that have its name. */
export const BOUNDED_KINDS: Uint8Array = flagsOf("isBounded");
/** By kind of value: 1 if the value always has 32 bits. */
export const SHORT_KINDS: Uint8Array = flagsOf("short");

/**
 * Facts about a reference, in column `known`. OWN: a function of the own instance; OBJECT: null or an address; FRESH:
 * the object was allocated here, so its type is exactly `heap`.
 */
export const REFERENCE_FACTS = { NOT_NULL: 1, OWN: 2, OBJECT: 4, FRESH: 8 } as const;
/** Facts about a slot of the heap, in column `known`. */
export const SLOT_FACTS = { NOT_NULL: 1, TAKEN: 2 } as const;
/**
 * Facts about a number, in column `traits`. ZERO_OR_ODD: of every odd number, too; ENTRIES: a multiple of
 * Machine.jumpBytes.
 */
export const NUMBER_FACTS = { ODD: 1, ZERO_OR_ODD: 2, ENTRIES: 4 } as const;

/** The class of a slot that is not in a known free list. */
export const NO_CLASS = 0x7fffffff;
