/**
 * The features of WebAssembly, one row each. A feature has a default, and this build may be unable to compile it; a module that
 * needs a feature that is off or not compiled is refused by the feature's name.
 */
export interface FeatureRow {
  /** The key. */
  readonly name: string;
  /** A short description. */
  readonly title: string;
  /** True if it is on by default. */
  readonly default: boolean;
  /** True if this build generates code for it. */
  readonly compiled: boolean;
}

/** The features that have a key in the manifest's `settings.features`, in the order of the specification's list of keys. */
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

/** Features of proposals that are not standard yet: options of the engine, without a key in the manifest. */
export const PROPOSAL_ROWS = [
  {
    name: "wide-arithmetic",
    title: "128-bit addition, subtraction and multiplication",
    default: false,
    compiled: true,
  },
] as const satisfies readonly FeatureRow[];

/** All features. New rows go to the end: a feature's number is its index. */
export const ALL_FEATURE_ROWS = [...FEATURE_ROWS, ...PROPOSAL_ROWS] as const;

/** The name of a feature. */
export type FeatureName = (typeof ALL_FEATURE_ROWS)[number]["name"];

/** Other spellings of a feature's key: `[alias, name]`. Both given with different values is an error of the reader. */
export const FEATURE_ALIASES: readonly (readonly [string, (typeof FEATURE_ROWS)[number]["name"]])[] = [
  ["extended-constant-expressions", "extended-const-expressions"],
];

/** Which features are on. */
export type FeatureSet = Readonly<Record<FeatureName, boolean>>;

/** The defaults, changed by `overrides`. */
export function featureSet(overrides: Partial<Record<FeatureName, boolean>> = {}): FeatureSet {
  const set = {} as Record<FeatureName, boolean>;
  for (const row of ALL_FEATURE_ROWS) set[row.name] = overrides[row.name] ?? row.default;
  return set;
}
