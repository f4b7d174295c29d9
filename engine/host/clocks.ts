/**
 * Clocks and timers of the host as they are when this module is loaded. Programs replace the global ones, as test
 * frameworks do with fake timers; a deadline must not depend on a clock that stands still.
 *
 * In: nothing. Out: times in milliseconds, and calls at later times.
 */
import { nodeModule } from "./process.ts";

/** The current time in milliseconds, on the monotonic clock of `performance.now()`. */
export const now: () => number = performance.now.bind(performance);
/** The current date in milliseconds since 1970. */
export const dateNow: () => number = Date.now;
/** Starts a timer. */
export const setTimer: typeof setTimeout = setTimeout;
/** Stops a timer. */
export const clearTimer: typeof clearTimeout = clearTimeout;

type SetImmediate = (action: () => void) => unknown;

/** On Deno, reading the global initializes the Node compatibility layer, so that waits for the first use. */
let immediate: SetImmediate | undefined = "Deno" in globalThis
  ? undefined
  : (globalThis as { setImmediate?: SetImmediate }).setImmediate;

/** Calls `action` in the next turn of the event loop. */
export function inNextTurn(action: () => void): void {
  immediate ??= nodeModule("node:timers").setImmediate as SetImmediate;
  immediate(action);
}
