/**
 * The conformance suite of the store: the same tests on SQLite and on PostgreSQL.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, readdirSync, readFileSync, statSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { Definition } from "../../project/definitions/definition.ts";
import {
  accountByName,
  createAccount,
  createToken,
  dropPrefix,
  grantPrefix,
  listPrefixes,
  listTokens,
  ownerOf,
  revokeToken,
  type Token,
  tokenByHash,
} from "../../registry/store/accounts.ts";
import { blobSize, readBlob } from "../../registry/store/blobs.ts";
import { restoreBackup, writeBackup } from "../../registry/store/backup.ts";
import { copyDatabase, TABLES } from "../../registry/store/copy.ts";
import {
  containing,
  type Database,
  first,
  numberOf,
  type Row,
  StoreUnavailable,
} from "../../registry/store/database.ts";
import { countInstall, DAY, installSeries, refreshCounts } from "../../registry/store/installs.ts";
import { currentKey, listKeys, readDocuments, sharedSecret, writeDocuments } from "../../registry/store/keys.ts";
import { listChanges } from "../../registry/store/changes.ts";
import { migrate, MIGRATIONS } from "../../registry/store/migrations.ts";
import { MAX_INDEX_BYTES } from "../../project/packages/source.ts";
import { endorsementBytes, isSigned } from "../../project/packages/release_record.ts";
import {
  facetCounts,
  findPackage,
  findRelease,
  indexState,
  listIds,
  listPackages,
  listProviders,
  type ListQuery,
  listVersions,
  packageOfPlugin,
  pluginIndex,
} from "../../registry/store/packages.ts";
import { publishRelease, releaseHold, unyankRelease, yankRelease } from "../../registry/store/releases.ts";
import { PostgresDatabase } from "../../registry/store/postgres.ts";
import { SqliteDatabase } from "../../registry/store/sqlite.ts";
import { makeSigningKey, type SigningKey } from "../../registry/signing.ts";
import { CODEC, codecDefinition, definition, KV, kvDefinition } from "../project/sample_plugins.ts";
import { HANG_MS } from "../support/hang.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { sampleRelease } from "./sample_release.ts";
import { DATABASES, eachDatabase, SQLITE } from "./temp_database.ts";

const AT = Date.UTC(2026, 7, 1);
const LIMITS = { perHour: 100, perDay: 100, perPlugin: 100 };
const ALL: ListQuery = { q: "", facets: {}, sort: "name", limit: 50 };

/** An account; the first one, acme, owns the hosts of the samples. */
async function account(database: Database, name = "acme"): Promise<string> {
  const { id } = (await createAccount(database, name, AT))!;
  const hosts = name === "acme" ? ["github.com", "gitlab.com"] : [];
  for (const prefix of hosts) await grantPrefix(database, { prefix, account: id, proof: "admin" }, AT);
  return id;
}

async function publish(
  database: Database,
  owner: string,
  definitions: Definition | readonly Definition[],
  more: object = {},
): Promise<string> {
  const list = Array.isArray(definitions) ? definitions as Definition[] : [definitions as Definition];
  return (await publishRelease(database, await sampleRelease(list, { account: owner, ...more }), LIMITS)).kind;
}

/** Part of an archive in the database. */
function readPart(database: Database, digest: string, start: number, length: number): Promise<Uint8Array> {
  return readBlob(database, digest, { start, length, size: start + length, objects: undefined });
}

eachDatabase("migrations are applied once, in order, and checked", async (database, open) => {
  assert.equal(await migrate(database), 0);
  assert.equal(await migrate(open()), 0);
  const changed = [{ ...MIGRATIONS[0], statements: ["CREATE TABLE other (a {int}){strict}"] }, ...MIGRATIONS.slice(1)];
  await assert.rejects(migrate(database, changed), /Migration 1 .* is not the one that was applied/);
  await assert.rejects(migrate(database, MIGRATIONS.slice(0, 1)), /newer registry/);
  assert.equal(
    await migrate(database, [...MIGRATIONS, { name: "more", statements: ["CREATE TABLE more (a {int}){strict}"] }]),
    1,
  );
});

