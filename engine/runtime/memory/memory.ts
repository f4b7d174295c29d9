/**
 * Linear memories (specification, 4.2.8). In guard mode a memory owns 8 GiB of address space, so that every 32-bit address
 * plus 32-bit offset faults or hits the memory, and growing is a change of protection: the base never moves. In explicit
 * mode it owns little more than its pages, and growing may move it.
 *
 * Contexts of instances hold copies of base and length; `users` are told when they change.
 *
 * The pages of shared memories are those of a SharedArrayBuffer (shared_pages.ts).
 *
 * Views: an ArrayBuffer handed out must never outlive its pages, so a range is given back only when the memory is gone and no
 * ArrayBuffer has them; until then it reads as zeros. What must be detached by growth cannot be kept from being transferred, so such a view
 * is held until then, to see whether that has happened.
 */
import { inWords } from "../../base/arguments.ts";
import type { Host } from "../../host/host.ts";
import { I32, I64, type MemoryType } from "../../wasm/types.ts";
import { currentHost } from "../../host/current.ts";
import { GUARD_RESERVATION, nowhereAddress, Range, type RangeImage } from "./memory_range.ts";
import { type SharedMemoryToken, SharedPages } from "./shared_pages.ts";

export const PAGE_BYTES = 0x10000;
/** The most pages of a 32-bit memory, and the limit of this implementation for 64-bit ones (16 GiB). */
const MAX_PAGES_32 = 0x10000;
const MAX_PAGES_64 = 0x40000;
/** Fewest bytes that an unguarded memory reserves ahead when it grows. */
const EXPLICIT_HEADROOM = 1 << 20;

/** Someone who keeps a copy of base and length. */
export interface MemoryUser {
  memoryMoved(memory: Memory): void;
  /** Has a call stopped in the middle of code that may have the base in a register? */
  readonly preempted: boolean;
}

/** What is left of a memory that has been collected. */
interface Holder {
  range: Range | undefined;
  /** The current view, if it may be transferred. */
  open: ArrayBuffer | undefined;
}

const MEMORIES = new FinalizationRegistry<Holder>(({ range, open }) => {
  // No growth will detach it any more, so it can be kept from being transferred.
  if (open !== undefined) currentHost().lent.seal(open);
  range?.retire();
});

export interface MemoryOptions {
  /** Guard pages instead of explicit checks; only for 32-bit memories. */
  guarded: boolean;
  /** The most pages the host allows, whatever the type says. */
  maxPages?: number;
  /** What it holds at first, if not zeros. */
  image?: RangeImage;
  /** Pages that are there already, of a memory shared with this realm. */
  pages?: SharedPages;
}

/** Can a shared memory have guard pages? Not where no SharedArrayBuffer is as large as what they take (Node 20, Bun). */
export function guardsShared(host: Host): boolean {
  return GUARD_RESERVATION <= host.maxViewBytes;
}

/** A linear memory: exported by an instance, or made by `host.memory` and `host.sharedMemory`. */
export class Memory {
  /** @internal */
  readonly type: MemoryType;
  /**
   * Has it guard pages, so that 32-bit code without checks may use it?
   *
   * @internal
   */
  readonly guarded: boolean;
  /** Weak, since a memory may outlive many short-lived instances that import it. */
  #users: WeakRef<MemoryUser>[] = [];
  /** The most pages it may have. */
  readonly maxPages: number;
  #pages: number;
  /**
   * The pages of a shared memory; the fields above and below are then not used.
   *
   * @internal
   */
  readonly shared: SharedPages | undefined;
  readonly #host: Host;
  readonly #holder: Holder | undefined;
  #buffer: ArrayBuffer | undefined;
  /**
   * Is a view detached when the memory grows (JavaScript API, "refresh the memory buffer"), not just out of date?
   *
   * @internal
   */
  detaches = false;
  readonly #reservation: number = 0;

