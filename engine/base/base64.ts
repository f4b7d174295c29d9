/**
 * Base64 text to bytes, by the decoder of the host if it has one. The text must be valid: decoders differ for other
 * text.
 */

/** Decodes base64 text without white space. For other text, throws or, with `Buffer`, skips the invalid characters. */
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
