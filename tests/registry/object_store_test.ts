/**
 * Archives in object storage. In: a small server of S3's API on the loopback interface that checks signatures and
 * digests, or the real one of WAFT_TEST_S3, the address of an empty bucket, with the credentials of the environment.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { objectStore } from "../../registry/store/object_store.ts";
import { definition } from "../project/sample_plugins.ts";
import { realArchive, withRegistry } from "./test_registry.ts";

const CREDENTIALS = { AWS_ACCESS_KEY_ID: "ada", AWS_SECRET_ACCESS_KEY: "engine", AWS_REGION: "eu-north-1" };
const ADDRESS = "WAFT_REGISTRY_ARCHIVES";

const sha256 = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex");

/** A server of one bucket. */
interface Bucket {
  readonly address: string;
  readonly objects: Map<string, Uint8Array>;
  readonly requests: string[];
  /** Statuses for the next requests, in place of their answers. */
  readonly failures: number[];
}

/** True if a request has the signature of S3, version 4, by the key of CREDENTIALS. */
function isSigned({ method, url = "", headers }: IncomingMessage): boolean {
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=ada\/(\d{8})\/([a-z0-9-]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;
  const [, day = "", region = "", signed = "", signature] = pattern.exec(headers.authorization ?? "") ?? [];
  const fields = signed.split(";").map((name) => `${name}:${String(headers[name]).trim()}\n`).join("");
  const digest = String(headers["x-amz-content-sha256"]);
  const canonical = [method, url, "", fields, signed, digest].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, sha256(canonical)].join("\n");
  const mac = (key: string | Uint8Array, value: string) => createHmac("sha256", key).update(value).digest();
  const key = mac(mac(mac(mac("AWS4engine", day), region), "s3"), "aws4_request");
  return region === CREDENTIALS.AWS_REGION && mac(key, text).toString("hex") === signature;
}

