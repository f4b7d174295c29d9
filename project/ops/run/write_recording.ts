/**
 * Recordings as files. In: the path that `--record` gives, and the log of a run. Out: the file, and a line about it for
 * people. Invariant: an existing file at the path is replaced as a whole or stays as it is; a directory that does not
 * exist is reported before anything runs, and a guest cannot redirect the file to another directory.
 */
import { statSync } from "node:fs";
import { dirname } from "node:path";
import { oneLine, UsageError } from "../../base/failure.ts";
import { planFile } from "../../base/replace_file.ts";

/**
 * Returns a function that writes a log to `path`, and throws the errors of the file system; `note` gets a line about
 * the result. Throws UsageError if the directory of `path` does not exist.
 */
export function recordingWriter(path: string, note: (line: string) => void): (log: Uint8Array) => void {
  if (statSync(dirname(path), { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new UsageError(`--record: the directory of ${oneLine(path)} does not exist`);
  }
  const write = planFile(path);
  return (log) => {
    try {
      // The log has the memory that the host wrote, which may hold secrets.
      write(log, 0o600);
    } catch (failure) {
      // If the guest has failed, its error is the one that is reported.
      note(`no recording was written: ${oneLine(failure instanceof Error ? failure.message : String(failure))}`);
      throw failure;
    }
    note(`recording written to ${oneLine(path)}, ${log.length} bytes`);
  };
}
