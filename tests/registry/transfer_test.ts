/**
 * Transfers of packages, on SQLite and on PostgreSQL: offer, acceptance, what follows the package and what does not,
 * and the feed of changes.
 */
import assert from "node:assert/strict";
import { ProjectError } from "../../project/base/diagnostic.ts";
import { transferPackage } from "../../project/ops/project/transfer.ts";
import { grantPrefix, ownerOf } from "../../registry/store/accounts.ts";
import { definition } from "../project/sample_plugins.ts";
import { TempProject } from "../project/temp_project.ts";
import { eachDatabase } from "./temp_database.ts";
import { type TestRegistry, withRegistry } from "./test_registry.ts";

const KV = "github.com/acme/kv";
const OF_KV = "/api/packages/github.com:acme:kv";
const DAY = 86_400_000;

const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const offer = (r: TestRegistry, token: string, account: string) =>
  r.api(`${OF_KV}/transfer`, r.json("POST", { account }, token));
const accept = (r: TestRegistry, token: string) => r.api(`${OF_KV}/transfer/accept`, { method: "POST", ...as(token) });
const drop = (r: TestRegistry, token: string) => r.api(`${OF_KV}/transfer`, { method: "DELETE", ...as(token) });
const codeOf = ({ response, body }: { response: Response; body: unknown }): string =>
  response.ok ? "ok" : (body as { code: string }).code;

interface Change {
  readonly change: string;
  readonly name: string;
  readonly version: string | null;
  readonly deprecated: string | null;
}

eachDatabase(
  "an accepted offer moves a package, and those below it, but nothing beside it",
  (_database, open) =>
    withRegistry(async (r) => {
      const acme = await r.author("acme", ["github.com/acme", `${KV}/kept`]);
      const bob = await r.author("bob", []);
      const eve = await r.author("eve", []);
      for (const id of [KV, `${KV}/part`, `${KV}/kept/x`, "github.com/acme/other"]) {
        assert.equal((await r.publish(acme.token, [definition(id, "1.0.0")])).status, 201, id);
      }
      assert.equal(codeOf(await accept(r, bob.token)), "transfer.unknown", "nothing is offered yet");
      assert.equal(codeOf(await offer(r, acme.token, "bob")), "ok");
      const { offers } = await r.get<{ offers: unknown[] }>("/api/transfers", as(bob.token));
      const offeredAt = new Date(r.clock.at).toISOString();
      assert.deepEqual(offers, [{ name: KV, from: "acme", to: "bob", offeredAt }]);
      assert.deepEqual((await r.get<{ offers: unknown[] }>("/api/transfers", as(eve.token))).offers, []);
      assert.equal((await r.publish(bob.token, [definition(KV, "1.0.1")])).status, 403, "an offer gives no right");
      assert.equal(codeOf(await accept(r, eve.token)), "transfer.unknown", "the offer is for another account");
      assert.equal(codeOf(await drop(r, eve.token)), "transfer.unknown");
      r.clock.at += 1000;
      assert.equal(codeOf(await accept(r, bob.token)), "ok");
      assert.equal(codeOf(await accept(r, bob.token)), "transfer.unknown", "once");
      r.clock.at += 1000;
      assert.equal((await r.publish(bob.token, [definition(KV, "1.0.1")])).status, 201);
      assert.equal((await r.publish(bob.token, [definition(`${KV}/part`, "1.0.1")])).status, 201);
      assert.equal((await r.publish(acme.token, [definition(KV, "1.0.2")])).status, 403);
      assert.equal((await r.publish(bob.token, [definition("github.com/acme/other", "1.0.1")])).status, 403);
      assert.equal((await r.publish(acme.token, [definition(`${KV}/kept/x`, "1.0.1")])).status, 201);
      const owners = await r.database.all("SELECT id, owner FROM packages ORDER BY id");
      assert.deepEqual(owners.map(({ id, owner }) => [id, owner]), [
        [KV, bob.account],
        [`${KV}/kept/x`, acme.account],
        [`${KV}/part`, bob.account],
        ["github.com/acme/other", acme.account],
      ]);
      const yank = r.json("POST", { reason: "x", severity: "other" }, acme.token);
      assert.equal(codeOf(await r.api(`${OF_KV}/versions/1.0.0/yank`, yank)), "owner.prefix", "older releases follow");
      // The version list shows that another account published; back again, the prefix moves.
      const { versions } = await r.get<{ versions: { version: string; publisherChanged: boolean }[] }>(
        `${OF_KV}/versions`,
      );
      assert.deepEqual(versions.map((v) => [v.version, v.publisherChanged]), [["1.0.1", true], ["1.0.0", false]]);
      assert.equal(codeOf(await offer(r, bob.token, "acme")), "ok");
      assert.equal(codeOf(await accept(r, acme.token)), "ok");
      assert.equal((await ownerOf(r.database, KV))!.account, acme.account);
    }, { database: open() }),
);