async function withBucket(test: (bucket: Bucket) => Promise<void>): Promise<void> {
  const bucket: Bucket = { address: "", objects: new Map(), requests: [], failures: [] };
  const server = createServer((request, response) => {
    const parts: Uint8Array[] = [];
    request.on("data", (part: Uint8Array) => parts.push(part));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      bucket.requests.push(`${method} ${url}`);
      const failure = bucket.failures.shift();
      const body = new Uint8Array(Buffer.concat(parts));
      const end = (status: number, bytes: Uint8Array = new Uint8Array()) => response.writeHead(status).end(bytes);
      if (failure !== undefined) return void end(failure);
      if (!isSigned(request)) return void end(403);
      if (method === "PUT") {
        if (sha256(body) !== headers["x-amz-content-sha256"]) return void end(400);
        bucket.objects.set(url, body);
        return void end(200);
      }
      const object = bucket.objects.get(url);
      const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "") ?? [];
      if (object === undefined) end(404);
      else if (from === undefined) end(200, object);
      else end(206, object.subarray(Number(from), Number(to) + 1));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    await test({ ...bucket, address: `http://127.0.0.1:${port}/archives/` });
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

function storeAt(address: string, more: Record<string, string> = {}) {
  return objectStore({ ...CREDENTIALS, [ADDRESS]: address, ...more }) ?? assert.fail();
}

Deno.test("a registry publishes to object storage and serves from it, whole archives and parts", () =>
  withBucket((bucket) =>
    withRegistry(async (r) => {
      const { token } = await r.author("acme", ["github.com/acme"]);
      bucket.failures.push(500, 503);
      const archive = realArchive([definition("github.com/acme/kv", "1.0.0")]);
      const { response } = await r.api(...r.publishing("github.com/acme/kv", "1.0.0", archive, token));
      assert.equal(response.status, 201, "failures that pass are repeated");
      const hex = sha256(archive);
      assert.deepEqual([...bucket.objects.keys()], [`/archives/sha256/${hex}`]);
      const [row] = await r.database.all("SELECT size, bytes FROM blobs WHERE digest = ?", `sha256:${hex}`);
      assert.deepEqual([row["size"], (row["bytes"] as Uint8Array).length], [archive.length, 0]);
      const address = `${r.url}/api/blobs/sha256/${hex}`;
      const whole = await fetch(address);
      assert.deepEqual(new Uint8Array(await whole.arrayBuffer()), archive);
      const part = await fetch(address, { headers: { range: "bytes=10-19" } });
      assert.equal(part.status, 206);
      assert.deepEqual(new Uint8Array(await part.arrayBuffer()), archive.subarray(10, 20));
      const count = bucket.requests.length;
      assert.equal((await fetch(address, { method: "HEAD" })).status, 200);
      assert.equal(bucket.requests.length, count, "a request for the head asks the storage nothing");
      // Damage in the storage reaches no client.
      bucket.objects.set(`/archives/sha256/${hex}`, new Uint8Array(archive.length));
      const damaged = await fetch(address);
      assert.equal(damaged.status, 503);
      await damaged.body?.cancel();
    }, { objects: storeAt(bucket.address) })
  ));

Deno.test("a release whose archive the storage does not take is not published", () =>
  withBucket((bucket) =>
    withRegistry(async (r) => {
      const { token } = await r.author("acme", ["github.com/acme"]);
      const archive = realArchive([definition("github.com/acme/kv", "1.0.0")]);
      const publish = () => r.api(...r.publishing("github.com/acme/kv", "1.0.0", archive, token));
      bucket.failures.push(403);
      assert.equal((await publish()).response.status, 503);
      assert.deepEqual(await r.database.all("SELECT version FROM releases"), []);
      assert.equal((await publish()).response.status, 201);
    }, { objects: storeAt(bucket.address) })
  ));

Deno.test("an archive that is in the database stays readable with object storage, and not the other way round", () =>
  withBucket((bucket) =>
    withRegistry(async (r) => {
      const { token } = await r.author("acme", ["github.com/acme"]);
      const archive = realArchive([definition("github.com/acme/kv", "1.0.0")]);
      await r.api(...r.publishing("github.com/acme/kv", "1.0.0", archive, token));
      const services = { ...r.registry.services, objects: storeAt(bucket.address) };
      assert.notEqual(services.objects, undefined);
      const address = `${r.url}/api/blobs/sha256/${sha256(archive)}`;
      assert.equal((await fetch(address)).status, 200);
      await r.database.run("UPDATE blobs SET bytes = ?", new Uint8Array());
      assert.equal((await fetch(address)).status, 503);
    })
  ));

Deno.test("the address and the credentials of the storage are checked when the registry starts", async () => {
  assert.equal(objectStore({}), undefined);
  assert.equal(objectStore({ [ADDRESS]: "" }), undefined);
  for (
    const address of ["bucket", "http://s3.example.com/b", "ftp://x/b", "https://u:p@s3.example.com/b", "https://x/?a"]
  ) {
    assert.throws(() => storeAt(address), /WAFT_REGISTRY_ARCHIVES is the address of a bucket/, address);
  }
  assert.throws(
    () => storeAt("https://s3.example.com/b", { AWS_SECRET_ACCESS_KEY: "" }),
    /needs .*AWS_SECRET_ACCESS_KEY/,
  );
  await withBucket(async ({ address }) => {
    const digest = `sha256:${sha256("x")}`;
    const bytes = new TextEncoder().encode("x");
    const wrong = storeAt(address, { AWS_SECRET_ACCESS_KEY: "wrong" });
    await assert.rejects(wrong.put(digest, bytes), /status 403/);
    await assert.rejects(storeAt(address).put(`sha256:${sha256("y")}`, bytes), /status 400/);
    await assert.rejects(storeAt(address).read(digest, 0, 1, 1), /status 404/);
    await assert.rejects(storeAt("http://127.0.0.1:1/b").read(digest, 0, 1, 1), /cannot be reached/);
  });
});

const REAL = process.env["WAFT_TEST_S3"];

Deno.test({
  name: `a real object storage${REAL === undefined ? " (ignored: WAFT_TEST_S3 is not set)" : ""}`,
  ignore: REAL === undefined,
}, async () => {
  const store = objectStore({ ...process.env, [ADDRESS]: REAL }) ?? assert.fail();
  const bytes = crypto.getRandomValues(new Uint8Array(60_000));
  const digest = `sha256:${sha256(bytes)}`;
  for (let k = 0; k < 2; k++) await store.put(digest, bytes);
  assert.deepEqual(await store.read(digest, 0, bytes.length, bytes.length), bytes);
  assert.deepEqual(await store.read(digest, 10, 20, bytes.length), bytes.slice(10, 30));
});
