/**
 * Databases for tests: SQLite in a temporary folder, PostgreSQL in a schema of its own when DATABASE_URL is set.
 *
 * Out: functions that make an empty, migrated database and remove it afterwards.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { Database } from "../../registry/store/database.ts";
import { migrate } from "../../registry/store/migrations.ts";
import { PostgresDatabase } from "../../registry/store/postgres.ts";
import { SqliteDatabase } from "../../registry/store/sqlite.ts";

/** A kind of database that tests run on. */
interface DatabaseKind {
  readonly name: string;
  /** The reason why it cannot be used here. */
  readonly absent?: string;
  /** Runs `test` on an empty database; `open` gives further connections to it, as other processes have. */
  use(test: (database: Database, open: () => Database) => Promise<void>, isMigrated?: boolean): Promise<void>;
}

/** SQLite alone. */
export const SQLITE: DatabaseKind = {
  name: "SQLite",
  async use(test, isMigrated = true) {
    const folder = await mkdtemp(join(tmpdir(), "waft-store-"));
    const opened: Database[] = [];
    const open = (): Database => {
      const database = new SqliteDatabase(join(folder, "registry.sqlite"));
      opened.push(database);
      return database;
    };
    try {
      const database = open();
      if (isMigrated) await migrate(database);
      await test(database, open);
    } finally {
      for (const database of opened) await database.close();
      await rm(folder, { recursive: true, force: true });
    }
  },
};

const URL_OF_POSTGRES = process.env.DATABASE_URL;

const POSTGRES: DatabaseKind = {
  name: "PostgreSQL",
  ...(URL_OF_POSTGRES === undefined ? { absent: "DATABASE_URL is not set" } : {}),
  async use(test, isMigrated = true) {
    const schema = `waft_test_${randomBytes(6).toString("hex")}`;
    const admin = new PostgresDatabase(URL_OF_POSTGRES!, { connections: 1 });
    await admin.run(`CREATE SCHEMA ${schema}`);
    const opened: Database[] = [];
    const open = (): Database => {
      const database = new PostgresDatabase(URL_OF_POSTGRES!, { schema, connections: 4 });
      opened.push(database);
      return database;
    };
    try {
      const database = open();
      if (isMigrated) await migrate(database);
      await test(database, open);
    } finally {
      for (const database of opened) await database.close();
      await admin.run(`DROP SCHEMA ${schema} CASCADE`);
      await admin.close();
    }
  },
};

/** Both kinds. */
export const DATABASES: readonly DatabaseKind[] = [SQLITE, POSTGRES];

/** One test for each kind of database; an absent one is ignored with the reason in its name. */
export function eachDatabase(
  name: string,
  test: (database: Database, open: () => Database) => Promise<void>,
  isMigrated = true,
): void {
  for (const kind of DATABASES) {
    Deno.test({
      name: `${kind.name}: ${name}${kind.absent === undefined ? "" : ` (ignored: ${kind.absent})`}`,
      ignore: kind.absent !== undefined,
      fn: () => kind.use(test, isMigrated),
    });
  }
}
