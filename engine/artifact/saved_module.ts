/**
 * Compiled modules as bytes and back. In: a CompiledModule and the options that shaped its code. Out: an artifact (artifact/format.ts), and from that a
 * CompiledModule whose code is placed in this process; nothing is compiled, no body is looked at. What lies in a file is used where the system
 * has it, in its pages.
 *
 * Trust: an artifact is machine code. What is damaged, or made by another engine, for another machine or with other options, is refused; but
 * who can write an artifact that passes can run anything in this process. Load those that you would run as a program.
 */
import { fromHex, toHex } from "../base/hex.ts";
import type { ProcessStubs } from "../codegen/target.ts";
import type { ContextLayout } from "../abi/context_layout.ts";
import { FEATURE_ROWS, type FeatureSet } from "../features.ts";
import { ArtifactError, MAPPED_FROM, readArtifact, writeArtifact } from "./format.ts";
import { engineStamp } from "./engine_stamp.ts";
import { type CodeTables, mapCodeImage, placeImage } from "../link/image.ts";
import { metadataOf, readMetadata } from "./module_metadata.ts";
import { OPTIMIZATION_ROWS, type OptimizationSet } from "../optimizations.ts";
import { cpuFeatures } from "../host/cpu.ts";
import { currentHost } from "../host/current.ts";
import { fileFacts, readFile } from "../host/files.ts";
import { type Host, PROT } from "../host/host.ts";
import { CompiledModule, type InlineSite } from "../runtime/code/compiled_module.ts";
import type { ProcessCode } from "../runtime/thread/guest_thread.ts";
import { moduleHash, rememberModuleHash, validModuleHash } from "../runtime/snapshot/snapshot.ts";
import type { Store } from "../runtime/instance/store.ts";

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
  statistics: Readonly<Record<string, number>>;
  /** What a process needs before it can run code; bytes in hexadecimal. */
  process: Omit<ProcessStubs, "bytes"> & { bytes: string; maintenance?: string };
}

function describeProcess({ stubs, maintenance }: ProcessCode): Description["process"] {
  return {
    ...stubs,
    bytes: toHex(stubs.bytes),
    ...(maintenance === undefined ? {} : { maintenance: toHex(maintenance) }),
  };
}

