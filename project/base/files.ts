/**
 * The file operations of the project manager, behind one small interface.
 *
 * In: absolute paths. Out: bytes, or changes on disk that are complete once the call returns (new files are
 * synced). Tests pass a Files that dies or fails at a chosen operation. Invariant: a file that cannot be written
 * completely (full disk, quota, failed sync) is removed before the error is thrown.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { type FileStatus, fileStatus, isMissing } from "./file_status.ts";

export type { FileStatus };

/** Throws if other users could have written a file with these attributes. */
export type Judge = (status: Pick<FileStatus, "uid" | "gid" | "mode">) => void;

/** File operations; all paths are absolute. */
export interface Files {
  /**
   * The bytes, or undefined when there is no such file. Refuses more than `maxBytes`. `judge` gets the attributes of
   * the open file, which cannot be exchanged any more, and may throw.
   */
  read(path: string, maxBytes?: number, judge?: Judge): Promise<Uint8Array | undefined>;
  /** Creates a file that must not exist, writes and syncs it; false when it exists. */
  create(path: string, bytes: Uint8Array, mode?: number): Promise<boolean>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Makes a directory and those above it; `mode` is for those that it makes. */
  makeDirectory(path: string, mode?: number): Promise<void>;
  list(path: string): Promise<string[]>;
  /** Undefined when there is nothing; follows symbolic links. */
  status(path: string): Promise<FileStatus | undefined>;
  realPath(path: string): Promise<string>;
}

/** The operating system's files. */
export const DISK: Files = {
  async read(path, maxBytes = 1 << 30, judge) {
    try {
      const { size } = await regularFile(path);
      if (judge !== undefined) return await readJudged(path, maxBytes, judge);
      // One byte beyond the limit is enough for a reader to refuse the file by its size.
      if (size > maxBytes) return new Uint8Array(await readStart(path, maxBytes + 1));
      return new Uint8Array(await readFile(path));
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  },
  async create(path, bytes, mode = 0o644) {
    let file: FileHandle;
    try {
      file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode);
    } catch (error) {
      if (errorCode(error) === "EEXIST") return false;
      throw error;
    }
    try {
      try {
        let at = 0;
        while (at < bytes.length) at += (await file.write(bytes, at, bytes.length - at)).bytesWritten;
        await file.sync();
      } finally {
        await file.close();
      }
    } catch (error) {
      await rm(path, { force: true });
      throw named(error, path);
    }
    return true;
  },
  async rename(from, to) {
    await rename(from, to);
    // The name is durable once its directory is; not every system lets a directory be opened.
    try {
      const directory = await open(dirname(to), "r");
      try {
        await directory.sync();
      } finally {
        await directory.close();
      }
    } catch {
      // The rename itself has happened.
    }
  },
  async remove(path) {
    await rm(path, { force: true });
  },
  async makeDirectory(path, mode = 0o777) {
    await mkdir(path, { recursive: true, mode });
  },
  async list(path) {
    try {
      return (await readdir(path)).sort();
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  },
  // deno-lint-ignore require-await
  status: async (path) => fileStatus(path),
  realPath: (path) => realpath(path),
};

/** The error of a file system call with the path of the file, which calls by descriptor leave out. */
function named(error: unknown, path: string): unknown {
  if (error instanceof Error && !("path" in error)) Object.assign(error, { path });
  return error;
}

/** The status of a regular file; a pipe or a device would block or never end. */
async function regularFile(path: string): Promise<{ readonly size: number }> {
  const status = await stat(path);
  if (status.isFile() || status.isDirectory()) return status; // Reading a directory fails with its own error.
  throw Object.assign(new Error(`${path} is not a regular file`), { code: "EINVAL", path });
}

/** At most one byte more than `maxBytes` of the file that `judge` accepts. */
async function readJudged(path: string, maxBytes: number, judge: Judge): Promise<Uint8Array> {
  // A pipe that took the file's place does not block.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const status = await file.stat();
    judge(status);
    const bytes = new Uint8Array(Math.min(status.size, maxBytes + 1));
    let at = 0;
    for (let count = -1; at < bytes.length && count !== 0; at += count) {
      count = (await file.read(bytes, at, bytes.length - at, at)).bytesRead;
    }
    return bytes.subarray(0, at);
  } finally {
    await file.close();
  }
}

async function readStart(path: string, count: number): Promise<Uint8Array> {
  const file = await open(path, "r");
  try {
    const bytes = new Uint8Array(count);
    const { bytesRead } = await file.read(bytes, 0, count, 0);
    return bytes.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** True when the path itself is a symbolic link. */
export async function isSymbolicLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink();
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}
