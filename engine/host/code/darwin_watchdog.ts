/**
 * The watchdog's state on macOS, behind the words that watchdog.ts describes: what its machine code
 * (generated_darwin_code.ts) calls and waits for.
 */

/** The functions, in the order of their words from FUNCTIONS on. */
export const WATCHDOG_FUNCTIONS = [
  "pthread_sigmask",
  "clock_gettime_nsec_np",
  "dispatch_time",
  "dispatch_semaphore_wait",
  "dispatch_semaphore_signal",
  "mprotect",
] as const;

/** Byte offsets in the shared state: the semaphore, and the first of the functions' addresses. */
export const DARWIN_WATCH = { SEMAPHORE: 72, FUNCTIONS: 80 } as const;
