/**
 * The memory of the host that one instantiation of a component may hold: objects behind its handles, the bytes in
 * them, and entries of its tables. In: estimates in bytes. Out: a trap above the limit. Invariant: bytes of an object
 * count as long as a handle leads to it.
 */
import { trap } from "../abi/traps.ts";

const PAGE_BYTES = 65_536;
/** The share of the memory limit that the host may hold for an instance, and its minimum in bytes. */
const SHARE = 1 / 16;
const MIN_BYTES = 4 << 20;

/** The limit for instances whose memories have at most `pages` pages of 64 KiB: 64 MiB for 1 GiB. */
export function hostBytesFor(pages: number): number {
  return Math.max(MIN_BYTES, pages * PAGE_BYTES * SHARE);
}

/** The bytes that are in use. */
export class HostQuota {
  readonly #most: number;
  #used = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** The number of bytes in use. */
  get used(): number {
    return this.#used;
  }

  /** Counts `bytes` more; false if they do not fit. */
  tryTake(bytes: number): boolean {
    if (this.#used + bytes > this.#most) return false;
    this.#used += bytes;
    return true;
  }

  /** Counts `bytes` more. Traps if they do not fit. */
  take(bytes: number): void {
    if (this.tryTake(bytes)) return;
    trap(`the component holds more than ${this.#most} bytes of the host: drop resources, or raise the memory limit`);
  }

  release(bytes: number): void {
    this.#used -= bytes;
  }

  /** The limit, with nothing in use. */
  fresh(): HostQuota {
    return new HostQuota(this.#most);
  }
}

/** The key of the shares of an object of the host, which count while a guest has a handle of it. */
export const SHARES: unique symbol = Symbol("shares");

/** An object of the host that holds bytes. */
export interface Holding {
  readonly [SHARES]: readonly HostShare[];
}

/** Bytes of the host that one or several objects hold together. */
export class HostShare {
  #bytes: number;
  #quota: HostQuota | undefined;
  /** The number of handles that lead to the bytes. */
  #holders = 0;

  constructor(bytes = 0) {
    this.#bytes = bytes;
  }

  /** The number of bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Sets the number of bytes. Traps if they do not fit into the quota. */
  set(bytes: number): void {
    const more = bytes - this.#bytes;
    if (more > 0) this.#quota?.take(more);
    else this.#quota?.release(-more);
    this.#bytes = bytes;
  }

  add(bytes: number): void {
    this.set(this.#bytes + bytes);
  }

  /** Adds bytes unless they do not fit. */
  tryAdd(bytes: number): boolean {
    if (this.#quota?.tryTake(bytes) === false) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Counts the bytes against `quota` for one handle more. */
  hold(quota: HostQuota): void {
    if (this.#quota !== quota) {
      quota.take(this.#bytes);
      this.#quota?.release(this.#bytes);
      this.#quota = quota;
      this.#holders = 0;
    }
    this.#holders++;
  }

  /** Ends the use by a handle that `hold` counted against `quota`. */
  leave(quota: HostQuota): void {
    if (this.#quota !== quota || --this.#holders > 0) return;
    quota.release(this.#bytes);
    this.#quota = undefined;
  }
}

/** The shares of an object that may have none. */
export function sharesOf(object: object): readonly HostShare[] {
  return (object as Partial<Holding>)[SHARES] ?? [];
}
