/**
 * Manifests and blobs of OCI registries, whatever they contain. In: repositories, descriptors, bytes. Out: bytes, and
 * the parts of manifests. Invariant: bytes that are returned have the digest that was asked for.
 */
import { quote } from "../../base/diagnostic.ts";
import { type Digest, digestBytes, isDigest } from "../../base/integrity.ts";
import { type OciReference, referenceText } from "./reference.ts";
import { type OciRepository, parseJson } from "./registry.ts";

/** The type of manifests. */
export const MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE = "application/vnd.oci.image.index.v1+json";
/** The type of a configuration without content, which tools for any artifact write. */
export const EMPTY_TYPE = "application/vnd.oci.empty.v1+json";

/** Registries accept manifests of this size. */
export const MAX_MANIFEST_BYTES: number = 4 << 20;
const MAX_ANSWER_BYTES = 1 << 16;

/** Bytes that differ from what was promised. */
export class IntegrityError extends Error {}

/** A blob as a manifest names it. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly size: number;
}

/** The manifest of a reference. Throws an Error unless it has the digest that the reference or the registry names. */
export async function getManifest(
  repository: OciRepository,
  { tag, digest }: Pick<OciReference, "tag" | "digest">,
): Promise<Uint8Array> {
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
    throw new IntegrityError(`the manifest does not have its digest: expected ${quote(promised, 80)}, got ${found}`);
  }
  return bytes;
}

/** A blob, called `what` in errors. Throws an Error unless it has its size and digest. */
export async function getBlob(
  repository: OciRepository,
  { digest, size }: Descriptor,
  what: string,
): Promise<Uint8Array> {
  const { bytes } = await repository.send(`blobs/${digest}`, {
    access: "pull",
    maxBytes: size,
    what,
    statuses: [200],
  });
  if (bytes.length !== size) {
    throw new IntegrityError(`the ${what} has ${bytes.length} bytes; its manifest says ${size}`);
  }
  const found = digestBytes(bytes);
  if (found !== digest) {
    throw new IntegrityError(`the ${what} does not have its digest: expected ${digest}, got ${found}`);
  }
  return bytes;
}

/** The parts of a manifest. Throws an Error for an index of several artifacts. */
export function manifestParts(bytes: Uint8Array): {
  readonly configType: string;
  readonly layers: readonly unknown[];
  readonly artifactType: unknown;
  readonly annotations: Readonly<Record<string, unknown>>;
} {
  const manifest = record(parseJson(bytes, "manifest"), "manifest");
  if (manifest["mediaType"] === INDEX_TYPE || "manifests" in manifest) {
    throw new Error("the reference names an index of several artifacts; name one of them by its digest");
  }
  const { mediaType } = record(manifest["config"], "manifest's configuration");
  const { layers, annotations = {}, artifactType } = manifest;
  return {
    configType: String(mediaType),
    layers: Array.isArray(layers) ? layers : [],
    artifactType,
    annotations: record(annotations, "manifest's list of annotations"),
  };
}

/** A descriptor of at most `maxBytes`. Throws an Error for another form. */
export function descriptorOf(value: unknown, maxBytes: number): Descriptor {
  const { mediaType, digest, size } = record(value, "manifest's layer");
  if (typeof digest !== "string" || !isDigest(digest)) throw new Error("the layer has no SHA-256 digest");
  if (!Number.isSafeInteger(size) || Number(size) < 0) throw new Error("the layer has no size");
  if (Number(size) > maxBytes) throw new Error(`the layer has more than ${maxBytes} bytes`);
  return { mediaType: String(mediaType), digest, size: Number(size) };
}

function record(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`the ${what} is no object`);
  return value as Readonly<Record<string, unknown>>;
}

/** JSON as bytes. */
export function jsonBytes(value: object): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** Stores a blob unless the registry has it. */
export async function putBlob(repository: OciRepository, bytes: Uint8Array<ArrayBuffer>, what: string): Promise<void> {
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

/** Stores a manifest under the tag of a reference. Returns the reference with its digest. */
export async function putManifest(
  repository: OciRepository,
  reference: OciReference,
  manifest: Uint8Array<ArrayBuffer>,
): Promise<string> {
  const digest = digestBytes(manifest);
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

/** Throws an Error if a reference names a digest that a manifest does not have. */
export function requireDigest({ digest }: OciReference, manifest: Uint8Array, what: string): void {
  const found = digestBytes(manifest);
  if (digest !== undefined && digest !== found) {
    throw new Error(`the ${what}'s manifest has the digest ${found}, not that of the reference`);
  }
}
