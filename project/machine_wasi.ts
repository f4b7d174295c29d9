/**
 * The directories and environment variables that the user of this machine gives to the guests of a project, without
 * flags on every run.
 *
 * Input: `projects` in the machine's `config.json`, which is keyed by directories of projects. Output: preopens and
 * variables for `waft run`. Invariants: a project gets only the entry of its own directory, so a copy, a moved project
 * or a clone elsewhere gets nothing. No content of a project can widen its entry: a directory inside the project that a
 * symbolic link leads out of it is refused.
 */
import { realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { fail } from "./base/diagnostic.ts";
import { type MachinePaths, machinePaths } from "./base/paths.ts";
import { isWithin } from "./base/system_path.ts";
import { type ProjectWasi, readMachine } from "./packages/machine.ts";

/** The directories and variables of a project's guests. */
export interface MachineWasi {
  readonly preopens: readonly { readonly host: string; readonly guest: string }[];
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
    preopens: Object.entries(entry.dirs).map(([guest, host]) => ({ guest, host: hostDirectory(real, host, file) })),
    env: Object.entries(entry.env),
  };
}

/** The directory that an entry names; relative paths begin at the project. */
function hostDirectory(root: string, host: string, file: string): string {
  const path = resolve(root, host);
  if (!isWithin(path, root)) return path;
  let real: string;
  try {
    real = realpathSync(path);
  } catch {
    throw fail("machine.value", `the directory ${path} does not exist`, { file });
  }
  if (isWithin(real, root)) return path;
  throw fail("machine.value", `${path} is a symbolic link out of the project, to ${real}`, {
    file,
    help: "name that directory itself if guests may use it",
  });
}

/** The names in an entry, for reports: values of variables may be secret. */
export function namesOf({ dirs, env }: ProjectWasi): { dirs: string[]; env: string[] } {
  return { dirs: Object.entries(dirs).map(([guest, host]) => `${host}::${guest}`), env: Object.keys(env) };
}
