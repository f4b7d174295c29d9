/**
 * The error of a call that the operating system refuses. In: the call's name in C and its error number. Out: a
 * {@linkcode SystemError}, whose message ends with both.
 */
import { nameErrors } from "../../base/error_names.ts";
import { nodeModule } from "../process.ts";

/** Stands for an error number that could not be read; no system uses it. */
export const UNKNOWN_ERRNO = 4095;

/**
 * The operating system refused a call: memory, address space, descriptors or threads are used up, or a policy forbids
 * it. A RangeError, as the JavaScript API of WebAssembly throws for memory that cannot be allocated. The engine remains
 * usable, and a later attempt may succeed.
 */
export class SystemError extends RangeError {
  static {
    nameErrors(this.prototype, "SystemError");
  }
  /** The call's name in C, such as `mmap`. */
  readonly call: string;
  /** The error number of this system; 0 if the call reports none, or if it could not be read. */
  readonly errno: number;
  /** The name of the error number, such as `ENOMEM`; empty if it has none. */
  readonly code: string;

  /** Creates an error with a one-line `message` about a call that failed with `errno`. */
  constructor(message: string, call: string, errno: number) {
    const known = errno === UNKNOWN_ERRNO ? 0 : errno;
    const code = errnoName(known);
    super(`${message} (${call} failed${known === 0 ? "" : ` with ${code === "" ? `error ${known}` : code}`})`);
    this.call = call;
    this.errno = known;
    this.code = code;
  }
}

function errnoName(errno: number): string {
  const found = Object.entries(nodeModule("node:os").constants.errno).find(([, number]) => number === errno);
  return found?.[0] ?? "";
}
