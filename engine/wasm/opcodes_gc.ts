/**
 * Opcode rows of prefix 0xfb: structures, arrays, casts, i31 references (specification, 5.4.2). `ref.test(null)` is the
 * form of `ref.test` whose target type includes null; see opcodes_core.ts about the parentheses. The notation is that
 * of opcode_row.ts.
 */

/** Rows of prefix 0xfb. */
export const GC_ROWS = [
  // structures, arrays, casts, i31 (specification, 5.4.2; prefix fb)
  "fb:00 struct.new type special gc",
  "fb:01 struct.new_default type special gc",
  "fb:02 struct.get type,field special gc",
  "fb:03 struct.get_s type,field special gc",
  "fb:04 struct.get_u type,field special gc",
  "fb:05 struct.set type,field special gc",
  "fb:06 array.new type special gc",
  "fb:07 array.new_default type special gc",
  "fb:08 array.new_fixed type,count special gc",
  "fb:09 array.new_data type,data special gc",
  "fb:0a array.new_elem type,elem special gc",
  "fb:0b array.get type special gc",
  "fb:0c array.get_s type special gc",
  "fb:0d array.get_u type special gc",
  "fb:0e array.set type special gc",
  "fb:0f array.len - special gc",
  "fb:10 array.fill type special gc",
  "fb:11 array.copy type,type special gc",
  "fb:12 array.init_data type,data special gc",
  "fb:13 array.init_elem type,elem special gc",
  "fb:14 ref.test reftype0 special gc",
  "fb:15 ref.test(null) reftype1 special gc",
  "fb:16 ref.cast reftype0 special gc",
  "fb:17 ref.cast(null) reftype1 special gc",
  "fb:18 br_on_cast casttypes special gc",
  "fb:19 br_on_cast_fail casttypes special gc",
  "fb:1a any.convert_extern - special gc",
  "fb:1b extern.convert_any - special gc",
  "fb:1c ref.i31 - special gc",
  "fb:1d i31.get_s - special gc",
  "fb:1e i31.get_u - special gc",
] as const;
