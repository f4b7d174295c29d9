/**
 * Finds the root of the project that a directory belongs to.
 *
 * In: a start directory. Out: the nearest directory upwards with a `waft.json`, never across a mount point.
 * Invariant: the contents of manifest and lockfile decide which code runs, so both files and their directory belong to
 * the user or to root, and no other user can write them. Separate from project.ts because every `waft run` looks for a
 * project and few find one.
 */
import { linkFacts, linkTarget } from "@waft/engine/internal/host/files";
import { replaceableBy, writableBy } from "@waft/engine/internal/host/safe_path";
import { fail, type ProjectError } from "./base/diagnostic.ts";
import { fileStatus } from "./base/file_status.ts";
import type { Judge } from "./base/files.ts";
import { isDeclaredSafe, SAFE_DIRECTORIES } from "./base/own_file.ts";
import { absolutePath, joinPaths as join, parentOf } from "./base/system_path.ts";
import { LOCK_FILE, MANIFEST_FILE } from "./base/constants.ts";

/** Throws when other users could have written the file or directory, or could replace the target of a link. */
function requireSafeFile(path: string): void {
  const status = fileStatus(path);
  const danger = status === undefined ? undefined : writableBy(status);
  if (danger !== undefined) throw unsafe(path, danger);
  if (status?.kind !== "file" || linkFacts(path).kind === "file") return;
  const above = replaceableBy(absolutePath(linkTarget(path), parentOf(path)));
  if (above !== undefined) throw unsafe(above.path, above.reason);
}

/** Throws when other users could have written the project: its directory, manifest or lockfile. */
function requireSafe(directory: string): void {
  if (isDeclaredSafe(directory)) return;
  for (const path of [directory, join(directory, MANIFEST_FILE), join(directory, LOCK_FILE)]) requireSafeFile(path);
}

/**
 * Judges an open file of the project at `root`: another user who can rename a directory above the project can exchange
 * it after the search.
 */
export function projectJudge(root: string, path: string): Judge {
  return (status) => {
    const danger = isDeclaredSafe(root) ? undefined : writableBy(status);
    if (danger !== undefined) throw unsafe(path, danger);
  };
}

function unsafe(path: string, danger: string): ProjectError {
  return fail("project.unsafe", `${path} ${danger}, who could control the code that runs here`, {
    file: path,
    help:
      `restrict it to your user (chown, chmod go-w), use --bare with \`waft run\`, or name its directory in ${SAFE_DIRECTORIES}`,
  });
}

/**
 * The root of the project that a directory belongs to, or undefined without a project. Throws when other users could
 * have written the project.
 */
export function findProjectRoot(start: string): string | undefined {
  let directory = absolutePath(start);
  const first = fileStatus(directory);
  for (;;) {
    if (fileStatus(join(directory, MANIFEST_FILE)) !== undefined) {
      requireSafe(directory);
      return directory;
    }
    const parent = parentOf(directory);
    if (parent === directory) return undefined;
    const status = fileStatus(parent);
    if (status === undefined || status.device !== first?.device) return undefined;
    // A manifest that others planted above must not even stop the work below it.
    if (writableBy(status) !== undefined && !isDeclaredSafe(parent)) return undefined;
    directory = parent;
  }
}

/** The same as a promise, for callers that wait for other files anyway. */
// deno-lint-ignore require-await
export async function findProject(start: string): Promise<string | undefined> {
  return findProjectRoot(start);
}

/** Finds the project or throws. `directory` is `--project`, which must hold the manifest itself. */
// deno-lint-ignore require-await
export async function requireProject(start: string, directory?: string): Promise<string> {
  if (directory !== undefined) {
    const root = absolutePath(directory, start);
    if (fileStatus(join(root, MANIFEST_FILE)) === undefined) {
      throw fail("project.missing", `${root} has no ${MANIFEST_FILE}`, { help: "run `waft init` there" });
    }
    requireSafe(root);
    return root;
  }
  const root = findProjectRoot(start);
  if (root === undefined) {
    throw fail("project.missing", `no ${MANIFEST_FILE} in ${absolutePath(start)} or above`, {
      help: "run `waft init`, or pass --project",
    });
  }
  return root;
}
