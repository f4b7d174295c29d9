/**
 * The file operations needed to run a module. Deno uses its own functions, for start-up time (process.ts). In: paths.
 * Out: metadata and bytes; failures throw a host error with a `code` such as ENOENT.
 */
import { dateNow } from "./clocks.ts";
import { nodeModule } from "./process.ts";
import { ownDeno as own } from "./globals.ts";

/** Metadata of a file. */
export interface FileFacts {
  readonly kind: "file" | "directory" | "other";
  readonly bytes: number;
  readonly modifiedMs: number;
  readonly uid: number;
  readonly gid: number;
  /** Permission bits, possibly combined with file type bits. */
  readonly mode: number;
  readonly device: number;
}

function factsOfDeno(info: Deno.FileInfo): FileFacts {
  return {
    kind: info.isFile ? "file" : info.isDirectory ? "directory" : "other",
    bytes: info.size,
    modifiedMs: info.mtime?.getTime() ?? 0,
    uid: info.uid ?? -1,
    gid: info.gid ?? -1,
    mode: info.mode ?? 0o777,
    device: info.dev,
  };
}

function factsOfNode(stats: import("node:fs").Stats): FileFacts {
  return {
    kind: stats.isFile() ? "file" : stats.isDirectory() ? "directory" : "other",
    bytes: stats.size,
    modifiedMs: stats.mtimeMs,
    uid: stats.uid,
    gid: stats.gid,
    mode: stats.mode,
    device: stats.dev,
  };
}

/** Metadata of the file at `path`; follows symbolic links. */
export function fileFacts(path: string): FileFacts {
  return own === undefined ? factsOfNode(nodeModule("node:fs").statSync(path)) : factsOfDeno(own.statSync(path));
}

/** Metadata of the path itself: a symbolic link has the kind `other`. */
export function linkFacts(path: string): FileFacts {
  return own === undefined ? factsOfNode(nodeModule("node:fs").lstatSync(path)) : factsOfDeno(own.lstatSync(path));
}

/** The path that a symbolic link holds. */
export function linkTarget(path: string): string {
  return own === undefined ? nodeModule("node:fs").readlinkSync(path) : own.readLinkSync(path);
}

/** Whether this process may read `path` without asking: at a terminal, Deno asks the user for a missing permission. */
function mayRead(path: string | URL): boolean {
  return own === undefined || own.permissions.querySync({ name: "read", path }).state === "granted";
}

/** Whether there is a file at `path` that this process may read without asking. Follows symbolic links. */
export function isReadableFile(path: string | URL): boolean {
  if (!mayRead(path)) return false;
  try {
    return own === undefined ? nodeModule("node:fs").statSync(path).isFile() : own.statSync(path).isFile;
  } catch {
    return false;
  }
}

/** The path of a `file:` URL. On Deno, it does not load the Node compatibility layer, except on Windows. */
export function filePath(url: URL): string {
  const isPlain = own !== undefined && own.build.os !== "windows" && !/%2f/i.test(url.pathname);
  return isPlain ? decodeURIComponent(url.pathname) : nodeModule("node:url").fileURLToPath(url);
}

/** The contents of a file. */
export function readFile(path: string | URL): Uint8Array<ArrayBuffer> {
  return own === undefined ? new Uint8Array(nodeModule("node:fs").readFileSync(path)) : own.readFileSync(path);
}

/** Names in a directory, and whether they are directories; in no order. */
export function listDirectory(path: string): { name: string; isDirectory: boolean }[] {
  if (own !== undefined) return [...own.readDirSync(path)];
  return nodeModule("node:fs").readdirSync(path, { withFileTypes: true })
    .map((entry) => ({ name: entry.name, isDirectory: entry.isDirectory() }));
}

/** Sets the times of access and change of a file to now. */
export function touchFile(path: string): void {
  const now = dateNow() / 1000;
  if (own === undefined) nodeModule("node:fs").utimesSync(path, now, now);
  else own.utimeSync(path, now, now);
}
