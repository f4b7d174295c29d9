/**
 * Writes completions to the directory where a shell looks for those of a user. In: the shell and its script. Out: the
 * file, and a message with its path and the steps that are left to the user.
 */
import { dirname } from "node:path";
import { environmentVariable } from "@waft/engine/internal/host/process";
import { FileFailure } from "../../base/failure.ts";
import { DISK } from "../../base/files.ts";
import { OWN_DIRECTORY_MODE, thisMachine } from "../../base/paths.ts";
import { replaceWhole } from "../../base/replace_file.ts";
import { isAbsolutePath, joinPaths } from "../../base/system_path.ts";

/** A directory of the user: the variable's if that is absolute, as XDG demands, or the default below the home. */
function userDirectory(variable: string, ...usual: string[]): string {
  const given = environmentVariable(variable);
  return given !== undefined && isAbsolutePath(given) ? given : joinPaths(thisMachine().home, ...usual);
}

const PLACES: Readonly<Record<string, () => string>> = {
  bash: () => joinPaths(userDirectory("XDG_DATA_HOME", ".local", "share"), "bash-completion", "completions", "waft"),
  zsh: () => joinPaths(userDirectory("XDG_DATA_HOME", ".local", "share"), "zsh", "site-functions", "_waft"),
  fish: () => joinPaths(userDirectory("XDG_CONFIG_HOME", ".config"), "fish", "completions", "waft.fish"),
};

/** Writes the script for `shell`, which has a place. Throws FileFailure. */
export async function installCompletion(shell: string, script: string): Promise<string[]> {
  const file = PLACES[shell]();
  const folder = dirname(file);
  try {
    await DISK.makeDirectory(folder, OWN_DIRECTORY_MODE);
    await replaceWhole(DISK, file, new TextEncoder().encode(script), 0o644);
  } catch (error) {
    throw new FileFailure(file, error);
  }
  // zsh has no such directory in its path.
  const remains = shell === "zsh" ? [`Add to ~/.zshrc, before compinit: fpath+=("${folder}")`] : [];
  return [`Completions of ${shell} are in ${file}`, ...remains];
}
