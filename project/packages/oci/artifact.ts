/**
 * WebAssembly in OCI registries, in the format of the CNCF's TAG Runtime, which `wkg` uses: a manifest with one layer,
 * the module or component, and a configuration that describes it. In: references and bytes. Out: bytes with the
 * manifest's digest. Invariants: every byte that is returned or cached has the digest that the reference or the
 * manifest names; the same program has the same manifest whenever it is pushed.
 */
import { BlobCache } from "../cache.ts";
import { quote } from "../../base/diagnostic.ts";
import { type Digest, digestBytes } from "../../base/integrity.ts";
import { blobPath, type MachinePaths, machinePaths } from "../../base/paths.ts";
import { type OciReference, referenceText } from "./reference.ts";
import { OciRepository } from "./registry.ts";
import { requireSignature, signatureKey } from "./signature.ts";
import {
  type Descriptor,
  descriptorOf,
  EMPTY_TYPE,
  getBlob,
  getManifest,
  jsonBytes,
  MANIFEST_TYPE,
  manifestParts,
  MAX_MANIFEST_BYTES,
  putBlob,
  putManifest,
  requireDigest,
} from "./transfer.ts";

const CONFIG_TYPE = "application/vnd.wasm.config.v0+json";
const LAYER_TYPE = "application/wasm";

const MAX_LAYER_BYTES = 2 ** 30;

/** A program from a registry. */
export interface PulledProgram {
  /** The reference with the digest of the manifest. */
  readonly reference: string;
  readonly bytes: Uint8Array;
  /** The file in the cache that holds the bytes. */
  readonly path: string;
}

/** Facts about a program, for its configuration. */
export interface ProgramFacts {
  readonly kind: "module" | "component";
  /** The names of a component's imports and exports. */
  readonly imports: readonly string[];
  readonly exports: readonly string[];
}

interface RegistryOptions {
  readonly paths?: MachinePaths;
  readonly fetch?: typeof globalThis.fetch;
}

/** Options of a pull. */
interface PullOptions extends RegistryOptions {
  /** A public key in PEM: the artifact must have a signature by it. */
  readonly signedBy?: string;
}

/** Pulls a program, from the cache if it is there. Throws an Error; then nothing of it is cached. */
export async function pullProgram(
  reference: OciReference,
  { paths = machinePaths(), fetch: send, signedBy }: PullOptions = {},
): Promise<PulledProgram> {
  const key = signedBy === undefined ? undefined : signatureKey(signedBy);
  const cache = new BlobCache(paths);
  const repository = new OciRepository(reference, send);
  const cached = reference.digest === undefined ? undefined : await cache.find(reference.digest, MAX_MANIFEST_BYTES);
  const manifest = cached ?? await getManifest(repository, reference);
  // Before the program is fetched: nothing that is not signed gets into the cache.
  if (key !== undefined) await requireSignature(repository, digestBytes(manifest), key);
  const layer = layerOf(manifest);
  let bytes = await cache.get(layer.digest, layer.size);
  if (bytes === undefined) {
    bytes = await getBlob(repository, layer, "program");
    await cache.put(bytes);
  }
  if (cached === undefined) await cache.put(manifest);
  return {
    reference: referenceText({ ...reference, digest: digestBytes(manifest) }),
    bytes,
    path: blobPath(paths, layer.digest.slice("sha256:".length)),
  };
}

/** The layer of a manifest. Throws an Error for other artifacts. */
function layerOf(bytes: Uint8Array): Descriptor {
  const { configType, layers } = manifestParts(bytes);
  if (configType !== CONFIG_TYPE && configType !== EMPTY_TYPE) {
    throw new Error(`not WebAssembly: the configuration has the type ${quote(configType, 80)}, not ${CONFIG_TYPE}`);
  }
  if (layers.length !== 1) throw new Error("not WebAssembly: the artifact has not one layer");
  const layer = descriptorOf(layers[0], MAX_LAYER_BYTES);
  if (layer.mediaType !== LAYER_TYPE) {
    throw new Error(`not WebAssembly: the layer has the type ${quote(layer.mediaType, 80)}, not ${LAYER_TYPE}`);
  }
  return layer;
}

/** Pushes a program under the tag of a reference. Returns the reference with the digest of the manifest. */
export async function pushProgram(
  reference: OciReference,
  bytes: Uint8Array<ArrayBuffer>,
  facts: ProgramFacts,
  { fetch: send }: RegistryOptions = {},
): Promise<string> {
  const repository = new OciRepository(reference, send);
  const layer = { mediaType: LAYER_TYPE, digest: digestBytes(bytes), size: bytes.length };
  const config = jsonBytes(configOf(layer.digest, facts));
  const manifest = jsonBytes({
    schemaVersion: 2,
    mediaType: MANIFEST_TYPE,
    config: { mediaType: CONFIG_TYPE, digest: digestBytes(config), size: config.length },
    // Tools for any artifact write a layer to the file of this name.
    layers: [{
      ...layer,
      annotations: { "org.opencontainers.image.title": `${reference.name.split("/").at(-1)}.wasm` },
    }],
  });
  requireDigest(reference, manifest, "program");
  await putBlob(repository, config, "configuration");
  await putBlob(repository, bytes, "program");
  return await putManifest(repository, reference, manifest);
}

/** The time of all configurations: that of a push would give each one another digest. */
const CREATED = "1970-01-01T00:00:00Z";

function configOf(layer: Digest, { kind, imports, exports }: ProgramFacts): object {
  return {
    created: CREATED,
    architecture: "wasm",
    os: kind === "component" ? "wasip2" : "wasip1",
    layerDigests: [layer],
    ...(kind === "component" ? { component: { exports, imports } } : {}),
  };
}
