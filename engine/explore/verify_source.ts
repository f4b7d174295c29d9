/**
 * Verification of whole modules and artifacts, for tools. In: a decoded module and code options, or the bytes of an
 * artifact. Out: the sizes of the code and the functions that are not proven. Nothing is placed in memory or run.
 *
 * An artifact is verified against its own metadata. Its thunks and the tables of code outside of functions are not
 * verified, so a proof says that the compiler made no mistake, not that the author of the artifact is to be trusted.
 */
import type { ArtifactDescription } from "../artifact/description.ts";
import type { Target } from "../codegen/target.ts";
import { backendFor } from "../compile/backends.ts";
import { engineStamp } from "../artifact/engine_stamp.ts";
import { ArtifactError, readArtifact, requirePlaces } from "../artifact/format.ts";
import { readMetadata } from "../artifact/module_metadata.ts";
import { type CompileOptions, prepareBodyCompiler, stubContext } from "../compile/compile.ts";
import { compileVerified } from "../compile/compile_proven.ts";
import { ALL_FEATURE_ROWS, type FeatureSet } from "../settings/features.ts";
import { CPU_FEATURES, cpuFeatures, hostArchitecture } from "../host/cpu.ts";
import { currentHost } from "../host/current.ts";
import { codeSettings, settingsNamed } from "../settings/code_settings.ts";
import { OPTIMIZATION_ROWS, type OptimizationSet } from "../settings/optimizations.ts";
import { moduleInterface } from "../translate/module_interface.ts";
import { type Finding, type VerifiableCode, verifyCompiled } from "../compile/verify_module.ts";
import type { Module } from "../wasm/module.ts";

/** A function whose machine code is not proven. */
export interface UnprovenFunction {
  /** Index in the module, imports included; −1 for the stubs that all functions share. */
  readonly index: number;
  /** From the name section. */
  readonly name: string | undefined;
  /** Bytes from the start of the function's code to the first instruction that is not proven. */
  readonly offset: number;
  readonly reason: string;
}

/** The result of a verification. */
export interface VerifiedCode {
  readonly tier: "baseline" | "optimizing";
  /** The code compares accesses of memory 0 with its length, instead of relying on guard pages. */
  readonly explicitBounds: boolean;
  /** Number of functions that have code, and bytes of the image. */
  readonly functions: number;
  readonly bytes: number;
  readonly unproven: readonly UnprovenFunction[];
  /** Whether an engine with the option `verify: "code"` compiles the module, if need be to other code. No artifacts. */
  readonly isProvable?: boolean;
  /** Number of functions that such an engine compiles once more, because their first code is not proven. */
  readonly recompiled?: number;
}

type Architecture = Target["name"];

/** Options of {@linkcode verifyModule}. */
export interface VerifyOptions {
  readonly features: FeatureSet;
  readonly optimizations: OptimizationSet;
  readonly explicitBounds: boolean;
  readonly tier: VerifiedCode["tier"];
  /** Default: this machine's. */
  readonly architecture?: Architecture;
}

const ARCHITECTURES: readonly Architecture[] = ["x64", "arm64"];

/** Compiles a module and verifies the code. Rejects with the errors of the validator and the compiler. */
export async function verifyModule(
  module: Module,
  { architecture = hostArchitecture(), explicitBounds, ...options }: VerifyOptions,
): Promise<VerifiedCode> {
  await prepareBodyCompiler(architecture);
  const isOwn = hostArchitecture() === architecture;
  const cpu = isOwn ? cpuFeatures(currentHost()) : new Set(CPU_FEATURES[architecture]);
  const settings = codeSettings({ explicitBounds });
  const compileOptions: CompileOptions = { ...options, settings, target: backendFor(architecture), cpu };
  const { first: { code, unproven }, last } = compileVerified(module, compileOptions);
  const isProvable = last.unproven.length === 0;
  return { ...describe(code, unproven, options.tier), isProvable, recompiled: last.recompiled };
}

/** Verifies the code of an artifact. Throws ArtifactError. */
export function verifyArtifact(artifact: Uint8Array): VerifiedCode {
  const { description, metadata, code, tables } = readArtifact(artifact);
  const options = optionsOf(description as Partial<ArtifactDescription> | null);
  let valid;
  try {
    valid = readMetadata(metadata, options.features);
  } catch (error) {
    throw new ArtifactError(`The artifact's module metadata is invalid: ${(error as Error).message}`);
  }
  requirePlaces(tables, code.length, valid.funcs.length);
  const { layout } = moduleInterface(valid);
  const image = { valid, bytes: code, tables, layout, settings: options.settings };
  return describe(image, verifyCompiled(image, options, stubContext(valid, options)), "optimizing");
}

/** The options that an artifact was compiled with. Throws ArtifactError unless it is one of this engine. */
function optionsOf(description: Partial<ArtifactDescription> | null): CompileOptions {
  const { engine, machine, options, cpu, settings } = description ?? {};
  if (engine !== engineStamp()) {
    throw new ArtifactError(
      `The artifact was made by waft ${String(engine)}, but this is ${engineStamp()}: verify it with that version`,
    );
  }
  const architecture = ARCHITECTURES.find((name) => typeof machine === "string" && machine.endsWith(`/${name}`));
  if (architecture === undefined || !Array.isArray(options) || !Array.isArray(cpu)) {
    throw new ArtifactError("The artifact is damaged: its description is incomplete");
  }
  const enabled = new Set<unknown>(options);
  const chosen = <Set>(group: string, rows: readonly { readonly name: string }[]): Set =>
    Object.fromEntries(rows.map(({ name }) => [name, enabled.has(`${group}.${name}`)])) as Set;
  return {
    target: backendFor(architecture),
    features: chosen<FeatureSet>("features", ALL_FEATURE_ROWS),
    optimizations: chosen<OptimizationSet>("optimizations", OPTIMIZATION_ROWS),
    settings: settingsNamed(enabled, settings?.explicitBounds === true),
    cpu: new Set(cpu.filter((name) => typeof name === "string")),
  };
}

function describe(code: VerifiableCode, findings: readonly Finding[], tier: VerifiedCode["tier"]): VerifiedCode {
  const { valid: { importedFuncCount, names }, tables: { functionStart }, bytes } = code;
  return {
    tier,
    explicitBounds: code.settings.explicitBounds,
    functions: functionStart.reduce((count, start) => start < 0 ? count : count + 1, 0),
    bytes: bytes.length,
    unproven: findings.map(({ index, at, reason }) => {
      if (index < 0) return { index, name: undefined, offset: 0, reason };
      const func = index + importedFuncCount;
      return { index: func, name: names.funcs.get(func), offset: at - functionStart[index], reason };
    }),
  };
}
