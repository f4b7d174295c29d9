/**
 * A directory of artifacts, so that a module is compiled only once. In: the directory, the bytes of a module and the
 * other inputs that determine its code. Out: the stored artifact, or undefined on a miss.
 *
 * An artifact is machine code, so the directory is private to the user: it is created with mode 0700. A directory or
 * file is ignored if it is a symbolic link, belongs to another user or is writable by others, and so is a directory
 * that another user can rename because that user owns, or can write, one of its parent directories.
 *
 * Invariants: a file has its final name only when it is complete (it is written under a temporary name and renamed), so
 * processes need no locks and a killed process leaves at most a temporary file that a later process removes; every
 * failure of the cache is a miss, never an error of the program. A file ends with the key that it was written for, so a
 * file renamed to another key is ignored.
 */
import { dateNow } from "../host/clocks.ts";
import { inWords, requireKnownNames, requireRecord } from "../base/arguments.ts";
import { fingerprint } from "../base/fingerprint.ts";
import { toHex } from "../base/hex.ts";
import { type FileFacts, linkFacts, listDirectory, readFile, touchFile } from "../host/files.ts";
import { currentUser, nodeModule, systemName } from "../host/process.ts";
import { replaceableBy } from "../host/safe_path.ts";

/** The location and the size limit of the cache of compiled modules. */
export interface CacheOptions {
  /** Path of the directory, which is created if it does not exist. */
  directory: string;
  /** Maximum total size in bytes; the least recently used artifacts are evicted first. Default: 512 MiB. */
  maxBytes?: number;
  /** Name by which listings show the modules stored with these options, such as their file path. Default: none. */
  label?: string;
}

/** A compiled module in the cache. */
export interface CacheEntry {
  /** The file name in the directory, without its suffix. */
  name: string;
  /** Size of the file in bytes. */
  bytes: number;
  /** Time of the last use, in milliseconds since 1970-01-01 UTC. */
  usedAt: number;
  /** The label that it was stored with; empty if it has none. */
  label: string;
}

/** The trailer of a file, after the artifact: a label in UTF-8, its length (u32, little-endian), the key in ASCII. */
const KEY_BYTES = 64;
const LENGTH_BYTES = 4;
const MAX_LABEL_BYTES = 1024;

/** The artifact in a cache file; undefined if the file was written for another key, or is damaged. */
export function artifactIn(file: Uint8Array, key: string): Uint8Array | undefined {
  const keyAt = file.length - KEY_BYTES;
  const lengthAt = keyAt - LENGTH_BYTES;
  if (lengthAt < 0 || new TextDecoder().decode(file.subarray(keyAt)) !== key) return undefined;
  const length = new DataView(file.buffer, file.byteOffset + lengthAt, LENGTH_BYTES).getUint32(0, true);
  return length > Math.min(lengthAt, MAX_LABEL_BYTES) ? undefined : file.subarray(0, lengthAt - length);
}

/** Encodes the trailer of a cache file. */
function trailer(key: string, label: string): Uint8Array {
  const text = new TextEncoder().encode(label).subarray(0, MAX_LABEL_BYTES);
  const bytes = new Uint8Array(text.length + LENGTH_BYTES + KEY_BYTES);
  bytes.set(text);
  new DataView(bytes.buffer).setUint32(text.length, text.length, true);
  bytes.set(new TextEncoder().encode(key), text.length + LENGTH_BYTES);
  return bytes;
}

const DEFAULT_MAX_BYTES = 512 * 2 ** 20;
const SUFFIX = ".waftbin";
const TEMPORARY_SUFFIX = ".tmp";
/** An empty file: the module of this key has been used, but its code was not stored. */
const MARK_SUFFIX = ".mark";
/** A mark older than this is removed. */
const MARK_MS = 30 * 24 * 60 * 60_000;
/** A temporary file older than this was left by a killed process. */
const ABANDONED_AFTER_MS = 10 * 60_000;
/** A use updates the file's time only if the recorded one is older than this. */
const TOUCH_AFTER_MS = 60_000;
/** Eviction frees space down to this fraction of the limit, so that not every write has to evict. */
const EVICTION_TARGET = 0.8;

/**
 * The key of a module: the SHA-256 hash of its bytes, which are untrusted, combined with a fingerprint of the other
 * inputs that determine its code. The fingerprint need not be collision-resistant, because an artifact also records
 * those inputs.
 */
export function cacheKey(module: Uint8Array, facts: readonly string[]): string {
  return keyOf(nodeModule("node:crypto").createHash("sha256").update(module).digest(), facts);
}

/** The same key, computed with Web Crypto, which hosts provide without loading a module. */
export async function cacheKeyAsync(module: Uint8Array<ArrayBuffer>, facts: readonly string[]): Promise<string> {
  return keyOf(new Uint8Array(await crypto.subtle.digest("SHA-256", module)), facts);
}

