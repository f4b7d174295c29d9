/**
 * Sweeps after the JavaScript engine's own garbage collections: a value that JavaScript has passed to compiled code may
 * hold megabytes, so the number of values alone does not tell when a sweep is worth its time. In: the numbers of
 * values. Out: calls of a function that sweeps, when no JavaScript is on the stack. If sweeps free little, only each
 * 2nd, 4th, 8th… collection leads to another one, unless there are many new values.
 */

/** The maximum number of collections without a sweep. */
const MAX_PATIENCE = 1023;

/** The values that compiled code may refer to. */
interface SweptValues {
  /** The number of values. */
  count(): number;
  /** The number of those that were added since the last sweep. */
  added(): number;
  /** The number of values for which a sweep is worth its time. */
  least(): number;
  /** Frees the values that compiled code does not refer to. */
  sweep(): void;
}

export class GarbageSweeps {
  readonly #values: SweptValues;
  readonly #collections: FinalizationRegistry<undefined>;
  #isAwaiting = false;
  #patience = 0;
  #left = 0;

  constructor(values: SweptValues) {
    this.#values = values;
    this.#collections = new FinalizationRegistry(() => this.#collected());
  }

  /** Looks at the values after the next collection. Called when a value is added. */
  await(): void {
    if (this.#isAwaiting) return;
    this.#isAwaiting = true;
    this.#collections.register({}, undefined);
  }

  #collected(): void {
    this.#isAwaiting = false;
    const values = this.#values;
    const before = values.count();
    const least = values.least();
    if (before < least) return;
    this.await();
    if (values.added() < least && this.#left-- > 0) return;
    values.sweep();
    this.#patience = before - values.count() >= least ? 0 : Math.min(this.#patience * 2 + 1, MAX_PATIENCE);
    this.#left = this.#patience;
  }
}
