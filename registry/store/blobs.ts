/**
 * Archives by digest.
 *
 * They are stored in the database beside the releases that name them: one transaction, one backup, and every process of
 * a group sees them. None is larger than 16 MiB, so a whole one fits into memory.
 */
import { bytesOf, first, numberOf, type Queries } from "./database.ts";

/** The size of a blob. */
export async function blobSize(queries: Queries, digest: string): Promise<number | undefined> {
  const row = await first(queries, "SELECT size FROM blobs WHERE digest = ?", digest);
  return row && numberOf(row, "size");
}

/** Part of a blob, or all of it. */
export async function readBlob(
  queries: Queries,
  digest: string,
  start: number,
  length: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const row = await first(
    queries,
    "SELECT substr(bytes, ?, ?) AS part FROM blobs WHERE digest = ?",
    start + 1,
    length,
    digest,
  );
  if (row === undefined) throw new TypeError(`No blob ${digest}`);
  return bytesOf(row, "part");
}
