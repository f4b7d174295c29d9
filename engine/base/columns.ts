/**
 * Growth of the typed-array columns in which the engine keeps its tables. In: a full column and the length it needs. Out: a copy
 * of that length with the same element type; elements beyond the old contents are zero.
 */

type Column = Uint8Array | Uint16Array | Int32Array | Float64Array;

/** A copy of `column` with room for `need` elements, and at least twice as many as before: appending stays linear. */
export function doubled<C extends Column>(column: C, need: number): C {
  return grown(column, Math.max(need, column.length * 2));
}

/** A copy of `column` with room for `length` elements. Throws RangeError if they are fewer than `column` has. */
export function grown<C extends Column>(column: C, length: number): C {
  const copy = new (column.constructor as new (length: number) => C)(length);
  copy.set(column);
  return copy;
}
