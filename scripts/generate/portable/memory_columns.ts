/** Columns in the memory of a WebAssembly module. In: an address. Out: a view. */

/** A column of the compiler. */
export type Column = Uint8Array | Uint16Array | Int32Array;

/** The column of `length` elements at `address`, of the type of `like`. */
export function columnAt(buffer: ArrayBuffer, address: number, like: Column, length: number): Column {
  if (like instanceof Uint8Array) return new Uint8Array(buffer, address, length);
  return like instanceof Uint16Array
    ? new Uint16Array(buffer, address, length)
    : new Int32Array(buffer, address, length);
}

/** The first difference between `found` and `expected`, of the same length; undefined if they are equal. */
export function firstDifference(name: string, found: Column, expected: Column): string | undefined {
  for (let i = 0; i < expected.length; i++) {
    if (found[i] !== expected[i]) return `${name}[${i}]: ${found[i]} for ${expected[i]}`;
  }
  return undefined;
}
