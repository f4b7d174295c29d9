/**
 * The content-addressed blob cache: `blobs/sha256/<hex>`, shared by all projects.
 *
 * In: digests and bytes. Out: bytes whose digest is checked on every read; a damaged blob is dropped and counts
 * as absent. Writes go through a temporary name, so a killed process leaves no file that could be mistaken for a blob.
 */
import { dirname } from "node:path";
import { DISK, type Files } from "../base/files.ts";
import { type Digest, digestBytes } from "../base/integrity.ts";
import { blobPath, type MachinePaths, OWN_DIRECTORY_MODE } from "../base/paths.ts";
import { replaceWhole } from "../base/replace_file.ts";

/** Reads and writes blobs. */
export class BlobCache {
  readonly #paths: MachinePaths;
  readonly #files: Files;

  constructor(paths: MachinePaths, files: Files = DISK) {
    this.#paths = paths;
    this.#files = files;
  }

  /** The blob, or undefined when it is absent or damaged. */
  async get(digest: Digest, size: number): Promise<Uint8Array | undefined> {
    const path = blobPath(this.#paths, hexOf(digest));
    const bytes = await this.#files.read(path, size);
    if (bytes === undefined) return undefined;
    if (bytes.length === size && digestBytes(bytes) === digest) return bytes;
    await this.#files.remove(path);
    return undefined;
  }

  /** The blob of a digest whose size is not known, of at most `maxBytes`; undefined when it is absent or damaged. */
  async find(digest: Digest, maxBytes: number): Promise<Uint8Array | undefined> {
    const path = blobPath(this.#paths, hexOf(digest));
    const bytes = await this.#files.read(path, maxBytes);
    if (bytes === undefined || digestBytes(bytes) === digest) return bytes;
    await this.#files.remove(path);
    return undefined;
  }

  /** True when a blob of that digest and size is in the cache and intact. */
  async has(digest: Digest, size: number): Promise<boolean> {
    return await this.get(digest, size) !== undefined;
  }

  /** Stores bytes; their digest is computed here. */
  async put(bytes: Uint8Array): Promise<Digest> {
    const digest = digestBytes(bytes);
    const path = blobPath(this.#paths, hexOf(digest));
    if (await this.#files.status(path) !== undefined) return digest;
    await this.#files.makeDirectory(dirname(path), OWN_DIRECTORY_MODE);
    await replaceWhole(this.#files, path, bytes, 0o644);
    return digest;
  }
}

function hexOf(digest: Digest): string {
  return digest.slice("sha256:".length);
}
