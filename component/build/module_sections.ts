/**
 * Core modules as sequences of sections. In: a module in binary form. Out: the module without the custom sections of a
 * kind; all other bytes are kept, so that offsets in debug information stay right relative to the code section.
 */
import { ByteReader, ByteWriter } from "@waft/engine/internal/base/bytes";
import { SECTION } from "@waft/engine/internal/wasm/section_ids";

const HEADER_BYTES = 8;

/** The module without the custom sections whose name satisfies `drop`. */
export function withoutCustoms(bytes: Uint8Array, drop: (name: string) => boolean): Uint8Array {
  const reader = new ByteReader(bytes, HEADER_BYTES);
  const writer = new ByteWriter(bytes.length);
  writer.raw(bytes.subarray(0, HEADER_BYTES));
  while (reader.left > 0) {
    const start = reader.pos;
    const id = reader.u8();
    const size = reader.u32();
    const end = reader.pos + size;
    const isDropped = id === SECTION.custom && drop(reader.name());
    reader.pos = end;
    if (!isDropped) writer.raw(bytes.subarray(start, end));
  }
  return writer.finish();
}
