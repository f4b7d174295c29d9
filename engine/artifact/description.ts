/**
 * The description of an artifact: which engine made it, for which machine and options, and the machine code that a process
 * needs. In: engine options and process code. Out: plain data that artifacts store as JSON, and the process code again.
 */
import type { CodeDescription } from "../link/code_description.ts";
import { fromHex, toHex } from "../base/hex.ts";
import type { ProcessStubs } from "../codegen/target.ts";
import { FEATURE_ROWS, type FeatureSet } from "../features.ts";
import { OPTIMIZATION_ROWS, type OptimizationSet } from "../optimizations.ts";
import type { Host } from "../host/host.ts";
import type { ProcessCode } from "../runtime/thread/guest_thread.ts";

/** The options of an engine that decide what code it makes. */
export interface CodeOptions {
  features: FeatureSet;
  optimizations: OptimizationSet;
  interruptible: boolean;
  fuel: boolean;
  deterministic: boolean;
}

/** The part of an artifact that is text: what made it, for which machine and options, and its code's description. */
export interface ArtifactDescription extends Omit<CodeDescription, "signatureIds" | "inlineSites"> {
  engine: string;
  machine: string;
  cpu: string[];
  options: string[];
  hash: string;
  codeOffset: number;
  statistics: Readonly<Record<string, number>>;
  /** Machine code that a process needs before it can run any other; bytes in hexadecimal. */
  process: Omit<ProcessStubs, "bytes"> & { bytes: string; maintenance?: string };
}

/** The machine code of a process, as an artifact stores it. */
export function describeProcess({ stubs, maintenance }: ProcessCode): ArtifactDescription["process"] {
  return {
    ...stubs,
    bytes: toHex(stubs.bytes),
    ...(maintenance === undefined ? {} : { maintenance: toHex(maintenance) }),
  };
}

/** The machine code of a process that an artifact carries. */
export function processOf({ process: { bytes, maintenance, ...offsets } }: ArtifactDescription): ProcessCode {
  return {
    stubs: { ...offsets, bytes: fromHex(bytes) },
    maintenance: maintenance === undefined ? undefined : fromHex(maintenance),
  };
}

/** The names of the options that are on, in a fixed order. */
export function optionNames(options: CodeOptions): string[] {
  const names: string[] = [];
  for (const { name } of FEATURE_ROWS) if (options.features[name]) names.push(`features.${name}`);
  for (const { name } of OPTIMIZATION_ROWS) if (options.optimizations[name]) names.push(`optimizations.${name}`);
  for (const name of ["interruptible", "fuel", "deterministic"] as const) if (options[name]) names.push(name);
  return names;
}

/** The machine that code is made for, such as `linux/x64`. */
export function machineName(host: Pick<Host, "os" | "arch">): string {
  return `${host.os}/${host.arch}`;
}

/** The machine that an artifact is for. */
export interface CodeMachine {
  /** Such as `linux/x64`. */
  name: string;
  /** Optional instructions that the code may use. */
  cpu: ReadonlySet<string>;
  /** Machine code that a process there needs before it can run any other. */
  process: ProcessCode;
}
