/**
 * Allocates executable memory. In: code images. Out: their addresses, all within one address range that is reserved per
 * realm, so that the fault handler recognizes program counters of compiled code with a range check.
 *
 * Invariants: pages are never writable and executable at once (W^X); a freed chunk loses its access rights before it is
 * reused. Where instruction fetch is not coherent with stores (arm64), a backend routine performs cache maintenance
 * before the code can run. Large chunks are aligned to large pages, which makes the first touch and execution cheaper.
 * Code of an image file is mapped, not copied. A compiler may write code to its place: it opens a chunk that is large
 * enough for any code of the module, and gives the rest back.
 */
import { Bug } from "../../base/errors.ts";
import { FreeRanges } from "./free_ranges.ts";
import { type Host, PROT } from "../host.ts";

const SIZES = [1 << 30, 1 << 28, 1 << 26];
const LARGE_PAGE = 1 << 21;
/** Minimum size in bytes of a chunk that is aligned to large pages; alignment wastes at most a third of the arena. */
const LARGE_FROM = 2 * LARGE_PAGE;

/**
 * The maximum number of ranges that are dropped within chunks: of one chunk, and of all. Each one splits a mapping, of
 * which a process has 65,530.
 */
const MAX_DROPPED = 128;
const MAX_DROPPED_OF_ALL = 4096;

/** Makes stores to [first, end) visible to instruction fetch on all processors. */
export type CacheMaintenance = (first: number, end: number) => void;

function chunkSize(host: Host, bytes: number): number {
  return Math.max(1, Math.ceil(bytes / host.pageSize)) * host.pageSize;
}

/**
 * Writes `code` at `address`, the start of an unused chunk, lets `finish` resolve references that depend on the
 * address, and makes the chunk executable. The caller maintains the instruction caches (CacheMaintenance).
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

/** A chunk that is writable and not executable yet: code is compiled into it. */
export class OpenChunk {
  readonly address: number;
  /** Distance in bytes from the chunk's start to the poll page. */
  readonly pollDistance: number;
  readonly #arena: CodeArena;
  readonly #host: Host;
  readonly #capacity: number;
  #isOpen = true;

  /** Created by `CodeArena.open`. */
  constructor(arena: CodeArena, host: Host, address: number, capacity: number) {
    this.#arena = arena;
    this.#host = host;
    this.address = address;
    this.#capacity = capacity;
    this.pollDistance = arena.pollPage - address;
  }

