/**
 * Compression of integer columns. In: an array of integers. Out: bytes; and from bytes, the same values as an
 * Int32Array. Code tables are sorted or repeat values, so each value is stored as its difference from the previous one:
 *
 *      count · { difference ≠ 0 | 0 · number of further rows with the same value }
 *
 * Numbers are LEB128 of 32 bits. Differences wrap around and are zigzag-encoded. Invariant: unpacking throws
 * MalformedError for bytes that packing cannot produce, and allocates no more rows than the caller allows: a run of any
 * length takes a few bytes.
 */
import { ByteReader, ByteWriter } from "../base/bytes.ts";

/** Packs a column. */
export function packColumn(column: Int32Array | Uint8Array): Uint8Array {
  const out = new ByteWriter(64 + column.length);
  out.u32(column.length);
  let before = 0;
  for (let k = 0; k < column.length; k++) {
    const difference = (column[k] - before) | 0;
    before = column[k];
    if (difference !== 0) {
      out.u32(((difference << 1) ^ (difference >> 31)) >>> 0);
      continue;
    }
    const first = k;
    while (k + 1 < column.length && column[k + 1] === before) k++;
    out.u32(0);
    out.u32(k - first);
  }
  return out.finish();
}

/** Unpacks a column of at most `maxRows` rows. Throws MalformedError for bytes that packing cannot produce. */
export function unpackColumn(bytes: Uint8Array, maxRows: number): Int32Array {
  const reader = new ByteReader(bytes);
  const rows = reader.u32();
  if (rows > maxRows) reader.fail("too many table rows", 0);
  const column = new Int32Array(rows);
  for (let row = 0, value = 0; row < rows;) {
    const number = reader.u32();
    if (number !== 0) {
      value = (value + ((number >>> 1) ^ -(number & 1))) | 0;
      column[row++] = value;
      continue;
    }
    const more = reader.u32();
    if (more >= rows - row) reader.fail("more table rows than declared");
    column.fill(value, row, row + more + 1);
    row += more + 1;
  }
  if (reader.left !== 0) reader.fail("trailing bytes after a table");
  return column;
}
