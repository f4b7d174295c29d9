/**
 * Byte reader and writer: LEB128 of every width against a BigInt model, the suite's messages for malformed input, ends
 * of input.
 */
import assert from "node:assert/strict";
import { MalformedError } from "./errors.ts";
import { ByteReader, ByteWriter } from "./bytes.ts";

type Method = "u32" | "s32" | "s33" | "s64" | "u64";

function read(method: Method, bytes: number[], end: number = bytes.length): bigint {
  const reader = new ByteReader(Uint8Array.from(bytes), 0, end);
  const value = reader[method]();
  assert.equal(reader.pos, end);
  if (typeof value === "number") return BigInt(value);
  const bits = (BigInt(reader.hi >>> 0) << 32n) | BigInt(reader.lo >>> 0);
  return method === "u64" ? bits : BigInt.asIntN(64, bits);
}

/** The shortest LEB128 form by definition, from a BigInt. */
function leb(value: bigint, signed: boolean, extra = 0): number[] {
  const bytes: number[] = [];
  for (let rest = value;;) {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    const done = signed ? rest === ((low & 0x40) !== 0 ? -1n : 0n) : rest === 0n;
    if (done && extra-- <= 0) return [...bytes, low];
    bytes.push(low | 0x80);
  }
}

const WIDTHS: Record<Method, { bits: bigint; signed: boolean }> = {
  u32: { bits: 32n, signed: false },
  s32: { bits: 32n, signed: true },
  s33: { bits: 33n, signed: true },
  s64: { bits: 64n, signed: true },
  u64: { bits: 64n, signed: false },
};

function samples(bits: bigint, signed: boolean): bigint[] {
  const values: bigint[] = [];
  for (let k = 0n; k < bits; k++) {
    for (const delta of [-2n, -1n, 0n, 1n, 2n]) {
      for (const sign of signed ? [1n, -1n] : [1n]) values.push(sign * ((1n << k) + delta));
    }
  }
  const low = signed ? -(1n << (bits - 1n)) : 0n;
  const high = signed ? (1n << (bits - 1n)) - 1n : (1n << bits) - 1n;
  return [low, high, ...values.filter((value) => value >= low && value <= high)];
}

for (const method of Object.keys(WIDTHS) as Method[]) {
  const { bits, signed } = WIDTHS[method];
  const longest = Number((bits + 6n) / 7n);
  Deno.test(`ByteReader.${method}() and ByteWriter.${method}() agree with the definition of LEB128`, () => {
    for (const value of samples(bits, signed)) {
      const bytes = leb(value, signed);
      assert.equal(read(method, bytes), value);
      for (let extra = 1; bytes.length + extra <= longest; extra++) {
        assert.equal(read(method, leb(value, signed, extra)), value, `${value} with ${extra} bytes more`);
      }
      const writer = new ByteWriter(1);
      if (method === "s64" || method === "u64") {
        writer[method](Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
      } else writer[method](Number(value));
      assert.deepEqual([...writer.finish()], bytes, `${value}`);
    }
  });

  Deno.test(`ByteReader.${method}() reports malformed integers`, () => {
    const tooLong = [...new Array(longest).fill(0x80), 0x00];
    assert.throws(() => read(method, tooLong), { name: "MalformedError", message: "integer representation too long" });
    const above = signed ? 1n << (bits - 1n) : 1n << bits;
    const below = signed ? -above - 1n : above * 2n - 1n;
    for (const value of [above, below]) {
      assert.throws(() => read(method, leb(value, signed)), { message: "integer too large" }, `${value}`);
    }
    const end = { message: "unexpected end of section or function" };
    assert.throws(() => read(method, []), end);
    assert.throws(() => read(method, [0x80]), end);
    assert.throws(() => read(method, [0x80, 0x00], 1), end, "bytes after the end are not read");
    assert.throws(() => read(method, tooLong, 2), { message: "integer representation too long" });
  });
}

Deno.test("ByteReader reports the absolute offset", () => {
  const reader = new ByteReader(Uint8Array.of(1, 2, 3), 1, 2, 100);
  reader.u8();
  assert.throws(
    () => reader.u8(),
    (error) => error instanceof MalformedError && error.place.offset === 102 && error.where === "at offset 0x66",
  );
});

Deno.test("ByteReader.name() is strict about UTF-8 and keeps a byte order mark", () => {
  function name(bytes: number[]): string {
    return new ByteReader(Uint8Array.of(bytes.length, ...bytes)).name();
  }
  assert.equal(name([]), "");
  assert.equal(name([0x61, 0x00, 0x62]), "a\0b");
  assert.equal(name([0xef, 0xbb, 0xbf, 0x61]), "\ufeffa");
  assert.equal(name([0xf0, 0x9f, 0x98, 0x80]), "\u{1f600}");
  assert.equal(name(new Array(100).fill(0x7a)), "z".repeat(100));
  const bad = [[0x80], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82], [0xff]];
  for (const bytes of bad) {
    for (const pad of [0, 40]) {
      const padded = [...new Array(pad).fill(0x61), ...bytes];
      assert.throws(() => name(padded), { message: "malformed UTF-8 encoding" }, `${bytes}`);
    }
  }
  const cut = new ByteReader(Uint8Array.of(3, 0x61, 0x62));
  assert.throws(() => cut.name(), { message: "unexpected end of section or function: length out of bounds" });
});

Deno.test("ByteReader.count() rejects counts that the remaining bytes cannot hold", () => {
  assert.equal(new ByteReader(Uint8Array.of(2, 0, 0)).count(), 2);
  assert.throws(
    () => new ByteReader(Uint8Array.of(3, 0, 0)).count(),
    /length out of bounds: count 3 with 2 bytes left/,
  );
  assert.throws(() => new ByteReader(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x0f)).count(), /count 4294967295/);
});

Deno.test("ByteWriter.endSized() writes the shortest length in front of the run", () => {
  for (const size of [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 0x1fffff, 0x200000]) {
    const writer = new ByteWriter();
    writer.u8(0xaa);
    const mark = writer.beginSized();
    writer.raw(new Uint8Array(size).fill(0x55));
    writer.endSized(mark);
    writer.u8(0xbb);
    const reader = new ByteReader(writer.finish());
    assert.equal(reader.u8(), 0xaa);
    assert.equal(reader.u32(), size);
    assert.ok(reader.take(size).every((byte) => byte === 0x55));
    assert.equal(reader.u8(), 0xbb);
    assert.equal(reader.left, 0);
    assert.equal(writer.length, 2 + size + leb(BigInt(size), false).length);
  }
});

Deno.test("ByteWriter nests sized runs", () => {
  const writer = new ByteWriter();
  const outer = writer.beginSized();
  writer.u8(1);
  const inner = writer.beginSized();
  writer.raw(new Uint8Array(200));
  writer.endSized(inner);
  writer.endSized(outer);
  const reader = new ByteReader(writer.finish());
  assert.equal(reader.u32(), 203);
  assert.equal(reader.u8(), 1);
  assert.equal(reader.u32(), 200);
});
