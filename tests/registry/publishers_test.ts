/**
 * Publishing from a workflow with an identity token (OpenID Connect), on SQLite and on PostgreSQL: which tokens of an
 * issuer on loopback the registry accepts and refuses, the rights of the tokens that it issues, and the command that
 * exchanges and uses them.
 */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { ProjectError } from "../../project/base/diagnostic.ts";
import { inspectModule } from "../../project/definitions/engine_inspector.ts";
import { publishPackage } from "../../project/ops/project/publish.ts";
import { changePublishers } from "../../project/ops/project/publishers.ts";
import { grantPrefix } from "../../registry/store/accounts.ts";
import { CODEC, codecDefinition, definition } from "../project/sample_plugins.ts";
import { TempProject } from "../project/temp_project.ts";
import { FakeIssuer, IssuerKey } from "./fake_issuer.ts";
import { eachDatabase } from "./temp_database.ts";
import { realFiles, type TestRegistry, withRegistry } from "./test_registry.ts";

const NOW = Date.UTC(2026, 7, 1, 12);
const KV = "github.com/acme/kv";
const CLAIMS = { sub: "repo:acme/kv:environment:release" };

interface Exchanged {
  readonly secret: string;
  readonly token: {
    readonly id: string;
    readonly scopes: string[];
    readonly prefix: string;
    readonly expiresAt: string;
  };
}

/** Runs a test with an issuer that the registry accepts, and a trusted publisher of acme's. */
async function withIssuer(
  test: (r: TestRegistry, issuer: FakeIssuer, acme: string, publisher: string) => Promise<void>,
  database?: TestRegistry["database"],
): Promise<void> {
  const clock = { at: NOW };
  const issuer = await new FakeIssuer(() => Math.floor(clock.at / 1000)).listen();
  try {
    await withRegistry(async (r) => {
      r.clock.at = clock.at;
      const { token } = await r.author("acme", ["github.com/acme"]);
      const made = await r.get<{ id: string }>(
        "/api/trusted-publishers",
        r.json("POST", { prefix: "github.com/acme", issuer: issuer.url, claims: CLAIMS }, token),
      );
      await test(r, issuer, token, made.id);
    }, { settings: { oidcIssuers: [issuer.url] }, ...(database === undefined ? {} : { database }) });
  } finally {
    issuer.close();
  }
}

const exchange = (r: TestRegistry, token: string, id = KV) =>
  r.api("/api/oidc/token", r.json("POST", { token, package: id }));

/** The code of a refused exchange, or "ok". */
async function codeOf(r: TestRegistry, token: string, id = KV): Promise<string> {
  const { response, body } = await exchange(r, token, id);
  return response.ok ? "ok" : (body as { code: string }).code;
}

eachDatabase(
  "an identity token publishes one package for 15 minutes, and is used once",
  (_database, open) =>
    withIssuer(async (r, issuer, acme, publisher) => {
      const jwt = await issuer.token(r.url, CLAIMS);
      const { response, body } = await exchange(r, jwt);
      assert.equal(response.status, 201, JSON.stringify(body));
      const { secret, token } = body as Exchanged;
      assert.deepEqual([token.scopes, token.prefix, Date.parse(token.expiresAt) - NOW], [["publish"], KV, 900_000]);
      assert.equal(await codeOf(r, jwt), "auth.identity", "a second time");
      assert.equal((await r.publish(secret, [definition(KV, "1.0.0")])).status, 201);
      assert.equal((await r.publish(secret, [definition("github.com/acme/other", "1.0.0")])).status, 403);
      const yank = r.json("POST", { reason: "x", severity: "other" }, secret);
      assert.equal((await r.problem("/api/packages/github.com:acme:kv/versions/1.0.0/yank", yank)).code, "auth.scope");
      assert.equal(
        (await r.problem("/api/tokens", r.json("POST", { label: "x", scopes: ["publish"] }, secret))).code,
        "auth.scope",
      );
      r.clock.at += 900_000;
      assert.equal((await r.publish(secret, [definition(KV, "1.0.1")])).status, 401, "after 15 minutes");
      r.clock.at = NOW;
      // Removing the publisher ends the tokens that were made for it.
      const again = (await exchange(r, await issuer.token(r.url, CLAIMS))).body as Exchanged;
      const as = { headers: { authorization: `Bearer ${acme}` } };
      const { publishers } = await r.get<{ publishers: { id: string }[] }>("/api/trusted-publishers", as);
      assert.deepEqual(publishers.map(({ id }) => id), [publisher]);
      const removed = await r.api(`/api/trusted-publishers/${publisher}`, { method: "DELETE", ...as });
      assert.equal(removed.response.status, 204);
      assert.equal((await r.publish(again.secret, [definition(KV, "1.0.1")])).status, 401);
      assert.equal(await codeOf(r, await issuer.token(r.url, CLAIMS)), "owner.publisher");
      assert.equal(
        (await r.problem(`/api/trusted-publishers/${publisher}`, { method: "DELETE", ...as })).code,
        "publisher.unknown",
      );
    }, open()),
);

