/** Packed columns: round trips, small sizes for typical tables, and errors for invalid bytes. */
import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { MalformedError } from "../base/errors.ts";
import { packColumn, unpackColumn } from "./packed_column.ts";

const MAX_ROWS = 10_000;

const COLUMNS: readonly (readonly number[])[] = [
  [],
  [0],
  [0, 0, 0],
  [5],
  [7, 7, 7, 8],
  [-1, -1, 0, 2147483647, -2147483648, -2147483648, 2147483647],
  [1, 2, 3, 4, 200, 20000, 2000000],
];

Deno.test("unpacking restores the column", () => {
  for (const column of COLUMNS) deepEqual([...unpackColumn(packColumn(Int32Array.from(column)), MAX_ROWS)], column);
  let seed = 1;
  const random = () => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) >>> 4;
  for (let round = 0; round < 200; round++) {
    const column = new Int32Array(random() % 60);
    for (let k = 0; k < column.length; k++) {
      column[k] = random() % 3 === 0 ? random() << 5 : (column[k - 1] ?? 0) + random() % 2;
    }
    deepEqual(unpackColumn(packColumn(column), MAX_ROWS), column);
  }
  deepEqual([...unpackColumn(packColumn(Uint8Array.of(0, 1, 1, 255)), MAX_ROWS)], [0, 1, 1, 255]);
});

Deno.test("ascending offsets and repeated values are small", () => {
  const ascending = Int32Array.from({ length: 10_000 }, (_, k) => k * 20);
  ok(packColumn(ascending).length < 10_010);
  equal(packColumn(new Int32Array(1_000_000)).length, 7);
});

Deno.test("bytes that packing cannot produce are refused", () => {
  for (
    const bytes of [
      [], // no count
      [0x80], // half a count
      [1], // no row
      [2, 2], // one row missing
      [1, 0], // no run length
      [1, 0, 1], // a run longer than the column
      [3, 2, 0, 2], // a run that should be part of the previous one
      [1, 2, 2], // trailing bytes
      [0x91, 0x4e, 0, 0x90, 0x4e], // 10,001 rows
      [1, 0xff, 0xff, 0xff, 0xff, 0x7f], // more than 32 bits
    ]
  ) {
    throws(() => unpackColumn(Uint8Array.from(bytes), MAX_ROWS), MalformedError, bytes.join());
  }
});
