/**
 * What a thread has compiled, where the others see it: words in shared memory that grows. In: words. Out: where they
 * stand. Growing beyond the bound is a RangeError, and so is what the system has no memory for.
 */

/** How much address space an output may take for so many bytes of bodies. */
const BYTES_PER_BYTE = 64;
const LEAST_BYTES = 1 << 24;
const MOST_BYTES = 2 ** 31 - 2 ** 16;
const STEP_BYTES = 1 << 22;

export class Output {
  readonly buffer: SharedArrayBuffer;
  readonly words: Int32Array;
  #length = 0;

  /** Sees an output that another thread has made. */
  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.words = new Int32Array(buffer);
  }

  /** An output for a share of `bodyBytes`. */
  static make(bodyBytes: number): Output {
    const maxByteLength = Math.min(MOST_BYTES, LEAST_BYTES + bodyBytes * BYTES_PER_BYTE);
    return new Output(new SharedArrayBuffer(STEP_BYTES, { maxByteLength }));
  }

  /** Index of the first of `count` new words. */
  take(count: number): number {
    const at = this.#length;
    const bytes = (at + count) * 4;
    const { buffer } = this;
    if (bytes > buffer.byteLength) {
      buffer.grow(Math.max(bytes, Math.min(buffer.maxByteLength, buffer.byteLength + STEP_BYTES)));
    }
    this.#length = at + count;
    return at;
  }
}
