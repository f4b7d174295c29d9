/**
 * The pages of a shared memory (threads proposal): a growable SharedArrayBuffer. The JavaScript engine thus counts the
 * references of all workers, including terminated ones and messages in transit, and `buffer` is of the class that
 * `Atomics` and libraries expect. Compiled code accesses the same bytes by address: the buffer reserves its maximum
 * length, so the base never moves and accesses beyond the committed pages fault as at guard pages.
 *
 * The current length is a word of a second SharedArrayBuffer that compiled code of all threads reads. Growing is
 * lock-free, so that a worker terminated while growing blocks no other: claim pages (CLAIMED), commit them, publish the
 * length (LENGTH, never decreasing). A grower that fails to commit returns its claim, unless another thread has claimed
 * more in the meantime, which then commits for both.
 *
 * Waiting and waking are those of `Atomics`: on 32-bit or 64-bit values, with exact wake counts, interrupted by the
 * termination of a worker. JavaScript and compiled code wake each other.
 */
import type { Host } from "../../host/host.ts";

/** Indices of 64-bit words in the control buffer: the committed length in bytes, and the claimed length in bytes. */
const LENGTH = 0;
const CLAIMED = 1;
const CONTROL_BYTES = 16;

/**
 * A token by which another realm of this process can use a shared memory: plain data for `postMessage`. Only `waft` is
 * meaningful to programs.
 */
export interface SharedMemoryToken {
  /** The kind of token. */
  readonly waft: "memory";
  /**
   * The type and limits of the memory as JSON.
   *
   * @internal
   */
  readonly description: string;
  /**
   * The contents.
   *
   * @internal
   */
  readonly pages: SharedArrayBuffer;
  /**
   * The length, for the engine.
   *
   * @internal
   */
  readonly control: SharedArrayBuffer;
  /**
   * The proof that waft made the token in this process.
   *
   * @internal
   */
  readonly seal: string;
}

/** Results of a wait, as the instructions return them. */
export const WAIT = { WOKEN: 0, NOT_EQUAL: 1, TIMED_OUT: 2 } as const;

const OUTCOMES = { "ok": WAIT.WOKEN, "not-equal": WAIT.NOT_EQUAL, "timed-out": WAIT.TIMED_OUT } as const;

export class SharedPages {
  readonly buffer: SharedArrayBuffer;
  readonly control: SharedArrayBuffer;
  /** The address of byte 0. */
  readonly address: number;
  /** The address of the word with the length. */
  readonly lengthAddress: number;
  readonly #words: BigInt64Array<SharedArrayBuffer>;

  private constructor(host: Host, buffer: SharedArrayBuffer, control: SharedArrayBuffer) {
    this.buffer = buffer;
    this.control = control;
    this.#words = new BigInt64Array(control);
    this.address = host.addressOf(new Uint8Array(buffer));
    this.lengthAddress = host.addressOf(new Uint8Array(control));
  }

  /**
   * Allocates `bytes` zero bytes that can grow to `reservation` bytes. Throws RangeError if there is no address space
   * or memory for them.
   */
  static make(host: Host, bytes: number, reservation: number): SharedPages {
    const buffer = new SharedArrayBuffer(bytes, { maxByteLength: reservation });
    if (!buffer.growable) throw new RangeError("Shared memories require growable SharedArrayBuffers");
    const control = new SharedArrayBuffer(CONTROL_BYTES);
    new BigInt64Array(control).fill(BigInt(bytes));
    return new SharedPages(host, buffer, control);
  }

  /** The same pages in another realm. */
  static of(host: Host, buffer: SharedArrayBuffer, control: SharedArrayBuffer): SharedPages {
    return new SharedPages(host, buffer, control);
  }

  get byteLength(): number {
    return Number(Atomics.load(this.#words, LENGTH));
  }

  /**
   * Grows by `delta` bytes. Returns the previous length in bytes, or −1 if it would exceed `most` or the pages cannot
   * be committed.
   */
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
      // Refused, or another thread has grown the buffer further.
    }
    return this.buffer.byteLength >= bytes;
  }

  /** Waits up to `milliseconds` while the 32-bit value at byte `at` equals `expected`. Returns one of WAIT. */
  wait32(at: number, expected: number, milliseconds: number): number {
    return OUTCOMES[Atomics.wait(new Int32Array(this.buffer, at, 1), 0, expected, milliseconds)];
  }

  /** The same for a 64-bit value. */
  wait64(at: number, expected: bigint, milliseconds: number): number {
    return OUTCOMES[Atomics.wait(new BigInt64Array(this.buffer, at, 1), 0, expected, milliseconds)];
  }

  /** Wakes up to `count` waiters at byte `at`. Returns the number of waiters woken. */
  notify(at: number, count: number): number {
    return Atomics.notify(new Int32Array(this.buffer, at, 1), 0, count);
  }
}
