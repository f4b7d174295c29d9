/**
 * Facts about sums of two values, for copies and fills: start + count is at most a length. They hold from the branch
 * that shows them to the end of straight-line code: where paths meet, they are dropped.
 */
import type { Facts } from "./facts.ts";

/** The name of zero, in sums of one value. */
export const ZERO_NAME = -1;
/** Number of sums, and of products, that are kept; older ones are overwritten. */
const KEPT = 16;
const WORDS = 6;
/** In place of the limit of a sum: it is not known; nor whether the sum is exact. */
const UNBOUNDED = -1, MAY_WRAP = -2;

export class Ranges {
  /** Rows: name of the sum, name and delta of both values, and the limit of the sum, UNBOUNDED or MAY_WRAP. */
  readonly #rows = new Float64Array(KEPT * WORDS);
  readonly #products = new Float64Array(KEPT * 3);
  #next = 0;
  #nextProduct = 0;
  /** False while the facts on the taken edge of a branch are computed: its target begins without ranges. */
  isOpen = true;

  clear(): void {
    if (this.#next > 0) this.#rows.fill(0);
    if (this.#nextProduct > 0) this.#products.fill(0);
    this.#next = this.#nextProduct = 0;
  }

  /** Value `sum` is the sum of two numbers, modulo 2^64 if it may wrap. */
  note(sum: number, mayWrap: boolean, x: number, xDelta: number, y: number, yDelta: number): void {
    if (sum === 0 || x === 0 || y === 0) return;
    const at = (this.#next++ % KEPT) * WORDS;
    this.#rows.set([sum, x, xDelta, y, yDelta, mayWrap ? MAY_WRAP : UNBOUNDED], at);
  }

  /** Whether the value named `sum` is known as a sum that may wrap. */
  mayWrap(sum: number): boolean {
    return this.#rows.some((word, at) => at % WORDS === 0 && word === sum && this.#rows[at + 5] === MAY_WRAP);
  }

  /** The sum with this name has not wrapped. */
  noteExact(sum: number): void {
    if (!this.isOpen) return;
    for (let at = 0; at < KEPT * WORDS; at += WORDS) {
      if (this.#rows[at] === sum && this.#rows[at + 5] === MAY_WRAP) this.#rows[at + 5] = UNBOUNDED;
    }
  }

  /** The value with this name and delta is at most the value named `sum`: a sum with it has not wrapped. */
  noteBelow(x: number, xDelta: number, sum: number): void {
    if (x === 0 || sum === 0 || !this.isOpen) return;
    const rows = this.#rows;
    for (let at = 0; at < KEPT * WORDS; at += WORDS) {
      if (rows[at] !== sum || rows[at + 5] !== MAY_WRAP) continue;
      const isFirst = rows[at + 1] === x && rows[at + 2] === xDelta;
      if (isFirst || (rows[at + 3] === x && rows[at + 4] === xDelta)) rows[at + 5] = UNBOUNDED;
    }
  }

  /** The value with this name and delta is at most length `limit`. */
  noteBound(x: number, xDelta: number, limit: number): void {
    if (x === 0 || !this.isOpen) return;
    const at = (this.#next++ % KEPT) * WORDS;
    // No other bound of this sum takes the place of this one.
    this.#rows.set([ZERO_NAME, x, xDelta, ZERO_NAME, 0, limit], at);
  }

  /** The value named `product` is that of name `index`, shifted left. */
  noteProduct(product: number, index: number, shift: number): void {
    this.#products.set([product, index, shift], (this.#nextProduct++ % KEPT) * 3);
  }

  /** The name of the value that, shifted left, has the name `product`; 0 if it is not known. */
  indexOf(product: number, shift: number): number {
    const rows = this.#products;
    for (let at = 0; at < KEPT * 3; at += 3) if (rows[at] === product && rows[at + 2] === shift) return rows[at + 1];
    return 0;
  }

  /** The value named `sum` is at most length `limit`. */
  bound(sum: number, limit: number): void {
    if (sum === 0 || !this.isOpen) return;
    const rows = this.#rows;
    for (let at = 0; at < KEPT * WORDS; at += WORDS) {
      if (rows[at] !== sum || rows[at + 5] === MAY_WRAP || rows[at + 5] === limit) continue;
      if (rows[at + 5] === UNBOUNDED) {
        rows[at + 5] = limit;
        continue;
      }
      // A sum that is compared with the lengths of two memories.
      const other = (this.#next++ % KEPT) * WORDS;
      rows.copyWithin(other, at, at + WORDS);
      rows[other + 5] = limit;
      return;
    }
  }

  /** Whether the sum of locations `x` and `y` is at most length `limit`. */
  holds({ name, delta }: Facts, x: number, y: number, limit: number): boolean {
    return this.holdsNames(name[x], delta[x], name[y], delta[y], limit);
  }

  /** Whether the sum of the values with these names and deltas is at most length `limit`. */
  holdsNames(x: number, xDelta: number, y: number, yDelta: number, limit: number): boolean {
    const is = (at: number, name: number, delta: number) => this.#rows[at] === name && this.#rows[at + 1] === delta;
    for (let at = 0; at < KEPT * WORDS; at += WORDS) {
      if (this.#rows[at] === 0 || this.#rows[at + 5] !== limit) continue;
      if (is(at + 1, x, xDelta) && is(at + 3, y, yDelta)) return true;
      if (is(at + 1, y, yDelta) && is(at + 3, x, xDelta)) return true;
    }
    return false;
  }
}
