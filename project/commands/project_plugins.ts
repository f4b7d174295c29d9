/**
 * The plugins of the project that a run belongs to.
 *
 * In: the flags of `run`. Out: the loaded project, or undefined when there is none or it has no plugins; a ProjectError with every
 * reason to refuse. Without a project nothing but a search for `waft.json` is done, since start-up time counts.
 */
import { currentDirectory } from "@waft/engine/host/process";
import { fileStatus } from "../base/file_status.ts";
import type { LoadedProject } from "../plugins/load.ts";
import { joinPaths } from "../base/posix_path.ts";
import { findProject, requireProject } from "../project_root.ts";
import { LOCK_FILE } from "../base/site.ts";

/** Flags that decide about plugins. */
export interface PluginFlags {
  readonly project?: string;
  readonly locked?: boolean;
  readonly offline?: boolean;
  readonly allowPathPlugins?: boolean;
}

/** Loads the plugins of the nearest project. */
export async function projectPlugins(flags: PluginFlags): Promise<LoadedProject | undefined> {
  const root = flags.project === undefined
    ? await findProject(currentDirectory())
    : await requireProject(currentDirectory(), flags.project);
  if (root === undefined) return undefined;
  const { readProject, requireManifest, requirementsOf } = await import("../project.ts");
  if (fileStatus(joinPaths(root, LOCK_FILE)) === undefined) {
    const { manifest } = requireManifest(await readProject(root));
    if (Object.keys(requirementsOf(manifest)).length === 0) return undefined;
  }
  const [{ makeContext }, { loadProject }, { inspectModule }] = await Promise.all([
    import("../packages/context.ts"),
    import("../plugins/load.ts"),
    import("../definitions/engine_inspector.ts"),
  ]);
  const context = await makeContext({ offline: flags.offline === true, inspect: inspectModule });
  return await loadProject(context, root, {
    locked: flags.locked === true,
    allowPathPlugins: flags.allowPathPlugins === true,
  });
}