Deno.test("offers end: withdrawn, declined, expired, replaced, or without their owner", () =>
  withRegistry(async (r) => {
    const acme = await r.author("acme", ["github.com/acme"]);
    const bob = await r.author("bob", []);
    const carl = await r.author("carl", []);
    assert.equal((await r.publish(acme.token, [definition(KV, "1.0.0")])).status, 201);
    for (const who of [acme, bob]) {
      assert.equal(codeOf(await offer(r, acme.token, "bob")), "ok");
      assert.equal(codeOf(await drop(r, who.token)), "ok");
      assert.equal(codeOf(await accept(r, bob.token)), "transfer.unknown");
    }
    assert.equal(codeOf(await offer(r, acme.token, "bob")), "ok");
    assert.equal(codeOf(await offer(r, acme.token, "carl")), "ok");
    assert.equal(codeOf(await accept(r, bob.token)), "transfer.unknown", "a later offer replaces it");
    r.clock.at += 30 * DAY;
    assert.equal(codeOf(await accept(r, carl.token)), "transfer.unknown", "after 30 days");
    assert.equal(codeOf(await offer(r, acme.token, "carl")), "ok");
    await r.database.write((q) => grantPrefix(q, { prefix: KV, account: bob.account, proof: "admin" }, r.clock.at));
    assert.equal(codeOf(await accept(r, carl.token)), "transfer.unknown", "who offered it no longer owns it");
    assert.equal(codeOf(await offer(r, acme.token, "carl")), "owner.prefix");

    assert.equal(codeOf(await offer(r, bob.token, "bob")), "owner.taken");
    assert.equal(codeOf(await offer(r, bob.token, "unknown")), "account.unknown");
    await r.database.run("UPDATE accounts SET suspended_at = 1 WHERE name = 'carl'");
    assert.equal(codeOf(await offer(r, bob.token, "carl")), "account.suspended");
    await r.database.run("UPDATE prefixes SET proof = 'dns' WHERE prefix = ?", KV);
    assert.equal(codeOf(await offer(r, bob.token, "acme")), "owner.prefix", "DNS decides");
    for (const body of [{}, { account: "" }, { account: 1 }, { account: "acme", more: 1 }]) {
      assert.equal((await r.problem(`${OF_KV}/transfer`, r.json("POST", body, bob.token))).code, "request.json");
    }
  }));

