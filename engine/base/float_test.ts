/**
 * Float literals: hard cases of rounding, NaN payloads, ranges, grammar, and printing that parses back.
 */
import assert from "node:assert/strict";
import { bitsOfF32, type FloatBits, parseFloatLiteral, printF32, printF64 } from "./float.ts";

function f32(text: string): number | string {
  const out: FloatBits = { lo: 0, hi: 0 };
  const result = parseFloatLiteral(text, 32, out);
  return result === "ok" ? out.lo >>> 0 : result;
}

function f64(text: string): bigint | string {
  const out: FloatBits = { lo: 0, hi: 0 };
  const result = parseFloatLiteral(text, 64, out);
  return result === "ok" ? (BigInt(out.hi >>> 0) << 32n) | BigInt(out.lo >>> 0) : result;
}

/** Literal, f32 bits, f64 bits. */
const LITERALS: readonly (readonly [string, number | string, bigint | string])[] = [
  ["0", 0, 0n],
  ["-0", 0x80000000, 0x8000000000000000n],
  ["+1", 0x3f800000, 0x3ff0000000000000n],
  ["1.", 0x3f800000, 0x3ff0000000000000n],
  ["1_0.2_5e-0_1", 0x3f833333, 0x3ff0666666666666n],
  ["0x1p0", 0x3f800000, 0x3ff0000000000000n],
  ["0x1.8", 0x3fc00000, 0x3ff8000000000000n],
  ["0x.8", "syntax", "syntax"],
  [".5", "syntax", "syntax"],
  ["1._5", "syntax", "syntax"],
  ["1__0", "syntax", "syntax"],
  ["1_", "syntax", "syntax"],
  ["1e", "syntax", "syntax"],
  ["0x1p", "syntax", "syntax"],
  ["0X1", "syntax", "syntax"],
  ["", "syntax", "syntax"],
  ["-", "syntax", "syntax"],
  ["+-1", "syntax", "syntax"],
  ["Infinity", "syntax", "syntax"],
  ["inf", 0x7f800000, 0x7ff0000000000000n],
  ["-inf", 0xff800000, 0xfff0000000000000n],
  ["nan", 0x7fc00000, 0x7ff8000000000000n],
  ["-nan", 0xffc00000, 0xfff8000000000000n],
  ["nan:0x1", 0x7f800001, 0x7ff0000000000001n],
  ["-nan:0x7f_ffff", 0xffffffff, 0xfff00000007fffffn],
  ["nan:0x80_0000", "range", 0x7ff0000000800000n],
  ["nan:0xf_ffff_ffff_ffff", "range", 0x7fffffffffffffffn],
  ["nan:0x10_0000_0000_0000", "range", "range"],
  ["nan:0x0", "range", "range"],
  ["nan:0x", "syntax", "syntax"],
  ["nan:1", "syntax", "syntax"],
  ["nan:canonical", "syntax", "syntax"],
  ["1e38", 0x7e967699, 0x47d2ced32a16a1b1n],
  ["1e39", "range", 0x48078287f49c4a1dn],
  ["1e309", "range", "range"],
  ["0x1p128", "range", 0x47f0000000000000n],
  ["0x1.fffffep127", 0x7f7fffff, 0x47efffffe0000000n],
  ["0x1.fffffefffffp127", 0x7f7fffff, 0x47efffffefffff00n],
  ["0x1.ffffffp127", "range", 0x47effffff0000000n],
  ["340282356779733661637539395458142568447", 0x7f7fffff, 0x47effffff0000000n],
  ["340282356779733661637539395458142568448", "range", 0x47effffff0000000n],
  ["0x1.fffffffffffff7p1023", "range", 0x7fefffffffffffffn],
  ["0x1.fffffffffffff8p1023", "range", "range"],
  ["0x1p-149", 1, 0x36a0000000000000n],
  ["0x1p-150", 0, 0x3690000000000000n],
  ["0x1.000001p-150", 1, 0x3690000010000000n],
  ["0x1p-1074", 0, 1n],
  ["0x1p-1075", 0, 0n],
  ["0x1.0000000000000000000000000001p-1075", 0, 1n],
  ["1e-400", 0, 0n],
  // Halfway between two f32: ties to even, decided by one distant digit.
  ["0x1.000001p0", 0x3f800000, 0x3ff0000010000000n],
  ["0x1.0000010000000000000000000001p0", 0x3f800001, 0x3ff0000010000000n],
  ["0x1.000003p0", 0x3f800002, 0x3ff0000030000000n],
  ["1.000000059604644775390625", 0x3f800000, 0x3ff0000010000000n],
  ["1.0000000596046447753906250000000000000000001", 0x3f800001, 0x3ff0000010000000n],
  ["1.0000000596046447753906249999999999999999999", 0x3f800000, 0x3ff0000010000000n],
  ["1.000000178813934326171875", 0x3f800002, 0x3ff0000030000000n],
  ["1.0000001788139343261718749999999999999999999", 0x3f800001, 0x3ff0000030000000n],
  ["0.0000000000000000000000000000000000000000000007006492321624085354618", 0, 0x3690000000000000n],
  ["7.0064923216240853546186479164495806564013097093825788587853e-46", 0, 0x3690000000000000n],
  ["7.00649232162408535461864791644958065640130970938257885878535e-46", 1, 0x3690000000000000n],
  ["0x0.0000000000000000000000000000000000000001p0", 0x00000000, 0x35f0000000000000n],
  ["0x1000000000000000000000000p-96", 0x3f800000, 0x3ff0000000000000n],
  ["0x1p99999999999999999999999", "range", "range"],
  ["0x1p-99999999999999999999999", 0, 0n],
  ["0x0p99999999999999999999999", 0, 0n],
];

