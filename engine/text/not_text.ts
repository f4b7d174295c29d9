/**
 * What is said of bytes that were read as text and are none: a damaged binary, a compressed file, text in another encoding. In: the bytes and the error
 * that reading them as text gave. Out: the error to throw. Invariant: bytes that are text keep their error, with its line and column.
 */
import { decodeUtf8 } from "../base/utf8.ts";
import { MalformedError } from "../errors.ts";

/** How many of the first bytes an error shows: as many as the magic number has. */
const SHOWN = 4;

/** Runs `read` over `source`; when that fails since the bytes are no text at all, the error says so. */
export function readingText<T>(source: string | Uint8Array, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const why = error instanceof MalformedError && typeof source !== "string" ? whyNotText(source) : undefined;
    throw why === undefined ? error : new MalformedError(why);
  }
}

/** Undefined for bytes that are plausibly text, with mistakes in it. */
function whyNotText(bytes: Uint8Array): string | undefined {
  const [first, second, third] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) {
    return "text is UTF-8 here, and this is UTF-16: save it as UTF-8";
  }
  if (first === 0xef && second === 0xbb && third === 0xbf) {
    return "text begins with no byte order mark here: save it as UTF-8 without one";
  }
  if (first === 0x00) return "this is a module's binary form, not text"; // where only text can be meant, as in scripts
  // What begins like a text is taken for one, whatever stray bytes its comments have, unless there are zeros in it.
  const begins = first === undefined || " \t\n\r(;".includes(String.fromCharCode(first));
  if (begins ? !bytes.includes(0) : !hasControlBytes(bytes) && decodeUtf8(bytes) !== undefined) return undefined;
  const shown = [...bytes.subarray(0, SHOWN)].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return `neither a module's binary form, which begins with 00 61 73 6d, nor its text: it begins with ${shown}`;
}

/** Are there control characters other than white space, form feed and escape? */
function hasControlBytes(bytes: Uint8Array): boolean {
  return bytes.some((byte) => byte === 0x7f || (byte < 0x20 && !(byte >= 0x09 && byte <= 0x0d) && byte !== 0x1b));
}
