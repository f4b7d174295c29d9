/**
 * The sections of a module: ids and their order (specification, 5.5.2). Decoder and encoder share this list; a custom
 * section (id 0) may occur anywhere.
 */

/** Section ids by name. */
export const SECTION = {
  custom: 0,
  type: 1,
  import: 2,
  function: 3,
  table: 4,
  memory: 5,
  global: 6,
  export: 7,
  start: 8,
  element: 9,
  code: 10,
  data: 11,
  dataCount: 12,
  tag: 13,
} as const;

/** Ids in the order of the binary format. */
export const SECTION_ORDER: readonly number[] = [
  SECTION.type,
  SECTION.import,
  SECTION.function,
  SECTION.table,
  SECTION.memory,
  SECTION.tag,
  SECTION.global,
  SECTION.export,
  SECTION.start,
  SECTION.element,
  SECTION.dataCount,
  SECTION.code,
  SECTION.data,
];

/** By id: the section's place in the order, from 1; 0 for custom sections. */
export const SECTION_RANK: Uint8Array = Uint8Array.from(
  { length: SECTION_ORDER.length + 1 },
  (_, id) => SECTION_ORDER.indexOf(id) + 1,
);

/** The magic bytes and the version, with which every module begins. */
export const HEADER: Uint8Array = Uint8Array.of(0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00);
