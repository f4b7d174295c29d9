/** Bytes to hexadecimal text and back, by built-in functions if the JavaScript engine has them. */

interface HexBytes {
  toHex?(): string;
}

/** Two lower-case digits per byte. */
export function toHex(bytes: Uint8Array): string {
  return (bytes as HexBytes).toHex?.() ?? Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Decodes hexadecimal digits, whose number must be even; other text is not checked on all hosts. */
export function fromHex(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as { fromHex?(text: string): Uint8Array<ArrayBuffer> }).fromHex;
  if (native !== undefined) return native.call(Uint8Array, text);
  const bytes = new Uint8Array(text.length >> 1);
  for (let k = 0; k < bytes.length; k++) bytes[k] = parseInt(text.slice(k * 2, k * 2 + 2), 16);
  return bytes;
}
