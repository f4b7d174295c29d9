/** Base64 text to bytes, with the decoder of the host where it has one. */

/** Decodes base64 text without white space. Throws for other text. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native !== undefined) return native.call(Uint8Array, text);
  const { Buffer } = globalThis as { Buffer?: { from(text: string, encoding: "base64"): Uint8Array<ArrayBuffer> } };
  if (Buffer !== undefined) return new Uint8Array(Buffer.from(text, "base64"));
  const chars = atob(text);
  const bytes = new Uint8Array(chars.length);
  for (let k = 0; k < bytes.length; k++) bytes[k] = chars.charCodeAt(k);
  return bytes;
}
