/**
 * Values of WebAssembly and plain JavaScript in messages. In: numbers, bigints of 64 bits, strings, bytes, booleans,
 * null and undefined. Out: bytes, and the same values again. Invariant: reading never goes beyond the payload, whatever
 * its bytes are, and other values are refused before anything is sent.
 */
import { inWords } from "../base/arguments.ts";
import { ProtocolError } from "./protocol.ts";

const TAG = {
  UNDEFINED: 0,
  NULL: 1,
  FALSE: 2,
  TRUE: 3,
  I32: 4,
  F64: 5,
  I64: 6,
  U64: 7,
  TEXT: 8,
  BYTES: 9,
} as const;

/** The maximum number of values in one message: WebAssembly's limit for parameters and results. */
const MAX_VALUES = 1000;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** Writes numbers, texts and values to a buffer that grows and is used again. */
export class PayloadWriter {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(256);
  #view: DataView<ArrayBuffer> = new DataView(this.#bytes.buffer);
  #at = 0;

  /** Begins a payload after `start` bytes, which the caller fills. */
  begin(start: number): this {
    this.#at = start;
    return this;
  }

  /** The bytes so far. They change with the next payload. */
  get written(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#at);
  }

  /** A view of the buffer. */
  get view(): DataView<ArrayBuffer> {
    return this.#view;
  }

  u8(value: number): this {
    this.#reserve(1);
    this.#bytes[this.#at++] = value;
    return this;
  }

  u32(value: number): this {
    this.#reserve(4);
    this.#view.setUint32(this.#at, value, true);
    this.#at += 4;
    return this;
  }

  f64(value: number): this {
    this.#reserve(8);
    this.#view.setFloat64(this.#at, value, true);
    this.#at += 8;
    return this;
  }

  i64(value: bigint): this {
    this.#reserve(8);
    this.#view.setBigInt64(this.#at, value, true);
    this.#at += 8;
    return this;
  }

  /** Bytes after their number. */
  bytes(value: Uint8Array): this {
    return this.u32(value.length).raw(value);
  }

  /** Bytes without their number. */
  raw(value: Uint8Array): this {
    this.#reserve(value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
    return this;
  }

  /** Text as UTF-8 after its number of bytes. */
  text(value: string): this {
    return this.bytes(ENCODER.encode(value));
  }

  /** Values after their number. Throws TypeError, naming `what`, for a value that cannot leave its process. */
  values(values: readonly unknown[], what: string): this {
    if (values.length > MAX_VALUES) throw new TypeError(`${what} has more than ${MAX_VALUES} values`);
    this.u32(values.length);
    for (const value of values) this.value(value, what);
    return this;
  }

  /** One value. Throws as `values`. */
  value(value: unknown, what: string): this {
    this.#write(value, what);
    return this;
  }

  #write(value: unknown, what: string): void {
    switch (typeof value) {
      case "number":
        if ((value | 0) === value && !Object.is(value, -0)) this.u8(TAG.I32).u32(value);
        else this.u8(TAG.F64).f64(value);
        return;
      case "bigint":
        if (BigInt.asIntN(64, value) === value) this.u8(TAG.I64).i64(value);
        else if (BigInt.asUintN(64, value) === value) this.u8(TAG.U64).i64(value);
        else throw new RangeError(`${what} has a bigint of more than 64 bits`);
        return;
      case "boolean":
        this.u8(value ? TAG.TRUE : TAG.FALSE);
        return;
      case "undefined":
        this.u8(TAG.UNDEFINED);
        return;
      case "string":
        this.u8(TAG.TEXT).text(value);
        return;
      default:
        if (value === null) this.u8(TAG.NULL);
        else if (value instanceof Uint8Array) this.u8(TAG.BYTES).bytes(value);
        else throw new TypeError(`${what} has ${inWords(value)}, which cannot leave its process`);
    }
  }

  #reserve(more: number): void {
    const least = this.#at + more;
    if (least <= this.#bytes.length) return;
    const bytes = new Uint8Array(Math.max(least, this.#bytes.length * 2));
    bytes.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }
}

/** Reads a payload. Each method throws ProtocolError where the payload ends too early or has no such value. */
export class PayloadReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  u8(): number {
    return this.#view.getUint8(this.#advance(1));
  }

  u32(): number {
    return this.#view.getUint32(this.#advance(4), true);
  }

  f64(): number {
    return this.#view.getFloat64(this.#advance(8), true);
  }

  i64(): bigint {
    return this.#view.getBigInt64(this.#advance(8), true);
  }

  /** The bytes that have not been read. */
  get left(): number {
    return this.#bytes.length - this.#at;
  }

  /** A copy of the bytes after their number. */
  bytes(): Uint8Array<ArrayBuffer> {
    const length = this.u32();
    const at = this.#advance(length);
    return this.#bytes.slice(at, at + length) as Uint8Array<ArrayBuffer>;
  }

  text(): string {
    const length = this.u32();
    const at = this.#advance(length);
    return DECODER.decode(this.#bytes.subarray(at, at + length));
  }

  values(): unknown[] {
    const count = this.u32();
    if (count > MAX_VALUES) throw new ProtocolError(`a list of ${count} values`);
    const values: unknown[] = [];
    for (let k = 0; k < count; k++) values.push(this.value());
    return values;
  }

  /** The rest of the payload, not a copy. */
  rest(): Uint8Array {
    return this.#bytes.subarray(this.#advance(this.#bytes.length - this.#at));
  }

  /** Throws unless the payload has been read to its end. */
  end(): void {
    if (this.#at !== this.#bytes.length) throw new ProtocolError(`${this.#bytes.length - this.#at} bytes too many`);
  }

  /** One value. */
  value(): unknown {
    const tag = this.u8();
    switch (tag) {
      case TAG.UNDEFINED:
        return undefined;
      case TAG.NULL:
        return null;
      case TAG.FALSE:
        return false;
      case TAG.TRUE:
        return true;
      case TAG.I32:
        return this.u32() | 0;
      case TAG.F64:
        return this.f64();
      case TAG.I64:
        return this.i64();
      case TAG.U64:
        return BigInt.asUintN(64, this.i64());
      case TAG.TEXT:
        return this.text();
      case TAG.BYTES:
        return this.bytes();
      default:
        throw new ProtocolError(`a value with the unknown tag ${tag}`);
    }
  }

  #advance(bytes: number): number {
    const at = this.#at;
    if (bytes > this.#bytes.length - at) throw new ProtocolError("a payload that ends too early");
    this.#at = at + bytes;
    return at;
  }
}

/** Several results as a call returns them: none is undefined, one is itself. */
export function resultOf(values: readonly unknown[]): unknown {
  return values.length <= 1 ? values[0] : values;
}

/** The values of a result: the inverse of `resultOf`. */
export function valuesOf(result: unknown): readonly unknown[] {
  if (result === undefined) return [];
  return Array.isArray(result) ? result : [result];
}

/** JSON of a payload. Throws ProtocolError for other bytes. */
export function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(DECODER.decode(bytes));
  } catch {
    throw new ProtocolError("a payload that is not JSON");
  }
}
