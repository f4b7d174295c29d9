/**
 * Artifacts to compiled modules. In: an artifact in memory or in a file, and the options of the engine that wants it. Out: a
 * CompiledModule whose code is placed in this process. Nothing is compiled and no function body is read.
 *
 * Trust: an artifact is machine code. A damaged artifact, or one made by another engine, for another machine or with other
 * options, is refused. But whoever can write an artifact that passes these checks can run anything in this process: load
 * only artifacts that you would run as a program.
 */
import type { InlineSite } from "../link/code_description.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { fromHex } from "../base/hex.ts";
import { ArtifactError, MAPPED_FROM, readArtifact } from "./format.ts";
import { engineStamp } from "./engine_stamp.ts";
import { mapCodeImage, placeImage } from "../link/image.ts";
import { readMetadata } from "./module_metadata.ts";
import { cpuFeatures } from "../host/cpu.ts";
import { currentHost } from "../host/current.ts";
import { fileFacts, readFile } from "../host/files.ts";
import { type Host, PROT } from "../host/host.ts";
import { CompiledModule } from "../runtime/code/compiled_module.ts";
import type { ProcessCode } from "../runtime/thread/guest_thread.ts";
import { rememberModuleHash } from "../runtime/snapshot/snapshot.ts";
import type { Store } from "../runtime/instance/store.ts";
import { type ArtifactDescription, type CodeOptions, machineName, optionNames, processOf } from "./description.ts";

/** Returns the store that modules are loaded into, creating it from the artifact's process code if there is none yet. */
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

/** Maps the file at `path`; undefined when the system cannot. The caller closes the image. */
function mapFile(host: Host, path: string): MappedFile | undefined {
  let image: number | undefined;
  try {
    const file = host.openImage(path);
    image = file.image;
    if (file.bytes === 0 || file.bytes > host.maxViewBytes) throw new RangeError("The file cannot be mapped");
    const address = host.reserve(file.bytes, PROT.NONE);
    try {
      // Writable and private: a write through a view of the mapping does not reach the file.
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
 * Loads the artifact in a file and uses the file's pages in place where the system can map them, so that code which never
 * runs is never read. A file that may be loaded must be replaced by renaming, not rewritten. `contents` gives the artifact
 * at the start of the file's bytes where more follows it.
 *
 * Throws ArtifactError, and system errors of reading the file.
 */
export function loadModuleFile(
  storeFor: StoreFor,
  path: string,
  options: CodeOptions,
  wantsExplicit: (valid: ValidModule) => boolean,
  contents: (file: Uint8Array) => Uint8Array = (file) => file,
): LoadedModule {
  const host = currentHost();
  // Small files are read faster than mapped; reading also reports what is wrong with a path.
  const file = fileFacts(path).bytes < MAPPED_FROM ? undefined : mapFile(host, path);
  if (file === undefined) return loadModule(storeFor, contents(readFile(path)), options, wantsExplicit);
  try {
    return loadModule(storeFor, contents(file.bytes), options, wantsExplicit, file.image);
  } finally {
    host.closeImage(file.image);
  }
}

/**
 * Loads an artifact and places its code in memory: copied, or mapped where `image` is a file with the same bytes.
 * `wantsExplicit` decides, before anything is created in this process, whether only code with explicit bounds can be used.
 *
 * Throws ArtifactError, and errors of `wantsExplicit`.
 */
export function loadModule(
  storeFor: StoreFor,
  bytes: Uint8Array,
  options: CodeOptions,
  wantsExplicit: (valid: ValidModule) => boolean,
  image?: number,
): LoadedModule {
  const parts = readArtifact(bytes);
  const description = parts.description as ArtifactDescription;
  if (typeof description?.engine !== "string") throw new ArtifactError("The artifact does not say what made it");
  const host = currentHost();
  requireFit(description, options, host);
  let valid: ValidModule;
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
    ...description,
    image: mapped ?? placeImage(arena, code, tables),
    signatureIds: parts.signatureIds,
    inlineSites: () => readInlined(parts.inlined),
  });
  rememberModuleHash(compiled, fromHex(description.hash));
  store.addModule(compiled);
  return { compiled, statistics: description.statistics };
}

/** Refuses an artifact whose code this engine would not have made, or this machine cannot run. */
function requireFit(description: ArtifactDescription, options: CodeOptions, host: Host): void {
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
