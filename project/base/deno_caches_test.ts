/** The logs of Deno's caches: long ones are emptied, without harm to databases in use and to other files. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";
import { emptyLogs } from "./deno_caches.ts";

const LIMIT = 1 << 16;

/** A database in `directory` whose log has at least `bytes`; the connection is open, as in a running Deno. */
function openWithLog(directory: string, name: string, bytes: number): DatabaseSync {
  const database = new DatabaseSync(join(directory, name));
  database.exec("PRAGMA journal_mode=WAL; CREATE TABLE entry (data BLOB)");
  database.prepare("INSERT INTO entry VALUES (zeroblob(?))").run(bytes);
  return database;
}

function withCaches(check: (directory: string, open: (name: string, bytes: number) => DatabaseSync) => void): void {
  const directory = mkdtempSync(join(tmpdir(), "waft-caches-"));
  const databases: DatabaseSync[] = [];
  try {
    check(directory, (name, bytes) => {
      const database = openWithLog(directory, name, bytes);
      databases.push(database);
      return database;
    });
  } finally {
    for (const database of databases) if (database.isOpen) database.close();
    rmSync(directory, { recursive: true });
  }
}

Deno.test("a long log of a cache is emptied, and its database keeps the content", () =>
  withCaches((directory, open) => {
    const database = open("long", 2 * LIMIT);
    open("short", 1);
    const short = statSync(join(directory, "short-wal")).size;
    emptyLogs(directory, LIMIT);
    assert.equal(statSync(join(directory, "long-wal")).size, 0);
    assert.equal(statSync(join(directory, "short-wal")).size, short);
    assert.equal(database.prepare("SELECT length(data) AS bytes FROM entry").get()?.bytes, 2 * LIMIT);
  }));

Deno.test("the log of a cache that is being read stays", () =>
  withCaches((directory, open) => {
    const database = open("read", 2 * LIMIT);
    database.exec("BEGIN; SELECT count(*) FROM entry");
    const { size } = statSync(join(directory, "read-wal"));
    emptyLogs(directory, LIMIT);
    assert.equal(statSync(join(directory, "read-wal")).size, size);
    database.exec("COMMIT");
  }));

Deno.test({
  name: "a link in the place of a cache's log is not followed",
  ignore: process.platform === "win32", // links need a privilege
  fn() {
    withCaches((directory, open) => {
      open("linked", 1).close();
      const target = join(directory, "target");
      writeFileSync(target, new Uint8Array(2 * LIMIT));
      symlinkSync(target, join(directory, "linked-wal"));
      emptyLogs(directory, LIMIT);
      assert.equal(statSync(target).size, 2 * LIMIT);
    });
  },
});

Deno.test({
  name: "a directory of caches that other users can write is closed to them",
  ignore: process.platform === "win32", // no such modes
  fn() {
    withCaches((directory, open) => {
      open("any", 1);
      for (const mode of [0o777, 0o775, 0o755, 0o700]) {
        chmodSync(directory, mode);
        emptyLogs(directory, LIMIT);
        assert.equal(statSync(directory).mode & 0o777, mode & 0o755);
      }
    });
  },
});
