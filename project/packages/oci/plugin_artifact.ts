/**
 * Packages of plugins in OCI registries: a manifest with one layer, the archive that registries of waft store, too. In:
 * references and archives. Out: archives with the digest of the manifest. Invariants: an archive that is returned has
 * the digest that its manifest names; if there is a key, the manifest has a signature by it. No archive is read here.
 */
import type { BlobCache } from "../cache.ts";
import { quote } from "../../base/diagnostic.ts";
import { type Digest, digestBytes } from "../../base/integrity.ts";
import { canonicalVersion, compareVersions, satisfies } from "../../base/version.ts";
import { ARCHIVE_LIMITS } from "../archive.ts";
import type { OciReference } from "./reference.ts";
import { OciRepository, parseJson } from "./registry.ts";
import { requireSignature, storedKey } from "./signature.ts";
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

const ARTIFACT_TYPE = "application/vnd.waft.plugin.v1";
const LAYER_TYPE = "application/vnd.waft.plugin.v1.tar+gzip";
/** The annotation that holds the package's version. */
const VERSION_NAME = "org.opencontainers.image.version";

/** The most tags of a repository that are read. */
const MAX_TAGS = 10_000;
const MAX_TAGS_BYTES = 4 << 20;

/** A reference whose tag may be missing: then the newest version applies. */
export type PluginReference = Pick<OciReference, "host" | "name" | "tag" | "digest">;

/** A package in a registry. */
export interface PluginArtifact {
  /** The digest of the manifest. */
  readonly manifest: Digest;
  readonly version: string;
  readonly archive: Descriptor;
  readonly bytes: Uint8Array;
}

/** How a package is pulled. */
export interface PluginPull {
  readonly cache: BlobCache;
  readonly fetch?: typeof globalThis.fetch;
  /** The stored form of a public key: the manifest must have a signature by it. */
  readonly signedBy?: string;
  /** The versions to choose from, if the reference has neither tag nor digest. */
  readonly range?: string;
  /** Asks the registry even if everything is cached. */
  readonly fresh?: boolean;
  /** Uses no network. */
  readonly offline?: boolean;
}

/**
 * Pulls the package of a reference. One with a digest that is cached needs no registry, and no signature again: its
 * signature was checked when the digest was chosen. Throws an Error.
 */
export async function pullPlugin(reference: PluginReference, options: PluginPull): Promise<PluginArtifact> {
  const { cache, signedBy, fresh = false, offline = false } = options;
  if (!fresh) {
    const cached = await cachedPlugin(reference, cache);
    if (cached !== undefined) return cached;
  }
  if (offline) throw new Error("the package is not in the cache, and --offline forbids fetching it");
  const repository = new OciRepository(reference, options.fetch);
  const { digest, tag = digest === undefined ? await newestTag(repository, options.range) : undefined } = reference;
  const manifest = await getManifest(repository, { tag, digest });
  const found = digestBytes(manifest);
  // Before the package is fetched: nothing that is not signed gets into the cache.
  if (signedBy !== undefined) await requireSignature(repository, found, storedKey(signedBy));
  const { version, archive } = packageOf(manifest);
  const bytes = await cache.get(archive.digest, archive.size) ?? await getBlob(repository, archive, "package");
  await cache.put(manifest);
  return { manifest: found, version, archive, bytes };
}

async function cachedPlugin({ digest }: PluginReference, cache: BlobCache): Promise<PluginArtifact | undefined> {
  const manifest = digest === undefined ? undefined : await cache.find(digest, MAX_MANIFEST_BYTES);
  if (digest === undefined || manifest === undefined) return undefined;
  const { version, archive } = packageOf(manifest);
  const bytes = await cache.get(archive.digest, archive.size);
  return bytes === undefined ? undefined : { manifest: digest, version, archive, bytes };
}

/** The version and the archive that a manifest names. Throws an Error for other artifacts. */
function packageOf(manifest: Uint8Array): { readonly version: string; readonly archive: Descriptor } {
  const { artifactType, layers, annotations } = manifestParts(manifest);
  if (artifactType !== ARTIFACT_TYPE || layers.length !== 1) {
    const type = quote(String(artifactType), 80);
    throw new Error(`not a plugin: the artifact has the type ${type}, not ${ARTIFACT_TYPE}`);
  }
  const archive = descriptorOf(layers[0], ARCHIVE_LIMITS.packedBytes);
  if (archive.mediaType !== LAYER_TYPE) {
    throw new Error(`not a plugin: the layer has the type ${quote(archive.mediaType, 80)}, not ${LAYER_TYPE}`);
  }
  const said = annotations[VERSION_NAME];
  const version = typeof said === "string" && said.length <= 256 ? canonicalVersion(said) : undefined;
  if (version === undefined) throw new Error(`the manifest has no version of the package in ${VERSION_NAME}`);
  return { version, archive };
}

/** The tag with the highest version in `range`, pre-releases only if the range names them. */
async function newestTag(repository: OciRepository, range = "*"): Promise<string> {
  const { bytes } = await repository.send(`tags/list?n=${MAX_TAGS}`, {
    access: "pull",
    maxBytes: MAX_TAGS_BYTES,
    what: "list of tags",
    statuses: [200],
  });
  const { tags } = (parseJson(bytes, "list of tags") ?? {}) as { tags?: unknown };
  let newest: { readonly tag: string; readonly version: string } | undefined;
  for (const tag of Array.isArray(tags) ? tags.slice(0, MAX_TAGS) : []) {
    if (typeof tag !== "string" || !TAG.test(tag)) continue;
    // A tag cannot have the "+" of a build.
    const version = canonicalVersion(tag.replace("_", "+"));
    if (version === undefined || !satisfies(version, range)) continue;
    if (newest === undefined || compareVersions(version, newest.version) > 0) newest = { tag, version };
  }
  if (newest === undefined) {
    throw new Error(`no tag is a version${range === "*" ? "" : ` within ${range}`}: name one, or a digest`);
  }
  return newest.tag;
}

/** The tag of a version. */
export function tagOf(version: string): string {
  return version.replace("+", "_");
}

const TAG = /^\w[\w.-]{0,127}$/;

/** Pushes the archive of a package. Returns the reference with the digest of the manifest. */
export async function pushPlugin(
  reference: OciReference,
  { archive, version }: { readonly archive: Uint8Array<ArrayBuffer>; readonly version: string },
  send?: typeof globalThis.fetch,
): Promise<string> {
  const repository = new OciRepository(reference, send);
  const config = jsonBytes({});
  const manifest = jsonBytes({
    schemaVersion: 2,
    mediaType: MANIFEST_TYPE,
    artifactType: ARTIFACT_TYPE,
    config: { mediaType: EMPTY_TYPE, digest: digestBytes(config), size: config.length },
    layers: [{
      mediaType: LAYER_TYPE,
      digest: digestBytes(archive),
      size: archive.length,
      annotations: { "org.opencontainers.image.title": `${reference.name.split("/").at(-1)}.tar.gz` },
    }],
    annotations: { [VERSION_NAME]: version },
  });
  requireDigest(reference, manifest, "package");
  await putBlob(repository, config, "configuration");
  await putBlob(repository, archive, "package");
  return await putManifest(repository, reference, manifest);
}
