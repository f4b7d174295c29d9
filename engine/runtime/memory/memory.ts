/**
 * Linear memories (specification, 4.2.8). In guard mode a memory reserves 8 GiB of address space, so that every 32-bit
 * address plus 32-bit offset either hits the memory or faults; growing changes the protection and never moves the base.
 * In explicit mode a memory reserves little more than its pages, and growing may move it.
 *
 * VM contexts hold copies of base and length; a memory notifies its `users` when either changes. The pages of a shared
 * memory are those of a SharedArrayBuffer (shared_pages.ts).
 *
 * Invariant: the pages of an ArrayBuffer given to a program outlive it. A range is therefore released only when its
 * memory is gone and no ArrayBuffer refers to it. The ArrayBuffer keeps the contents of a collected memory; closing,
 * resetting and moving a memory takes them, so that it reads as zeros. A view that growth must detach cannot
 * be protected from being transferred; the memory holds such a view until growth, in order to detect a transfer.
 */
import { inWords } from "../../base/arguments.ts";
import type { Host } from "../../host/host.ts";
import { I32, I64, isGuardable, type MemoryType, PAGE_BYTES, pageBytes } from "../../wasm/types.ts";
import { currentHost } from "../../host/current.ts";
import { Finalizers, type Weak } from "../../host/finalizers.ts";
import { GUARD_RESERVATION } from "../../abi/context_layout.ts";
import { inaccessibleAddress, Range, type RangeImage } from "./memory_range.ts";
import { type SharedMemoryToken, SharedPages } from "./shared_pages.ts";
import { formatAs } from "../../host/inspect.ts";
import { requireSeal, sealOf } from "../../host/seal.ts";

/** The maximum length of 32-bit memories in bytes, and this implementation's limit for 64-bit ones. */
const MAX_BYTES_32 = 2 ** 32;
const MAX_BYTES_64 = 2 ** 34;
/** The maximum length of memories with pages of one byte: a number of pages has 32 bits (custom page sizes). */
const MAX_BYTE_PAGES = 2 ** 32 - 1;
/** The minimum reservation in bytes when an unguarded memory grows. */
const EXPLICIT_HEADROOM = 1 << 20;

/** An owner of copies of a memory's base and length. */
export interface MemoryUser {
  /** Called after base or length has changed. */
  memoryMoved(memory: Memory): void;
  /** Whether a call is preempted in code that may hold the base in a register. */
  readonly preempted: boolean;
  /**
   * A weak reference to it.
   *
   * @internal
   */
  readonly weak: Weak<MemoryUser>;
}

/** The budget that pays for a memory (suspension/budget.ts). */
export interface SizeBudget {
  /** Takes the bytes of a growth; returns false if they are not granted. */
  take(kind: "memory" | "table", from: number, to: number): boolean;
  /** Takes bytes back. */
  give(bytes: number): void;
}

/** Observes accesses of the host to a memory, for recordings. */
export interface MemoryWatcher {
  /** Called before a program gets a view of all bytes, which it may keep. */
  lending(): void;
  /** Called before the engine accesses `length` bytes at `at` for the host, possibly to write them. */
  touching(at: number, length: number): void;
}

/** The type and limits of a shared memory in its token; numbers that may exceed 2⁵³ as decimal digits. */
interface MemoryDescription {
  readonly isWide: boolean;
  readonly min: string;
  readonly max: string;
  readonly maxPages: number;
  readonly pageSize?: number;
  readonly guarded: boolean;
}

/** The state of a memory that outlives the Memory object, for its finalizer. */
interface Holder {
  range: Range | undefined;
  /** The current view, if programs can transfer it. */
  open: ArrayBuffer | undefined;
}

/** The bytes of a memory that a budget pays for; outlives the Memory object. */
interface Charge {
  readonly budget: SizeBudget;
  bytes: number;
}

const CHARGES = new Finalizers<Charge>(({ budget, bytes }) => budget.give(bytes));

const MEMORIES = new Finalizers<Holder>(({ range, open }) => {
  // Growth can no longer detach the view, so transfers can be forbidden.
  if (open !== undefined) currentHost().lent.seal(open);
  range?.retire(true);
});

/**
 * Options for creating a memory.
 *
 * @internal
 */
