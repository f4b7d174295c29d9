/**
 * The output of one thread, visible to the others: words in shared memory that grows. In: words. Out: their positions.
 * Growing beyond the bound is a RangeError, and so is a failure of the system to provide memory.
 */

/** Address space of an output per byte of bodies. */
const BYTES_PER_BYTE = 64;
const MIN_BYTES = 1 << 24;
const MAX_BYTES = 2 ** 31 - 2 ** 16;
const STEP_BYTES = 1 << 22;

export class Output {
  readonly buffer: SharedArrayBuffer;
  readonly words: Int32Array;
  #length = 0;

  /** Opens an output that another thread has made. */
  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.words = new Int32Array(buffer);
  }

  /** An output for a share of `bodyBytes`. */
  static make(bodyBytes: number): Output {
    const maxByteLength = Math.min(MAX_BYTES, MIN_BYTES + bodyBytes * BYTES_PER_BYTE);
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
