/**
 * The table of a component instance: resource handles, waitables, waitable sets and error contexts by index (Canonical
 * ABI, Table State). Invariant: index 0 is never used; freed indices are reused, last freed first.
 */
import { trap } from "../abi/traps.ts";
import type { HostQuota } from "./host_quota.ts";

/** Entries of one table. The specification allows more, which would exhaust the host's memory. */
const MAX_ENTRIES = 2 ** 20;

/** The bytes of the host that an entry counts. */
const ENTRY_BYTES = 64;

/** The current quota of a store. */
interface QuotaHolder {
  readonly quota: HostQuota;
}

/** An entry that counts another number of bytes than usual. */
interface Sized {
  readonly hostBytes?: number;
}

function bytesOf(entry: object): number {
  return (entry as Sized).hostBytes ?? ENTRY_BYTES;
}

export class Table<T extends object> {
  readonly #entries: (T | undefined)[] = [undefined];
  readonly #free: number[] = [];
  readonly #store: QuotaHolder;

  /** The entries count against the quota of `store`. */
  constructor(store: QuotaHolder) {
    this.#store = store;
  }

  /** The entry at `index`; traps if there is none. */
  get(index: number): T {
    const entry = this.#entries[index];
    if (entry === undefined) trap(`unknown handle index ${index}`);
    return entry;
  }

  add(entry: T): number {
    if (this.#entries.length - this.#free.length > MAX_ENTRIES) trap("too many handles");
    this.#store.quota.take(bytesOf(entry));
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
    this.#store.quota.release(bytesOf(entry));
    this.#entries[index] = undefined;
    this.#free.push(index);
    return entry;
  }

  get isEmpty(): boolean {
    return this.#entries.length - this.#free.length === 1;
  }

  /** Removes all entries. */
  clear(): void {
    if (!this.isEmpty) { for (const entry of this) this.#store.quota.release(bytesOf(entry)); }
    this.#entries.length = 1;
    this.#free.length = 0;
  }

  /** The entries, in the order of their indices. */
  *[Symbol.iterator](): Generator<T> {
    for (const entry of this.#entries) if (entry !== undefined) yield entry;
  }
}
