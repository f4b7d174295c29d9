/**
 * The mode of code: the settings that translation and the baseline compiler test at instructions, as bits of one word.
 * In: nothing. Out: a bit for each. The kernel has them as generated constants (`deno task build:baseline`), the
 * description of a module as one word (translate/describe_module.ts): a new bit needs nothing there.
 */

/** Bits of the mode. */
export const MODE = {
  EXPLICIT_BOUNDS: 1,
  /** The prologue checks the depth of the stack instead of touching a guard page. */
  STACK_FENCE: 2,
  INTERRUPTIBLE: 4,
  FUEL: 8,
  DETERMINISTIC: 16,
  /** Memory 0 is the whole address space, and no access to it is checked: intrinsic modules. */
  UNCHECKED: 32,
  /** NaNs are those that the processor makes; else deterministic code makes them canonical. */
  OWN_NANS: 64,
  /** Indices of tables and checked addresses of memories are masked against misprediction of their checks. */
  MASK_TABLES: 128,
  MASK_MEMORIES: 256,
  /** The stack rule of deterministic code is `logged`. */
  LOGGED_STACK: 512,
  /** Pure instructions have positions, too: for tools. */
  ALL_POSITIONS: 1024,
} as const;
