/**
 * The API on loopback: payloads, filters, pages, caching, publishing, yanking, counting, tokens. Every answer is
 * checked against the OpenAPI description by the harness.
 */
import assert from "node:assert/strict";
import { type IncomingHttpHeaders, request } from "node:http";
import { gunzipSync } from "node:zlib";
import { createHash } from "node:crypto";
import { writeArchive } from "../../project/packages/archive.ts";
import { isSigned, recordBytes, type ReleaseRecord } from "../../project/packages/release_record.ts";
import type { PackageSummary } from "../../registry/store/packages.ts";
import { CODEC, codecDefinition, definition, KV, kvDefinition } from "../project/sample_plugins.ts";
import { eachDatabase } from "./temp_database.ts";
import { realArchive, realFiles, type TestRegistry, withRegistry } from "./test_registry.ts";

interface Page {
  readonly packages: readonly PackageSummary[];
  readonly total: number;
  readonly nextCursor: string | null;
}

const DAY = 86_400_000;

async function acme(r: TestRegistry): Promise<string> {
  return (await r.author("acme", ["github.com/acme"])).token;
}

/** An answer as it came over the wire. */
interface Raw {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Uint8Array;
}

Deno.test("the OpenAPI document is served and names its own schemas", () =>
  withRegistry(async (r) => {
    const document = await r.get<{ openapi: string; paths: object }>("/api/openapi.json");
    assert.equal(document.openapi, "3.1.0");
    const text = JSON.stringify(document);
    const { components } = document as unknown as { components: { schemas: object } };
    for (const [, name] of text.matchAll(/#\/components\/schemas\/([A-Za-z]+)/g)) {
      assert.ok(Object.hasOwn(components.schemas, name!), name);
    }
  }));

eachDatabase("publish, read, yank, count: the whole life of a package", async (_database, open) => {
  await withRegistry(async (r) => {
    const token = await acme(r);
    assert.equal((await r.publish(token, [codecDefinition()])).status, 201);
    assert.equal((await r.publish(token, [kvDefinition()], { "README.md": "# Hello *world*" })).status, 201);
    assert.equal((await r.publish(token, [kvDefinition()], { "README.md": "# Hello *world*" })).status, 200);

    const page = await r.get<Page>("/api/packages?sort=name");
    assert.deepEqual(page.packages.map((p) => p.name), [CODEC, KV]);
    const detail = await r.get<{ readme: { html: string; markdown: string }; plugins: unknown[]; versions: number }>(
      "/api/packages/github.com%2Facme%2Fkv",
    );
    assert.equal(detail.readme.markdown, "# Hello *world*");
    assert.equal(detail.readme.html, "<h3>Hello <em>world</em></h3>\n");
    assert.equal(detail.versions, 1);
    const release = await r.get<{ record: ReleaseRecord; signature: { keyId: string; value: string } }>(
      "/api/packages/github.com:acme:kv/versions/1.2.3",
    );
    const { keys } = await r.get<{ keys: { id: string; publicKey: string }[] }>("/api/keys");
    const key = keys.find((k) => k.id === release.signature.keyId)!;
    assert.equal(isSigned(recordBytes(release.record), release.signature.value, key.publicKey), true);
    const forged = { ...release.record, publisher: "github.com/evil" };
    assert.equal(isSigned(recordBytes(forged), release.signature.value, key.publicKey), false);

    const blob = await r.get<Uint8Array>(`/api/blobs/sha256/${release.record.artifact.digest.slice(7)}`);
    assert.equal(`sha256:${createHash("sha256").update(blob).digest("hex")}`, release.record.artifact.digest);

    const yanked = await r.get<{ yanked: { severity: string } }>(
      "/api/packages/github.com:acme:codec/versions/2.0.1/yank",
      r.json("POST", { reason: "Broken on empty input", severity: "broken" }, token),
    );
    assert.equal(yanked.yanked.severity, "broken");
    assert.deepEqual((await r.get<Page>("/api/packages")).packages.map((p) => p.name), [KV]);
    const again = await r.get<{ yanked: unknown }>("/api/packages/github.com:acme:codec/versions/2.0.1/yank", {
      method: "DELETE",
      headers: { authorization: `Bearer ${token}` },
    });
    assert.equal(again.yanked, null);

    const installs = "/api/packages/github.com%2Facme%2Fkv/installs";
    assert.deepEqual(await r.get(installs, r.json("POST", { version: "1.2.3" })), { installs: { total: 1, week: 1 } });
    assert.deepEqual(await r.get(installs, { method: "POST" }), { installs: { total: 1, week: 1 } });
    r.clock.at += DAY;
    assert.deepEqual(await r.get(installs, { method: "POST" }), { installs: { total: 2, week: 2 } });
    const series = await r.get<{ days: { count: number }[] }>(`${installs}?days=3`);
    assert.deepEqual(series.days.map((d) => d.count), [0, 1, 1]);
    assert.equal((await r.problem(installs, r.json("POST", { version: "9.9.9" }))).code, "version.unknown");
    assert.equal((await r.problem("/api/packages/github.com:acme:none/installs", { method: "POST" })).status, 404);
  }, { database: open() });
});

Deno.test("the list: filters, pages and links", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    for (let i = 0; i < 7; i++) {
      const authorities = i % 2 === 0 ? [{ name: "random", mode: "optional", reason: "Salts." } as const] : [];
      assert.equal(
        (await r.publish(token, [definition(`github.com/acme/p${i}`, "1.0.0", { authorities })])).status,
        201,
      );
    }
    const seen: string[] = [];
    let path = "/api/packages?q=p&authority=random&limit=3";
    for (let n = 0; n < 4; n++) {
      const { response, body } = await r.api(path);
      const page = body as Page;
      assert.equal(page.total, 4);
      seen.push(...page.packages.map((p) => p.name));
      if (page.nextCursor === null) {
        assert.equal(response.headers.get("link"), null);
        break;
      }
      const link = /^<([^>]+)>; rel="next"$/.exec(response.headers.get("link") ?? "")![1];
      assert.equal(new URL(link).searchParams.get("cursor"), page.nextCursor);
      path = link.slice(r.url.length);
    }
    assert.deepEqual(seen, ["p0", "p2", "p4", "p6"].map((n) => `github.com/acme/${n}`));
    for (
      const bad of ["limit=0", "limit=201", "limit=1e2", "sort=best", "q=" + "x".repeat(101), "colour=red", "q=a&q=b"]
    ) {
      assert.equal((await r.problem(`/api/packages?${bad}`)).code, "request.query", bad);
    }
  }));

