/**
 * Sets of optimizations for tests of single passes. In: the keys that a test is about. Out: a complete set.
 */
import {
  OPTIMIZATION_ROWS,
  type OptimizationName,
  type OptimizationSet,
  optimizationSet,
} from "../settings/optimizations.ts";

/** Every optimization off but those of `on`. */
export function noneBut(on: Partial<Record<OptimizationName, boolean>>): OptimizationSet {
  return { ...withEvery(false), ...on };
}

/** The defaults, changed by keys that a test knows only as strings. Throws for a key that does not exist. */
export function defaultsBut(overrides: Readonly<Record<string, boolean>>): OptimizationSet {
  const names = new Set<string>(OPTIMIZATION_ROWS.map(({ name }) => name));
  for (const key of Object.keys(overrides)) if (!names.has(key)) throw new Error(`No optimization is called ${key}`);
  return { ...optimizationSet(), ...overrides };
}

function withEvery(value: boolean): OptimizationSet {
  return Object.fromEntries(OPTIMIZATION_ROWS.map(({ name }) => [name, value])) as OptimizationSet;
}
