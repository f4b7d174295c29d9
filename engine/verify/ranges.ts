/**
 * Facts about sums of two values, for copies and fills: start + count is at most a length. They hold from where a
 * branch shows them to the end of straight-line code: where paths meet, they are dropped.
 */
import type { Facts } from "./facts.ts";

/** Most sums and ranges that are kept; older ones are overwritten. */
const KEPT = 16;
const WORDS = 6;

export class Ranges {
  /** Rows: name of the sum, name and delta of both values, and the limit of the sum, −1 if unknown. */
  readonly #rows = new Float64Array(KEPT * WORDS);
  #next = 0;
  /** False while the facts of the other way of a branch are found: its target begins without ranges. */
  isOpen = true;

  clear(): void {
    this.#next = 0;
    this.#rows.fill(0);
  }

  /** Value `sum` is the sum of two numbers. */
  note(sum: number, x: number, xDelta: number, y: number, yDelta: number): void {
    if (sum === 0 || x === 0 || y === 0) return;
    const at = (this.#next++ % KEPT) * WORDS;
    this.#rows.set([sum, x, xDelta, y, yDelta, -1], at);
  }

  /** The value named `sum` is at most length `limit`. */
  bound(sum: number, limit: number): void {
    if (sum === 0 || !this.isOpen) return;
    for (let at = 0; at < KEPT * WORDS; at += WORDS) if (this.#rows[at] === sum) this.#rows[at + 5] = limit;
  }

  /** Whether the sum of locations `x` and `y` is at most length `limit`. */
  holds(facts: Facts, x: number, y: number, limit: number): boolean {
    for (let at = 0; at < KEPT * WORDS; at += WORDS) {
      if (this.#rows[at] === 0 || this.#rows[at + 5] !== limit) continue;
      if (this.#is(at + 1, facts, x) && this.#is(at + 3, facts, y)) return true;
      if (this.#is(at + 1, facts, y) && this.#is(at + 3, facts, x)) return true;
    }
    return false;
  }

  #is(at: number, { name, delta }: Facts, l: number): boolean {
    return name[l] === this.#rows[at] && delta[l] === this.#rows[at + 1];
  }
}
