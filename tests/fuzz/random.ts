/**
 * Seeded random numbers for the fuzzer: the same seed gives the same numbers on every machine. In: a 32-bit seed. Out:
 * integers, choices and edge values of arithmetic.
 *
 * The generator is a counter passed through a 32-bit mixing function, so neighbouring seeds are unrelated.
 */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed ^ 0x5bd1e995, 0x9e3779b1) | 0;
  }

  /** An integer of 32 random bits, unsigned. */
  bits(): number {
    let x = this.#state = (this.#state + 0x6d2b79f5) | 0;
    x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
    x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
    return (x ^ (x >>> 15)) >>> 0;
  }

  /** An integer in [0, n). */
  below(n: number): number {
    return Math.floor(this.bits() / 0x1_0000_0000 * n);
  }

  /** An integer in [low, high]. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  /** True in `percent` of 100 cases. */
  chance(percent: number): boolean {
    return this.bits() / 0x1_0000_0000 * 100 < percent;
  }

  /** One of `items`, which must not be empty. */
  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)];
  }

  /** An index, drawn with the given weights. */
  weighted(weights: readonly number[]): number {
    let total = 0;
    for (const weight of weights) total += weight;
    let left = this.bits() / 0x1_0000_0000 * total;
    for (let i = 0; i < weights.length; i++) {
      left -= weights[i];
      if (left < 0) return i;
    }
    return weights.length - 1;
  }

  /** `items` in random order. */
  shuffled<T>(items: readonly T[]): T[] {
    const list = items.slice();
    for (let i = list.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      [list[i], list[j]] = [list[j], list[i]];
    }
    return list;
  }

  /** A 32-bit integer, usually an edge value. */
  i32(): number {
    switch (this.below(5)) {
      case 0:
        return this.between(-16, 80);
      case 1:
        return this.bits() | 0;
      case 2:
        return (1 << this.below(32)) + this.between(-1, 1) | 0;
      case 3:
        return -(1 << this.below(32)) | 0;
      default:
        return this.pick(EDGES_32) | 0;
    }
  }

  /** A signed 64-bit integer, usually an edge value. */
  i64(): bigint {
    const n = this.below(6);
    if (n === 0) return BigInt(this.between(-16, 80));
    if (n === 1) return BigInt.asIntN(64, (BigInt(this.bits()) << 32n) | BigInt(this.bits()));
    if (n === 2) return BigInt.asIntN(64, (1n << BigInt(this.below(64))) + BigInt(this.between(-1, 1)));
    if (n === 3) return BigInt(this.i32());
    if (n === 4) return BigInt(this.bits());
    return this.pick(EDGES_64);
  }

  /** A float, usually an edge value; `single` rounds it to 32 bits. */
  float(single: boolean): number {
    let x: number;
    switch (this.below(5)) {
      case 0:
        x = this.between(-20, 20);
        break;
      case 1:
        x = this.pick(EDGE_FLOATS);
        break;
      case 2:
        x = this.i32() + this.pick([0, 0.5, -0.5, 0.25]);
        break;
      case 3:
        x = Number(this.i64());
        break;
      default:
        FLOAT_BITS[0] = this.bits();
        FLOAT_BITS[1] = this.bits();
        x = single ? FLOAT_32[0] : FLOAT_64[0];
    }
    return single ? Math.fround(x) : x;
  }
}

const FLOAT_BITS = new Uint32Array(2);
const FLOAT_32 = new Float32Array(FLOAT_BITS.buffer);
const FLOAT_64 = new Float64Array(FLOAT_BITS.buffer);

const EDGES_32 = [
  0,
  1,
  -1,
  2,
  3,
  5,
  7,
  10,
  100,
  255,
  256,
  65535,
  65536,
  0x7fffffff,
  -0x80000000,
  0x7ffffffe,
  -0x7fffffff,
];
const EDGES_64 = [
  0n,
  1n,
  -1n,
  3n,
  7n,
  10n,
  1000n,
  0x7fffffffn,
  0x80000000n,
  0xffffffffn,
  0x100000000n,
  -0x80000000n,
  -0x80000001n,
  0x7fffffffffffffffn,
  -0x8000000000000000n,
  -0x7fffffffffffffffn,
];
const EDGE_FLOATS = [
  0,
  -0,
  0.5,
  -0.5,
  1.5,
  2.5,
  -2.5,
  NaN,
  Infinity,
  -Infinity,
  2147483647,
  2147483648,
  -2147483648,
  -2147483649,
  4294967295,
  4294967296,
  9223372036854775807,
  -9223372036854775808,
  18446744073709551616,
  1e-310,
  -1e-45,
  1.7976931348623157e308,
  3.4028234663852886e38,
  16777217,
  9007199254740993,
];
