/**
 * The layout of the kernel's memory: the input that the driver (engine/baseline/) writes before a run, and the output
 * that it reads afterwards. Every table has rows of fixed size; addresses of tables whose size depends on the module
 * are words of the header.
 *
 *     HEADER       words, below: properties of the module and addresses of its tables
 *     OPCODES      addresses of rows by prefix page and code, then a row per opcode
 *                  (scripts/generate/baseline_opcodes.ts)
 *     FEATURES     a word per feature, 1 if it is enabled; then per feature the smallest offset of a use
 *     STUBS        offsets of the image's stubs, by number
 *     MOVES, OWNERS, PINS           register moves; the entry in each register; locals with a pinned register
 *     LOCALS, OPERANDS, FRAMES, LANDINGS, FRAGMENTS     scratch of one body: locals, operand stack, control frames,
 *                                                       landing pads, out-of-line fragments
 *     CALLS, TRAPS, RELOCATIONS, RESULTS, CODE     output, for many bodies
 *     JOURNAL      a row per body that compileNext has compiled, up to 64
 *     MODULE       tables of the module and the bytes of its bodies
 */
import type { i32 } from "./memory.ts";

// Regions.
const HEADER: i32 = 0x100;
export const OPCODES: i32 = 0x1000;
/** Addresses of rows, 16 bits each, by page (prefix byte) and code; 0 for an unknown opcode. */
export const OPCODE_PAGE_BYTES: i32 = 0x400;
export const OPCODE_ROWS: i32 = OPCODES + 5 * OPCODE_PAGE_BYTES;
export const FEATURES: i32 = 0xf000;
export const FEATURE_USES: i32 = FEATURES + 0x100;
/** Offset in the image of each stub, by number (STUB in codegen/machine_code.ts); −1 if absent. */
export const STUBS: i32 = 0xf200;
export const STUBS_END: i32 = 0xf400;
export const MOVES: i32 = 0xf400;
export const OWNERS: i32 = 0xf600;
export const PINS: i32 = 0xf700;
export const LOCALS: i32 = 0x10000;
export const LOCALS_END: i32 = 0x200000;
export const OPERANDS: i32 = 0x200000;
export const OPERANDS_END: i32 = 0x600000;
export const FRAMES: i32 = 0x600000;
export const FRAMES_END: i32 = 0x9c0000;
export const LANDINGS: i32 = 0x9c0000;
export const LANDINGS_END: i32 = 0xa00000;
export const FRAGMENTS: i32 = 0xa00000;
export const FRAGMENTS_END: i32 = 0xe00000;
export const CALLS: i32 = 0xe00000;
export const CALLS_END: i32 = 0x1200000;
export const TRAPS: i32 = 0x1200000;
export const TRAPS_END: i32 = 0x1800000;
export const RELOCATIONS: i32 = 0x1800000;
export const RELOCATIONS_END: i32 = 0x1c00000;
const RESULTS: i32 = 0x1c00000;
const RESULTS_END: i32 = 0x1df0000;
export const JOURNAL: i32 = 0x1df0000;
export const JOURNAL_ROW: i32 = 20;
export const JOURNAL_END: i32 = JOURNAL + 64 * JOURNAL_ROW;
export const CODE: i32 = 0x1e00000;
export const CODE_END: i32 = 0x3e00000;
export const MODULE: i32 = 0x3e00000;

// Words of the header: addresses of tables, counts, offsets in the VM context.
export const H_MODE: i32 = HEADER;
export const H_CPU: i32 = HEADER + 4;
export const H_TYPES: i32 = HEADER + 8;
export const H_TYPE_COUNT: i32 = HEADER + 12;
export const H_FUNCS: i32 = HEADER + 16;
export const H_FUNC_COUNT: i32 = HEADER + 20;
export const H_IMPORTED_FUNCS: i32 = HEADER + 24;
export const H_GLOBALS: i32 = HEADER + 28;
export const H_GLOBAL_COUNT: i32 = HEADER + 32;
export const H_TABLES: i32 = HEADER + 36;
export const H_TABLE_COUNT: i32 = HEADER + 40;
export const H_MEMORIES: i32 = HEADER + 44;
export const H_MEMORY_COUNT: i32 = HEADER + 48;
export const H_ELEMS: i32 = HEADER + 52;
export const H_ELEM_COUNT: i32 = HEADER + 56;
export const H_DATA_COUNT: i32 = HEADER + 60;
/** 1: the module has data segments and no data count section. */
export const H_DATA_COUNT_MISSING: i32 = HEADER + 64;
/** Bytes of FUNC_ bits, by function index. */
export const H_DECLARED: i32 = HEADER + 68;
export const H_BODIES: i32 = HEADER + 72;
export const H_IMPORTS_OFFSET: i32 = HEADER + 76;
export const H_FUNCTIONS_OFFSET: i32 = HEADER + 80;
export const H_TYPE_IDS_OFFSET: i32 = HEADER + 84;
export const H_CONSTANTS: i32 = HEADER + 88;
export const H_TAGS: i32 = HEADER + 92;
export const H_TAG_COUNT: i32 = HEADER + 96;
export const H_TAGS_OFFSET: i32 = HEADER + 100;

