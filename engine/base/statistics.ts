/**
 * Optimization statistics: how often each optimization applied during one compilation. In: one `count` per application.
 * Out: counts by key, which compiled modules report and artifacts store. Invariant: counting never influences the code.
 */

/** Counts of one compilation, by key of the `optimizations` setting. */
export class Statistics {
  #counts: Record<string, number> = {};

  /** Adds `times` applications of `key`. */
  count(key: string, times: number = 1): void {
    if (times > 0) this.#counts[key] = (this.#counts[key] ?? 0) + times;
  }

  /** The count of `key`. */
  of(key: string): number {
    return this.#counts[key] ?? 0;
  }

  /** Adds the counts of another thread's part of the compilation. */
  add(counts: Readonly<Record<string, number>>): void {
    for (const [key, times] of Object.entries(counts)) this.count(key, times);
  }

  /** A copy of the counts, with keys in ascending order. */
  snapshot(): Readonly<Record<string, number>> {
    return Object.fromEntries(Object.entries(this.#counts).sort(([a], [b]) => a < b ? -1 : 1));
  }

  /** Restores the counts of an earlier {@linkcode snapshot}, after work was discarded. */
  restore(counts: Readonly<Record<string, number>>): void {
    this.#counts = { ...counts };
  }
}
