/**
 * Two processes of the registry on one PostgreSQL, with archives in object storage: what one does, the other one shows
 * at once, limits over all processes hold, and acknowledged requests survive kill -9. In: DATABASE_URL.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { segmentOfId } from "../../registry/names.ts";
import { PostgresDatabase } from "../../registry/store/postgres.ts";
import { definition } from "../project/sample_plugins.ts";
import { App } from "./registry_process.ts";
import { contentDigest, realArchive } from "./test_registry.ts";

const ID = "fleet.example/packages/kv";
const DATABASE_URL = process.env["DATABASE_URL"];

/** An object storage that checks nothing; object_store_test.ts tests its client. */
async function startStorage(): Promise<{ address: string; objects: Map<string, Uint8Array>; close(): void }> {
  const objects = new Map<string, Uint8Array>();
  const server = createServer((request, response) => {
    const parts: Uint8Array[] = [];
    request.on("data", (part: Uint8Array) => parts.push(part));
    request.on("end", () => {
      const key = request.url ?? "";
      if (request.method === "PUT") objects.set(key, new Uint8Array(Buffer.concat(parts)));
      const object = objects.get(key);
      response.writeHead(object === undefined ? 404 : 200).end(request.method === "PUT" ? undefined : object);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/archives`, objects, close };
}

/** A client of the processes. */
class Client {
  token = "";

  async send(url: string, path: string, method = "GET", body?: unknown): Promise<{ status: number; body: unknown }> {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${this.token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  }

  /** Publishes a version; the status, or undefined when the process has died. */
  async publish(url: string, version: string): Promise<number | undefined> {
    const archive = realArchive([definition(ID, version)]);
    try {
      const response = await fetch(`${url}/api/packages/${segmentOfId(ID)}/versions/${version}`, {
        method: "PUT",
        headers: {
          authorization: `Bearer ${this.token}`,
          "content-type": "application/gzip",
          "content-digest": contentDigest(archive),
        },
        body: archive,
      });
      await response.body?.cancel();
      return response.status;
    } catch {
      return undefined;
    }
  }

  /** The versions in the index of the plugin, and whether each is yanked. */
  async index(url: string): Promise<[string, boolean][]> {
    const { body } = await this.send(url, `/api/plugins/${segmentOfId(ID)}/index`);
    const { releases } = body as { releases: { version: string; yanked?: unknown }[] };
    return releases.map(({ version, yanked }) => [version, yanked !== undefined && yanked !== null]);
  }
}

Deno.test({
  name: `two registries on one PostgreSQL agree at every moment, and lose nothing to kill -9${
    DATABASE_URL === undefined ? " (ignored: DATABASE_URL is not set)" : ""
  }`,
  ignore: DATABASE_URL === undefined,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), "waft-fleet-"));
  const schema = `waft_fleet_${randomBytes(6).toString("hex")}`;
  const admin = new PostgresDatabase(DATABASE_URL ?? "", { connections: 1 });
  await admin.run(`CREATE SCHEMA ${schema}`);
  const storage = await startStorage();
  const apps: App[] = [];
  const start = () => {
    const app = new App(["--port", "0", "--data", folder, "--rate-factor", "1000"], {
      databaseUrl: `${DATABASE_URL}?search_path=${schema}`,
      env: { WAFT_REGISTRY_ARCHIVES: storage.address, AWS_ACCESS_KEY_ID: "ada", AWS_SECRET_ACCESS_KEY: "engine" },
    });
    apps.push(app);
    return app;
  };
  const listening = (app: App) => app.saw(/^registry: (\S+)$/m);
  try {
    const client = new Client();
    // Both migrate the empty database, and one of them makes the only administrator.
    const [first, second] = [start(), start()];
    const [a, b] = await Promise.all([listening(first), listening(second)]);
    const tokens = () => [...`${first.text}${second.text}`.matchAll(/admin token, shown only this once: (\S+)/g)];
    while (tokens().length === 0) await new Promise((resolve) => setTimeout(resolve, 25));
    assert.equal(tokens().length, 1);
    client.token = tokens()[0][1];
    const claim = { prefix: "fleet.example", account: "admin" };
    assert.equal((await client.send(a, "/api/prefixes", "POST", claim)).status, 201);
    // Each sees what the other one has published, also behind its kept lists.
    for (const [k, url] of [a, b, a, b].entries()) {
      assert.equal(await client.publish(url, `1.0.${k}`), 201);
      const versions = await Promise.all([a, b].map((other) => client.index(other)));
      assert.deepEqual(versions[0], versions[1]);
      assert.equal(versions[0].length, k + 1);
    }
    assert.equal(await client.publish(b, "1.0.0"), 200, "the same release again");
    const yank = { severity: "broken", reason: "a test" };
    const path = `/api/packages/${segmentOfId(ID)}/versions/1.0.1/yank`;
    const yanked = await client.send(b, path, "POST", yank);
    assert.ok(yanked.status < 300, JSON.stringify(yanked));
    for (const url of [a, b]) assert.deepEqual((await client.index(url)).find(([v]) => v === "1.0.1"), ["1.0.1", true]);
    const [changesA, changesB] = await Promise.all([a, b].map((url) => client.send(url, "/api/changes")));
    assert.deepEqual(changesA.body, changesB.body);
    // One is killed while releases arrive at both.
    const acknowledged: string[] = [];
    const publishAll = async (url: string, minor: number) => {
      for (let k = 0; k < 6; k++) {
        const status = await client.publish(url, `1.${minor}.${k}`);
        if (status === undefined) return;
        assert.equal(status, 201);
        acknowledged.push(`1.${minor}.${k}`);
        if (minor === 1 && k === 2) first.child.kill("SIGKILL");
      }
    };
    await Promise.all([publishAll(a, 1), publishAll(b, 2)]);
    await first.ended;
    assert.ok(acknowledged.filter((version) => version.startsWith("1.2.")).length === 6, `${acknowledged}`);
    const third = await listening(start());
    const [there, everywhere] = await Promise.all([client.index(b), client.index(third)]);
    assert.deepEqual(there, everywhere);
    for (const version of acknowledged) assert.ok(there.some(([known]) => known === version), version);
    const { body } = await client.send(third, `/api/packages/${segmentOfId(ID)}/versions`);
    for (const { artifact } of (body as { versions: { artifact: { digest: string } }[] }).versions) {
      const hex = artifact.digest.slice("sha256:".length);
      const bytes = new Uint8Array(await (await fetch(`${third}/api/blobs/sha256/${hex}`)).arrayBuffer());
      assert.deepEqual(bytes, storage.objects.get(`/archives/sha256/${hex}`));
    }
  } finally {
    for (const app of apps) app.child.kill("SIGKILL");
    await Promise.all(apps.map((app) => app.ended));
    storage.close();
    await admin.run(`DROP SCHEMA ${schema} CASCADE`);
    await admin.close();
    await rm(folder, { recursive: true, force: true });
  }
});
