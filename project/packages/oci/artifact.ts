/**
 * WebAssembly in OCI registries, in the format of the CNCF's TAG Runtime, which `wkg` uses: a manifest with one layer,
 * the module or component, and a configuration that describes it. In: references and bytes. Out: bytes with the
 * manifest's digest. Invariants: every byte that is returned or cached has the digest that the reference or the
 * manifest names; the same program has the same manifest whenever it is pushed.
 */
import { BlobCache } from "../cache.ts";
import { quote } from "../../base/diagnostic.ts";
import { type Digest, digestBytes, isDigest } from "../../base/integrity.ts";
import { blobPath, type MachinePaths, machinePaths } from "../../base/paths.ts";
import { type OciReference, referenceText } from "./reference.ts";
import { OciRepository, parseJson } from "./registry.ts";

const MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE = "application/vnd.oci.image.index.v1+json";
const CONFIG_TYPE = "application/vnd.wasm.config.v0+json";
/** The type of a configuration without content, which tools for any artifact write. */
const EMPTY_TYPE = "application/vnd.oci.empty.v1+json";
const LAYER_TYPE = "application/wasm";

/** Registries accept manifests of this size. */
const MAX_MANIFEST_BYTES = 4 << 20;
const MAX_LAYER_BYTES = 2 ** 30;
const MAX_ANSWER_BYTES = 1 << 16;

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

interface Descriptor {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly size: number;
}

interface RegistryOptions {
  readonly paths?: MachinePaths;
  readonly fetch?: typeof globalThis.fetch;
}

/** Pulls a program, from the cache if it is there. Throws an Error; then nothing of it is cached. */
export async function pullProgram(
  reference: OciReference,
  { paths = machinePaths(), fetch: send }: RegistryOptions = {},
): Promise<PulledProgram> {
  const cache = new BlobCache(paths);
  const repository = new OciRepository(reference, send);
  const cached = reference.digest === undefined ? undefined : await cache.find(reference.digest, MAX_MANIFEST_BYTES);
  const manifest = cached ?? await getManifest(repository, reference);
  const layer = layerOf(manifest);
  let bytes = await cache.get(layer.digest, layer.size);
  if (bytes === undefined) {
    bytes = await getBlob(repository, layer);
    await cache.put(bytes);
  }
  if (cached === undefined) await cache.put(manifest);
  return {
    reference: referenceText({ ...reference, digest: digestBytes(manifest) }),
    bytes,
    path: blobPath(paths, layer.digest.slice("sha256:".length)),
  };
}

async function getManifest(repository: OciRepository, { tag, digest }: OciReference): Promise<Uint8Array> {
  const { bytes, headers } = await repository.send(`manifests/${digest ?? tag}`, {
    access: "pull",
    headers: { accept: `${MANIFEST_TYPE}, ${INDEX_TYPE}` },
    maxBytes: MAX_MANIFEST_BYTES,
    what: "manifest",
    statuses: [200],
  });
  const promised = digest ?? headers.get("docker-content-digest") ?? undefined;
  const found = digestBytes(bytes);
  if (promised !== undefined && promised !== found) {
    throw new Error(`the manifest does not have its digest: expected ${quote(promised, 80)}, got ${found}`);
  }
  return bytes;
}

async function getBlob(repository: OciRepository, { digest, size }: Descriptor): Promise<Uint8Array> {
  const { bytes } = await repository.send(`blobs/${digest}`, {
    access: "pull",
    maxBytes: size,
    what: "program",
    statuses: [200],
  });
  if (bytes.length !== size) throw new Error(`the program has ${bytes.length} bytes; its manifest says ${size}`);
  const found = digestBytes(bytes);
  if (found !== digest) throw new Error(`the program does not have its digest: expected ${digest}, got ${found}`);
  return bytes;
}

/** The layer of a manifest. Throws an Error for other artifacts. */
function layerOf(bytes: Uint8Array): Descriptor {
  const manifest = record(parseJson(bytes, "manifest"), "manifest");
  if (manifest["mediaType"] === INDEX_TYPE || "manifests" in manifest) {
    throw new Error("the reference names an index of several artifacts; name one of them by its digest");
  }
  const { mediaType: configType } = record(manifest["config"], "manifest's configuration");
  if (configType !== CONFIG_TYPE && configType !== EMPTY_TYPE) {
    throw new Error(
      `not WebAssembly: the configuration has the type ${quote(String(configType), 80)}, not ${CONFIG_TYPE}`,
    );
  }
  const { layers } = manifest;
  if (!Array.isArray(layers) || layers.length !== 1) throw new Error("not WebAssembly: the artifact has not one layer");
  const { mediaType, digest, size } = record(layers[0], "manifest's layer");
  if (mediaType !== LAYER_TYPE) {
    throw new Error(`not WebAssembly: the layer has the type ${quote(String(mediaType), 80)}, not ${LAYER_TYPE}`);
  }
  if (typeof digest !== "string" || !isDigest(digest)) throw new Error("the layer has no SHA-256 digest");
  if (!Number.isSafeInteger(size) || Number(size) < 0) throw new Error("the layer has no size");
  if (Number(size) > MAX_LAYER_BYTES) throw new Error(`the layer has more than ${MAX_LAYER_BYTES} bytes`);
  return { mediaType, digest, size: Number(size) };
}

function record(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`the ${what} is no object`);
  return value as Readonly<Record<string, unknown>>;
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
  const digest = digestBytes(manifest);
  if (reference.digest !== undefined && reference.digest !== digest) {
    throw new Error(`the program's manifest has the digest ${digest}, not that of the reference`);
  }
  await putBlob(repository, config, "configuration");
  await putBlob(repository, bytes, "program");
  await repository.send(`manifests/${reference.tag ?? digest}`, {
    access: "push",
    method: "PUT",
    headers: { "content-type": MANIFEST_TYPE },
    body: manifest,
    maxBytes: MAX_ANSWER_BYTES,
    what: "manifest",
    statuses: [201],
  });
  return referenceText({ ...reference, digest });
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

function jsonBytes(value: object): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(value));
}

async function putBlob(repository: OciRepository, bytes: Uint8Array<ArrayBuffer>, what: string): Promise<void> {
  const digest = digestBytes(bytes);
  const common = { access: "push", maxBytes: MAX_ANSWER_BYTES, what } as const;
  const known = await repository.send(`blobs/${digest}`, { ...common, method: "HEAD", statuses: [200, 404] });
  if (known.status === 200) return;
  const { headers, url } = await repository.send("blobs/uploads/", { ...common, method: "POST", statuses: [202] });
  const location = headers.get("location");
  if (location === null || !URL.canParse(location, url)) throw new Error(`the registry has no place for the ${what}`);
  const target = new URL(location, url);
  target.searchParams.set("digest", digest);
  await repository.send(target.href, {
    ...common,
    method: "PUT",
    headers: { "content-type": "application/octet-stream" },
    body: bytes,
    statuses: [201],
  });
}
