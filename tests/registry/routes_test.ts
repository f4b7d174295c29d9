/**
 * The checklist of addresses: every route of the application and every kind of address of the site, each requested once
 * and checked for type, caching, a strong ETag that answers 304, an agreeing HEAD, the kind of its rate limit, and
 * refusal of unknown parameters. A new route without a row fails here.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeArchive } from "../../project/packages/archive.ts";
import { ROUTES } from "../../registry/app.ts";
import { API_ROUTES } from "../../registry/api_routes.ts";
import type { PackageSummary } from "../../registry/store/packages.ts";
import { codecDefinition, definition, kvDefinition } from "../project/sample_plugins.ts";
import { ReleaseFixture } from "../installer/release_fixture.ts";
import { type ProblemBody, realArchive, realFiles, type TestRegistry, withRegistry } from "./test_registry.ts";

type Cache = "short" | "immutable" | "never";

const CACHING: { readonly [cache in Cache]: string } = {
  short: "public, max-age=60, stale-while-revalidate=600",
  immutable: "public, max-age=31536000, immutable",
  never: "no-store",
};

const HTML = "text/html; charset=utf-8";
const JSON_TYPE = "application/json";
const PLAIN = "text/plain; charset=utf-8";
const MARKDOWN = "text/markdown; charset=utf-8";
const SCHEMA = "application/schema+json";
const ARCHIVE_HEX = createHash("sha256").update(realArchive([codecDefinition("2.0.1")])).digest("hex");
const KV_PATH = "github.com:acme:kv";

/** Route ("" if found by path), an address of it, type, caching. */
const READS: readonly (readonly [route: string, address: string, type: string, cache: Cache])[] = [
  ["/api/packages", "/api/packages", JSON_TYPE, "short"],
  ["/api/packages/:name", `/api/packages/${KV_PATH}`, JSON_TYPE, "short"],
  ["/api/packages/:name/versions", `/api/packages/${KV_PATH}/versions`, JSON_TYPE, "short"],
  ["/api/packages/:name/versions/:version", `/api/packages/${KV_PATH}/versions/1.2.3`, JSON_TYPE, "immutable"],
  ["/api/packages/:name/installs", `/api/packages/${KV_PATH}/installs`, JSON_TYPE, "short"],
  ["/api/plugins/:id/index", `/api/plugins/${KV_PATH}/index`, JSON_TYPE, "short"],
  [
    "/api/contracts/:contract/providers",
    "/api/contracts/github.com:acme:contracts:kv@1/providers",
    JSON_TYPE,
    "short",
  ],
  ["/api/blobs/sha256/:hex", `/api/blobs/sha256/${ARCHIVE_HEX}`, "application/gzip", "immutable"],
  ["/api/changes", "/api/changes", JSON_TYPE, "short"],
  ["/api/keys", "/api/keys", JSON_TYPE, "short"],
  ["/api/log/checkpoint", "/api/log/checkpoint", JSON_TYPE, "never"],
  ["/api/log/entries", "/api/log/entries?start=1", JSON_TYPE, "never"],
  ["/api/log/consistency", "/api/log/consistency?from=2&to=3", JSON_TYPE, "immutable"],
  [
    "/api/packages/:name/versions/:version/inclusion",
    `/api/packages/${KV_PATH}/versions/1.2.3/inclusion?size=3`,
    JSON_TYPE,
    "immutable",
  ],
  ["/api/oidc", "/api/oidc", JSON_TYPE, "short"],
  ["/api/openapi.json", "/api/openapi.json", JSON_TYPE, "short"],
  ["/plugins", "/plugins", HTML, "short"],
  ["/plugins/:name", `/plugins/${KV_PATH}`, HTML, "short"],
  ["/plugins/:name/v/:version", `/plugins/${KV_PATH}/v/1.2.3`, HTML, "short"],
  ["/plugins/:name/compare/:range", `/plugins/${KV_PATH}/compare/1.2.3...1.3.0`, HTML, "short"],
  ["/contracts/:contract", "/contracts/github.com:acme:contracts:kv@1", HTML, "short"],
  ["/changes", "/changes", HTML, "short"],
  ["/changes.atom", "/changes.atom", "application/atom+xml; charset=utf-8", "short"],
  ["/playground", "/playground", HTML, "short"],
  ["/playground/compiler.js", "/playground/compiler.js", "text/javascript; charset=utf-8", "short"],
  ["/search", "/search?q=lockfile", HTML, "short"],
  ["/errors/:code", "/errors/version.unknown", HTML, "short"],
  ["/schemas/v1/:schema", "/schemas/v1/schema.json", SCHEMA, "short"],
  ["/schemas/v1/:schema", "/schemas/v1/lock.schema.json", SCHEMA, "short"],
  ["/schemas/v1/:schema", "/schemas/v1/catalog.schema.json", SCHEMA, "short"],
  ["/schemas/v1/output/:schema", "/schemas/v1/output/add.schema.json", SCHEMA, "short"],
  ["/data/docs.json", "/data/docs.json", JSON_TYPE, "short"],
  ["/:channel/data/docs.json", "/nightly/data/docs.json", JSON_TYPE, "short"],
  ["/:channel/data/docs.json", "/v0.1.0/data/docs.json", JSON_TYPE, "short"],
  ["/llms.txt", "/llms.txt", PLAIN, "short"],
  ["/llms-full.txt", "/llms-full.txt", PLAIN, "short"],
  ["/robots.txt", "/robots.txt", PLAIN, "short"],
  ["/sitemap.xml", "/sitemap.xml", "application/xml", "short"],
  ["/install.sh", "/install.sh", "text/x-shellscript; charset=utf-8", "short"],
  ["/install.ps1", "/install.ps1", PLAIN, "short"],
  ["/releases/index.json", "/releases/index.json", JSON_TYPE, "short"],
  ["/releases/index.json.sig", "/releases/index.json.sig", JSON_TYPE, "short"],
  [
    "/releases/:version/:file",
    "/releases/0.1.0/waft-0.1.0-linux-amd64.tar.gz",
    "application/gzip",
    "immutable",
  ],
  ["/healthz", "/healthz", PLAIN, "never"],
  ["/readyz", "/readyz", PLAIN, "never"],
  // The channels of the specification, each with its own pages, raw and rendered.
  ...["/", "/nightly/", "/v0.1.0/"].flatMap((base) => [
    ["", base, HTML, "short"] as const,
    ["", `${base}getting-started`, HTML, "short"] as const,
    ["", `${base}configuration`, HTML, "short"] as const,
    ["", `${base}configuration.md`, MARKDOWN, "short"] as const,
    ["", `/raw${base}getting-started.md`, MARKDOWN, "short"] as const,
    ["", `/raw${base}index.md`, MARKDOWN, "short"] as const,
  ]),
];

