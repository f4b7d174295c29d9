/**
 * Writes binary modules for the fuzzer (specification, chapter 5), independently of the engine's own encoder, so that
 * an encoder fault cannot hide itself. In: values. Out: bytes.
 */

/** A growing byte sequence with the encodings of the binary format. */
export class Bytes {
  #bytes = new Uint8Array(256);
  length = 0;

  byte(value: number): this {
    if (this.length === this.#bytes.length) {
      const next = new Uint8Array(this.length * 2);
      next.set(this.#bytes);
      this.#bytes = next;
    }
    this.#bytes[this.length++] = value;
    return this;
  }

  bytes(values: ArrayLike<number>): this {
    for (let i = 0; i < values.length; i++) this.byte(values[i]);
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
    return this.bytes(new Uint8Array(new Float32Array([value]).buffer));
  }

  f64(value: number): this {
    return this.bytes(new Uint8Array(new Float64Array([value]).buffer));
  }

  name(text: string): this {
    const bytes = new TextEncoder().encode(text);
    return this.u32(bytes.length).bytes(bytes);
  }

  vector(items: readonly Bytes[]): this {
    this.u32(items.length);
    for (const item of items) this.bytes(item.taken());
    return this;
  }

  section(id: number, body: Bytes): this {
    return this.byte(id).u32(body.length).bytes(body.taken());
  }

  /** A copy of the bytes from `start` on. */
  taken(start = 0): Uint8Array {
    return this.#bytes.slice(start, this.length);
  }
}
