/**
 * Core dumps as files. In: the path that `--coredump` gives, and the error that ended a run. Out: the file, if the error
 * is a trap, and a line about it for people. Invariant: an existing file at the path is replaced as a whole or stays as
 * it is, and a dump that cannot be written does not hide the trap.
 */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import process from "node:process";
import { TrapError } from "@waft/engine";
import { FileFailure, oneLine } from "../base/failure.ts";

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
  return (error) => {
    const trap = trapOf(error);
    if (trap === undefined || isWritten) return;
    isWritten = true;
    try {
      replaceFile(path, trap.coredump(program));
      note(`core dump written to ${oneLine(path)}`);
    } catch (failure) {
      const message = failure instanceof Error ? failure.message : String(failure);
      note(`no core dump was written: ${oneLine(message.replace(scratchOf(path), path))}`);
    }
  };
}

function scratchOf(path: string): string {
  return `${path}.${process.pid}.tmp`;
}

function replaceFile(path: string, bytes: Uint8Array): void {
  const scratch = scratchOf(path);
  try {
    // The memory of a program may hold secrets.
    writeFileSync(scratch, bytes, { mode: 0o600 });
    renameSync(scratch, path);
  } catch (error) {
    rmSync(scratch, { force: true });
    throw error;
  }
}
