/**
 * Bytes as lines of hexadecimal digits and characters, as xxd and wasm-objdump print them. In: bytes and the number of
 * the first one. Out: a line for each 16 bytes.
 */

const BYTES_PER_LINE = 16;
/** Two digits for each byte, and a space after each pair. */
const DIGITS_WIDTH = BYTES_PER_LINE / 2 * 5;

/** The lines of `bytes`, made one by one. */
export function* hexLines(bytes: Uint8Array, first: number): Iterable<string> {
  for (let at = 0; at < bytes.length; at += BYTES_PER_LINE) {
    const row = bytes.subarray(at, at + BYTES_PER_LINE);
    const pairs = hexText(row).match(/.{1,4}/g) ?? [];
    const digits = pairs.map((pair) => `${pair} `).join("").padEnd(DIGITS_WIDTH);
    const characters = Array.from(row, (byte) => byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".");
    yield `${(first + at).toString(16).padStart(7, "0")}: ${digits} ${characters.join("")}`;
  }
}

/** Two digits for each byte. */
export function hexText(bytes: Uint8Array, separator = ""): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(separator);
}
