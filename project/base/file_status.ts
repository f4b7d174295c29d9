/**
 * What a path is. Apart from files.ts, because every `waft run` asks whether there is a project, and few need more.
 */
import { type FileFacts, fileFacts } from "@waft/engine/host/files";

/** What a path is. */
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

/** True for errors that say that there is no such file. */
export function isMissing(error: unknown): boolean {
  const code = (error as { readonly code?: string } | null)?.code;
  return code === "ENOENT" || code === "ENOTDIR";
}

/** The status of what a path names, through symbolic links; undefined when there is nothing. */
export function fileStatus(path: string): FileStatus | undefined {
  try {
    const { kind, bytes, modifiedMs, uid, gid, device, mode } = fileFacts(path);
    return { kind, size: bytes, modifiedMs, uid, gid, device, mode: mode & 0o7777 };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