eachDatabase(
  "the feed has deprecations and transfers, those that were taken back not",
  (_database, open) =>
    withRegistry(async (r) => {
      const acme = await r.author("acme", ["github.com/acme"]);
      const bob = await r.author("bob", []);
      assert.equal((await r.publish(acme.token, [definition(KV, "1.0.0")])).status, 201);
      const deprecation = `${OF_KV}/deprecation`;
      const changes = async (): Promise<(readonly [string, string | null, string | null])[]> => {
        const found: Change[] = [];
        // Pages of one show that their order is total.
        for (let cursor: string | null = ""; cursor !== null;) {
          const page: { changes: Change[]; nextCursor: string | null } = await r.get(
            `/api/changes?limit=1${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`,
          );
          found.push(...page.changes);
          cursor = page.nextCursor;
        }
        return found.map(({ change, version, deprecated }) => [change, version, deprecated] as const);
      };
      r.clock.at += 1000;
      await r.get(deprecation, r.json("POST", { message: "Use <b>another</b>" }, acme.token));
      await r.get(deprecation, r.json("POST", { message: "Loses keys", version: "1.0.0" }, acme.token));
      r.clock.at += 1000;
      await offer(r, acme.token, "bob");
      assert.equal(codeOf(await accept(r, bob.token)), "ok");
      assert.deepEqual(await changes(), [
        ["transferred", null, null],
        ["deprecated", null, "Use <b>another</b>"],
        ["deprecated", "1.0.0", "Loses keys"],
        ["published", "1.0.0", null],
      ]);
      const feed = await (await fetch(`${r.url}/changes.atom`)).text();
      assert.match(feed, /<summary>github\.com\/acme\/kv was transferred: Another account publishes/);
      assert.match(feed, /<summary>github\.com\/acme\/kv was deprecated: Use &lt;b&gt;another/);
      assert.match(feed, /<summary>github\.com\/acme\/kv 1\.0\.0 was deprecated: Loses keys/);
      const ids = [...feed.matchAll(/<id>([^<]+)<\/id>/g)].map(([, id]) => id);
      assert.equal(new Set(ids).size, 5, "a feed and four entries");
      const page = await (await fetch(`${r.url}/changes`)).text();
      assert.match(page, /Loses keys/);
      assert.match(page, /Use &lt;b&gt;another/);
      await r.get(deprecation, { method: "DELETE", ...as(bob.token) });
      assert.deepEqual((await changes()).map(([change]) => change), ["transferred", "deprecated", "published"]);
    }, { database: open() }),
);

Deno.test("waft plugin transfer offers, lists, accepts and cancels", () =>
  withRegistry(async (r) => {
    const project = new TempProject();
    try {
      const acme = await r.author("acme", ["github.com/acme"]);
      const bob = await r.author("bob", []);
      assert.equal((await r.publish(acme.token, [definition(KV, "1.0.0")])).status, 201);
      const transfer = async (token: string, request: Partial<Parameters<typeof transferPackage>[2]>) => {
        const choices = { registry: r.url, fetch: globalThis.fetch, env: { WAFT_TOKEN: token } };
        const context = await project.context(undefined, choices);
        return await transferPackage(context, project.root, { accept: false, cancel: false, ...request });
      };
      const codeOf = async (action: Promise<unknown>): Promise<string> => {
        try {
          await action;
          return "ok";
        } catch (error) {
          if (!(error instanceof ProjectError)) throw error;
          return error.diagnostics[0].code;
        }
      };
      const made = await transfer(acme.token, { package: KV, to: "bob" });
      assert.deepEqual([made.done, made.offers.map(({ name, to }) => [name, to])], ["offered", [[KV, "bob"]]]);
      assert.equal((await transfer(bob.token, { package: KV, cancel: true })).offers.length, 0);
      await transfer(acme.token, { package: KV, to: "bob" });
      assert.equal((await transfer(bob.token, {})).offers.length, 1);
      assert.deepEqual((await transfer(bob.token, { package: KV, accept: true })).done, "accepted");
      assert.equal((await ownerOf(r.database, KV))!.account, bob.account);
      for (
        const wrong of [{ package: KV }, { accept: true }, { package: KV, accept: true, cancel: true }, { to: "bob" }]
      ) assert.equal(await codeOf(transfer(bob.token, wrong)), "usage.transfer", JSON.stringify(wrong));
      assert.equal(await codeOf(transfer(acme.token, { package: KV, to: "bob" })), "auth.refused");
      assert.equal(await codeOf(transfer(bob.token, { package: KV, accept: true })), "registry.not-found");
    } finally {
      project.remove();
    }
  }));