/**
 * The key of an entry that belongs to the engine and to no module. `name`, up to 32 ASCII characters, takes the place
 * of the module's hash.
 */
export function engineKey(name: string, facts: readonly string[]): string {
  return keyOf(new TextEncoder().encode(name.padEnd(32).slice(0, 32)), facts);
}

function keyOf(digest: Uint8Array, facts: readonly string[]): string {
  const text = facts.join("\n");
  const view = new DataView(digest.buffer, digest.byteOffset);
  view.setUint32(0, view.getUint32(0) ^ fingerprint(text));
  view.setUint32(4, view.getUint32(4) ^ fingerprint(text, view.getUint32(0)));
  return toHex(digest);
}

/** A directory of artifacts. */
export class CodeCache {
  /** Path of the directory. */
  readonly directory: string;
  /** Maximum total size in bytes. */
  readonly maxBytes: number;
  readonly #label: string;

  /**
   * Opens the cache in a directory, which is created by the first write. Throws TypeError or RangeError for invalid
   * options.
   */
  constructor(options: CacheOptions) {
    requireRecord(options, "The option cache");
    requireKnownNames("cache option", options, { directory: true, maxBytes: true, label: true });
    const { directory, maxBytes = DEFAULT_MAX_BYTES, label = "" } = options;
    if (typeof directory !== "string" || directory === "") {
      throw new TypeError("The cache option directory must be a non-empty string");
    }
    if (!Number.isSafeInteger(maxBytes) || maxBytes < 0) {
      throw new RangeError(`The cache option maxBytes must be a non-negative integer, not ${inWords(maxBytes)}`);
    }
    this.directory = directory;
    this.maxBytes = maxBytes;
    this.#label = label;
  }

  /**
   * The path of the artifact of `key`, or undefined. Only the user can write to the directory, so the checks still hold
   * when the caller opens the file.
   */
  find(key: string): string | undefined {
    try {
      this.#requireDirectory();
      const path = this.#path(key);
      const facts = linkFacts(path);
      requirePrivate(facts, "file");
      touchIfStale(path, facts.modifiedMs);
      return path;
    } catch {
      return undefined;
    }
  }

  /** The artifact of `key`, or undefined. */
  read(key: string): Uint8Array | undefined {
    const path = this.find(key);
    try {
      return path === undefined ? undefined : artifactIn(readFile(path), key);
    } catch {
      return undefined;
    }
  }

  /** Stores the artifact of `key`. Returns whether it was stored. */
  write(key: string, artifact: Uint8Array): boolean {
    const end = trailer(key, this.#label);
    const total = artifact.length + end.length;
    if (total > this.maxBytes) return false;
    const { closeSync, constants, mkdirSync, openSync, renameSync, writeSync } = nodeModule("node:fs");
    let unfinished: string | undefined;
    try {
      mkdirSync(this.directory, { recursive: true, mode: 0o700 });
      this.#requireDirectory();
      this.#makeRoom(total);
      const path = `${this.directory}/${key}.${process.pid}-${Math.random().toString(36).slice(2)}${TEMPORARY_SUFFIX}`;
      const file = openSync(
        path,
        constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
        0o600,
      );
      unfinished = path;
      try {
        for (const part of [artifact, end]) {
          for (let at = 0; at < part.length;) at += writeSync(file, part, at, part.length - at);
        }
      } finally {
        closeSync(file);
      }
      renameSync(path, this.#path(key));
      return true;
    } catch {
      if (unfinished !== undefined) removeFile(unfinished);
      return false;
    }
  }

  /** Marks `key` as used. Returns whether it was marked already; false if the cache cannot be written. */
  mark(key: string): boolean {
    const { closeSync, mkdirSync, openSync } = nodeModule("node:fs");
    const path = `${this.directory}/${key}${MARK_SUFFIX}`;
    try {
      mkdirSync(this.directory, { recursive: true, mode: 0o700 });
      this.#requireDirectory();
      closeSync(openSync(path, "wx", 0o600));
      return false;
    } catch {
      return this.#isPrivateFile(path);
    }
  }

  #isPrivateFile(path: string): boolean {
    try {
      this.#requireDirectory();
      requirePrivate(linkFacts(path), "file");
      return true;
    } catch {
      return false;
    }
  }

  /** Removes the artifact of `key`. If it remains, a later load rejects it again. */
  remove(key: string): void {
    removeFile(this.#path(key));
  }

  /** The artifacts in the cache, most recently used first; empty if the directory does not exist. */
  entries(): CacheEntry[] {
    return this.#files().filter(({ name }) => name.endsWith(SUFFIX))
      .map(({ name, bytes, usedAt }) => ({
        name: name.slice(0, -SUFFIX.length),
        bytes,
        usedAt,
        label: labelOf(`${this.directory}/${name}`, bytes),
      }))
      .sort((a, b) => b.usedAt - a.usedAt);
  }

  /** Removes all files of the cache. Returns the number of artifacts removed, and of files that remain. */
  clear(): { removed: number; remaining: number } {
    const count = { removed: 0, remaining: 0 };
    for (const { name } of this.#files()) {
      if (!removeFile(`${this.directory}/${name}`)) count.remaining++;
      else if (name.endsWith(SUFFIX)) count.removed++;
    }
    return count;
  }

  /** Throws unless the directory is the user's, and stays so while its files are opened. */
  #requireDirectory(): void {
    requirePrivate(linkFacts(this.directory), "directory");
    const danger = replaceableBy(this.directory);
    if (danger !== undefined) throw new Error(`${danger.path} ${danger.reason}`);
  }

  #path(key: string): string {
    return `${this.directory}/${key}${SUFFIX}`;
  }

