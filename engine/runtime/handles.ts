/**
 * JavaScript values that compiled code holds by number: host values (externref, and anyref made of one) and exceptions (exnref). A
 * reference to one is its number times 8 plus a tag of its own (gc_layout.ts: REF_TAG), so that every word of compiled code says
 * itself what it refers to. The same value gets the same number while it is in the table, but for strings: nobody can tell two of the
 * same text apart, and looking one up would hash all of it, each time that one more character has been added. Numbers are freed by a mark
 * and sweep: that of the store when no compiled code is on the stack, or that of the collected heap.
 */

/** Called with `mark` for every reference that is still reachable; others than those of the table are ignored. */
export type HandleRoots = (mark: (word: number) => void) => void;

/** Stands for −0 among the keys, which a Map takes for 0. */
const NEGATIVE_ZERO = Symbol("-0");

/**
 * The least number of values with an identity at which it is time to sweep; that of all, strings included, which a program makes by the
 * thousand while a sweep may have to mark a whole heap; and how much text may come in between two, in 16-bit units.
 */
const LEAST = 1024;
const LEAST_WITH_STRINGS = 8192;
const MOST_TEXT = 2 ** 23;
/** Stands in the table where a number is free. */
const FREE = Symbol("free");

function keyOf(value: unknown): unknown {
  return Object.is(value, -0) ? NEGATIVE_ZERO : value;
}

export class HandleTable {
  readonly #tag: number;
  #values: unknown[] = [undefined];
  #marks: Uint8Array = new Uint8Array(64);
  #free: number[] = [];
  readonly #ids = new Map<unknown, number>();
  #threshold = LEAST;
  #thresholdWithStrings = LEAST_WITH_STRINGS;
  /** Units of the strings that came since the last sweep. */
  #text = 0;

  /** `tag`: the low three bits of its references. */
  constructor(tag: number) {
    this.#tag = tag;
  }

  /** The reference to `value`; null is 0. */
  handleOf(value: unknown): number {
    if (value === null) return 0;
    if (typeof value === "string") {
      this.#text += value.length;
      return this.#put(value) * 8 + this.#tag;
    }
    const key = keyOf(value);
    let id = this.#ids.get(key);
    if (id === undefined) {
      id = this.#put(value);
      this.#ids.set(key, id);
    }
    return id * 8 + this.#tag;
  }

  #put(value: unknown): number {
    const id = this.#free.pop() ?? this.#values.length;
    this.#values[id] = value;
    return id;
  }

  /** Has the value a reference? */
  has(value: unknown): boolean {
    return this.#ids.has(keyOf(value));
  }

  /** The value of a reference. */
  valueOf(word: number): unknown {
    return word === 0 ? null : this.#values[word >>> 3];
  }

  /** Is `word` a reference of this table's kind? */
  owns(word: number): boolean {
    return (word & 7) === this.#tag;
  }

  /** The value with number `id`, undefined when there is none. */
  valueAt(id: number): unknown {
    const value = this.#values[id];
    return value === FREE ? undefined : value;
  }

  /** All values. */
  *values(): Iterable<unknown> {
    for (let id = 1; id < this.#values.length; id++) if (this.#values[id] !== FREE) yield this.#values[id];
  }

  /** How many handles are in use. */
  get size(): number {
    return this.#values.length - 1 - this.#free.length;
  }

  /** All numbers are below this. */
  get count(): number {
    return this.#values.length;
  }

  /** Is it time to sweep? */
  get full(): boolean {
    return this.#ids.size >= this.#threshold || this.size >= this.#thresholdWithStrings || this.#text >= MOST_TEXT;
  }

  /** Frees every number that `roots` does not mark. */
  sweep(roots: HandleRoots): void {
    const { count } = this;
    if (this.#marks.length < count) this.#marks = new Uint8Array(count * 2);
    const marks = this.#marks.fill(0);
    roots((word) => {
      if (!this.owns(word)) return;
      const id = (word - this.#tag) / 8;
      if (id < count) marks[id] = 1;
    });
    this.sweepUnmarked(marks);
  }

  /** Marks a reference of the table among `marks`. */
  keep(marks: Uint8Array, word: number): void {
    if (this.owns(word)) marks[(word - this.#tag) / 8] = 1;
  }

  /** Frees every number whose byte in `marks` is 0. */
  sweepUnmarked(marks: Uint8Array): void {
    const { count } = this;
    for (let id = 1; id < count; id++) {
      if (marks[id] !== 0) continue;
      const value = this.#values[id];
      if (value === FREE) continue;
      if (typeof value !== "string") this.#ids.delete(keyOf(value));
      this.#values[id] = FREE;
      this.#free.push(id);
    }
    this.#threshold = Math.max(LEAST, this.#ids.size * 2);
    this.#thresholdWithStrings = Math.max(LEAST_WITH_STRINGS, this.size * 2);
    this.#text = 0;
  }
}
