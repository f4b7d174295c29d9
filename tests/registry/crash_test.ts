/**
 * `kill -9` while releases are published, on both databases.
 *
 * Several publishers send releases; the process is killed after some acknowledgements, at a random moment, and started
 * again. Invariants: every acknowledged release has its bytes and a valid signature; any other is stored completely
 * or not at all; sending it again succeeds. WAFT_CRASH_ROUNDS sets the number of kills.
 */
import assert from "node:assert/strict";
import { createHash, randomBytes, randomInt } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { isSigned, keyIdOf, recordBytes, type ReleaseRecord } from "../../project/packages/release_record.ts";
import { segmentOfId } from "../../registry/names.ts";
import { PostgresDatabase } from "../../registry/store/postgres.ts";
import { SqliteDatabase } from "../../registry/store/sqlite.ts";
import { definition } from "../project/sample_plugins.ts";
import { App } from "./registry_process.ts";
import { contentDigest, realArchive } from "./test_registry.ts";

const ROUNDS = Number(process.env.WAFT_CRASH_ROUNDS ?? 3);
const PUBLISHERS = 4;

interface Release {
  readonly id: string;
  readonly version: string;
  readonly archive: Uint8Array<ArrayBuffer>;
  readonly digest: string;
}

function makeRelease(publisher: number, n: number): Release {
  const id = `crash.example/packages/p${publisher}`;
  const version = `1.0.${n}`;
  const archive = realArchive([definition(id, version)]);
  return { id, version, archive, digest: createHash("sha256").update(archive).digest("hex") };
}

/** Sends a release; its status, or undefined when the process died. */
async function send(url: string, token: string, { id, version, archive }: Release): Promise<number | undefined> {
  try {
    const answer = await fetch(`${url}/api/packages/${segmentOfId(id)}/versions/${version}`, {
      method: "PUT",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/gzip",
        "content-digest": contentDigest(archive),
      },
      body: archive,
    });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return undefined;
  }
}

/** Versions of a package that are listed, each checked to be whole. */
async function listed(url: string, id: string, keys: ReadonlyMap<string, string>): Promise<Map<string, string>> {
  const get = async <T>(path: string): Promise<T> => {
    const answer = await fetch(url + path);
    assert.equal(answer.status, 200, path);
    return await answer.json() as T;
  };
  const found = new Map<string, string>();
  const base = `/api/packages/${segmentOfId(id)}`;
  const list = await fetch(`${url}${base}/versions`);
  if (list.status === 404) return found;
  const { versions } = await list.json() as { versions: { version: string; artifact: { digest: string } }[] };
  const index = await get<{ releases: { version: string }[] }>(`/api/plugins/${segmentOfId(id)}/index`);
  assert.deepEqual(index.releases.map((r) => r.version), versions.map((v) => v.version));
  for (const { version, artifact } of versions) {
    const { record, signature } = await get<{ record: ReleaseRecord; signature: { keyId: string; value: string } }>(
      `${base}/versions/${version}`,
    );
    assert.ok(isSigned(recordBytes(record), signature.value, keys.get(signature.keyId)!), `${id} ${version} is signed`);
    const hex = artifact.digest.slice("sha256:".length);
    const blob = new Uint8Array(await (await fetch(`${url}/api/blobs/sha256/${hex}`)).arrayBuffer());
    assert.equal(createHash("sha256").update(blob).digest("hex"), hex, `${id} ${version} has its bytes`);
    found.set(version, hex);
  }
  return found;
}

async function keysOf(url: string): Promise<Map<string, string>> {
  const { keys } = await (await fetch(`${url}/api/keys`)).json() as { keys: { id: string; publicKey: string }[] };
  for (const { id, publicKey } of keys) assert.equal(keyIdOf(publicKey), id);
  return new Map(keys.map((k) => [k.id, k.publicKey]));
}

