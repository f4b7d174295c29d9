/** Growing columns: contents, element type, and zeros behind. */
import assert from "node:assert/strict";
import { doubled, grown } from "./columns.ts";

Deno.test("grown() copies a column into a longer one of the same element type", () => {
  assert.deepEqual(grown(Int32Array.of(-1, 2), 4), Int32Array.of(-1, 2, 0, 0));
  assert.deepEqual(grown(Uint16Array.of(65535), 2), Uint16Array.of(65535, 0));
  assert.deepEqual(grown(Uint8Array.of(7), 1), Uint8Array.of(7));
});

Deno.test("doubled() at least doubles a column, and makes room for a larger need", () => {
  assert.deepEqual(doubled(Int32Array.of(1, 2), 3), Int32Array.of(1, 2, 0, 0));
  assert.deepEqual(doubled(Int32Array.of(1), 5), Int32Array.of(1, 0, 0, 0, 0));
});

Deno.test("grown() leaves the old column alone and does not lose elements", () => {
  const old = Int32Array.of(1, 2, 3);
  grown(old, 5)[0] = 9;
  assert.deepEqual(old, Int32Array.of(1, 2, 3));
  assert.throws(() => grown(old, 2), RangeError);
});
