/**
 * Every key that `settings` may have: features, optimizations, runtime.
 *
 * Features and optimizations are the engine's own tables (rows, defaults, meanings), with the aliases of the
 * specification. This file loads no other part of the engine. schema.json lists the same names (a test compares).
 */
import { FEATURE_ALIASES, FEATURE_ROWS, PROPOSAL_ROWS } from "@waft/engine/internal/features";
import { OPTIMIZATION_ROWS, type OptimizationRow } from "@waft/engine/internal/optimizations";

/** A key of `settings.features` or `settings.optimizations`. */
export interface SettingKey {
  readonly name: string;
  readonly default: boolean;
  readonly meaning: string;
  /** Another name of the same switch; contradicting values are an error. */
  readonly alias?: string;
}

function byName(a: SettingKey, b: SettingKey): number {
  return a.name < b.name ? -1 : 1;
}

function aliasRows(): SettingKey[] {
  return FEATURE_ALIASES.map(([alias, name]) => {
    const row = FEATURE_ROWS.find((feature) => feature.name === name)!;
    return { name: alias, default: row.default, meaning: `The same switch as ${name}`, alias: name };
  });
}

/** WebAssembly features: a module that needs a disabled feature is rejected. */
export const FEATURES: readonly SettingKey[] = [
  ...FEATURE_ROWS.map((row) => {
    const alias = FEATURE_ALIASES.find(([, name]) => name === row.name)?.[0];
    return { name: row.name, default: row.default, meaning: row.title, ...(alias === undefined ? {} : { alias }) };
  }),
  ...aliasRows(),
].sort(byName);

/** Features that flags switch: those of the manifest, and those of unfinished proposals. */
export const FLAG_FEATURES: readonly SettingKey[] = [
  ...FEATURES,
  ...PROPOSAL_ROWS.map((row) => ({ name: row.name, default: row.default, meaning: `${row.title} (proposal)` })),
].sort(byName);

function optimizationKey(row: OptimizationRow): SettingKey {
  const meaning = row.target === "both" ? row.meaning : `${row.meaning} (${row.target})`;
  return { name: row.name, default: row.state !== "off", meaning };
}

const ROWS: readonly OptimizationRow[] = OPTIMIZATION_ROWS;

/** Optimizations of the compiler. Disabling one must never change a result. */
export const OPTIMIZATIONS: readonly SettingKey[] = ROWS.filter((row) => row.engineOnly !== true).map(optimizationKey);

/** Optimizations that flags switch: those of the manifest, and those that it does not have. */
export const FLAG_OPTIMIZATIONS: readonly SettingKey[] = ROWS.map(optimizationKey);

/** Keys of `settings.runtime`, with their default as text. */
export const RUNTIME_KEYS: readonly { readonly name: string; readonly default: string; readonly meaning: string }[] = [
  { name: "parallel", default: "auto", meaning: "compiler threads: auto, or a number (0 and 1: no helper threads)" },
  { name: "deferredBoundsChecking", default: "true", meaning: "guard pages instead of explicit checks where possible" },
];
