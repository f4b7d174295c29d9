/**
 * One case of the differential fuzzer: the modules of a seed on V8 and on waft in two configurations. In: a seed. Out:
 * the differences, if any, and counts. An error that escapes waft (a Bug, an internal TypeError) counts as a
 * difference.
 */
import type { Tiering } from "../../engine/api/settings.ts";
import type { EngineOptions } from "../../engine/api/engine.ts";
import { UnsupportedError } from "../../engine/base/errors.ts";
import { FEATURE_ROWS, type FeatureName } from "../../engine/settings/features.ts";
import { OPTIMIZATION_ROWS, type OptimizationName } from "../../engine/settings/optimizations.ts";
import { MARKED } from "./generate/plan.ts";
import { GENERATED_FEATURES, generateModules, proposalsOf } from "./generate_module.ts";
import { Random } from "./random.ts";
import { UnknownInterface } from "./read_interface.ts";
import { runScenario, type Trace } from "./scenario.ts";
import { sameEnd, type Subject, V8, waft } from "./subject.ts";

/** The generators: ours, binaryen's and wasm-smith. */
export const SOURCES = ["own", "binaryen", "smith"] as const;
export type Source = (typeof SOURCES)[number];

/** A generator of single modules from outside. */
export interface ModuleSource {
  /** The module of a seed; without `nans`, no result depends on the bits of a NaN. */
  module(seed: number, features: readonly string[], nans: boolean): Uint8Array<ArrayBuffer>;
  close(): void;
}

export interface Difference {
  readonly options: EngineOptions;
  /** The first entries that differ, with the preceding ones. */
  readonly text: string;
}

/** The result of one case. */
export interface CaseResult {
  readonly modules: readonly Uint8Array<ArrayBuffer>[];
  readonly differences: readonly Difference[];
  /** The difference disappears without NaNs: bits of a NaN, which the specification does not determine. */
  readonly nanOnly: boolean;
  /** Only the depth at which the stack was exhausted differs. */
  readonly depthOnly: boolean;
  /** Only the offset of a trap differs: of two accesses out of bounds, the engines report different ones. */
  readonly placeOnly: boolean;
  /** The module needs a feature that waft does not compile. */
  readonly unsupported: boolean;
  readonly calls: number;
  readonly traps: number;
  readonly exhausted: boolean;
  /** The names of the features whose instructions were executed. */
  readonly executed: readonly string[];
  /** The modules' counts of a scenario, the globals "reached". */
  readonly reached: number;
}

/** The features that the generator supports and this build compiles. */
export const COMPILED_FEATURES: readonly string[] = GENERATED_FEATURES.filter((name) =>
  FEATURE_ROWS.some((row) => row.name === name && row.compiled)
);

/** Generates the modules of a seed. */
export function modulesOf(
  seed: number,
  source: Source,
  features: readonly string[],
  generator: ModuleSource | undefined,
  nans = seed % 2 === 0,
  forced: readonly string[] = [],
): readonly Uint8Array<ArrayBuffer>[] {
  if (source === "own") return generateModules(seed, features, forced);
  return [generator!.module(seed, features, nans)];
}

/**
 * The two configurations in which a seed runs, both with `proposals`: one with the default optimizations, in one of the
 * tiers by turns, and one drawn at random, of `tier`. Neither starts a thread unless `tier` is "auto": its code would
 * come too late for a case of some milliseconds.
 */
export function configurations(
  seed: number,
  tier: Tiering = "optimizing",
  proposals: readonly FeatureName[] = [],
): EngineOptions[] {
  const random = new Random(seed ^ 0x1b873593);
  const keys = OPTIMIZATION_ROWS.map((row) => row.name);
  const optimizations: Partial<Record<OptimizationName, boolean>> = {};
  const style = random.below(3);
  const first = (seed & 2) === 0 ? "baseline" : "optimizing";
  if (style > 0) { for (const key of keys) optimizations[key] = style === 1 ? false : random.chance(50); }
  const features = Object.fromEntries(proposals.map((name) => [name, true]));
  return [
    { features, verify: random.chance(8), bounds: random.chance(80) ? "guard" : "explicit", tier: first },
    {
      features,
      optimizations,
      verify: random.chance(8),
      bounds: random.chance(70) ? "explicit" : "guard",
      ...tierOptions(tier, seed),
    },
  ];
}

/**
 * With `auto`, modules are switched over after none to three calls, or after as many turns of loops, and then the
 * frames that are in loops as well; half of them are compiled lazily, and half of them in two steps.
 */
function tierOptions(tier: Tiering, seed: number): EngineOptions {
  if (tier !== "auto") return { tier };
  const more = { tierUpBatches: (seed & 16) === 0, ...((seed & 8) === 0 ? { lazyFrom: 0 } : {}) };
  return (seed & 4) === 0 ? { tier, ...more, tierUpCalls: seed % 4 } : { tier, ...more, tierUpIterations: seed % 4 };
}

