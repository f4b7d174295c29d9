/**
 * The table of a component instance: resource handles, waitables, waitable sets and error contexts by index (Canonical
 * ABI, Table State). Invariant: index 0 is never used; freed indices are reused, last freed first.
 */
import { trap } from "../abi/traps.ts";

const MAX_LENGTH = 2 ** 28 - 1;

export class Table<T extends object> {
  readonly #entries: (T | undefined)[] = [undefined];
  readonly #free: number[] = [];

  /** The entry at `index`; traps if there is none. */
  get(index: number): T {
    const entry = this.#entries[index];
    if (entry === undefined) trap(`unknown handle index ${index}`);
    return entry;
  }

  add(entry: T): number {
    const free = this.#free.pop();
    if (free !== undefined) {
      this.#entries[free] = entry;
      return free;
    }
    const index = this.#entries.length;
    if (index > MAX_LENGTH) trap("too many handles");
    this.#entries.push(entry);
    return index;
  }

  /** Removes and returns the entry at `index`; traps if there is none. */
  remove(index: number): T {
    const entry = this.get(index);
    this.#entries[index] = undefined;
    this.#free.push(index);
    return entry;
  }

  get isEmpty(): boolean {
    return this.#entries.length - this.#free.length === 1;
  }

  /** Removes all entries. */
  clear(): void {
    this.#entries.length = 1;
    this.#free.length = 0;
  }

  /** The entries, in the order of their indices. */
  *[Symbol.iterator](): Generator<T> {
    for (const entry of this.#entries) if (entry !== undefined) yield entry;
  }
}
