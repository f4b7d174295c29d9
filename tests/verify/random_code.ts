/**
 * Verification of random modules. In: a seed of the generator. Out: the functions that are not proven at first, and
 * those of which no code is proven (compile_proven.ts), in both tiers, both ways of bounds checking, and on both
 * architectures. Invariant: a seed always gives the same modules and options.
 */
import { OPTIMIZING_ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { prepareBodyCompiler } from "../../engine/compile/compile.ts";
import type { CompileOptions } from "../../engine/compile/compile_options.ts";
import { compileVerified } from "../../engine/compile/compile_proven.ts";
import { NewEngine } from "../../engine/api/engine.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { type FeatureName, featureSet } from "../../engine/settings/features.ts";
import { CPU_FEATURES } from "../../engine/host/cpu.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { COMPILED_FEATURES } from "../fuzz/compare.ts";
import { generateModules, proposalsOf } from "../fuzz/generate_module.ts";

/** The verification of one seed's modules. */
interface RandomResult {
  readonly modules: number;
  readonly functions: number;
  readonly bytes: number;
  /** Functions that are not proven at first. */
  readonly unprovenAtFirst: number;
  /** A line per function of which no code is proven. */
  readonly unproven: string[];
}

const ARCHITECTURES = [OPTIMIZING_X64, OPTIMIZING_ARM64];
const TIERS = ["optimizing", "baseline"] as const;

/** Loads the baseline compilers; verifyRandom needs them. */
export async function prepareRandom(): Promise<void> {
  for (const { name } of ARCHITECTURES) await prepareBodyCompiler(name);
}

/** The configurations of a seed: every third seed polls, every fourth counts fuel, every fifth has the oldest CPU. */
function configurationsOf(seed: number, proposals: readonly FeatureName[]): CompileOptions[] {
  const shared = {
    features: featureSet(Object.fromEntries(proposals.map((name) => [name, true]))),
    optimizations: optimizationSet(),
  };
  const control = { interruptible: seed % 3 === 0, fuel: seed % 4 === 0 };
  return ARCHITECTURES.flatMap((target) => {
    const cpu = new Set(seed % 5 === 0 ? [] : CPU_FEATURES[target.name]);
    return TIERS.flatMap((tier) =>
      [false, true].map((explicitBounds): CompileOptions => ({
        ...shared,
        target,
        cpu,
        tier,
        settings: codeSettings({ ...control, explicitBounds }),
      }))
    );
  });
}

/**
 * Verifies the modules of `seed`, which use the features `forced`, in all configurations, or in a quarter of them that
 * the seed selects.
 */
export function verifyRandom(seed: number, isQuarter = false, forced: readonly string[] = []): RandomResult {
  const modules = generateModules(seed, COMPILED_FEATURES, forced);
  const all = configurationsOf(seed, proposalsOf(forced)), first = isQuarter ? Math.trunc(seed / 4) % 4 * 2 : 0;
  const configurations = all.slice(first, isQuarter ? first + 2 : all.length);
  const unproven: string[] = [];
  let functions = 0, bytes = 0, unprovenAtFirst = 0;
  const engine = NewEngine({ features: configurations[0].features });
  for (const [k, module] of modules.entries()) {
    for (const options of configurations) {
      const { first, last } = compileVerified(engine.parse(module), options);
      const { functionStart } = last.code.tables;
      functions += functionStart.length;
      bytes += first.code.bytes.length;
      const { target, tier, settings: { explicitBounds } } = options;
      const where = `seed ${seed}, module ${k}, ${target.name}, ${tier}, ${explicitBounds ? "explicit" : "guard"}`;
      unprovenAtFirst += first.unproven.length;
      for (const { index, at, reason } of last.unproven) {
        unproven.push(`${where}: function ${index} at ${at - (functionStart[index] ?? 0)}: ${reason}`);
      }
    }
  }
  return { modules: modules.length, functions, bytes, unprovenAtFirst, unproven };
}