Deno.test("parseFloatLiteral() gives the exact bits", () => {
  for (const [text, single, double] of LITERALS) {
    assert.equal(f32(text), single, `f32 ${text}`);
    assert.equal(f64(text), double, `f64 ${text}`);
  }
});

Deno.test("parseFloatLiteral() is linear in the literal's length", () => {
  const zeros = "0".repeat(300_000);
  assert.equal(f32(`1${zeros}e-300000`), 0x3f800000);
  assert.equal(f32(`0.${zeros}1e300001`), 0x3f800000);
  assert.equal(f32(`1.000000059604644775390625${zeros}1`), 0x3f800001);
  assert.equal(f64(`0x1${zeros}p-1200000`), 0x3ff0000000000000n);
  assert.equal(f64(`0x0.${zeros}1p1200004`), 0x3ff0000000000000n);
});

/** A small deterministic generator (xorshift32). */
function randomWords(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state | 0;
  };
}

Deno.test("printF32() and printF64() parse back to the same bits", () => {
  const next = randomWords(0x2545f491);
  const edges = [0, 1, 0x7fffff, 0x800000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff, 0x3f800000];
  for (let i = 0; i < 4000; i++) {
    const lo = (i < edges.length ? edges[i] : i < 2 * edges.length ? edges[i - edges.length] | 0x80000000 : next()) |
      0;
    const text = printF32(lo);
    assert.equal(f32(text), lo >>> 0, text);
    const hi = next();
    const double = printF64(lo, hi);
    assert.equal(f64(double), (BigInt(hi >>> 0) << 32n) | BigInt(lo >>> 0), double);
    const nan = printF64(lo, hi | 0x7ff00000);
    assert.equal(f64(nan), (BigInt((hi | 0x7ff00000) >>> 0) << 32n) | BigInt(lo >>> 0), nan);
  }
});

Deno.test("printF32() is the shortest decimal", () => {
  const cases: readonly (readonly [number, string])[] = [
    [0.1, "0.1"],
    [16777216, "16777216"],
    [3.4028234663852886e38, "3.4028235e+38"],
    [1.401298464324817e-45, "1e-45"],
    [-1 / 3, "-0.33333334"],
    [-0, "-0"],
  ];
  for (const [value, text] of cases) assert.equal(printF32(bitsOfF32(value)), text);
  assert.equal(printF32(0x7fa00000), "nan:0x200000");
  assert.equal(printF32(0xffc00000 | 0), "-nan");
  assert.equal(printF64(0, 0x7ff40000), "nan:0x4000000000000");
  assert.equal(printF64(0, 0x80000000 | 0), "-0");
});

/** The exact decimal expansion of significand × 2^exponent, plus `nudge` units far below its last digit. */
function exactDecimal(significand: bigint, exponent: number, nudge: bigint): string {
  const places = Math.max(-exponent, 0);
  const digits = significand * 5n ** BigInt(places) << BigInt(Math.max(exponent, 0));
  return `${digits * 10n ** 40n + nudge}e${-places - 40}`;
}

Deno.test("parseFloatLiteral() rounds decimals on, just below and just above the middle between two f32", () => {
  const next = randomWords(99);
  for (let i = 0; i < 1000; i++) {
    const bits = (next() >>> 1) % 0x7f7fffff;
    const biased = bits >>> 23;
    const significand = BigInt((bits & 0x7fffff) | (biased === 0 ? 0 : 0x800000));
    const middle = 2n * significand + 1n;
    const exponent = Math.max(biased, 1) - 151;
    assert.equal(f32(exactDecimal(middle, exponent, -1n)), bits);
    assert.equal(f32(exactDecimal(middle, exponent, 1n)), bits + 1);
    assert.equal(f32(exactDecimal(middle, exponent, 0n)), bits + (bits & 1));
  }
});
