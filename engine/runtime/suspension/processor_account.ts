/**
 * Processor time that several calls share. In: the times at which slices of the calls begin and end, in milliseconds on
 * the clock of the thread (GuestThread.processorNow). Out: the time at which the budget is used up. Invariant: slices
 * nested in each other are counted once.
 */

/** A budget of processor time, shared by the calls of {@linkcode startCall} that receive it. */
export class ProcessorAccount {
  /** The whole budget in milliseconds. */
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

  /** Whether no time is left. */
  get isUsedUp(): boolean {
    return this.#left <= 0;
  }

  /** The milliseconds that are left, at least 0; while a slice runs, those at its beginning. */
  get left(): number {
    return Math.max(0, this.#left);
  }

  /** Records that a slice begins. Returns the time at which the budget is used up. */
  begin(now: number): number {
    if (this.#depth++ === 0) this.#end = now + this.#left;
    return this.#end;
  }

  /** Records that the innermost slice ends. */
  finish(now: number): void {
    this.#left = this.#end - now;
    this.#depth--;
  }
}
