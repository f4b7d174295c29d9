/**
 * Implementation limits of validation. They bound time and memory for hostile input: types share parts, so that a short
 * component can describe a type that is exponentially large as a tree.
 */

/** Nodes of a type, counted as a tree. */
export const MAX_TYPE_NODES = 1_000_000;
/** Nesting of type constructors. */
export const MAX_TYPE_DEPTH = 100;
/** Bytes of a value in memory with 64-bit pointers (Explainer, "Type Definitions"): less than this. */
export const MAX_VALUE_BYTES = 1 << 28;
/** Labels of a `flags` type. */
export const MAX_FLAGS = 32;
/** Context slots of a thread. */
export const CONTEXT_SLOTS = 2;