  /** The files in the directory whose names are the cache's. */
  #files(): Omit<CacheEntry, "label">[] {
    let names: string[];
    try {
      this.#requireDirectory();
      names = listDirectory(this.directory).map(({ name }) => name);
    } catch {
      return [];
    }
    const files: Omit<CacheEntry, "label">[] = [];
    for (const name of names) {
      if (!/^[0-9a-f]{64}(\.waftbin|\.mark|\.[0-9]+-[0-9a-z]+\.tmp)$/.test(name)) continue;
      try {
        const { bytes, modifiedMs } = linkFacts(`${this.directory}/${name}`);
        files.push({ name, bytes, usedAt: modifiedMs });
      } catch {
        // Another process has removed it.
      }
    }
    return files;
  }

  /** Removes abandoned temporary files and old marks, and the least recently used artifacts until `more` bytes fit. */
  #makeRoom(more: number): void {
    const now = dateNow();
    let total = more;
    const kept = this.#files().filter(({ name, bytes, usedAt }) => {
      const limit = name.endsWith(TEMPORARY_SUFFIX) ? ABANDONED_AFTER_MS : MARK_MS;
      if (!name.endsWith(SUFFIX) && now - usedAt > limit) {
        removeFile(`${this.directory}/${name}`);
        return false;
      }
      total += bytes;
      return name.endsWith(SUFFIX);
    });
    if (total <= this.maxBytes) return;
    kept.sort((a, b) => a.usedAt - b.usedAt);
    for (const { name, bytes } of kept) {
      if (total <= this.maxBytes * EVICTION_TARGET) break;
      if (removeFile(`${this.directory}/${name}`)) total -= bytes;
    }
  }
}

/** The label in the trailer of a file of `bytes` bytes; empty if it cannot be read. */
function labelOf(path: string, bytes: number): string {
  const { closeSync, openSync, readSync } = nodeModule("node:fs");
  try {
    const file = openSync(path, "r");
    try {
      const end = new Uint8Array(Math.min(bytes, MAX_LABEL_BYTES + LENGTH_BYTES + KEY_BYTES));
      readSync(file, end, 0, end.length, bytes - end.length);
      const lengthAt = end.length - KEY_BYTES - LENGTH_BYTES;
      const length = new DataView(end.buffer, lengthAt, LENGTH_BYTES).getUint32(0, true);
      return length > lengthAt ? "" : new TextDecoder().decode(end.subarray(lengthAt - length, lengthAt));
    } finally {
      closeSync(file);
    }
  } catch {
    return "";
  }
}

/** Records the time of use for eviction. Ignored where the process may read but not write. */
function touchIfStale(path: string, noted: number): void {
  if (dateNow() - noted < TOUCH_AFTER_MS) return;
  try {
    touchFile(path);
  } catch {
    // A cache on a read-only file system remains usable.
  }
}

/** Removes a file. Returns false if it remains: the user lacks the right, or on Windows a process has it open. */
function removeFile(path: string): boolean {
  try {
    nodeModule("node:fs").rmSync(path, { force: true });
    return true;
  } catch {
    return false;
  }
}

/**
 * Throws unless the path has the wanted kind, is owned by the current user and is not writable by others. On Windows,
 * whose permissions are lists inherited from the directory above, only the kind is checked.
 */
function requirePrivate({ kind, uid, mode }: FileFacts, wanted: FileFacts["kind"]): void {
  const user = currentUser();
  if (kind !== wanted) throw new Error(`The cache path is not a ${wanted}`);
  if (systemName() === "win32") return;
  if (user !== undefined && uid !== user) throw new Error("The cache path is owned by another user");
  if ((mode & 0o022) !== 0) throw new Error("The cache path is writable by other users");
}