function processOf({ process: { bytes, maintenance, ...offsets } }: Description): ProcessCode {
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

/** What artifacts say of the machine that runs them. */
export interface CodeMachine {
  /** Such as `linux/x64`. */
  name: string;
  /** Optional instructions that the code may use. */
  cpu: ReadonlySet<string>;
  /** What a process there needs before it can run code. */
  process: ProcessCode;
}

/** The artifact of a module that was compiled, or loaded, with `options`. */
export function serializeModule(
  module: CompiledModule,
  options: CodeOptions,
  statistics: Readonly<Record<string, number>>,
): Uint8Array<ArrayBuffer> {
  const { thread, image } = module;
  const { host } = thread;
  const machine = { name: machineName(host), cpu: cpuFeatures(host), process: thread.code };
  const metadata = module.codeOffset === undefined
    ? metadataOf(module.valid.bytes)
    : { bytes: module.valid.bytes, codeOffset: module.codeOffset };
  return writeModule(machine, options, {
    ...flagsOf(module),
    bytes: new Uint8Array(host.view(image.base, image.size)).slice(),
    tables: image.tables,
    inlineSites: module.inlineSitesByFunction,
    layout: module.layout,
    signatureIds: module.signatureIds,
    metadata,
    hash: moduleHash(module),
    statistics,
  });
}

/** Compiled code before it is placed in memory. */
export interface UnplacedCode {
  valid: CompiledModule["valid"];
  layout: ContextLayout;
  bytes: Uint8Array;
  tables: CodeTables;
  signatureIds: Int32Array;
  explicitBounds: boolean;
  interruptible: boolean;
  fuel: boolean;
  deterministic: boolean;
  inlineSites: ReadonlyMap<number, readonly InlineSite[]>;
  statistics: Readonly<Record<string, number>>;
}

/** The artifact of code that was compiled with `options` for `machine`, which need not be this one. */
export function serializeCode(machine: CodeMachine, options: CodeOptions, code: UnplacedCode): Uint8Array<ArrayBuffer> {
  const { valid } = code;
  return writeModule(machine, options, { ...code, metadata: metadataOf(valid.bytes), hash: validModuleHash(valid) });
}

/** What code was told to do; artifacts say it. */
function flagsOf({ explicitBounds, interruptible, fuel, deterministic }: CompiledModule) {
  return { explicitBounds, interruptible, fuel, deterministic };
}

/** What an artifact has of code. */
interface SavedCode extends Omit<UnplacedCode, "valid"> {
  metadata: { bytes: Uint8Array; codeOffset: number };
  hash: Uint8Array;
}

function writeModule(machine: CodeMachine, options: CodeOptions, code: SavedCode): Uint8Array<ArrayBuffer> {
  const { bytes, tables } = code;
  for (const at of tables.pollAt) bytes.fill(0, at, at + 4); // depends on the place
  const description: Description = {
    engine: engineStamp(),
    machine: machine.name,
    cpu: [...machine.cpu].sort(),
    options: optionNames(options),
    explicitBounds: code.explicitBounds,
    interruptible: code.interruptible,
    fuel: code.fuel,
    deterministic: code.deterministic,
    hash: toHex(code.hash),
    codeOffset: code.metadata.codeOffset,
    layout: code.layout,
    statistics: code.statistics,
    process: describeProcess(machine.process),
  };
  return writeArtifact({
    description,
    metadata: code.metadata.bytes,
    code: bytes,
    signatureIds: code.signatureIds,
    inlined: writeInlined(code.inlineSites),
    tables,
  });
}

/** Gives the store that modules are loaded into; one that has to be made first is made of the artifact's process code. */
export type StoreFor = (code: ProcessCode) => Store;

/** What `loadModule` gives. */
export interface LoadedModule {
  compiled: CompiledModule;
  statistics: Readonly<Record<string, number>>;
}

/** A file in memory: what it holds, while anybody looks at it, and the file to map parts of elsewhere. */
interface MappedFile {
  bytes: Uint8Array;
  image: number;
}

/** Mappings of files, by the buffers over them. */
const MAPPINGS = new FinalizationRegistry<{ host: Host; address: number; bytes: number }>(({ host, address, bytes }) =>
  host.release(address, bytes)
);

/** Maps the file at `path`; undefined when the system has no way to. Its image is to be closed. */
function mapFile(host: Host, path: string): MappedFile | undefined {
  let image: number | undefined;
  try {
    const file = host.openImage(path);
    image = file.image;
    if (file.bytes === 0 || file.bytes > host.maxViewBytes) throw new RangeError("The file cannot be mapped");
    const address = host.reserve(file.bytes, PROT.NONE);
    try {
      // Writable, so that whoever writes to a view of it changes nothing but that.
      host.mapImage(address, file.bytes, image);
    } catch (error) {
      host.release(address, file.bytes);
      throw error;
    }
    const buffer = host.view(address, file.bytes);
    MAPPINGS.register(buffer, { host, address, bytes: file.bytes });
    return { bytes: new Uint8Array(buffer), image };
  } catch {
    if (image !== undefined) host.closeImage(image);
    return undefined;
  }
}

/**
 * The module of the artifact in a file, whose pages are used as they are where that is possible: nothing is copied, and what is not run is not
 * read again. Whoever writes the file anew must do so under another name and rename that. Throws ArtifactError, and what reading a file throws.
 * `contents` gives the artifact at the start of the file's bytes where more follows it.
 */
export function loadModuleFile(
  storeFor: StoreFor,
  path: string,
  options: CodeOptions,
  wantsExplicit: (valid: CompiledModule["valid"]) => boolean,
  contents: (file: Uint8Array) => Uint8Array = (file) => file,
): LoadedModule {
  const host = currentHost();
  // Small ones are read faster than mapped; and this says what is wrong with a path.
  const file = fileFacts(path).bytes < MAPPED_FROM ? undefined : mapFile(host, path);
  if (file === undefined) return loadModule(storeFor, contents(readFile(path)), options, wantsExplicit);
  try {
    return loadModule(storeFor, contents(file.bytes), options, wantsExplicit, file.image);
  } finally {
    host.closeImage(file.image);
  }
}

/**
 * The module of an artifact, its code placed in memory: copied, or mapped where `image` is a file with the same bytes. `wantsExplicit` says
 * whether code with guard pages can be used here; nothing is made in this process before it is asked. Throws ArtifactError, and what it throws.
 */
export function loadModule(
  storeFor: StoreFor,
  bytes: Uint8Array,
  options: CodeOptions,
  wantsExplicit: (valid: CompiledModule["valid"]) => boolean,
  image?: number,
): LoadedModule {
  const parts = readArtifact(bytes);
  const description = parts.description as Description;
  if (typeof description?.engine !== "string") throw new ArtifactError("The artifact does not say what made it");
  const host = currentHost();
  requireFit(description, options, host);
  let valid: CompiledModule["valid"];
  try {
    valid = readMetadata(parts.metadata, options.features);
  } catch (error) {
    throw new ArtifactError(`The artifact's module cannot be read: ${(error as Error).message}`);
  }
  const explicit = wantsExplicit(valid);
  if (!description.explicitBounds && explicit) {
    throw new ArtifactError(
      "The artifact's code needs guard pages, which cannot be used here: compile it with explicit bounds",
    );
  }
  const { code, tables } = parts;
  const store = storeFor(processOf(description));
  const { thread } = store;
  const { arena } = thread;
  const mapped = image === undefined ? undefined : mapCodeImage(
    arena,
    { image, offset: code.byteOffset - bytes.byteOffset, bytes: code.length, pageSize: host.pageSize },
    tables,
  );
  const compiled = new CompiledModule(thread, valid, {
    layout: description.layout,
    image: mapped ?? placeImage(arena, code, tables),
    explicitBounds: description.explicitBounds,
    interruptible: description.interruptible,
    fuel: description.fuel,
    deterministic: description.deterministic,
    signatureIds: parts.signatureIds,
    inlineSites: () => readInlined(parts.inlined),
    codeOffset: description.codeOffset,
  });
  rememberModuleHash(compiled, fromHex(description.hash));
  store.addModule(compiled);
  return { compiled, statistics: description.statistics };
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
