/**
 * The error that carries proc_exit. In: the exit status. Out: an error that compiled code does not catch, for the
 * guest's caller.
 */
import { markUncatchable } from "../base/errors.ts";

/** Thrown through the guest by proc_exit; compiled code does not catch it. */
export class WasiExit extends Error {
  /** "WasiExit". */
  override name = "WasiExit";
  /** The exit status: an unsigned 32-bit number. */
  readonly status: number;
  /** The error for `status`. */
  constructor(status: number) {
    super(`The program ended with status ${status}`);
    this.status = status;
    markUncatchable(this);
  }
}
