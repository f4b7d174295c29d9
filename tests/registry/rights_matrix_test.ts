/**
 * The rights of every kind of token at every route of the API: one row per route, one column per kind. Each request is
 * valid but for the token. A route without a row fails here.
 */
import assert from "node:assert/strict";
import { API_ROUTES } from "../../registry/api_routes.ts";
import { grantPrefix } from "../../registry/store/accounts.ts";
import { addPublisher as storePublisher } from "../../registry/store/publishers.ts";
import { definition } from "../project/sample_plugins.ts";
import { FakeIssuer } from "./fake_issuer.ts";
import { type ProblemBody, realArchive, type TestRegistry, withRegistry } from "./test_registry.ts";

/**
 * The kinds. `publish`, `yank` and `owners` are tokens of the account that owns github.com/acme; `beside` is one with
 * all three scopes, for another prefix of that account; `stranger` is another account's; `bound` is an administrator's
 * for github.com/bob.
 */
const KINDS = [
  "none",
  "malformed",
  "expired",
  "revoked",
  "publish",
  "yank",
  "owners",
  "beside",
  "stranger",
  "bound",
  "admin",
] as const;
type Kind = typeof KINDS[number];

const ANY: readonly Kind[] = KINDS;
const VALID: readonly Kind[] = KINDS.slice(4);
const KV = "/api/packages/github.com:acme:kv";

interface Cell {
  /** The issuer of identity tokens that the registry accepts. */
  readonly issuer: FakeIssuer;
  readonly r: TestRegistry;
  readonly kind: Kind;
  /** The account of acme, and a token with all its rights. */
  readonly account: string;
  readonly acme: string;
  /** A number that no other cell has. */
  readonly number: number;
}

type Request = readonly [path: string, init: RequestInit];

async function otherToken({ r, acme }: Cell): Promise<Request> {
  const { token } = await r.get<{ token: { id: string } }>(
    "/api/tokens",
    r.json("POST", { label: "target", scopes: ["publish"], prefix: "github.com/acme/kv" }, acme),
  );
  return [`/api/tokens/${token.id}`, { method: "DELETE" }];
}

async function ownPrefix({ r, number, account }: Cell): Promise<Request> {
  const prefix = `github.com/acme/sub${number}`;
  await r.database.write((q) => grantPrefix(q, { prefix, account, proof: "admin" }, r.clock.at));
  return [`/api/prefixes/${prefix.replaceAll("/", ":")}`, { method: "DELETE" }];
}

/** A publisher of acme's; one with another subject than the tokens of the issuer has fits none. */
async function addPublisher({ r, account, issuer, number }: Cell, sub: string): Promise<string> {
  const id = `pub_${number}`;
  const publisher = { id, account, prefix: "github.com/acme", issuer: issuer.url, claims: { sub }, createdAt: 1 };
  await r.database.write((q) => storePublisher(q, publisher, 1000));
  return id;
}

async function ownPublisher(cell: Cell): Promise<Request> {
  return [`/api/trusted-publishers/${await addPublisher(cell, "x")}`, { method: "DELETE" }];
}

async function ownIdentity(cell: Cell): Promise<Request> {
  await addPublisher(cell, "workflow");
  const token = await cell.issuer.token(cell.r.url, { sub: "workflow" });
  return ["/api/oidc/token", cell.r.json("POST", { token, package: "github.com/acme/kv" })];
}

