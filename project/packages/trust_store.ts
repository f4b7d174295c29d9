/**
 * The record of accepted grants on this machine: for each project directory, the plugins with authority and their
 * digests.
 *
 * Input: a project's root and its holders of authority (held_authority.ts). Output: the holders that no record covers;
 * records on disk. Each project has one file below `trust/` in the machine's state directory, named for the SHA-256 of
 * its real path, readable and writable by its owner only. Invariant: a record holds the last decision and nothing
 * older, so a lockfile accepted earlier does not become valid again after the user decided otherwise. A record names
 * its project, so one that was copied or moved to another name accepts nothing. A file that others could have written
 * or replaced is refused.
 */
import { currentUser, systemName } from "@waft/engine/internal/host/process";
import { join } from "node:path";
import { fail } from "../base/diagnostic.ts";
import type { Files, FileStatus } from "../base/files.ts";
import { type Digest, digestBytes, isDigest } from "../base/integrity.ts";
import { isObject, readJson } from "../base/json_read.ts";
import { requireOwnFile } from "../base/own_file.ts";
import { type MachinePaths, trustDirectory } from "../base/paths.ts";
import { replaceWhole } from "../base/replace_file.ts";
import type { AuthorityHolder } from "../lockfile/held_authority.ts";

/** Largest record that is read. */
const MAX_RECORD_BYTES = 1 << 20;

/** Digests by plugin. */
type Record = { readonly [id: string]: Digest };

/** The records of this machine. */
export class TrustStore {
  readonly #directory: string;
  readonly #files: Files;

  constructor({ paths, files }: { readonly paths: MachinePaths; readonly files: Files }) {
    this.#directory = trustDirectory(paths);
    this.#files = files;
  }

  /** The holders that the record of the project at `root` does not cover. */
  async uncovered(root: string, holders: readonly AuthorityHolder[]): Promise<AuthorityHolder[]> {
    if (holders.length === 0) return [];
    const record = await this.#read(root);
    return holders.filter(({ id, digest }) => record[id] !== digest);
  }

  /** Records that these holders are accepted, and nothing else, for the project at `root`. */
  async accept(root: string, holders: readonly AuthorityHolder[]): Promise<void> {
    const path = await this.#fileOf(root);
    const before = await this.#read(root);
    const same = holders.length === Object.keys(before).length &&
      holders.every(({ id, digest }) => before[id] === digest);
    if (same) return;
    await this.#files.makeDirectory(this.#directory, 0o700);
    const accepted = Object.fromEntries(holders.map(({ id, digest }) => [id, digest]));
    const text = `${
      JSON.stringify({ version: 1, project: await this.#files.realPath(root), accepted }, undefined, 2)
    }\n`;
    await replaceWhole(this.#files, path, new TextEncoder().encode(text), 0o600);
  }

  /** Forgets the record of the project at `root`; false when there is none. */
  async forget(root: string): Promise<boolean> {
    const path = await this.#fileOf(root);
    if (await this.#files.status(path) === undefined) return false;
    await this.#files.remove(path);
    return true;
  }

  async #fileOf(root: string): Promise<string> {
    const real = await this.#files.realPath(root);
    const digest = digestBytes(new TextEncoder().encode(real)).slice("sha256:".length);
    return join(this.#directory, `${digest}.json`);
  }

  async #read(root: string): Promise<Record> {
    const path = await this.#fileOf(root);
    const bytes = await this.#files.read(path, MAX_RECORD_BYTES);
    if (bytes === undefined) return {};
    requireOwn(this.#directory, await this.#files.status(this.#directory), 0o022);
    requireOwn(path, await this.#files.status(path), 0o077);
    requireOwnFile(path);
    const reading = readJson(bytes, { file: path, codes: "trust", maxBytes: MAX_RECORD_BYTES });
    const value = reading.ok ? reading.document.value : undefined;
    // A record that cannot be read, or that was made for another project, accepts nothing; the next decision replaces
    // it.
    if (!isObject(value) || value.version !== 1 || !isObject(value.accepted)) return {};
    if (value.project !== await this.#files.realPath(root)) return {};
    const record = Object.create(null) as { [id: string]: Digest };
    for (const [id, digest] of Object.entries(value.accepted)) {
      if (typeof digest === "string" && isDigest(digest)) record[id] = digest;
    }
    return record;
  }
}

/** Throws when another user could have written the file. */
function requireOwn(path: string, status: FileStatus | undefined, forbidden: number): void {
  if (status === undefined || systemName() === "win32") return;
  if (status.uid === currentUser() && (status.mode & forbidden) === 0) return;
  throw fail("trust.unsafe", "others can read or write the record of accepted grants, so it is ignored", {
    file: path,
    help: `delete it, or restrict it to your user: chown and chmod ${forbidden === 0o077 ? "600" : "700"}`,
  });
}
