/**
 * Rights: prefixes bind administrators, tokens never outrank or outlive their parents, ownership follows the domain.
 */
import assert from "node:assert/strict";
import {
  createToken,
  lockOwner,
  prefixHolder,
  reinstateAccount,
  revokeToken,
  type Scope,
  suspendAccount,
  type Token,
  tokenByHash,
} from "../../registry/store/accounts.ts";
import { createAccount, grantPrefix, lockLiveToken } from "../../registry/store/accounts.ts";
import type { Database, Queries } from "../../registry/store/database.ts";
import { findPackage, listVersions } from "../../registry/store/packages.ts";
import { publishRelease } from "../../registry/store/releases.ts";
import { outranks } from "../../registry/tokens.ts";
import { definition } from "../project/sample_plugins.ts";
import { sampleRelease } from "./sample_release.ts";
import { eachDatabase } from "./temp_database.ts";
import { type ProblemBody, realArchive, type TestRegistry, withRegistry } from "./test_registry.ts";

const DAY = 86_400_000;

interface NewToken {
  readonly secret: string;
  readonly token: { readonly id: string; readonly expiresAt: string; readonly parent: string | null };
}

const as = (secret: string, method = "GET"): RequestInit => ({
  method,
  headers: { authorization: `Bearer ${secret}` },
});

async function child(r: TestRegistry, parent: string, wanted: object = {}, days = 366): Promise<NewToken> {
  const body = { label: "child", scopes: ["publish"], ...wanted };
  return await r.get<NewToken>(`/api/tokens?days=${days}`, r.json("POST", body, parent));
}

/** Status and code of an answer. */
async function outcome(r: TestRegistry, path: string, init: RequestInit): Promise<string> {
  const { response, body } = await r.api(path, init);
  return response.ok ? String(response.status) : (body as ProblemBody).code;
}

Deno.test("the prefix of an administrator's token binds every action that it takes", () =>
  withRegistry(async (r) => {
    const root = r.registry.adminToken!;
    await r.author("bob", ["github.com/bob"]);
    const { token: mallory } = await r.author("mallory", ["xn--gthub-n4a.com"]);
    const held = await r.publish(mallory, [definition("xn--gthub-n4a.com/a/b", "1.0.0")]);
    assert.equal(held.status, 201);
    const other = await r.author("acme", ["github.com/acme"]);
    await r.publish(other.token, [definition("github.com/acme/kv", "1.0.0")]);
    const bound = (await child(r, root, { scopes: ["admin"], prefix: "github.com/bob" })).secret;
    const yank = r.json("POST", { reason: "x", severity: "other" }, bound);
    const cases: readonly (readonly [string, RequestInit])[] = [
      ["/api/accounts", r.json("POST", { name: "eve" }, bound)],
      ["/api/prefixes", r.json("POST", { prefix: "github.com/eve", account: "bob" }, bound)],
      ["/api/prefixes", r.json("POST", { prefix: "github.com", account: "bob" }, bound)],
      ["/api/prefixes", r.json("POST", { prefix: "bob.example" }, bound)],
      ["/api/prefixes/github.com:acme", as(bound, "DELETE")],
      ["/api/packages/xn--gthub-n4a.com:a:b/release", as(bound, "POST")],
      ["/api/packages/github.com:acme:kv/versions/1.0.0/yank", yank],
      ["/api/packages/github.com:acme:kv/versions/1.0.0/yank", as(bound, "DELETE")],
      ["/api/tokens", r.json("POST", { label: "x", scopes: ["publish"], prefix: "*", account: "bob" }, bound)],
      [`/api/tokens/${other.tokenId}`, as(bound, "DELETE")],
    ];
    for (const [path, init] of cases) {
      assert.equal(await outcome(r, path, init), "auth.scope", `${init.method} ${path}`);
    }
    const inside = r.json("POST", { prefix: "github.com/bob/tools", account: "bob" }, bound);
    assert.equal(await outcome(r, "/api/prefixes", inside), "201");
    assert.equal(await outcome(r, "/api/prefixes/github.com:bob:tools", as(bound, "DELETE")), "204");
    assert.equal(await outcome(r, "/api/prefixes/github.com:bob:tools", as(bound, "DELETE")), "prefix.unknown");
    assert.equal(await outcome(r, "/api/prefixes/..", as(bound, "DELETE")), "route.unknown");
    assert.equal(await outcome(r, "/api/prefixes/x", as(bound, "DELETE")), "request.json");
    assert.equal(await outcome(r, "/api/packages/xn--gthub-n4a.com:a:b/release", as(root, "POST")), "200");
  }));

