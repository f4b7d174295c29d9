/**
 * The transparency log of releases: an append-only Merkle tree (RFC 9162, 2.1) over the signed records.
 *
 * In: releases that are stored and not held. Out: the size and root of the tree, proofs, entries. Leaf n is the
 * canonical text of the record of entry n. Complete subtrees are stored when their last leaf is appended, and never
 * change; every hash of the tree is one of them or combines at most one of each level. Invariant: an entry is appended
 * in the transaction that makes its release public, so a release that clients see has an entry.
 */
import { emptyRoot, hashLeaf, hashNode, leftSize } from "../../project/packages/merkle_tree.ts";
import type { ReleaseRecord } from "../../project/packages/release_record.ts";
import { type Database, first, maybeNumber, numberOf, type Queries, textOf, type Writes } from "./database.ts";

/** A public release. */
interface LogEntry {
  readonly number: number;
  readonly record: ReleaseRecord;
  readonly signature: { readonly keyId: string; readonly algorithm: "Ed25519"; readonly value: string };
}

/** Appends those releases that are public and have no entry: of one package, or of all. Returns their number. */
export async function appendReleases(queries: Queries, packageId?: string): Promise<number> {
  // Processes append one after the other, so that numbers have neither gaps nor doubles.
  await queries.run("INSERT INTO secrets (name, value) VALUES ('log', '') ON CONFLICT (name) DO NOTHING");
  await queries.run("UPDATE secrets SET value = '' WHERE name = 'log'");
  const rows = await queries.all(
    `SELECT r.package, r.version, r.record FROM releases r JOIN packages p ON p.id = r.package
     LEFT JOIN log_entries e ON e.package = r.package AND e.version = r.version
     WHERE e.number IS NULL AND p.held = 0${packageId === undefined ? "" : " AND r.package = ?"}
     ORDER BY r.published_at, r.package, r.version`,
    ...(packageId === undefined ? [] : [packageId]),
  );
  let number = await logSize(queries);
  for (const row of rows) {
    await queries.run(
      "INSERT INTO log_entries (number, package, version) VALUES (?, ?, ?)",
      number,
      textOf(row, "package"),
      textOf(row, "version"),
    );
    await appendLeaf(queries, number, hashLeaf(new TextEncoder().encode(textOf(row, "record"))));
    number++;
  }
  return rows.length;
}

/** Appends the releases that an older program, which had no log, has stored. */
export async function completeLog(database: Database): Promise<void> {
  const missing = await first(
    database,
    `SELECT 1 AS one FROM releases r JOIN packages p ON p.id = r.package
     LEFT JOIN log_entries e ON e.package = r.package AND e.version = r.version
     WHERE e.number IS NULL AND p.held = 0 LIMIT 1`,
  );
  if (missing !== undefined) await (database as Writes).write((queries) => appendReleases(queries));
}

/** Stores a leaf, and the subtrees that it completes. */
async function appendLeaf(queries: Queries, number: number, leaf: Uint8Array): Promise<void> {
  let hash = leaf;
  for (let level = 0, at = number;; level++, at = (at - 1) / 2) {
    await queries.run(
      "INSERT INTO log_nodes (level, number, hash) VALUES (?, ?, ?)",
      level,
      at,
      Buffer.from(hash).toString("hex"),
    );
    if (at % 2 === 0) return;
    hash = hashNode(await new TreeNodes(queries).complete(level, at - 1), hash);
  }
}

/** The number of entries. */
export async function logSize(queries: Queries): Promise<number> {
  const row = await first(queries, "SELECT max(number) AS last FROM log_entries");
  return ((row && maybeNumber(row, "last")) ?? -1) + 1;
}

/** The root of the tree of the first `size` entries. */
export async function rootOf(queries: Queries, size: number): Promise<Uint8Array> {
  return size === 0 ? emptyRoot() : await new TreeNodes(queries).range(0, size);
}

/** The number of a release's entry; undefined without one. */
export async function entryNumber(queries: Queries, id: string, version: string): Promise<number | undefined> {
  const row = await first(queries, "SELECT number FROM log_entries WHERE package = ? AND version = ?", id, version);
  return row && numberOf(row, "number");
}

/** The entries from `start` on, at most `limit`. */
export async function logEntries(queries: Queries, start: number, limit: number): Promise<LogEntry[]> {
  const rows = await queries.all(
    `SELECT e.number, r.record, r.signature, r.signing_key FROM log_entries e
     JOIN releases r ON r.package = e.package AND r.version = e.version
     WHERE e.number >= ? ORDER BY e.number LIMIT ?`,
    start,
    limit,
  );
  return rows.map((row) => ({
    number: numberOf(row, "number"),
    record: JSON.parse(textOf(row, "record")) as ReleaseRecord,
    signature: { keyId: textOf(row, "signing_key"), algorithm: "Ed25519", value: textOf(row, "signature") },
  }));
}

/** The proof that entry `number` is in the tree of the first `size` entries; `number` is below `size`. */
export async function inclusionProof(queries: Queries, number: number, size: number): Promise<Uint8Array[]> {
  const nodes = new TreeNodes(queries);
  const proof: Uint8Array[] = [];
  let start = 0, end = size;
  while (end - start > 1) {
    const middle = start + leftSize(end - start);
    if (number < middle) {
      proof.push(await nodes.range(middle, end));
      end = middle;
    } else {
      proof.push(await nodes.range(start, middle));
      start = middle;
    }
  }
  return proof.reverse();
}

/** The proof that the tree of `size` entries begins with that of `before` ones; `before` is at most `size`. */
export async function consistencyProof(queries: Queries, before: number, size: number): Promise<Uint8Array[]> {
  if (before === 0 || before === size) return [];
  const nodes = new TreeNodes(queries);
  const proof: Uint8Array[] = [];
  let start = 0, end = size;
  while (before !== end) {
    const middle = start + leftSize(end - start);
    if (before <= middle) {
      proof.push(await nodes.range(middle, end));
      end = middle;
    } else {
      proof.push(await nodes.range(start, middle));
      start = middle;
    }
  }
  // The smaller tree itself is known to the client.
  if (start > 0) proof.push(await nodes.range(start, end));
  return proof.reverse();
}

/** Hashes of ranges of leaves. */
class TreeNodes {
  readonly #queries: Queries;

  constructor(queries: Queries) {
    this.#queries = queries;
  }

  /** The hash of the complete subtree `number` on a level. */
  async complete(level: number, number: number): Promise<Uint8Array> {
    const row = await first(
      this.#queries,
      "SELECT hash FROM log_nodes WHERE level = ? AND number = ?",
      level,
      number,
    );
    if (row === undefined) throw new Error(`The log lacks the subtree ${number} of level ${level}`);
    return new Uint8Array(Buffer.from(textOf(row, "hash"), "hex"));
  }

  /** The hash of the subtree of the leaves from `start` to `end`; `start` is a multiple of its width. */
  async range(start: number, end: number): Promise<Uint8Array> {
    const width = end - start;
    const left = width === 1 ? 1 : leftSize(width);
    if (width === 1 || left * 2 === width) return await this.complete(Math.log2(width), start / width);
    return hashNode(await this.range(start, start + left), await this.range(start + left, end));
  }
}
