/**
 * Guarantees for operators, on SQLite and on PostgreSQL: processes that start together on a new database, a stop in the
 * middle of a publication, limits shared by several processes, a backup that another registry continues with.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { randomBytes } from "node:crypto";
import { noLog } from "../../registry/log.ts";
import { startRegistry } from "../../registry/registry.ts";
import { writeBackup } from "../../registry/store/backup.ts";
import type { Database } from "../../registry/store/database.ts";
import { listKeys } from "../../registry/store/keys.ts";
import { findRelease, listVersions } from "../../registry/store/packages.ts";
import { SqliteDatabase } from "../../registry/store/sqlite.ts";
import { CODEC, codecDefinition } from "../project/sample_plugins.ts";
import { eachDatabase } from "./temp_database.ts";
import { realArchive, type TestRegistry, withRegistry } from "./test_registry.ts";

const DOCUMENTS = [{ path: "index.md", source: "# Index\n\nThe only page of this test.\n" }];

function start(database: Database): ReturnType<typeof startRegistry> {
  return startRegistry({ database, documents: DOCUMENTS, log: noLog, domains: () => Promise.resolve(false) });
}

eachDatabase("processes that start together on a new database agree", async (database, open) => {
  const registries = await Promise.all([database, open(), open()].map(start));
  try {
    const tokens = registries.flatMap((r) => r.adminToken ?? []);
    assert.equal(tokens.length, 1, "the token is made, and shown, once");
    const keys = await Promise.all(registries.map(async ({ url }) => await (await fetch(`${url}/api/keys`)).text()));
    assert.equal(new Set(keys).size, 1);
    assert.equal((await listKeys(database)).length, 1);
    for (const { url } of registries) {
      const account = await fetch(`${url}/api/account`, { headers: { authorization: `Bearer ${tokens[0]}` } });
      assert.equal(account.status, 200);
      assert.equal((await account.json() as { name: string }).name, "admin");
    }
  } finally {
    for (const registry of registries) await registry.close();
  }
}, false);

Deno.test("a start that fails at its database leaves no listener", async () => {
  const listening = async (port: number): Promise<Server> => {
    const server = createServer().listen(port, "127.0.0.1");
    await once(server, "listening");
    return server;
  };
  const holder = await listening(0);
  const { port } = holder.address() as AddressInfo;
  await new Promise((resolve) => holder.close(resolve));
  const folder = await mkdtemp(join(tmpdir(), "waft-closed-"));
  try {
    const database = new SqliteDatabase(join(folder, "registry.sqlite"));
    await database.close();
    await assert.rejects(startRegistry({ database, documents: DOCUMENTS, log: noLog, metricsPort: port }));
    (await listening(port)).close();
  } finally {
    await rm(folder, { recursive: true });
  }
});

/** Sends a publication except for its last byte; then the rest, and returns the answer. */
async function publishSlowly(
  r: TestRegistry,
  token: string,
  between: () => Promise<void>,
): Promise<{ answer: string; closed: boolean }> {
  const archive = realArchive([codecDefinition()]);
  const [path, init] = r.publishing(CODEC, "2.0.1", archive, token);
  const head = Object.entries({ host: "x", ...init.headers, "content-length": archive.length })
    .map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const { hostname, port } = new URL(r.url);
  const socket = connect(Number(port), hostname);
  let answer = "";
  socket.on("data", (chunk) => answer += chunk.toString());
  socket.on("error", () => {});
  const closed = new Promise<boolean>((resolve) => socket.once("close", () => resolve(true)));
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.write(`PUT ${path} HTTP/1.1\r\n${head}\r\n`);
  socket.write(archive.subarray(0, -1));
  // For these errors the registry reads the whole request body before it responds.
  for (let n = 0; n < 3; n++) await (await fetch(`${r.url}/healthz`)).body?.cancel();
  await between();
  socket.write(archive.subarray(-1));
  return { closed: await closed, answer };
}

eachDatabase("a stop lets a publication end that has begun, and takes nothing new", async (database, open) => {
  await withRegistry(async (r) => {
    const { token } = await r.author("acme", ["github.com/acme"]);
    let stopped: Promise<void> | undefined;
    const { answer } = await publishSlowly(r, token, async () => {
      stopped = r.registry.close();
      await new Promise((resolve) => setTimeout(resolve, 50));
      await assert.rejects(fetch(`${r.url}/healthz`), "no new connection");
    });
    await stopped;
    assert.match(answer, /^HTTP\/1\.1 201 /);
    assert.match(answer, /\r\nconnection: close\r\n/i);
  }, { database: open() });
  assert.equal((await findRelease(database, CODEC, "2.0.1"))?.version, "2.0.1", "acknowledged writes are there");
});

eachDatabase("an account's limit holds over several processes", async (database, open) => {
  const settings = { publishPerHour: 3 };
  await withRegistry(async (one) => {
    await withRegistry(async (two) => {
      const { token } = await one.author("acme", ["github.com/acme"]);
      const statuses = await Promise.all(Array.from({ length: 8 }, async (_, i) => {
        const { status } = await (i % 2 === 0 ? one : two).publish(token, [codecDefinition(`2.0.${i}`)]);
        return status;
      }));
      assert.deepEqual(statuses.sort(), [201, 201, 201, 429, 429, 429, 429, 429]);
      assert.equal((await listVersions(database, CODEC)).length, 3);
    }, { database: open(), settings });
  }, { database: open(), settings });
});

eachDatabase(
  "a registry goes on from the backup of another, with its keys, tokens and counts",
  async (_database, open) => {
    const file = join(tmpdir(), `waft-backup-${randomBytes(6).toString("hex")}.sqlite`);
    try {
      let token = "";
      let before = "";
      const record = "/api/packages/github.com:acme:codec/versions/2.0.1";
      await withRegistry(async (r) => {
        token = (await r.author("acme", ["github.com/acme"])).token;
        assert.equal((await r.publish(token, [codecDefinition("2.0.1")])).status, 201);
        await r.get("/api/packages/github.com:acme:codec/installs", { method: "POST" });
        before = await (await fetch(r.url + record)).text();
        assert.ok(await writeBackup(r.database, file) > 0);
      }, { database: open() });
      await withRegistry(async (r) => {
        assert.equal(r.registry.adminToken, undefined, "it is not the first start");
        assert.equal(await (await fetch(r.url + record)).text(), before, "the same record with the same signature");
        const { installs } = await r.get<{ installs: { total: number } }>("/api/packages/github.com:acme:codec");
        assert.equal(installs.total, 1);
        // The same network on the same day is still known.
        await r.get("/api/packages/github.com:acme:codec/installs", { method: "POST" });
        const again = await r.get<{ installs: { total: number } }>("/api/packages/github.com:acme:codec");
        assert.equal(again.installs.total, 1);
        assert.equal((await r.publish(token, [codecDefinition("2.0.2")])).status, 201, "the token still works");
      }, { database: new SqliteDatabase(file) });
    } finally {
      for (const end of ["", "-wal", "-shm"]) await rm(file + end, { force: true });
    }
  },
);
