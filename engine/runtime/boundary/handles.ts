/**
 * JavaScript values that compiled code holds by number: host values (externref, and anyref made of one) and exceptions (exnref). A
 * reference to one is its number times 8 plus a tag of its own (gc_layout.ts: REF_TAG), so that every word of compiled code says
 * itself what it refers to. The same value gets the same number while it is in the table, but for strings: nobody can tell two of the
 * same text apart, and looking one up would hash all of it, each time that one more character has been added. Numbers are freed by a mark
 * and sweep: that of the store when no compiled code is on the stack, or that of the collected heap.
 *
 * With a StringMemory, machine code has its share: it knows what is a string, and gives strings that it makes numbers of its own, which stay its own.
 */

import type { StringMemory } from "./string_memory.ts";

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
const LEAST_WITH_STRINGS_OF_CODE = 32768;
const MOST_TEXT = 2 ** 23;
/** A sweep marks the whole heap: for so many bytes of it, there may be one more string. */
const HEAP_BYTES_PER_STRING = 64;
/** How many numbers machine code gets first. */
const FIRST_LENT = 16384;
/** Numbers are below this: references are of 32 bits. */
const MOST = 2 ** 29;
/** Stands in the table where a number is free. */
const FREE = Symbol("free");
/** Stands there for a number of machine code: that of a string that JavaScript has not seen, or of none. */
const LENT = Symbol("lent");

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
  #strings: StringMemory | undefined;
  #most = MOST;
  /** How many numbers machine code has; those of its strings that JavaScript has seen. */
  #lent = 0;
  #seen: number[] = [];

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
    if (id >= this.#most) throw new RangeError("Out of address space: too many references of the host");
    this.#values[id] = value;
    this.#strings?.enter(id, value);
    return id;
  }

  /** Numbers are below `most` from now on: machine code looks them up in a table with so many entries. Throws RangeError when some are not. */
  limit(most: number): void {
    if (this.#values.length > most) throw new RangeError("Out of address space: too many references of the host");
    this.#most = Math.min(this.#most, most);
  }

  /** Lets machine code know from now on which values are strings. */
  shareStrings(strings: StringMemory): void {
    this.#strings = strings;
    for (let id = 1; id < this.#values.length; id++) if (this.#values[id] !== FREE) strings.enter(id, this.#values[id]);
    this.#thresholdWithStrings = Math.max(this.#thresholdWithStrings, LEAST_WITH_STRINGS_OF_CODE);
    strings.setEmpty(this.handleOf(""));
    this.#lend(strings, FIRST_LENT);
  }

  /** Gives machine code `count` numbers for good. */
  #lend(strings: StringMemory, count: number): void {
    const first = this.#values.length;
    count = Math.min(count, this.#most - first);
    if (count <= 0) return;
    strings.lend(first, count, this.#tag);
    for (let id = first; id < first + count; id++) this.#values[id] = LENT;
    this.#lent += count;
  }

  /** The string that machine code has made under number `id`. */
  #made(id: number): string | undefined {
    const text = this.#strings!.textAt(id);
    if (text === undefined) return undefined;
    this.#values[id] = text;
    this.#seen.push(id);
    return text;
  }

  /** Has the value a reference? */
  has(value: unknown): boolean {
    return this.#ids.has(keyOf(value));
  }

  /** The value of a reference. */
  valueOf(word: number): unknown {
    if (word === 0) return null;
    const value = this.#values[word >>> 3];
    return value === LENT ? this.#made(word >>> 3) : value;
  }

  /** Is `word` a reference of this table's kind? */
  owns(word: number): boolean {
    return (word & 7) === this.#tag;
  }

  /** The value with number `id`, undefined when there is none. */
  valueAt(id: number): unknown {
    const value = this.#values[id];
    return value === FREE ? undefined : value === LENT ? this.#made(id) : value;
  }

  /** All values. */
  *values(): Iterable<unknown> {
    for (let id = 1; id < this.#values.length; id++) if (this.#values[id] !== FREE) yield this.valueAt(id);
  }

  /** How many handles are in use, without those of machine code. */
  get size(): number {
    return this.#values.length - 1 - this.#free.length - this.#lent;
  }

  /** All numbers are below this. */
  get count(): number {
    return this.#values.length;
  }

  /** Is it time to sweep? */
  get full(): boolean {
    return this.#ids.size >= this.#threshold || this.size >= this.#thresholdWithStrings || this.#text >= MOST_TEXT ||
      this.#strings?.full === true;
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

  /** Frees every number whose byte in `marks` is 0. `heapBytes`: how much had to be marked to find those. */
  sweepUnmarked(marks: Uint8Array, heapBytes = 0): void {
    const { count } = this;
    const strings = this.#strings;
    if (strings !== undefined) {
      for (const word of strings.kept()) this.keep(marks, word);
      if (strings.isWorn) {
        this.#seen = this.#seen.filter((id) => marks[id] !== 0 || this.#forget(id));
        strings.sweep(marks);
      }
    }
    let first = 1;
    for (const lent of strings?.ranges ?? []) {
      this.#sweepOwn(marks, first, lent.first);
      first = lent.first + lent.count;
    }
    this.#sweepOwn(marks, first, count);
    const least = strings === undefined ? LEAST_WITH_STRINGS : LEAST_WITH_STRINGS_OF_CODE;
    const perHeap = heapBytes / HEAP_BYTES_PER_STRING;
    this.#threshold = Math.max(LEAST, this.#ids.size * 2);
    this.#thresholdWithStrings = Math.max(least, this.size * 2, perHeap);
    this.#text = 0;
    if (strings === undefined) return;
    if (strings.lacksText) this.#makeRoom(strings);
    const more = strings.lacking(perHeap, count);
    if (more > 0) this.#lend(strings, more);
  }

  /** Frees the numbers from `first` to `end` that have no mark and are not those of machine code. */
  #sweepOwn(marks: Uint8Array, first: number, end: number): void {
    const values = this.#values;
    const free = this.#free;
    const strings = this.#strings;
    for (let id = first; id < end; id++) {
      if (marks[id] !== 0) continue;
      const value = values[id];
      if (value === FREE) continue;
      if (typeof value !== "string") this.#ids.delete(keyOf(value));
      values[id] = FREE;
      free.push(id);
      strings?.leave(id);
    }
  }

  /** Nobody has the string of machine code with number `id` any more. */
  #forget(id: number): false {
    this.#values[id] = LENT;
    return false;
  }

  /** The arena was full before the sweep. */
  #makeRoom(strings: StringMemory): void {
    if (strings.grow()) return;
    for (let id = 1; id < this.#values.length; id++) if (this.#values[id] === LENT) this.#made(id);
    strings.clear(this.#values.length);
  }
}