Deno.test("a token ends with the token that made it: by time, by revocation, through generations", () =>
  withRegistry(async (r) => {
    const { token, tokenId } = await r.author("acme", ["github.com/acme"], { days: 10 });
    const first = await child(r, token, { scopes: ["publish", "owners"] });
    assert.equal(first.token.parent, tokenId);
    assert.equal(first.token.expiresAt, new Date(r.clock.at + 10 * DAY).toISOString());
    const second = await child(r, first.secret, {}, 3);
    assert.equal(second.token.expiresAt, new Date(r.clock.at + 3 * DAY).toISOString());
    const apart = await child(r, token);
    assert.equal(await outcome(r, `/api/tokens/${first.token.id}`, as(token, "DELETE")), "204");
    assert.equal(await outcome(r, "/api/account", as(second.secret)), "auth.invalid", "revoked with its parent");
    assert.equal(await outcome(r, "/api/account", as(apart.secret)), "200");
    assert.equal(await outcome(r, `/api/tokens/${tokenId}`, as(token, "DELETE")), "204", "a token revokes itself");
    assert.equal(await outcome(r, "/api/account", as(apart.secret)), "auth.invalid");
  }));

Deno.test("a child cannot revoke a token that outranks it, and an administrator can revoke those of others", () =>
  withRegistry(async (r) => {
    const { token, tokenId } = await r.author("acme", ["github.com/acme"]);
    const narrow = await child(r, token, { scopes: ["owners"], prefix: "github.com/acme/kv" });
    assert.equal(await outcome(r, `/api/tokens/${tokenId}`, as(narrow.secret, "DELETE")), "auth.scope");
    const bob = await r.author("bob", ["github.com/bob"]);
    assert.equal(await outcome(r, `/api/tokens/${bob.tokenId}`, as(token, "DELETE")), "token.unknown");
    assert.equal(await outcome(r, `/api/tokens/${bob.tokenId}`, as(r.registry.adminToken!, "DELETE")), "204");
    assert.equal(await outcome(r, "/api/account", as(bob.token)), "auth.invalid");
  }));

/** Scopes and prefix of two tokens, and whether the first has every right of the second. */
const RANKS: readonly (readonly [Scope[], string, Scope[], string, boolean])[] = [
  [["publish", "yank"], "*", ["publish"], "github.com/acme", true],
  [["publish"], "*", ["publish", "yank"], "github.com/acme", false],
  [["publish"], "github.com/acme", ["publish"], "*", false],
  [["publish"], "github.com/acme", ["publish"], "github.com/acme/kv", true],
  [["publish"], "github.com/acme", ["publish"], "github.com/acmex", false],
  [["admin"], "github.com/acme", ["publish", "owners"], "github.com/acme", true],
  [["admin"], "github.com/acme", ["publish"], "github.com", false],
  [["publish", "yank", "owners"], "*", ["admin"], "*", false],
];

Deno.test("a token outranks another when it has all of its rights", () => {
  const token = (scopes: Scope[], prefix: string): Token => ({
    id: "t",
    account: "a",
    label: "",
    scopes,
    prefix,
    createdAt: 0,
    expiresAt: 1,
  });
  for (const [scopes, prefix, others, below, verdict] of RANKS) {
    assert.equal(
      outranks(token(scopes, prefix), token(others, below)),
      verdict,
      `${scopes} ${prefix} ${others} ${below}`,
    );
  }
});

Deno.test("a package has no plugin below a prefix of another account", () =>
  withRegistry(async (r) => {
    const { token: acme } = await r.author("acme", ["github.com/acme"]);
    const { token: team } = await r.author("team", ["github.com/acme/team"]);
    const publish = async (token: string, ...ids: string[]): Promise<string> => {
      const { status, body } = await r.publish(token, ids.map((id) => definition(id, "1.0.0")));
      return status === 201 ? "201" : (body as ProblemBody).code;
    };
    assert.equal(await publish(acme, "github.com/acme", "github.com/acme/team/kv"), "owner.prefix");
    assert.equal(await publish(acme, "github.com/acme", "github.com/acme/Team"), "owner.prefix");
    // Nothing of the refused packages stays.
    assert.equal(await outcome(r, "/api/packages/github.com:acme", {}), "package.unknown");
    assert.equal(await publish(team, "github.com/acme/team", "github.com/acme/team/kv"), "201");
    assert.equal(await publish(acme, "github.com/acme", "github.com/acme/other"), "201");
  }));

