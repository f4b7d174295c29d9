/**
 * The engine's options for a run: flags over the settings of the nearest project, over the engine's defaults.
 *
 * In: the flags of a command that compiles. Out: engine options; notes on stderr for settings that this build does not
 * implement. Without a project nothing but a search for `waft.json` is done, since start-up time counts.
 */
import type { EngineOptions } from "@waft/engine";
import process from "node:process";
import { findProject } from "../project_root.ts";
import { type EngineFlags, engineOptions } from "./engine_options.ts";

/** Engine options from flags and the nearest manifest; throws for an invalid manifest. */
export async function projectEngineOptions(
  flags: EngineFlags,
  directory: string = process.cwd(),
): Promise<EngineOptions> {
  const own = engineOptions(flags);
  if (await findProject(directory) === undefined) return own;
  const [{ engineSettings, nearestSettings, resolveSettings }, { IMPLEMENTED }, { formatDiagnostic }] = await Promise
    .all([
      import("../settings.ts"),
      import("../implemented_keys.ts"),
      import("../diagnostic.ts"),
    ]);
  const nearest = await nearestSettings(directory);
  if (nearest.settings === undefined) return own;
  const settings = resolveSettings(nearest, { features: flags.feature, optimizations: flags.opt }, IMPLEMENTED);
  for (const d of settings.diagnostics) process.stderr.write(`${formatDiagnostic(d)}\n`);
  const { features, optimizations, bounds } = engineSettings(settings);
  return { features, optimizations, bounds, ...own.bounds === undefined ? {} : { bounds: own.bounds } };
}
