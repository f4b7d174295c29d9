/**
 * How deterministic code limits the depth of calls. In: the option `stack`. Out: the rule that the compiler, the
 * runtime and recordings follow.
 */

/**
 * `counted`: a count that the bytes of the module decide, so that every machine exhausts the stack at the same call.
 * `native`: the stack pointer, as in other code; a recording has the call at which the stack was exhausted. `logged`,
 * for replays of such recordings: code counts activations, and calls the runtime at depth THREAD.DEPTH_STOP.
 */
export type StackRule = "counted" | "native" | "logged";

/** The rules of the option `stack`; recordings have their indices. */
export const STACK_RULES = ["counted", "native"] as const satisfies readonly StackRule[];
