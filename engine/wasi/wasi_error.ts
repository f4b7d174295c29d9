/**
 * Errors of WASI functions. In: an error number of WASI, or the result of a system call. Out: a {@linkcode WasiError},
 * which the wrapper of each function (functions.ts) turns into the function's result.
 */
import { errnoOf } from "./abi.ts";

/** A failure with its WASI error number. */
export class WasiError extends Error {
  readonly errno: number;
  constructor(errno: number) {
    super(`WASI error ${errno}`);
    this.errno = errno;
  }
}

/** The result of a system call. Throws WasiError when the call failed. */
export function checked(result: number): number {
  if (result < 0) throw new WasiError(errnoOf(result));
  return result;
}
