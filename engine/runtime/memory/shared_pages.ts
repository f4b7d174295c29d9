/**
 * The pages of a shared memory (threads proposal): a growable SharedArrayBuffer, so that it is the JavaScript runtime that counts who uses
 * them, in whichever Worker, on the way there or after one was terminated, and that `buffer` is what `Atomics` and other libraries expect.
 * Compiled code uses the same bytes by their address: the buffer reserves its maximum and commits what it has grown to, so the base never
 * moves and what lies behind the end faults like a guard page.
 *
 * How long the memory is stands in a word of a second SharedArrayBuffer that compiled code of all threads reads. Growing is lock-free, so
 * that a Worker that ends in the middle of it holds up nobody: claim pages (CLAIMED), commit them, publish (LENGTH, never less than before).
 * A grower that fails to commit gives its claim back unless another has claimed behind it, which then commits for both.
 *
 * Waiting and waking are those of `Atomics`, on lists of the runtime: by value of 32 or 64 bits, exact in number, and ended by the
 * termination of a Worker; JavaScript and compiled code wake each other.
 */
import type { Host } from "../../host/host.ts";

/** Indices in the control buffer's 64-bit words: bytes that are there, bytes that are there or being made. */
const LENGTH = 0;
const CLAIMED = 1;
const CONTROL_BYTES = 16;

/** A shared memory on its way to another Worker: plain data for `postMessage`. */
export interface SharedMemoryToken {
  /** What it is a token of. */
  readonly waft: "memory";
  /** Type of its addresses. */
  readonly address: "i32" | "i64";
  /** The least of its type, in pages. */
  readonly min: bigint;
  /** The most of its type, in pages. */
  readonly max: bigint;
  /** The most pages that there can be, by the limits of its maker. */
  readonly maxPages: number;
  /** Is there address space behind it, for code without checks? */
  readonly guarded: boolean;
  /** The bytes. */
  readonly pages: SharedArrayBuffer;
  /** How many there are, for the engine. */
  readonly control: SharedArrayBuffer;
}

/** What a wait came to, as the instructions return it. */
export const WAIT = { WOKEN: 0, NOT_EQUAL: 1, TIMED_OUT: 2 } as const;

const OUTCOMES = { "ok": WAIT.WOKEN, "not-equal": WAIT.NOT_EQUAL, "timed-out": WAIT.TIMED_OUT } as const;

export class SharedPages {
  readonly buffer: SharedArrayBuffer;
  readonly control: SharedArrayBuffer;
  /** Address of byte 0. */
  readonly address: number;
  /** Address of the word with the length. */
  readonly lengthAddress: number;
  readonly #words: BigInt64Array<SharedArrayBuffer>;

  private constructor(host: Host, buffer: SharedArrayBuffer, control: SharedArrayBuffer) {
    this.buffer = buffer;
    this.control = control;
    this.#words = new BigInt64Array(control);
    this.address = host.addressOf(new Uint8Array(buffer));
    this.lengthAddress = host.addressOf(new Uint8Array(control));
  }

  /** `bytes` zero bytes that can become `reservation`. Throws RangeError when there is no room. */
  static make(host: Host, bytes: number, reservation: number): SharedPages {
    const buffer = new SharedArrayBuffer(bytes, { maxByteLength: reservation });
    if (!buffer.growable) throw new RangeError("Shared memories need SharedArrayBuffers that can grow");
    const control = new SharedArrayBuffer(CONTROL_BYTES);
    new BigInt64Array(control).fill(BigInt(bytes));
    return new SharedPages(host, buffer, control);
  }

  /** The same pages in another realm. */
  static of(host: Host, buffer: SharedArrayBuffer, control: SharedArrayBuffer): SharedPages {
    return new SharedPages(host, buffer, control);
  }

  /** Are there as many pages as the control word says? */
  static fits(buffer: SharedArrayBuffer, control: SharedArrayBuffer): boolean {
    if (control.byteLength !== CONTROL_BYTES) return false;
    const length = Atomics.load(new BigInt64Array(control), LENGTH);
    return length >= 0n && length <= BigInt(buffer.byteLength);
  }

  get byteLength(): number {
    return Number(Atomics.load(this.#words, LENGTH));
  }

  /** Adds `delta` bytes: the length before, or −1 when it would be more than `most` or there is no memory. */
  grow(delta: number, most: number): number {
    const words = this.#words;
    for (;;) {
      const old = Atomics.load(words, CLAIMED);
      const next = old + BigInt(delta);
      if (next > BigInt(most)) return -1;
      if (delta === 0) return this.byteLength;
      if (Atomics.compareExchange(words, CLAIMED, old, next) !== old) continue;
      if (!this.#commit(Number(next))) {
        Atomics.compareExchange(words, CLAIMED, next, old);
        return -1;
      }
      for (let length = Atomics.load(words, LENGTH); length < next;) {
        const seen = Atomics.compareExchange(words, LENGTH, length, next);
        if (seen === length) break;
        length = seen;
      }
      return Number(old);
    }
  }

  #commit(bytes: number): boolean {
    try {
      if (this.buffer.byteLength < bytes) this.buffer.grow(bytes);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      // Refused, or another thread has grown it further meanwhile.
    }
    return this.buffer.byteLength >= bytes;
  }

  /** Waits for at most `milliseconds` while the 32 bits at `at` are `expected`. */
  wait32(at: number, expected: number, milliseconds: number): number {
    return OUTCOMES[Atomics.wait(new Int32Array(this.buffer, at, 1), 0, expected, milliseconds)];
  }

  wait64(at: number, expected: bigint, milliseconds: number): number {
    return OUTCOMES[Atomics.wait(new BigInt64Array(this.buffer, at, 1), 0, expected, milliseconds)];
  }

  /** Wakes at most `count` that wait at `at`; how many there were. */
  notify(at: number, count: number): number {
    return Atomics.notify(new Int32Array(this.buffer, at, 1), 0, count);
  }
}
