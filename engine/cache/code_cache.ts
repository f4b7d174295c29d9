/**
 * Artifacts in a folder, so that a module is compiled once. In: the folder, the bytes of a module, what else decides its code. Out: the artifact that was put
 * there before, or nothing.
 *
 * An artifact is machine code, so the folder is the user's alone: it is made with mode 0700, and one that belongs to somebody else, that others may
 * write to or that is a symbolic link is refused; so is such a file in it. Invariants: a file has its name only when it is whole (it is written
 * under another name, then renamed), so processes need no locks and one that is killed leaves at most a file that the next one sweeps up;
 * whatever the cache cannot do is a miss, never a failure of the program. A file ends with the key that it was written for, so a file under the
 * name of another module is not taken for that module's.
 */
import { inWords, requireKnownNames, requireRecord } from "../base/arguments.ts";
import { fingerprint } from "../base/fingerprint.ts";
import { toHex } from "../base/hex.ts";
import { type FileFacts, linkFacts, listDirectory, readFile, touchFile } from "../host/files.ts";
import { currentUser, nodeModule } from "../host/process.ts";

/** Where compiled modules are kept. */
export interface CacheOptions {
  /** The folder; it is made when it is missing. */
  directory: string;
  /** The most bytes that it may hold: those that were not used for longest go first. Default 512 MiB. */
  maxBytes?: number;
  /** The name under which listings show modules that are kept through these options, such as the path of their file. */
  label?: string;
}

/** A compiled module in the cache. */
export interface CacheEntry {
  /** Name of its file in the folder. */
  name: string;
  /** Size of the file. */
  bytes: number;
  /** When it was used last, in milliseconds since 1970. */
  usedAt: number;
  /** The name that it was kept with; empty when it had none. */
  label: string;
}

/** What follows the artifact in a file: a label in UTF-8, its length (u32, little-endian), and the key in ASCII. */
const KEY_BYTES = 64;
const LENGTH_BYTES = 4;
const MAX_LABEL_BYTES = 1024;

/** The artifact in a file of the cache; undefined when the file was written for another key, or is damaged. */
export function artifactIn(file: Uint8Array, key: string): Uint8Array | undefined {
  const keyAt = file.length - KEY_BYTES;
  const lengthAt = keyAt - LENGTH_BYTES;
  if (lengthAt < 0 || new TextDecoder().decode(file.subarray(keyAt)) !== key) return undefined;
  const length = new DataView(file.buffer, file.byteOffset + lengthAt, LENGTH_BYTES).getUint32(0, true);
  return length > Math.min(lengthAt, MAX_LABEL_BYTES) ? undefined : file.subarray(0, lengthAt - length);
}

/** The end of a file of the cache. */
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
const UNFINISHED = ".tmp";
/** An unfinished file that is older than this belongs to no one. */
const ABANDONED_MS = 10 * 60_000;
/** A use is noted when the last noted one is older than this. */
const NOTE_EVERY_MS = 60_000;
/** How much of the bound is left after making room, so that not every module makes room anew. */
const KEPT_SHARE = 0.8;

/**
 * The key of a module: its bytes and everything else that decides its code. The former may be anybody's, so they are hashed; a fingerprint of the facts
 * changes that hash, and an artifact says itself what it is for.
 */
export function cacheKey(module: Uint8Array, facts: readonly string[]): string {
  return keyOf(nodeModule("node:crypto").createHash("sha256").update(module).digest(), facts);
}

/** The same key by the hashing of the web, which every host has at hand. */
export async function cacheKeyAsync(module: Uint8Array<ArrayBuffer>, facts: readonly string[]): Promise<string> {
  return keyOf(new Uint8Array(await crypto.subtle.digest("SHA-256", module)), facts);
}

/** The key of what belongs to an engine and no module; its up to 32 ASCII characters stand where a module has its hash. */
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

/** A folder of artifacts. */
export class CodeCache {
  /** The folder. */
  readonly directory: string;
  /** The most bytes that it may hold. */
  readonly maxBytes: number;
  readonly #label: string;

  /** The cache in a folder, which is made when something is kept. Throws TypeError or RangeError for other options. */
  constructor(options: CacheOptions) {
    requireRecord(options, "The option cache");
    requireKnownNames("option of a cache", options, { directory: true, maxBytes: true, label: true });
    const { directory, maxBytes = DEFAULT_MAX_BYTES, label = "" } = options;
    if (typeof directory !== "string" || directory === "") throw new TypeError("The cache needs a directory");
    if (!Number.isSafeInteger(maxBytes) || maxBytes < 0) {
      throw new RangeError(`The cache's maxBytes must be a whole number, not ${inWords(maxBytes)}`);
    }
    this.directory = directory;
    this.maxBytes = maxBytes;
    this.#label = label;
  }

