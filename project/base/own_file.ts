/**
 * Refuses configuration files, policies and trust records that another user of the machine could have written: they
 * decide which authority a plugin gets.
 *
 * In: absolute paths. Out: nothing, or a ProjectError that names the file or directory and its owner. Invariant:
 * a file passes only if its parent directories pass as well, because the owner of a directory can rename or replace its
 * entries. Directories listed in WAFT_SAFE_DIRECTORIES are exempt.
 */
import { environmentVariable } from "@waft/engine/internal/host/process";
import { replaceableBy, writableBy } from "@waft/engine/internal/host/safe_path";
import { fail } from "./diagnostic.ts";
import { fileStatus } from "./file_status.ts";
import { isWithin, joinPaths, parentOf } from "./system_path.ts";

/** Directories, separated by colons, that are safe, with their subdirectories, regardless of the owner. */
export const SAFE_DIRECTORIES = "WAFT_SAFE_DIRECTORIES";

/** Whether the environment declares a directory safe. */
export function isDeclaredSafe(directory: string): boolean {
  const list = environmentVariable(SAFE_DIRECTORIES) ?? "";
  return list.split(":").filter((safe) => safe.startsWith("/")).some((safe) => isWithin(directory, joinPaths(safe)));
}

/**
 * Throws when another user could have written the file at `path`, or could replace it by renaming a directory above it.
 * A file that does not exist is judged by its directories.
 */
export function requireOwnFile(path: string): void {
  if (isDeclaredSafe(parentOf(path))) return;
  for (const each of [path, parentOf(path)]) {
    const status = fileStatus(each);
    const danger = status === undefined ? undefined : writableBy(status);
    if (danger !== undefined) refuse(each, danger);
  }
  const above = replaceableBy(path);
  if (above !== undefined) refuse(above.path, above.reason);
}

function refuse(path: string, danger: string): never {
  throw fail("machine.unsafe", `${path} ${danger}, who could control waft's configuration`, {
    file: path,
    help:
      `restrict it to your user (chown, chmod go-w), set WAFT_HOME to a directory of yours, or name it in ${SAFE_DIRECTORIES}`,
  });
}
