/**
 * The project's settings for a guest, the same for every command that runs one.
 *
 * In: the flags of `run`, `profile`, `debug` or `serve`. Out: the inputs of the guest and the options of the
 * engine: flags first, then the machine's entry for the project (directories, variables) and the project's settings;
 * and the groups of WASI that the lockfile leaves. Invariant: `--bare` ignores all of them, but the project's files
 * remain protected. Plugins are the concern of `run` and `debug` (project_plugins.ts).
 */
import type { EngineOptions } from "@waft/engine";
import { ProjectError } from "../../base/diagnostic.ts";
import type { MachineWasi } from "../../machine_wasi.ts";
import type { EngineFlags } from "../settings/engine_options.ts";
import { projectEngineOptions } from "../settings/project_defaults.ts";
import { projectOf, requireAcceptedGroups } from "../project/project_plugins.ts";
import { guestGrants } from "./run_flags.ts";

/** The flags that decide about the project of a guest. */
interface ProjectGuestFlags extends EngineFlags {
  readonly dir: string[];
  readonly env: string[];
  readonly inheritEnv?: boolean;
  readonly parallel?: string;
  readonly project?: string;
  readonly bare?: boolean;
}

/** A guest's inputs from flags and its project. */
export interface ProjectGuest {
  /** Root of the project that the guest belongs to, also with `--bare`. */
  readonly root?: string;
  readonly engine: EngineOptions;
  readonly preopens: readonly { readonly host: string; readonly guest: string }[];
  readonly env: readonly (readonly [string, string])[];
  readonly wasiGroups: readonly string[] | undefined;
}

/** Reads the project. `groupsOf` reads the groups of WASI, if the caller has not loaded the lockfile for itself. */
export async function projectGuest(
  flags: ProjectGuestFlags,
  groupsOf: (root: string) => Promise<readonly string[] | undefined> = lockedGroups,
): Promise<ProjectGuest> {
  const { root, wasiGroups } = await projectGroups(flags, groupsOf);
  const isBare = flags.bare === true;
  return {
    ...(root === undefined ? {} : { root }),
    wasiGroups,
    ...withGiven(guestGrants(flags), root === undefined || isBare ? undefined : await givenByMachine(root)),
    engine: await projectEngineOptions(flags, flags.project, isBare),
  };
}

/** The root of the project, and the groups of WASI that it allows. */
export async function projectGroups(
  flags: { readonly project?: string; readonly bare?: boolean },
  groupsOf: (root: string) => Promise<readonly string[] | undefined> = lockedGroups,
): Promise<Pick<ProjectGuest, "root" | "wasiGroups">> {
  const root = await projectOf(flags);
  if (root === undefined) return { wasiGroups: undefined };
  return { root, wasiGroups: flags.bare === true ? undefined : await groupsOf(root) };
}

/**
 * The groups in the lockfile of the project at `root`. Throws a ProjectError for a lockfile that is missing or wrong.
 */
async function lockedGroups(root: string): Promise<readonly string[] | undefined> {
  const { missingLock, readProject, requireManifest, requirementsOf } = await import("../../project.ts");
  const state = await readProject(root);
  const { manifest } = requireManifest(state);
  if (state.lock === undefined) {
    if (Object.keys(requirementsOf(manifest)).length > 0) throw new ProjectError([missingLock()]);
    await requireAcceptedGroups(root, undefined);
    return undefined;
  }
  if (state.lock.lockfile === undefined) throw new ProjectError(state.lock.diagnostics);
  await requireAcceptedGroups(root, state.lock.lockfile);
  return state.lock.lockfile.guest.wasi;
}

/** The directories and variables that the machine's configuration gives to the guests of a project. */
async function givenByMachine(root: string): Promise<MachineWasi | undefined> {
  return await (await import("../../machine_wasi.ts")).machineWasi(root);
}

/** Adds the directories and variables of the machine's configuration; flags for the same path or variable win. */
function withGiven({ preopens, env }: MachineWasi, given: MachineWasi | undefined): MachineWasi {
  if (given === undefined) return { preopens, env };
  const isFlag = (guest: string): boolean => preopens.some((flag) => flag.guest === guest);
  const isSet = (name: string): boolean => env.some(([flag]) => flag === name);
  return {
    preopens: [...given.preopens.filter(({ guest }) => !isFlag(guest)), ...preopens],
    env: [...given.env.filter(([name]) => !isSet(name)), ...env],
  };
}