/** Route, the kinds that have the right, and a request. */
const ROWS:
  readonly (readonly [route: string, allowed: readonly Kind[], request: (cell: Cell) => Request | Promise<Request>])[] =
    [
      ["GET /api/packages", ANY, () => ["/api/packages", {}]],
      ["GET /api/packages/:name", ANY, () => [KV, {}]],
      ["GET /api/packages/:name/versions", ANY, () => [`${KV}/versions`, {}]],
      ["GET /api/packages/:name/versions/:version", ANY, () => [`${KV}/versions/1.0.0`, {}]],
      ["GET /api/packages/:name/installs", ANY, () => [`${KV}/installs`, {}]],
      ["GET /api/plugins/:id/index", ANY, () => ["/api/plugins/github.com:acme:kv/index", {}]],
      ["GET /api/contracts/:contract/providers", ANY, () => ["/api/contracts/github.com:acme:none@1/providers", {}]],
      ["GET /api/blobs/sha256/:hex", ANY, () => [`/api/blobs/sha256/${"0".repeat(64)}`, {}]],
      ["GET /api/changes", ANY, () => ["/api/changes", {}]],
      ["GET /api/keys", ANY, () => ["/api/keys", {}]],
      ["GET /api/log/checkpoint", ANY, () => ["/api/log/checkpoint", {}]],
      ["GET /api/log/entries", ANY, () => ["/api/log/entries", {}]],
      ["GET /api/log/consistency", ANY, () => ["/api/log/consistency?from=0", {}]],
      ["GET /api/packages/:name/versions/:version/inclusion", ANY, () => [`${KV}/versions/1.0.0/inclusion`, {}]],
      ["GET /api/openapi.json", ANY, () => ["/api/openapi.json", {}]],
      [
        "POST /api/plugins/index",
        ANY,
        ({ r }) => ["/api/plugins/index", r.json("POST", { ids: ["github.com/acme/kv"] })],
      ],
      ["POST /api/packages/:name/installs", ANY, ({ r }) => [`${KV}/installs`, r.json("POST", { version: "1.0.0" })]],
      ["GET /api/account", VALID, () => ["/api/account", {}]],
      ["GET /api/tokens", ["owners", "beside", "stranger", "bound", "admin"], () => ["/api/tokens", {}]],
      // Each makes a token of its own account and prefix, which every token with this scope may.
      [
        "POST /api/tokens",
        ["owners", "beside", "stranger", "bound", "admin"],
        ({ r, kind }) => [
          "/api/tokens",
          r.json("POST", { label: "x", scopes: [kind === "owners" ? "owners" : "publish"] }),
        ],
      ],
      ["DELETE /api/tokens/:token", ["admin"], otherToken],
      [
        "POST /api/prefixes",
        ["admin"],
        ({ r, number }) => ["/api/prefixes", r.json("POST", { prefix: `github.com/p${number}`, account: "acme" })],
      ],
      ["DELETE /api/prefixes/:prefix", ["owners", "admin"], ownPrefix],
      ["GET /api/transfers", ["owners", "beside", "stranger", "bound", "admin"], () => ["/api/transfers", {}]],
      ["POST /api/packages/:name/transfer", ["owners"], ({ r }) => [
        `${KV}/transfer`,
        r.json("POST", { account: "bob" }),
      ]],
      // Who has no part in an offer is told that there is none (transfer_test.ts).
      [
        "DELETE /api/packages/:name/transfer",
        ["owners", "stranger", "admin"],
        () => [`${KV}/transfer`, { method: "DELETE" }],
      ],
      ["POST /api/packages/:name/transfer/accept", ["owners", "stranger", "admin"], () => [
        `${KV}/transfer/accept`,
        { method: "POST" },
      ]],
      ["GET /api/oidc", ANY, () => ["/api/oidc", {}]],
      // The identity token is the only right that counts here.
      ["POST /api/oidc/token", ANY, ownIdentity],
      ["GET /api/trusted-publishers", ["owners", "beside", "stranger", "bound", "admin"], () => [
        "/api/trusted-publishers",
        {},
      ]],
      ["POST /api/trusted-publishers", [], ({ r, issuer }) => [
        "/api/trusted-publishers",
        r.json("POST", { prefix: "github.com/acme", issuer: issuer.url, claims: { sub: "x" } }),
      ]],
      ["DELETE /api/trusted-publishers/:publisher", ["owners", "admin"], ownPublisher],
      ["POST /api/accounts", ["admin"], ({ r, number }) => ["/api/accounts", r.json("POST", { name: `a${number}` })]],
      ["POST /api/packages/:name/release", ["admin"], () => [`${KV}/release`, { method: "POST" }]],
      [
        "POST /api/packages/:name/versions/:version/yank",
        ["yank", "admin"],
        ({ r }) => [`${KV}/versions/1.0.0/yank`, r.json("POST", { reason: "x", severity: "other" })],
      ],
      [
        "DELETE /api/packages/:name/versions/:version/yank",
        ["yank", "admin"],
        async ({ r }) => {
          // An administrator's yank, which the owner may not lift, has a test of its own (rights_test.ts).
          await r.database.write((q) => q.run("DELETE FROM yanks"));
          return [`${KV}/versions/1.0.0/yank`, { method: "DELETE" }];
        },
      ],
      [
        "POST /api/packages/:name/deprecation",
        ["yank", "admin"],
        ({ r }) => [`${KV}/deprecation`, r.json("POST", { message: "x" })],
      ],
      ["DELETE /api/packages/:name/deprecation", ["yank", "admin"], () => [`${KV}/deprecation`, { method: "DELETE" }]],
      [
        "PUT /api/packages/:name/versions/:version",
        ["publish"],
        ({ r, number }) => {
          const version = `2.0.${number}`;
          return r.publishing(
            "github.com/acme/kv",
            version,
            realArchive([definition("github.com/acme/kv", version)]),
            "",
          );
        },
      ],
    ];

