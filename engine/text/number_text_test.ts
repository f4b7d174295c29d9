/**
 * Integers of the text format at the limits of their widths, and against BigInt.
 */
import assert from "node:assert/strict";
import { INTEGER, readInteger } from "./number_text.ts";

const encoder = new TextEncoder();

/** The value as an unsigned integer of `bits`, or undefined if it is out of range. */
function read(text: string, bits: number): bigint | undefined {
  const bytes = encoder.encode(text);
  if (!readInteger(bytes, 0, bytes.length, bits)) return undefined;
  return (BigInt(INTEGER.hi) << 32n) | BigInt(INTEGER.lo);
}

Deno.test("each width takes its unsigned and signed range and no more", () => {
  for (const bits of [8, 16, 32, 64]) {
    const size = 1n << BigInt(bits);
    const half = size / 2n;
    assert.equal(read(String(size - 1n), bits), size - 1n);
    assert.equal(read("0x" + (size - 1n).toString(16), bits), size - 1n);
    assert.equal(read(String(size), bits), undefined);
    assert.equal(read(String(-half), bits), half);
    assert.equal(read("-0x" + half.toString(16), bits), half);
    assert.equal(read(String(-half - 1n), bits), undefined);
    assert.equal(read("-1", bits), size - 1n);
    assert.equal(read("-0", bits), 0n);
    assert.equal(read("+" + String(half), bits), half);
  }
});

Deno.test("underscores and leading zeros have no effect, and length alone does not overflow", () => {
  assert.equal(read("0x0_0f", 8), 15n);
  assert.equal(read("0".repeat(100_000) + "1_2", 8), 12n);
  assert.equal(read("9".repeat(100_000), 64), undefined);
});

Deno.test("64-bit values agree with BigInt", () => {
  let seed = 0x1234_5678_9abc_def1n;
  for (let i = 0; i < 2000; i++) {
    seed = BigInt.asUintN(64, seed * 6364136223846793005n + 1442695040888963407n);
    const value = seed >> BigInt(i % 64);
    assert.equal(read(String(value), 64), value);
    assert.equal(read("0x" + value.toString(16), 64), value);
    if (value <= 1n << 63n) assert.equal(read("-" + value, 64), BigInt.asUintN(64, -value));
  }
});
