/**
 * Words of machine code, lowest byte first on all processors. A separate file: stored code needs nothing else of the
 * emission of functions.
 */

/** Writes a 32-bit word. */
export function putWord(out: Uint8Array, at: number, value: number): void {
  out[at] = value;
  out[at + 1] = value >> 8;
  out[at + 2] = value >> 16;
  out[at + 3] = value >> 24;
}
