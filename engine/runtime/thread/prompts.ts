/**
 * Prompts: the handlers of `resume` instructions in progress, one record each (continuations.ts).
 */

/** The handlers of a `resume` in progress. */
export interface Prompt {
  /**
   * The stack pointer of the code that is parked in `resume`, as a distance from the lowest address of the stack; while
   * its frames are off the stack, as their distance from it to the end of the frames.
   */
  sp: number;
  /** Identities of tags: first those of the handlers with labels, then those of switches; the rest is unused. */
  readonly tags: number[];
  /** The numbers of handlers with labels, and of all. */
  labels: number;
  handlers: number;
  /** The number of results of the computation. */
  results: number;
  /** The depth that the code parked in `resume` leaves to the computation (THREAD.DEPTH_LEFT), if it counts. */
  depth: number;
  /** Objects that must live as long as the computation that it has resumed. */
  holders: readonly object[];
}
