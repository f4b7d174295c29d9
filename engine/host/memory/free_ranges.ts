/**
 * The free ranges of an address space. In: ranges that are given back. Out: ranges of the wanted size. Invariant:
 * ranges are in ascending order and never touch, because neighbours are joined.
 */
export class FreeRanges {
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];

  /** Takes `bytes` from the first range with room at a multiple of `alignment`; undefined if there is none. */
  take(bytes: number, alignment: number): number | undefined {
    for (let k = 0; k < this.#starts.length; k++) {
      const at = Math.ceil(this.#starts[k] / alignment) * alignment;
      if (at + bytes > this.#ends[k]) continue;
      this.#remove(k, at, at + bytes);
      return at;
    }
    return undefined;
  }

  /** Adds a range that is not free. */
  add(start: number, bytes: number): void {
    const end = start + bytes;
    const k = this.#indexAfter(start);
    const joinsPrevious = k > 0 && this.#ends[k - 1] === start;
    const joinsNext = this.#starts[k] === end;
    if (joinsPrevious && joinsNext) {
      this.#ends[k - 1] = this.#ends[k];
      this.#splice(k, 1);
    } else if (joinsPrevious) this.#ends[k - 1] = end;
    else if (joinsNext) this.#starts[k] = start;
    else this.#splice(k, 0, start, end);
  }

  /** Takes the range that ends at `end`; returns its start, or `end` if there is none. */
  takeEnd(end: number): number {
    if (this.#ends.at(-1) !== end) return end;
    this.#ends.pop();
    return this.#starts.pop()!;
  }

  /** Takes [from, to) out of range `k`, which contains it. */
  #remove(k: number, from: number, to: number): void {
    const [start, end] = [this.#starts[k], this.#ends[k]];
    const rest = [[start, from], [to, end]].filter(([a, b]) => a < b);
    this.#splice(k, 1);
    rest.forEach(([a, b], n) => this.#splice(k + n, 0, a, b));
  }

  /** Replaces `count` ranges from index `k` on by a range, if one is given. */
  #splice(k: number, count: number, start?: number, end?: number): void {
    this.#starts.splice(k, count, ...(start === undefined ? [] : [start]));
    this.#ends.splice(k, count, ...(end === undefined ? [] : [end]));
  }

  /** The index of the first range that begins after `address`. */
  #indexAfter(address: number): number {
    let low = 0;
    let high = this.#starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#starts[middle] <= address) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
