/** Magic numbers of constant divisors, against division itself. */
import { equal } from "node:assert/strict";
import { randomNumbers } from "../optimize/testing/random_functions.ts";
import { compileIr } from "./testing/compile_ir.ts";
import { CAN_RUN, NativeProcess } from "./testing/native_process.ts";
import { type DivisionPlan, signedPlan, unsignedPlan } from "../codegen/divide_constant.ts";

const DIVISORS = [
  3n,
  5n,
  6n,
  7n,
  9n,
  10n,
  11n,
  12n,
  14n,
  25n,
  28n,
  100n,
  125n,
  625n,
  641n,
  1000n,
  10000n,
  1000000007n,
  1000000000n,
];
const LARGE = [0x100000001n, 0x123456789abcdefn, 0x7fffffffffffffffn, 0x7ffffffffffffffen, 0x5555555555555555n];
const HUGE = [0x8000000000000001n, 0xfffffffffffffffen, 0xffffffffffffffffn, 0xaaaaaaaaaaaaaaabn];

/** Dividends at which a wrong multiplier shows: multiples of the divisor and their neighbours, and the extremes. */
function dividends(d: bigint): bigint[] {
  const most = (1n << 64n) - 1n;
  const random = randomNumbers(Number(d & 0xffffn));
  const list = [
    0n,
    1n,
    d - 1n,
    d,
    (d + 1n) & most,
    most,
    most - 1n,
    most / d * d,
    most / d * d - 1n,
    1n << 63n,
    (1n << 63n) - 1n,
  ];
  for (let k = 0; k < 8; k++) {
    const q = (BigInt(random(1 << 30)) << 34n) ^ BigInt(random(1 << 30)) ^ (BigInt(random(1 << 30)) << 15n);
    list.push(q & most, (q % (most / d + 1n)) * d & most, ((q % (most / d + 1n)) * d - 1n) & most);
  }
  return list;
}

/** Divisors of all sizes, many beyond 2^63, where the multiplier has 65 bits and the shift is longest. */
function manyDivisors(): bigint[] {
  const random = randomNumbers(7);
  return Array.from({ length: 400 }, (_, k) => {
    const bits = (BigInt(random(1 << 30)) << 40n) ^ (BigInt(random(1 << 30)) << 17n) ^ BigInt(random(1 << 30));
    return (BigInt.asUintN(64, bits) >> BigInt(k % 3 === 0 ? 0 : random(62))) | (k % 3 === 0 ? 1n << 63n : 0n) | 3n;
  });
}

/** The halves of a 64-bit number. */
function halves(d: bigint): [low: number, high: number] {
  return [Number(BigInt.asIntN(32, d)), Number(BigInt.asIntN(32, d >> 32n))];
}

/** The multiplier without its 65th bit. */
function multiplierOf({ low, high }: DivisionPlan): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

Deno.test("magic numbers give the quotient", () => {
  for (const d of [...DIVISORS, ...LARGE, ...HUGE, ...manyDivisors()]) {
    const plan = unsignedPlan(...halves(d));
    const { before, after, add } = plan, multiplier = multiplierOf(plan);
    for (const n of dividends(d)) {
      const high = ((n >> BigInt(before)) * multiplier) >> 64n;
      const sum = add ? (((n - high) >> 1n) + high) >> BigInt(after - 1) : high >> BigInt(after);
      equal(sum, n / d, `${n} / ${d}`);
    }
  }
  for (
    const d of [
      ...DIVISORS,
      ...LARGE,
      ...manyDivisors().map((d) => d >> 1n).filter((d) => d > 2n && (d & (d - 1n)) !== 0n),
    ]
  ) {
    const plan = signedPlan(...halves(d));
    const { after, add } = plan, multiplier = multiplierOf(plan);
    for (const bits of dividends(d)) {
      const n = BigInt.asIntN(64, bits);
      const high = ((n * BigInt.asIntN(64, multiplier)) >> 64n) + (add ? n : 0n);
      equal((high >> BigInt(after)) - (n >> 63n), n / d, `${n} / ${d}`);
    }
  }
});

Deno.test({
  name: "compiled divisions by constants give the quotient and the remainder",
  ignore: !CAN_RUN,
  fn: () => {
    const process = new NativeProcess();
    const signed = [...DIVISORS, ...LARGE].flatMap((d) => [d, -d]);
    const unsigned = [...DIVISORS, ...LARGE, ...HUGE];
    const text = (d: bigint, suffix: string) =>
      `func 0 (i64) -> (i64 i64 i64)
b0(v1:i64):
  v2:i64 = CONST ${BigInt.asIntN(64, d)}
  v3:i64 = DIV_${suffix} v1 v2
  v4:i64 = REM_${suffix} v1 v2
  RETURN (v3 v4 v1)
`;
    const cases = [...signed.map((d) => [d, "S"] as const), ...unsigned.map((d) => [d, "U"] as const)];
    const { code, context } = compileIr(cases.map(([d, suffix]) => text(d, suffix)));
    const instance = process.instantiate(code, context);
    cases.forEach(([d, suffix], index) => {
      for (const bits of dividends(d < 0n ? -d : d)) {
        const n = suffix === "S" ? BigInt.asIntN(64, bits) : bits;
        const actual = instance.call(index, [bits]).results;
        equal(actual[0], BigInt.asUintN(64, n / d), `${n} / ${d}`);
        equal(actual[1], BigInt.asUintN(64, n % d), `${n} % ${d}`);
        equal(actual[2], bits);
      }
    });
  },
});
