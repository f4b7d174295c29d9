/**
 * The block of a thread's start routine (scripts/generate/programs/routines.ts), which runs one function of the
 * baseline tier's kernel. In: a block of words (KERNEL_THREAD) with the function, its context and its arguments. Out:
 * the function's result in the block, −1 after a trap.
 *
 * The thread blocks all signals, because their handlers expect a JavaScript thread, and runs the function on the
 * kernel's stack. A trap leaves through CONTEXT.TRAP_EXIT, which must be the address of `trap` in the routine;
 * CONTEXT.TAIL_RETURN must be the address of the block. Linux only: the routine makes a system call by number.
 */
/** Offsets in the block. */
export const KERNEL_THREAD = {
  CODE: 0,
  CONTEXT: 8,
  /** The highest address of the stack. */
  STACK: 16,
  MEMORY_BASE: 24,
  MEMORY_LENGTH: 32,
  FIRST: 40,
  SECOND: 48,
  RESULT: 56,
  /** The signal mask of the thread: all signals blocked. */
  SIGNALS: 64,
  SIZE: 72,
} as const;