eachDatabase("releases of before the notes have none after the migration", async (database, open) => {
  const acme = await account(database);
  assert.equal(await publish(database, acme, codecDefinition("1.0.0")), "created");
  const number = MIGRATIONS.findIndex(({ name }) => name === "release notes") + 1;
  await database.run("ALTER TABLE releases DROP COLUMN notes");
  await database.run("DELETE FROM migrations WHERE number = ?", number);
  const migrated = await Promise.all([migrate(database), migrate(open())]);
  assert.deepEqual(migrated.sort(), [0, 1], "once, by either of two processes");
  assert.equal(await publish(database, acme, codecDefinition("1.1.0"), { notes: "Faster." }), "created");
  const notes = async (version: string) => (await findRelease(database, CODEC, version))!.notes;
  assert.deepEqual([await notes("1.0.0"), await notes("1.1.0")], ["", "Faster."]);
  const { changes } = await listChanges(database, { limit: 10 });
  assert.deepEqual(changes.map((change) => change.notes).sort(), ["Faster.", null]);
});

eachDatabase("a migration that fails leaves nothing behind", async (database) => {
  const broken = [...MIGRATIONS, {
    name: "broken",
    statements: ["CREATE TABLE good (a {int}){strict}", "CREATE TABLE"],
  }];
  await assert.rejects(migrate(database, broken));
  await assert.rejects(database.all("SELECT * FROM good"));
  assert.equal(await migrate(database), 0);
});

eachDatabase("a write happens whole or not at all, and others wait for its end", async (database, open) => {
  await assert.rejects(
    database.write(async (q) => {
      await createAccount(q, "half", AT);
      throw new Error("stop");
    }),
    /stop/,
  );
  assert.equal(await accountByName(database, "half"), undefined);
  const other = open();
  await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      (i % 2 === 0 ? database : other).write(async (q) => {
        const row = await first(q, "SELECT count(*) AS n FROM accounts");
        await createAccount(q, `account-${i}`, numberOf(row!, "n"));
      })),
  );
  assert.equal(numberOf((await first(database, "SELECT count(*) AS n FROM accounts"))!, "n"), 40);
});

eachDatabase("accounts, tokens and prefixes", async (database) => {
  const acme = await account(database);
  const bob = await account(database, "bob");
  assert.equal(await createAccount(database, "acme", AT), undefined);
  const token: Token = {
    id: "t1",
    account: acme,
    label: "ci",
    scopes: ["publish", "yank"],
    prefix: "github.com/acme",
    createdAt: AT,
    expiresAt: AT + DAY,
  };
  await createToken(database, token, "hash-1");
  assert.deepEqual(await tokenByHash(database, "hash-1"), { token, accountName: "acme" });
  assert.equal(await tokenByHash(database, "hash-2"), undefined);
  assert.equal(await revokeToken(database, "t0", AT), false);
  assert.equal(await revokeToken(database, "t1", AT + 1), true);
  assert.equal(await revokeToken(database, "t1", AT + 2), false);
  assert.equal((await listTokens(database, acme))[0].revokedAt, AT + 1);
  await database.run("UPDATE accounts SET suspended_at = ? WHERE id = ?", AT, acme);
  assert.equal(await tokenByHash(database, "hash-1"), undefined);

  const owned = { prefix: "github.com/acme", account: acme, proof: "admin" } as const;
  assert.equal(await grantPrefix(database, owned, AT), true);
  assert.equal(await grantPrefix(database, owned, AT), true);
  assert.equal(await grantPrefix(database, { ...owned, account: bob }, AT), false);
  await grantPrefix(database, { prefix: "github.com/acme/kv", account: bob, proof: "dns" }, AT);
  assert.equal((await ownerOf(database, "GitHub.com/Acme/other"))!.account, acme);
  assert.equal((await ownerOf(database, "github.com/acme/kv/sub"))!.account, bob);
  assert.equal((await ownerOf(database, "github.com/acmeother/kv"))!.prefix, "github.com");
  assert.equal(await ownerOf(database, "example.com/acme"), undefined);
  const prefixes = ["github.com", "github.com/acme", "gitlab.com"];
  assert.deepEqual((await listPrefixes(database, acme)).map((p) => p.prefix), prefixes);
  assert.equal(await dropPrefix(database, "github.com/acme", bob), false);
  assert.equal(await dropPrefix(database, "github.com/acme", acme), true);
});

