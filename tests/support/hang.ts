/**
 * The limit of tests that a wait ends. In: nothing. Out: a time that a busy machine does not exceed, while a wait that
 * never ends does. Tests of exact times would fail on busy machines.
 */
export const HANG_MS = 300_000;
