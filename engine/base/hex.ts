/** Bytes to hexadecimal text and back, by built-in functions if the JavaScript engine has them. */

interface HexBytes {
  toHex?(): string;
}

/** Two lower-case digits per byte. */
export function toHex(bytes: Uint8Array): string {
  return (bytes as HexBytes).toHex?.() ?? Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Decodes pairs of hexadecimal digits. Throws a SyntaxError for other text. */
export function fromHex(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as { fromHex?(text: string): Uint8Array<ArrayBuffer> }).fromHex;
  if (native !== undefined) return native.call(Uint8Array, text);
  if (!/^([0-9a-f]{2})*$/i.test(text)) {
    throw new SyntaxError("The text is not a sequence of pairs of hexadecimal digits");
  }
  const bytes = new Uint8Array(text.length >> 1);
  for (let k = 0; k < bytes.length; k++) bytes[k] = parseInt(text.slice(k * 2, k * 2 + 2), 16);
  return bytes;
}