/** Offset in the image at which the code of this run begins. */
export const H_BASE: i32 = HEADER + 104;
/** Address of a table with the offset of each body's code in the image, −1 until the body is placed. */
export const H_STARTS: i32 = HEADER + 108;
/** Distance from the start of the image to the poll page; 0 if it is not known. */
export const H_POLL_DISTANCE: i32 = HEADER + 112;
/** What compileBody has compiled: its status, the bounds of its code in the image, and the ends of its rows. */
export const H_RESULT: i32 = HEADER + 116;
export const RESULT_STATUS: i32 = 0;
export const RESULT_START: i32 = 4;
export const RESULT_END: i32 = 8;
export const RESULT_CALLS_END: i32 = 12;
export const RESULT_TRAPS_END: i32 = 16;
export const RESULT_RELOCATIONS_END: i32 = 20;
export const RESULT_SIZE: i32 = 24;
/** Address after the last row of the journal. */
export const H_JOURNAL_END: i32 = HEADER + 140;
/** Offset in the image at which the code of bodies in the journal must end. */
export const H_CODE_LIMIT: i32 = HEADER + 144;
/** Address of a byte per opcode row: its price in fuel plus 1, 0 for ROW_PRICE. 0 if all have ROW_PRICE. */
export const H_PRICES: i32 = HEADER + 148;

/**
 * A body of more bytes is left to the driver, as is every body once the journal is full: the driver looks at the limits
 * of the call, which may compile many bodies before it comes to a poll.
 */
export const NEXT_BODY_BYTES: i32 = 4096;

// A row of the journal: the index of a body, the bounds of its code in the image, and the ends of its rows of call and
// trap sites, which follow those of the row before.
export const JOURNAL_INDEX: i32 = 0;
export const JOURNAL_START: i32 = 4;
export const JOURNAL_CODE_END: i32 = 8;
export const JOURNAL_CALLS_END: i32 = 12;
export const JOURNAL_TRAPS_END: i32 = 16;

/** Bits of H_CPU. */
export const CPU_LZCNT: i32 = 1;
export const CPU_BMI1: i32 = 2;
export const CPU_BMI2: i32 = 4;
export const CPU_POPCNT: i32 = 8;

// A type row: kind, lists, canonical id, index of the declared supertype (−1 for none), 1 if final, depth in the chain
// of supertypes, index of the type of descriptors (−1 for none) and offset of the descriptor in an object. A structure
// or array has a list of fields in place of the parameters (an array has one field), and its size in place of the
// results.
export const TYPE_ROW: i32 = 44;
export const TYPE_KIND: i32 = 0;
export const TYPE_PARAMS: i32 = 4;
export const TYPE_PARAM_COUNT: i32 = 8;
export const TYPE_RESULTS: i32 = 12;
export const TYPE_RESULT_COUNT: i32 = 16;
export const TYPE_CANONICAL: i32 = 20;
export const TYPE_PARENT: i32 = 24;
export const TYPE_FINAL: i32 = 28;
export const TYPE_DEPTH: i32 = 32;
export const TYPE_DESCRIPTOR: i32 = 36;
export const TYPE_DESCRIPTOR_OFFSET: i32 = 40;
export const TYPE_FIELDS: i32 = 4;
export const TYPE_FIELD_COUNT: i32 = 8;
/** Continuations: the index of their function type. */
export const TYPE_FUNCTION: i32 = 4;
/**
 * Structures: size in bytes, header included, and size class (abi/gc_layout.ts). Arrays: log2 of the element size in
 * bytes.
 */
export const TYPE_BYTES: i32 = 12;
export const TYPE_CLASS: i32 = 16;
export const TYPE_ELEMENT_SHIFT: i32 = 12;
export const TYPE_IS_FUNC: i32 = 1;
export const TYPE_IS_STRUCT: i32 = 2;
export const TYPE_IS_ARRAY: i32 = 3;
export const TYPE_IS_CONT: i32 = 4;

// A field: storage type, 1 if it is mutable, offset in the object.
export const FIELD_ROW: i32 = 12;
export const FIELD_STORAGE: i32 = 0;
export const FIELD_IS_MUTABLE: i32 = 4;
export const FIELD_OFFSET: i32 = 8;

