/**
 * Non-cryptographic fingerprints of text, for facts about an engine and its machine. In: text. Out: 32 bits. Text that
 * an attacker may choose is hashed with SHA-256 instead.
 */

const ENCODER = new TextEncoder();

/** The fingerprint of `text`, for a given `seed`. */
export function fingerprint(text: string, seed = 0x811c9dc5): number {
  // Four bytes at a time: this runs at every start of a process.
  const bytes = ENCODER.encode(text.padEnd(text.length + 3));
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
  let hash = Math.imul(seed ^ text.length, 0x01000193);
  for (let i = 0; i < words.length; i++) {
    hash = Math.imul(hash ^ words[i], 0x01000193);
    hash ^= hash >>> 15;
  }
  return hash >>> 0;
}
