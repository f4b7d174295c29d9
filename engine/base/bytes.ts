/**
 * Primitive values of the binary format (specification, 5.2), read and written: bytes, LEB128 integers, floats as bits,
 * names. Reading never leaves [pos, end), and every failure is a MalformedError with the specification suite's message
 * and the absolute offset `base + pos`. 64-bit integers are two 32-bit halves in `lo` and `hi`, without BigInt.
 */
import { MalformedError } from "./errors.ts";
import { decodeUtf8, encodeUtf8 } from "./utf8.ts";

/** The specification suite's message for a section or a function body that ends early. */
export const UNEXPECTED_END = "unexpected end of section or function";

/** A cursor over bytes. `pos` is the index of the next byte; its offset in the whole module is `base + pos`. */
export class ByteReader {
  bytes: Uint8Array;
  pos: number;
  /** Index after the last readable byte. */
  end: number;
  /** Absolute offset of `bytes[0]`. */
  base: number;
  /** Halves of the last 64-bit integer or float; `lo` also has the bits of the last f32. Both signed. */
  lo = 0;
  hi = 0;

  constructor(bytes: Uint8Array, start = 0, end: number = bytes.length, base = 0) {
    this.bytes = bytes;
    this.pos = start;
    this.end = end;
    this.base = base;
  }

  /** Absolute offset of the next byte. */
  get offset(): number {
    return this.base + this.pos;
  }

  /** Bytes left. */
  get left(): number {
    return this.end - this.pos;
  }

  /** Throws; `pos` defaults to the current position. */
  fail(message: string, pos: number = this.pos): never {
    throw new MalformedError(message, { offset: this.base + pos });
  }

  /** One byte. */
  u8(): number {
    const pos = this.pos;
    if (pos >= this.end) this.fail(UNEXPECTED_END);
    this.pos = pos + 1;
    return this.bytes[pos];
  }

  /** An unsigned 32-bit LEB128 integer, as a number from 0 to 2^32 − 1. */
  u32(): number {
    const pos = this.pos;
    if (pos < this.end) {
      const byte = this.bytes[pos];
      if (byte < 0x80) {
        this.pos = pos + 1;
        return byte;
      }
    }
    return this.#u32Slow();
  }

