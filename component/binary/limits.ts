/**
 * Implementation limits of decoding. They bound memory and recursion for hostile input: a count is first bounded by the
 * bytes left, then by these limits.
 */

/** Nesting of components and of component, instance and module types. */
export const MAX_NESTING = 100;
/** Definitions of one component, and declarations of one type. */
export const MAX_DEFINITIONS = 1_000_000;
/** Operands of one type constructor, parameters, arguments or inline exports. */
export const MAX_ITEMS = 100_000;
/** Bytes of the outermost component. */
export const MAX_COMPONENT_BYTES = 1_073_741_824;
