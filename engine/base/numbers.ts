/**
 * Numbers of the compiler's rooms. There a `number` is an integer of 32 bits, signed unless it is a bit pattern; `f64`
 * is a number with a fraction or more bits. In: values of one kind. Out: those of another. The rooms compile to
 * WebAssembly, too (scripts/generate/portable/), where these functions are single instructions.
 */

/** A number that may have a fraction or more than 32 bits. */
export type f64 = number;

const BITS = new DataView(new ArrayBuffer(8));

/** The unsigned value of 32 bits. */
export function unsigned(bits: number): f64 {
  return bits >>> 0;
}

/**
 * The index from 0 to 2^32 − 1 with the bits of `word`. The compiled forms read valid bodies only, whose indices are
 * below 2^31, and keep the word.
 */
export function wideIndex(word: number): number {
  return word >>> 0;
}

/** Whether `x` is below `y`, both unsigned. */
export function isBelow(x: number, y: number): boolean {
  return (x >>> 0) < (y >>> 0);
}

/** The low 32 bits of whole number `x`, of magnitude below 2^63; a fraction is dropped. */
export function lowWord(x: f64): number {
  return x | 0;
}

/** Bits 32 to 63 of whole number `x`, of magnitude below 2^63. */
export function highWord(x: f64): number {
  return Math.floor(x / 4294967296) | 0;
}

/** The f32 with these bits. A NaN's payload may not survive. */
export function f32OfBits(bits: number): f64 {
  BITS.setInt32(0, bits);
  return BITS.getFloat32(0);
}

/** The bits of `x`, rounded to f32. */
export function bitsOfF32(x: f64): number {
  BITS.setFloat32(0, x);
  return BITS.getInt32(0);
}

/** The f64 with these halves. A NaN's payload may not survive. */
export function f64OfBits(lo: number, hi: number): f64 {
  BITS.setInt32(0, hi);
  BITS.setInt32(4, lo);
  return BITS.getFloat64(0);
}

/** The low half of the bits of `x`. */
export function lowBits(x: f64): number {
  BITS.setFloat64(0, x);
  return BITS.getInt32(4);
}

/** The high half of the bits of `x`. */
export function highBits(x: f64): number {
  BITS.setFloat64(0, x);
  return BITS.getInt32(0);
}
