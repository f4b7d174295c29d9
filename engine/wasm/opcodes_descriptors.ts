/**
 * Opcode rows of the proposal "custom descriptors", in the notation of opcode_row.ts. They come after all other pages,
 * so that the ids of the standard's rows do not depend on them. `ref.cast_desc_eq(null)` is the form whose target type
 * includes null.
 */

/** Rows of structures with descriptors, and of casts that compare them. */
export const DESCRIPTOR_ROWS = [
  "fb:20 struct.new_desc type special custom-descriptors",
  "fb:21 struct.new_default_desc type special custom-descriptors",
  "fb:22 ref.get_desc type special custom-descriptors",
  "fb:23 ref.cast_desc_eq reftype0 special custom-descriptors",
  "fb:24 ref.cast_desc_eq(null) reftype1 special custom-descriptors",
  "fb:25 br_on_cast_desc_eq casttypes special custom-descriptors",
  "fb:26 br_on_cast_desc_eq_fail casttypes special custom-descriptors",
] as const;