interface ChangeList {
  readonly changes: readonly { change: string; name: string; version: string; yanked: { reason: string } | null }[];
  readonly nextCursor: string | null;
}

eachDatabase(
  "text with NUL characters, which not every database can hold, is refused",
  (_database, open) =>
    withRegistry(async (r) => {
      const token = await acme(r);
      const definition = codecDefinition();
      assert.equal((await r.publish(token, [definition])).status, 201);
      const files = realFiles([{ ...definition, version: "2.0.2" }]);
      const manifest = new TextDecoder().decode(files.get("waft.json"));
      files.set("waft.json", new TextEncoder().encode(manifest.replace('"description":"', "$&\\u0000")));
      const archive = new Uint8Array(writeArchive(files));
      const release = "/api/packages/github.com:acme:codec/versions/2.0.1";
      const cases: readonly (readonly [string, RequestInit, string])[] = [
        [...r.publishing(CODEC, "2.0.2", archive, token), "publish.invalid"],
        ["/api/packages?q=%00", {}, "request.query"],
        ["/api/packages?tag=a%00", {}, "request.query"],
        ["/api/tokens", r.json("POST", { label: "a\0", scopes: ["publish"] }, token), "request.json"],
        [`${release}/yank`, r.json("POST", { reason: "\0", severity: "other" }, token), "request.json"],
        ["/api/tokens/%00", { method: "DELETE", headers: { authorization: `Bearer ${token}` } }, "token.unknown"],
      ];
      for (const [path, init, code] of cases) assert.equal((await r.problem(path, init)).code, code, path);
      const page = await fetch(`${r.url}/?q=%00`, { headers: { accept: "text/html" } });
      assert.deepEqual([page.status, (await page.text()).includes("NUL")], [400, true]);
    }, { database: open() }),
);