export interface MemoryOptions {
  /** Guard pages instead of explicit bounds checks; 32-bit memories only. */
  guarded: boolean;
  /** The host's limit in bytes, in addition to the maximum of the type. */
  maxBytes?: number;
  /** The initial contents; without it, zeros. */
  image?: RangeImage;
  /** The existing pages of a memory that another realm shares with this one. */
  pages?: SharedPages;
  /** The budget that pays for its bytes. */
  budget?: SizeBudget | undefined;
}

/** The limit of memories of `type` in pages, where the host allows `maxBytes` bytes. */
function mostPages(type: MemoryType, maxBytes = Infinity): number {
  const size = pageBytes(type);
  const most = size < PAGE_BYTES ? MAX_BYTE_PAGES : type.limits.address === I64 ? MAX_BYTES_64 : MAX_BYTES_32;
  return Math.floor(Math.min(most, maxBytes) / size);
}

/**
 * Whether shared memories can have guard pages. Not on hosts whose SharedArrayBuffers are smaller than the reservation
 * (Node 20, Bun).
 *
 * @internal
 */
export function guardsShared(host: Host): boolean {
  return GUARD_RESERVATION <= host.maxViewBytes;
}

/** A linear memory, exported by an instance or created by `host.memory` or `host.sharedMemory`. */
export class Memory {
  /** @internal */
  readonly type: MemoryType;
  /**
   * Whether the memory has guard pages, as 32-bit code without bounds checks requires.
   *
   * @internal
   */
  readonly guarded: boolean;
  /** Weak, because a memory may outlive many short-lived instances that import it. */
  #users: Weak<MemoryUser>[] = [];
  /** The maximum length in pages. */
  readonly maxPages: number;
  /**
   * Bytes of a page: 65,536, or 1 (custom page sizes).
   *
   * @internal
   */
  readonly pageBytes: number;
  #pages: number;
  /**
   * The pages of a shared memory, which uses no other page state of this class.
   *
   * @internal
   */
  readonly shared: SharedPages | undefined;
  readonly #host: Host;
  readonly #holder: Holder | undefined;
  #charge: Charge | undefined;
  #buffer: ArrayBuffer | undefined;
  /**
   * Whether growing detaches the current view (JavaScript API, "refresh the memory buffer"); otherwise the view only
   * becomes stale.
   *
   * @internal
   */
  detaches = false;
  readonly #reservation: number = 0;
  /** @internal */
  watcher: MemoryWatcher | undefined;
  /**
   * True once a program has had a view of the bytes; it may keep the view, so this never changes back.
   *
   * @internal
   */
  isLent = false;

