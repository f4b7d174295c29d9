/**
 * The user's own plugins for the commands that run programs. In: the imports of a program, the project's plugins, and
 * the flags of the command. Out: the options of the run, with a project that has the plugins which serve these imports.
 * Loaded only for programs with imports that nothing else provides.
 */
import { writeText } from "@waft/engine/internal/host/process";
import { formatDiagnostic } from "../../base/diagnostic.ts";
import { inspectPlugin } from "../../definitions/engine_inspector.ts";
import { makeContext } from "../../packages/context.ts";
import type { LoadedProject } from "../../plugins/loaded.ts";
import { withUserPlugins } from "../../plugins/user_plugins.ts";
import { userPluginsFolder } from "../../user_project.ts";
import { asking, type PluginFlags } from "./project_plugins.ts";

/** The flags of runs that have no plugins, or none besides the project's. */
interface RunFlags extends PluginFlags {
  readonly bare?: boolean;
  readonly record?: string;
  readonly preload: readonly string[];
}

/** The project with the user's plugins that serve some of `wanted`; undefined for no plugins at all. */
export async function addUserPlugins(
  flags: RunFlags,
  project: LoadedProject | undefined,
  wanted: readonly string[],
): Promise<LoadedProject | undefined> {
  if (flags.bare === true || flags.record !== undefined || flags.preload.length > 0) return project;
  const root = userPluginsFolder();
  if (root === undefined) return project;
  const context = await makeContext({ offline: flags.offline === true, inspect: inspectPlugin });
  // The digest of `--trust` is that of a project.
  const { trust: _, ...own } = flags;
  const found = await withUserPlugins(context, root, project, wanted, await asking(own));
  if (found !== project) {
    for (const warning of found?.warnings ?? []) writeText(2, `${formatDiagnostic(warning)}\n`);
  }
  return found;
}