const SECRETS = new Map<Kind, string>();

/** Makes one token of each kind. */
async function makeTokens(r: TestRegistry): Promise<Pick<Cell, "account" | "acme">> {
  const { token: acme, account } = await r.author("acme", ["github.com/acme"]);
  const admin = r.registry.adminToken!;
  const make = async (parent: string, scopes: readonly string[], prefix = "*", days = 90) =>
    await r.get<{ secret: string; token: { id: string } }>(
      `/api/tokens?days=${days}`,
      r.json("POST", { label: "kind", scopes, prefix }, parent),
    );
  const all = ["publish", "yank", "owners"];
  const revoked = await make(acme, all);
  await r.api(`/api/tokens/${revoked.token.id}`, { method: "DELETE", headers: { authorization: `Bearer ${acme}` } });
  const { token: stranger } = await r.author("bob", ["github.com/bob"]);
  const kinds: readonly (readonly [Kind, string])[] = [
    ["malformed", "waft_no"],
    ["expired", (await make(acme, all, "*", 1)).secret],
    ["revoked", revoked.secret],
    ["publish", (await make(acme, ["publish"])).secret],
    ["yank", (await make(acme, ["yank"])).secret],
    ["owners", (await make(acme, ["owners"])).secret],
    ["beside", (await make(acme, all, "github.com/acme/beside")).secret],
    ["stranger", stranger],
    ["bound", (await make(admin, ["admin"], "github.com/bob")).secret],
    ["admin", admin],
  ];
  for (const [kind, secret] of kinds) SECRETS.set(kind, secret);
  return { account, acme };
}

/** Codes of refusals for lack of rights. */
const REFUSED = /^(?:auth|owner)\.|^(?:token|publisher)\.unknown$/;

Deno.test("rights: every route has a row", () => {
  assert.deepEqual(ROWS.map(([route]) => route).sort(), API_ROUTES.map((r) => `${r.method} ${r.path}`).sort());
});

Deno.test("rights: every kind of token at every route", async () => {
  let now = 0;
  const issuer = await new FakeIssuer(() => now).listen();
  await withRegistry(async (r) => {
    const owner = { ...await makeTokens(r), issuer };
    assert.equal((await r.publish(owner.acme, [definition("github.com/acme/kv", "1.0.0")])).status, 201);
    r.clock.at += 2 * 86_400_000;
    now = Math.floor(r.clock.at / 1000);
    let number = 0;
    const wrong: string[] = [];
    for (const [route, allowed, request] of ROWS) {
      for (const kind of KINDS) {
        const [path, init] = await request({ r, kind, ...owner, number: number++ });
        const headers = new Headers(init.headers);
        headers.delete("authorization");
        const secret = SECRETS.get(kind);
        if (secret !== undefined) headers.set("authorization", `Bearer ${secret}`);
        const response = await fetch(r.url + path, { ...init, headers });
        const text = await response.text();
        const code = response.ok ? String(response.status) : (JSON.parse(text) as ProblemBody).code;
        const isAllowed = !REFUSED.test(code);
        if (isAllowed !== allowed.includes(kind)) wrong.push(`${route} as ${kind}: ${code}`);
        if (kind === "none" && !isAllowed) assert.equal(code, "auth.missing", route);
        if (["malformed", "expired", "revoked"].includes(kind) && !isAllowed) assert.equal(code, "auth.invalid", route);
        // A refusal of a valid request proves something only if the request is valid.
        if (isAllowed) assert.ok(response.status < 500 && !/^request\./.test(code), `${route} as ${kind}: ${code}`);
      }
    }
    assert.deepEqual(wrong, []);
    assert.equal(number, ROWS.length * KINDS.length);
  }, { settings: { oidcIssuers: [issuer.url] } }).finally(() => issuer.close());
});