  /** A view of at least the first `bytes` bytes, at least half of the chunk; undefined if the chunk is smaller. */
  view(bytes: number): Uint8Array | undefined {
    if (bytes > this.#capacity) return undefined;
    return new Uint8Array(this.#host.view(this.address, Math.max(bytes, this.#capacity >> 1)));
  }

  /** Makes the first `bytes` bytes executable and frees the rest. The views must not be written to any more. */
  publish(bytes: number): void {
    this.#isOpen = false;
    this.#arena.publishOpen(this.address, bytes, this.#capacity);
  }

  /** Frees the chunk, unless it has been published or freed. */
  release(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#arena.release(this.address, this.#capacity);
  }
}

/** Size in bytes of the views of a growing chunk: the JavaScript engine counts them as its own memory. */
const VIEW_BYTES = 1 << 20;

/** A chunk to which code is added piece by piece; its other pages are not accessible. */
export class GrowingChunk {
  readonly address: number;
  readonly capacity: number;
  /** Distance in bytes from the chunk's start to the poll page. */
  readonly pollDistance: number;
  readonly #host: Host;
  readonly #maintain: CacheMaintenance | undefined;
  /** A view of a part of the chunk, from offset `#viewAt` on. */
  #view: Uint8Array = new Uint8Array();
  #viewAt = 0;
  /** Called when the chunk is freed. */
  onRelease: (() => void) | undefined;

  /** Created by `CodeArena.openGrowing`. */
  constructor(
    host: Host,
    { address, capacity, pollPage }: { address: number; capacity: number; pollPage: number },
    maintain: CacheMaintenance | undefined,
  ) {
    this.#host = host;
    this.address = address;
    this.pollDistance = pollPage - address;
    this.capacity = capacity;
    this.#maintain = maintain;
  }

  /**
   * Writes code at `offset`; no thread may execute code of these pages, which are executable afterwards. Throws
   * RangeError and changes nothing where the system refuses access.
   */
  write(offset: number, code: Uint8Array): void {
    const { pageSize } = this.#host;
    const at = this.address + offset;
    const first = at - at % pageSize;
    const size = chunkSize(this.#host, at + code.length - first);
    this.#host.protect(first, size, PROT.READ | PROT.WRITE);
    this.#open(offset, code.length).set(code, offset - this.#viewAt);
    this.#host.protect(first, size, PROT.READ | PROT.EXEC);
    this.#maintain?.(at, at + code.length);
  }

  /** Makes the `bytes` bytes from `offset` on, whole pages without code, writable for good. Throws RangeError. */
  data(offset: number, bytes: number): Uint32Array {
    this.#host.protect(this.address + offset, bytes, PROT.READ | PROT.WRITE);
    return new Uint32Array(this.#host.view(this.address + offset, bytes));
  }

  /** A view that contains the `bytes` bytes at `offset`. */
  #open(offset: number, bytes: number): Uint8Array {
    if (offset < this.#viewAt || offset + bytes > this.#viewAt + this.#view.length) {
      const size = Math.min(Math.max(bytes, VIEW_BYTES), this.capacity - offset);
      this.#view = new Uint8Array(this.#host.view(this.address + offset, size));
      this.#viewAt = offset;
    }
    return this.#view;
  }
}

export class CodeArena {
  readonly start: number;
  /**
   * The page that interruptible code reads at its polls. It is readable until a deadline passes; then the read faults.
   * It is the first page of the arena, within reach of a 32-bit displacement from the whole arena.
   */
  readonly pollPage: number;
  readonly end: number;
  readonly #host: Host;
  readonly #maintain: CacheMaintenance | undefined;
  #next: number;
  /** Freed parts of the arena before `#next`. */
  readonly #free = new FreeRanges();
  /** The number of dropped ranges by the addresses of their chunks. */
  readonly #dropped = new Map<number, number>();
  #droppedCount = 0;
  /** The growing chunks by address. */
  readonly #growing = new Map<number, GrowingChunk>();
  #growingBytes = 0;

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
    const alignment = size >= LARGE_FROM ? LARGE_PAGE : this.#host.pageSize;
    const reused = this.#free.take(size, alignment);
    if (reused !== undefined) return reused;
    const aligned = Math.ceil(this.#next / alignment) * alignment;
    const at = aligned + size <= this.end ? aligned : this.#next;
    if (at + size > this.end) throw new RangeError("Out of executable memory: too much compiled code is alive");
    if (at > this.#next) this.#free.add(this.#next, at - this.#next);
    this.#next = at + size;
    return at;
  }

  /**
   * Takes a writable chunk of at least `bytes`, into which code is compiled; undefined when too little of the arena is
   * left, or where the system charges for memory that is not used, unless `isFilled`: the caller uses all of it.
   */
  open(bytes: number, isFilled = false): OpenChunk | undefined {
    const size = this.chunkSize(bytes);
    const isAllowed = isFilled || this.#host.os === "linux";
    if (!isAllowed || size > this.end - this.#next) return undefined;
    const at = this.allocate(size);
    try {
      this.#host.protect(at, size, PROT.READ | PROT.WRITE);
    } catch {
      this.release(at, size);
      return undefined; // the system limits memory that is not used, too
    }
    if (size >= LARGE_FROM) this.#host.preferLargePages(at, size);
    return new OpenChunk(this, this.#host, at, size);
  }

  /**
   * Takes a chunk of at least `bytes`, to which code is added as it is needed; undefined if the arena is too full, or
   * if such chunks would take more than half of it: most of their pages are never used.
   */
  openGrowing(bytes: number): GrowingChunk | undefined {
    const size = this.chunkSize(bytes);
    const taken = this.#growingBytes + size;
    const isRoom = size <= this.end - this.#next && taken <= (this.end - this.start) / 2;
    if (this.#host.os !== "linux" || !isRoom) return undefined;
    const place = { address: this.allocate(size), capacity: size, pollPage: this.pollPage };
    const chunk = new GrowingChunk(this.#host, place, this.#maintain);
    this.#growing.set(place.address, chunk);
    this.#growingBytes += size;
    return chunk;
  }

  /** Makes the first `bytes` bytes of an open chunk of `capacity` bytes executable and frees the others. */
  publishOpen(address: number, bytes: number, capacity: number): void {
    const size = this.chunkSize(bytes);
    try {
      this.#host.protect(address, size, PROT.READ | PROT.EXEC);
    } catch (error) {
      this.release(address, capacity);
      throw error;
    }
    if (capacity > size) this.release(address + size, capacity - size);
    this.#maintain?.(address, address + bytes);
  }

  /**
   * Writes `code` at the start of a chunk, lets `finish` resolve references that depend on the address, makes the chunk
   * executable and maintains the instruction caches. Frees the chunk and throws RangeError when the system refuses.
   */
  publish(address: number, code: Uint8Array, finish?: (placed: Uint8Array) => void): void {
    try {
      publishCode(this.#host, address, code, finish);
    } catch (error) {
      this.release(address, code.length);
      throw error;
    }
    this.#maintain?.(address, address + code.length);
  }

  /**
   * Changes code of a chunk of `bytes` in place. No thread may be executing it. Throws RangeError and changes nothing
   * where the system refuses access. It does not refuse to make the chunk executable again: its pages then have the
   * protection of their neighbours, so that no mapping is split.
   */
  patch(address: number, bytes: number, change: (placed: Uint8Array) => void): void {
    if (this.#dropped.has(address)) throw new Bug("Pages of the code were dropped");
    const size = this.chunkSize(bytes);
    this.#host.protect(address, size, PROT.READ | PROT.WRITE);
    change(new Uint8Array(this.#host.view(address, size)));
    this.#host.protect(address, size, PROT.READ | PROT.EXEC);
    this.#maintain?.(address, address + bytes);
  }

  /**
   * Maps `bytes` of code from an image file into a chunk. `offset` is a multiple of the page size. Throws RangeError
   * when the system refuses, as it does for file systems mounted without execution; the chunk is then unchanged.
   */
  publishMapped(address: number, bytes: number, image: number, offset: number): void {
    // The system maintains the caches of pages of files.
    this.#host.mapImage(address, this.chunkSize(bytes), image, offset, PROT.READ | PROT.EXEC);
  }

  /** Drops the pages of a chunk, or at least the access to them; false where the system refuses both. */
  #revoke(address: number, size: number): boolean {
    try {
      this.#host.replace(address, size, PROT.NONE);
      return true;
    } catch {
      // The system maps nothing new; changing the protection of the whole chunk may still be possible.
    }
    try {
      this.#host.protect(address, size, PROT.NONE);
      return true;
    } catch {
      return false;
    }
  }

  /**
   * Drops the whole pages in `ranges` (first, end) of the chunk at `address`, in this order. Access to them faults from
   * now on, and they are not used again before the chunk is freed; it cannot be patched any more. Nothing may execute
   * or read them. Returns the number of bytes dropped: 0 on systems other than Linux, and when too many ranges were
   * dropped.
   */
  dropPages(address: number, ranges: readonly (readonly [first: number, end: number])[]): number {
    if (this.#host.os !== "linux") return 0;
    const before = this.#dropped.get(address) ?? 0;
    const most = Math.min(MAX_DROPPED - before, MAX_DROPPED_OF_ALL - this.#droppedCount);
    const whole = this.#wholePages(ranges).slice(0, most);
    if (whole.length > 0) this.#dropped.set(address, before + whole.length);
    this.#droppedCount += whole.length;
    let bytes = 0;
    for (const { at, size } of whole) if (this.#revoke(at, size)) bytes += size;
    return bytes;
  }

  /** The whole pages in `ranges`. */
  #wholePages(ranges: readonly (readonly [first: number, end: number])[]): { at: number; size: number }[] {
    const { pageSize } = this.#host;
    return ranges.map(([first, end]) => {
      const at = Math.ceil(first / pageSize) * pageSize;
      return { at, size: Math.floor(end / pageSize) * pageSize - at };
    }).filter(({ size }) => size > 0);
  }

  /** Ends the growth of the chunk at `address`, if it is a growing one. */
  #closeGrowing(address: number): void {
    const chunk = this.#growing.get(address);
    if (chunk === undefined) return;
    this.#growing.delete(address);
    this.#growingBytes -= chunk.capacity;
    chunk.onRelease?.();
  }

  /** Frees a chunk of `bytes` and drops its pages. Where the system refuses, the chunk is never reused. */
  release(address: number, bytes: number): void {
    const size = this.chunkSize(bytes);
    this.#closeGrowing(address);
    if (!this.#revoke(address, size)) return;
    this.#droppedCount -= this.#dropped.get(address) ?? 0;
    this.#dropped.delete(address);
    this.#free.add(address, size);
    this.#next = this.#free.takeEnd(this.#next);
  }
}
