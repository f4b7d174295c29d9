/**
 * Compiled modules as bytes and back. In: a CompiledModule and the options that shaped its code. Out: an artifact (link/artifact.ts), and from that a
 * CompiledModule whose code is placed in this process; nothing is compiled, no body is looked at.
 *
 * Trust: an artifact is machine code. What is damaged, or made by another engine, for another machine or with other options, is refused; but
 * who can write an artifact that passes can run anything in this process. Load those that you would run as a program.
 */
import type { ContextLayout } from "../context_layout.ts";
import { FEATURE_ROWS, type FeatureSet } from "../features.ts";
import { ArtifactError, readArtifact, writeArtifact } from "../link/artifact.ts";
import { engineStamp } from "../link/engine_stamp.ts";
import { placeImage } from "../link/image.ts";
import { outlineOf, readOutline } from "./outline.ts";
import { OPTIMIZATION_ROWS, type OptimizationSet } from "../optimizations.ts";
import { cpuFeatures } from "../host/cpu.ts";
import type { Host } from "../host/host.ts";
import { CompiledModule, type InlineSite } from "./compiled_module.ts";
import { moduleHash, rememberModuleHash } from "./snapshot.ts";
import type { Store } from "./store.ts";

/** The options of an engine that decide what code it makes. */
export interface CodeOptions {
  features: FeatureSet;
  optimizations: OptimizationSet;
  interruptible: boolean;
  fuel: boolean;
  deterministic: boolean;
}

/** What an artifact says of itself. */
interface Description {
  engine: string;
  machine: string;
  cpu: string[];
  options: string[];
  explicitBounds: boolean;
  /** What the code does, which an option may have asked for. */
  interruptible: boolean;
  fuel: boolean;
  deterministic: boolean;
  hash: string;
  codeOffset: number;
  layout: ContextLayout;
  hits: Record<string, number>;
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
export function machineName(host: Host): string {
  return `${host.os}/${host.arch}`;
}

/** The artifact of a module that was compiled, or loaded, with `options`. */
export function serializeModule(
  module: CompiledModule,
  options: CodeOptions,
  hits: Readonly<Record<string, number>>,
): Uint8Array<ArrayBuffer> {
  const { thread, image } = module;
  const code = new Uint8Array(thread.host.view(image.base, image.size)).slice();
  for (const at of image.tables.pollAt) code.fill(0, at, at + 4); // depends on the place
  const outline = module.codeOffset === undefined
    ? outlineOf(module.valid.bytes)
    : { bytes: module.valid.bytes, codeOffset: module.codeOffset };
  const description: Description = {
    engine: engineStamp(),
    machine: machineName(thread.host),
    cpu: [...cpuFeatures(thread.host)].sort(),
    options: optionNames(options),
    explicitBounds: module.explicitBounds,
    interruptible: module.interruptible,
    fuel: module.fuel,
    deterministic: module.deterministic,
    hash: [...moduleHash(module)].map((byte) => byte.toString(16).padStart(2, "0")).join(""),
    codeOffset: outline.codeOffset,
    layout: module.layout,
    hits,
  };
  return writeArtifact({
    description,
    outline: outline.bytes,
    code,
    signatureIds: module.signatureIds,
    inlined: writeInlined(module.inlineSitesByFunction),
    tables: image.tables,
  });
}

/** What `loadModule` gives. */
export interface LoadedModule {
  compiled: CompiledModule;
  hits: Readonly<Record<string, number>>;
}

/**
 * The module of an artifact, its code placed in memory. `wantsExplicit` says whether code with guard pages can be used here. Throws
 * ArtifactError.
 */
export function loadModule(
  store: Store,
  bytes: Uint8Array,
  options: CodeOptions,
  wantsExplicit: (valid: CompiledModule["valid"]) => boolean,
): LoadedModule {
  const parts = readArtifact(bytes);
  const description = parts.description as Description;
  if (typeof description?.engine !== "string") throw new ArtifactError("The artifact does not say what made it");
  const { thread } = store;
  requireFit(description, options, thread.host);
  let valid: CompiledModule["valid"];
  try {
    valid = readOutline(parts.outline, options.features);
  } catch (error) {
    throw new ArtifactError(`The artifact's module cannot be read: ${(error as Error).message}`);
  }
  if (!description.explicitBounds && wantsExplicit(valid)) {
    throw new ArtifactError(
      "The artifact's code needs guard pages, which cannot be used here: compile it with explicit bounds",
    );
  }
  const { tables } = parts;
  // The input stays what it is: a second load checks it again.
  const code = tables.pollAt.length > 0 ? parts.code.slice() : parts.code;
  const compiled = new CompiledModule(thread, valid, {
    layout: description.layout,
    image: placeImage(thread.arena, code, tables),
    explicitBounds: description.explicitBounds,
    interruptible: description.interruptible,
    fuel: description.fuel,
    deterministic: description.deterministic,
    signatureIds: parts.signatureIds,
    inlineSites: () => readInlined(parts.inlined),
    codeOffset: description.codeOffset,
  });
  rememberModuleHash(compiled, Uint8Array.from(description.hash.match(/../g) ?? [], (pair) => parseInt(pair, 16)));
  store.addModule(compiled);
  return { compiled, hits: description.hits };
}

/** Refuses an artifact whose code this engine would not have made, or this machine cannot run. */
function requireFit(description: Description, options: CodeOptions, host: Host): void {
  if (description.engine !== engineStamp()) {
    throw new ArtifactError(
      `The artifact was made by waft ${description.engine}, this is ${engineStamp()}: compile it again`,
    );
  }
  const machine = machineName(host);
  if (description.machine !== machine) {
    throw new ArtifactError(`The artifact is for ${description.machine}, this machine is ${machine}`);
  }
  const cpu = cpuFeatures(host);
  const lacking = description.cpu.filter((name) => !cpu.has(name));
  if (lacking.length > 0) {
    throw new ArtifactError(`The artifact needs a processor with ${lacking.join(", ")}`);
  }
  const wanted = optionNames(options);
  const differing = [
    ...wanted.filter((name) => !description.options.includes(name)).map((name) => `${name} is off in it`),
    ...description.options.filter((name) => !wanted.includes(name)).map((name) => `${name} is on in it`),
  ];
  if (differing.length > 0) {
    throw new ArtifactError(`The artifact was compiled with other options than this engine's: ${differing.join(", ")}`);
  }
}

function writeInlined(sites: ReadonlyMap<number, readonly InlineSite[]>): Int32Array {
  const words: number[] = [];
  for (const [index, list] of sites) {
    words.push(index, list.length);
    for (const { parent, callPos, funcIndex } of list) words.push(parent, callPos, funcIndex);
  }
  return Int32Array.from(words);
}

function readInlined(words: Int32Array): Map<number, InlineSite[]> {
  const sites = new Map<number, InlineSite[]>();
  for (let at = 0; at + 2 <= words.length;) {
    const list: InlineSite[] = [];
    const index = words[at]!;
    const count = words[at + 1]!;
    at += 2;
    for (let k = 0; k < count && at + 3 <= words.length; k++, at += 3) {
      list.push({ parent: words[at]!, callPos: words[at + 1]!, funcIndex: words[at + 2]! });
    }
    sites.set(index, list);
  }
  return sites;
}
