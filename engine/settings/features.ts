/**
 * WebAssembly features, one row each, with their defaults. A module that needs a feature that is disabled, or that this
 * build cannot compile, is rejected with the name of the feature.
 */
export interface FeatureRow {
  /** The name: the key in the manifest's `settings.features`, or in the engine option `features`. */
  readonly name: string;
  /** A short description. */
  readonly title: string;
  /** Whether the feature is enabled by default. */
  readonly default: boolean;
  /** Whether this build can generate code for the feature. */
  readonly compiled: boolean;
}

/** The features with a key in the manifest's `settings.features`, in the order of the specification's list of keys. */
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

/** Features of proposals: switched by `--feature` and the engine option `features`, without a key in the manifest. */
export const PROPOSAL_ROWS = [
  {
    name: "wide-arithmetic",
    title: "128-bit addition, subtraction and multiplication",
    default: true,
    compiled: true,
  },
  {
    name: "compact-import-section",
    title: "Groups of imports from one module, in the binary and the text form",
    default: true,
    compiled: true,
  },
  {
    name: "js-types",
    title: "Types of functions, memories, tables, globals and tags in the JavaScript interface",
    default: false,
    compiled: true,
  },
  {
    name: "custom-page-sizes",
    title: "Memories with pages of one byte",
    default: false,
    compiled: true,
  },
  {
    name: "stack-switching",
    title: "Continuations: computations that suspend and are resumed",
    default: false,
    compiled: true,
  },
  {
    name: "acquire-release-atomics",
    title: "Memory orderings of atomic instructions, and pause",
    default: false,
    compiled: true,
  },
  {
    name: "custom-descriptors",
    title: "Objects that describe the types of others, exact reference types, prototypes of objects",
    default: false,
    compiled: true,
  },
] as const satisfies readonly FeatureRow[];

/** All features. New rows must be appended, because the index of a row is the number of the feature. */
export const ALL_FEATURE_ROWS = [...FEATURE_ROWS, ...PROPOSAL_ROWS] as const;

/** The name of a feature. */
export type FeatureName = (typeof ALL_FEATURE_ROWS)[number]["name"];

/**
 * Aliases of feature keys: `[alias, name]`. The reader of a manifest rejects an alias and its name with different
 * values.
 */
export const FEATURE_ALIASES: readonly (readonly [string, (typeof FEATURE_ROWS)[number]["name"]])[] = [
  ["extended-constant-expressions", "extended-const-expressions"],
];

/** The enabled features: a boolean per feature name. */
export type FeatureSet = Readonly<Record<FeatureName, boolean>>;

/** Returns the default feature set, changed by `overrides`. */
export function featureSet(overrides: Partial<Record<FeatureName, boolean>> = {}): FeatureSet {
  const set = {} as Record<FeatureName, boolean>;
  for (const row of ALL_FEATURE_ROWS) set[row.name] = overrides[row.name] ?? row.default;
  return set;
}