  #u32Slow(): number {
    const bytes = this.bytes;
    const end = this.end;
    let pos = this.pos;
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      if (pos >= end) this.#crossing("u32");
      const byte = bytes[pos];
      if (shift === 28 && (byte & 0x70) !== 0) this.fail("integer too large", pos);
      value |= (byte & 0x7f) << shift;
      pos++;
      if (byte < 0x80) {
        this.pos = pos;
        return value >>> 0;
      }
    }
    this.fail("integer representation too long", pos - 1);
  }

  /**
   * Reports an integer at `pos` that crosses the end. If the bytes after the end show that the integer itself is
   * malformed, reports that, as the suite expects, because a wrong section size is often a consequence. Otherwise
   * reports that the input ends too early.
   */
  #crossing(kind: "u32" | "s32" | "s33" | "s64" | "u64"): never {
    const end = this.end;
    if (end < this.bytes.length) {
      this.end = this.bytes.length;
      try {
        this[kind]();
      } finally {
        this.end = end;
      }
    }
    this.fail(UNEXPECTED_END, end);
  }

  /** A signed 32-bit LEB128 integer. */
  s32(): number {
    const bytes = this.bytes;
    const end = this.end;
    let pos = this.pos;
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      if (pos >= end) this.#crossing("s32");
      const byte = bytes[pos];
      if (shift === 28) {
        const sign = byte & 0x78;
        if (sign !== 0 && sign !== 0x78) this.fail("integer too large", pos);
      }
      value |= (byte & 0x7f) << shift;
      pos++;
      if (byte < 0x80) {
        this.pos = pos;
        const unused = 25 - shift;
        return unused > 0 ? (value << unused) >> unused : value;
      }
    }
    this.fail("integer representation too long", pos - 1);
  }

  /** A signed 33-bit LEB128 integer, as a number. */
  s33(): number {
    const bytes = this.bytes;
    const end = this.end;
    let pos = this.pos;
    let value = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      if (pos >= end) this.#crossing("s33");
      const byte = bytes[pos];
      value |= (byte & 0x7f) << shift;
      pos++;
      if (byte < 0x80) {
        this.pos = pos;
        return (value << (25 - shift)) >> (25 - shift);
      }
    }
    if (pos >= end) this.#crossing("s33");
    const byte = bytes[pos];
    const sign = byte & 0x70;
    if (sign !== 0 && sign !== 0x70) this.fail("integer too large", pos);
    if (byte >= 0x80) this.fail("integer representation too long", pos);
    this.pos = pos + 1;
    return value + ((byte << 25) >> 25) * 0x10000000;
  }

  /** A signed 64-bit LEB128 integer into `lo` and `hi`. */
  s64(): void {
    const bytes = this.bytes;
    const end = this.end;
    let pos = this.pos;
    let lo = 0;
    let hi = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (pos >= end) this.#crossing("s64");
      const byte = bytes[pos];
      const bits = byte & 0x7f;
      if (shift === 63 && bits !== 0 && bits !== 0x7f) this.fail("integer too large", pos);
      if (shift < 28) lo |= bits << shift;
      else if (shift === 28) {
        lo |= bits << 28;
        hi = bits >> 4;
      } else hi |= bits << (shift - 32);
      pos++;
      if (byte < 0x80) {
        const used = shift + 7;
        if ((byte & 0x40) !== 0) {
          if (used < 32) {
            lo |= -1 << used;
            hi = -1;
          } else if (used < 64) hi |= -1 << (used - 32);
        }
        this.pos = pos;
        this.lo = lo;
        this.hi = hi;
        return;
      }
    }
    this.fail("integer representation too long", pos - 1);
  }

  /** An unsigned 64-bit LEB128 integer into `lo` and `hi` (as signed halves). */
  u64(): void {
    const bytes = this.bytes;
    const end = this.end;
    let pos = this.pos;
    let lo = 0;
    let hi = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (pos >= end) this.#crossing("u64");
      const byte = bytes[pos];
      const bits = byte & 0x7f;
      if (shift === 63 && bits > 1) this.fail("integer too large", pos);
      if (shift < 28) lo |= bits << shift;
      else if (shift === 28) {
        lo |= bits << 28;
        hi = bits >> 4;
      } else hi |= bits << (shift - 32);
      pos++;
      if (byte < 0x80) {
        this.pos = pos;
        this.lo = lo;
        this.hi = hi;
        return;
      }
    }
    this.fail("integer representation too long", pos - 1);
  }

  /** An unsigned 64-bit LEB128 integer as a bigint, as in limits. */
  u64BigInt(): bigint {
    this.u64();
    return (BigInt(this.hi >>> 0) << 32n) | BigInt(this.lo >>> 0);
  }

  /** Four bytes, little endian, into `lo`. */
  bits32(): void {
    const pos = this.pos;
    const bytes = this.bytes;
    if (this.end - pos < 4) this.fail(UNEXPECTED_END, this.end);
    this.lo = bytes[pos] | (bytes[pos + 1] << 8) | (bytes[pos + 2] << 16) | (bytes[pos + 3] << 24);
    this.pos = pos + 4;
  }

  /** Eight bytes, little endian, into `lo` and `hi`. */
  bits64(): void {
    const pos = this.pos;
    const bytes = this.bytes;
    if (this.end - pos < 8) this.fail(UNEXPECTED_END, this.end);
    this.lo = bytes[pos] | (bytes[pos + 1] << 8) | (bytes[pos + 2] << 16) | (bytes[pos + 3] << 24);
    this.hi = bytes[pos + 4] | (bytes[pos + 5] << 8) | (bytes[pos + 6] << 16) | (bytes[pos + 7] << 24);
    this.pos = pos + 8;
  }

  /** A view of the next `length` bytes. */
  take(length: number): Uint8Array {
    const pos = this.pos;
    if (length > this.end - pos) this.fail(UNEXPECTED_END);
    this.pos = pos + length;
    return this.bytes.subarray(pos, pos + length);
  }

  /** A name: its length and strict UTF-8. */
  name(): string {
    const length = this.u32();
    const pos = this.pos;
    if (length > this.end - pos) this.fail(`${UNEXPECTED_END}: length out of bounds`);
    const text = decodeUtf8(this.bytes, pos, pos + length);
    if (text === undefined) this.fail("malformed UTF-8 encoding");
    this.pos = pos + length;
    return text;
  }

  /**
   * The length of a vector whose entries take at least a byte each: a count that exceeds the bytes left fails here,
   * before anything is allocated.
   */
  count(): number {
    const pos = this.pos;
    const count = this.u32();
    if (count > this.end - this.pos) {
      this.fail(`${UNEXPECTED_END}: length out of bounds: count ${count} with ${this.left} bytes left`, pos);
    }
    return count;
  }
}

