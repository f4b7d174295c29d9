/**
 * The directories and environment variables that the user of this machine gives to the guests of a project, without
 * flags on every run.
 *
 * In: `projects` in the machine's `config.json`, which is keyed by directories of projects. Out: preopens and
 * variables for `waft run`. Invariants: a project gets only the entry of its own directory, so a copy, a moved project
 * or a clone elsewhere gets nothing. No content of a project can widen its entry: a symbolic link on the way to a
 * directory is refused, and guests get the directories that were opened here, not their paths.
 */
import { realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { ERRNO } from "@waft/engine/internal/wasi/abi";
import { WasiError } from "@waft/engine/internal/wasi/paths";
import { fail } from "./base/diagnostic.ts";
import { type MachinePaths, machinePaths } from "./base/paths.ts";
import { LinkedRoot, openRoot } from "./base/open_root.ts";
import { type ProjectWasi, readMachine } from "./packages/machine.ts";

/** The directories and variables of a project's guests. */
export interface MachineWasi {
  readonly preopens: readonly { readonly host: string; readonly guest: string; readonly descriptor?: number }[];
  readonly env: readonly (readonly [string, string])[];
}

/** The entry for the project at `root`; undefined without one. */
export async function machineWasi(
  root: string,
  paths: MachinePaths = machinePaths(),
): Promise<MachineWasi | undefined> {
  const { projects } = await readMachine(paths, {});
  const real = realpathSync(root);
  const entry = projects[real];
  if (entry === undefined) return undefined;
  const file = join(paths.config, "config.json");
  return {
    preopens: Object.entries(entry.dirs).map(([guest, host]) => ({
      guest,
      host: resolve(real, host),
      descriptor: openDirectory(real, host, file),
    })),
    env: Object.entries(entry.env),
  };
}

/** Opens the directory that an entry names; relative paths begin at the project. */
function openDirectory(root: string, host: string, file: string): number {
  try {
    return openRoot(root, host);
  } catch (error) {
    if (error instanceof LinkedRoot) throw fail("machine.value", error.message, { file, help: error.help });
    if (!(error instanceof WasiError)) throw error;
    const path = resolve(root, host);
    const reason = error.errno === ERRNO.noent ? "does not exist" : "cannot be opened as a directory";
    throw fail("machine.value", `the directory ${path} ${reason}`, { file });
  }
}

/** The names in an entry, for reports: values of variables may be secret. */
export function namesOf({ dirs, env }: ProjectWasi): { dirs: string[]; env: string[] } {
  return { dirs: Object.entries(dirs).map(([guest, host]) => `${host}::${guest}`), env: Object.keys(env) };
}
