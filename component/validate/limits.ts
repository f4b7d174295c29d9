/**
 * Implementation limits of validation. They bound time and memory for hostile input: types share parts, so that a short
 * component can describe a type that is exponentially large as a tree.
 */

/** Nodes of a type, counted as a tree. */
export const MAX_TYPE_NODES = 1_000_000;
/** Core modules in a component and the components in it: each costs a compilation. */
export const MAX_CORE_MODULES = 1_000;
/** Resource types that imports, exports and instantiations create. */
export const MAX_FRESH_RESOURCES = 10_000;
/**
 * Nodes of types, counted as trees, that imports, exports and instantiations copy or compare: a constant, and nodes per
 * byte of the component.
 */
export const MAX_COPIED_NODES = 1_000_000;
export const COPIED_NODES_PER_BYTE = 64;
/** Nesting of type constructors. */
export const MAX_TYPE_DEPTH = 100;
/** Bytes of a value in memory with 64-bit pointers (Explainer, "Type Definitions"): less than this. */
export const MAX_VALUE_BYTES = 1 << 28;
/** Labels of a `flags` type. */
export const MAX_FLAGS = 32;
/** Context slots of a thread. */
export const CONTEXT_SLOTS = 2;
