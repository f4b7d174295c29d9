/**
 * Artifacts in a folder, so that a module is compiled once. In: the folder, the bytes of a module, what else decides its code. Out: the artifact that was put
 * there before, or nothing.
 *
 * An artifact is machine code, so the folder is the user's alone: it is made with mode 0700, and one that belongs to somebody else, that others may
 * write to or that is a symbolic link is refused; so is such a file in it. Invariants: a file has its name only when it is whole (it is written
 * under another name, then renamed), so processes need no locks and one that is killed leaves at most a file that the next one sweeps up;
 * whatever the cache cannot do is a miss, never a failure of the program.
 */
import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  futimesSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import process from "node:process";

/** Where compiled modules are kept. */
export interface CacheOptions {
  /** The folder; it is made when it is missing. */
  directory: string;
  /** The most bytes that it may hold: those that were not used for longest go first. Default 512 MiB. */
  maxBytes?: number;
}

/** A compiled module in the cache. */
export interface CacheEntry {
  name: string;
  bytes: number;
  /** When it was used last, in milliseconds since 1970. */
  usedAt: number;
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

/** The key of a module: its bytes and everything else that decides its code. */
export function cacheKey(module: Uint8Array, facts: readonly string[]): string {
  const hash = createHash("sha256");
  hash.update(JSON.stringify(facts)).update("\0").update(module);
  return hash.digest("hex");
}

export class CodeCache {
  readonly directory: string;
  readonly maxBytes: number;

  constructor({ directory, maxBytes = DEFAULT_MAX_BYTES }: CacheOptions) {
    if (typeof directory !== "string" || directory === "") throw new TypeError("The cache needs a directory");
    if (!Number.isSafeInteger(maxBytes) || maxBytes < 0) {
      throw new RangeError(`The cache's maxBytes must be a whole number, not ${maxBytes}`);
    }
    this.directory = directory;
    this.maxBytes = maxBytes;
  }

  /** The artifact of `key`, or undefined. */
  read(key: string): Uint8Array | undefined {
    let file: number | undefined;
    try {
      requireOwn(lstatSync(this.directory), true);
      file = openSync(this.#path(key), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      const facts = fstatSync(file);
      requireOwn(facts, false);
      const bytes = new Uint8Array(facts.size);
      for (let at = 0; at < bytes.length;) {
        const count = readSync(file, bytes, at, bytes.length - at, at);
        if (count === 0) return undefined;
        at += count;
      }
      this.#noteUse(file, facts.mtimeMs);
      return bytes;
    } catch {
      return undefined;
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }

  /** Files are swept by when they were used; whoever may read but not write them goes without. */
  #noteUse(file: number, noted: number): void {
    const now = Date.now();
    if (now - noted < NOTE_EVERY_MS) return;
    try {
      futimesSync(file, now / 1000, now / 1000);
    } catch {
      // a folder on a read-only disk serves as well
    }
  }

  /** Keeps the artifact of `key`; says whether it did. */
  write(key: string, artifact: Uint8Array): boolean {
    if (artifact.length > this.maxBytes) return false;
    let unfinished: string | undefined;
    try {
      mkdirSync(this.directory, { recursive: true, mode: 0o700 });
      requireOwn(lstatSync(this.directory), true);
      this.#makeRoom(artifact.length);
      const path = join(this.directory, `${key}.${process.pid}-${Math.random().toString(36).slice(2)}${UNFINISHED}`);
      const file = openSync(
        path,
        constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
        0o600,
      );
      unfinished = path;
      try {
        for (let at = 0; at < artifact.length;) at += writeSync(file, artifact, at, artifact.length - at);
      } finally {
        closeSync(file);
      }
      renameSync(path, this.#path(key));
      return true;
    } catch {
      if (unfinished !== undefined) rmSync(unfinished, { force: true });
      return false;
    }
  }

  /** Forgets the artifact of `key`. */
  remove(key: string): void {
    try {
      rmSync(this.#path(key), { force: true });
    } catch {
      // it stays, and is refused again
    }
  }

  /** What is in the cache, what was used last first. Nothing when there is no folder. */
  entries(): CacheEntry[] {
    return this.#files().filter(({ name }) => name.endsWith(SUFFIX))
      .map(({ name, bytes, usedAt }) => ({ name: name.slice(0, -SUFFIX.length), bytes, usedAt }))
      .sort((a, b) => b.usedAt - a.usedAt);
  }

  /** Removes everything that the cache has put in its folder; returns how many modules that were. */
  clear(): number {
    let count = 0;
    for (const { name } of this.#files()) {
      rmSync(join(this.directory, name), { force: true });
      if (name.endsWith(SUFFIX)) count++;
    }
    return count;
  }

  #path(key: string): string {
    return join(this.directory, key + SUFFIX);
  }

  /** Its own files, by their names. */
  #files(): CacheEntry[] {
    let names: string[];
    try {
      requireOwn(lstatSync(this.directory), true);
      names = readdirSync(this.directory);
    } catch {
      return [];
    }
    const files: CacheEntry[] = [];
    for (const name of names) {
      if (!/^[0-9a-f]{64}(\.waftbin|\.[0-9]+-[0-9a-z]+\.tmp)$/.test(name)) continue;
      try {
        const { size, mtimeMs } = statSync(join(this.directory, name));
        files.push({ name, bytes: size, usedAt: mtimeMs });
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
        rmSync(join(this.directory, name), { force: true });
        return false;
      }
      total += bytes;
      return name.endsWith(SUFFIX);
    });
    if (total <= this.maxBytes) return;
    kept.sort((a, b) => a.usedAt - b.usedAt);
    for (const { name, bytes } of kept) {
      if (total <= this.maxBytes * KEPT_SHARE) break;
      rmSync(join(this.directory, name), { force: true });
      total -= bytes;
    }
  }
}

/** Throws for what is not the user's own, or what others may change. */
function requireOwn(
  facts: { uid: number; mode: number; isDirectory(): boolean; isFile(): boolean },
  directory: boolean,
): void {
  const user = process.geteuid?.() ?? process.getuid?.();
  if (directory ? !facts.isDirectory() : !facts.isFile()) throw new Error("The cache is not what it should be");
  if (user !== undefined && facts.uid !== user) throw new Error("The cache belongs to somebody else");
  if ((facts.mode & 0o022) !== 0) throw new Error("Others may write to the cache");
}