Deno.test("an administrator's yank is not lifted or softened by the owner of the package", () =>
  withRegistry(async (r) => {
    const root = r.registry.adminToken!;
    const { token } = await r.author("acme", ["github.com/acme"]);
    await r.publish(token, [definition("github.com/acme/kv", "1.0.0")]);
    const address = "/api/packages/github.com:acme:kv/versions/1.0.0/yank";
    const yank = (secret: string, reason: string, severity = "security"): Promise<string> =>
      outcome(r, address, r.json("POST", { reason, severity }, secret));
    const lift = (secret: string): Promise<string> => outcome(r, address, as(secret, "DELETE"));
    const reason = async (): Promise<string | undefined> =>
      (await listVersions(r.database, "github.com/acme/kv"))[0].yanked?.reason;
    assert.deepEqual([await yank(token, "mine"), await lift(token), await yank(token, "mine")], ["200", "200", "200"]);
    assert.equal(await yank(root, "steals keys"), "200");
    assert.deepEqual([await lift(token), await yank(token, "typo", "other")], ["owner.yank", "owner.yank"]);
    assert.equal(await reason(), "steals keys");
    assert.equal(await lift(root), "200");
    assert.deepEqual([await reason(), await yank(token, "mine"), await lift(token)], [undefined, "200", "200"]);
    // An administrator who owns the package yanks as its owner.
    const own = (await child(r, root, { scopes: ["admin"], account: "acme" })).secret;
    assert.deepEqual([await yank(own, "mine"), await lift(token)], ["200", "200"]);
  }));

Deno.test("a domain that changes hands takes its packages along", async () => {
  const records = new Set(["old"]);
  await withRegistry(async (r) => {
    const old = await r.author("old", []);
    const fresh = await r.author("new", []);
    const claim = (token: string): Promise<string> =>
      outcome(r, "/api/prefixes", r.json("POST", { prefix: "kv.example" }, token));
    const yank = (token: string, version: string): Promise<string> =>
      outcome(
        r,
        `/api/packages/kv.example:store/versions/${version}/yank`,
        r.json("POST", { reason: "x", severity: "other" }, token),
      );
    const publish = async (token: string, version: string): Promise<string> => {
      const { status, body } = await r.publish(token, [definition("kv.example/store", version)]);
      return status === 201 ? "201" : (body as ProblemBody).code;
    };
    assert.equal(await claim(old.token), "201");
    assert.equal(await publish(old.token, "1.0.0"), "201");
    assert.equal(await publish(old.token, "1.1.0"), "201");
    assert.equal(await claim(fresh.token), "owner.prefix", "the record does not name it");
    records.add("new");
    assert.equal(await claim(fresh.token), "owner.taken", "the owner's proof still holds");
    records.delete("old");
    assert.equal(await yank(old.token, "1.1.0"), "owner.unproved", "a lost domain is a lost right to yank");
    assert.equal(await publish(old.token, "1.2.0"), "owner.unproved");
    assert.equal(await claim(fresh.token), "201");
    assert.equal(await yank(old.token, "1.1.0"), "owner.prefix");
    assert.equal(await publish(old.token, "1.2.0"), "owner.prefix");
    assert.equal(await yank(fresh.token, "1.1.0"), "200");
    assert.equal(await publish(fresh.token, "1.2.0"), "201");
    const { versions } = await r.get<{ versions: { version: string; publisherChanged: boolean }[] }>(
      "/api/packages/kv.example:store/versions",
    );
    assert.deepEqual(versions.map((v) => [v.version, v.publisherChanged]), [
      ["1.2.0", true],
      ["1.1.0", false],
      ["1.0.0", false],
    ]);
    const html = await (await fetch(`${r.url}/plugins/kv.example:store`)).text();
    assert.match(html, /published by another account than before/);
  }, { domains: (host, account) => Promise.resolve(host === "kv.example" && records.has(account)) });
});