/** Kills and restarts a registry ROUNDS times; the number of acknowledged releases and of those that were cut off. */
async function crash(folder: string, databaseUrl: string): Promise<{ acknowledged: number; cutOff: number }> {
  const args = ["--port", "0", "--data", folder, "--rate-factor", "100000"];
  const acknowledged: Release[] = [];
  const sent: Release[][] = Array.from({ length: PUBLISHERS }, () => []);
  let cutOff = 0;
  let token = "";
  for (let round = 0;; round++) {
    const app = new App(args, { databaseUrl });
    try {
      const url = await app.saw(/^registry: (\S+)$/m);
      if (round === 0) {
        token = await app.saw(/^admin token, shown only this once: (\S+)$/m);
        const claim = await fetch(`${url}/api/prefixes`, {
          method: "POST",
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          body: JSON.stringify({ prefix: "crash.example", account: "admin" }),
        });
        assert.equal(claim.status, 201, await claim.text());
      }
      const keys = await keysOf(url);
      const there = await Promise.all(sent.map((_, p) => listed(url, makeRelease(p, 0).id, keys)));
      for (const { id, version, digest } of acknowledged) {
        assert.equal(there[Number(id.at(-1))].get(version), digest, `${id} ${version} was acknowledged`);
      }
      for (const [p, releases] of sent.entries()) {
        const known = new Map(releases.map((r) => [r.version, r.digest]));
        for (const [version, digest] of there[p]) assert.equal(known.get(version), digest, "was sent");
      }
      if (round === ROUNDS) return { acknowledged: acknowledged.length, cutOff };
      const before = acknowledged.length;
      const target = before + 1 + randomInt(6);
      await Promise.all(sent.map(async (releases, p) => {
        // First the interrupted publication: sent again, it succeeds.
        let next = releases.at(-1);
        if (next === undefined || acknowledged.includes(next)) releases.push(next = makeRelease(p, releases.length));
        for (let status: number | undefined = 0; status !== undefined;) {
          status = await send(url, token, next);
          if (status === undefined) {
            cutOff++;
            break;
          }
          assert.ok(status === 200 || status === 201, `${next.id} ${next.version}: ${status}`);
          acknowledged.push(next);
          if (acknowledged.length >= target) setTimeout(() => app.child.kill("SIGKILL"), randomInt(30));
          releases.push(next = makeRelease(p, releases.length));
        }
      }));
    } finally {
      app.child.kill("SIGKILL");
      await app.ended;
    }
  }
}

async function withFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "waft-crash-"));
  try {
    await test(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

Deno.test(`kill -9 in publishing, ${ROUNDS} times, on SQLite: nothing acknowledged is lost, nothing is half written`, () =>
  withFolder(async (folder) => {
    const { acknowledged, cutOff } = await crash(folder, "");
    assert.ok(acknowledged >= ROUNDS && cutOff >= 1, `${acknowledged} acknowledged, ${cutOff} cut off`);
    const database = new SqliteDatabase(join(folder, "registry.sqlite"));
    assert.equal((await database.all("PRAGMA integrity_check"))[0].integrity_check, "ok");
    assert.deepEqual(await database.all("PRAGMA foreign_key_check"), []);
    await database.close();
    if (process.env.WAFT_CRASH_ROUNDS !== undefined) console.log(`${acknowledged} acknowledged, ${cutOff} cut off`);
  }));

const postgres = process.env.DATABASE_URL;
Deno.test({
  name: `kill -9 in publishing, ${ROUNDS} times, on PostgreSQL${
    postgres === undefined ? " (ignored: DATABASE_URL is not set)" : ""
  }`,
  ignore: postgres === undefined,
  fn: () =>
    withFolder(async (folder) => {
      const schema = `waft_crash_${randomBytes(6).toString("hex")}`;
      const admin = new PostgresDatabase(postgres!, { connections: 1 });
      await admin.run(`CREATE SCHEMA ${schema}`);
      try {
        const { acknowledged, cutOff } = await crash(folder, `${postgres}?search_path=${schema}`);
        assert.ok(acknowledged >= ROUNDS && cutOff >= 1, `${acknowledged} acknowledged, ${cutOff} cut off`);
        if (process.env.WAFT_CRASH_ROUNDS !== undefined) console.log(`${acknowledged} acknowledged, ${cutOff} cut off`);
      } finally {
        await admin.run(`DROP SCHEMA ${schema} CASCADE`);
        await admin.close();
      }
    }),
});
