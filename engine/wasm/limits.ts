/**
 * Implementation limits (specification, appendix A.2): sizes that a module may declare beyond which this engine refuses
 * it. The figures are those of the WebAssembly JavaScript interface, so a module that runs in a browser passes. They bound
 * what a hostile module can make us allocate before its first instruction is read.
 */

export const MAX_TYPES = 1_000_000;
export const MAX_FUNCS = 1_000_000;
export const MAX_IMPORTS = 1_000_000;
export const MAX_EXPORTS = 1_000_000;
export const MAX_GLOBALS = 1_000_000;
export const MAX_TAGS = 1_000_000;
export const MAX_TABLES = 100_000;
export const MAX_MEMORIES = 100;
export const MAX_DATA_SEGMENTS = 100_000;
export const MAX_ELEMENT_SEGMENTS = 10_000_000;
/** Entries of one element segment. */
export const MAX_ELEMENTS = 10_000_000;
/** Parameters of one function type, and results. */
export const MAX_PARAMS = 1_000;
export const MAX_RESULTS = 1_000;
export const MAX_FIELDS = 10_000;
/** Locals of one function, parameters not counted. */
export const MAX_LOCALS = 50_000;
