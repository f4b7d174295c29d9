/**
 * Processor time that several calls share. In: the moments at which slices of the calls begin and end, on the clock of
 * the thread. Out: the moment at which the time is up. Invariant: slices nested in each other are counted once.
 */

/** Processor time in milliseconds that the calls of {@linkcode startCall} which name it use up together. */
export class ProcessorAccount {
  /** The time that the calls were given. */
  readonly milliseconds: number;
  #left: number;
  #end = Infinity;
  #depth = 0;

  /** Throws RangeError unless `milliseconds` is a number of at least 0. */
  constructor(milliseconds: number) {
    if (!(typeof milliseconds === "number" && milliseconds >= 0)) {
      throw new RangeError(`The processor time must be milliseconds, at least 0, not ${String(milliseconds)}`);
    }
    this.milliseconds = milliseconds;
    this.#left = milliseconds;
  }

  /** True if no time is left. */
  get isUsedUp(): boolean {
    return this.#left <= 0;
  }

  /** A slice begins. Returns the moment at which the time is up. */
  begin(now: number): number {
    if (this.#depth++ === 0) this.#end = now + this.#left;
    return this.#end;
  }

  /** The slice that began last ends. */
  finish(now: number): void {
    this.#left = this.#end - now;
    this.#depth--;
  }
}
