/**
 * The engine's options for a run: flags over the settings of the nearest project, over the engine's defaults.
 *
 * In: the flags of a command that compiles. Out: engine options; notes on stderr for settings that this build
 * does not implement. Without a project nothing but a search for `waft.json` is done, since start-up time counts.
 */
import type { EngineOptions } from "@waft/engine";
import { currentDirectory, writeText } from "@waft/engine/internal/host/process";
import { findProject } from "../../project_root.ts";
import { type EngineFlags, engineOptions } from "./engine_options.ts";
import { projectOf } from "../project/project_plugins.ts";

/** The flags that affect a run's settings. */
interface SettingsFlags extends EngineFlags {
  readonly parallel?: string;
}

/** The flags of a command that compiles without running anything: those of PROJECT_OPTION_ROWS as well. */
export interface CompilingFlags extends EngineFlags {
  readonly project?: string;
  readonly bare?: boolean;
}

/** The engine options of such a command: those with which `waft run` compiles the same file. */
export async function compilingOptions(flags: CompilingFlags): Promise<EngineOptions> {
  return await projectEngineOptions(flags, await projectOf(flags), flags.bare);
}

/**
 * Engine options from flags and the nearest manifest; throws for an invalid manifest. With `bare` flags alone decide.
 */
export async function projectEngineOptions(
  flags: SettingsFlags,
  directory: string = currentDirectory(),
  bare = false,
): Promise<EngineOptions> {
  const own: EngineOptions = { parallel: "auto", ...engineOptions(flags) };
  const hasProject = !bare && await findProject(directory) !== undefined;
  if (!hasProject && flags.parallel === undefined) return own;
  const [{ engineSettings, nearestSettings, resolveSettings }, { IMPLEMENTED }, { formatDiagnostic }] = await Promise
    .all([
      import("../../settings.ts"),
      import("../../implemented_keys.ts"),
      import("../../base/diagnostic.ts"),
    ]);
  const nearest = hasProject ? await nearestSettings(directory) : {};
  if (nearest.settings === undefined && flags.parallel === undefined) return own;
  const settings = resolveSettings(nearest, {
    features: flags.feature,
    optimizations: flags.opt,
    ...(flags.parallel === undefined ? {} : { parallel: flags.parallel }),
  }, IMPLEMENTED);
  for (const d of settings.diagnostics) writeText(2, `${formatDiagnostic(d)}\n`);
  const { features, optimizations, bounds, parallel } = engineSettings(settings);
  return {
    features,
    optimizations,
    bounds,
    parallel,
    ...own.bounds === undefined ? {} : { bounds: own.bounds },
    ...own.tier === undefined ? {} : { tier: own.tier },
  };
}