  /** @internal */
  constructor(host: Host, type: MemoryType, options: MemoryOptions) {
    const { min, max, address } = type.limits;
    const limit = address === I64 ? MAX_PAGES_64 : MAX_PAGES_32;
    this.#host = host;
    this.type = type;
    this.guarded = options.guarded && (!type.shared || guardsShared(host));
    this.maxPages = Math.min(limit, options.maxPages ?? limit, max === undefined ? limit : Number(max));
    if (min > BigInt(Math.min(limit, options.maxPages ?? limit))) {
      throw new RangeError(
        `Out of memory: ${min} pages are more than the limit of ${Math.min(limit, options.maxPages ?? limit)}`,
      );
    }
    this.#pages = Number(min);
    const bytes = this.#pages * PAGE_BYTES;
    if (type.shared) {
      const reservation = this.guarded ? GUARD_RESERVATION : Math.max(this.maxPages, 1) * PAGE_BYTES;
      this.shared = options.pages ?? SharedPages.make(host, bytes, reservation);
      return;
    }
    this.#reservation = options.guarded ? GUARD_RESERVATION : Math.max(bytes, host.pageSize);
    this.#holder = { range: Range.take(host, this.#reservation, bytes, options.image), open: undefined };
    MEMORIES.register(this, this.#holder);
  }

  /** The memory that `token` stands for, which `share` has made, in this realm. Throws TypeError when it is none. */
  static fromShared(token: SharedMemoryToken): Memory {
    if (!isMemoryToken(token)) throw new TypeError("This is not what Memory.share() returned");
    const { address, min, max, maxPages, guarded, pages, control } = token;
    // Code without checks relies on the address space behind the pages, and all code on the length.
    const room = guarded ? GUARD_RESERVATION : Math.max(maxPages, 1) * PAGE_BYTES;
    if (!pages.growable || !(pages.maxByteLength >= room) || !SharedPages.fits(pages, control)) {
      throw new TypeError("This is not what Memory.share() returned: its pages are not those of a memory");
    }
    const host = currentHost();
    const type = { limits: { address: address === "i64" ? I64 : I32, min, max }, shared: true };
    return new Memory(host, type, { guarded, maxPages, pages: SharedPages.of(host, pages, control) });
  }

  /** Plain data to send to a Worker, which makes the same memory of it with `Memory.fromShared`. Throws TypeError unless it is shared. */
  share(): SharedMemoryToken {
    if (this.shared === undefined) throw new TypeError("Only a shared memory can be used by several threads");
    const { address, min, max } = this.type.limits;
    return {
      waft: "memory",
      address: address === I64 ? "i64" : "i32",
      min,
      max: max!,
      maxPages: this.maxPages,
      guarded: this.guarded,
      pages: this.shared.buffer,
      control: this.shared.control,
    };
  }

  /** Its length in pages of 64 KiB. */
  get pages(): number {
    return this.shared === undefined ? this.#pages : this.shared.byteLength / PAGE_BYTES;
  }

  /** Its length in bytes. */
  get byteLength(): number {
    return this.shared === undefined ? this.#pages * PAGE_BYTES : this.shared.byteLength;
  }

  /**
   * Address of byte 0.
   *
   * @internal
   */
  get base(): number {
    return this.shared?.address ?? this.#holder!.range?.address ?? nowhereAddress(this.#host);
  }

  /**
   * A view of the whole memory as it is now; the same object until the memory grows. What is kept longer stays readable, but says nothing about
   * the memory any more. It cannot be transferred, except on Bun, where the pages then go on without the memory. Of a shared memory
   * it is one SharedArrayBuffer that grows with it (declared as the declarations of `WebAssembly.Memory` do).
   */
  get buffer(): ArrayBuffer {
    if (this.shared !== undefined) return this.shared.buffer as unknown as ArrayBuffer;
    if (this.#buffer === undefined) {
      const holder = this.#holder!;
      this.#buffer = holder.range?.view(this.byteLength, !this.detaches) ?? new ArrayBuffer(0);
      holder.open = this.detaches ? this.#buffer : undefined;
    }
    return this.#buffer;
  }

  /**
   * All bytes, for the runtime's own use before the next instruction of a guest.
   *
   * @internal
   */
  get bytes(): Uint8Array {
    if (this.shared !== undefined) return new Uint8Array(this.shared.buffer);
    const own = this.#holder!.range?.own ?? NO_BYTES;
    return own.length === this.byteLength ? own : own.subarray(0, this.byteLength);
  }

  /**
   * Does it begin as an image says, so that segments need not be copied?
   *
   * @internal
   */
  get hasImage(): boolean {
    return this.#holder?.range?.image !== undefined;
  }

  /**
   * Makes it what it was at first: as long, and as full. Its instances must be at rest.
   *
   * @internal
   */
  reset(): void {
    const holder = this.#holder;
    const range = holder?.range;
    if (holder === undefined || range === undefined) return;
    const pages = Number(this.type.limits.min);
    if (this.#pages === pages) return range.clear();
    // Views of what it has grown to must stay readable, and nothing behind the end may be.
    holder.range = Range.take(this.#host, this.#reservation, pages * PAGE_BYTES, range.image);
    range.retire();
    this.#setPages(pages);
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
    this.#users.push(new WeakRef(user));
  }

  /**
   * Who keeps a copy of base and length.
   *
   * @internal
   */
  *users(): Generator<MemoryUser> {
    for (const ref of this.#users) {
      const user = ref.deref();
      if (user !== undefined) yield user;
    }
  }

  /** Grows by `delta` pages: the old size in pages, or −1 when that is impossible. Throws TypeError for other numbers. */
  grow(delta: number): number {
    if (!Number.isInteger(delta) || delta < 0) {
      throw new TypeError(`A memory grows by a whole number of pages of at least 0, not ${inWords(delta)}`);
    }
    if (this.shared !== undefined) return this.#growShared(this.shared, delta);
    const old = this.#pages;
    const next = old + delta;
    if (next > this.maxPages) return -1;
    if (delta === 0) {
      this.#forgetBuffer();
      return old;
    }
    try {
      this.#resize(next);
    } catch (error) {
      if (error instanceof RangeError) return -1;
      throw error;
    }
    this.#setPages(next);
    return old;
  }

  #growShared(shared: SharedPages, delta: number): number {
    if (delta > this.maxPages) return -1;
    const old = shared.grow(delta * PAGE_BYTES, this.maxPages * PAGE_BYTES);
    if (old >= 0 && delta > 0) { for (const user of this.users()) user.memoryMoved(this); }
    return old < 0 ? -1 : old / PAGE_BYTES;
  }

  #resize(pages: number): void {
    const bytes = pages * PAGE_BYTES;
    const holder = this.#holder!;
    const range = holder.range;
    if (range === undefined) throw new RangeError("The memory is closed");
    if (bytes <= range.bytes) {
      range.commit(bytes);
      return;
    }
    for (const user of this.users()) if (user.preempted) throw new RangeError("The memory is in use between slices");
    const headroom = Math.min(Math.max(bytes * 2, EXPLICIT_HEADROOM), this.maxPages * PAGE_BYTES);
    const next = Range.take(this.#host, headroom, bytes);
    if (this.byteLength > 0) next.own.set(range.own.subarray(0, this.byteLength));
    holder.range = next;
    range.retire();
  }

  /**
   * Gives the pages back; views that were kept read as zeros from now on, and accesses of code that still uses the memory are out of
   * bounds. (Shared pages go when no thread uses them.)
   */
  close(): void {
    const range = this.#holder?.range;
    if (range === undefined) return;
    this.#holder!.range = undefined;
    range.give(Number(this.type.limits.min) * PAGE_BYTES);
    this.#setPages(0);
  }
}

/** Has a value the fields of a token, each of its type and within the others' bounds? */
function isMemoryToken(token: Partial<SharedMemoryToken> | undefined | null): token is SharedMemoryToken {
  if (typeof token !== "object" || token === null || token.waft !== "memory") return false;
  const { address, min, max, maxPages, guarded, pages, control } = token;
  const most = address === "i64" ? 2n ** 48n : BigInt(MAX_PAGES_32);
  return (address === "i32" || address === "i64") && typeof guarded === "boolean" && !(guarded && address === "i64") &&
    typeof min === "bigint" && typeof max === "bigint" && min >= 0n && min <= max && max <= most &&
    typeof maxPages === "number" && Number.isInteger(maxPages) && maxPages >= 0 && BigInt(maxPages) <= max &&
    pages instanceof SharedArrayBuffer && control instanceof SharedArrayBuffer;
}

const NO_BYTES = new Uint8Array(0);
