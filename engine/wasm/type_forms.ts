/** The first byte of a type definition in binary form (specification, 5.3.8 ff.). */
export const TYPE_FORM = {
  FUNC: 0x60,
  STRUCT: 0x5f,
  ARRAY: 0x5e,
  /** A continuation type (stack switching). */
  CONT: 0x5d,
  /** A subtype with supertypes: open, or final. */
  SUB: 0x50,
  SUB_FINAL: 0x4f,
  /** Clauses before a composite type: the described type, then the type of descriptors (custom descriptors). */
  DESCRIBES: 0x4c,
  DESCRIPTOR: 0x4d,
  /** A recursive group of several types. */
  REC: 0x4e,
} as const;