eachDatabase("a published release reads back whole", async (database) => {
  const acme = await account(database);
  const sub = definition(`${KV}/sub`, "1.2.3", {
    authorities: [{ name: "random", mode: "optional", reason: "Salts." }],
  });
  assert.equal(await publish(database, acme, [kvDefinition(), sub]), "created");
  const release = (await findRelease(database, KV, "1.2.3"))!;
  const expected = await sampleRelease([kvDefinition(), sub], { account: acme });
  assert.deepEqual(release.plugins.map((p) => p.id), [KV, `${KV}/sub`]);
  assert.deepEqual(release.metadata, JSON.parse(JSON.stringify(expected.metadata)));
  assert.equal(release.artifact.digest, expected.artifact);
  assert.deepEqual(release.files, expected.files);
  assert.equal(await blobSize(database, expected.artifact), expected.archive.length);
  assert.deepEqual(await readPart(database, expected.artifact, 0, expected.archive.length), expected.archive);
  assert.deepEqual(await readPart(database, expected.artifact, 10, 7), expected.archive.subarray(10, 17));
  assert.equal(await blobSize(database, "sha256:none"), undefined);
  assert.equal(await packageOfPlugin(database, `${KV}/sub`), KV);
  const index = (await pluginIndex(database, KV))!;
  assert.equal(index.package, KV);
  assert.equal(index.releases[0].firstPublish, true);
  assert.deepEqual(index.releases[0].requires, { [CODEC]: "^2.0.0" });
  assert.equal(await pluginIndex(database, "github.com/acme/none"), undefined);
  const { summary } = (await findPackage(database, KV))!;
  assert.deepEqual(summary.authorities, [
    "caller.memory.read",
    "clock.wall",
    "fs.write",
    "import.define",
    "random",
  ]);
  assert.deepEqual(await listProviders(database, "github.com/acme/contracts/kv@1"), [
    { id: KV, package: KV, version: "1.2.3" },
  ]);
});

eachDatabase("versions are immutable and ids are protected", async (database) => {
  const acme = await account(database);
  const bob = await account(database, "bob");
  assert.equal(await publish(database, acme, codecDefinition("2.0.1")), "created");
  assert.equal(await publish(database, acme, codecDefinition("2.0.1")), "same");
  assert.equal(await publish(database, acme, { ...codecDefinition("2.0.1"), description: "Other" }), "different");
  assert.equal(await publish(database, acme, codecDefinition("2.0.1+build.2")), "build-differs");
  assert.equal(await publish(database, bob, codecDefinition("2.0.2")), "owner");
  assert.equal(await publish(database, acme, definition("github.com/Acme/C0dec", "1.0.0")), "twin");
  assert.equal(await publish(database, acme, definition("gitlab.com/acme/codec", "1.0.0")), "created");
  assert.equal(
    await publish(database, acme, [
      definition("github.com/acme/a", "1.0.0"),
      definition("github.com/acme/a/b", "1.0.0"),
    ]),
    "created",
  );
  assert.equal(await publish(database, acme, definition("github.com/acme/a/b", "1.0.0")), "plugin-taken");
  const limited = await publishRelease(
    database,
    await sampleRelease([codecDefinition("3.0.0")], { account: acme, publishedAt: AT + 1000 }),
    { perHour: 3, perDay: 100, perPlugin: 100 },
  );
  assert.deepEqual(limited, { kind: "too-many", retryAfterSeconds: 3599 });
  assert.deepEqual((await listVersions(database, CODEC)).map((v) => v.version), ["2.0.1"]);
});

eachDatabase("a plugin has no more releases than clients read in one index", async (database) => {
  const acme = await account(database);
  const limits = { ...LIMITS, perPlugin: 2 };
  const add = async (version: string, limit = limits) =>
    await publishRelease(database, await sampleRelease([codecDefinition(version)], { account: acme }), limit);
  assert.deepEqual(await add("1.0.0"), { kind: "created" });
  assert.deepEqual(await add("1.0.1"), { kind: "created" });
  assert.deepEqual(await add("1.0.2"), { kind: "full", id: CODEC });
  assert.deepEqual((await listVersions(database, CODEC)).map((v) => v.version), ["1.0.1", "1.0.0"]);
  const facts = JSON.stringify({ requires: {}, compatibility: {}, padding: "x".repeat(MAX_INDEX_BYTES) });
  await database.run("UPDATE definitions SET facts = ? WHERE version = ?", facts, "1.0.0");
  assert.deepEqual(await add("1.0.2", LIMITS), { kind: "full", id: CODEC });
});