/** Runs one case; V8 gets the standard form of modules for which proposals are forced. */
export function runCase(
  seed: number,
  source: Source,
  features: readonly string[],
  generator?: ModuleSource,
  forced: readonly string[] = [],
  tier: Tiering = "optimizing",
): CaseResult {
  const modules = modulesOf(seed, source, features, generator, undefined, forced);
  const proposals = proposalsOf(forced);
  const options = configurations(seed, tier, proposals);
  if (proposals.length > 0) {
    const standard = generateModules(seed, features, forced, true);
    return compareModules(modules, seed, options, (option) => waft("waft", option), standard);
  }
  const result = compareModules(modules, seed, options);
  if (result.differences.length > 0 && source !== "own" && seed % 2 === 0) {
    const again = compareModules(modulesOf(seed, source, features, generator, false), seed, options);
    if (again.differences.length === 0) return { ...result, differences: [], nanOnly: true };
  }
  return result;
}

/** The result of a case before its comparison, without the modules. */
export const UNCOMPARED: Omit<CaseResult, "modules"> = {
  differences: [],
  nanOnly: false,
  depthOnly: false,
  placeOnly: false,
  unsupported: false,
  calls: 0,
  traps: 0,
  exhausted: false,
  executed: [],
  reached: 0,
};

/** Compares the scenario of `seed` over `modules`, which V8 gets in their form `standard`, in which offsets differ. */
export function compareModules(
  modules: readonly Uint8Array<ArrayBuffer>[],
  seed: number,
  options: readonly EngineOptions[] = configurations(seed),
  subjectOf: (option: EngineOptions) => Subject = (option) => waft("waft", option),
  standard: readonly Uint8Array<ArrayBuffer>[] = modules,
): CaseResult {
  const comparable = standard === modules ? (trace: Trace) => trace : withoutPlaces;
  let expected: Trace;
  try {
    expected = comparable(runScenario(standard, seed, V8));
  } catch (error) {
    if (!(error instanceof UnknownInterface || error instanceof WebAssembly.CompileError)) throw error;
    return { modules, ...UNCOMPARED, unsupported: true };
  }
  const differences: Difference[] = [];
  const traces: { option: EngineOptions; trace: Trace }[] = [];
  let depthOnly = false;
  let placeOnly = false;
  let unsupported = false;
  for (const option of options) {
    let actual: Trace;
    try {
      actual = runScenario(modules, seed, subjectOf(option));
    } catch (error) {
      if (error instanceof UnsupportedError) {
        unsupported = true;
        break;
      }
      const text = error instanceof Error ? error.stack ?? String(error) : String(error);
      differences.push({ options: option, text: `escaped: ${text}` });
      continue;
    }
    traces.push({ option, trace: actual });
    const text = firstDifference(expected, comparable(actual));
    if (text === undefined) continue;
    if (expected.exhausted !== actual.exhausted) depthOnly = true;
    else if (firstDifference(withoutPlaces(expected), withoutPlaces(actual)) === undefined) placeOnly = true;
    else differences.push({ options: option, text });
  }
  // Results that may differ from V8's must still be the same in every configuration of waft.
  const [first, ...others] = traces;
  for (const { option, trace } of differences.length > 0 || first === undefined ? [] : others) {
    if (trace.exhausted || first.trace.exhausted) continue;
    const text = firstDifference(withoutPlaces(first.trace), withoutPlaces(trace));
    if (text !== undefined) differences.push({ options: option, text: `between two configurations:\n${text}` });
  }
  const { calls, traps, exhausted, marks } = expected;
  const executed = MARKED.filter((_, bit) => (marks >>> bit & 1) !== 0);
  const reached = reachedIn(expected);
  return {
    modules,
    differences,
    nanOnly: false,
    depthOnly,
    placeOnly,
    unsupported,
    calls,
    traps,
    exhausted,
    executed,
    reached,
  };
}

/** The sum of the final globals "reached". */
function reachedIn({ entries }: Trace): number {
  const counts = entries.map((entry) => /^global reached = (\d+)$/.exec(entry)?.[1] ?? "0");
  return counts.reduce((sum, count) => sum + Number(count), 0);
}

/** The trace without the offsets of traps; a wrong function stays visible. */
function withoutPlaces(trace: Trace): Trace {
  return { ...trace, entries: trace.entries.map((entry) => entry.replace(/ at [0-9a-f]+( < [0-9a-f]+)*$/, "")) };
}

function firstDifference(expected: Trace, actual: Trace): string | undefined {
  const count = Math.max(expected.entries.length, actual.entries.length);
  for (let i = 0; i < count; i++) {
    const want = expected.entries[i] ?? "(nothing)";
    const got = actual.entries[i] ?? "(nothing)";
    if (sameEnd(want, got)) continue;
    const before = expected.entries.slice(Math.max(0, i - 4), i).map((entry) => `  ${entry}\n`).join("");
    return `${before}  V8:   ${want}\n  waft: ${got}`;
  }
  return undefined;
}
