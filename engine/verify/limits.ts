/**
 * Limits: the lengths that values are proven not to exceed (columns `of` and `room` of Facts), as numbers. In: the
 * index of a memory or table, or the name of a value. Out: a limit, −1 for none, and what a limit is. Invariant: only
 * this file knows how limits are encoded.
 *
 *     memory      its length in bytes
 *     table       its length in elements; another limit is the same length in bytes
 *     array       the length of the array with a name. With a shift, a number with this limit is an index shifted left,
 *                 and its room counts elements
 *     product     the value with a name, shifted left: a number with this limit is that value less its room
 *
 * Where masks are required, a compare alone gives the unmasked form of the limit of a memory or table.
 */

const TABLE = 0x100000;
/** From the limit of a table in elements to that in bytes. */
const TO_BYTES = 0x100000;
const TABLE_BYTES = TABLE + TO_BYTES;
/** From the limit of a memory or table to its unmasked form. */
const TO_UNMASKED = 0x80000;
const ARRAY = TABLE_BYTES + TO_BYTES;
const PRODUCT = 0x40000000;
/** Bits of the shift, below the name. */
const SHIFT_BITS = 3;
const SHIFT_MASK = (1 << SHIFT_BITS) - 1;
/** Names from here on have no limits. */
const MAX_NAME = 1 << 26;

/** The limit of a number that was masked and had none: that of no table. */
const MASKED = TABLE + TO_UNMASKED - 1;

/** The length of memory `m`, in bytes. */
export function memoryLimit(m: number): number {
  return m;
}

/** The length of table `t`, in elements. */
export function tableLimit(t: number): number {
  return TABLE + t;
}

/** The length of table `t`, in bytes. */
export function tableBytesLimit(t: number): number {
  return TABLE_BYTES + t;
}

/** The length of the array named `name`, for an index that is shifted left by `shift`. −1 if the name is too large. */
export function elementLimit(name: number, shift: number): number {
  return name > 0 && name < MAX_NAME ? ARRAY + (name << SHIFT_BITS) + shift : -1;
}

/** The value named `name`, shifted left. −1 if the name is too large. */
export function productLimit(name: number, shift: number): number {
  return name > 0 && name < MAX_NAME ? PRODUCT + (name << SHIFT_BITS) + shift : -1;
}

/** Whether this is the limit of a memory. */
export function isMemoryLimit(of: number): boolean {
  return of >= 0 && of < TABLE;
}

/** The table that has this limit, which is in elements and not of a memory; negative for a memory. */
export function tableOfLimit(of: number): number {
  return of - TABLE;
}

/** Whether the limit has a name: that of an array or of a product. */
export function isNamedLimit(of: number): boolean {
  return of >= ARRAY;
}

/** Whether this is the length of an array. */
export function isArrayLimit(of: number): boolean {
  return of >= ARRAY && of < PRODUCT;
}

/** Whether this is a product. */
export function isProductLimit(of: number): boolean {
  return of >= PRODUCT;
}

/** The name in limit `of`, 0 if it has none. */
export function limitName(of: number): number {
  return of < ARRAY ? 0 : (of - (of < PRODUCT ? ARRAY : PRODUCT)) >> SHIFT_BITS;
}

/** The shift of the numbers that limit `of` bounds. */
export function limitShift(of: number): number {
  return of < ARRAY ? 0 : of & SHIFT_MASK;
}

/** The same limit with the name `name`. −1 if the name is too large. */
export function renamedLimit(of: number, name: number): number {
  return of < PRODUCT ? elementLimit(name, limitShift(of)) : productLimit(name, limitShift(of));
}

/** The limit of an index in the array with limit `of` after `scale` further shifts. */
export function shiftedLimit(of: number, scale: number): number {
  return of + scale;
}

/** The length in bytes of the table whose length in elements is `of`; −1 for other limits. */
export function bytesLimit(of: number): number {
  return of >= TABLE && of < TABLE_BYTES ? of + TO_BYTES : -1;
}

/** The limit of a number that a compare with `of`, the length of a memory or table, has bounded, but no mask. */
export function unmaskedLimit(of: number): number {
  return of + TO_UNMASKED;
}

/** Whether only a mask gives this limit, where masks are required. */
export function isMaskedLimit(of: number): boolean {
  return of >= 0 && of < ARRAY && (of & (TO_BYTES - 1)) < TO_UNMASKED;
}

/** The limit of a number that was masked and had limit `of` before. */
export function maskedLimit(of: number): number {
  if (of < 0) return MASKED;
  return of < ARRAY && !isMaskedLimit(of) ? of - TO_UNMASKED : of;
}
