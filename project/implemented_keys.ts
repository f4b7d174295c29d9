/**
 * The setting keys that this build implements, from the engine's own tables. Loads no other part of the engine.
 */
import { ALL_FEATURE_ROWS, FEATURE_ALIASES } from "@waft/engine/internal/features";
import { OPTIMIZATION_ROWS, type OptimizationRow } from "@waft/engine/internal/optimizations";
import type { ImplementedKeys } from "./settings.ts";

const FEATURES = new Set<string>(ALL_FEATURE_ROWS.filter((row) => row.compiled).map((row) => row.name));
for (const [alias, name] of FEATURE_ALIASES) if (FEATURES.has(name)) FEATURES.add(alias);

/** Features that code can be generated for, optimizations that exist. */
export const IMPLEMENTED: ImplementedKeys = {
  features: FEATURES,
  optimizations: new Set(
    OPTIMIZATION_ROWS.filter((row: OptimizationRow) => row.state !== "later").map((row) => row.name),
  ),
  always: new Set(OPTIMIZATION_ROWS.filter((row: OptimizationRow) => row.state === "shape").map((row) => row.name)),
};