eachDatabase("suspending an account revokes its tokens and those that they made for others", async (database) => {
  const make = async (id: string, account: string, parent?: string): Promise<void> =>
    await createToken(database, {
      id,
      account,
      label: id,
      scopes: ["publish"],
      prefix: "*",
      createdAt: 1,
      expiresAt: 100,
      ...(parent === undefined ? {} : { parent }),
    }, `hash-${id}`);
  const mallory = (await createAccount(database, "mallory", 1))!.id;
  const bob = (await createAccount(database, "bob", 1))!.id;
  await make("a", mallory);
  await make("b", bob, "a");
  await make("c", bob, "b");
  await make("d", bob);
  await make("e", mallory, "d");
  const live = async (): Promise<string> => {
    const tokens = await Promise.all(["a", "b", "c", "d", "e"].map((id) => tokenByHash(database, `hash-${id}`)));
    return tokens.flatMap((found) => found !== undefined && found.token.revokedAt === undefined ? found.token.id : [])
      .join(" ");
  };
  assert.equal(await live(), "a b c d e");
  assert.equal(await database.write((q) => suspendAccount(q, mallory, 2)), 4);
  assert.equal(await live(), "d", "a token that another account made for itself");
  await make("late", mallory, "d");
  assert.equal(await tokenByHash(database, "hash-late"), undefined, "a later token does not work");
  assert.equal(await database.write((q) => lockLiveToken(q, "late", 3)), false);
  assert.equal(await database.write((q) => suspendAccount(q, mallory, 4)), 1);
  assert.equal(await database.write((q) => reinstateAccount(q, mallory)), true);
  assert.equal(await database.write((q) => reinstateAccount(q, mallory)), false);
  assert.equal(await live(), "d", "revoked tokens stay revoked");
});

eachDatabase("revoking a token revokes its line and nothing else", async (database, open) => {
  const account = (await createAccount(database, "acme", 1))!.id;
  const make = async (id: string, parent?: string): Promise<void> =>
    await createToken(database, {
      id,
      account,
      label: id,
      scopes: ["publish"],
      prefix: "*",
      createdAt: 1,
      expiresAt: 100,
      ...(parent === undefined ? {} : { parent }),
    }, `hash-${id}`);
  await make("a");
  await make("b", "a");
  await make("c", "b");
  await make("d");
  assert.equal(await revokeToken(database, "b", 5), true);
  const revoked = async (id: string): Promise<number | undefined> =>
    (await tokenByHash(database, `hash-${id}`))!.token.revokedAt;
  assert.deepEqual(await Promise.all(["a", "b", "c", "d"].map(revoked)), [undefined, 5, 5, undefined]);
  assert.equal(await revokeToken(database, "b", 6), false);
  // A child is made only while its parent lives, and a revocation that runs at the same time sees the child.
  const other = open();
  await Promise.all([
    database.write(async (q) => {
      if (await lockLiveToken(q, "a", 7)) {
        await createToken(q, { ...(await tokenByHash(q, "hash-a"))!.token, id: "e", parent: "a" }, "hash-e");
      }
    }),
    other.write((q) => revokeToken(q, "a", 8)),
  ]);
  const late = await tokenByHash(database, "hash-e");
  assert.ok(late === undefined || late.token.revokedAt === 8);
});

eachDatabase("a package follows the owner of its prefix, and only that account publishes it", async (database) => {
  const [old, fresh] = [(await createAccount(database, "old", 1))!.id, (await createAccount(database, "new", 1))!.id];
  const grant = (account: string, from?: string): Promise<boolean> =>
    grantPrefix(database, { prefix: "kv.example", account, proof: "dns" }, 1, from);
  const publish = async (account: string, version: string, publishedAt: number): Promise<string> => {
    const release = await sampleRelease([definition("kv.example/store", version)], { account, publishedAt });
    return (await publishRelease(database, release, { perHour: 100, perDay: 100, perPlugin: 100 })).kind;
  };
  assert.equal(await grant(old), true);
  assert.equal(await publish(old, "1.0.0", 10), "created");
  assert.equal(await grant(fresh), false);
  assert.equal(await publish(fresh, "1.1.0", 11), "owner");
  assert.equal(await grant(fresh, old), true);
  assert.equal(await publish(old, "1.1.0", 12), "owner");
  assert.equal(await publish(fresh, "1.1.0", 13), "created");
  assert.equal(await publish(fresh, "1.2.0", 14), "created");
  const trail = await database.all("SELECT account FROM audit WHERE action = 'take-over'");
  assert.deepEqual(trail.map((row) => row.account), [fresh], "once");
  assert.deepEqual((await listVersions(database, "kv.example/store")).map((v) => v.publisherChanged), [
    false,
    true,
    false,
  ]);
  assert.equal((await findPackage(database, "kv.example/store"))!.summary.version, "1.2.0");
});

