/**
 * WebAssembly features as switches: one row per key of the manifest's `settings.features`. `default` is whether it is on
 * when nothing is said; `compiled` is whether this build can generate code for it (a module that needs a feature that is
 * off or not compiled is rejected by name, never run wrongly).
 */
export interface FeatureRow {
  /** The key. */
  readonly name: string;
  /** What it is, in a few words. */
  readonly title: string;
  /** Is it on when nothing is said? */
  readonly default: boolean;
  /** Can this build compile it? */
  readonly compiled: boolean;
}

/** Every feature, in the order of the specification's list of keys. */
export const FEATURE_ROWS = [
  { name: "bulk-memory-operations", title: "Bulk memory and table instructions", default: true, compiled: true },
  { name: "exception-handling", title: "Exceptions, with the legacy instructions", default: true, compiled: true },
  { name: "extended-const-expressions", title: "Arithmetic in constant expressions", default: true, compiled: true },
  { name: "gc", title: "Structures, arrays and i31 references", default: true, compiled: true },
  { name: "memory64", title: "Memories with 64-bit addresses", default: true, compiled: true },
  { name: "multi-memory", title: "More than one memory", default: true, compiled: true },
  { name: "multi-value", title: "Several results and block parameters", default: true, compiled: true },
  { name: "mutable-global", title: "Imported and exported mutable globals", default: true, compiled: true },
  {
    name: "nontrapping-float-to-int-conversion",
    title: "Saturating conversions from float to integer",
    default: true,
    compiled: true,
  },
  { name: "reference-types", title: "References as values, several tables", default: true, compiled: true },
  { name: "sign-extension-ops", title: "Sign-extension instructions", default: true, compiled: true },
  { name: "simd", title: "128-bit vectors, relaxed ones included", default: true, compiled: true },
  { name: "table64", title: "Tables with 64-bit indices", default: true, compiled: true },
  { name: "tail-call", title: "Tail calls", default: true, compiled: true },
  { name: "threads", title: "Shared memories and atomic instructions", default: true, compiled: true },
  { name: "typed-function-references", title: "Typed function references", default: true, compiled: true },
] as const satisfies readonly FeatureRow[];

/** The name of a feature. */
export type FeatureName = (typeof FEATURE_ROWS)[number]["name"];

/** Other spellings of a feature's key: `[alias, name]`. Both given with different values is an error of the reader. */
export const FEATURE_ALIASES: readonly (readonly [string, FeatureName])[] = [
  ["extended-constant-expressions", "extended-const-expressions"],
];

/** Which features are on. */
export type FeatureSet = Readonly<Record<FeatureName, boolean>>;

/** The defaults, changed by `overrides`. */
export function featureSet(overrides: Partial<Record<FeatureName, boolean>> = {}): FeatureSet {
  const set = {} as Record<FeatureName, boolean>;
  for (const row of FEATURE_ROWS) set[row.name] = overrides[row.name] ?? row.default;
  return set;
}
