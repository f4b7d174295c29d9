/**
 * The record of accepted grants on this machine: for each project directory, the plugins with authority and their
 * digests.
 *
 * In: a project's root, its holders of authority (held_authority.ts), and the groups of WASI that its guests may
 * use. Out: the holders and groups that no record covers; records on disk. Groups are covered until a record names
 * those that were accepted: a project without a lockfile allows all of them. Each project has one file below `trust/`
 * in the machine's state directory, named for the SHA-256 of its real path, readable and writable by its owner only.
 * Invariant: a record holds the last decision and nothing older, so a lockfile accepted earlier does not become valid
 * again after the user decided otherwise. A record names its project, so one that was copied or moved to another name
 * accepts nothing. A file that others could have written or replaced is refused.
 */
import { WASI_GROUP_NAMES } from "../definitions/wasi_groups.ts";
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

/** An accepted state. */
interface Record {
  /** Digests by plugin. */
  readonly accepted: { readonly [id: string]: Digest };
  /** Groups of WASI; absent: all. */
  readonly wasi?: readonly string[];
}

const NOTHING: Record = { accepted: {} };

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
    const { accepted } = await this.#read(root);
    return holders.filter(({ id, digest }) => accepted[id] !== digest);
  }

  /** The groups among `wasi` (absent: all) that the record of the project at `root` does not cover. */
  async uncoveredGroups(root: string, wasi: readonly string[] = WASI_GROUP_NAMES): Promise<string[]> {
    const { wasi: covered } = await this.#read(root);
    return covered === undefined ? [] : wasi.filter((group) => !covered.includes(group));
  }

  /**
   * Records the groups of a project that removes some, if no record names any: a later lockfile that allows more needs
   * acceptance. Does nothing where records cannot be written.
   */
  async noteGroups(root: string, wasi: readonly string[] | undefined): Promise<void> {
    const record = await this.#read(root);
    if (wasi === undefined || record.wasi !== undefined) return;
    await this.#write(root, { ...record, wasi }).catch(() => {});
  }

  /**
   * Records that these holders and groups of WASI (absent: all) are accepted, and nothing else, for the project at
   * `root`; with `groups: "kept"`, the groups of the record remain.
   */
  async accept(
    root: string,
    holders: readonly AuthorityHolder[],
    groups: readonly string[] | "kept" | undefined,
  ): Promise<void> {
    const before = await this.#read(root);
    const wasi = groups === "kept" ? before.wasi : groups;
    const same = holders.length === Object.keys(before.accepted).length &&
      holders.every(({ id, digest }) => before.accepted[id] === digest) && before.wasi?.join() === wasi?.join();
    if (same) return;
    const accepted = Object.fromEntries(holders.map(({ id, digest }) => [id, digest]));
    await this.#write(root, { accepted, ...(wasi === undefined ? {} : { wasi }) });
  }

  async #write(root: string, { accepted, wasi }: Record): Promise<void> {
    const path = await this.#fileOf(root);
    await this.#files.makeDirectory(this.#directory, 0o700);
    const project = await this.#files.realPath(root);
    const text = `${JSON.stringify({ version: 1, project, accepted, wasi }, undefined, 2)}\n`;
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
    if (bytes === undefined) return NOTHING;
    requireOwn(this.#directory, await this.#files.status(this.#directory), 0o022);
    requireOwn(path, await this.#files.status(path), 0o077);
    requireOwnFile(path);
    const reading = readJson(bytes, { file: path, codes: "trust", maxBytes: MAX_RECORD_BYTES });
    const value = reading.ok ? reading.document.value : undefined;
    // A record that cannot be read, or that was made for another project, accepts nothing; the next decision replaces
    // it.
    if (!isObject(value) || value.version !== 1 || !isObject(value.accepted)) return NOTHING;
    if (value.project !== await this.#files.realPath(root)) return NOTHING;
    const accepted: { [id: string]: Digest } = Object.create(null);
    for (const [id, digest] of Object.entries(value.accepted)) {
      if (typeof digest === "string" && isDigest(digest)) accepted[id] = digest;
    }
    const { wasi } = value;
    return { accepted, ...(Array.isArray(wasi) ? { wasi: wasi.map(String) } : {}) };
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
