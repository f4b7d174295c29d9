/**
 * Core dumps as files. In: the path that `--coredump` gives, and the error that ended a run. Out: the file, if the
 * error is a trap, and a line that reports it. Invariant: an existing file at the path is replaced as a whole or stays
 * as it is, a guest cannot redirect the file to another directory, and a dump that cannot be written does not hide the
 * trap.
 */
import { realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { TrapError } from "@waft/engine";
import { FileFailure, oneLine } from "../base/failure.ts";
import { replaceFile } from "../base/replace_file.ts";

/** The trap that ended a run; undefined for other errors. */
function trapOf(error: unknown): TrapError | undefined {
  const cause = error instanceof FileFailure ? error.cause : error;
  return cause instanceof TrapError ? cause : undefined;
}

/**
 * The directory of a file without symbolic links, or the error of finding it. A guest that can write above the
 * directory could replace it by a symbolic link during the run.
 */
function directoryOf(path: string): string | Error {
  try {
    return realpathSync(dirname(path));
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Writes the file of a dump. Throws if its directory is not the one from before the run. */
function writeDump(path: string, before: string | Error, dump: Uint8Array): void {
  if (before instanceof Error) throw before;
  const now = directoryOf(path);
  if (now !== before) throw new Error(`the directory of ${path} was replaced during the run`);
  // The memory of a program may hold secrets.
  replaceFile(join(before, basename(path)), dump, 0o600);
}

/**
 * Returns a function that writes the core dump of a trap to `path`; only the first call with a trap does. `note` gets a
 * line about the result.
 */
export function coredumpWriter(path: string, program: string, note: (line: string) => void): (error: unknown) => void {
  let isWritten = false;
  const before = directoryOf(path);
  return (error) => {
    const trap = trapOf(error);
    if (trap === undefined || isWritten) return;
    isWritten = true;
    try {
      writeDump(path, before, trap.coredump(program));
      note(`core dump written to ${oneLine(path)}`);
    } catch (failure) {
      const message = failure instanceof Error ? failure.message : String(failure);
      note(`no core dump was written: ${oneLine(message)}`);
    }
  };
}