/**
 * Starts a transaction of another connection inside of one, and waits until it ends or waits for a lock. SQLite runs it
 * next.
 */
async function during<T>(
  database: Database,
  open: () => Database,
  work: (queries: Queries) => Promise<T>,
): Promise<{ readonly ends: Promise<T> }> {
  if (database.dialect === "sqlite") return { ends: database.write(work) };
  let ended = false;
  const ends = open().write(work).finally(() => ended = true);
  const observer = open();
  while (!ended && (await observer.all("SELECT 1 AS one FROM pg_locks WHERE NOT granted")).length === 0);
  return { ends };
}

eachDatabase("a token made by a descendant during a revocation is revoked with its line", async (database, open) => {
  const account = (await createAccount(database, "acme", 1))!.id;
  const make = async (queries: Queries, id: string, parent?: string): Promise<void> => {
    const token: Token = {
      id,
      account,
      label: id,
      scopes: ["publish"],
      prefix: "*",
      createdAt: 1,
      expiresAt: 100,
      ...(parent === undefined ? {} : { parent }),
    };
    await createToken(queries, token, `hash-${id}`);
  };
  await make(database, "a");
  await make(database, "b", "a");
  const { ends } = await database.write(async (queries) => {
    assert.equal(await lockLiveToken(queries, "b", 7), true);
    await make(queries, "c", "b");
    return await during(database, open, (q) => revokeToken(q, "a", 8));
  });
  assert.equal(await ends, true);
  assert.equal((await tokenByHash(database, "hash-c"))!.token.revokedAt, 8);
});

eachDatabase("a prefix moves only after the releases that rely on its owner", async (database, open) => {
  const [old, fresh] = [(await createAccount(database, "old", 1))!.id, (await createAccount(database, "new", 1))!.id];
  const prefix = "kv.example";
  await grantPrefix(database, { prefix, account: old, proof: "dns" }, 1);
  const { ends } = await database.write(async (queries) => {
    assert.equal((await lockOwner(queries, "kv.example/store"))!.account, old);
    const moved = await during(database, open, (q) => grantPrefix(q, { prefix, account: fresh, proof: "dns" }, 2, old));
    assert.equal((await prefixHolder(queries, prefix))!.account, old);
    return moved;
  });
  assert.equal(await ends, true);
  assert.equal((await prefixHolder(database, prefix))!.account, fresh);
  assert.equal(
    await grantPrefix(database, { prefix: "kv2.example", account: old, proof: "admin" }, 3),
    true,
  );
  const claim = { prefix: "kv2.example", account: fresh, proof: "dns" as const };
  assert.equal(await grantPrefix(database, claim, 4, old), false, "an administrator's grant does not lapse");
});

/** A database in which something happens right before the next transaction: after a request was authenticated. */
class InterveningDatabase implements Database {
  readonly #inner: Database;
  /** Happens once. */
  before: ((queries: Queries) => Promise<unknown>) | undefined;

  constructor(inner: Database) {
    this.#inner = inner;
  }

  get dialect(): Database["dialect"] {
    return this.#inner.dialect;
  }

  all: Database["all"] = (...query) => this.#inner.all(...query);
  run: Database["run"] = (...query) => this.#inner.run(...query);
  snapshot: Database["snapshot"] = (work) => this.#inner.snapshot(work);
  close: Database["close"] = () => this.#inner.close();

  async write<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    const { before } = this;
    this.before = undefined;
    if (before !== undefined) await this.#inner.write(before);
    return await this.#inner.write(work);
  }
}

const KV = "github.com/acme/kv";
const KV_RELEASE = "/api/packages/github.com:acme:kv/versions/1.0.0";

