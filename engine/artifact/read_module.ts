/**
 * Loads artifacts. In: an artifact in memory or in a file, and the code options of the engine. Out: a CompiledModule
 * whose code is placed in this process. Nothing is compiled and no function body is read.
 *
 * Trust: an artifact is machine code. A damaged artifact, or one made by another engine, for another machine or with
 * other options, is refused, but these checks do not authenticate it: the author of an artifact that passes them can
 * run any code in this process. Load only artifacts that you would run as programs.
 */
import type { ValidModule } from "../validate/valid_module.ts";
import { codeSettings } from "../settings/code_settings.ts";
import { fromHex } from "../base/hex.ts";
import { ArtifactError, MAPPED_FROM, readArtifact } from "./format.ts";
import { engineStamp } from "./engine_stamp.ts";
import { mapCodeImage, placeImage } from "../link/image.ts";
import { readMetadata } from "./module_metadata.ts";
import { readInlined } from "./inlined_sites.ts";
import { cpuFeatures } from "../host/cpu.ts";
import { currentHost } from "../host/current.ts";
import { fileFacts, readFile } from "../host/files.ts";
import { type Host, PROT } from "../host/host.ts";
import { CompiledModule } from "../runtime/code/compiled_module.ts";
import type { ProcessCode } from "../runtime/thread/process_entry.ts";
import { rememberModuleHash } from "../runtime/snapshot/snapshot.ts";
import type { Store } from "../runtime/instance/store.ts";
import { type ArtifactDescription, type CodeOptions, machineName, optionNames, processOf } from "./description.ts";

/** Returns the store for loaded modules, created from the artifact's process code if none exists yet. */
type StoreFor = (code: ProcessCode) => Store;

/** A loaded module, and the optimization statistics of its compilation. */
export interface LoadedModule {
  compiled: CompiledModule;
  statistics: Readonly<Record<string, number>>;
}

/**
 * A mapped file: a view of its contents, valid while the view is reachable, and the host's image handle for mapping
 * parts elsewhere.
 */
interface MappedFile {
  bytes: Uint8Array;
  image: number;
}

/** Releases a file mapping when its buffer is collected. */
const MAPPINGS = new FinalizationRegistry<{ host: Host; address: number; bytes: number }>(({ host, address, bytes }) =>
  host.release(address, bytes)
);

/** Maps the file at `path`; undefined if the system cannot. The caller closes the image. */
function mapFile(host: Host, path: string): MappedFile | undefined {
  let image: number | undefined;
  try {
    const file = host.openImage(path);
    image = file.image;
    if (file.bytes === 0 || file.bytes > host.maxViewBytes) throw new RangeError("The file cannot be mapped");
    const address = host.reserve(file.bytes, PROT.NONE);
    try {
      // Writable and private: writes through a view of the mapping do not reach the file.
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
 * Loads the artifact in a file and maps the pages of a large file where the system can, so that its code is not copied:
 * loading reads the bytes once, for the checksum. To replace such a file, rename another one over it; never rewrite it
 * in place. `contents` extracts the artifact from the start of the file where other data follows it.
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
  // Reading a small file is faster than mapping it; reading also reports invalid paths.
  const file = fileFacts(path).bytes < MAPPED_FROM ? undefined : mapFile(host, path);
  if (file === undefined) return loadModule(storeFor, contents(readFile(path)), options, wantsExplicit);
  try {
    return loadModule(storeFor, contents(file.bytes), options, wantsExplicit, file.image);
  } finally {
    host.closeImage(file.image);
  }
}

/**
 * Loads an artifact and places its code in memory: copied, or mapped if `image` is a file with the same bytes.
 * `wantsExplicit` decides, before anything is created in this process, whether only code with explicit bounds checks
 * can be used.
 *
 * Throws ArtifactError, and the errors of `wantsExplicit`.
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
  if (typeof description?.engine !== "string") {
    throw new ArtifactError("The artifact does not name the engine that made it");
  }
  const host = currentHost();
  requireFit(description, options, host);
  let valid: ValidModule;
  try {
    valid = readMetadata(parts.metadata, options.features);
  } catch (error) {
    throw new ArtifactError(`The artifact's module metadata is invalid: ${(error as Error).message}`);
  }
  const explicit = wantsExplicit(valid);
  const settings = codeSettings(description.settings);
  if (!settings.explicitBounds && explicit) {
    throw new ArtifactError(
      "The artifact's code needs guard pages, which are unavailable here: compile it with explicit bounds",
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
    settings,
    image: mapped ?? placeImage(arena, code, tables),
    signatureIds: parts.signatureIds,
    inlineSites: () => readInlined(parts.inlined),
  });
  rememberModuleHash(compiled, fromHex(description.hash));
  store.addModule(compiled);
  return { compiled, statistics: description.statistics };
}

/** Refuses an artifact that this engine would have compiled differently or that this machine cannot run. */
function requireFit(description: ArtifactDescription, options: CodeOptions, host: Host): void {
  if (description.engine !== engineStamp()) {
    throw new ArtifactError(
      `The artifact was made by waft ${description.engine}, but this is ${engineStamp()}: compile the module again`,
    );
  }
  const machine = machineName(host);
  if (description.machine !== machine) {
    throw new ArtifactError(`The artifact is for ${description.machine}, but this machine is ${machine}`);
  }
  const cpu = cpuFeatures(host);
  const missing = description.cpu.filter((name) => !cpu.has(name));
  if (missing.length > 0) {
    throw new ArtifactError(`The artifact needs a processor with ${missing.join(", ")}`);
  }
  const wanted = optionNames(options);
  const differences = [
    ...wanted.filter((name) => !description.options.includes(name)).map((name) => `${name} is off in the artifact`),
    ...description.options.filter((name) => !wanted.includes(name)).map((name) => `${name} is on in the artifact`),
  ];
  if (differences.length > 0) {
    throw new ArtifactError(`The artifact was compiled with different options: ${differences.join(", ")}`);
  }
}
