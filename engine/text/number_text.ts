/**
 * Numbers of the text format: the classification of byte ranges, and the value of integers as two 32-bit halves
 * (specification, 6.3.1 and 6.3.2). base/float.ts has floating-point values.
 *
 * Invariant: integer values are read only of ranges that numberKind classified as NAT or INT.
 */
import { hexDigit } from "./string_text.ts";
import { FLOAT, INT, NAT, RESERVED } from "./tokens.ts";

const ZERO = 0x30;
const UNDERSCORE = 0x5f;
const PLUS = 0x2b;
const MINUS = 0x2d;

/** NAT, INT or FLOAT for a number, RESERVED for anything else. */
export function numberKind(source: Uint8Array, start: number, end: number): number {
  let at = start;
  const signed = source[at] === PLUS || source[at] === MINUS;
  if (signed) at++;
  const first = at < end ? source[at] : 0;
  if (first === 0x69 || first === 0x6e) return isNamedFloat(source, at, end) ? FLOAT : RESERVED;
  const hex = first === ZERO && at + 1 < end && source[at + 1] === 0x78;
  if (hex) at += 2;
  at = digits(source, at, end, hex);
  if (at < 0) return RESERVED;
  if (at === end) return signed ? INT : NAT;
  if (source[at] === 0x2e) {
    at++;
    // The fraction may be empty, but not begin with an underscore.
    if (at < end && digitOf(source[at], hex) >= 0) at = digits(source, at, end, hex);
    if (at < 0) return RESERVED;
    if (at === end) return FLOAT;
  }
  if ((source[at] | 0x20) !== (hex ? 0x70 : 0x65)) return RESERVED;
  at++;
  if (at < end && (source[at] === PLUS || source[at] === MINUS)) at++;
  return digits(source, at, end, false) === end ? FLOAT : RESERVED;
}

/** `inf`, `nan`, `nan:0x…`. */
function isNamedFloat(source: Uint8Array, at: number, end: number): boolean {
  if (source[at] === 0x69) return end - at === 3 && source[at + 1] === 0x6e && source[at + 2] === 0x66;
  if (end - at < 3 || source[at + 1] !== 0x61 || source[at + 2] !== 0x6e) return false;
  if (end - at === 3) return true;
  return source[at + 3] === 0x3a && source[at + 4] === ZERO && source[at + 5] === 0x78 &&
    digits(source, at + 6, end, true) === end;
}

function digitOf(byte: number, hex: boolean): number {
  return hex ? hexDigit(byte) : byte >= ZERO && byte <= 0x39 ? byte - ZERO : -1;
}

/**
 * The end of the digits at `at`, which single underscores may separate; −1 if there are none or an underscore dangles.
 */
function digits(source: Uint8Array, at: number, end: number, hex: boolean): number {
  let afterDigit = false;
  for (; at < end; at++) {
    const byte = source[at];
    if (digitOf(byte, hex) >= 0) afterDigit = true;
    else if (byte === UNDERSCORE && afterDigit) afterDigit = false;
    else break;
  }
  return afterDigit ? at : -1;
}

/** The value of the last integer read: unsigned halves. */
export const INTEGER = { lo: 0, hi: 0 };

/**
 * Reads an unsigned or signed integer of `bits` bits (8, 16, 32 or 64) into INTEGER, in two's complement; false if it
 * is out of range. As in the reference interpreter, a plus sign allows the whole unsigned range.
 */
export function readInteger(source: Uint8Array, start: number, end: number, bits: number): boolean {
  const negative = source[start] === MINUS;
  const at = negative || source[start] === PLUS ? start + 1 : start;
  if (!readMagnitude(source, at, end)) return false;
  const { lo, hi } = INTEGER;
  if (bits === 64) {
    if (!negative) return true;
    if (hi > 0x80000000 || (hi === 0x80000000 && lo !== 0)) return false;
    INTEGER.lo = -lo >>> 0;
    INTEGER.hi = (lo === 0 ? -hi : ~hi) >>> 0;
    return true;
  }
  const limit = 2 ** bits;
  if (hi !== 0 || (negative ? lo > limit / 2 : lo >= limit)) return false;
  if (negative && lo !== 0) INTEGER.lo = limit - lo;
  return true;
}

/** Reads the unsigned integer at `at`; false if it does not fit 64 bits. */
export function readMagnitude(source: Uint8Array, at: number, end: number): boolean {
  const hex = source[at] === ZERO && at + 1 < end && source[at + 1] === 0x78;
  const base = hex ? 16 : 10;
  let lo = 0;
  let hi = 0;
  for (at += hex ? 2 : 0; at < end; at++) {
    const byte = source[at];
    if (byte === UNDERSCORE) continue;
    // Both products are far below 2^53, so they are exact.
    const low = lo * base + hexDigit(byte);
    lo = low >>> 0;
    hi = hi * base + (low - lo) / 0x100000000;
    if (hi >= 0x100000000) return false;
  }
  INTEGER.lo = lo;
  INTEGER.hi = hi;
  return true;
}
