/**
 * Errors for input that was parsed as text but is not: a damaged binary, a compressed file, text in another encoding.
 * In: the bytes and the parser's error. Out: the error to throw. Invariant: for bytes that are text, the parser's error
 * is kept, with its line and column.
 */
import { decodeUtf8 } from "../base/utf8.ts";
import { MalformedError } from "../errors.ts";

/** Number of leading bytes in the message: the length of the magic number. */
const SHOWN = 4;

/** Runs `read` over `source`; if it fails because the bytes are not text, the error says so. */
export function readingText<T>(source: string | Uint8Array, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const reason = error instanceof MalformedError && typeof source !== "string" ? notTextReason(source) : undefined;
    throw reason === undefined ? error : new MalformedError(reason);
  }
}

/** The reason for which the bytes are not text; undefined if they are plausibly text with mistakes. */
function notTextReason(bytes: Uint8Array): string | undefined {
  const [first, second, third] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) {
    return "text is UTF-8 here, and this is UTF-16: save it as UTF-8";
  }
  if (first === 0xef && second === 0xbb && third === 0xbf) {
    return "text begins with no byte order mark here: save it as UTF-8 without one";
  }
  if (first === 0x00) return "this is a module's binary form, not text"; // where only text can be meant, as in scripts
  if (opensList(bytes)) return undefined;
  // Input that begins like text is taken for text, even with stray bytes in comments, unless it contains zeros.
  const begins = first === undefined || " \t\n\r(;".includes(String.fromCharCode(first));
  if (begins ? !bytes.includes(0) : !hasControlBytes(bytes) && decodeUtf8(bytes) !== undefined) return undefined;
  const shown = [...bytes.subarray(0, SHOWN)].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return `neither a module's binary form, which begins with 00 61 73 6d, nor its text: it begins with ${shown}`;
}

/** Number of leading bytes among which a text has its first parenthesis or comment, if it is to be taken for text. */
const OPENING = 256;

/** True if the first thing in the bytes is a list or a comment of the text form, which no other file begins with. */
function opensList(bytes: Uint8Array): boolean {
  const start = Array.from(bytes.subarray(0, OPENING), (byte) => String.fromCharCode(byte)).join("");
  return /^[ \t\n\r]*(?:\([ \t\n\r]*[a-z;@]|;;)/.test(start);
}

/** True if there are control characters other than white space, form feed and escape. */
function hasControlBytes(bytes: Uint8Array): boolean {
  return bytes.some((byte) => byte === 0x7f || (byte < 0x20 && !(byte >= 0x09 && byte <= 0x0d) && byte !== 0x1b));
}
