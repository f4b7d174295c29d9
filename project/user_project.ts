/**
 * The user's own plugins: a manifest and a lockfile in the configuration folder, which belong to no project. In: the
 * machine's paths. Out: the folder. Invariant: as for a project, other users can neither write the files nor replace
 * them. Separate from project.ts because every `waft run` with unusual imports looks for the lockfile.
 */
import { mkdirSync } from "node:fs";
import { LOCK_FILE, MANIFEST_FILE } from "./base/constants.ts";
import { fail } from "./base/diagnostic.ts";
import { DISK, type Files } from "./base/files.ts";
import { fileStatus } from "./base/file_status.ts";
import { requireOwnFile } from "./base/own_file.ts";
import { type MachinePaths, machinePaths } from "./base/paths.ts";
import { joinPaths as join } from "./base/system_path.ts";

/** The manifest of a user who has added no plugin yet. */
const EMPTY_MANIFEST = `{\n  "plugins": {}\n}\n`;

/** The folder of the user's manifest and lockfile, whether they exist or not. */
export function userFolder(paths: MachinePaths = machinePaths()): string {
  return join(paths.config, "user");
}

/** Whether the user has plugins. */
export function hasUserPlugins(paths?: MachinePaths): boolean {
  return fileStatus(join(userFolder(paths), LOCK_FILE)) !== undefined;
}

/** The folder, if the user has plugins. Throws if other users could have written the files. */
export function userPluginsFolder(paths?: MachinePaths): string | undefined {
  if (!hasUserPlugins(paths)) return undefined;
  const root = userFolder(paths);
  requireOwnFiles(root);
  return root;
}

/** The folder for a command; with `create`, an empty manifest is written if there is none. */
export async function requireUserFolder(create: boolean, paths?: MachinePaths, files: Files = DISK): Promise<string> {
  const root = userFolder(paths);
  const manifest = join(root, MANIFEST_FILE);
  if (fileStatus(manifest) === undefined) {
    if (!create) {
      throw fail("user.missing", "you have no plugins of your own", { file: manifest, help: "run `waft add --user`" });
    }
    mkdirSync(root, { recursive: true, mode: 0o700 });
    // Another process may have written it meanwhile.
    await files.create(manifest, new TextEncoder().encode(EMPTY_MANIFEST));
  }
  requireOwnFiles(root);
  return root;
}

function requireOwnFiles(root: string): void {
  for (const name of [MANIFEST_FILE, LOCK_FILE]) requireOwnFile(join(root, name));
}
