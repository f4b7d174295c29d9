/**
 * Writes binary modules for the fuzzer (specification, chapter 5), independently of the engine's own encoder, so that
 * an encoder fault cannot hide itself. In: values. Out: bytes.
 */

const encoder = new TextEncoder();
const float = new DataView(new ArrayBuffer(8));

/**
 * A growing byte sequence with the encodings of the binary format. It is an array: most are short, and the memory of a
 * typed array costs more than its use.
 */
export class Bytes {
  readonly #bytes: number[] = [];

  get length(): number {
    return this.#bytes.length;
  }

  /** Drops the bytes from `length` on. */
  set length(length: number) {
    this.#bytes.length = length;
  }

  byte(value: number): this {
    this.#bytes.push(value & 255);
    return this;
  }

  bytes(values: ArrayLike<number>): this {
    for (let i = 0; i < values.length; i++) this.#bytes.push(values[i]);
    return this;
  }

  u32(value: number): this {
    let n = value >>> 0;
    while (n > 127) {
      this.byte((n & 127) | 128);
      n >>>= 7;
    }
    return this.byte(n);
  }

  /** An unsigned integer below 2⁵³, or a bigint below 2⁶⁴. */
  u64(value: number | bigint): this {
    let n = BigInt(value);
    while (n > 127n) {
      this.byte(Number(n & 127n) | 128);
      n >>= 7n;
    }
    return this.byte(Number(n));
  }

  s32(value: number): this {
    let n = value | 0;
    for (;;) {
      const low = n & 127;
      n >>= 7;
      if ((n === 0 && low < 64) || (n === -1 && low >= 64)) return this.byte(low);
      this.byte(low | 128);
    }
  }

  s64(value: bigint): this {
    let n = value;
    for (;;) {
      const low = Number(n & 127n);
      n >>= 7n;
      if ((n === 0n && low < 64) || (n === -1n && low >= 64)) return this.byte(low);
      this.byte(low | 128);
    }
  }

  f32(value: number): this {
    float.setFloat32(0, value, true);
    return this.#float(4);
  }

  f64(value: number): this {
    float.setFloat64(0, value, true);
    return this.#float(8);
  }

  #float(size: number): this {
    for (let i = 0; i < size; i++) this.#bytes.push(float.getUint8(i));
    return this;
  }

  name(text: string): this {
    const bytes = encoder.encode(text);
    return this.u32(bytes.length).bytes(bytes);
  }

  vector(items: readonly Bytes[]): this {
    this.u32(items.length);
    for (const item of items) this.bytes(item.#bytes);
    return this;
  }

  section(id: number, body: Bytes): this {
    return this.byte(id).u32(body.length).bytes(body.#bytes);
  }

  /** A copy of the bytes from `start` on. */
  taken(start = 0): Uint8Array {
    return Uint8Array.from(start === 0 ? this.#bytes : this.#bytes.slice(start));
  }
}
