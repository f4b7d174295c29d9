/**
 * The kernel's linear memory for the TypeScript form. In the form that AssemblyScript compiles, these functions are
 * loads and stores (scripts/generate/build_baseline.ts provides them); all other files of this folder are the same text
 * in both.
 *
 * The kernel is written in the subset that both compilers share: `i32` numbers, functions, module variables, no
 * objects. Sums of addresses stay far below 2^31; arithmetic that may wrap is followed by `| 0`.
 */

/** A 32-bit integer. */
export type i32 = number;

let bytes = new Uint8Array(0);
let words = new Int32Array(0);

/** The bytes of the memory, at least `size`; existing content is kept. */
export function kernelMemory(size: number): Uint8Array<ArrayBuffer> {
  if (size > bytes.length) {
    const next = new Uint8Array((size + 0xffff) & ~0xffff);
    next.set(bytes);
    bytes = next;
    words = new Int32Array(next.buffer);
  }
  return bytes;
}

/** The byte at `address`, unsigned. */
export function load8(address: i32): i32 {
  return bytes[address];
}

export function store8(address: i32, value: i32): void {
  bytes[address] = value;
}

/** The word at `address`, a multiple of 4. */
export function load32(address: i32): i32 {
  return words[address >> 2];
}

export function store32(address: i32, value: i32): void {
  words[address >> 2] = value;
}

/** The word at any address. */
export function loadAny32(address: i32): i32 {
  return bytes[address] | (bytes[address + 1] << 8) | (bytes[address + 2] << 16) | (bytes[address + 3] << 24);
}

export function storeAny32(address: i32, value: i32): void {
  bytes[address] = value;
  bytes[address + 1] = value >> 8;
  bytes[address + 2] = value >> 16;
  bytes[address + 3] = value >> 24;
}

/** The number of trailing zeros, 32 for 0. */
export function trailingZeros(a: i32): i32 {
  return a === 0 ? 32 : 31 - Math.clz32(a & -a);
}
