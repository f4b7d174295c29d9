/**
 * Strings of the text format: their extent and escapes (specification, 6.3.3), and the strict UTF-8 of sources and
 * names. In: bytes of the source. Out: extents and values; nothing here throws, since the lexer turns problems into
 * tokens.
 *
 * Invariant: decodeString only gets ranges that scanString accepted.
 */

/** Messages for malformed strings; empty for none. */
export const StringProblem = {
  none: "",
  unclosed: "unclosed string",
  control: "illegal character in a string",
  escape: "illegal escape in a string",
  utf8: "malformed UTF-8 encoding",
} as const;
export type StringProblem = (typeof StringProblem)[keyof typeof StringProblem];

/** One result object, reused: the lexer reads it before the next scan. */
const scanned = { end: 0, escaped: false, problem: StringProblem.none as StringProblem };

/**
 * Finds the end of the string whose opening quote is at `start`; `end` is past the closing quote, or the offset of the
 * problem.
 */
export function scanString(source: Uint8Array, start: number): Readonly<typeof scanned> {
  const length = source.length;
  scanned.escaped = false;
  let at = start + 1;
  while (at < length) {
    const byte = source[at];
    if (byte === 0x22) return result(at + 1, StringProblem.none);
    if (byte === 0x5c) {
      const size = escapeLength(source, at);
      if (size === 0) return result(at, StringProblem.escape);
      scanned.escaped = true;
      at += size;
    } else if (byte >= 0x80) {
      const size = utf8Length(source, at);
      if (size === 0) return result(at, StringProblem.utf8);
      at += size;
    } else if (byte < 0x20 || byte === 0x7f) {
      return result(at, byte === 0x0a || byte === 0x0d ? StringProblem.unclosed : StringProblem.control);
    } else {
      at++;
    }
  }
  return result(at, StringProblem.unclosed);
}

function result(end: number, problem: StringProblem): Readonly<typeof scanned> {
  scanned.end = end;
  scanned.problem = problem;
  return scanned;
}

/** Length of the escape at `at` (a backslash) in the source, 0 if it is malformed. */
function escapeLength(source: Uint8Array, at: number): number {
  switch (source[at + 1]) {
    case 0x74: // t
    case 0x6e: // n
    case 0x72: // r
    case 0x22: // "
    case 0x27: // '
    case 0x5c: // \
      return 2;
    case 0x75: // u{…}
      return unicodeEscapeLength(source, at);
  }
  return hexDigit(source[at + 1]) >= 0 && hexDigit(source[at + 2]) >= 0 ? 3 : 0;
}

/** `\u{hexnum}` with a Unicode scalar value. */
function unicodeEscapeLength(source: Uint8Array, at: number): number {
  if (source[at + 2] !== 0x7b) return 0;
  let value = 0;
  let i = at + 3;
  for (let afterDigit = false;; i++) {
    const byte = source[i];
    const digit = hexDigit(byte);
    if (digit >= 0) {
      value = Math.min(value * 16 + digit, 0x110000);
      afterDigit = true;
    } else if (byte === 0x5f && afterDigit) {
      afterDigit = false;
    } else {
      if (byte !== 0x7d || !afterDigit) return 0;
      break;
    }
  }
  return value >= 0x110000 || (value >= 0xd800 && value < 0xe000) ? 0 : i + 1 - at;
}

/** Value of a hexadecimal digit, −1 for any other byte. */
export function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** The bytes denoted by the string `source[start..end)`, quotes included. */
export function decodeString(source: Uint8Array, start: number, end: number): Uint8Array {
  const bytes = new Uint8Array(end - start - 2);
  let size = 0;
  for (let at = start + 1; at < end - 1;) {
    const byte = source[at];
    if (byte !== 0x5c) {
      bytes[size++] = byte;
      at++;
      continue;
    }
    const next = source[at + 1];
    if (next === 0x75) {
      let value = 0;
      for (at += 3; source[at] !== 0x7d; at++) {
        if (source[at] !== 0x5f) value = value * 16 + hexDigit(source[at]);
      }
      at++;
      size = writeUtf8(bytes, size, value);
    } else if (hexDigit(source[at + 1]) >= 0 && hexDigit(source[at + 2]) >= 0) {
      bytes[size++] = hexDigit(source[at + 1]) * 16 + hexDigit(source[at + 2]);
      at += 3;
    } else {
      bytes[size++] = next === 0x74 ? 0x09 : next === 0x6e ? 0x0a : next === 0x72 ? 0x0d : next;
      at += 2;
    }
  }
  return bytes.subarray(0, size);
}

function writeUtf8(bytes: Uint8Array, at: number, scalar: number): number {
  if (scalar < 0x80) {
    bytes[at++] = scalar;
  } else if (scalar < 0x800) {
    bytes[at++] = 0xc0 | (scalar >> 6);
    bytes[at++] = 0x80 | (scalar & 0x3f);
  } else if (scalar < 0x10000) {
    bytes[at++] = 0xe0 | (scalar >> 12);
    bytes[at++] = 0x80 | ((scalar >> 6) & 0x3f);
    bytes[at++] = 0x80 | (scalar & 0x3f);
  } else {
    bytes[at++] = 0xf0 | (scalar >> 18);
    bytes[at++] = 0x80 | ((scalar >> 12) & 0x3f);
    bytes[at++] = 0x80 | ((scalar >> 6) & 0x3f);
    bytes[at++] = 0x80 | (scalar & 0x3f);
  }
  return at;
}

/** Length of the UTF-8 sequence at `at`: shortest form, no surrogates, at most U+10FFFF; 0 if it is malformed. */
export function utf8Length(bytes: Uint8Array, at: number): number {
  const first = bytes[at];
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const second = at + 1 < bytes.length ? bytes[at + 1] : 0;
  if ((second & 0xc0) !== 0x80) return 0;
  if (first < 0xe0) return 2;
  if (at + 2 >= bytes.length || (bytes[at + 2] & 0xc0) !== 0x80) return 0;
  if (first < 0xf0) return (first === 0xe0 && second < 0xa0) || (first === 0xed && second > 0x9f) ? 0 : 3;
  if (at + 3 >= bytes.length || (bytes[at + 3] & 0xc0) !== 0x80) return 0;
  return (first === 0xf0 && second < 0x90) || (first === 0xf4 && second > 0x8f) ? 0 : 4;
}
