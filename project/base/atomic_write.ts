/**
 * Writes the manifest and the lockfile together, safe against crashes.
 *
 * In: new contents of files of one directory. Out: all of them in place. Each is written to a temporary file
 * beside its target, synced, and renamed, the manifest before the lockfile, all under `waft-lock.json.lock`. Invariant:
 * after a crash each file is either old or new, never partial. A crash between the two renames leaves a lockfile whose
 * requirements differ from the manifest; it is reported as stale and repaired by `waft add`. The next write removes
 * leftover temporary files.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { join } from "node:path";
import { fail } from "./diagnostic.ts";
import { DISK, type Files } from "./files.ts";
import { randomHex } from "./integrity.ts";
import { aboutFile } from "./replace_file.ts";
import { LOCK_FILE, MANIFEST_FILE } from "./constants.ts";

/** Name of the write lock: it exists while a process writes the project, and holds its id. */
export const WRITE_LOCK_FILE = `${LOCK_FILE}.lock`;

const TEMPORARY = /^(?:\.waft(?:-lock)?\.json\.[0-9a-f]{12}\.tmp|waft-lock\.json\.lock\.[0-9a-f]{12})$/;

/** Names of temporary files and locks in a directory, from an interrupted or a running write. */
export async function leftoversIn(directory: string, files: Files = DISK): Promise<string[]> {
  return (await files.list(directory)).filter((name) => TEMPORARY.test(name) || name === WRITE_LOCK_FILE);
}

/** New contents for a file. */
export interface PendingWrite {
  readonly name: string;
  readonly bytes: Uint8Array;
  /**
   * The expected contents of the file when it is replaced; undefined when it must not exist. Absent: no expectation.
   */
  readonly before?: { readonly bytes: Uint8Array | undefined };
}

/** The limit of the wait for another writer, and the check that it is alive. */
interface WriteOptions {
  readonly files?: Files;
  readonly waitMs?: number;
  readonly isAlive?: (pid: number) => boolean;
}

/** Runs `work` as the directory's only writer. */
export async function withWriteLock<T>(
  directory: string,
  work: () => Promise<T>,
  options: WriteOptions = {},
): Promise<T> {
  const files = options.files ?? DISK;
  const path = join(directory, WRITE_LOCK_FILE);
  await acquire(path, files, options);
  try {
    return await work();
  } finally {
    await files.remove(path);
  }
}

async function acquire(path: string, files: Files, options: WriteOptions): Promise<void> {
  const until = Date.now() + (options.waitMs ?? 10_000);
  const mine = new TextEncoder().encode(`${process.pid}\n`);
  while (!await files.create(path, mine)) {
    const held = await files.read(path, 100);
    if (held === undefined) continue;
    const pid = Number(/^([0-9]{1,10})\n$/.exec(new TextDecoder().decode(held))?.[1] ?? "0");
    const status = await files.status(path);
    // Without its final newline the lock is from a writer that was killed while it wrote the file, so the digits may
    // name another process. A living writer needs far less than a second.
    const dead = pid > 0
      ? !(options.isAlive ?? isAlive)(pid)
      : status !== undefined && Date.now() - status.modifiedMs > 1000;
    if (dead) {
      // Several processes may find the lock stale; only one rename succeeds.
      const stale = `${path}.${randomHex(12)}`;
      try {
        await files.rename(path, stale);
      } catch (error) {
        if (errorCode(error) === "ENOENT") continue;
        throw error;
      }
      // Another process may have removed the stale lock and taken a new one between the read and the rename: put that
      // one back.
      const moved = await files.read(stale, 100);
      if (sameBytes(moved, held)) await files.remove(stale);
      else await files.rename(stale, path);
      continue;
    }
    if (Date.now() > until) {
      throw fail("project.busy", `another waft (process ${pid}) is writing this project`, {
        file: path,
        help: "wait for it, or delete the file if no waft is running",
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === "EPERM";
  }
}

/** Replaces files of one directory, the manifest first, in whatever order they are given. */
export async function writeTogether(
  directory: string,
  writes: readonly PendingWrite[],
  options: WriteOptions = {},
): Promise<void> {
  const files = options.files ?? DISK;
  const rank = (name: string): number => name === MANIFEST_FILE ? 0 : name === LOCK_FILE ? 2 : 1;
  const sorted = [...writes].sort((a, b) => rank(a.name) - rank(b.name));
  await withWriteLock(directory, async () => {
    for (const name of await files.list(directory)) {
      if (TEMPORARY.test(name)) await files.remove(join(directory, name));
    }
    for (const { name, before } of sorted) {
      if (before === undefined) continue;
      const now = await files.read(join(directory, name));
      if (!sameBytes(now, before.bytes)) {
        throw fail("project.changed", `${name} changed while this command ran; nothing was written`, {
          file: name,
          help: "run the command again",
        });
      }
    }
    const staged: Staged[] = [];
    try {
      for (const { name, bytes } of sorted) {
        const next = { from: join(directory, `.${name}.${randomHex(12)}.tmp`), to: join(directory, name) };
        await naming(next, () => files.create(next.from, bytes));
        staged.push(next);
      }
      while (staged.length > 0) {
        const next = staged[0];
        await naming(next, () => files.rename(next.from, next.to));
        staged.shift();
      }
    } finally {
      for (const { from } of staged) await files.remove(from);
    }
  }, options);
}

/** A temporary file and the file that it replaces. */
interface Staged {
  readonly from: string;
  readonly to: string;
}

/** Runs `work`; its errors name the file that is replaced. */
async function naming({ from, to }: Staged, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw aboutFile(error, from, to);
  }
}

/** True when both are absent or hold the same bytes. */
export function sameBytes(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
