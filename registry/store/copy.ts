/**
 * Copies all data of a registry from one database into another, of the same kind or not.
 *
 * In: a migrated source, an empty target. Out: the target holds the same rows, or nothing after a failure. The source
 * is read in one snapshot, in pieces by primary key, so it may be in use and need not fit into memory. A test compares
 * TABLES with the tables that the migrations create.
 */
import type { Database, Queries, Row, SqlValue } from "./database.ts";
import { migrate } from "./migrations.ts";

/** A table: its primary key, and how many rows are read at once. */
interface Table {
  readonly name: string;
  readonly key: readonly string[];
  readonly rows: number;
}

/** Every table, those that others refer to first. */
export const TABLES: readonly Table[] = [
  { name: "accounts", key: ["id"], rows: 500 },
  { name: "tokens", key: ["id"], rows: 500 },
  { name: "prefixes", key: ["prefix"], rows: 500 },
  { name: "packages", key: ["id"], rows: 200 },
  { name: "plugins", key: ["id"], rows: 500 },
  { name: "blobs", key: ["digest"], rows: 4 },
  { name: "releases", key: ["package", "version"], rows: 20 },
  { name: "definitions", key: ["id", "version"], rows: 100 },
  { name: "facets", key: ["facet", "value", "package"], rows: 500 },
  { name: "contracts", key: ["namespace", "id", "version"], rows: 500 },
  { name: "yanks", key: ["package", "version"], rows: 500 },
  { name: "deprecations", key: ["package", "version"], rows: 500 },
  { name: "log_entries", key: ["number"], rows: 500 },
  { name: "log_nodes", key: ["level", "number"], rows: 500 },
  { name: "trusted_publishers", key: ["id"], rows: 500 },
  { name: "identity_uses", key: ["digest"], rows: 500 },
  { name: "transfer_offers", key: ["package"], rows: 500 },
  { name: "transfers", key: ["package", "transferred_at"], rows: 500 },
  { name: "installs_daily", key: ["package", "day", "version"], rows: 500 },
  { name: "install_salts", key: ["day"], rows: 500 },
  { name: "install_marks", key: ["day", "mark"], rows: 500 },
  { name: "signing_keys", key: ["id"], rows: 500 },
  { name: "secrets", key: ["name"], rows: 500 },
  { name: "documents", key: ["channel", "path"], rows: 20 },
  { name: "audit", key: ["id"], rows: 500 },
];

/** Copies all rows; their number. The target is migrated, and must hold nothing. */
export async function copyDatabase(from: Database, to: Database): Promise<number> {
  await migrate(from);
  await migrate(to);
  return await from.snapshot((source) =>
    to.write(async (target) => {
      let copied = 0;
      for (const table of TABLES) {
        const [any] = await target.all(`SELECT 1 AS one FROM ${table.name} LIMIT 1`);
        if (any !== undefined) throw new Error("The target database is not empty: it holds a registry already");
      }
      for (const table of TABLES) copied += await copyTable(source, target, table);
      return copied;
    })
  );
}

async function copyTable(source: Queries, target: Queries, { name, key, rows }: Table): Promise<number> {
  const order = key.join(", ");
  const after = `(${order}) > (${key.map(() => "?").join(", ")})`;
  let last: Row | undefined;
  let copied = 0;
  for (;;) {
    const found: Row[] = last === undefined
      ? await source.all(`SELECT * FROM ${name} ORDER BY ${order} LIMIT ${rows}`)
      : await source.all(
        `SELECT * FROM ${name} WHERE ${after} ORDER BY ${order} LIMIT ${rows}`,
        ...key.map((column) => last![column] as SqlValue),
      );
    for (const row of found) {
      const columns = Object.keys(row);
      await target.run(
        `INSERT INTO ${name} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
        ...columns.map((column) => row[column] as SqlValue),
      );
    }
    copied += found.length;
    if (found.length < rows) return copied;
    last = found.at(-1);
  }
}