eachDatabase("the state of an index is another after each change of the index, and only then", async (database) => {
  const acme = await account(database);
  const states = new Set<string>();
  const changes = async (action: () => Promise<unknown>) => {
    await action();
    const { state } = (await indexState(database, CODEC))!;
    assert.equal(states.has(state), false);
    states.add(state);
    assert.equal((await indexState(database, CODEC))!.state, state);
  };
  const of = { package: CODEC, version: "2.0.0", account: acme, at: AT + 1, isAdmin: false };
  const yank = { ...of, reason: "broken", severity: "broken" };
  assert.equal(await indexState(database, CODEC), undefined);
  await changes(() => publish(database, acme, codecDefinition("2.0.0")));
  await changes(() => publish(database, acme, codecDefinition("2.0.1")));
  await changes(() => yankRelease(database, yank));
  await changes(() => yankRelease(database, { ...yank, reason: "unsafe", at: AT + 2 }));
  await changes(() => yankRelease(database, { ...yank, version: "2.0.1", at: AT + 3 }));
  await changes(() => unyankRelease(database, of));
  await changes(() => publish(database, acme, definition("github.com/acme/other", "1.0.0")));
  assert.equal((await indexState(database, CODEC))!.held, false);
});

eachDatabase("two processes that publish the same version at once agree", async (database, open) => {
  const acme = await account(database);
  const other = open();
  const same = await Promise.all(
    Array.from({ length: 6 }, (_, i) => publish(i % 2 === 0 ? database : other, acme, codecDefinition("2.0.1"))),
  );
  assert.deepEqual(same.sort(), ["created", "same", "same", "same", "same", "same"]);
  const different = await Promise.all(
    Array.from(
      { length: 6 },
      (_, i) =>
        publish(i % 2 === 0 ? database : other, acme, { ...codecDefinition("2.0.2"), description: `Number ${i}` }),
    ),
  );
  assert.equal(different.filter((kind) => kind === "created").length, 1);
  assert.equal(different.filter((kind) => kind === "different").length, 5);
});

eachDatabase("a yank takes a release out of lists, and back", async (database) => {
  const acme = await account(database);
  await publish(database, acme, codecDefinition("2.0.0"), { publishedAt: AT });
  await publish(database, acme, codecDefinition("2.1.0"), { publishedAt: AT + 1 });
  await publish(database, acme, codecDefinition("3.0.0-beta.1"), { publishedAt: AT + 2 });
  assert.equal((await findPackage(database, CODEC))!.summary.version, "2.1.0");
  const yank = {
    package: CODEC,
    version: "2.1.0",
    reason: "Loses data",
    severity: "broken",
    account: acme,
    at: AT + 3,
    isAdmin: false,
  };
  await yankRelease(database, yank);
  assert.equal((await findPackage(database, CODEC))!.summary.version, "2.0.0");
  assert.deepEqual((await listVersions(database, CODEC))[1].yanked, {
    reason: "Loses data",
    severity: "broken",
    at: new Date(AT + 3).toISOString(),
  });
  assert.deepEqual((await pluginIndex(database, CODEC))!.releases[1].yanked, {
    reason: "Loses data",
    severity: "broken",
  });
  await yankRelease(database, { ...yank, version: "2.0.0" });
  await yankRelease(database, { ...yank, version: "3.0.0-beta.1" });
  assert.equal((await listPackages(database, ALL)).total, 0);
  assert.deepEqual(await listProviders(database, "github.com/acme/contracts/codec@1"), []);
  const undo = { package: CODEC, version: "2.1.0", account: acme, at: AT, isAdmin: false };
  assert.equal(await unyankRelease(database, undo), true);
  assert.equal(await unyankRelease(database, undo), true, "once more changes nothing");
  assert.equal((await findPackage(database, CODEC))!.summary.version, "2.1.0");
});

