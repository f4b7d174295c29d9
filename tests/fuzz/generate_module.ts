/**
 * Random modules of WebAssembly 3.0 and threads, from a seed. In: a seed and the features that may or must be used.
 * Out: one or two binary modules; the second imports exports of the first (module name "m0"). Imports from module
 * "host" come from the fuzzer.
 *
 * Proposals are used only if they are forced. A program that uses them has a standard form for engines that lack them:
 * the same program, in which orderings of atomic instructions are absent, wide arithmetic is a call of a function,
 * imports have no groups, and memories have pages of 64 KiB.
 *
 * Exports whose names begin with "t" make no indirect calls, so the host may put them into tables. The bits of the
 * exported global "marks" (plan.ts) record the features whose instructions were executed.
 */
import { generateDefinitions } from "./generate/definitions.ts";
import { type Common, emptyOffer, generateModule } from "./generate/module_writer.ts";
import type { FeatureName } from "../../engine/settings/features.ts";
import { Random } from "./random.ts";

/** Features of WebAssembly 2.0 without vectors, which every module uses if allowed. */
const BASE: readonly string[] = [
  "bulk-memory-operations",
  "extended-const-expressions",
  "multi-value",
  "mutable-global",
  "nontrapping-float-to-int-conversion",
  "reference-types",
  "sign-extension-ops",
];
/** Features that a case uses or not, at random. */
export const DRAWN: readonly string[] = [
  "exception-handling",
  "gc",
  "memory64",
  "multi-memory",
  "simd",
  "table64",
  "tail-call",
  "threads",
  "typed-function-references",
];

/** Features that the generator supports, by the names of engine/settings/features.ts. */
export const GENERATED_FEATURES: readonly string[] = [...BASE, ...DRAWN];

/** Proposals that the generator supports, by the names of engine/settings/features.ts. */
export const GENERATED_PROPOSALS = [
  "wide-arithmetic",
  "acquire-release-atomics",
  "custom-page-sizes",
  "compact-import-section",
] as const satisfies readonly FeatureName[];

/** Those of `features` that are proposals. */
export function proposalsOf(features: readonly string[]): FeatureName[] {
  return GENERATED_PROPOSALS.filter((name) => features.includes(name));
}

/** Every three of the drawn features. */
const TRIPLES: readonly (readonly string[])[] = DRAWN.flatMap((a, i) =>
  DRAWN.slice(i + 1).flatMap((b, j) => DRAWN.slice(i + j + 2).map((c) => [a, b, c]))
);

/**
 * The features that the case of a seed must use when all take turns: of each 168 seeds that follow each other, every
 * three of the drawn features have two, one of them even.
 */
export function forcedInTurn(seed: number): readonly string[] {
  return TRIPLES[(seed >>> 1) % TRIPLES.length];
}

/**
 * The modules of a seed, in order of instantiation; `forced` features are used for certain. `standard`: in the form
 * without proposals.
 */
export function generateModules(
  seed: number,
  features: readonly string[] = GENERATED_FEATURES,
  forced: readonly string[] = [],
  standard = false,
): Uint8Array<ArrayBuffer>[] {
  const random = new Random(seed);
  const set = new Set(features.filter((f) => !DRAWN.includes(f)));
  // Some cases use few of the features, others most of them.
  const share = random.pick([15, 50, 50, 80]);
  for (const feature of DRAWN) {
    if (features.includes(feature) && (forced.includes(feature) || random.chance(share))) set.add(feature);
  }
  for (const feature of forced) set.add(feature);
  if (set.has("acquire-release-atomics")) set.add("threads");
  const common: Common = { features: set, forced, standard, definitions: generateDefinitions(random, set) };
  const first = generateModule(random, common, emptyOffer(), 0);
  if (random.chance(5)) return [first.bytes, first.bytes]; // two independent instances
  const other = set.has("exception-handling") || set.has("tail-call") || set.has("typed-function-references") ? 25 : 12;
  if (!random.chance(other)) return [first.bytes];
  return [first.bytes, generateModule(random, common, first.offer, 1).bytes];
}
