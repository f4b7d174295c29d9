/** Free ranges, compared with a map of single units on random sequences. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { FreeRanges } from "./free_ranges.ts";

const UNITS = 64;

/** A generator of numbers below `bound`, the same in every run. */
function numbers(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % bound;
  };
}

/** The first aligned run of `bytes` free units; undefined if there is none. */
function expectedPlace(free: readonly boolean[], bytes: number, alignment: number): number | undefined {
  for (let at = 0; at + bytes <= UNITS; at += alignment) {
    if (free.slice(at, at + bytes).every((each) => each)) return at;
  }
  return undefined;
}

Deno.test("free ranges give the first aligned place and join what is given back", () => {
  let taken = 0;
  for (let seed = 1; seed <= 40; seed++) {
    const below = numbers(seed);
    const ranges = new FreeRanges();
    const free = new Array<boolean>(UNITS).fill(true);
    ranges.add(0, UNITS);
    const held: [at: number, bytes: number][] = [];
    for (let step = 0; step < 200; step++) {
      if (held.length > 0 && below(2) === 0) {
        const [[at, bytes]] = held.splice(below(held.length), 1);
        ranges.add(at, bytes);
        free.fill(true, at, at + bytes);
        continue;
      }
      const [bytes, alignment] = [1 + below(12), 1 << below(3)];
      const at = ranges.take(bytes, alignment);
      equal(at, expectedPlace(free, bytes, alignment), `seed ${seed}, step ${step}`);
      if (at === undefined) continue;
      taken++;
      free.fill(false, at, at + bytes);
      held.push([at, bytes]);
    }
    for (const [at, bytes] of held) ranges.add(at, bytes);
    equal(ranges.takeEnd(UNITS), 0, "one range at the end");
    equal(ranges.take(1, 1), undefined);
  }
  ok(taken > 1000, `only ${taken} ranges were taken`);
});

Deno.test("only a range that ends at the given address is taken from the end", () => {
  const ranges = new FreeRanges();
  ranges.add(4, 4);
  deepEqual([ranges.takeEnd(9), ranges.takeEnd(8), ranges.takeEnd(8)], [9, 4, 8]);
});
