/**
 * Core dumps as files. In: the path that `--coredump` gives, and the error that ended a run. Out: the file, if the
 * error is a trap, and a line that reports it. Invariant: an existing file at the path is replaced as a whole or stays
 * as it is, a guest cannot redirect the file to another directory, and a dump that cannot be written does not hide the
 * trap.
 */
import { TrapError } from "@waft/engine";
import { FileFailure, oneLine } from "../../base/failure.ts";
import { planFile } from "../../base/replace_file.ts";

/** The trap that ended a run; undefined for other errors. */
function trapOf(error: unknown): TrapError | undefined {
  const cause = error instanceof FileFailure ? error.cause : error;
  return cause instanceof TrapError ? cause : undefined;
}

/**
 * Returns a function that writes the core dump of a trap to `path`; only the first call with a trap does. `note` gets a
 * line about the result.
 */
export function coredumpWriter(path: string, program: string, note: (line: string) => void): (error: unknown) => void {
  let isWritten = false;
  const write = planFile(path);
  return (error) => {
    const trap = trapOf(error);
    if (trap === undefined || isWritten) return;
    isWritten = true;
    try {
      // The memory of a program may hold secrets.
      write(trap.coredump(program), 0o600);
      note(`core dump written to ${oneLine(path)}`);
    } catch (failure) {
      const message = failure instanceof Error ? failure.message : String(failure);
      note(`no core dump was written: ${oneLine(message)}`);
    }
  };
}
