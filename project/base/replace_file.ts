/**
 * Writes a file completely or not at all. In: a path, its content and its permissions. Out: the file.
 * Invariant: the content is written to a new file with an unguessable name, so links that others place in the directory
 * are not followed, and it replaces an existing file only when it is complete. After a failure nothing is left over.
 */
import {
  closeSync,
  fchmodSync,
  lstatSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { currentUser } from "@waft/engine/internal/host/process";
import type { Files } from "./files.ts";
import { randomHex } from "./integrity.ts";

/**
 * Writes `content` to `path`, with the permissions `mode`, or those that the umask leaves to new files. Throws the
 * errors of the file system, which name `path`.
 */
export function replaceFile(path: string, content: Uint8Array | string, mode?: number): void {
  const temporary = `${path}.${randomHex(12)}.tmp`;
  try {
    // Opened first: Deno's writeFileSync sets the permissions whatever the umask, so that others could write the file.
    const file = openSync(temporary, "wx", mode ?? 0o666);
    try {
      if (mode !== undefined) fchmodSync(file, mode);
      writeFileSync(file, content);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw aboutFile(error, temporary, path);
  }
}

/** The error about a temporary file as one about the file that it was to replace. */
export function aboutFile(error: unknown, temporary: string, path: string): unknown {
  if (error instanceof Error) Object.assign(error, { message: error.message.replaceAll(temporary, path), path });
  return error;
}

/**
 * Writes the output of a command to the file that the user names: a regular or new file completely or not at all, and
 * through a symbolic link; a pipe or a device as it is. Throws the errors of the file system.
 */
export function writeOutput(path: string, content: Uint8Array | string): void {
  const target = regularTarget(path);
  if (target === undefined) writeInPlace(path, content);
  else replaceFile(target.path, content, target.mode);
}

/** Writes to the pipe or device at a path, or to the new file that a dangling symbolic link names. */
function writeInPlace(path: string, content: Uint8Array | string): void {
  // Opened first, as in replaceFile.
  const file = openSync(path, "w", 0o666);
  try {
    writeFileSync(file, content);
  } finally {
    closeSync(file);
  }
}

/**
 * Throws for a symbolic link that another user has placed in a directory like /tmp. Linux refuses to follow such links,
 * but not to replace the files that they name.
 */
function requireOwnLink(path: string, owner: number): void {
  const { uid, mode } = statSync(dirname(path));
  const isOpen = (mode & 0o1002) === 0o1002;
  if (!isOpen || owner === uid || owner === currentUser()) return;
  throw new Error(`${path} is a symbolic link of another user (${owner}) in a directory that every user can write`);
}

/** The path without symbolic links, and the permissions to keep; undefined for anything but a regular or new file. */
function regularTarget(path: string): { readonly path: string; readonly mode?: number } | undefined {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined) return { path };
  if (status.isFile()) return { path, mode: status.mode & 0o777 };
  if (!status.isSymbolicLink()) return undefined;
  requireOwnLink(path, status.uid);
  let real: string;
  try {
    real = realpathSync(path);
  } catch {
    return undefined; // writing through a dangling link creates its target
  }
  return regularTarget(real);
}

/**
 * Writes a file completely or not at all: `bytes` go to a new file beside it, which then takes its name. Creates the
 * file if it does not exist. Throws the errors of the file system, with `path` as their path.
 */
export async function replaceWhole(files: Files, path: string, bytes: Uint8Array, mode?: number): Promise<void> {
  const temporary = `${path}.${randomHex(12)}.tmp`;
  try {
    await files.create(temporary, bytes, mode);
    await files.rename(temporary, path);
  } catch (error) {
    await files.remove(temporary).catch(() => {}); // the first error is the cause
    throw aboutFile(error, temporary, path);
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
