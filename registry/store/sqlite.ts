/**
 * The embedded database: SQLite through `node:sqlite`, in WAL mode.
 *
 * One connection writes, one reads, so readers never see a transaction that is not committed. Writes that wait at the
 * same time share one transaction, each in a savepoint of its own: they are acknowledged after the one commit, which
 * costs one flush to disk for all of them.
 */
import { chmodSync, closeSync, existsSync, openSync, statSync } from "node:fs";
import process from "node:process";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type Database, type Queries, type Row, type SqlValue, StoreUnavailable } from "./database.ts";

/** The maximum number of writes that share a transaction. */
const MAX_GROUP = 128;

interface Job {
  readonly work: (queries: Queries) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Opens a file. The host's module is looked up here, not imported: Node 20 lacks it, and completions and manual pages
 * load the definitions of all commands.
 */
function openFile(path: string, readOnly: boolean): DatabaseSync {
  const sqlite = process.getBuiltinModule("node:sqlite");
  if (sqlite === undefined) {
    throw new Error("a registry in a file needs node:sqlite: Node 22.13 or later, Deno or Bun; or set DATABASE_URL");
  }
  return new sqlite.DatabaseSync(path, { readOnly });
}

/**
 * Makes the file, its log and its index readable and writable by their owner only: they hold the private signing key.
 * SQLite would make them readable by all users, as the umask permits, and gives a log the permissions of its file.
 */
function closeToOthers(path: string): void {
  try {
    closeSync(openSync(path, "a", 0o600));
    for (const file of [path, `${path}-wal`, `${path}-shm`]) {
      if (existsSync(file) && (statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600);
    }
  } catch {
    // SQLite reports a file that cannot be opened; only the owner of a file can restrict it.
  }
}

class Connection implements Queries {
  readonly database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string, readOnly: boolean) {
    this.database = openFile(path, readOnly);
    this.database.exec("PRAGMA busy_timeout = 10000");
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      if (this.#statements.size >= 500) this.#statements.clear();
      this.#statements.set(sql, statement = this.database.prepare(sql));
    }
    return statement;
  }

  // deno-lint-ignore require-await -- the interface is asynchronous, this database is not
  async all(sql: string, ...values: readonly SqlValue[]): Promise<Row[]> {
    return this.#statement(sql).all(...values) as unknown as Row[];
  }

  // deno-lint-ignore require-await -- as above
  async run(sql: string, ...values: readonly SqlValue[]): Promise<number> {
    return Number(this.#statement(sql).run(...values).changes);
  }

  close(): void {
    this.#statements.clear();
    this.database.close();
  }
}

/** A registry's data in one file. */
export class SqliteDatabase implements Database {
  readonly dialect = "sqlite";
  readonly #writer: Connection;
  readonly #reader: Connection;
  #waiting: Job[] = [];
  #running: Promise<void> | undefined;
  readonly #path: string;
  #closed = false;

  /** Throws {@linkcode StoreUnavailable} if the file cannot be read or written. */
  constructor(path: string) {
    this.#path = path;
    let writer: Connection | undefined;
    try {
      closeToOthers(path);
      writer = new Connection(path, false);
      const { database } = writer;
      database.exec("PRAGMA journal_mode = WAL");
      database.exec("PRAGMA synchronous = FULL");
      database.exec("PRAGMA foreign_keys = ON");
      this.#reader = new Connection(path, true);
      this.#writer = writer;
    } catch (error) {
      writer?.close();
      throw storageError(error, `${path}: `);
    }
  }

  all(sql: string, ...values: readonly SqlValue[]): Promise<Row[]> {
    if (this.#closed) return Promise.reject(new StoreUnavailable("The database is closed"));
    return this.#reader.all(sql, ...values);
  }

  run(sql: string, ...values: readonly SqlValue[]): Promise<number> {
    return this.write((queries) => queries.run(sql, ...values));
  }

  write<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new StoreUnavailable("The database is closed"));
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ work, resolve: resolve as (value: unknown) => void, reject });
      this.#running ??= this.#drain();
    });
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      // A turn of the event loop lets requests that arrived together join the same commit.
      await new Promise((resolve) => setImmediate(resolve));
      await this.#commit(this.#waiting.splice(0, MAX_GROUP));
    }
    // There is no await between the last check of the queue and this line, so no job is left behind.
    this.#running = undefined;
  }

  async #commit(jobs: Job[]): Promise<void> {
    const { database } = this.#writer;
    const settle: (() => void)[] = [];
    try {
      database.exec("BEGIN IMMEDIATE");
    } catch (error) {
      for (const job of jobs) job.reject(unavailable(error));
      return;
    }
    try {
      for (const job of jobs) {
        database.exec("SAVEPOINT job");
        try {
          const value = await job.work(this.#writer);
          database.exec("RELEASE job");
          settle.push(() => job.resolve(value));
        } catch (error) {
          database.exec("ROLLBACK TO job");
          database.exec("RELEASE job");
          settle.push(() => job.reject(storageError(error)));
        }
      }
      database.exec("COMMIT");
      for (const done of settle) done();
    } catch (error) {
      try {
        database.exec("ROLLBACK");
      } catch {
        // The transaction ended by itself (full disk).
      }
      for (const job of jobs) job.reject(unavailable(error));
    }
  }

  async snapshot<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    await this.#running;
    // A separate connection, so that other reads do not wait.
    const connection = new Connection(this.#path, true);
    try {
      connection.database.exec("BEGIN");
      return await work(connection);
    } finally {
      connection.close();
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    while (this.#running !== undefined) await this.#running;
    this.#closed = true;
    this.#reader.close();
    try {
      this.#writer.database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // No space to copy the log into the file: commits stay in the log, which the next process reads.
    } finally {
      this.#writer.close();
    }
  }
}

function unavailable(error: unknown, place = ""): StoreUnavailable {
  return new StoreUnavailable(`SQLite: ${place}${error instanceof Error ? error.message : String(error)}`);
}

/** SQLite's messages for failures of the file system; Deno does not give the number of every error. */
const STORAGE =
  /^(?:database or disk is full|disk I\/O error|unable to open database file|attempt to write a readonly)/;

/** A failure of the file system as {@linkcode StoreUnavailable}; other errors as they are. */
function storageError(error: unknown, place?: string): unknown {
  return error instanceof Error && STORAGE.test(error.message) ? unavailable(error, place) : error;
}
