/**
 * The checksum detects typical damage: changed bits, exchanged words, missing words, other lengths.
 */
import assert from "node:assert/strict";
import { checksum } from "./checksum.ts";

function sumOf(bytes: Uint8Array): string {
  const sum = new Int32Array(4);
  checksum(bytes, sum);
  return sum.join();
}

Deno.test("any change changes the checksum", () => {
  let state = 1;
  const bytes = Uint8Array.from({ length: 4096 }, () => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) >>> 16);
  const seen = new Set([sumOf(bytes)]);
  let tried = 1;
  const differs = (changed: Uint8Array) => {
    seen.add(sumOf(changed));
    assert.equal(seen.size, ++tried);
  };
  for (let at = 0; at < bytes.length; at += 3) {
    const changed = bytes.slice();
    changed[at] ^= 1 << (at & 7);
    differs(changed);
  }
  for (let length = 0; length < bytes.length; length += 16) differs(bytes.subarray(0, length));
  for (let at = 0; at < 512; at += 16) {
    const swapped = bytes.slice();
    swapped.copyWithin(at, at + 16, at + 32);
    swapped.set(bytes.subarray(at, at + 16), at + 16);
    differs(swapped);
  }
  differs(new Uint8Array(4096));
  differs(new Uint8Array(4112));
  assert.equal(sumOf(bytes.slice()), sumOf(bytes), "and nothing else does");
});
