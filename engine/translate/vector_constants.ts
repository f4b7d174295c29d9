/**
 * The pool of v128 constants of a function (`f.vectors`). In: 16 bytes. Out: their index in the pool, into which they
 * are copied unless a recent constant has the same bytes.
 */
import { grown } from "../base/columns.ts";
import type { IrFunction } from "../ir/function.ts";

/** The bytes of the zero vector. */
export const ZERO_VECTOR: Uint8Array = new Uint8Array(16);

/** Entries of the hash table of recent constants. */
const RECENT = 256;

export class VectorConstants {
  /**
   * Index in f.vectors, plus one, of the most recent constants, by a hash of their words. Stale entries fail the
   * comparison.
   */
  readonly #recent = new Int32Array(RECENT);
  readonly #words = new Int32Array(4);
  readonly #bytes = new Uint8Array(this.#words.buffer);

  /** Index in `f.vectors` of the constant with these 16 bytes. */
  indexOf(f: IrFunction, bytes: Uint8Array): number {
    const hash = this.#hash(bytes);
    const known = this.#recent[hash] - 1;
    if (known >= 0 && known < f.vectorCount && sameBytes(f.vectors, known * 16, bytes)) return known;
    const index = f.vectorCount++;
    if (f.vectors.length < f.vectorCount * 16) f.vectors = grown(f.vectors, f.vectorCount * 32);
    f.vectors.set(bytes, index * 16);
    this.#recent[hash] = index + 1;
    return index;
  }

  #hash(bytes: Uint8Array): number {
    this.#bytes.set(bytes);
    const words = this.#words;
    const hash = Math.imul(words[0], 0x9e3779b1) ^ Math.imul(words[1], 0x85ebca6b) ^ Math.imul(words[2], 0x27d4eb2f) ^
      Math.imul(words[3], 0x165667b1);
    return (hash ^ (hash >>> 13)) & (RECENT - 1);
  }
}

/** True if the 16 bytes of `vectors` from `at` equal `bytes`. */
export function sameBytes(vectors: Uint8Array, at: number, bytes: Uint8Array): boolean {
  for (let k = 0; k < 16; k++) if (vectors[at + k] !== bytes[k]) return false;
  return true;
}
