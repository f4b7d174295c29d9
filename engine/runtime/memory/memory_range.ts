/**
 * Address ranges for memories. Ranges are reused: the range of a closed memory returns to a small pool, cleared and
 * with its pages still committed, because mapping and page faults cost far more than clearing cached pages.
 *
 * Invariant: the pages of an ArrayBuffer given to a program outlive it, also after they were transferred to another
 * ArrayBuffer (lent_views.ts). A range is therefore pooled or released only when no ArrayBuffer refers to it. Its
 * ArrayBuffers keep the contents of a collected memory; those of a memory that was closed, reset or moved read as zeros
 * until then. The runtime's private view (`own`) is never given to programs.
 *
 * The address space is a resource of the process, so its state belongs to the realm (SPACE) and not to an engine or
 * store. Realms of one process do not coordinate: each assumes that it may reserve MANY_GUARDED ranges.
 */
import { GUARD_RESERVATION } from "../../abi/context_layout.ts";
import { countBytes, finalizeCollected } from "../../host/finalizers.ts";
import { hasAddressSpace } from "../../host/memory/address_space.ts";
import { type Host, PROT } from "../../host/host.ts";

/** Initial contents that are mapped from an in-memory file (memory_image.ts). */
export interface RangeImage {
  /** Free ranges that contain the unmodified image. */
  readonly pool: Range[];
  /** Maps the image at `address`, writable and private. */
  map(address: number): void;
}

/**
 * Ranges of up to this many bytes are cleared by writing zeros; larger ones by discarding their pages, at a cost
 * proportional to the pages used.
 */
const CLEAR_BY_WRITING = 1 << 18;
/** The maximum number of free ranges per pool. */
const POOL_SIZE = 32;

/** Up to this many guarded ranges, one probe at the first use suffices. */
const FEW_GUARDED = 512;
/** The limit of guarded ranges: a process has room for about 16,000, and other mappings need some of it. */
const MANY_GUARDED = 8192;

/** This realm's use of the address space. */
const SPACE: {
  /** Free ranges by size and committed bytes. */
  readonly pools: Map<string, Range[]>;
  /** Number of active deferrals: registers of preempted calls may hold addresses of ranges that are to be retired. */
  deferrals: number;
  /** Retirements of ranges, for the end of the last deferral. */
  readonly deferred: (() => void)[];
  /** The number of guarded ranges. */
  guarded: number;
  /** Whether there was room for FEW_GUARDED guarded ranges at the first probe. */
  isRoomy: boolean | undefined;
  /** The base address of closed memories, once it is needed. */
  inaccessible: number | undefined;
} = { pools: new Map(), deferrals: 0, deferred: [], guarded: 0, isRoomy: undefined, inaccessible: undefined };

/**
 * Defers the retirement of ranges (1), or ends a deferral (−1); the end of the last one retires the deferred ranges.
 */
export function deferRetirement(delta: 1 | -1): void {
  SPACE.deferrals += delta;
  if (SPACE.deferrals === 0) { for (const retire of SPACE.deferred.splice(0)) retire(); }
}

/** Whether there is address space for another guarded memory, in a process with room for many of them. */
export function hasGuardRoom(host: Host): boolean {
  finalizeCollected();
  SPACE.isRoomy ??= hasAddressSpace(host, GUARD_RESERVATION * FEW_GUARDED);
  if (!SPACE.isRoomy || SPACE.guarded >= MANY_GUARDED) return false;
  return SPACE.guarded < FEW_GUARDED || hasAddressSpace(host, GUARD_RESERVATION);
}

/** The address range of one memory, shared by the memory and its views. */
export class Range {
  readonly host: Host;
  readonly address: number;
  readonly bytes: number;
  /** The initial contents; without it, zeros. */
  readonly image: RangeImage | undefined;
  #views = 0;
  #retired = false;
  #committed = 0;
  #own: Uint8Array<ArrayBuffer> | undefined;

