/**
 * Compilation for tasks that verify machine code. In: the task's switches. Out: options of `compileModule`, with the
 * compiler of bodies loaded.
 */
import { OPTIMIZING_ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { prepareBodyCompiler } from "../../engine/compile/compile.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { CPU_FEATURES, cpuFeatures } from "../../engine/host/cpu.ts";
import { currentHost } from "../../engine/host/current.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { FEATURE_SWITCHES, switchedFeatures } from "../feature_switches.ts";

/** The switches, as rows of a task's options. */
export const CODE_SWITCHES = {
  ...FEATURE_SWITCHES,
  explicit: { help: "compile with explicit bounds checks" },
  arm64: { help: "compile for arm64" },
  baseline: { help: "compile with the baseline tier" },
  masks: { help: "compile with masked addresses of memories, too" },
} as const;

/** The values of the switches. */
type Switches =
  & Readonly<Record<Exclude<keyof typeof CODE_SWITCHES, "feature">, boolean>>
  & { readonly feature: Parameters<typeof switchedFeatures>[0] };

/** The options that the switches select: x64 code for this machine, arm64 code with every optional instruction. */
export async function codeOptions(switches: Switches) {
  const target = switches.arm64 ? OPTIMIZING_ARM64 : OPTIMIZING_X64;
  await prepareBodyCompiler(target.name);
  return {
    target,
    features: switchedFeatures(switches.feature),
    optimizations: optimizationSet({ "mask-memories": switches.masks }),
    settings: codeSettings({ explicitBounds: switches.explicit }),
    cpu: switches.arm64 ? new Set(CPU_FEATURES.arm64) : cpuFeatures(currentHost()),
    tier: switches.baseline ? "baseline" : "optimizing",
  } as const;
}
