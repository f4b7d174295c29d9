/**
 * Options of every command that compiles: `--feature NAME=on|off`, `--opt NAME=on|off`, `--bounds guard|explicit`,
 * `--tier auto|baseline|optimizing`.
 */
import type { EngineOptions } from "@waft/engine";
import { ALL_FEATURE_ROWS, type FeatureName } from "@waft/engine/internal/features";
import { OPTIMIZATION_ROWS, type OptimizationName } from "@waft/engine/internal/optimizations";
import { UsageError } from "../../base/failure.ts";
import { nearestName } from "../../base/grammar.ts";
import type { OptionRow } from "../option_rows.ts";

export interface EngineFlags {
  feature: string[];
  opt: string[];
  bounds?: string;
  tier?: string;
}

/** The options. */
export const ENGINE_OPTION_ROWS: readonly OptionRow[] = [
  { flags: "--feature <name=on|off>", description: "Switch a WebAssembly feature (repeatable)", repeatable: true },
  { flags: "--opt <name=on|off>", description: "Switch an optimization (repeatable)", repeatable: true },
  { flags: "--bounds <mode>", description: "Bounds checking of memory accesses: guard (pages) or explicit" },
  { flags: "--tier <name>", description: "Compiler: baseline, optimizing, or auto for both in turn (default)" },
];

/** The engine options that flags ask for. */
export function engineOptions(flags: EngineFlags): EngineOptions {
  const { bounds, tier } = flags;
  if (bounds !== undefined && bounds !== "guard" && bounds !== "explicit") {
    throw new UsageError(`--bounds must be guard or explicit, not "${bounds}"`);
  }
  if (tier !== undefined && tier !== "auto" && tier !== "baseline" && tier !== "optimizing") {
    throw new UsageError(`--tier must be auto, baseline or optimizing, not "${tier}"`);
  }
  return {
    features: switches<FeatureName>("--feature", flags.feature, ALL_FEATURE_ROWS),
    optimizations: switches<OptimizationName>("--opt", flags.opt, OPTIMIZATION_ROWS),
    ...(bounds === undefined ? {} : { bounds }),
    ...(tier === undefined ? {} : { tier }),
  };
}

function switches<Name extends string>(
  flag: string,
  values: readonly string[],
  rows: readonly { name: string }[],
): Partial<Record<Name, boolean>> {
  const set: Partial<Record<Name, boolean>> = {};
  for (const value of values) {
    const [name, state, ...rest] = value.split("=");
    if ((state !== "on" && state !== "off") || rest.length > 0) {
      throw new UsageError(`${flag} takes NAME=on or NAME=off, not "${value}"`);
    }
    if (name === undefined || !rows.some((row) => row.name === name)) {
      const near = nearestName(name ?? "", rows.map((row) => row.name));
      throw new UsageError(`${flag}: unknown name "${name}"${near === undefined ? "" : `; did you mean "${near}"?`}`);
    }
    set[name as Name] = state === "on";
  }
  return set;
}
