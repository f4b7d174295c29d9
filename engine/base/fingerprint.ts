/**
 * A number that tells texts apart which nobody chooses so that they have the same: facts about an engine and its machine. In: text. Out: 32 bits of it.
 * What somebody may choose is hashed by SHA-256.
 */

const ENCODER = new TextEncoder();

/** The fingerprint of `text`; another `seed` gives another one. */
export function fingerprint(text: string, seed = 0x811c9dc5): number {
  // Four bytes at a time: this is done whenever a process starts.
  const bytes = ENCODER.encode(text.padEnd(text.length + 3));
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
  let hash = Math.imul(seed ^ text.length, 0x01000193);
  for (let i = 0; i < words.length; i++) {
    hash = Math.imul(hash ^ words[i], 0x01000193);
    hash ^= hash >>> 15;
  }
  return hash >>> 0;
}
