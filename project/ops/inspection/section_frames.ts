/**
 * The places of sections in a module or component that may be damaged. In: bytes. Out: a frame for each section whose
 * id and size can be read. Invariant: frames are within the bytes.
 */
import { ByteReader } from "@waft/engine/internal/base/bytes";
import { WaftError } from "@waft/engine/internal/errors";
import { SECTION } from "@waft/engine/internal/wasm/section_ids";

/** Bytes of the magic number and the version. */
const HEADER_BYTES = 8;

/** The extent of a section in its part. */
export interface Frame {
  readonly id: number;
  readonly customName?: string;
  readonly offset: number;
  readonly bytes: number;
}

/** The sections whose sizes can be read; one that is larger than the rest ends with the bytes. */
export function readFrames(bytes: Uint8Array): { sections: Frame[]; fault?: WaftError } {
  const reader = new ByteReader(bytes, Math.min(HEADER_BYTES, bytes.length));
  const sections: Frame[] = [];
  try {
    while (reader.left > 0) {
      const id = reader.u8();
      const size = reader.u32();
      const offset = reader.pos;
      const end = Math.min(offset + size, bytes.length);
      const customName = id === SECTION.custom ? nameAt(bytes, offset, end) : undefined;
      sections.push({ id, ...(customName === undefined ? {} : { customName }), offset, bytes: end - offset });
      reader.pos = end;
    }
  } catch (fault) {
    if (!(fault instanceof WaftError)) throw fault;
    return { sections, fault };
  }
  return { sections };
}

/** The result of `read`; undefined for a malformed value. */
function readOrUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof WaftError) return undefined;
    throw error;
  }
}

function nameAt(bytes: Uint8Array, offset: number, end: number): string | undefined {
  return readOrUndefined(() => new ByteReader(bytes, offset, end).name());
}

/** The number of entries that a section declares; undefined if it is malformed. */
export function countOf(content: Uint8Array): number | undefined {
  return readOrUndefined(() => new ByteReader(content).u32());
}
