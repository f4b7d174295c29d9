/**
 * Byte strings interned as small integers. In: a range of bytes. Out: its symbol, equal for equal ranges.
 *
 * Symbols are dense, so every scope of the text format is an integer column (see scopes.ts) and keywords are compared
 * as numbers. The hash table uses open addressing over columns, so that a lookup allocates nothing.
 *
 * Invariant: a table with adversarial content takes a random multiplier, and slots come from the top bits of a rotating
 * hash, so colliding identifiers cannot be prepared in advance.
 */

import { grown } from "../base/columns.ts";

/** The symbol of no byte string. */
export const NO_SYMBOL = -1;

export class SymbolTable {
  #slots: Int32Array = new Int32Array(256);
  #shift = 24;
  #hashes: Int32Array = new Int32Array(128);
  #ends: Int32Array = new Int32Array(128);
  #bytes: Uint8Array = new Uint8Array(1024);
  #size = 0;
  readonly #multiplier: number;

  /** `multiplier` is made odd; the default is random. */
  constructor(multiplier: number = Math.random() * 0x100000000) {
    this.#multiplier = multiplier | 1;
  }

  /** Number of symbols: all are below this. */
  get size(): number {
    return this.#size;
  }

  /** The symbol of `bytes[start..end)`, or NO_SYMBOL. */
  find(bytes: Uint8Array, start: number, end: number): number {
    const hash = this.#hash(bytes, start, end);
    return this.#slots[this.#slotOf(hash, bytes, start, end)] - 1;
  }

  /** The symbol of `bytes[start..end)`, created if it does not exist. */
  intern(bytes: Uint8Array, start: number, end: number): number {
    const hash = this.#hash(bytes, start, end);
    let slot = this.#slotOf(hash, bytes, start, end);
    const found = this.#slots[slot] - 1;
    if (found >= 0) return found;
    if (this.#size * 2 >= this.#slots.length) {
      this.#growSlots();
      slot = this.#slotOf(hash, bytes, start, end);
    }
    return this.#add(slot, hash, bytes, start, end);
  }

  /** The text of a symbol; its bytes were valid UTF-8 when they were interned. */
  text(symbol: number): string {
    const from = symbol === 0 ? 0 : this.#ends[symbol - 1];
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.#bytes.subarray(from, this.#ends[symbol]));
  }

  #add(slot: number, hash: number, bytes: Uint8Array, start: number, end: number): number {
    const symbol = this.#size++;
    if (symbol === this.#hashes.length) {
      this.#hashes = grown(this.#hashes, symbol * 2);
      this.#ends = grown(this.#ends, symbol * 2);
    }
    const from = symbol === 0 ? 0 : this.#ends[symbol - 1];
    const to = from + (end - start);
    if (to > this.#bytes.length) {
      const more = new Uint8Array(Math.max(to, this.#bytes.length * 2));
      more.set(this.#bytes);
      this.#bytes = more;
    }
    this.#bytes.set(bytes.subarray(start, end), from);
    this.#ends[symbol] = to;
    this.#hashes[symbol] = hash;
    this.#slots[slot] = symbol + 1;
    return symbol;
  }

  #hash(bytes: Uint8Array, start: number, end: number): number {
    const multiplier = this.#multiplier;
    let hash = (end - start) | 0;
    for (let i = start; i < end; i++) {
      hash = Math.imul(hash ^ bytes[i], multiplier);
      hash = (hash << 13) | (hash >>> 19);
    }
    return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  }

  /** The slot that holds these bytes, or the free slot for them. */
  #slotOf(hash: number, bytes: Uint8Array, start: number, end: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = hash >>> this.#shift;
    for (;;) {
      const symbol = slots[slot] - 1;
      if (symbol < 0 || (this.#hashes[symbol] === hash && this.#isAt(symbol, bytes, start, end))) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #isAt(symbol: number, bytes: Uint8Array, start: number, end: number): boolean {
    const from = symbol === 0 ? 0 : this.#ends[symbol - 1];
    if (this.#ends[symbol] - from !== end - start) return false;
    const own = this.#bytes;
    for (let i = start, j = from; i < end; i++, j++) if (own[j] !== bytes[i]) return false;
    return true;
  }

  #growSlots(): void {
    const slots = new Int32Array(this.#slots.length * 2);
    this.#shift--;
    const mask = slots.length - 1;
    for (let symbol = 0; symbol < this.#size; symbol++) {
      let slot = this.#hashes[symbol] >>> this.#shift;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = symbol + 1;
    }
    this.#slots = slots;
  }
}