  /** The path of the artifact of `key`, or undefined. Since nobody else may write to the folder, the file is still that when it is opened. */
  find(key: string): string | undefined {
    try {
      requireOwn(linkFacts(this.directory), "directory");
      const path = this.#path(key);
      const facts = linkFacts(path);
      requireOwn(facts, "file");
      noteUse(path, facts.modifiedMs);
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

  /** Keeps the artifact of `key`; says whether it did. */
  write(key: string, artifact: Uint8Array): boolean {
    const end = trailer(key, this.#label);
    const total = artifact.length + end.length;
    if (total > this.maxBytes) return false;
    const { closeSync, constants, mkdirSync, openSync, renameSync, writeSync } = nodeModule("node:fs");
    let unfinished: string | undefined;
    try {
      mkdirSync(this.directory, { recursive: true, mode: 0o700 });
      requireOwn(linkFacts(this.directory), "directory");
      this.#makeRoom(total);
      const path = `${this.directory}/${key}.${process.pid}-${Math.random().toString(36).slice(2)}${UNFINISHED}`;
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

  /** Forgets the artifact of `key`. */
  remove(key: string): void {
    try {
      removeFile(this.#path(key));
    } catch {
      // it stays, and is refused again
    }
  }

  /** What is in the cache, what was used last first. Nothing when there is no folder. */
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

  /** Removes everything that the cache has put in its folder; returns how many modules that were. */
  clear(): number {
    let count = 0;
    for (const { name } of this.#files()) {
      removeFile(`${this.directory}/${name}`);
      if (name.endsWith(SUFFIX)) count++;
    }
    return count;
  }

  #path(key: string): string {
    return `${this.directory}/${key}${SUFFIX}`;
  }

  /** Its own files, by their names. */
  #files(): Omit<CacheEntry, "label">[] {
    let names: string[];
    try {
      requireOwn(linkFacts(this.directory), "directory");
      names = listDirectory(this.directory).map(({ name }) => name);
    } catch {
      return [];
    }
    const files: Omit<CacheEntry, "label">[] = [];
    for (const name of names) {
      if (!/^[0-9a-f]{64}(\.waftbin|\.[0-9]+-[0-9a-z]+\.tmp)$/.test(name)) continue;
      try {
        const { bytes, modifiedMs } = linkFacts(`${this.directory}/${name}`);
        files.push({ name, bytes, usedAt: modifiedMs });
      } catch {
        // another process has removed it
      }
    }
    return files;
  }

  /** Removes what was not used for longest until `more` bytes fit, and what killed processes have left. */
  #makeRoom(more: number): void {
    const now = Date.now();
    let total = more;
    const kept = this.#files().filter(({ name, bytes, usedAt }) => {
      if (name.endsWith(UNFINISHED) && now - usedAt > ABANDONED_MS) {
        removeFile(`${this.directory}/${name}`);
        return false;
      }
      total += bytes;
      return name.endsWith(SUFFIX);
    });
    if (total <= this.maxBytes) return;
    kept.sort((a, b) => a.usedAt - b.usedAt);
    for (const { name, bytes } of kept) {
      if (total <= this.maxBytes * KEPT_SHARE) break;
      removeFile(`${this.directory}/${name}`);
      total -= bytes;
    }
  }
}

/** The label at the end of a file of so many bytes; empty when it cannot be read. */
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

/** Files are swept by when they were used; whoever may read but not write them goes without. */
function noteUse(path: string, noted: number): void {
  if (Date.now() - noted < NOTE_EVERY_MS) return;
  try {
    touchFile(path);
  } catch {
    // a folder on a read-only disk serves as well
  }
}

function removeFile(path: string): void {
  nodeModule("node:fs").rmSync(path, { force: true });
}

/** Throws for what is not the user's own, or what others may change. */
function requireOwn({ kind, uid, mode }: FileFacts, wanted: FileFacts["kind"]): void {
  const user = currentUser();
  if (kind !== wanted) throw new Error("The cache is not what it should be");
  if (user !== undefined && uid !== user) throw new Error("The cache belongs to somebody else");
  if ((mode & 0o022) !== 0) throw new Error("Others may write to the cache");
}