// A global: type, flags, offset in the context.
export const GLOBAL_ROW: i32 = 12;
export const GLOBAL_TYPE: i32 = 0;
export const GLOBAL_FLAGS: i32 = 4;
export const GLOBAL_OFFSET: i32 = 8;
export const GLOBAL_IS_MUTABLE: i32 = 1;
export const GLOBAL_IS_POINTER: i32 = 2;

// A table: type of its elements, 1 if its indices have 64 bits, offset in the context.
export const TABLE_ROW: i32 = 12;
export const TABLE_ELEMENT: i32 = 0;
export const TABLE_IS_64: i32 = 4;
export const TABLE_OFFSET: i32 = 8;

// A memory: flags, offset in the context, offset of its entry in `sharedLengths` (abi/context_layout.ts).
export const MEMORY_ROW: i32 = 12;
export const MEMORY_FLAGS: i32 = 0;
export const MEMORY_OFFSET: i32 = 4;
export const MEMORY_SHARED_LENGTH: i32 = 8;
export const MEMORY_IS_64: i32 = 1;
export const MEMORY_IS_SHARED: i32 = 2;
export const MEMORY_HAS_BYTE_PAGES: i32 = 4;

// A function: it may be the operand of ref.func; it counts the depth of calls (translate/counted_functions.ts); it is
// an import of an exact type.
export const FUNC_DECLARED: i32 = 1;
export const FUNC_COUNTED: i32 = 2;
export const FUNC_EXACT: i32 = 4;

// A body: address of its first byte and of its end, absolute offset in the module.
export const BODY_ROW: i32 = 12;
export const BODY_START: i32 = 0;
export const BODY_END: i32 = 4;
export const BODY_OFFSET: i32 = 8;
/** In place of the offset of a body: it is not compiled, as if it were too large. */
export const LEFT_OUT: i32 = -1;

// A result is a word in each of four columns, which the driver copies as they are: start and end of the code, relative
// to CODE until it is placed, then in the image (−1 if there is none); frame in bytes; status.
export const RESULT_COLUMN: i32 = (RESULTS_END - RESULTS) / 4;
export const RESULT_STARTS: i32 = RESULTS;
export const RESULT_ENDS: i32 = RESULTS + RESULT_COLUMN;
export const RESULT_FRAMES: i32 = RESULTS + 2 * RESULT_COLUMN;
export const RESULT_STATUSES: i32 = RESULTS + 3 * RESULT_COLUMN;

/** The status of a body: compiled, invalid, or a reason to leave it to the optimizing compiler. */
export const STATUS_DONE: i32 = 0;
export const STATUS_INVALID: i32 = 1;
export const STATUS_TOO_LARGE: i32 = 2;
/** Never in RESULTS: the output is full, and the body must be compiled again in the next run. */
export const STATUS_FULL: i32 = 100;

// An opcode's row.
export const OPCODE_ROW: i32 = 20;
export const ROW_KIND: i32 = 0;
export const ROW_ARGUMENT: i32 = 1;
/** Number of operands, or SPECIAL. */
export const ROW_OPERANDS: i32 = 2;
/** Types of the top, second and third operand, and of the result; 0 for none. */
export const ROW_TOP: i32 = 3;
export const ROW_RESULT: i32 = 6;
export const ROW_FEATURE: i32 = 7;
/** log2 of the width of a memory access. */
export const ROW_WIDTH: i32 = 8;
/** Bits of the values that have the address type: operands from the top on (bits 0 to 2), and the result (8). */
export const ROW_ADDRESSES: i32 = 9;
/** Immediates to check: the bits CHECK_ of constants.ts. */
export const ROW_CHECKS: i32 = 10;
export const ROW_LANES: i32 = 11;
/** The steps that read the immediates: up to six of 5 bits each. */
export const ROW_PLAN: i32 = 12;
/** Shape of the lanes of a vector instruction. */
export const ROW_SHAPE: i32 = 16;
/**
 * The price in fuel units, and for bulk instructions log2 of the length, in units of the top operand, that costs one
 * more unit of fuel (0: constant price).
 */
export const ROW_PRICE: i32 = 17;
export const ROW_BULK_SHIFT: i32 = 18;
export const ROW_FLAGS: i32 = 19;
export const FLAG_ENDS_REGION: i32 = 1;
export const FLAG_REGION_ENDS_BEFORE: i32 = 2;
/** The instruction may produce a NaN, of 32 or 64 bits, that must be made canonical in deterministic code. */
export const FLAG_MAKES_NAN32: i32 = 4;
export const FLAG_MAKES_NAN64: i32 = 8;

export const SPECIAL: i32 = 255;