/** Routes that change something or need a token: tested together below. */
const CHANGES = [
  "PUT /api/packages/:name/versions/:version",
  "POST /api/packages/:name/versions/:version/yank",
  "DELETE /api/packages/:name/versions/:version/yank",
  "POST /api/packages/:name/deprecation",
  "DELETE /api/packages/:name/deprecation",
  "POST /api/packages/:name/installs",
  "POST /api/packages/:name/release",
  "POST /api/plugins/index",
  "GET /api/account",
  "GET /api/tokens",
  "POST /api/tokens",
  "DELETE /api/tokens/:token",
  "POST /api/prefixes",
  "DELETE /api/prefixes/:prefix",
  "POST /api/accounts",
  "POST /api/oidc/token",
  "POST /api/packages/:name/transfer",
  "DELETE /api/packages/:name/transfer",
  "POST /api/packages/:name/transfer/accept",
  "GET /api/transfers",
  "GET /api/trusted-publishers",
  "POST /api/trusted-publishers",
  "DELETE /api/trusted-publishers/:publisher",
];

async function withEverything(run: (r: TestRegistry, token: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "waft-routes-"));
  const site = new ReleaseFixture(["0.1.0"], { latest: "0.1.0" });
  try {
    for (const [path, bytes] of site.served) {
      await mkdir(join(folder, path, ".."), { recursive: true });
      await writeFile(join(folder, path), bytes);
    }
    await writeFile(join(folder, "install.sh"), "#!/bin/sh\n");
    await writeFile(join(folder, "install.ps1"), "# Installs waft\n");
    await withRegistry(async (r) => {
      const { token } = await r.author("acme", ["github.com/acme"]);
      for (const d of [codecDefinition("2.0.1"), kvDefinition("1.2.3"), kvDefinition("1.3.0")]) {
        assert.equal((await r.publish(token, [d])).status, 201);
      }
      await run(r, token);
    }, { settings: { releases: folder } });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

Deno.test("routes: the list has all of them", () => {
  const listed = new Set([...READS.map(([route]) => `GET ${route}`).filter((r) => r !== "GET "), ...CHANGES]);
  assert.deepEqual([...listed].sort(), [...new Set(ROUTES.map((r) => `${r.method} ${r.path}`))].sort());
});

Deno.test("routes: type, caching, tags, HEAD, limits and unknown parameters of each", () =>
  withEverything(async (r) => {
    for (const [route, path, type, cache] of READS) {
      const ask = (init: RequestInit = {}): Promise<Response> => fetch(r.url + path, { redirect: "manual", ...init });
      const response = await ask();
      const body = new Uint8Array(await response.arrayBuffer());
      assert.equal(response.status, 200, path);
      assert.ok(body.length > 2, path);
      assert.equal(response.headers.get("content-type"), type, path);
      assert.equal(response.headers.get("cache-control"), CACHING[cache], path);
      const rate = ROUTES.find((x) => x.path === route && x.method === "GET")?.rate ?? "read";
      assert.match(response.headers.get("ratelimit-policy")!, new RegExp(`^"${rate}";q=\\d+;w=60$`), path);
      assert.match(response.headers.get("ratelimit")!, new RegExp(`^"${rate}";r=\\d+;t=\\d+$`), path);
      assert.equal(response.headers.get("x-content-type-options"), "nosniff", path);
      const etag = response.headers.get("etag");
      assert.equal(etag !== null, cache !== "never", path);
      const head = await ask({ method: "HEAD" });
      assert.equal(head.status, 200, path);
      assert.equal((await head.arrayBuffer()).byteLength, 0, path);
      assert.equal(head.headers.get("etag"), etag, path);
      if (etag !== null) {
        assert.match(etag, /^"[^"]+"$/, `${path}: a strong tag`);
        const same = await ask({ headers: { "if-none-match": etag } });
        assert.equal(same.status, 304, path);
        assert.equal((await same.arrayBuffer()).byteLength, 0, path);
        assert.equal(same.headers.get("cache-control"), CACHING[cache], path);
      }
      // Pages without query parameters accept tracking parameters of other sites' links.
      if (route.startsWith("/api/") || route === "/plugins" || route === "/search" || route.startsWith("/releases/")) {
        const odd = await fetch(`${r.url}${path}${path.includes("?") ? "&" : "?"}colour=red`);
        assert.equal(odd.status, 400, path);
        assert.match(await odd.text(), /colour/, path);
      }
      const wrong = await ask({ method: "PATCH" });
      await wrong.body?.cancel();
      const methods = ROUTES.filter((x) => x.path === route).map((x) => x.method).sort();
      const allowed = wrong.headers.get("allow")?.split(", ").filter((method) => method !== "HEAD").sort();
      if (wrong.status === 405) assert.deepEqual(allowed, methods, path);
      else assert.deepEqual([wrong.status, methods], [404, []], path);
    }
  }));

Deno.test("routes: each change, as its operation says", () =>
  withEverything(async (r, token) => {
    const done = new Set<string>();
    const admin = r.registry.adminToken!;
    const as = (secret: string): RequestInit => ({ headers: { authorization: `Bearer ${secret}` } });
    /** The harness checks status and body of every answer against the description of its operation. */
    const ask = async <T>(operation: string, path: string, init: RequestInit, status: number): Promise<T> => {
      const { response, body } = await r.api(path, init);
      assert.equal(response.status, status, `${operation}: ${JSON.stringify(body)}`);
      assert.equal(response.headers.get("cache-control"), "no-store", operation);
      const [method, route] = operation.split(" ") as [string, string];
      const { rate } = ROUTES.find((x) => x.path === route && x.method === method)!;
      assert.match(response.headers.get("ratelimit-policy")!, new RegExp(`^"${rate}";`), operation);
      done.add(operation);
      return body as T;
    };
    const version = `/api/packages/${KV_PATH}/versions/1.4.0`;
    const [, publishing] = r.publishing("github.com/acme/kv", "1.4.0", realArchive([kvDefinition("1.4.0")]), token);
    await ask("PUT /api/packages/:name/versions/:version", version, publishing, 201);
    const yank = r.json("POST", { reason: "Loses values", severity: "security" }, token);
    await ask("POST /api/packages/:name/versions/:version/yank", `${version}/yank`, yank, 200);
    for (
      const body of [{}, { reason: "" }, { reason: "x", severity: "bad" }, { reason: "x", severity: "broken", a: 1 }]
    ) {
      assert.equal((await r.problem(`${version}/yank`, r.json("POST", body, token))).code, "request.json");
    }
    const undo = { method: "DELETE", ...as(token) };
    await ask("DELETE /api/packages/:name/versions/:version/yank", `${version}/yank`, undo, 200);
    const deprecation = `/api/packages/${KV_PATH}/deprecation`;
    const told = r.json("POST", { message: "Use another", version: "1.4.0" }, token);
    await ask("POST /api/packages/:name/deprecation", deprecation, told, 200);
    for (const body of [{}, { message: "" }, { message: "x", version: 1 }, { message: "x".repeat(301) }]) {
      assert.equal((await r.problem(deprecation, r.json("POST", body, token))).code, "request.json");
    }
    const none = r.json("POST", { message: "x", version: "9.9.9" }, token);
    assert.equal((await r.problem(deprecation, none)).code, "version.unknown");
    await ask("DELETE /api/packages/:name/deprecation", `${deprecation}?version=1.4.0`, undo, 200);
    assert.equal((await r.problem(`${deprecation}?version=9.9.9`, undo)).code, "version.unknown");
    const installs = `/api/packages/${KV_PATH}/installs`;
    await ask("POST /api/packages/:name/installs", installs, { method: "POST" }, 200);
    const large = r.json("POST", { version: "1".repeat(5000) });
    assert.equal((await r.problem(installs, large)).code, "request.too-large", "4 KiB at most");
    assert.equal((await r.problem(installs, r.json("POST", { version: 1 }))).code, "request.json");
    assert.equal((await r.problem(installs, { method: "POST", body: "{}" })).code, "request.type");
    await r.database.run("UPDATE packages SET held = 1 WHERE id = ?", "github.com/acme/codec");
    const hold = "/api/packages/github.com:acme:codec/release";
    assert.equal((await r.problem(hold, { method: "POST", ...as(token) })).code, "auth.scope");
    await ask("POST /api/packages/:name/release", hold, { method: "POST", ...as(admin) }, 200);
    await ask("POST /api/plugins/index", "/api/plugins/index", r.json("POST", { ids: ["github.com/acme/kv"] }), 200);
    await ask("GET /api/account", "/api/account", as(token), 200);
    await ask("GET /api/tokens", "/api/tokens", as(token), 200);
    const wanted = { label: "ci", scopes: ["publish"], prefix: "github.com/acme/kv" };
    for (const days of ["0", "367", "x"]) {
      assert.equal((await r.problem(`/api/tokens?days=${days}`, r.json("POST", wanted, token))).code, "request.query");
    }
    const made = await ask<{ token: { id: string } }>(
      "POST /api/tokens",
      "/api/tokens",
      r.json("POST", wanted, token),
      201,
    );
    await ask("DELETE /api/tokens/:token", `/api/tokens/${made.token.id}`, { method: "DELETE", ...as(token) }, 204);
    const publisher = {
      prefix: "github.com/acme",
      issuer: "https://gitlab.com",
      claims: { project_path: "acme/kv", ref: "main" },
    };
    const trusted = "/api/trusted-publishers";
    const { id } = await ask<{ id: string }>(
      `POST ${trusted}`,
      trusted,
      r.json("POST", publisher, token),
      201,
    );
    await ask(`GET ${trusted}`, trusted, as(token), 200);
    await ask(`DELETE ${trusted}/:publisher`, `${trusted}/${id}`, { method: "DELETE", ...as(token) }, 204);
    const identity = r.json("POST", { token: "x", package: "github.com/acme/kv" });
    await ask("POST /api/oidc/token", "/api/oidc/token", identity, 401);
    await ask("POST /api/accounts", "/api/accounts", r.json("POST", { name: "bob" }, admin), 201);
    const transfer = `/api/packages/${KV_PATH}/transfer`;
    const toBob = r.json("POST", { account: "bob" }, token);
    await ask("POST /api/packages/:name/transfer", transfer, toBob, 201);
    await ask("GET /api/transfers", "/api/transfers", as(token), 200);
    await ask("DELETE /api/packages/:name/transfer", transfer, { method: "DELETE", ...as(token) }, 204);
    const back = r.json("POST", { account: "acme" }, (await r.author("carl", ["github.com/carl"])).token);
    assert.equal((await r.problem(transfer, back)).code, "owner.prefix");
    const accepting = { method: "POST", ...as(token) };
    await ask("POST /api/packages/:name/transfer/accept", `${transfer}/accept`, accepting, 404);
    const prefix = { prefix: "github.com/bob", account: "bob" };
    await ask("POST /api/prefixes", "/api/prefixes", r.json("POST", prefix, admin), 201);
    const dropped = { method: "DELETE", ...as(admin) };
    await ask("DELETE /api/prefixes/:prefix", "/api/prefixes/github.com:bob", dropped, 204);
    assert.deepEqual([...done].sort(), [...CHANGES].sort());
  }));

Deno.test("routes: every filter, order and limit of the list", () =>
  withRegistry(async (r) => {
    const { token } = await r.author("acme", ["github.com/acme"]);
    const publish = async (name: string, more: object, changes: Parameters<typeof definition>[2] = {}) => {
      r.clock.at += 1000;
      const id = `github.com/acme/${name}`;
      const files = realFiles([definition(id, "1.0.0", changes)]);
      const manifest = JSON.parse(new TextDecoder().decode(files.get("waft.json"))) as { package: object };
      Object.assign(manifest.package, more);
      files.set("waft.json", new TextEncoder().encode(JSON.stringify(manifest)));
      const archive = new Uint8Array(writeArchive(files));
      const { response, body } = await r.api(...r.publishing(id, "1.0.0", archive, token));
      assert.equal(response.status, 201, JSON.stringify(body));
    };
    await publish("store", { category: "storage", tags: ["kv", "fast"] }, { stability: "stable" });
    await publish("clock", { category: "time", tags: ["fast"] }, {
      stability: "experimental",
      authorities: [{ name: "clock.wall", mode: "required", reason: "Tells the time." }],
      compatibility: { engines: { waft: ">=0.1.0" }, platforms: ["linux/amd64"] },
    });
    await publish("codec", {}, {
      stability: "deprecated",
      provides: [{ id: "github.com/acme/c", major: 2, functions: [{ name: "f", params: [], results: ["i32"] }] }],
    });
    for (const n of [1, 2]) {
      const from = { method: "POST", headers: { "x-forwarded-for": `192.0.${n}.1` } };
      await r.api("/api/packages/github.com:acme:clock/installs", from);
    }
    const list = async (query: string): Promise<string[]> =>
      (await r.get<{ packages: PackageSummary[] }>(`/api/packages?${query}`)).packages.map((p) => p.name.slice(16));
    const rows: readonly (readonly [string, readonly string[]])[] = [
      ["sort=name", ["clock", "codec", "store"]],
      ["sort=recent", ["codec", "clock", "store"]],
      ["sort=installs", ["clock", "codec", "store"]],
      ["sort=relevance&q=store", ["store"]],
      ["q=COD", ["codec"]],
      ["q=nothing+like+it", []],
      ["category=storage", ["store"]],
      ["tag=fast&sort=name", ["clock", "store"]],
      ["tag=fast&tag=kv", []],
      ["stability=stable", ["store"]],
      ["stability=deprecated", ["codec"]],
      ["engine=waft", ["clock"]],
      ["platform=linux/amd64&sort=name", ["clock", "codec", "store"]],
      ["platform=darwin/arm64&sort=name", ["codec", "store"]],
      ["kind=wasm&sort=name", ["clock", "codec", "store"]],
      ["kind=host", []],
      ["authority=clock.wall", ["clock"]],
      ["contract=github.com/acme/c@2", ["codec"]],
      ["contract=github.com/acme/c@1", []],
      ["category=time&tag=fast&authority=clock.wall&stability=experimental", ["clock"]],
      ["limit=1&sort=name", ["clock"]],
      ["limit=200&sort=name", ["clock", "codec", "store"]],
    ];
    for (const [query, expected] of rows) {
      if (query === "tag=fast&tag=kv") {
        assert.equal((await r.problem(`/api/packages?${query}`)).code, "request.query", "a filter stands once");
      } else assert.deepEqual(await list(query), expected, query);
    }
    const page = await r.get<{ packages: PackageSummary[] }>("/api/packages?q=store");
    assert.deepEqual([page.packages[0].category, page.packages[0].tags], ["storage", ["kv", "fast"]]);
    const days = async (query: string): Promise<number> =>
      (await r.get<{ days: unknown[] }>(`/api/packages/github.com:acme:clock/installs${query}`)).days.length;
    assert.deepEqual([await days(""), await days("?days=1"), await days("?days=365")], [90, 1, 365]);
    for (const bad of ["0", "366", "-1", "x"]) {
      const problem = await r.problem(`/api/packages/github.com:acme:clock/installs?days=${bad}`);
      assert.equal(problem.code, "request.query", bad);
    }
    // The same filters on the page.
    const html = await (await fetch(`${r.url}/plugins?authority=clock.wall`)).text();
    assert.match(html, /1 plugin\b/);
  }, { settings: { trustProxy: true } }));

Deno.test("routes: the OpenAPI document is consistent in itself", () =>
  withRegistry(async (r) => {
    interface Described {
      readonly operationId: string;
      readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
      readonly responses: { readonly [status: string]: { readonly description: string } };
      readonly security?: readonly object[];
    }
    const document = await r.get<{ paths: { [path: string]: { [method: string]: Described } } }>("/api/openapi.json");
    const ids = new Set<string>();
    let operations = 0;
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        operations++;
        assert.ok(!ids.has(operation.operationId), operation.operationId);
        ids.add(operation.operationId);
        const named = [...path.matchAll(/\{([a-z]+)\}/g)].map((m) => m[1]).sort();
        const declared = (operation.parameters ?? []).filter((p) => p.in === "path");
        assert.deepEqual(declared.map((p) => p.name).sort(), named, `${method} ${path}`);
        assert.ok(declared.every((p) => p.required), `${method} ${path}`);
        for (const [status, { description }] of Object.entries(operation.responses)) {
          assert.notEqual(description, "Problem", `${method} ${path} ${status} has words`);
        }
        // An identity token comes in the body, and no other token is needed.
        const hasToken = operation.security !== undefined || path === "/api/oidc/token";
        assert.equal(hasToken, "401" in operation.responses, `${method} ${path}`);
      }
    }
    assert.equal(operations, API_ROUTES.length);
    // 503 is as described: a lost database is a problem with Retry-After.
    await r.database.close();
    const { response, body } = await r.api(
      "/api/prefixes",
      r.json("POST", { prefix: "a.example" }, `waft_${"A".repeat(43)}`),
    );
    assert.deepEqual([response.status, (body as ProblemBody).code], [503, "server.unavailable"]);
    assert.ok(Number(response.headers.get("retry-after")) > 0);
    const page = await fetch(`${r.url}/plugins`, { headers: { accept: "text/html" } });
    assert.equal(page.status, 503);
    assert.equal((await fetch(`${r.url}/healthz`)).status, 200);
    assert.equal((await fetch(`${r.url}/readyz`)).status, 503);
  }));
