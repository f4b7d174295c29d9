/**
 * JavaScript values that compiled code holds by number: host values (externref, and anyref made of one) and exceptions (exnref). A
 * reference to one is its number times 8 plus a tag of its own (gc_layout.ts: REF_TAG), so that every word of compiled code says
 * itself what it refers to. The same value gets the same number while it is in the table. Numbers are freed by a mark and sweep:
 * that of the store when no compiled code is on the stack, or that of the collected heap.
 */

/** Called with `mark` for every reference that is still reachable; others than those of the table are ignored. */
export type HandleRoots = (mark: (word: number) => void) => void;

/** Stands for −0 among the keys, which a Map takes for 0. */
const NEGATIVE_ZERO = Symbol("-0");

function keyOf(value: unknown): unknown {
  return Object.is(value, -0) ? NEGATIVE_ZERO : value;
}

export class HandleTable {
  readonly #tag: number;
  #values: unknown[] = [undefined];
  #marks: Uint8Array = new Uint8Array(64);
  #free: number[] = [];
  readonly #ids = new Map<unknown, number>();
  #threshold = 1024;

  /** `tag`: the low three bits of its references. */
  constructor(tag: number) {
    this.#tag = tag;
  }

  /** The reference to `value`; null is 0. */
  handleOf(value: unknown): number {
    if (value === null) return 0;
    const key = keyOf(value);
    const known = this.#ids.get(key);
    if (known !== undefined) return known * 8 + this.#tag;
    const id = this.#free.pop() ?? this.#values.length;
    this.#values[id] = value;
    this.#ids.set(key, id);
    return id * 8 + this.#tag;
  }

  /** The value of a reference. */
  valueOf(word: number): unknown {
    return word === 0 ? null : this.#values[(word - this.#tag) / 8];
  }

  /** Is `word` a reference of this table's kind? */
  owns(word: number): boolean {
    return (word & 7) === this.#tag;
  }

  /** The value with number `id`, undefined when there is none. */
  valueAt(id: number): unknown {
    return this.#values[id];
  }

  /** All values. */
  values(): Iterable<unknown> {
    return this.#ids.keys();
  }

  /** How many handles are in use. */
  get size(): number {
    return this.#ids.size;
  }

  /** All numbers are below this. */
  get count(): number {
    return this.#values.length;
  }

  /** Is it time to sweep? */
  get full(): boolean {
    return this.#ids.size >= this.#threshold;
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

  /** Frees every number whose byte in `marks` is 0. */
  sweepUnmarked(marks: Uint8Array): void {
    const { count } = this;
    for (let id = 1; id < count; id++) {
      if (marks[id] !== 0) continue;
      const key = keyOf(this.#values[id]);
      if (this.#ids.get(key) !== id) continue; // free already
      this.#ids.delete(key);
      this.#values[id] = undefined;
      this.#free.push(id);
    }
    this.#threshold = Math.max(1024, this.#ids.size * 2);
  }
}
