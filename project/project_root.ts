/**
 * Where the project is.
 *
 * In: a directory to start from. Out: the nearest ancestor with `waft.json`, never across a mount point, nor into a
 * directory of another user, who could plant a manifest for everything below it. Apart from project.ts, because every
 * `waft run` looks for a project and few find one.
 */
import { currentUser, systemName } from "@waft/engine/host/process";
import { fail } from "./base/diagnostic.ts";
import { fileStatus } from "./base/file_status.ts";
import type { Files } from "./base/files.ts";
import { absolutePath, joinPaths as join, parentOf } from "./base/posix_path.ts";
import { MANIFEST_FILE } from "./base/site.ts";

/** What searching needs of the operating system's files. */
type StatusFiles = Pick<Files, "status">;

// deno-lint-ignore require-await
const STATUS: StatusFiles = { status: async (path) => fileStatus(path) };

/** Finds the project that a directory belongs to; undefined when there is none. */
export async function findProject(start: string, files: StatusFiles = STATUS): Promise<string | undefined> {
  let directory = absolutePath(start);
  const first = await files.status(directory);
  for (;;) {
    if (await files.status(join(directory, MANIFEST_FILE)) !== undefined) return directory;
    const parent = parentOf(directory);
    if (parent === directory) return undefined;
    const status = await files.status(parent);
    // Someone else's directory could plant a manifest for everything below it.
    const foreign = status !== undefined && systemName() !== "win32" && status.uid !== currentUser() &&
      status.uid !== 0;
    if (status === undefined || status.device !== first?.device || foreign) return undefined;
    directory = parent;
  }
}

/** Finds the project or throws. `directory` is `--project`, which must hold the manifest itself. */
export async function requireProject(start: string, directory?: string, files: StatusFiles = STATUS): Promise<string> {
  if (directory !== undefined) {
    const root = absolutePath(directory, start);
    if (await files.status(join(root, MANIFEST_FILE)) === undefined) {
      throw fail("project.missing", `${root} has no ${MANIFEST_FILE}`, { help: "run `waft init` there" });
    }
    return root;
  }
  const root = await findProject(start, files);
  if (root === undefined) {
    throw fail("project.missing", `no ${MANIFEST_FILE} in ${absolutePath(start)} or above`, {
      help: "run `waft init`, or pass --project",
    });
  }
  return root;
}
