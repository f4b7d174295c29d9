/**
 * Host values that compiled code holds as externref: each is a handle, a positive multiple of 8 (so that null is 0 and low
 * bits stay free for tagging). The same object gets the same handle while it is alive in the table. Handles are freed by a mark and sweep that
 * the runtime starts when no compiled code is on the stack: then globals and tables are the only roots.
 */

/** Called with `mark` for every handle that is still reachable. */
export type HandleRoots = (mark: (handle: number) => void) => void;

/** Stands for −0 among the keys, which a Map takes for 0. */
const NEGATIVE_ZERO = Symbol("-0");

function keyOf(value: unknown): unknown {
  return Object.is(value, -0) ? NEGATIVE_ZERO : value;
}

export class HandleTable {
  #values: unknown[] = [undefined];
  #marks: Uint8Array = new Uint8Array(64);
  #free: number[] = [];
  readonly #ids = new Map<unknown, number>();
  #threshold = 1024;

  /** The handle of `value`; null is 0. */
  handleOf(value: unknown): number {
    if (value === null) return 0;
    const key = keyOf(value);
    const known = this.#ids.get(key);
    if (known !== undefined) return known * 8;
    const id = this.#free.pop() ?? this.#values.length;
    this.#values[id] = value;
    this.#ids.set(key, id);
    return id * 8;
  }

  /** The value of a handle. */
  valueOf(handle: number): unknown {
    return handle === 0 ? null : this.#values[handle / 8];
  }

  /** How many handles are in use. */
  get size(): number {
    return this.#ids.size;
  }

  /** Is it time to sweep? */
  get full(): boolean {
    return this.#ids.size >= this.#threshold;
  }

  /** Frees every handle that `roots` does not mark. */
  sweep(roots: HandleRoots): void {
    const count = this.#values.length;
    if (this.#marks.length < count) this.#marks = new Uint8Array(count * 2);
    const marks = this.#marks.fill(0);
    roots((handle) => {
      const id = handle / 8;
      if (id > 0 && id < count) marks[id] = 1;
    });
    for (let id = 1; id < count; id++) {
      if (marks[id] === 1) continue;
      const key = keyOf(this.#values[id]);
      if (this.#ids.get(key) !== id) continue; // free already
      this.#ids.delete(key);
      this.#values[id] = undefined;
      this.#free.push(id);
    }
    this.#threshold = Math.max(1024, this.#ids.size * 2);
  }
}