eachDatabase(
  "release notes: in answers, on pages and in the feed, as text",
  (_database, open) =>
    withRegistry(async (r) => {
      const token = await acme(r);
      const hostile = '# 1.0.0\n\n- <b>bold</b> & \u001b[2J\u202e\n- "quoted" ]]>';
      const notes = { "register/notes.md": `\n${hostile}\n\n` };
      assert.equal((await r.publish(token, [definition("github.com/acme/a", "1.0.0")], notes)).status, 201);
      r.clock.at += 1000;
      assert.equal((await r.publish(token, [definition("github.com/acme/b", "1.0.0")])).status, 201);
      const path = (name: string) => `/api/packages/github.com:acme:${name}`;
      const notesAt = async (address: string) => (await r.get<{ notes: string | null }>(address)).notes;
      assert.deepEqual(
        [await notesAt(`${path("a")}/versions/1.0.0`), await notesAt(path("a")), await notesAt(path("b"))],
        [hostile, hostile, null],
      );
      const { changes } = await r.get<{ changes: { notes: string | null }[] }>("/api/changes");
      assert.deepEqual(changes.map((change) => change.notes), [null, hostile]);
      const shown = "- &lt;b&gt;bold&lt;/b&gt; &amp; \\u{1b}[2J\\u{202e}\n- &quot;quoted&quot; ]]&gt;";
      for (const page of ["/plugins/github.com:acme:a", "/changes", "/changes.atom"]) {
        const text = await (await fetch(r.url + page, { headers: { accept: "text/html" } })).text();
        assert.ok(text.includes(shown), page);
        assert.equal(text.includes("<b>bold"), false, page);
      }
      const none = await (await fetch(`${r.url}/plugins/github.com:acme:b`, { headers: { accept: "text/html" } }))
        .text();
      assert.equal(none.includes("Release notes"), false);
      for (const bytes of [new Uint8Array(65_537).fill(97), Uint8Array.of(0xff), new TextEncoder().encode("a\0")]) {
        const refused = await r.publish(token, [definition("github.com/acme/c", "1.0.0")], {
          "register/notes.md": bytes,
        });
        assert.equal(refused.status, 422);
        assert.match(JSON.stringify(refused.body), /register\/notes\.md (?:has|is not|holds)/);
      }
      const long = `${"x".repeat(5000)}`;
      r.clock.at += 1000;
      assert.equal(
        (await r.publish(token, [definition("github.com/acme/d", "1.0.0")], { "register/notes.md": long })).status,
        201,
      );
      const newest = (await r.get<{ changes: { notes: string | null }[] }>("/api/changes?limit=1")).changes[0];
      assert.equal(newest.notes?.length, 2000, "a page of changes stays small");
      assert.equal((await notesAt(path("d")))?.length, 5000);
    }, { database: open() }),
);

eachDatabase("changes: releases and yanks, newest first, page by page", (_database, open) =>
  withRegistry(async (r) => {
    const token = await acme(r);
    const publish = async (name: string, version: string): Promise<void> => {
      r.clock.at += 1000;
      assert.equal((await r.publish(token, [definition(`github.com/acme/${name}`, version)])).status, 201);
    };
    assert.deepEqual(await r.get("/api/changes"), { changes: [], nextCursor: null });
    await publish("a", "1.0.0");
    await publish("b", "1.0.0");
    const yank = "/api/packages/github.com:acme:a/versions/1.0.0/yank";
    await r.get(yank, r.json("POST", { reason: "eats <keys>", severity: "broken" }, token));
    await publish("a", "1.0.1");
    const shown = async (): Promise<string[]> => {
      const lines: string[] = [];
      for (let path = "/api/changes?limit=2"; path !== "";) {
        const { response, body } = await r.api(path);
        const page = body as ChangeList;
        lines.push(...page.changes.map((c) =>
          `${c.change} ${c.name.slice(16)} ${c.version}${c.yanked === null ? "" : ` (${c.yanked.reason})`}`
        ));
        const next = /^<([^>]+)>; rel="next"$/.exec(response.headers.get("link") ?? "")?.[1];
        assert.equal(next === undefined, page.nextCursor === null);
        path = next?.slice(r.url.length) ?? "";
      }
      return lines;
    };
    const all = ["published a 1.0.1", "yanked a 1.0.0 (eats <keys>)", "published b 1.0.0"];
    assert.deepEqual(await shown(), [...all, "published a 1.0.0 (eats <keys>)"]);

    // A change between two pages neither repeats nor hides another.
    const { nextCursor } = await r.get<ChangeList>("/api/changes?limit=1");
    await publish("c", "1.0.0");
    const { changes } = await r.get<ChangeList>(`/api/changes?limit=1&cursor=${encodeURIComponent(nextCursor!)}`);
    assert.deepEqual(
      changes.map((c) =>
        `${c.change} ${c.version}`
      ),
      ["yanked 1.0.0"],
    );

    // A yank that was taken back and a package that is held are not listed.
    await r.get(yank, { method: "DELETE", headers: { authorization: `Bearer ${token}` } });
    await r.database.write((q) => q.run("UPDATE packages SET held = 1 WHERE id = ?", "github.com/acme/b"));
    assert.deepEqual(await shown(), ["published c 1.0.0", "published a 1.0.1", "published a 1.0.0"]);

    for (const bad of ["limit=0", "limit=201", "sort=name", "limit=1&limit=2"]) {
      assert.equal((await r.problem(`/api/changes?${bad}`)).code, "request.query", bad);
    }
    const other = (await r.get<Page>("/api/packages?limit=1")).nextCursor!;
    assert.equal((await r.problem(`/api/changes?cursor=${encodeURIComponent(other)}`)).code, "request.cursor");
  }, { database: open() }));

