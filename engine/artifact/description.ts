/**
 * The description of an artifact: the engine that made it, its machine and options, and the machine code that a process
 * needs before it can run any other. In: engine options and process code. Out: plain data that artifacts store as JSON,
 * and process code read back from it.
 */
import type { CodeDescription } from "../link/code_description.ts";
import { fromHex, toHex } from "../base/hex.ts";
import type { ProcessStubs } from "../codegen/target.ts";
import { ALL_FEATURE_ROWS, type FeatureSet } from "../settings/features.ts";
import { type ChosenSettings, settingNames } from "../settings/code_settings.ts";
import { OPTIMIZATION_ROWS, type OptimizationSet } from "../settings/optimizations.ts";
import type { Host } from "../host/host.ts";
import type { ProcessCode } from "../runtime/thread/process_entry.ts";

/** The engine options that determine the generated code. */
export interface CodeOptions extends ChosenSettings {
  features: FeatureSet;
  optimizations: OptimizationSet;
}

/** The textual part of an artifact: engine, machine, options and the description of the code. */
export interface ArtifactDescription extends Omit<CodeDescription, "signatureIds" | "inlineSites"> {
  engine: string;
  machine: string;
  cpu: string[];
  options: string[];
  hash: string;
  codeOffset: number;
  statistics: Readonly<Record<string, number>>;
  /** The machine code that a process needs before it can run any other; bytes in hexadecimal. */
  process: Omit<ProcessStubs, "bytes"> & { bytes: string; maintenance?: string };
}

/** Encodes the machine code of a process for an artifact. */
export function describeProcess({ stubs, maintenance }: ProcessCode): ArtifactDescription["process"] {
  return {
    ...stubs,
    bytes: toHex(stubs.bytes),
    ...(maintenance === undefined ? {} : { maintenance: toHex(maintenance) }),
  };
}

/** Decodes the machine code of a process from an artifact. */
export function processOf({ process: { bytes, maintenance, ...offsets } }: ArtifactDescription): ProcessCode {
  return {
    stubs: { ...offsets, bytes: fromHex(bytes) },
    maintenance: maintenance === undefined ? undefined : fromHex(maintenance),
  };
}

/** The names of the enabled options, in a fixed order. */
export function optionNames(options: CodeOptions): string[] {
  const names: string[] = [];
  for (const { name } of ALL_FEATURE_ROWS) if (options.features[name]) names.push(`features.${name}`);
  for (const { name } of OPTIMIZATION_ROWS) if (options.optimizations[name]) names.push(`optimizations.${name}`);
  return [...names, ...settingNames(options)];
}

/** The name of a target machine, such as `linux/x64`. */
export function machineName(host: Pick<Host, "os" | "arch">): string {
  return `${host.os}/${host.arch}`;
}

/** The target machine of an artifact. */
export interface CodeMachine {
  /** The machine's name, such as `linux/x64`. */
  name: string;
  /** The optional instruction sets that the code may use. */
  cpu: ReadonlySet<string>;
  /** The machine code that a process on that machine needs before it can run any other. */
  process: ProcessCode;
}
