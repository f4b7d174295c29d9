/**
 * File types and permissions of paths. Separate from files.ts, because every `waft run` looks for a project, and few
 * runs need more.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { type FileFacts, fileFacts } from "@waft/engine/internal/host/files";

/** The type and attributes of a path. */
export interface FileStatus {
  readonly kind: FileFacts["kind"];
  readonly size: number;
  readonly modifiedMs: number;
  /** Owner, group and device, where the system has them. */
  readonly uid: number;
  readonly gid: number;
  readonly device: number;
  /** Permission bits. */
  readonly mode: number;
}

/** True for errors that report a missing file. */
export function isMissing(error: unknown): boolean {
  const code = errorCode(error);
  return code === "ENOENT" || code === "ENOTDIR";
}

/** The status of the file at a path, through symbolic links; undefined when none exists. */
export function fileStatus(path: string): FileStatus | undefined {
  try {
    const { kind, bytes, modifiedMs, uid, gid, device, mode } = fileFacts(path);
    return { kind, size: bytes, modifiedMs, uid, gid, device, mode: mode & 0o7777 };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
