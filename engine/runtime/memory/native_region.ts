/**
 * A range of memory outside the JavaScript heap, with typed views that are created once. Offsets are byte offsets in
 * the range. 64-bit words are accessed as two 32-bit halves, because addresses are JavaScript numbers below 2^47.
 */
import type { Host } from "../../host/host.ts";

export class NativeRegion {
  readonly address: number;
  readonly size: number;
  readonly buffer: ArrayBuffer;
  readonly u8: Uint8Array<ArrayBuffer>;
  readonly i32: Int32Array<ArrayBuffer>;
  readonly u32: Uint32Array<ArrayBuffer>;
  readonly f32: Float32Array<ArrayBuffer>;
  readonly f64: Float64Array<ArrayBuffer>;
  readonly i64: BigInt64Array<ArrayBuffer>;

  constructor(host: Host, address: number, size: number) {
    this.address = address;
    this.size = size;
    this.buffer = host.view(address, size);
    this.u8 = new Uint8Array(this.buffer);
    this.i32 = new Int32Array(this.buffer);
    this.u32 = new Uint32Array(this.buffer);
    this.f32 = new Float32Array(this.buffer);
    this.f64 = new Float64Array(this.buffer);
    this.i64 = new BigInt64Array(this.buffer);
  }

  /** Reads a 64-bit word that contains an address or a length below 2^53. */
  word(offset: number): number {
    return this.u32[offset >> 2] + this.u32[(offset >> 2) + 1] * 0x1_0000_0000;
  }

  /** Writes a number below 2^53 as a 64-bit word. */
  setWord(offset: number, value: number): void {
    this.u32[offset >> 2] = value;
    this.u32[(offset >> 2) + 1] = value / 0x1_0000_0000;
  }
}

/** Up to this many bytes are copied word by word; creating views costs more. */
const SHORT_BYTES = 512;

/** Copies `bytes` bytes, a multiple of 8, between byte offsets of two views. */
export function copyWords(from: Uint32Array, fromByte: number, to: Uint32Array, toByte: number, bytes: number): void {
  const a = fromByte >> 2;
  const b = toByte >> 2;
  const count = bytes >> 2;
  if (bytes > SHORT_BYTES) {
    to.set(from.subarray(a, a + count), b);
    return;
  }
  for (let k = 0; k < count; k += 2) {
    to[b + k] = from[a + k];
    to[b + k + 1] = from[a + k + 1];
  }
}
