/**
 * A set of small indices, one bit each: a module may have ten million segments, and each instance knows which it has
 * dropped.
 *
 * Invariant: the first indices are the bits of a number, so that the sets of most instances take no array.
 */
import { doubled } from "./columns.ts";

/** The number of indices in `#first`: the bits of a small integer. */
const FIRST = 30;
const NO_WORDS = new Uint32Array(0);

export class IndexSet implements Iterable<number> {
  #first = 0;
  #words = NO_WORDS;

  has(index: number): boolean {
    if (index < FIRST) return (this.#first & (1 << index)) !== 0;
    return (this.#words[index >>> 5] & (1 << (index & 31))) !== 0;
  }

  add(index: number): void {
    if (index < FIRST) {
      this.#first |= 1 << index;
      return;
    }
    const at = index >>> 5;
    if (at >= this.#words.length) this.#words = doubled(this.#words, at + 1);
    this.#words[at] |= 1 << (index & 31);
  }

  clear(): void {
    this.#first = 0;
    this.#words.fill(0);
  }

  /** The members in ascending order. */
  *[Symbol.iterator](): Iterator<number> {
    yield* bits(this.#first, 0);
    for (let at = 0; at < this.#words.length; at++) yield* bits(this.#words[at], at * 32);
  }
}

/** The numbers of the bits of `word` that are set, plus `base`. */
function* bits(word: number, base: number): Generator<number> {
  for (let rest = word; rest !== 0; rest &= rest - 1) yield base + 31 - Math.clz32(rest & -rest);
}
