/**
 * Implementation limits that decoding enforces. They bound the memory that a hostile module can make the decoder
 * allocate before validation looks at it: a count is first bounded by the bytes left, then by these limits, so that a
 * large file of tiny entries cannot fill memory with objects. The figures are those of the JavaScript interface (its
 * appendix "Implementation-defined Limits") where it has one, so a module that runs in a browser decodes.
 * validate/limits.ts has the limits of validation.
 */

/** Bytes of a module in binary form. */
export const MAX_MODULE_BYTES = 1_073_741_824;

/** Entries of a section, by the plural that a message uses. */
export const MAX_ENTRIES = {
  "types": 1_000_000,
  "imports": 1_000_000,
  "functions": 1_000_000,
  "tables": 100_000,
  "memories": 100_000,
  "tags": 1_000_000,
  "globals": 1_000_000,
  "exports": 1_000_000,
  "element segments": 10_000_000,
  "data segments": 100_000,
  /** The interface has no limit; empty ones take four bytes of a file. */
  "custom sections": 1_000_000,
  /** Elements of one segment. */
  "elements": 10_000_000,
  /** Elements of all segments: five tables of the largest size. */
  "elements of all segments": 50_000_000,
  /** Locals of all function bodies: seven bytes can declare 50,000, and every pass over a body pays for each. */
  "locals of all functions": 50_000_000,
} as const satisfies Record<string, number>;

/** Names of a name section; from there on it counts as damaged. A map of the host has at most 16 million entries. */
export const MAX_NAMES = 4_000_000;

/** Locals of one function, parameters included. */
export const MAX_LOCALS = 50_000;
/** Bytes of one function body, its local declarations included. */
export const MAX_BODY_BYTES = 7_654_321;
