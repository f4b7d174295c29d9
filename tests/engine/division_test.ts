/**
 * Division of 64-bit integers by constants, compiled for the current processor, against bigint division; and that
 * 32-bit division agrees.
 */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";

const DIVISORS = [3n, 5n, 6n, 7n, 10n, 14n, 25n, 28n, 100n, 641n, 1000n, 1000000007n, 0x100000001n, 0x123456789abcdefn];
const LARGE = [0x5555555555555555n, 0x7ffffffffffffffen, 0x7fffffffffffffffn];
const HUGE = [0x8000000000000001n, 0xaaaaaaaaaaaaaaabn, 0xfffffffffffffffen, 0xffffffffffffffffn];
const MOST = (1n << 64n) - 1n;

/** Dividends that reveal a wrong multiplier: multiples of the divisor and their neighbours, and the extremes. */
function dividends(d: bigint): bigint[] {
  const multiples = [1n, 2n, 12345678901n, MOST / d / 3n, MOST / d, (MOST >> 1n) / d].map((q) => q * d);
  const all = multiples.flatMap((n) => [n - 1n, n, n + 1n]).concat([0n, 1n, 1n << 63n, (1n << 63n) - 1n, MOST]);
  return all.map((n) => n & MOST);
}

interface Case {
  type: "i32" | "i64";
  op: "div" | "rem";
  signed: boolean;
  d: bigint;
}

function cases(): Case[] {
  const list: Case[] = [];
  for (const op of ["div", "rem"] as const) {
    for (const d of [...DIVISORS, ...LARGE]) {
      list.push({ type: "i64", op, signed: true, d }, { type: "i64", op, signed: true, d: -d });
    }
    for (const d of [...DIVISORS, ...LARGE, ...HUGE]) list.push({ type: "i64", op, signed: false, d });
    for (const d of DIVISORS.filter((d) => d < 1n << 31n)) {
      for (const signed of [true, false]) list.push({ type: "i32", op, signed, d });
    }
  }
  return list;
}

Deno.test("divisions by constants return the exact quotient and remainder", () => {
  const list = cases();
  const text = list.map(({ type, op, signed, d }, k) =>
    `(func (export "f${k}") (param ${type}) (result ${type})
      (${type}.${op}_${signed ? "s" : "u"} (local.get 0) (${type}.const ${
      BigInt.asIntN(type === "i64" ? 64 : 32, d)
    })))`
  );
  const instance = NewEngine({ verify: true }).compile(`(module ${text.join("\n")})`).instantiate();
  list.forEach(({ type, op, signed, d }, k) => {
    const bits = type === "i64" ? 64 : 32;
    for (const dividend of dividends(d < 0n ? -d : d)) {
      const n = signed ? BigInt.asIntN(bits, dividend) : BigInt.asUintN(bits, dividend);
      const argument = BigInt.asIntN(bits, n);
      const result = instance.call({}, `f${k}`, type === "i64" ? argument : Number(argument)) as number | bigint;
      const expected = BigInt.asIntN(bits, op === "div" ? n / d : n % d);
      assert.equal(BigInt(result), expected, `${type} ${n} ${op} ${d}`);
    }
  });
});