Deno.test("identity tokens of others, for others, at other times and with other claims are refused", () =>
  withIssuer(async (r, issuer) => {
    const now = NOW / 1000;
    const of = (claims: JWTPayload, audience = r.url) => issuer.token(audience, { ...CLAIMS, ...claims });
    const stranger = new IssuerKey();
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const secret = new TextEncoder().encode("x".repeat(32));
    const payload = { iss: issuer.url, aud: r.url, iat: now, exp: now + 300, ...CLAIMS };
    const signed = await of({});
    const [head, body, signature] = signed.split(".");
    const refused: readonly (readonly [about: string, token: string, code: string])[] = [
      ["no JWT", "x", "auth.identity"],
      ["three empty parts", "..", "auth.identity"],
      ["another audience", await of({}, "https://registry.npmjs.example"), "auth.identity"],
      ["several audiences, none of them this one", await of({ aud: ["a", "b"] }), "auth.identity"],
      ["another issuer", await of({ iss: "https://evil.example" }), "auth.identity"],
      ["an issuer below the accepted one", await of({ iss: `${issuer.url}/evil` }), "auth.identity"],
      ["expired", await of({ iat: now - 600, exp: now - 60 }), "auth.identity"],
      ["not valid yet", await of({ nbf: now + 600 }), "auth.identity"],
      ["made long ago", await of({ iat: now - 86_400 }), "auth.identity"],
      ["made in the future", await of({ iat: now + 3600 }), "auth.identity"],
      ["without an expiry", await of({ exp: undefined }), "auth.identity"],
      ["without a time", await of({ iat: undefined }), "auth.identity"],
      ["without a subject", await of({ sub: undefined }), "auth.identity"],
      ["an unpublished key", await issuer.token(r.url, CLAIMS, stranger), "auth.identity"],
      [
        "another key under a published name",
        await issuer.token(
          r.url,
          CLAIMS,
          Object.assign(new IssuerKey(), {
            id: issuer.keys[0].id,
          }),
        ),
        "auth.identity",
      ],
      ["no signature", new UnsecuredJWT(payload).encode(), "auth.identity"],
      ["a cut signature", `${head}.${body}.${signature.slice(0, -2)}`, "auth.identity"],
      ["other contents", `${head}.${body.replace(/.$/, (c) => c === "A" ? "B" : "A")}.${signature}`, "auth.identity"],
      [
        "a symmetric algorithm",
        await new SignJWT(payload).setProtectedHeader({ alg: "HS256", kid: issuer.keys[0].id }).sign(secret),
        "auth.identity",
      ],
      [
        "another algorithm than the key's",
        await new SignJWT(payload).setProtectedHeader({ alg: "RS256", kid: issuer.keys[0].id }).sign(privateKey),
        "auth.identity",
      ],
      ["another subject", await of({ sub: "repo:evil/kv:environment:release" }), "owner.publisher"],
      ["a subject that only begins so", await of({ sub: `${CLAIMS.sub}-2` }), "owner.publisher"],
    ];
    for (const [about, token, code] of refused) assert.equal(await codeOf(r, token), code, about);
    assert.equal(await codeOf(r, await of({}), "github.com/bob/kv"), "owner.publisher", "another account's package");
    for (const id of ["kv", "github.com", "", "x".repeat(400)]) {
      assert.equal(await codeOf(r, signed, id), "request.json", id);
    }
    assert.equal(await codeOf(r, "x".repeat(20_000)), "request.json");
    assert.equal(await codeOf(r, signed), "ok", "none of that has used the good token");
  }));

Deno.test("keys that change, and issuers that do not answer", () =>
  withIssuer(async (r, issuer) => {
    issuer.answer = (_path, response) => {
      response.writeHead(500).end();
      return true;
    };
    const first = await issuer.token(r.url, CLAIMS);
    assert.equal(await codeOf(r, first), "server.unavailable");
    const lies: unknown[] = [
      { issuer: issuer.url },
      { issuer: "https://evil.example", jwks_uri: `${issuer.url}/jwks` },
      { issuer: issuer.url, jwks_uri: "http://keys.example/jwks" },
      { issuer: issuer.url, jwks_uri: "file:///etc/passwd" },
      [],
      "x".repeat(1 << 17),
    ];
    for (const lie of lies) {
      issuer.answer = (_path, response) => {
        response.end(JSON.stringify(lie));
        return true;
      };
      assert.equal(await codeOf(r, first), "server.unavailable", JSON.stringify(lie).slice(0, 100));
    }
    issuer.answer = (path, response) => {
      if (path === "/jwks") response.end("<html>");
      return path === "/jwks";
    };
    assert.equal(await codeOf(r, first), "server.unavailable");
    issuer.answer = undefined;
    assert.equal(await codeOf(r, first), "ok", "the failures were not remembered");
  }));

