/**
 * The status of the compiled compiler: a function that cannot be compiled ends in a trap. In: the exports of its
 * module, and a part of the work. Out: its result, or the error that the TypeScript form throws.
 */
import { FAILURE, failureOf } from "../../../engine/translate/failures.ts";

/** The exports that concern the state of the whole module. */
export interface StatusExports {
  /** Drops all memory but that of the constants. */
  reset(): void;
  /** Sets the limit of the memory in bytes, constants included; at most 2^31. */
  limitMemory(bytes: number): void;
  /** After a trap: the failure, its subject, its offset. */
  failed(n: number): number;
}

/**
 * The result of `action`. If it traps, drops all memory, since the trap has left the state half-way, calls `restore`,
 * and throws the error that the trap stands for.
 */
export function attempt<Result>(exports: StatusExports, action: () => Result, restore: () => void): Result {
  try {
    return action();
  } catch (error) {
    const [failure, subject, offset] = [0, 1, 2].map((n) => exports.failed(n));
    exports.reset();
    restore();
    throw failure === FAILURE.NONE ? error : failureOf(failure, subject, offset);
  }
}
