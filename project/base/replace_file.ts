/**
 * Writes a file completely or not at all, synchronously. In: a path, its content and its permissions. Out: the file.
 * Invariant: the content is written to a new file with an unguessable name, so links that others place in the directory
 * are not followed, and it replaces an existing file only when it is complete.
 */
import { realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { randomHex } from "./integrity.ts";

/** Writes `content` to `path`. Throws the errors of the file system, which name `path`. */
export function replaceFile(path: string, content: Uint8Array | string, mode = 0o666): void {
  const temporary = `${path}.${randomHex(12)}.tmp`;
  try {
    writeFileSync(temporary, content, { mode, flag: "wx" });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    if (error instanceof Error) error.message = error.message.replaceAll(temporary, path);
    throw error;
  }
}

/**
 * Plans a file that is written after a guest has run, and returns the function that writes it. Its directory is found
 * now: a guest that can write above it could replace it by a symbolic link. Writing throws the errors of the file
 * system, those of finding the directory included, and an Error if the directory has been replaced.
 */
export function planFile(path: string): (content: Uint8Array | string, mode?: number) => void {
  const before = directoryOf(path);
  return (content, mode) => {
    if (before instanceof Error) throw before;
    if (directoryOf(path) !== before) throw new Error(`the directory of ${path} was replaced during the run`);
    replaceFile(join(before, basename(path)), content, mode);
  };
}

/** The directory of a file without symbolic links, or the error of finding it. */
function directoryOf(path: string): string | Error {
  try {
    return realpathSync(dirname(path));
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
