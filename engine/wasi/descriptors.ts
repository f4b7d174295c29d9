/**
 * The guest's file descriptor table. Each entry maps a small number to an open descriptor of the process and the
 * guest's rights on it.
 */
import { ERRNO, FDFLAG } from "./abi.ts";
import { WasiError } from "./wasi_error.ts";

export interface DirectoryEntry {
  name: Uint8Array;
  inode: bigint;
  type: number;
}

export interface Descriptor {
  /** Descriptor of the process. */
  fd: number;
  filetype: number;
  /** WASI FDFLAG bits. */
  flags: number;
  rights: number;
  inheriting: number;
  /** Name under which the guest sees a preopened directory. */
  preopen?: string;
  /** Entries as of the last fd_readdir with cookie 0. */
  entries?: DirectoryEntry[];
  /** 0, 1 and 2 belong to the process and stay open. */
  borrowed: boolean;
}

/** Whether calls on the descriptor fail with `again` where they would wait. */
export function isNonblocking({ flags }: Descriptor): boolean {
  return (flags & FDFLAG.nonblock) !== 0;
}

/** The maximum number of descriptors that a guest may have open. */
const MAX_DESCRIPTORS = 4096;

/** The number of directory entries that are kept for all descriptors, unless one directory alone has more. */
const MAX_ENTRIES = 1 << 16;

export class Descriptors {
  readonly #list: (Descriptor | undefined)[] = [];
  readonly #lowest: number;

  /** Numbers below `lowest` are never in use. */
  constructor(lowest: number) {
    this.#lowest = lowest;
  }

  /** Adds a descriptor under the lowest free number. */
  add(descriptor: Descriptor): number {
    const index = this.#freeIndex();
    this.#list[index] = descriptor;
    return index;
  }

  /** Throws if the guest may not have another descriptor: before a call creates, truncates or accepts anything. */
  requireRoom(): void {
    this.#freeIndex();
  }

  #freeIndex(): number {
    const hole = this.#list.indexOf(undefined, this.#lowest);
    const index = hole < 0 ? Math.max(this.#list.length, this.#lowest) : hole;
    if (index >= MAX_DESCRIPTORS) throw new WasiError(ERRNO.mfile);
    return index;
  }

  /** The descriptor `index`, which must have `rights`. */
  get(index: number, rights = 0): Descriptor {
    const found = this.#list[index];
    if (found === undefined) throw new WasiError(ERRNO.badf);
    if ((found.rights & rights) !== rights) throw new WasiError(ERRNO.notcapable);
    return found;
  }

  remove(index: number): Descriptor {
    const found = this.get(index);
    this.#list[index] = undefined;
    return found;
  }

  /** Moves `from` to `to`; returns the descriptor previously at `to`. */
  move(from: number, to: number): Descriptor {
    const old = this.get(to);
    this.#list[to] = this.get(from);
    if (from !== to) this.#list[from] = undefined;
    return old;
  }

  /**
   * Keeps the entries of a directory. Those of other descriptors are forgotten, and read again when the guest goes on
   * with them, if there are too many.
   */
  keepEntries(descriptor: Descriptor, entries: DirectoryEntry[]): void {
    const others = this.#list.filter((other): other is Descriptor => other !== undefined && other !== descriptor);
    const kept = others.reduce((sum, other) => sum + (other.entries?.length ?? 0), entries.length);
    if (kept > MAX_ENTRIES) { for (const other of others) other.entries = undefined; }
    descriptor.entries = entries;
  }

  /** Takes all descriptors out. */
  removeAll(): Descriptor[] {
    return this.#list.splice(0).filter((descriptor) => descriptor !== undefined);
  }
}
