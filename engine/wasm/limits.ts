/**
 * Implementation limits (specification, appendix A.2) that decoding enforces: they bound what a hostile module can make us
 * allocate before validation looks at it. Counts are first bounded by the bytes left; these limits come on top, so that a
 * large file of tiny entries cannot fill memory with objects. The figures are those of the JavaScript interface where it
 * has one, so a module that runs in a browser passes. Limits of validation are in validate/limits.ts.
 */

/** Entries of a section or of the whole module, by the plural that a message uses. */
export const MAX_ENTRIES = {
  "types": 1_000_000,
  "imports": 1_000_000,
  "functions": 1_000_000,
  "tables": 100_000,
  "memories": 100_000,
  "tags": 1_000_000,
  "globals": 1_000_000,
  "exports": 1_000_000,
  "element segments": 1_000_000,
  "data segments": 100_000,
  /** Of all element segments together. */
  "elements": 10_000_000,
  /** Of all function bodies together: seven bytes can declare 50,000, which every pass over a body then pays for. */
  "locals": 50_000_000,
} as const satisfies Record<string, number>;

/** Locals of one function, parameters not counted. */
export const MAX_LOCALS = 50_000;
