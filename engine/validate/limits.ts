/**
 * Implementation limits that validation enforces (specification, appendix A.2): the size that one type or one
 * instruction may ask for, so that no short module can make validation or compilation take unbounded time or memory.
 * The figures are those of the JavaScript interface. Limits of decoding are in wasm/limits.ts; that of subtype chains
 * is in wasm/subtype.ts.
 */

/** Parameters of one function type, and results. */
export const MAX_PARAMS = 1_000;
export const MAX_RESULTS = 1_000;
/** Fields of one structure type. */
export const MAX_FIELDS = 10_000;
/** Operands of array.new_fixed. */
export const MAX_FIXED_ELEMENTS = 10_000;
/** Pages of 64 KiB of a memory, by address type: the whole address space. */
export const MAX_PAGES_32 = 1n << 16n;
export const MAX_PAGES_64 = 1n << 48n;
/** Pages of one byte of a memory, by address type (custom page sizes). */
export const MAX_BYTES_32 = (1n << 32n) - 1n;
export const MAX_BYTES_64 = (1n << 64n) - 1n;
/** Elements of a table, by address type. */
export const MAX_TABLE_SIZE_32 = (1n << 32n) - 1n;
export const MAX_TABLE_SIZE_64 = (1n << 64n) - 1n;
