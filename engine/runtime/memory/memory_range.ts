/**
 * Address space of memories. A range is reserved once and used again and again: when a memory is closed its range goes to a small pool,
 * zeroed, with its pages still there, since mapping and page faults cost far more than clearing what is in the cache.
 *
 * Views: an ArrayBuffer handed out must never outlive its pages, so a range is pooled or given back only when no ArrayBuffer has them any
 * more, also not one that they were transferred to (host/lent_views.ts); until then it reads as zeros. The runtime's own view (`own`) is never handed out.
 */
import { type Host, PROT } from "../../host/host.ts";

/** The initial contents of ranges that are copies of a file in memory (memory_image.ts). */
export interface RangeImage {
  /** Ranges with the image, untouched, that wait for use. */
  readonly pool: Range[];
  /** Maps the image to an address, writable and private. */
  map(address: number): void;
}

/** Address space of a guarded memory: 4 GiB of index, 4 GiB of offset, and the widest access. */
export const GUARD_RESERVATION: number = 2 ** 33 + 0x10000;
/** Up to so many bytes are cleared by writing zeros; more by dropping the pages, so that only those that were used cost anything. */
const CLEAR_BY_WRITING = 1 << 18;
/** Ranges of one kind that wait for use. */
const POOL_SIZE = 32;

const POOLS: Map<string, Range[]> = new Map();

/** Ranges that would go while a call is between slices: its registers may hold their addresses. */
let held = 0;
const later: Range[] = [];

/** Keeps ranges that are retired from now on (1), or lets them go once nothing keeps them (−1). */
export function holdRanges(delta: 1 | -1): void {
  held += delta;
  if (held === 0) { for (const range of later.splice(0)) range.retire(); }
}

/** Guarded ranges that exist. The address space of a process has room for 16,000; many leave room for everything else. */
let guarded = 0;
const FEW_GUARDED = 512;
const MANY_GUARDED = 8192;
let isRoomy: boolean | undefined;

function canReserve(host: Host, bytes: number): boolean {
  try {
    host.release(host.reserve(bytes, PROT.NONE), bytes);
    return true;
  } catch {
    return false;
  }
}

/** Is there address space for another guarded memory, and not only for a few? */
export function hasGuardRoom(host: Host): boolean {
  isRoomy ??= canReserve(host, GUARD_RESERVATION * FEW_GUARDED);
  if (!isRoomy || guarded >= MANY_GUARDED) return false;
  return guarded < FEW_GUARDED || canReserve(host, GUARD_RESERVATION);
}

/** Address space of one memory, shared by the memory and the views of it. */
export class Range {
  readonly host: Host;
  readonly address: number;
  readonly bytes: number;
  /** What the pages are copies of at first, if not of zeros. */
  readonly image: RangeImage | undefined;
  #views = 0;
  #retired = false;
  #committed = 0;
  #own: Uint8Array<ArrayBuffer> | undefined;

  private constructor(host: Host, bytes: number, committed: number, image?: RangeImage) {
    this.host = host;
    this.bytes = bytes;
    this.image = image;
    // A range that is never more than its pages needs no second call to make them accessible.
    this.#committed = bytes < GUARD_RESERVATION && committed === bytes ? bytes : 0;
    this.address = host.reserve(bytes, this.#committed > 0 ? PROT.READ | PROT.WRITE : PROT.NONE);
    if (bytes === GUARD_RESERVATION) guarded++;
  }

  #release(): void {
    this.host.release(this.address, this.bytes);
    if (this.bytes === GUARD_RESERVATION) guarded--;
  }

  /** A range of `bytes` whose first `committed` are zeros, or what `image` says. Throws RangeError when there is no room. */
  static take(host: Host, bytes: number, committed: number, image?: RangeImage): Range {
    const pooled = (image?.pool ?? POOLS.get(`${bytes} ${committed}`))?.pop();
    if (pooled !== undefined) return pooled;
    const range = new Range(host, bytes, committed, image);
    try {
      range.commit(committed);
      image?.map(range.address);
    } catch (error) {
      range.retire();
      throw error;
    }
    return range;
  }

  get committed(): number {
    return this.#committed;
  }

  commit(bytes: number): void {
    if (bytes <= this.#committed) return;
    this.host.protect(this.address + this.#committed, bytes - this.#committed, PROT.READ | PROT.WRITE);
    this.#committed = bytes;
    this.#own = undefined;
  }

  /** All committed bytes, for the runtime's own use. */
  get own(): Uint8Array<ArrayBuffer> {
    return this.#own ??= new Uint8Array(this.host.view(this.address, this.#committed));
  }

  /** Has anybody a view? */
  get isViewed(): boolean {
    return this.#views > 0;
  }

  /** A view for programs; if it is `kept`, they cannot transfer it. */
  view(bytes: number, kept: boolean): ArrayBuffer {
    if (bytes === 0) return new ArrayBuffer(0);
    const { lent } = this.host;
    const buffer = lent.lend(this.address, bytes, () => {
      this.#views--;
      if (this.#retired && this.#views === 0) this.#release();
    });
    this.#views++;
    if (kept) lent.seal(buffer);
    return buffer;
  }

  /** Makes every committed byte what it was at first. */
  clear(): void {
    if (this.#committed === 0) return;
    if (this.image === undefined && this.#committed <= CLEAR_BY_WRITING) this.own.fill(0);
    else this.host.discard(this.address, this.#committed);
  }

  /** The memory no longer uses the range, which had `committed` bytes at first. */
  give(committed: number): void {
    if (held > 0 || this.#retired || this.#views > 0 || this.#committed !== committed) return this.retire();
    let pool: Range[];
    if (this.image !== undefined) pool = this.image.pool;
    else {
      const key = `${this.bytes} ${committed}`;
      const known = POOLS.get(key);
      pool = known ?? [];
      if (known === undefined) POOLS.set(key, pool);
    }
    if (pool.length >= POOL_SIZE) return this.retire();
    this.clear();
    pool.push(this);
  }

  /** Gives the range back as soon as nobody has a view. */
  retire(): void {
    if (this.#retired) return;
    if (held > 0) {
      later.push(this);
      return;
    }
    this.#retired = true;
    this.#own = undefined;
    if (this.#views === 0) this.#release();
    else if (this.#committed > 0) this.host.replace(this.address, this.#committed, PROT.READ | PROT.WRITE);
  }
}

let nowhere: number | undefined;

/** An address that no program can have anything at, nor within 8 GiB behind it: beyond what processors translate. */
const UNREACHABLE = 2 ** 52;

/** Where the code of a closed instance finds its memory: every access faults. */
export function nowhereAddress(host: Host): number {
  if (nowhere === undefined) {
    try {
      nowhere = host.reserve(GUARD_RESERVATION, PROT.NONE);
    } catch {
      nowhere = UNREACHABLE;
    }
  }
  return nowhere;
}
