/** Pseudo-random whole numbers for tests: the same sequence for the same seed, on every runtime. */

/** A sequence of pseudo-random numbers below a bound. */
export function randoms(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9 | 0;
    return Math.floor(((state ^ (state >>> 13)) >>> 0) / 0x1_0000_0000 * below);
  };
}
