/**
 * Shortens the logs of Deno's caches. In: the directory of the caches (DENO_DIR). Out: the same caches with empty
 * write-ahead logs, in a directory that other users cannot write.
 *
 * Deno exits without closing the databases of its caches, so whatever a process has added to them stays in their logs,
 * and each start of Deno reads a log in full, with its checksums, until another process happens to add enough to it.
 * Invariant: a database that another process is using, and whatever belongs to another user, stay as they are.
 */
import { chmodSync, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";

const LOG = "-wal";

/** Copies the logs in `directory` that are longer than `limit` bytes into their databases and empties them. */
export function emptyLogs(directory: string, limit: number): void {
  // Another user could have put a link to any file in the place of a log.
  if (!isOwn(lstatSync(directory))) return;
  closeToOthers(directory);
  for (const name of readdirSync(directory)) {
    if (!name.endsWith(LOG)) continue;
    const log = lstatSync(join(directory, name));
    if (log.isFile() && isOwn(log) && log.size > limit) emptyLogOf(join(directory, name.slice(0, -LOG.length)));
  }
}

/**
 * Takes the right to write from other users. Deno executes the code in its caches, and it made their directory under
 * the user's umask before installer/start.sh did so.
 */
function closeToOthers(directory: string): void {
  const { mode } = lstatSync(directory);
  if ((mode & 0o022) !== 0) chmodSync(directory, mode & 0o7755);
}

function isOwn({ uid }: { readonly uid: number }): boolean {
  return process.getuid === undefined || process.getuid() === uid;
}

function emptyLogOf(file: string): void {
  const database = new DatabaseSync(file);
  try {
    // Returns that it is busy, without waiting, while another connection reads or writes.
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    database.close();
  }
}
