/**
 * Turns of the event loop. In: loops of the host that may always be able to continue at once, so that only microtasks
 * lie between their steps. Out: a promise for the next turn once the current one has taken long enough. Invariant:
 * timers, signals and other guests run at least once in SLICE_MS of such a loop.
 */
import { setImmediate } from "node:timers";

/** The duration of a turn, as that of a slice of an interruptible call. */
const SLICE_MS = 8;

export class Turns {
  /** The time at which the current turn has taken long enough; undefined until a loop asks in this turn. */
  #end: number | undefined;

  /** The next turn, if a loop has to wait for it before its next step. */
  next(): Promise<void> | undefined {
    const now = performance.now();
    if (this.#end === undefined) {
      this.#end = now + SLICE_MS;
      setImmediate(() => this.#end = undefined);
    }
    return now < this.#end ? undefined : new Promise((resolve) => setImmediate(resolve));
  }
}
