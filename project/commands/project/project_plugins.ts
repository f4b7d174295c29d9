/**
 * Loads the plugins of the project that a run belongs to.
 *
 * In: the flags of `run`. Out: the loaded project, or undefined without a project or plugins; throws a
 * ProjectError with every reason to refuse. Grants that the user has not accepted lead to a prompt at a terminal and to
 * a refusal elsewhere. Start-up time counts: without a project, the only work is the search for `waft.json`.
 */
import { currentDirectory, writeText } from "@waft/engine/internal/host/process";
import { formatDiagnostic } from "../../base/diagnostic.ts";
import { fileStatus } from "../../base/file_status.ts";
import { machinePaths, trustDirectory } from "../../base/paths.ts";
import type { Lockfile } from "../../lockfile/lock_schema.ts";
import type { AcceptOptions } from "../../plugins/acceptance.ts";
import type { LoadedProject } from "../../plugins/load.ts";
import { joinPaths } from "../../base/system_path.ts";
import { findProject, requireProject } from "../../project_root.ts";
import { LOCK_FILE } from "../../base/constants.ts";

/** Flags that decide about plugins. */
export interface PluginFlags {
  readonly project?: string;
  readonly locked?: boolean;
  readonly trust?: string;
  readonly offline?: boolean;
  readonly allowPathPlugins?: boolean;
}

/** Root of the project that a run belongs to: the `--project` directory, or the nearest project. */
export async function projectOf({ project }: PluginFlags): Promise<string | undefined> {
  return project === undefined
    ? await findProject(currentDirectory())
    : await requireProject(currentDirectory(), project);
}

/** Throws unless the user of this machine accepted what the lockfile, or its absence, allows guests to use of WASI. */
export async function requireAcceptedGroups(
  root: string,
  lockfile: Lockfile | undefined,
  options: AcceptOptions = {},
): Promise<void> {
  const paths = machinePaths();
  // Most machines have no records, and few projects remove groups.
  const isOpen = lockfile === undefined || lockfile.guest.wasi === undefined;
  if (isOpen && options.trust === undefined && fileStatus(trustDirectory(paths)) === undefined) return;
  const [{ requireAccepted }, { DISK }] = await Promise.all([
    import("../../plugins/acceptance.ts"),
    import("../../base/files.ts"),
  ]);
  await requireAccepted({ paths, files: DISK }, root, lockfile, { ...options, plugins: false });
}

/** Loads the plugins of the project at `root`; undefined when it has none. */
export async function projectPlugins(root: string, flags: PluginFlags): Promise<LoadedProject | undefined> {
  const { readProject, requireManifest, requirementsOf } = await import("../../project.ts");
  if (fileStatus(joinPaths(root, LOCK_FILE)) === undefined) {
    const { manifest } = requireManifest(await readProject(root));
    if (Object.keys(requirementsOf(manifest)).length === 0) {
      await requireAllGroups(root, flags);
      return undefined;
    }
  }
  const [{ makeContext }, { loadProject }, { inspectPlugin }] = await Promise.all([
    import("../../packages/context.ts"),
    import("../../plugins/load.ts"),
    import("../../definitions/engine_inspector.ts"),
  ]);
  const context = await makeContext({ offline: flags.offline === true, inspect: inspectPlugin });
  const project = await loadProject(context, root, {
    locked: flags.locked === true,
    allowPathPlugins: flags.allowPathPlugins === true,
    ...(flags.trust === undefined ? {} : { trust: flags.trust }),
    ...await asking(flags),
  });
  for (const warning of project.warnings) writeText(2, `${formatDiagnostic(warning)}\n`);
  return project;
}

/** Throws unless the user of this machine accepted that the guests of a project without lockfile use all of WASI. */
async function requireAllGroups(root: string, flags: PluginFlags): Promise<void> {
  const { trust } = flags;
  const given = trust === undefined ? {} : { trust };
  await requireAcceptedGroups(root, undefined, { ...given, ...await asking(flags) });
}

/**
 * The prompt for grants without a record on this machine: only at a terminal, and never with `--trust` or `--locked`.
 */
export async function asking({ trust, locked }: PluginFlags): Promise<Pick<AcceptOptions, "ask">> {
  if (trust !== undefined || locked === true) return {};
  const { default: process } = await import("node:process");
  const streams = { input: process.stdin.isTTY === true, output: process.stderr.isTTY === true };
  const { canPrompt } = await import("../../base/terminal.ts");
  if (!canPrompt(streams, process.env, { input: true, json: false })) return {};
  return { ask: async (...shown) => await (await import("./trust_prompt.ts")).askToAccept(...shown) };
}