eachDatabase(
  "a token that is revoked, or an account that is suspended, during a request changes nothing any more",
  async (inner) => {
    const database = new InterveningDatabase(inner);
    await withRegistry(async (r) => {
      const root = r.registry.adminToken!;
      const { token, tokenId, account } = await r.author("acme", ["github.com/acme"]);
      const { tokenId: spare } = await r.author("spare", []);
      const { token: mallory } = await r.author("mallory", ["xn--gthub-n4a.com"]);
      assert.equal((await r.publish(mallory, [definition("xn--gthub-n4a.com/a/b", "1.0.0")])).status, 201);
      assert.equal((await r.publish(token, [definition(KV, "1.0.0")])).status, 201);
      const next = realArchive([definition(KV, "2.0.0")]);
      const changes: readonly (readonly [string, RequestInit])[] = [
        r.publishing(KV, "2.0.0", next, token),
        [`${KV_RELEASE}/yank`, r.json("POST", { reason: "x", severity: "other" }, token)],
        [`${KV_RELEASE}/yank`, as(token, "DELETE")],
        ["/api/tokens", r.json("POST", { label: "x", scopes: ["publish"] }, token)],
        ["/api/prefixes/github.com:acme", as(token, "DELETE")],
        ["/api/prefixes", r.json("POST", { prefix: "github.com/more", account: "acme" }, root)],
        ["/api/accounts", r.json("POST", { name: "eve" }, root)],
        ["/api/packages/xn--gthub-n4a.com:a:b/release", as(root, "POST")],
        [`/api/tokens/${spare}`, as(root, "DELETE")],
      ];
      const [admin] = await inner.all(
        "SELECT t.id, t.account FROM tokens t JOIN accounts a ON a.id = t.account WHERE t.scopes LIKE '%admin%'",
      );
      const ends: readonly [string, string, string][] = [
        ["UPDATE tokens SET revoked_at = 1 WHERE id IN (?, ?)", tokenId, String(admin!.id)],
        ["UPDATE accounts SET suspended_at = 1 WHERE id IN (?, ?)", account, String(admin!.account)],
      ];
      const state = async () => [
        await inner.all("SELECT version FROM releases ORDER BY version"),
        await inner.all("SELECT version FROM yanks"),
        await inner.all("SELECT id FROM tokens WHERE revoked_at IS NULL ORDER BY id"),
        await inner.all("SELECT prefix FROM prefixes ORDER BY prefix"),
        await inner.all("SELECT name FROM accounts ORDER BY name"),
        await inner.all("SELECT id, held FROM packages ORDER BY id"),
      ];
      const before = await state();
      for (const [sql, ...values] of ends) {
        for (const [path, init] of changes) {
          database.before = (q) => q.run(sql, ...values);
          assert.equal(await outcome(r, path, init), "auth.invalid", `${init.method} ${path}`);
          assert.equal(database.before, undefined, `${init.method} ${path} has a transaction`);
          await inner.write((q) => q.run("UPDATE tokens SET revoked_at = NULL"));
          await inner.write((q) => q.run("UPDATE accounts SET suspended_at = NULL"));
          assert.deepEqual(await state(), before, `${init.method} ${path}`);
        }
      }
    }, { database });
  },
);

eachDatabase("a prefix that moves to another account during a request takes the rights along", async (inner) => {
  const database = new InterveningDatabase(inner);
  await withRegistry(async (r) => {
    const { token, account } = await r.author("acme", ["github.com/acme"]);
    const bob = await r.author("bob", []);
    assert.equal((await r.publish(token, [definition(KV, "1.0.0")])).status, 201);
    const changes: readonly (readonly [string, RequestInit])[] = [
      r.publishing(KV, "2.0.0", realArchive([definition(KV, "2.0.0")]), token),
      [`${KV_RELEASE}/yank`, r.json("POST", { reason: "x", severity: "other" }, token)],
      [`${KV_RELEASE}/yank`, as(token, "DELETE")],
    ];
    const move = (to: string) => (q: Queries) => q.run("UPDATE prefixes SET account = ?", to);
    for (const [path, init] of changes) {
      database.before = move(bob.account);
      assert.equal(await outcome(r, path, init), "owner.prefix", `${init.method} ${path}`);
      await inner.write(move(account));
    }
    assert.equal((await inner.all("SELECT version FROM yanks")).length, 0);
  }, { database });
});
