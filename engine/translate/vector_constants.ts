/**
 * The pool of v128 constants of a function (`f.vectors`). In: four words, the lowest first. Out: the index of the
 * constant in the pool, to which it is added unless a recent constant has the same words.
 */
import { grown } from "../base/columns.ts";
import type { IrFunction } from "../ir/function.ts";

/** Entries of the hash table of recent constants. */
const RECENT = 256;

export class VectorConstants {
  /**
   * Index in f.vectors, plus one, of the most recent constants, by a hash of their words. Stale entries fail the
   * comparison.
   */
  readonly #recent: Int32Array = new Int32Array(RECENT);

  /** Index in `f.vectors` of the constant with these words. */
  indexOf(f: IrFunction, w0: number, w1: number, w2: number, w3: number): number {
    let hash = Math.imul(w0, 0x9e3779b1) ^ Math.imul(w1, 0x85ebca6b) ^ Math.imul(w2, 0x27d4eb2f) ^
      Math.imul(w3, 0x165667b1);
    hash = (hash ^ (hash >>> 13)) & (RECENT - 1);
    const known = this.#recent[hash] - 1;
    if (known >= 0 && known < f.vectorCount && hasWords(f.vectors, known * 16, w0, w1, w2, w3)) return known;
    const index = f.vectorCount++;
    if (f.vectors.length < f.vectorCount * 16) f.vectors = grown(f.vectors, f.vectorCount * 32);
    setWord(f.vectors, index * 16, w0);
    setWord(f.vectors, index * 16 + 4, w1);
    setWord(f.vectors, index * 16 + 8, w2);
    setWord(f.vectors, index * 16 + 12, w3);
    this.#recent[hash] = index + 1;
    return index;
  }
}

/** The word in four bytes from `at` on, little endian. */
export function wordAt(bytes: Uint8Array, at: number): number {
  return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
}

function setWord(bytes: Uint8Array, at: number, word: number): void {
  bytes[at] = word;
  bytes[at + 1] = word >> 8;
  bytes[at + 2] = word >> 16;
  bytes[at + 3] = word >> 24;
}

/** Whether the 16 bytes of `vectors` from `at` on are these words. */
export function hasWords(vectors: Uint8Array, at: number, w0: number, w1: number, w2: number, w3: number): boolean {
  return wordAt(vectors, at) === w0 && wordAt(vectors, at + 4) === w1 && wordAt(vectors, at + 8) === w2 &&
    wordAt(vectors, at + 12) === w3;
}
