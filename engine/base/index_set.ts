/**
 * A set of small indices, one bit each: a module may have ten million segments, and each instance knows which it has
 * dropped.
 */
import { doubled } from "./columns.ts";

/** The words of an empty set: most sets stay empty. */
const NO_WORDS = new Uint32Array(0);

export class IndexSet implements Iterable<number> {
  #words = NO_WORDS;

  has(index: number): boolean {
    return (this.#words[index >>> 5] & (1 << (index & 31))) !== 0;
  }

  add(index: number): void {
    const at = index >>> 5;
    if (at >= this.#words.length) this.#words = doubled(this.#words, at + 1);
    this.#words[at] |= 1 << (index & 31);
  }

  clear(): void {
    this.#words.fill(0);
  }

  /** The members in ascending order. */
  *[Symbol.iterator](): Iterator<number> {
    for (let at = 0; at < this.#words.length; at++) {
      for (let rest = this.#words[at]; rest !== 0; rest &= rest - 1) yield at * 32 + 31 - Math.clz32(rest & -rest);
    }
  }
}