Deno.test("a publisher has the rights of its account, as long as that owns the package", () =>
  withIssuer(async (r, issuer, acme) => {
    const ask = async () => await codeOf(r, await issuer.token(r.url, CLAIMS));
    assert.equal(await ask(), "ok");
    // A longer prefix of another account takes the package away.
    const bob = await r.author("bob", [KV]);
    assert.equal(await ask(), "owner.publisher");
    await r.database.run("DELETE FROM prefixes WHERE account = ?", bob.account);
    assert.equal(await ask(), "ok");
    await r.database.run("UPDATE accounts SET suspended_at = 1 WHERE name = 'acme'");
    assert.equal(await ask(), "owner.publisher");
    await r.database.run("UPDATE accounts SET suspended_at = NULL");
    // Who may not publish may not let others publish.
    const owners = await r.get<{ secret: string }>(
      "/api/tokens",
      r.json("POST", { label: "x", scopes: ["owners"] }, acme),
    );
    const wanted = { prefix: "github.com/acme", issuer: issuer.url, claims: CLAIMS };
    const add = (body: unknown, token = acme) => r.problem("/api/trusted-publishers", r.json("POST", body, token));
    assert.equal((await add(wanted, owners.secret)).code, "auth.scope");
    assert.equal((await add(wanted, bob.token)).code, "owner.prefix");
    assert.equal((await add({ ...wanted, prefix: "github.com" })).code, "owner.prefix");
    const wrong = [
      { issuer: "https://evil.example" },
      { claims: {} },
      { claims: { ref: "refs/heads/main" } },
      { claims: { sub: "" } },
      { claims: { sub: 1 } },
      { claims: { sub: "x".repeat(301) } },
      { claims: [] },
      { claims: Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`sub${i}`, "x"])) },
      { prefix: "GitHub.com/ACME" },
      { more: 1 },
    ];
    for (const change of wrong) {
      assert.equal((await add({ ...wanted, ...change })).code, "request.json", JSON.stringify(change));
    }
    const { account } = (await r.database.all("SELECT account FROM trusted_publishers"))[0];
    for (let i = 1; i < 100; i++) {
      await r.database.run(
        "INSERT INTO trusted_publishers (id, account, prefix, issuer, claims, created_at) VALUES (?, ?, 'a.b', 'x', '{}', 1)",
        `pub_${i}`,
        account,
      );
    }
    assert.equal((await add(wanted)).code, "publisher.full");
  }));

/** The code of the first finding of an action; "ok" for none. */
async function findingOf(action: Promise<unknown>): Promise<string> {
  try {
    await action;
    return "ok";
  } catch (error) {
    if (!(error instanceof ProjectError)) throw error;
    return error.diagnostics[0].code;
  }
}