Deno.test("strong ETags answer 304, and change when the answer does", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    await r.publish(token, [codecDefinition("2.0.0")]);
    for (
      const path of [
        "/api/packages",
        "/api/packages/github.com:acme:codec",
        "/api/plugins/github.com:acme:codec/index",
        "/api/packages/github.com:acme:codec/versions",
      ]
    ) {
      const first = await r.api(path);
      const etag = first.response.headers.get("etag")!;
      assert.match(etag, /^"[A-Za-z0-9_-]{43}(?:\.gz)?"$/);
      assert.equal(first.response.headers.get("cache-control"), "public, max-age=60, stale-while-revalidate=600");
      const same = await r.api(path, { headers: { "if-none-match": `"other", ${etag}` } });
      assert.equal(same.response.status, 304);
      assert.equal((same.body as Uint8Array).length, 0);
      const head = await r.api(path, { method: "HEAD" });
      assert.equal(head.response.headers.get("etag"), etag);
    }
    const path = "/api/plugins/github.com:acme:codec/index";
    const before = (await r.api(path)).response.headers.get("etag")!;
    await r.publish(token, [codecDefinition("2.0.1")]);
    assert.equal((await r.api(path, { headers: { "if-none-match": before } })).response.status, 200);
    const release = (await r.api("/api/packages/github.com:acme:codec/versions/2.0.1")).response;
    assert.equal(release.headers.get("cache-control"), "public, max-age=31536000, immutable");
  }));

Deno.test("text is compressed for those who take it, under a tag of its own; secrets and archives are not", () =>
  withRegistry(async (r) => {
    const { token } = await r.author("acme", ["github.com/acme"]);
    await r.publish(token, [codecDefinition()]);
    // Not fetch: it decompresses and hides that.
    const get = (path: string, headers: Record<string, string>, method = "GET", body = ""): Promise<Raw> =>
      new Promise((resolve, reject) => {
        const sent = request(r.url + path, { headers, method, agent: false }, (answer) => {
          const parts: Uint8Array[] = [];
          answer.on("data", (part) => parts.push(part));
          answer.on(
            "end",
            () => resolve({ status: answer.statusCode!, headers: answer.headers, bytes: Buffer.concat(parts) }),
          );
        });
        sent.on("error", reject);
        sent.end(body);
      });
    const path = "/api/openapi.json";
    const plain = await get(path, {});
    const packed = await get(path, { "accept-encoding": "br, gzip;q=0.5" });
    assert.equal(plain.headers["content-encoding"], undefined);
    assert.equal(packed.headers["content-encoding"], "gzip");
    assert.ok(packed.bytes.length < plain.bytes.length / 3);
    assert.ok(gunzipSync(packed.bytes).equals(plain.bytes));
    assert.deepEqual([plain.headers.vary, packed.headers.vary], ["accept-encoding", "accept-encoding"]);
    assert.notEqual(packed.headers.etag, plain.headers.etag);
    for (const { headers } of [plain, packed]) {
      const again = await get(path, { "if-none-match": headers.etag!, "accept-encoding": "gzip" });
      assert.deepEqual([again.status, again.headers.etag, again.bytes.length], [304, headers.etag, 0]);
    }
    for (const refused of ["", "br", "gzip;q=0", "identity"]) {
      assert.equal((await get(path, { "accept-encoding": refused })).headers["content-encoding"], undefined, refused);
    }
    const head = await get(path, { "accept-encoding": "gzip" }, "HEAD");
    assert.deepEqual([head.status, head.bytes.length], [200, 0]);
    const { artifact } = (await r.get<{ versions: { artifact: { digest: string } }[] }>(
      "/api/packages/github.com:acme:codec/versions",
    )).versions[0];
    const blob = await get(`/api/blobs/sha256/${artifact.digest.slice(7)}`, { "accept-encoding": "gzip" });
    assert.equal(blob.headers["content-encoding"], undefined);
    const authorization = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const secret = JSON.stringify({ label: "x".repeat(100), scopes: ["publish"], prefix: "github.com/acme" });
    const minted = await get("/api/tokens", { ...authorization, "accept-encoding": "gzip" }, "POST", secret);
    assert.deepEqual([minted.status, minted.headers["content-encoding"]], [201, undefined]);
  }));