  /** @internal */
  constructor(host: Host, type: MemoryType, options: MemoryOptions) {
    const { min, max } = type.limits;
    this.#host = host;
    this.type = type;
    this.pageBytes = pageBytes(type);
    this.guarded = options.guarded && isGuardable(type) && (!type.shared || guardsShared(host));
    const limit = mostPages(type, options.maxBytes);
    this.maxPages = max === undefined ? limit : Math.min(limit, Number(max));
    if (min > BigInt(limit)) throw new RangeError(`Out of memory: ${min} pages exceed the limit of ${limit}`);
    this.#pages = Number(min);
    if (options.budget !== undefined) this.#chargeTo(options.budget, this.#pages * this.pageBytes);
    if (type.shared) {
      const reservation = this.guarded ? GUARD_RESERVATION : Math.max(this.maxPages, 1) * this.pageBytes;
      this.shared = options.pages ?? SharedPages.make(host, this.#pages * this.pageBytes, reservation);
      return;
    }
    const bytes = this.#committed(this.#pages);
    this.#reservation = this.guarded ? GUARD_RESERVATION : Math.max(bytes, host.pageSize);
    this.#holder = { range: Range.take(host, this.#reservation, bytes, options.image), open: undefined };
    MEMORIES.register(this, this.#holder);
  }

  #chargeTo(budget: SizeBudget, bytes: number): void {
    if (!budget.take("memory", 0, bytes)) throw new RangeError(`Out of memory: the budget refuses ${bytes} bytes`);
    this.#charge = { budget, bytes };
    CHARGES.register(this, this.#charge);
  }

  /** Asks the budget for a length in bytes; returns whether it is granted. */
  #mayHave(bytes: number): boolean {
    const charge = this.#charge;
    if (charge === undefined || bytes === charge.bytes) return true;
    const from = charge.bytes;
    if (bytes < from) charge.budget.give(from - bytes);
    else if (!charge.budget.take("memory", from, bytes)) return false;
    charge.bytes += bytes - from; // the budget's function may have changed it
    return true;
  }

  /**
   * Returns the memory of a token made by `share`, in this realm. Throws TypeError if `token` is not a token that a
   * realm of this process made.
   */
  static fromShared(token: SharedMemoryToken): Memory {
    const { waft, description, pages, control, seal } = token ?? {} as Partial<SharedMemoryToken>;
    if (waft !== "memory") throw new TypeError("The value is not a token from Memory.share()");
    const host = currentHost();
    requireSeal(host, seal, "Memory", description, [pages, control]);
    const { isWide, min, max, maxPages, pageSize, guarded } = JSON.parse(description) as MemoryDescription;
    const limits = { address: isWide ? I64 : I32, min: BigInt(min), max: BigInt(max) };
    const type = { limits, shared: true, ...(pageSize === undefined ? {} : { pageSize }) };
    return new Memory(host, type, {
      guarded,
      maxBytes: maxPages * pageBytes(type),
      pages: SharedPages.of(host, pages!, control!),
    });
  }

  /**
   * Returns a token: plain data for `postMessage`, from which `Memory.fromShared` makes the same memory in another
   * realm of this process. A Worker that has it can break every guest that uses the memory: give it only to Workers
   * that may do whatever this realm may. Throws TypeError unless the memory is shared.
   */
  share(): SharedMemoryToken {
    if (this.shared === undefined) throw new TypeError("Only a shared memory can be used by several threads");
    const { limits: { address, min, max }, pageSize } = this.type;
    const { buffer: pages, control } = this.shared;
    const description = JSON.stringify(
      {
        isWide: address === I64,
        min: String(min),
        max: String(max),
        maxPages: this.maxPages,
        ...(pageSize === undefined ? {} : { pageSize }),
        guarded: this.guarded,
      } satisfies MemoryDescription,
    );
    const seal = sealOf(this.#host, "Memory", description, [pages, control]);
    return { waft: "memory", description, pages, control, seal };
  }

  /** The current length in pages: of 64 KiB, unless the memory's type says otherwise (custom page sizes). */
  get pages(): number {
    return this.shared === undefined ? this.#pages : this.shared.byteLength / this.pageBytes;
  }

  /** The current length in bytes. */
  get byteLength(): number {
    return this.shared === undefined ? this.#pages * this.pageBytes : this.shared.byteLength;
  }

  /**
   * The address of byte 0.
   *
   * @internal
   */
  get base(): number {
    return this.shared?.address ?? this.#holder!.range?.address ?? inaccessibleAddress(this.#host);
  }

  /**
   * A view of the whole memory; the same object until the memory grows. After growth the old view remains readable but
   * no longer reflects the memory. It cannot be transferred, except on Bun, where its pages then leave the memory. For
   * a shared memory this is one SharedArrayBuffer that grows with the memory, typed as in the declarations of
   * `WebAssembly.Memory`.
   */
  get buffer(): ArrayBuffer {
    this.watcher?.lending();
    this.isLent = true;
    if (this.shared !== undefined) return this.shared.buffer as unknown as ArrayBuffer;
    if (this.#buffer === undefined) {
      const holder = this.#holder!;
      this.#buffer = holder.range?.view(this.byteLength, !this.detaches) ?? new ArrayBuffer(0);
      holder.open = this.detaches ? this.#buffer : undefined;
    }
    return this.#buffer;
  }

  /**
   * All bytes, for use by the runtime until guest code runs again.
   *
   * @internal
   */
  get bytes(): Uint8Array {
    if (this.shared !== undefined) return new Uint8Array(this.shared.buffer);
    const own = this.#holder!.range?.own ?? NO_BYTES;
    return own.length === this.byteLength ? own : own.subarray(0, this.byteLength);
  }

  /**
   * Whether the memory starts with an image, so that its data segments need not be copied.
   *
   * @internal
   */
  get hasImage(): boolean {
    return this.#holder?.range?.image !== undefined;
  }

  /**
   * Restores the initial length and contents. No code of its instances may be running.
   *
   * @internal
   */
  reset(): void {
    const holder = this.#holder;
    const range = holder?.range;
    if (holder === undefined || range === undefined) return;
    const pages = Number(this.type.limits.min);
    this.#mayHave(pages * this.pageBytes);
    if (this.#pages === pages) return range.clear();
    // Views of the grown memory must stay readable, and pages beyond the initial length must not be accessible.
    holder.range = Range.take(this.#host, this.#reservation, this.#committed(pages), range.image);
    range.retire();
    this.#setPages(pages);
  }

  /** Bytes of whole pages of the host that hold `pages` pages; those beyond the length are zeros. */
  #committed(pages: number): number {
    const { pageSize } = this.#host;
    return Math.ceil(pages * this.pageBytes / pageSize) * pageSize;
  }

  #setPages(pages: number): void {
    this.#pages = pages;
    this.#forgetBuffer();
    this.#buffer = undefined;
    for (const user of this.#users) user.deref()?.memoryMoved(this);
  }

  #forgetBuffer(): void {
    const holder = this.#holder;
    if (holder?.open === undefined) return;
    this.#host.lent.detach(holder.open);
    holder.open = undefined;
    this.#buffer = undefined;
  }

  /** @internal */
  addUser(user: MemoryUser): void {
    if (this.#users.length >= 64 && (this.#users.length & (this.#users.length - 1)) === 0) {
      this.#users = this.#users.filter((ref) => ref.deref() !== undefined);
    }
    this.#users.push(user.weak);
  }

  /**
   * The owners of copies of base and length.
   *
   * @internal
   */
  *users(): Generator<MemoryUser> {
    for (const ref of this.#users) {
      const user = ref.deref();
      if (user !== undefined) yield user;
    }
  }

  /**
   * Grows the memory by `delta` pages. Returns the previous length in pages, or −1 if it cannot grow that far. Throws
   * TypeError unless `delta` is a non-negative integer.
   */
  grow(delta: number): number {
    if (!Number.isInteger(delta) || delta < 0) {
      throw new TypeError(`The number of pages to grow by must be a non-negative integer, not ${inWords(delta)}`);
    }
    if (this.shared !== undefined) return this.#growShared(this.shared, delta);
    const old = this.#pages;
    const next = old + delta;
    if (next > this.maxPages) return -1;
    const size = this.pageBytes;
    if (!this.#mayHave(next * size)) return -1;
    if (this.#pages !== old) { // the budget's function has grown or closed it
      this.#mayHave(this.#pages * size);
      return -1;
    }
    if (delta === 0) {
      this.#forgetBuffer();
      return old;
    }
    try {
      this.#resize(next);
    } catch (error) {
      this.#mayHave(old * size);
      if (error instanceof RangeError) return -1;
      throw error;
    }
    this.#setPages(next);
    return old;
  }

  #growShared(shared: SharedPages, delta: number): number {
    if (delta > this.maxPages) return -1;
    const before = shared.byteLength;
    if (!this.#mayHave(before + delta * this.pageBytes)) return -1;
    const old = shared.grow(delta * this.pageBytes, this.maxPages * this.pageBytes);
    if (old < 0) this.#mayHave(before);
    if (old >= 0 && delta > 0) { for (const user of this.users()) user.memoryMoved(this); }
    return old < 0 ? -1 : old / this.pageBytes;
  }

  #resize(pages: number): void {
    const bytes = this.#committed(pages);
    const holder = this.#holder!;
    const range = holder.range;
    if (range === undefined) throw new RangeError("The memory is closed");
    if (bytes <= range.bytes) {
      range.commit(bytes);
      return;
    }
    for (const user of this.users()) {
      if (user.preempted) throw new RangeError("The memory is in use by a preempted call");
    }
    const headroom = Math.min(Math.max(bytes * 2, EXPLICIT_HEADROOM), this.#committed(this.maxPages));
    const next = Range.take(this.#host, headroom, bytes);
    if (this.byteLength > 0) next.own.set(range.own.subarray(0, this.byteLength));
    holder.range = next;
    range.retire();
  }

  /**
   * Releases the pages. Existing views read as zeros afterwards, and accesses by code that still uses the memory are
   * out of bounds. Does nothing for a shared memory, whose pages are released when no thread uses them.
   */
  close(): void {
    const range = this.#holder?.range;
    if (range === undefined) return;
    this.#holder!.range = undefined;
    this.#mayHave(0);
    range.give(this.#committed(Number(this.type.limits.min)));
    this.#setPages(0);
  }
}

formatAs(
  Memory.prototype,
  ({ pages, maxPages, shared }) =>
    `Memory { pages: ${pages}, maxPages: ${maxPages}${shared === undefined ? "" : ", shared"} }`,
);

const NO_BYTES = new Uint8Array(0);
