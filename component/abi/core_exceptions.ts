/**
 * Exceptions of core code that leave a component. In: a value that core code threw. Out: the error for its callers.
 */
import { TrapError, WasmException } from "@waft/engine";

/**
 * The error with which the code of a component ends: an exception of core code has no meaning for its callers, so it is
 * a trap.
 */
export function leaving(error: unknown): unknown {
  return WasmException.is(error) ? new TrapError("an exception left the code of a component") : error;
}