Deno.test("archives are sent in ranges", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    await r.publish(token, [codecDefinition()]);
    const archive = realArchive([codecDefinition()]);
    const hex = createHash("sha256").update(archive).digest("hex");
    const path = `/api/blobs/sha256/${hex}`;
    const part = async (range: string): Promise<[number, string | null, Uint8Array]> => {
      const { response, body } = await r.api(path, { headers: { range } });
      return [response.status, response.headers.get("content-range"), body as Uint8Array];
    };
    const size = archive.length;
    assert.deepEqual(await part("bytes=0-9"), [206, `bytes 0-9/${size}`, archive.slice(0, 10)]);
    assert.deepEqual(await part("bytes=10-"), [206, `bytes 10-${size - 1}/${size}`, archive.slice(10)]);
    assert.deepEqual(await part("bytes=-5"), [206, `bytes ${size - 5}-${size - 1}/${size}`, archive.slice(-5)]);
    assert.deepEqual((await part("bytes=0-1,4-5"))[0], 200);
    for (const [range, status, length] of [[undefined, 200, size], ["bytes=0-9", 206, 10]] as const) {
      const head = await fetch(r.url + path, { method: "HEAD", headers: range === undefined ? {} : { range } });
      assert.deepEqual([head.status, head.headers.get("content-length")], [status, String(length)]);
      assert.equal((await head.arrayBuffer()).byteLength, 0);
    }
    assert.equal((await r.problem(path, { headers: { range: `bytes=${size}-` } })).code, "range.unsatisfiable");
    assert.equal((await r.api(path, { headers: { "if-none-match": `"${hex}"` } })).response.status, 304);
    assert.equal((await r.problem(`/api/blobs/sha256/${"0".repeat(64)}`)).code, "blob.unknown");
    assert.equal((await r.problem(`/api/blobs/sha256/${"Z".repeat(64)}`)).code, "request.name");
  }));

Deno.test("indexes come one by one and in batches", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    await r.publish(token, [codecDefinition()]);
    await r.publish(token, [kvDefinition()]);
    const batch = await r.get<{ indexes: ({ id: string } | null)[] }>(
      "/api/plugins/index",
      r.json("POST", { ids: [KV, "github.com/acme/none", CODEC] }),
    );
    assert.deepEqual(batch.indexes.map((i) => i?.id), [KV, undefined, CODEC]);
    const providers = await r.get<{ providers: unknown[] }>(
      "/api/contracts/github.com:acme:contracts:codec@1/providers",
    );
    assert.deepEqual(providers.providers, [{ id: CODEC, package: CODEC, version: "2.0.1" }]);
    for (const ids of [[], "x", [KV, KV], Array.from({ length: 65 }, (_, i) => `a.b/c${i}`), [1]]) {
      assert.equal((await r.problem("/api/plugins/index", r.json("POST", { ids }))).code, "request.json");
    }
    assert.equal((await r.problem("/api/contracts/github.com:acme:kv/providers")).code, "request.name");
    assert.equal((await r.problem("/api/contracts/github.com:acme:kv@01/providers")).code, "request.name");
  }));

Deno.test("requirements of a release must exist", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    const missing = await r.publish(token, [kvDefinition()]);
    assert.equal(missing.status, 422);
    assert.match(JSON.stringify(missing.body), /requires github.com\/acme\/codec \^2.0.0: the plugin does not exist/);
    await r.publish(token, [codecDefinition("3.0.0")]);
    const conflict = await r.publish(token, [kvDefinition()]);
    assert.equal((conflict.body as { code: string }).code, "publish.graph");
    await r.publish(token, [codecDefinition("2.5.0")]);
    assert.equal((await r.publish(token, [kvDefinition()])).status, 201);
  }));

