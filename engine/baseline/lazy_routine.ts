/**
 * Machine code that compiles a lazy body without JavaScript: the first call of a function leads here, and continues in
 * the function's code. In: a block of words per image (LAZY_BLOCK), and the kernel as machine code with the module's
 * tables and bodies in its memory. Out: the code behind the rest of the image, its address in the function's slot, and
 * a row in the kernel's journal, which JavaScript reads before it looks at the image again.
 *
 * Invariants: no other thread executes the image, as for all lazy bodies (lazy_bodies.ts); pages are never writable and
 * executable at once; all registers but r11 are unchanged. The kernel runs on its own stack. If it needs the driver, if
 * it traps, or if the system refuses access to the pages, the call continues at SLOW with all registers unchanged.
 * Linux only: the routine makes system calls by number.
 */
/** Offsets in the block. */
export const LAZY_BLOCK = {
  /** Where first calls continue: the routine, or SLOW. */
  ROUTINE: 0,
  /** The code that lets JavaScript compile the function, whose index is on the stack. */
  SLOW: 8,
  /** The kernel's VM context, `compileNext`, the highest address of its stack, and its memory. */
  CONTEXT: 16,
  CODE: 24,
  STACK: 32,
  MEMORY: 40,
  /** The address of the image, and the offset at which its next code begins. */
  IMAGE: 48,
  NEXT: 56,
  /** The address of the slots. */
  SLOTS: 64,
  /** The address of `trap` in the routine. */
  TRAP: 72,
  /** Saved by the routine: its stack pointer, and two words of the kernel's context. */
  SAVED_SP: 80,
  TRAP_EXIT_BEFORE: 88,
  TAIL_RETURN_BEFORE: 96,
  /** 1 after the system has refused access: the last row of the journal has no code. */
  REFUSED: 104,
  SIZE: 112,
} as const;

/** The kernel's part of a block. */
export interface LazyRoutine {
  readonly routine: number;
  readonly trap: number;
  readonly context: number;
  readonly code: number;
  readonly stack: number;
  readonly memory: number;
}
