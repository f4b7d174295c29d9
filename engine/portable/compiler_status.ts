/**
 * The status of the compiled form of the compiler: a function that cannot be compiled ends in a trap. In: the exports
 * of its module, after a trap. Out: the failure.
 */
import { FAILURE, failureOf } from "../translate/failures.ts";
import type { UnsupportedError } from "../base/errors.ts";
import type { CompilerExports } from "./compiler_interface.ts";

/** The exports that concern the state of the whole module. */
type StatusExports = Pick<CompilerExports, "reset" | "limitMemory" | "failed">;

/** Why a function cannot be compiled: in this form alone, or in any. */
interface Failure {
  /** The memory was too small, or the cause is unknown: the stack was too small. */
  readonly isOfThisForm: boolean;
  /** The error of the TypeScript form, or that for the memory; undefined if the cause is unknown. */
  readonly error: UnsupportedError | undefined;
}

/** Reads the failure that a trap stands for. The state is half-way: the memory must be dropped after it. */
export function readFailure(exports: StatusExports): Failure {
  const [failure, subject, offset] = [0, 1, 2].map((n) => exports.failed(n));
  if (failure === FAILURE.NONE) return { isOfThisForm: true, error: undefined };
  return { isOfThisForm: failure === FAILURE.MEMORY_FULL, error: failureOf(failure, subject, offset) };
}
