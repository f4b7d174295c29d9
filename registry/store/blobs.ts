/**
 * Archives by digest.
 *
 * They are stored in the database beside the releases that name them: one transaction, one backup, and every process of
 * a group sees them. None is larger than 16 MiB, so a whole one fits into memory. With object storage, the row of an
 * archive has its size and no bytes.
 */
import { bytesOf, first, numberOf, type Queries, StoreUnavailable } from "./database.ts";
import type { ObjectStore } from "./object_store.ts";

/** The size of a blob. */
export async function blobSize(queries: Queries, digest: string): Promise<number | undefined> {
  const row = await first(queries, "SELECT size FROM blobs WHERE digest = ?", digest);
  return row && numberOf(row, "size");
}

/** Part of a blob, or all of it, from the database or from object storage. */
export async function readBlob(
  queries: Queries,
  digest: string,
  { start, length, size, objects }: {
    readonly start: number;
    readonly length: number;
    /** The size of the whole blob. */
    readonly size: number;
    readonly objects: ObjectStore | undefined;
  },
): Promise<Uint8Array<ArrayBuffer>> {
  const row = await first(
    queries,
    "SELECT substr(bytes, ?, ?) AS part FROM blobs WHERE digest = ?",
    start + 1,
    length,
    digest,
  );
  if (row === undefined) throw new TypeError(`No blob ${digest}`);
  // A part of no bytes is NULL for SQLite.
  const part = row["part"] === null ? new Uint8Array() : bytesOf(row, "part");
  if (part.length > 0 || length === 0) return part;
  if (objects === undefined) throw new StoreUnavailable(`${digest} is in object storage, which is not configured`);
  return await objects.read(digest, start, length, size);
}
