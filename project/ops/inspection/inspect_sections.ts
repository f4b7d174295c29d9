/**
 * The sections of a binary: their places and sizes, and the content of the producers section. In: a core module or a
 * component that has been decoded, so that its framing is sound. Out: a row per section, in order.
 */
import { ByteReader } from "@waft/engine/internal/base/bytes";

/** A section: its name, the offset of its content and the size of that in bytes. */
export interface SectionRow {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
}

/** The tools that produced a module, by role: `language`, `processed-by`, `sdk`. */
export interface Producer {
  readonly field: string;
  readonly name: string;
  readonly version: string;
}

/** Bytes of the magic number and the version. */
const HEADER_BYTES = 8;
/** The maximum number of producers that are shown: tools write a handful. */
const MAX_PRODUCERS = 100;

/** The sections of `bytes`, whose ids `names` maps to names; custom sections have theirs after `custom `. */
export function sectionsOf(bytes: Uint8Array, names: (id: number) => string): SectionRow[] {
  const reader = new ByteReader(bytes, HEADER_BYTES);
  const rows: SectionRow[] = [];
  while (reader.left > 0) {
    const id = reader.u8();
    const size = reader.u32();
    const offset = reader.pos;
    const name = id === 0 ? `custom ${reader.name()}` : names(id);
    rows.push({ name, offset, bytes: size });
    reader.pos = offset + size;
  }
  return rows;
}

/**
 * The producers section (tool conventions, ProducersSection.md). Like all custom sections it may be damaged: the fields
 * before the damage are returned.
 */
export function producersOf(content: Uint8Array): Producer[] {
  const reader = new ByteReader(content);
  const producers: Producer[] = [];
  try {
    for (let fields = reader.u32(); fields > 0; fields--) {
      const field = reader.name();
      for (let values = reader.u32(); values > 0; values--) {
        if (producers.length === MAX_PRODUCERS) return producers;
        producers.push({ field, name: reader.name(), version: reader.name() });
      }
    }
  } catch {
    // a damaged custom section is not an error
  }
  return producers;
}
