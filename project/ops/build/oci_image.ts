/**
 * Container images of applications (`waft build --oci`): an OCI image layout in one tar file, which `docker load`,
 * `podman load`, `skopeo` and `oras` read. In: an executable, and the files of the C library that it needs. Out: bytes
 * of the tar file. Invariants: the image has these files, folders above them and nothing else; its process is not root;
 * the same files give the same digests, as far as the host compresses alike.
 */
import { gzipSync } from "node:zlib";
import { type Digest, digestBytes } from "../../base/integrity.ts";
import { type TarEntry, tarFile } from "../../packages/archive.ts";

/** A file of an image. */
interface ImageFile {
  /** Absolute path. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** The contents and the start of an image. */
interface ImageOptions {
  readonly files: readonly ImageFile[];
  /** The path of the program that the container runs. */
  readonly entry: string;
  /** Name and tag, such as `registry.example.com/team/app:1.0`. */
  readonly name: string;
  /** Such as `linux/amd64`. */
  readonly platform: string;
}

const MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE = "application/vnd.oci.image.index.v1+json";
const CONFIG_TYPE = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip";
/** The user and the group that images without a base call nonroot. */
const USER = "65532:65532";
/** The time of all images: that of a build would give each one another digest. */
const CREATED = "1970-01-01T00:00:00Z";
const EXECUTABLE = 0o755;
const READABLE = 0o644;

/** The tar file of an image. */
export function ociImage({ files, entry, name, platform }: ImageOptions): Uint8Array {
  const blobs = new Map<Digest, Uint8Array>();
  const add = (mediaType: string, bytes: Uint8Array) => {
    const digest = digestBytes(bytes);
    blobs.set(digest, bytes);
    return { mediaType, digest, size: bytes.length };
  };
  const tar = tarFile(layerEntries(files));
  const [os, architecture] = platform.split("/");
  const layer = add(LAYER_TYPE, compressed(tar));
  const config = add(
    CONFIG_TYPE,
    json({
      created: CREATED,
      architecture,
      os,
      config: { User: USER, Entrypoint: [entry], WorkingDir: "/" },
      rootfs: { type: "layers", diff_ids: [digestBytes(tar)] },
      history: [{ created: CREATED, created_by: "waft build" }],
    }),
  );
  const manifest = add(MANIFEST_TYPE, json({ schemaVersion: 2, mediaType: MANIFEST_TYPE, config, layers: [layer] }));
  const annotations = {
    "io.containerd.image.name": name,
    "org.opencontainers.image.ref.name": name.slice(name.lastIndexOf(":") + 1),
  };
  const index = json({
    schemaVersion: 2,
    mediaType: INDEX_TYPE,
    manifests: [{ ...manifest, annotations, platform: { architecture, os } }],
  });
  return tarFile([
    { path: "oci-layout", mode: READABLE, bytes: json({ imageLayoutVersion: "1.0.0" }) },
    { path: "index.json", mode: READABLE, bytes: index },
    ...[...blobs].map(([digest, bytes]) => ({ path: `blobs/${digest.replace(":", "/")}`, mode: READABLE, bytes })),
  ]);
}

/** The files with the folders above them, in order. */
function layerEntries(files: readonly ImageFile[]): TarEntry[] {
  const entries = new Map<string, TarEntry>();
  for (const { path, bytes } of files.toSorted((a, b) => a.path < b.path ? -1 : 1)) {
    const name = path.replace(/^\/+/, "");
    for (let slash = name.indexOf("/"); slash >= 0; slash = name.indexOf("/", slash + 1)) {
      const folder = name.slice(0, slash + 1);
      entries.set(folder, { path: folder, mode: EXECUTABLE });
    }
    entries.set(name, { path: name, mode: EXECUTABLE, bytes });
  }
  return [...entries.values()];
}

/** Compresses bytes with a header that says neither when nor where. */
function compressed(bytes: Uint8Array): Uint8Array {
  const packed = new Uint8Array(gzipSync(bytes));
  packed.fill(0, 4, 8);
  packed[9] = 0xff;
  return packed;
}

function json(value: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
