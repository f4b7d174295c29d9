/**
 * Errors for input that was parsed as text but is not: a damaged binary, a compressed file, text in another encoding.
 * In: the bytes and the parser's error. Out: the error to throw. Invariant: for text that begins as a module's does,
 * the parser's error is kept, with its line and column.
 */
import { decodeUtf8 } from "../base/utf8.ts";
import { MalformedError } from "../base/errors.ts";

/** Number of leading bytes in the message: the length of the magic number. */
const SHOWN = 4;
/** Number of characters of the first line in the message. */
const SHOWN_TEXT = 40;

/** Runs `read` over `source`; if it fails because the bytes are not text, the error says so. */
export function readingText<T>(source: string | Uint8Array, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof MalformedError) || typeof source === "string") throw error;
    const reason = notTextReason(source);
    if (reason !== undefined) throw new MalformedError(reason);
    const other = otherText(source);
    throw other === undefined ? error : new MalformedError(other, { line: 1, column: 1 });
  }
}

/** Other formats by their first bytes. */
const FORMATS: readonly (readonly [magic: readonly number[], name: string])[] = [
  [[0x7f, 0x45, 0x4c, 0x46], "machine code of Linux (ELF)"],
  [[0xcf, 0xfa, 0xed, 0xfe], "machine code of macOS (Mach-O)"],
  [[0xca, 0xfe, 0xba, 0xbe], "machine code of macOS (Mach-O) or of Java"],
  [[0x4d, 0x5a, 0x90, 0x00], "machine code of Windows (PE)"],
  [[0x42, 0x43, 0xc0, 0xde], "LLVM bitcode"],
  [[0x21, 0x3c, 0x61, 0x72, 0x63, 0x68, 0x3e], "an archive of object files"],
  [[0x1f, 0x8b], "a file that gzip has compressed"],
  [[0x28, 0xb5, 0x2f, 0xfd], "a file that zstd has compressed"],
  [[0x50, 0x4b, 0x03, 0x04], "a zip archive"],
];

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
  const format = FORMATS.find(([magic]) => magic.every((byte, k) => bytes[k] === byte));
  if (format !== undefined) return `this is ${format[1]}, not a module`;
  // Input that begins like text is taken for text, even with stray bytes in comments, unless it contains zeros.
  const begins = beginsAsText(first);
  if (begins ? !bytes.includes(0) : !hasControlBytes(bytes) && decodeUtf8(bytes) !== undefined) return undefined;
  const shown = [...bytes.subarray(0, SHOWN)].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return `neither a module's binary form, which begins with 00 61 73 6d, nor its text: it begins with ${shown}`;
}

/** Number of leading bytes among which a text has its first parenthesis or comment, if it is to be taken for text. */
const OPENING = 256;

/** Whether the first thing in the bytes is a list or a comment of the text form, which no other file begins with. */
function opensList(bytes: Uint8Array): boolean {
  const start = Array.from(bytes.subarray(0, OPENING), (byte) => String.fromCharCode(byte)).join("");
  return /^[ \t\n\r]*(?:\([ \t\n\r]*[a-z;@]|;;)/.test(start);
}

/** Whether the text of a module can begin with this byte: with a blank, a parenthesis or a comment. */
function beginsAsText(first: number | undefined): boolean {
  return first === undefined || " \t\n\r(;".includes(String.fromCharCode(first));
}

/** The reason for which text is not a module's; undefined if it begins as one. */
function otherText(bytes: Uint8Array): string | undefined {
  if (beginsAsText(bytes[0])) return undefined;
  const line = decodeUtf8(bytes)!.split(/[\r\n]/, 1)[0];
  const shown = line.length > SHOWN_TEXT ? `${line.slice(0, SHOWN_TEXT)}…` : line;
  return `this is text, but not that of a module, which begins with "(": it begins with ${JSON.stringify(shown)}`;
}

/** Whether there are control characters other than white space, form feed and escape. */
function hasControlBytes(bytes: Uint8Array): boolean {
  return bytes.some((byte) => byte === 0x7f || (byte < 0x20 && !(byte >= 0x09 && byte <= 0x0d) && byte !== 0x1b));
}