  private constructor(host: Host, bytes: number, committed: number, image?: RangeImage) {
    this.host = host;
    this.bytes = bytes;
    this.image = image;
    // A range without reserved space beyond its pages is reserved accessible, which saves a system call. Where the
    // system commits on access, the pages are committed explicitly, because system calls read and write them.
    const isWhole = bytes < GUARD_RESERVATION && committed === bytes;
    this.#committed = isWhole && !host.system.commitsOnAccess ? bytes : 0;
    this.address = host.reserve(bytes, this.#committed > 0 ? PROT.READ | PROT.WRITE : PROT.NONE, image !== undefined);
    if (bytes === GUARD_RESERVATION) SPACE.guarded++;
    countBytes(this.#committed);
  }

  #release(): void {
    this.host.release(this.address, this.bytes);
    countBytes(-this.#committed);
    if (this.bytes === GUARD_RESERVATION) SPACE.guarded--;
  }

  /**
   * Allocates a range of `bytes`, whose first `committed` bytes are accessible and contain zeros or the image. Throws
   * RangeError if there is no address space or memory for it.
   */
  static take(host: Host, bytes: number, committed: number, image?: RangeImage): Range {
    const pooled = (image?.pool ?? SPACE.pools.get(`${bytes} ${committed}`))?.pop();
    if (pooled !== undefined) return pooled;
    const range = new Range(host, bytes, committed, image);
    try {
      image?.map(range.address);
      range.commit(committed);
    } catch (error) {
      range.retire();
      throw error;
    }
    return range;
  }

  /** Makes the first `bytes` accessible. Throws RangeError if the system has no memory for them. */
  commit(bytes: number): void {
    if (bytes <= this.#committed) return;
    const added = bytes - this.#committed;
    this.host.protect(this.address + this.#committed, added, PROT.READ | PROT.WRITE);
    this.#committed = bytes;
    countBytes(added);
    this.#own = undefined;
  }

  /** All committed bytes, for use by the runtime only. */
  get own(): Uint8Array<ArrayBuffer> {
    return this.#own ??= new Uint8Array(this.host.view(this.address, this.#committed));
  }

  /** Creates a view for programs; they cannot transfer it if `sealed`. */
  view(bytes: number, sealed: boolean): ArrayBuffer {
    if (bytes === 0) return new ArrayBuffer(0);
    const { lent } = this.host;
    const buffer = lent.lend(this.address, bytes, () => {
      this.#views--;
      if (this.#retired && this.#views === 0) this.#release();
    });
    this.#views++;
    if (sealed) lent.seal(buffer);
    return buffer;
  }

  /** Restores the initial contents of all committed bytes. Throws RangeError where the system cannot map the image. */
  clear(): void {
    if (this.#committed === 0) return;
    if (this.image === undefined && this.#committed <= CLEAR_BY_WRITING) return void this.own.fill(0);
    try {
      this.host.discard(this.address, this.#committed, () => this.image?.map(this.address));
    } catch (error) {
      if (this.image !== undefined) throw error;
      this.own.fill(0);
    }
  }

  /**
   * Returns the range, which was allocated with `committed` bytes, to its pool if it can be reused; otherwise retires
   * it.
   */
  give(committed: number): void {
    if (SPACE.deferrals > 0 || this.#retired || this.#views > 0 || this.#committed !== committed) return this.retire();
    let pool: Range[];
    if (this.image !== undefined) pool = this.image.pool;
    else {
      const key = `${this.bytes} ${committed}`;
      const known = SPACE.pools.get(key);
      pool = known ?? [];
      if (known === undefined) SPACE.pools.set(key, pool);
    }
    if (pool.length >= POOL_SIZE) return this.retire();
    try {
      this.clear();
    } catch {
      return this.retire();
    }
    pool.push(this);
  }

  /**
   * Releases the range, once no view of it exists. Until then, the views read as zeros, or keep the contents if the
   * memory `isCollected`.
   */
  retire(isCollected = false): void {
    if (this.#retired) return;
    if (SPACE.deferrals > 0) {
      SPACE.deferred.push(() => this.retire(isCollected));
      return;
    }
    this.#retired = true;
    const committed = this.#committed;
    if (this.#views === 0) this.#release();
    else if (committed > 0 && !isCollected) {
      try {
        this.host.replace(this.address, committed, PROT.READ | PROT.WRITE);
      } catch {
        this.own.fill(0); // the system refuses; the views read zeros nevertheless
      }
    }
    this.#own = undefined;
  }
}

/**
 * An address at which nothing is mapped, up to 8 GiB above it: non-canonical with 48-bit addresses, and with longer
 * ones beyond the space that systems allocate by default.
 */
const NON_CANONICAL = 2 ** 52;

/** The base address of closed memories: every access within a reservation from it faults. */
export function inaccessibleAddress(host: Host): number {
  if (SPACE.inaccessible === undefined) {
    try {
      SPACE.inaccessible = host.reserve(GUARD_RESERVATION, PROT.NONE);
    } catch {
      SPACE.inaccessible = NON_CANONICAL;
    }
  }
  return SPACE.inaccessible;
}