Deno.test("tokens: their owners, scopes and expiry", () =>
  withRegistry(async (r) => {
    const { token, tokenId } = await r.author("acme", ["github.com/acme"], { days: 1 });
    const as = (secret: string): RequestInit => ({ headers: { authorization: `Bearer ${secret}` } });
    const account = await r.get<{ name: string; prefixes: unknown }>("/api/account", as(token));
    assert.equal(account.name, "acme");
    assert.deepEqual(account.prefixes, [{ prefix: "github.com/acme", proof: "admin" }]);
    const narrow = await r.get<{ secret: string; token: { id: string; scopes: string[] } }>(
      "/api/tokens?days=7",
      r.json("POST", { label: "ci", scopes: ["publish"], prefix: "github.com/acme/kv" }, token),
    );
    assert.deepEqual(narrow.token.scopes, ["publish"]);
    assert.equal((await r.problem("/api/tokens", as(narrow.secret))).code, "auth.scope");
    const grow = r.json("POST", { label: "more", scopes: ["admin"] }, token);
    assert.equal((await r.problem("/api/tokens", grow)).code, "auth.scope");
    const outside = await r.publish(narrow.secret, [codecDefinition()]);
    assert.equal((outside.body as { code: string }).code, "auth.scope");
    assert.equal((await r.publish(narrow.secret, [definition(KV, "0.1.0")])).status, 201);
    const listed = await r.get<{ tokens: { id: string }[] }>("/api/tokens", as(token));
    assert.ok(listed.tokens.some((t) => t.id === tokenId) && !JSON.stringify(listed).includes(token));
    assert.equal((await r.problem("/api/account")).code, "auth.missing");
    assert.equal((await r.problem("/api/account", as("waft_x"))).code, "auth.invalid");
    r.clock.at += DAY;
    assert.equal((await r.problem("/api/account", as(token))).code, "auth.invalid");
    assert.equal((await r.problem("/api/account", as(narrow.secret))).code, "auth.invalid", "it ends with its parent");
  }));

Deno.test("an admin makes accounts and gives prefixes; the first start shows a token that works once", () =>
  withRegistry(async (r) => {
    const admin = r.registry.adminToken!;
    assert.match(admin, /^waft_[0-9A-Za-z]{43}$/);
    assert.deepEqual(await r.get("/api/accounts", r.json("POST", { name: "bob" }, admin)), { name: "bob" });
    assert.equal((await r.problem("/api/accounts", r.json("POST", { name: "bob" }, admin))).code, "account.exists");
    assert.equal((await r.problem("/api/accounts", r.json("POST", { name: "Bob!" }, admin))).code, "request.json");
    const give = { prefix: "github.com/bob", account: "bob" };
    assert.deepEqual(await r.get("/api/prefixes", r.json("POST", give, admin)), {
      prefix: "github.com/bob",
      proof: "admin",
    });
    assert.equal(
      (await r.problem("/api/prefixes", r.json("POST", { prefix: "github.com/bob", account: "admin" }, admin))).code,
      "owner.taken",
    );
    const made = await r.get<{ secret: string }>(
      "/api/tokens",
      r.json("POST", { label: "bob", scopes: ["publish"], prefix: "*", account: "bob" }, admin),
    );
    assert.equal((await r.publish(made.secret, [definition("github.com/bob/x", "1.0.0")])).status, 201);
    assert.equal((await r.problem("/api/accounts", r.json("POST", { name: "eve" }, made.secret))).code, "auth.scope");
    await r.database.write((q) => q.run("UPDATE accounts SET suspended_at = 1 WHERE name = ?", "bob"));
    for (
      const [path, body] of [["tokens", { label: "b", scopes: ["publish"] }], ["prefixes", { prefix: "a.example/b" }]]
    ) {
      const { code, status } = await r.problem(
        `/api/${path}`,
        r.json("POST", { ...body as object, account: "bob" }, admin),
      );
      assert.deepEqual([code, status], ["account.suspended", 409], `${path}`);
    }
  }));

Deno.test("errors name the fault and its place", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    const wrong = await r.publish(token, [{ ...codecDefinition(), description: "x".repeat(501) }]);
    assert.equal(wrong.status, 422);
    const { errors } = wrong.body as { errors: { pointer: string; detail: string }[] };
    assert.equal(errors[0].pointer, "/package/description");
    assert.match(errors[0].detail, /^waft\.json:1:\d+: /);
    assert.equal((await r.problem("/api/nothing")).code, "route.unknown");
    assert.equal((await r.problem("/api/packages", { method: "DELETE" })).code, "method.unknown");
    const refused = await r.problem("/api/packages", { headers: { accept: "text/html" } });
    assert.equal(refused.code, "accept.none");
    const page = await fetch(`${r.url}/errors/accept.none`);
    assert.equal(page.status, 200);
    assert.match(await page.text(), /Representation not available/);
  }));
