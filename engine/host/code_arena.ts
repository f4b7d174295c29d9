/**
 * Executable memory: one reserved range of address space per realm in which code images are placed, so that "is this program
 * counter ours" is one comparison in the fault handler. Pages are written while not executable and made executable after
 * (W^X); a freed chunk loses its access rights and is used again. Where instruction fetch is not coherent with stores (arm64), a routine of
 * the backend makes it do so before anybody can run the code. Big chunks begin where large pages can: a first touch costs less, and so does running.
 * Code of a file is not copied at all: the file's pages are what runs.
 */
import { type Host, PROT } from "./host.ts";

const SIZES = [1 << 30, 1 << 28, 1 << 26];
const LARGE_PAGE = 1 << 21;
/** Chunks of so many bytes begin at large pages: at most a third of the arena is lost between them. */
const LARGE_FROM = 2 * LARGE_PAGE;

/** Makes stores to [first, end) visible to instruction fetch on all processors. */
export type CacheMaintenance = (first: number, end: number) => void;

function chunkSize(host: Host, bytes: number): number {
  return Math.max(1, Math.ceil(bytes / host.pageSize)) * host.pageSize;
}

/**
 * Writes `code` at `address`, the start of a chunk that no other code uses, lets `finish` resolve what depends on the
 * address, and makes the chunk executable. Instruction caches are the caller's concern (CacheMaintenance).
 */
export function publishCode(
  host: Host,
  address: number,
  code: Uint8Array,
  finish?: (placed: Uint8Array) => void,
): void {
  const size = chunkSize(host, code.length);
  host.protect(address, size, PROT.READ | PROT.WRITE);
  if (size >= LARGE_FROM) host.preferLargePages(address, size);
  const placed = new Uint8Array(host.view(address, size));
  placed.set(code);
  finish?.(placed);
  host.protect(address, size, PROT.READ | PROT.EXEC);
}

export class CodeArena {
  readonly start: number;
  /**
   * A page that interruptible code reads at its polls. It is readable, except after a deadline has passed: then reading it faults. It is
   * the first of the arena, so that a 32-bit displacement reaches it from anywhere in it.
   */
  readonly pollPage: number;
  readonly end: number;
  readonly #host: Host;
  readonly #maintain: CacheMaintenance | undefined;
  #next: number;
  /** Freed chunks by size in bytes. */
  readonly #free = new Map<number, number[]>();

  constructor(host: Host, maintain?: CacheMaintenance) {
    this.#host = host;
    this.#maintain = maintain;
    let start = 0;
    let size = 0;
    for (size of SIZES) {
      try {
        start = host.reserve(size, PROT.NONE);
        break;
      } catch (error) {
        if (size === SIZES.at(-1)) throw error;
      }
    }
    this.start = start;
    this.end = start + size;
    this.pollPage = start;
    this.#next = start + host.pageSize;
    host.protect(start, host.pageSize, PROT.READ);
  }

  /** Rounds up to whole pages. */
  chunkSize(bytes: number): number {
    return chunkSize(this.#host, bytes);
  }

  /** Takes a chunk of at least `bytes`, not accessible yet. Throws RangeError when the arena is full. */
  allocate(bytes: number): number {
    const size = this.chunkSize(bytes);
    const reused = this.#free.get(size)?.pop();
    if (reused !== undefined) return reused;
    const large = size >= LARGE_FROM ? Math.ceil(this.#next / LARGE_PAGE) * LARGE_PAGE : this.#next;
    const at = large + size <= this.end ? large : this.#next;
    if (at + size > this.end) throw new RangeError("Out of executable memory: too much compiled code is alive");
    this.#next = at + size;
    return at;
  }

  /** Writes `code` at the start of a chunk, lets `finish` change what depends on the place, and makes the chunk executable. */
  publish(address: number, code: Uint8Array, finish?: (placed: Uint8Array) => void): void {
    publishCode(this.#host, address, code, finish);
    this.#maintain?.(address, address + code.length);
  }

  /** Changes code of a chunk of `bytes` in place. No thread may be executing it. */
  patch(address: number, bytes: number, change: (placed: Uint8Array) => void): void {
    const size = this.chunkSize(bytes);
    this.#host.protect(address, size, PROT.READ | PROT.WRITE);
    change(new Uint8Array(this.#host.view(address, size)));
    this.#host.protect(address, size, PROT.READ | PROT.EXEC);
    this.#maintain?.(address, address + bytes);
  }

  /**
   * Maps a chunk of `bytes` to an image's code, which begins at `offset`, a multiple of the pages' size. Throws RangeError when the system refuses, as
   * for files of a file system without execution: then the chunk is as it was.
   */
  publishMapped(address: number, bytes: number, image: number, offset: number): void {
    // The system maintains the caches of pages of files.
    this.#host.mapImage(address, this.chunkSize(bytes), image, offset, PROT.READ | PROT.EXEC);
  }

  /** Gives a chunk of `bytes` back; its pages are dropped. */
  release(address: number, bytes: number): void {
    const size = this.chunkSize(bytes);
    this.#host.replace(address, size, PROT.NONE);
    const list = this.#free.get(size);
    if (list === undefined) this.#free.set(size, [address]);
    else list.push(address);
  }
}