eachDatabase("lists are filtered, sorted and cut into pages without gaps", async (database) => {
  const acme = await account(database);
  const names = ["zeta", "alpha", "beta", "gamma", "delta"];
  for (const [i, name] of names.entries()) {
    await publish(
      database,
      acme,
      definition(`github.com/acme/${name}`, "1.0.0", {
        description: i % 2 === 0 ? "Fast 100% storage" : "Slow_storage",
        authorities: i === 0 ? [{ name: "random", mode: "optional", reason: "Salts." }] : [],
        compatibility: { engines: i === 1 ? { waft: "*" } : {}, platforms: i === 2 ? ["linux/amd64"] : [] },
      }),
      { publishedAt: AT + i },
    );
  }
  for (const [network, count] of [["a", 3], ["b", 1]] as const) {
    for (let i = 0; i < count; i++) {
      await countInstall(database, {
        package: `github.com/acme/${network === "a" ? "beta" : "zeta"}`,
        network: `${i}`,
        at: AT,
      });
    }
  }
  const list = async (query: Partial<ListQuery>): Promise<string[]> =>
    (await listPackages(database, { ...ALL, ...query })).packages.map((p) => p.name.split("/").at(-1)!);
  assert.deepEqual(await list({}), ["alpha", "beta", "delta", "gamma", "zeta"]);
  assert.deepEqual(await list({ sort: "recent" }), ["delta", "gamma", "beta", "alpha", "zeta"]);
  assert.deepEqual(await list({ sort: "installs" }), ["beta", "zeta", "alpha", "delta", "gamma"]);
  assert.deepEqual(await list({ q: "SLOW storage" }), ["alpha", "gamma"]);
  assert.deepEqual(await list({ q: "100%" }), ["beta", "delta", "zeta"]);
  assert.deepEqual(await list({ q: "w_s" }), ["alpha", "gamma"]);
  assert.deepEqual(await list({ q: "_acme" }), []);
  assert.deepEqual(await list({ q: "gamma", sort: "relevance" }), ["gamma"]);
  assert.deepEqual(await list({ q: "a", sort: "relevance" }), ["alpha", "beta", "delta", "gamma", "zeta"]);
  assert.deepEqual(await list({ facets: { authority: "random" } }), ["zeta"]);
  assert.deepEqual(await list({ facets: { engine: "waft" } }), ["alpha"]);
  assert.deepEqual(await list({ facets: { platform: "darwin/arm64" } }), ["alpha", "delta", "gamma", "zeta"]);
  assert.deepEqual(await list({ facets: { kind: "wasm", authority: "stdio" } }), []);
  assert.deepEqual(await facetCounts(database, "authority", 5), [{ value: "random", count: 1 }]);
  for (const sort of ["name", "recent", "installs", "relevance"] as const) {
    const seen: string[] = [];
    let after: ListQuery["after"];
    for (let page = 0; page < 5; page++) {
      const found = await listPackages(database, {
        ...ALL,
        sort,
        q: "a",
        limit: 2,
        ...(after === undefined ? {} : { after }),
      });
      assert.equal(found.total, 5);
      seen.push(...found.packages.map((p) => p.name));
      after = found.next;
      if (after === undefined) break;
    }
    assert.equal(seen.length, 5, sort);
    assert.equal(new Set(seen).size, 5, sort);
  }
  assert.equal((await listIds(database)).length, 5);
});

eachDatabase("held packages are not listed until they are let go", async (database) => {
  const acme = await account(database);
  await publish(database, acme, codecDefinition(), { held: true });
  assert.equal((await listPackages(database, ALL)).total, 0);
  assert.equal((await findPackage(database, CODEC))!.held, true);
  assert.equal(await releaseHold(database, CODEC, acme, AT), true);
  assert.equal(await releaseHold(database, CODEC, acme, AT), false);
  assert.equal((await listPackages(database, ALL)).total, 1);
});

eachDatabase("installs count once for a network and day, over several processes", async (database, open) => {
  const acme = await account(database);
  const other = open();
  await publish(database, acme, codecDefinition("2.0.0"));
  await publish(database, acme, codecDefinition("2.1.0"));
  const report = { package: CODEC, network: "10.0.0.0", at: AT };
  assert.deepEqual(await countInstall(database, report), { total: 1, week: 1 });
  assert.deepEqual(await countInstall(other, report), { total: 1, week: 1 });
  assert.deepEqual(await countInstall(other, { ...report, version: "2.1.0" }), { total: 1, week: 1 });
  assert.deepEqual(await countInstall(other, { ...report, version: "2.0.0" }), { total: 2, week: 2 });
  assert.deepEqual(await countInstall(database, { ...report, at: AT + DAY }), { total: 3, week: 3 });
  assert.equal(await countInstall(database, { ...report, version: "9.9.9" }), undefined);
  assert.equal(await countInstall(database, { ...report, package: "github.com/acme/none" }), undefined);
  await Promise.all(
    Array.from(
      { length: 60 },
      (_, i) => countInstall(i % 2 === 0 ? database : other, { ...report, network: `n${i % 30}`, at: AT + DAY }),
    ),
  );
  assert.equal((await findPackage(database, CODEC))!.summary.installs.total, 33);
  const series = await installSeries(database, CODEC, 3, AT + DAY);
  assert.deepEqual(series.map((d) => d.count), [0, 2, 31]);
  await refreshCounts(database, AT + 7 * DAY);
  assert.deepEqual((await findPackage(database, CODEC))!.summary.installs, { total: 33, week: 31 });
  await refreshCounts(database, AT + 30 * DAY);
  assert.deepEqual((await findPackage(database, CODEC))!.summary.installs, { total: 33, week: 0 });
  assert.equal(numberOf((await first(database, "SELECT count(*) AS n FROM install_marks"))!, "n"), 0);
});

