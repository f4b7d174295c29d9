/**
 * Growth of typed-array columns. In: a full column and the required length. Out: a copy of at least that length with
 * the same element type; elements beyond the old contents are zero.
 */

type Column = Int8Array | Uint8Array | Uint16Array | Int32Array | Uint32Array | Float64Array;

/**
 * A copy of `column` with room for `need` elements, and at least twice as many as before, so that appending takes
 * linear time.
 */
export function doubled<C extends Column>(column: C, need: number): C {
  return grown(column, Math.max(need, column.length * 2));
}

/** A copy of `column` with room for `length` elements. Throws RangeError if they are fewer than `column` has. */
export function grown<C extends Column>(column: C, length: number): C {
  const copy = new (column.constructor as new (length: number) => C)(length);
  copy.set(column);
  return copy;
}
