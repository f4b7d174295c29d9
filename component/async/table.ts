/**
 * The table of a component instance: resource handles, waitables, waitable sets and error contexts by index (Canonical
 * ABI, Table State). Invariant: index 0 is never used; freed indices are reused, last freed first.
 */
import { trap } from "../abi/traps.ts";

/** Entries of all tables of a store. The specification allows more per table, which would exhaust the host's memory. */
const MAX_ENTRIES = 2 ** 20;

/** The entries of all tables of a store. */
export interface Entries {
  count: number;
}

export class Table<T extends object> {
  readonly #entries: (T | undefined)[] = [undefined];
  readonly #free: number[] = [];
  readonly #all: Entries;

  /** `all` counts the entries of this table among those of the store. */
  constructor(all: Entries) {
    this.#all = all;
  }

  /** The entry at `index`; traps if there is none. */
  get(index: number): T {
    const entry = this.#entries[index];
    if (entry === undefined) trap(`unknown handle index ${index}`);
    return entry;
  }

  add(entry: T): number {
    if (this.#all.count >= MAX_ENTRIES) trap("too many handles");
    this.#all.count++;
    const free = this.#free.pop();
    if (free !== undefined) {
      this.#entries[free] = entry;
      return free;
    }
    const index = this.#entries.length;
    this.#entries.push(entry);
    return index;
  }

  /** Removes and returns the entry at `index`; traps if there is none. */
  remove(index: number): T {
    const entry = this.get(index);
    this.#all.count--;
    this.#entries[index] = undefined;
    this.#free.push(index);
    return entry;
  }

  get isEmpty(): boolean {
    return this.#entries.length - this.#free.length === 1;
  }

  /** Removes all entries. */
  clear(): void {
    this.#all.count -= this.#entries.length - 1 - this.#free.length;
    this.#entries.length = 1;
    this.#free.length = 0;
  }

  /** The entries, in the order of their indices. */
  *[Symbol.iterator](): Generator<T> {
    for (const entry of this.#entries) if (entry !== undefined) yield entry;
  }
}