eachDatabase("keys and secrets are made once and shared", async (database, open) => {
  const other = open();
  const keys = await Promise.all([database, other, database, other].map((d) => currentKey(d, AT)));
  assert.equal(new Set(keys.map((k) => k.id)).size, 1);
  const secrets = await Promise.all([database, other].map((d) => sharedSecret(d, "cursor")));
  assert.equal(secrets[0], secrets[1]);
  const own = makeSigningKey();
  assert.equal((await currentKey(database, AT + 1, own)).id, own.id);
  const listed = await listKeys(database);
  assert.deepEqual(listed.map((k) => [k.id, k.retiredAt]), [[own.id, undefined], [keys[0].id, AT + 1]]);
  const stored = await database.all("SELECT private_key FROM signing_keys WHERE id = ?", own.id);
  assert.equal(stored[0].private_key, "", "a key from the environment is not written down");
  // A key made here endorses its successor; one from the environment does so if it is passed along.
  const endorsed = (id: string, by: SigningKey): void => {
    const key = all.find((k) => k.id === id)!;
    assert.equal(key.endorsement?.keyId, by.id);
    assert.ok(isSigned(endorsementBytes(key.publicKey), key.endorsement.value, by.publicKey));
  };
  const next = makeSigningKey();
  await currentKey(database, AT + 2, next, [own]);
  const alone = makeSigningKey();
  await currentKey(database, AT + 3, alone);
  const all = await listKeys(database);
  endorsed(own.id, keys[0]);
  endorsed(next.id, own);
  assert.equal(all.find((k) => k.id === alone.id)!.endorsement, undefined);
});

eachDatabase("documentation of a release is written once", async (database) => {
  const pages = [{ path: "index.md", source: "# One" }];
  assert.equal(await writeDocuments(database, "nightly", pages, AT), true);
  assert.equal(await writeDocuments(database, "nightly", [{ path: "other.md", source: "# Two" }], AT), true);
  assert.equal(await writeDocuments(database, "v1.0.0", pages, AT), true);
  assert.equal(await writeDocuments(database, "v1.0.0", [], AT), false);
  const kept = await readDocuments(database);
  assert.deepEqual([...kept], [["nightly", [{ path: "other.md", source: "# Two" }]], ["v1.0.0", pages]]);
});

