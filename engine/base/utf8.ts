/**
 * UTF-8 as the specification defines it (5.2.4): no surrogates, no overlong forms, nothing above U+10FFFF; a byte order
 * mark is an ordinary character. In: bytes. Out: a string, or undefined if the bytes are not UTF-8.
 */

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** Up to this many bytes, a loop over ASCII is faster than a call of the decoder; most names are that short. */
const SHORT = 24;

/** Decodes `bytes[start … end − 1]`; undefined if they are not valid UTF-8. */
export function decodeUtf8(bytes: Uint8Array, start = 0, end: number = bytes.length): string | undefined {
  if (end - start <= SHORT) {
    let text = "";
    let pos = start;
    for (; pos < end; pos++) {
      const byte = bytes[pos];
      if (byte >= 0x80) break;
      text += String.fromCharCode(byte);
    }
    if (pos === end) return text;
  }
  try {
    // A decoder may refuse views of shared memory, so these are copied.
    const shared = typeof SharedArrayBuffer !== "undefined" && bytes.buffer instanceof SharedArrayBuffer;
    return strict.decode(shared ? bytes.slice(start, end) : bytes.subarray(start, end));
  } catch {
    return undefined;
  }
}

/** Encodes `text`; a lone surrogate, which no decoded name contains, becomes U+FFFD. */
export function encodeUtf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}
