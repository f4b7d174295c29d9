/**
 * Operands for tests of vector instructions: deterministic random vectors, many of whose lanes are edge values
 * (extremes, signed zeros, infinities, NaNs, bounds of conversions).
 */

/** Deterministic random numbers (mulberry32). */
export function randomNumbers(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
}

const BYTES = [0, 1, 2, 0x7f, 0x80, 0x81, 0xff, 0xfe, 15, 16, 17];
const HALVES = [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0xff, 0x100, 0x7f, 0x80, 0xff80];
const WORDS = [0, 1, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0xffff, 0x10000, 0xffff8000, 0xffffff];
const SINGLES = [
  ...[0, -0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, Infinity, -Infinity, NaN, 2147483648, -2147483648, 2147483520],
  ...[4294967296, 4294967040, -2147483904, 1e-45, -1e-45, 3.4e38, 8388607.5, 16777217, 9e9, 123.75, 0.9999999],
];
const DOUBLES = [
  ...[0, -0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, Infinity, -Infinity, NaN, 2147483648, 2147483647, 2147483647.9],
  ...[-2147483648, -2147483648.9, -2147483649, 4294967295, 4294967295.9, 4294967296, 5e-324, 1e308, 4503599627370495.5],
  ...[1e300, -1e300, 0.1, 1e-40, 3.5e38],
];

/** A random vector: 16 bytes. */
export function randomVector(next: () => number): Uint8Array {
  const bytes = new Uint8Array(16);
  const view = new DataView(bytes.buffer);
  const kind = next() % 6;
  const pick = <T>(from: readonly T[]): T => from[next() % from.length];
  for (let k = 0; k < 16; k++) bytes[k] = next();
  switch (kind) {
    case 0:
      for (let k = 0; k < 16; k++) bytes[k] = pick(BYTES);
      break;
    case 1:
      for (let k = 0; k < 8; k++) view.setUint16(2 * k, pick(HALVES), true);
      break;
    case 2:
      for (let k = 0; k < 4; k++) view.setUint32(4 * k, pick(WORDS), true);
      break;
    case 3:
      for (let k = 0; k < 4; k++) view.setFloat32(4 * k, pick(SINGLES), true);
      break;
    case 4:
      for (let k = 0; k < 2; k++) view.setFloat64(8 * k, pick(DOUBLES), true);
      break;
  }
  return bytes;
}
