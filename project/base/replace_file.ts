/**
 * Writes a file completely or not at all, synchronously. In: a path, its content and its permissions. Out: the file.
 * Invariant: the content is written to a new file with an unguessable name, so links that others place in the directory
 * are not followed, and it replaces an existing file only when it is complete.
 */
import { renameSync, rmSync, writeFileSync } from "node:fs";
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