/** A growing byte buffer. LEB128 integers are written in their shortest form, so output is deterministic. */
export class ByteWriter {
  /** The buffer; only the first `length` bytes are written. */
  bytes: Uint8Array<ArrayBuffer>;
  length = 0;

  constructor(capacity = 1024) {
    this.bytes = new Uint8Array(capacity);
  }

  /** Makes room for `count` more bytes. */
  reserve(count: number): void {
    const need = this.length + count;
    if (need <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(need, this.bytes.length * 2));
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
  }

  u8(byte: number): void {
    if (this.length === this.bytes.length) this.reserve(1);
    this.bytes[this.length++] = byte;
  }

  /** Unsigned LEB128 of an integer from 0 to 2^32 − 1. */
  u32(value: number): void {
    this.reserve(5);
    let rest = value >>> 0;
    while (rest >= 0x80) {
      this.bytes[this.length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.bytes[this.length++] = rest;
  }

  /** Signed LEB128 of a 32-bit integer. */
  s32(value: number): void {
    this.reserve(5);
    let rest = value | 0;
    while (rest > 0x3f || rest < -0x40) {
      this.bytes[this.length++] = (rest & 0x7f) | 0x80;
      rest >>= 7;
    }
    this.bytes[this.length++] = rest & 0x7f;
  }

  /** Signed LEB128 of an integer of up to 33 bits. */
  s33(value: number): void {
    this.s64(value | 0, Math.floor(value / 0x100000000));
  }

  /** Signed LEB128 of the 64-bit integer with these halves. */
  s64(lo: number, hi: number): void {
    this.reserve(10);
    let low = lo | 0;
    let high = hi | 0;
    while (!(high === low >> 31 && low <= 0x3f && low >= -0x40)) {
      this.bytes[this.length++] = (low & 0x7f) | 0x80;
      low = (low >>> 7) | (high << 25);
      high >>= 7;
    }
    this.bytes[this.length++] = low & 0x7f;
  }

  /** Unsigned LEB128 of the 64-bit integer with these halves. */
  u64(lo: number, hi: number): void {
    this.reserve(10);
    let low = lo | 0;
    let high = hi >>> 0;
    while (high !== 0 || low >>> 0 >= 0x80) {
      this.bytes[this.length++] = (low & 0x7f) | 0x80;
      low = (low >>> 7) | (high << 25);
      high >>>= 7;
    }
    this.bytes[this.length++] = low & 0x7f;
  }

  /** Unsigned LEB128 of a bigint from 0 to 2^64 − 1. */
  u64BigInt(value: bigint): void {
    this.u64(Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
  }

  /** Four bytes, little endian. */
  bits32(lo: number): void {
    this.reserve(4);
    const bytes = this.bytes;
    const at = this.length;
    bytes[at] = lo;
    bytes[at + 1] = lo >> 8;
    bytes[at + 2] = lo >> 16;
    bytes[at + 3] = lo >> 24;
    this.length = at + 4;
  }

  /** Eight bytes, little endian. */
  bits64(lo: number, hi: number): void {
    this.bits32(lo);
    this.bits32(hi);
  }

  /** The bytes without a length. */
  raw(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** A vector of bytes: length, then the bytes. */
  byteVector(bytes: Uint8Array): void {
    this.u32(bytes.length);
    this.raw(bytes);
  }

  /** A name: length and UTF-8. */
  name(text: string): void {
    this.byteVector(encodeUtf8(text));
  }

  /** Begins a run that is preceded by its byte length; pass the result to {@linkcode endSized}. */
  beginSized(): number {
    return this.length;
  }

  /** Ends the run that began at `mark`: inserts its length in the shortest form before it. */
  endSized(mark: number): void {
    const size = this.length - mark;
    const sizeBytes = size < 0x80 ? 1 : size < 0x4000 ? 2 : size < 0x200000 ? 3 : size < 0x10000000 ? 4 : 5;
    this.reserve(sizeBytes);
    this.bytes.copyWithin(mark + sizeBytes, mark, this.length);
    this.length = mark;
    this.u32(size);
    this.length = mark + sizeBytes + size;
  }

  /** A copy of the written bytes. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.bytes.slice(0, this.length);
  }
}