eachDatabase(
  "a backup taken while writing restores to a whole registry, on either database",
  async (database, open) => {
    const folder = await mkdtemp(join(tmpdir(), "waft-backup-"));
    try {
      const acme = await account(database);
      await publish(database, acme, codecDefinition());
      await currentKey(database, AT);
      await writeDocuments(database, "nightly", [{ path: "index.md", source: "# Nightly \u{1f600}" }], AT);
      await countInstall(database, { package: CODEC, network: "first", at: AT });
      const other = open();
      const writing = Promise.all(
        Array.from({ length: 200 }, (_, i) => countInstall(other, { package: CODEC, network: `${i}`, at: AT })),
      );
      const copy = join(folder, "copy.sqlite");
      const rows = await writeBackup(database, copy);
      await writing;
      await assert.rejects(writeBackup(database, copy), /exists already/);
      assert.deepEqual(await readdir(folder), ["copy.sqlite"], "no piece is left");
      const bytes = readFileSync(copy);
      await assert.rejects(restoreBackup(copy, database), /not empty/);
      for (const kind of DATABASES.filter((k) => k.absent === undefined)) {
        await kind.use(async (restored) => {
          assert.equal(await restoreBackup(copy, restored), rows);
          const { summary } = (await findPackage(restored, CODEC))!;
          const days = await installSeries(restored, CODEC, 1, AT);
          assert.equal(summary.installs.total, days[0].count, "counts agree inside the copy");
          assert.ok(summary.installs.total >= 1);
          const release = (await findRelease(restored, CODEC, summary.version))!;
          const original = (await findRelease(database, CODEC, summary.version))!;
          assert.deepEqual(release, original);
          assert.deepEqual(
            await readPart(restored, release.artifact.digest, 0, release.artifact.size),
            await readPart(database, release.artifact.digest, 0, release.artifact.size),
          );
          assert.deepEqual(await listKeys(restored), await listKeys(database));
          assert.deepEqual(await readDocuments(restored), await readDocuments(database));
          assert.equal((await accountByName(restored, "acme"))!.id, acme);
        });
      }
      assert.ok(bytes.equals(readFileSync(copy)), "restoring does not change the backup");
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);

eachDatabase("copies know every table, and read pieces of any size", async (database) => {
  const made = database.dialect === "sqlite"
    ? "SELECT name FROM sqlite_master WHERE type = 'table'"
    : "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()";
  const names = (await database.all(made)).map((row) => row.name).filter((name) => name !== "migrations");
  assert.deepEqual(names.sort(), TABLES.map((t) => t.name).sort());
  // More rows than one batch, with keys of several columns.
  await database.write(async (queries) => {
    for (let i = 0; i < 1203; i++) {
      await queries.run("INSERT INTO install_marks (day, mark) VALUES (?, ?)", i % 7, `m${i}`);
    }
  });
  await SQLITE.use(async (target) => {
    await copyDatabase(database, target);
    const query = "SELECT day, mark FROM install_marks ORDER BY day, mark";
    const plain = (rows: readonly Row[]): string => JSON.stringify(rows.map((r) => [r.day, r.mark]));
    assert.equal(plain(await target.all(query)), plain(await database.all(query)));
    await assert.rejects(copyDatabase(database, target), /not empty/);
  });
});

Deno.test({
  name: "other users cannot read the database, its log and a backup",
  ignore: LACKS_POSIX_FILES,
  async fn() {
    const folder = await mkdtemp(join(tmpdir(), "waft-modes-"));
    const before = process.umask(0);
    const modes = () => readdirSync(folder).sort().map((name) => [name, statSync(join(folder, name)).mode & 0o777]);
    const ownersOnly = ["registry.sqlite", "registry.sqlite-shm", "registry.sqlite-wal"].map((name) => [name, 0o600]);
    try {
      const file = join(folder, "registry.sqlite");
      const database = new SqliteDatabase(file);
      await migrate(database);
      await currentKey(database, AT);
      assert.deepEqual(modes(), ownersOnly);
      // The permissions that earlier versions left.
      for (const [name] of ownersOnly) chmodSync(join(folder, String(name)), 0o644);
      await new SqliteDatabase(file).close();
      assert.deepEqual(modes(), ownersOnly);
      await writeBackup(database, join(folder, "copy.sqlite"));
      assert.equal(statSync(join(folder, "copy.sqlite")).mode & 0o777, 0o600);
      await database.close();
    } finally {
      process.umask(before);
      await rm(folder, { recursive: true, force: true });
    }
  },
});

Deno.test("a damaged backup, and a file that is not a backup, are refused and change nothing", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waft-backup-"));
  try {
    await SQLITE.use(async (database) => {
      await publish(database, await account(database), codecDefinition());
      const file = join(folder, "copy.sqlite");
      await writeBackup(database, file);
      const bytes = readFileSync(file);
      const damaged = join(folder, "damaged.sqlite");
      await writeFile(damaged, bytes.fill(0x5a, 5 * 4096, 9 * 4096));
      const half = join(folder, "half.sqlite");
      await writeFile(half, bytes.subarray(0, bytes.length >> 1));
      const text = join(folder, "text.sqlite");
      await writeFile(text, "This is no database, but it is long enough to be looked at. ".repeat(99));
      const empty = join(folder, "empty.sqlite");
      await writeFile(empty, "");
      await SQLITE.use(async (target) => {
        for (const path of [damaged, half, text, empty, join(folder, "absent.sqlite")]) {
          await assert.rejects(
            restoreBackup(path, target),
            /damaged|malformed|not a database|not a backup|no file/,
            path,
          );
        }
        assert.equal((await target.all("SELECT id FROM accounts")).length, 0);
      });
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

Deno.test("SQLite: a closed database reports that it is closed", async () => {
  let closed: Database | undefined;
  await SQLITE.use((database) => Promise.resolve(void (closed = database)));
  await assert.rejects(closed!.all("SELECT 1"), StoreUnavailable);
  await assert.rejects(closed!.run("SELECT 1"), StoreUnavailable);
});

Deno.test("SQLite: a file that is not a database is refused", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waft-backup-"));
  const path = join(folder, "registry.sqlite");
  await writeFile(path, readFileSync(new URL(import.meta.url)));
  assert.throws(() => new SqliteDatabase(path), /not a database/);
  await rm(folder, { recursive: true, force: true });
});

Deno.test("containing() escapes what LIKE would read as a pattern", () => {
  assert.equal(containing("a%b_c\\"), "%a\\%b\\_c\\\\%");
});

/** A proxy to a server that can be cut: existing connections end, new ones are refused. */
async function cuttable(
  target: URL,
): Promise<{ url: string; sent: () => string; cut(): void; mend(): Promise<void>; close(): void }> {
  let sent = "";
  const sockets = new Set<Socket>();
  const serve = (): Server =>
    createServer((from) => {
      const to = connect(Number(target.port || 5432), target.hostname);
      for (const socket of [from, to]) {
        sockets.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => {
          sockets.delete(socket);
          from.destroy();
          to.destroy();
        });
      }
      from.on("data", (chunk: Uint8Array) => sent += new TextDecoder("latin1").decode(chunk));
      from.pipe(to).pipe(from);
    });
  let server = serve().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const url = new URL(target.href);
  url.hostname = "127.0.0.1";
  url.port = String(port);
  const cut = (): void => {
    server.close();
    // Not ended but reset, as by a server that was killed.
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    url: url.href,
    sent: () => sent,
    cut,
    close: cut,
    async mend() {
      server = serve().listen(port, "127.0.0.1");
      await once(server, "listening");
    },
  };
}

const POSTGRES_URL = process.env.DATABASE_URL;
Deno.test({
  name: `PostgreSQL: the client sends no statements of its own, whose failure no caller could handle${
    POSTGRES_URL === undefined ? " (ignored: DATABASE_URL is not set)" : ""
  }`,
  ignore: POSTGRES_URL === undefined,
  async fn() {
    const way = await cuttable(new URL(POSTGRES_URL!));
    const database = new PostgresDatabase(way.url, { connections: 1 });
    try {
      await database.all("SELECT 42 AS answer");
      assert.match(way.sent(), /SELECT 42 AS answer/);
      assert.doesNotMatch(way.sent(), /pg_type|pg_catalog/);
    } finally {
      await database.close();
      way.close();
    }
  },
});

Deno.test({
  name: `PostgreSQL: a server that is gone is an error at once, and one that is back is used at once${
    POSTGRES_URL === undefined ? " (ignored: DATABASE_URL is not set)" : ""
  }`,
  ignore: POSTGRES_URL === undefined,
  async fn() {
    const way = await cuttable(new URL(POSTGRES_URL!));
    const database = new PostgresDatabase(way.url, { connections: 3 });
    try {
      const ask = (): Promise<unknown> => database.write((q) => q.all("SELECT 1 AS one"));
      const single = new PostgresDatabase(way.url, { connections: 1, waitMs: 100 });
      await single.write(async () => {
        await assert.rejects(single.all("SELECT 1 AS one"), /no connection was free for 0\.1 s/);
      });
      assert.deepEqual(await single.all("SELECT 1 AS one"), [{ one: 1 }]);
      await single.close();
      // Cut again and again while every connection is in the middle of something: nothing is left without an end.
      for (let round = 0; round < 5; round++) {
        const working = Array.from({ length: 12 }, () =>
          database.write(async (queries) => {
            for (let i = 0; i < 50; i++) await queries.all("SELECT pg_sleep(0.01) AS slept, CAST(? AS BIGINT) AS n", i);
          }));
        await new Promise((resolve) => setTimeout(resolve, 50 + round * 10));
        way.cut();
        const late = new Promise<string>((resolve) => setTimeout(() => resolve("late"), HANG_MS));
        const ended = await Promise.race([Promise.allSettled(working), late]);
        assert.ok(typeof ended !== "string", "a statement was left without an end");
        for (const { status } of ended) assert.equal(status, "rejected");
        await way.mend();
        await Promise.all([ask(), ask(), ask()]);
      }
      await Promise.all([ask(), ask(), ask()]);
      // In the middle of a transaction.
      await assert.rejects(
        database.write(async (queries) => {
          await queries.all("SELECT 1 AS one");
          way.cut();
          await new Promise((resolve) => setTimeout(resolve, 100));
          return await queries.all("SELECT 2 AS two");
        }),
        StoreUnavailable,
      );
      // Down for so long that pauses which double each time would have grown to many seconds.
      const began = performance.now();
      while (performance.now() - began < 4000) {
        const asked = performance.now();
        await assert.rejects(ask(), StoreUnavailable);
        assert.ok(performance.now() - asked < HANG_MS, "an answer comes soon");
      }
      await way.mend();
      const mended = performance.now();
      let answered = 0;
      while (answered < 6) {
        await Promise.all([ask(), ask(), ask()]).then(() => answered += 3, (error) => {
          assert.ok(error instanceof StoreUnavailable, String(error));
        });
        assert.ok(performance.now() - mended < HANG_MS, "the server is back");
      }
    } finally {
      await database.close();
      way.close();
    }
  },
});
