/**
 * Backups: one SQLite file with all data, taken from either kind of database while it is in use.
 *
 * In: a database and a file name. Out: a file that appears only when it is complete, or a database filled from one. A
 * backup holds archives, hashes of tokens and the signing key: keep it as secret as the database.
 */
import { copyFileSync, existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { copyDatabase } from "./copy.ts";
import { type Database, StoreUnavailable } from "./database.ts";
import { SqliteDatabase } from "./sqlite.ts";

/** Writes a backup; the number of rows in it. An existing file is not overwritten. */
export async function writeBackup(database: Database, file: string): Promise<number> {
  if (existsSync(file)) throw new Error(`${file} exists already`);
  return await withFolder(dirname(file), async (folder) => {
    const path = join(folder, "backup.sqlite");
    const copy = new SqliteDatabase(path);
    let rows: number;
    try {
      rows = await copyDatabase(database, copy);
    } finally {
      await copy.close();
    }
    renameSync(path, file);
    return rows;
  });
}

/** Fills an empty database from a backup; the number of rows. The file stays as it is. */
export async function restoreBackup(file: string, database: Database): Promise<number> {
  if (!existsSync(file)) throw new Error(`there is no file ${file}`);
  return await withFolder(dirname(file), async (folder) => {
    // Opening a database writes to it, and a backup of an older registry is migrated.
    const path = join(folder, "restore.sqlite");
    copyFileSync(file, path);
    const source = openCopy(path, file);
    try {
      const [state] = await source.all("PRAGMA integrity_check");
      if (state?.integrity_check !== "ok") throw new Error(`${file} is damaged: ${String(state?.integrity_check)}`);
      const [known] = await source.all("SELECT name FROM sqlite_master WHERE name = 'migrations'");
      if (known === undefined) throw new Error(`${file} is not a backup of a registry`);
      return await copyDatabase(source, database);
    } finally {
      await source.close();
    }
  });
}

function openCopy(path: string, file: string): SqliteDatabase {
  try {
    return new SqliteDatabase(path);
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    throw new Error(`${file} is not a backup of a registry`, { cause: error });
  }
}

async function withFolder<T>(beside: string, work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(beside, ".registry-"));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