Deno.test("waft plugin publish exchanges the identity token of its environment, and manages publishers", () =>
  withIssuer(async (r, issuer, acme) => {
    const project = new TempProject("");
    try {
      for (const [path, bytes] of realFiles([codecDefinition("2.0.0")], { "README.md": "# Read me" })) {
        mkdirSync(dirname(join(project.root, path)), { recursive: true });
        writeFileSync(join(project.root, path), bytes);
      }
      const publishing = async (env: { readonly [name: string]: string }, registry = r.url) => {
        const context = await project.context(undefined, {
          registry,
          fetch: globalThis.fetch,
          inspect: inspectModule,
          env,
        });
        return await publishPackage(context, { root: project.root, dryRun: false, allowDirty: false });
      };
      const service = {
        ACTIONS_ID_TOKEN_REQUEST_URL: `${issuer.url}/token?x=1`,
        ACTIONS_ID_TOKEN_REQUEST_TOKEN: "workflow",
      };
      assert.equal(await findingOf(publishing({})), "auth.missing");
      assert.equal(await findingOf(publishing(service)), "auth.refused", "the service gives a token with other claims");
      issuer.claims = CLAIMS;
      const done = await publishing(service);
      assert.equal(done.created, true);
      assert.ok(issuer.requests.includes(`Bearer workflow /token?x=1&audience=${encodeURIComponent(r.url)}`));
      assert.equal((await publishing({ WAFT_ID_TOKEN: await issuer.token(r.url, CLAIMS) })).created, false);
      assert.equal(await findingOf(publishing({ ...service, ACTIONS_ID_TOKEN_REQUEST_TOKEN: "no" })), "auth.identity");
      const insecure = { ...service, ACTIONS_ID_TOKEN_REQUEST_URL: "http://example.com/token" };
      assert.equal(await findingOf(publishing(insecure)), "auth.identity");
      // A token of the registry precedes an identity token.
      const requests = issuer.requests.length;
      assert.equal((await publishing({ ...service, WAFT_TOKEN: acme })).created, false);
      assert.equal(issuer.requests.length, requests);

      const context = await project.context(undefined, {
        registry: r.url,
        fetch: globalThis.fetch,
        env: { WAFT_TOKEN: acme },
      });
      const change = (request: Partial<Parameters<typeof changePublishers>[2]>) =>
        changePublishers(context, project.root, { claims: [], ...request });
      const listed = await change({});
      assert.deepEqual(listed.publishers.map(({ prefix, claims }) => [prefix, claims]), [["github.com/acme", CLAIMS]]);
      const added = await change({
        prefix: CODEC,
        issuer: issuer.url,
        claims: ["sub=repo:acme/codec:x=1", "ref=main"],
      });
      assert.deepEqual(added.publishers.find(({ id }) => id === added.changed)?.claims, {
        sub: "repo:acme/codec:x=1",
        ref: "main",
      });
      assert.equal((await change({ remove: added.changed! })).publishers.length, 1);
      for (
        const wrong of [
          { prefix: CODEC },
          { prefix: CODEC, issuer: "github" },
          { prefix: CODEC, issuer: "github", claims: ["sub"] },
          { prefix: CODEC, remove: "pub_0" },
          { issuer: "github" },
        ]
      ) assert.equal(await findingOf(change(wrong)), "usage.publisher", JSON.stringify(wrong));
      const notAccepted = change({ prefix: CODEC, issuer: "github", claims: ["sub=x"] });
      assert.equal(await findingOf(notAccepted), "registry.answer", "the registry does not accept GitHub here");
      assert.equal(await findingOf(change({ remove: "pub_0" })), "registry.not-found");
    } finally {
      project.remove();
    }
  }));

Deno.test("a registry that asks for identity tokens of another one gets none", () =>
  withIssuer(async (_r, issuer) => {
    await withRegistry(async (evil) => {
      const project = new TempProject("");
      try {
        for (const [path, bytes] of realFiles([codecDefinition("2.0.0")])) {
          mkdirSync(dirname(join(project.root, path)), { recursive: true });
          writeFileSync(join(project.root, path), bytes);
        }
        const context = await project.context(undefined, {
          registry: evil.url,
          fetch: globalThis.fetch,
          inspect: inspectModule,
          env: { ACTIONS_ID_TOKEN_REQUEST_URL: `${issuer.url}/token`, ACTIONS_ID_TOKEN_REQUEST_TOKEN: "workflow" },
        });
        const publishing = publishPackage(context, { root: project.root, dryRun: false, allowDirty: false });
        assert.equal(await findingOf(publishing), "auth.identity");
        assert.equal(issuer.requests.some((request) => request.includes("/token")), false);
      } finally {
        project.remove();
      }
    }, { settings: { baseUrl: "https://waft.example" } });
  }));

Deno.test("owners of prefixes by DNS prove them when a workflow publishes, too", async () => {
  let isProved = true;
  const issuer = await new FakeIssuer(() => NOW / 1000).listen();
  try {
    await withRegistry(async (r) => {
      const { token, account } = await r.author("acme", []);
      const owned = { prefix: "plugins.example.org", account, proof: "dns" as const };
      await r.database.write((q) => grantPrefix(q, owned, r.clock.at));
      const body = { prefix: "plugins.example.org", issuer: issuer.url, claims: CLAIMS };
      await r.get("/api/trusted-publishers", r.json("POST", body, token));
      const id = "plugins.example.org/kv";
      const { secret } = (await exchange(r, await issuer.token(r.url, CLAIMS), id)).body as Exchanged;
      isProved = false;
      assert.equal((await r.publish(secret, [definition(id, "1.0.0")])).status, 403);
      isProved = true;
      assert.equal((await r.publish(secret, [definition(id, "1.0.0")])).status, 201);
    }, { settings: { oidcIssuers: [issuer.url] }, domains: () => Promise.resolve(isProved) });
  } finally {
    issuer.close();
  }
});
