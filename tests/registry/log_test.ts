/**
 * The transparency log: the tree of the registry against the definitions of RFC 9162, on SQLite and on PostgreSQL;
 * clients and watchers against registries that rewrite, shorten, hide or fork their history.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProjectError } from "../../project/base/diagnostic.ts";
import { addPlugins } from "../../project/ops/project/add.ts";
import { checkProject } from "../../project/ops/project/check.ts";
import { headsFile } from "../../project/packages/transparency_log.ts";
import { isCheckpointSigned, readCheckpoint, writeCheckpoint } from "../../project/packages/checkpoint.ts";
import { hashLeaf, isConsistent, isIncluded } from "../../project/packages/merkle_tree.ts";
import { createAccount, grantPrefix } from "../../registry/store/accounts.ts";
import { copyDatabase } from "../../registry/store/copy.ts";
import type { Database } from "../../registry/store/database.ts";
import {
  appendReleases,
  completeLog,
  consistencyProof,
  entryNumber,
  inclusionProof,
  logEntries,
  logSize,
  rootOf,
} from "../../registry/store/log.ts";
import { publishRelease, releaseHold } from "../../registry/store/releases.ts";
import { SqliteDatabase } from "../../registry/store/sqlite.ts";
import { verifyLog, type VerifyRequest } from "../../registry/verify_log.ts";
import { recordBytes } from "../../project/packages/release_record.ts";
import { FakeRegistry, TestKey } from "../project/fake_registry.ts";
import { CODEC, codecDefinition, definition, KV, kvDefinition } from "../project/sample_plugins.ts";
import { ALLOW_ALL, REGISTRY, TempProject } from "../project/temp_project.ts";
import { consistencyPath, inclusionPath, treeHash } from "../support/naive_merkle_tree.ts";
import { App } from "./registry_process.ts";
import { sampleRelease } from "./sample_release.ts";
import { eachDatabase } from "./temp_database.ts";
import { withRegistry } from "./test_registry.ts";

const AT = Date.UTC(2026, 7, 1);
const LIMITS = { perHour: 100, perDay: 100, perPlugin: 100 };

async function account(database: Database): Promise<string> {
  const { id } = (await createAccount(database, "acme", AT))!;
  await grantPrefix(database, { prefix: "github.com", account: id, proof: "admin" }, AT);
  return id;
}

async function publish(database: Database, owner: string, id: string, version: string, more = {}): Promise<string> {
  const release = await sampleRelease([definition(id, version)], { account: owner, ...more });
  return (await publishRelease(database, release, LIMITS)).kind;
}

const bytesOf = (proof: readonly Uint8Array[]) => proof.map((hash) => new Uint8Array(hash));

eachDatabase("the log is the tree of RFC 9162 over the signed records, at each of its sizes", async (database) => {
  const acme = await account(database);
  const count = 13;
  const leaves: Uint8Array[] = [];
  assert.deepEqual(new Uint8Array(await rootOf(database, 0)), treeHash([]));
  for (let i = 0; i < count; i++) {
    assert.equal(await publish(database, acme, `github.com/acme/p${i % 3}`, `1.0.${i}`), "created");
    leaves.push(recordBytes((await logEntries(database, i, 1))[0].record));
    assert.equal(await logSize(database), i + 1);
  }
  assert.equal(await publish(database, acme, "github.com/acme/p0", "1.0.0"), "same");
  assert.equal(await logSize(database), count, "the same release again has no second entry");
  assert.equal(await entryNumber(database, "github.com/acme/p1", "1.0.4"), 4);
  assert.equal(await entryNumber(database, "github.com/acme/p1", "9.0.0"), undefined);
  for (let size = 1; size <= count; size++) {
    const part = leaves.slice(0, size);
    assert.deepEqual(new Uint8Array(await rootOf(database, size)), treeHash(part));
    for (let n = 0; n < size; n++) {
      assert.deepEqual(bytesOf(await inclusionProof(database, n, size)), inclusionPath(n, part), `${n} of ${size}`);
    }
    for (let before = 0; before <= size; before++) {
      const proof = bytesOf(await consistencyProof(database, before, size));
      assert.deepEqual(proof, consistencyPath(before, part), `${before} to ${size}`);
    }
  }
});

eachDatabase("processes that publish at once give each release one number", async (database, open) => {
  const acme = await account(database);
  const other = open();
  const kinds = await Promise.all(
    Array.from(
      { length: 12 },
      (_, i) => publish(i % 2 === 0 ? database : other, acme, `github.com/acme/p${i}`, "1.0.0"),
    ),
  );
  assert.deepEqual(new Set(kinds), new Set(["created"]));
  const entries = await logEntries(database, 0, 100);
  assert.deepEqual(entries.map(({ number }) => number), Array.from({ length: 12 }, (_, i) => i));
  assert.deepEqual(
    new Uint8Array(await rootOf(database, 12)),
    treeHash(entries.map(({ record }) => recordBytes(record))),
  );
});

eachDatabase(
  "held releases enter the log when they are let go, those of an older program at the start",
  async (database) => {
    const acme = await account(database);
    await publish(database, acme, "github.com/acme/held", "1.0.0", { held: true });
    await publish(database, acme, "github.com/acme/open", "1.0.0", { publishedAt: AT + 1 });
    assert.deepEqual((await logEntries(database, 0, 10)).map(({ record }) => record.package), ["github.com/acme/open"]);
    await completeLog(database);
    assert.equal(await logSize(database), 1, "a held release stays outside");
    assert.equal(await releaseHold(database, "github.com/acme/held", acme, AT), true);
    assert.equal(await entryNumber(database, "github.com/acme/held", "1.0.0"), 1);
    for (const table of ["log_entries", "log_nodes"]) await database.run(`DELETE FROM ${table}`);
    await completeLog(database);
    assert.equal(await logSize(database), 2);
    assert.equal(await appendReleases(database), 0);
  },
);

Deno.test("checkpoints are signed notes, and text of another form is none", () => {
  const [key, other] = [new TestKey(), new TestKey()];
  const head = { origin: "plugins.example", size: 3, root: treeHash([new Uint8Array([1])]) };
  const text = writeCheckpoint(head, key.publicKey, (bytes) => key.sign(bytes));
  assert.match(text, /^plugins\.example\n3\n[\w+/]{43}=\n\n— plugins\.example [\w+/=]+\n$/);
  assert.deepEqual(readCheckpoint(text), head);
  assert.equal(isCheckpointSigned(text, key.publicKey), true);
  const witnessed = `${text}— witness.example ${Buffer.alloc(68, 7).toString("base64")}\n`;
  assert.equal(isCheckpointSigned(witnessed, key.publicKey), true, "further signatures are allowed");
  for (const wrong of [other.publicKey, "", "A".repeat(44)]) assert.equal(isCheckpointSigned(text, wrong), false);
  const changes: ((text: string) => string)[] = [
    (t) => t.replace("\n3\n", "\n4\n"),
    (t) => t.replace("\n3\n", "\n03\n"),
    (t) => t.replace("\n3\n", "\n-3\n"),
    (t) => t.replace("\n3\n", "\n99999999999999999999\n"),
    (t) => t.replace("plugins.example", "other.example"),
    (t) => t.replaceAll("plugins.example", "other.example"),
    (t) => t.slice(0, t.indexOf("—")),
    (t) => t.replace("\n\n", "\n"),
    (t) => `${t}\n`,
    (t) => t + "x".repeat(5000),
    () => "",
  ];
  for (const change of changes) assert.equal(isCheckpointSigned(change(text), key.publicKey), false, change(text));
});

/** The codes of the findings of an action; "ok" for none. */
async function codesOf(action: Promise<unknown>): Promise<string> {
  try {
    await action;
    return "ok";
  } catch (error) {
    if (!(error instanceof ProjectError)) throw error;
    return `${error.diagnostics[0].code} ${error.exitCode}`;
  }
}

async function add(project: TempProject, fake: FakeRegistry, specs: readonly string[]): Promise<string> {
  const request = { root: project.root, directory: project.root, specs, decider: ALLOW_ALL };
  return await codesOf(addPlugins(await project.context(fake), request));
}

async function honest(): Promise<FakeRegistry> {
  const fake = new FakeRegistry();
  await fake.publish([codecDefinition("2.0.0")]);
  await fake.publish([kvDefinition("1.2.3")]);
  return fake;
}

Deno.test("a client accepts a log that grows, and finds each other change of it", async () => {
  const project = new TempProject();
  const fake = await honest();
  const check = async () => {
    const { diagnostics } = await checkProject(await project.context(fake), project.root);
    return diagnostics.map(({ code }) => code);
  };
  try {
    assert.equal(await add(project, fake, [CODEC]), "ok");
    const { paths } = await project.context(fake);
    const seen = () => JSON.parse(readFileSync(headsFile(paths), "utf8"))[REGISTRY].checkpoint as string;
    assert.equal(readCheckpoint(seen())!.size, 2);
    await fake.publish([definition("github.com/acme/other", "1.0.0")]);
    assert.deepEqual(await check(), []);
    assert.equal(readCheckpoint(seen())!.size, 3, "the machine remembers the head that it verified");
    const before = seen();

    // Another release than before in an entry that no lockfile here names.
    const others = fake.published.splice(2);
    await fake.publish([definition("github.com/acme/other", "1.0.0", { description: "Other bytes" })]);
    assert.deepEqual(await check(), ["log.inconsistent"]);
    await fake.publish([definition("github.com/acme/more", "1.0.0")]);
    assert.deepEqual(await check(), ["log.inconsistent"], "entries that follow do not hide it");
    assert.equal(await add(project, fake, [KV]), "log.inconsistent 5");
    // Fewer entries.
    fake.published.splice(2);
    assert.deepEqual(await check(), ["log.rollback"]);
    // No log at all.
    fake.hasLog = false;
    assert.deepEqual(await check(), ["log.missing"]);
    assert.equal(seen(), before, "a refused head is not remembered");
    // The same history again.
    fake.hasLog = true;
    fake.published.push(...others);
    assert.deepEqual(await check(), []);
    // A head that another key signed, and one that is about another tree than it says.
    const stranger = new TestKey();
    fake.tamper = async (path, response) => {
      if (path !== "/api/log/checkpoint") return response;
      const { keyId, checkpoint } = await response.json();
      const head = readCheckpoint(checkpoint)!;
      return Response.json({ keyId, checkpoint: writeCheckpoint(head, stranger.publicKey, (b) => stranger.sign(b)) });
    };
    assert.deepEqual(await check(), ["log.signature"]);
    fake.tamper = (path, response) =>
      path === "/api/log/checkpoint" ? Response.json({ keyId: fake.keys[0].id, checkpoint: "x" }) : response;
    assert.deepEqual(await check(), ["registry.answer"]);
  } finally {
    project.remove();
  }
});

Deno.test("a release that the log does not have is not locked", async () => {
  const project = new TempProject();
  const fake = await honest();
  try {
    fake.tamper = (path, response) =>
      path.endsWith("/inclusion") ? Response.json({ title: "Not in the log" }, { status: 404 }) : response;
    assert.equal(await add(project, fake, [CODEC]), "log.excluded 5");
    assert.equal(project.read("waft-lock.json"), undefined);
    // A proof of another entry.
    fake.tamper = async (path, response) =>
      path.endsWith("/inclusion") ? Response.json({ ...await response.json(), number: 1 }) : response;
    assert.equal(await add(project, fake, [CODEC]), "log.excluded 5");
    assert.equal(project.read("waft-lock.json"), undefined);
    fake.tamper = undefined;
    assert.equal(await add(project, fake, [CODEC]), "ok");
  } finally {
    project.remove();
  }
});

Deno.test("a release that is published between the head and the index is accepted", async () => {
  const project = new TempProject();
  const fake = await honest();
  try {
    let isFirst = true;
    fake.tamper = async (path, response) => {
      if (path !== "/api/log/checkpoint" || !isFirst) return response;
      isFirst = false;
      const text = await response.text();
      const key = fake.keys[0];
      const shorter = { origin: "plugins.example", size: 0, root: treeHash([]) };
      const checkpoint = writeCheckpoint(shorter, key.publicKey, (bytes) => key.sign(bytes));
      return Response.json({ ...JSON.parse(text), checkpoint });
    };
    assert.equal(await add(project, fake, [CODEC]), "ok");
    assert.equal(fake.requests.filter((r) => r === "GET /api/log/checkpoint").length, 2);
  } finally {
    project.remove();
  }
});

Deno.test("a registry that never had a log needs none", async () => {
  const project = new TempProject();
  const fake = await honest();
  fake.hasLog = false;
  try {
    assert.equal(await add(project, fake, [CODEC]), "ok");
    fake.hasLog = true;
    assert.equal(await add(project, fake, [KV]), "ok", "a log that begins later is accepted");
    fake.hasLog = false;
    const { diagnostics } = await checkProject(await project.context(fake), project.root);
    assert.deepEqual([...new Set(diagnostics.map((d) => d.code))], ["log.missing"]);
  } finally {
    project.remove();
  }
});

Deno.test("a damaged memory of heads is an error, and never taken for empty", async () => {
  const project = new TempProject();
  const fake = await honest();
  try {
    assert.equal(await add(project, fake, [CODEC]), "ok");
    const { paths } = await project.context(fake);
    for (const text of ["", "{", "[]", `{"${REGISTRY}":{"checkpoint":"x","keyId":"0123456789abcdef"}}`, "{}{}"]) {
      writeFileSync(headsFile(paths), text);
      const { diagnostics } = await checkProject(await project.context(fake), project.root);
      assert.match(diagnostics[0]?.code ?? "ok", /^machine\./, text);
    }
  } finally {
    project.remove();
  }
});

Deno.test("two watchers find a registry that shows each of them another history", async () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-heads-"));
  const [ada, bob] = [new TempProject(), new TempProject()];
  try {
    // Both histories have the signatures of the registry's own key.
    const [shownToAda, shownToBob] = [await honest(), await honest()];
    await shownToAda.publish([definition("github.com/acme/other", "1.0.0")]);
    await shownToBob.publish([definition("github.com/acme/other", "1.0.0", { description: "For Bob alone" })]);
    await shownToBob.publish([definition("github.com/acme/more", "1.0.0")]);
    const verify = async (who: TempProject, fake: FakeRegistry, more: Partial<VerifyRequest> = {}) =>
      await verifyLog({ registry: REGISTRY, ...more }, await who.context(fake));
    const [headOfAda, headOfBob] = [join(folder, "ada"), join(folder, "bob")];
    assert.equal((await verify(ada, shownToAda, { head: headOfAda })).size, 3);
    assert.equal((await verify(bob, shownToBob, { head: headOfBob })).size, 4);
    assert.equal((await verify(ada, shownToAda, { head: headOfAda })).compared, 1, "the head of the last time");
    const forked = verify(bob, shownToBob, { head: headOfBob, compare: [headOfAda] });
    assert.equal(await codesOf(forked), "log.inconsistent 5");
    assert.equal(await codesOf(verify(ada, shownToAda, { compare: [headOfBob] })), "log.rollback 5");
    // A head of another registry says nothing about this one.
    const stranger = await honest();
    stranger.keys = [new TestKey()];
    const [eve, headOfEve] = [new TempProject(), join(folder, "eve")];
    await verify(eve, stranger, { head: headOfEve });
    eve.remove();
    assert.equal(await codesOf(verify(ada, shownToAda, { compare: [headOfEve] })), "log.signature 5");
    writeFileSync(headOfEve, "no head");
    assert.equal(await codesOf(verify(ada, shownToAda, { compare: [headOfEve] })), "usage.head 2");
  } finally {
    ada.remove();
    bob.remove();
    rmSync(folder, { recursive: true });
  }
});

Deno.test("a watcher finds entries that do not belong together", async () => {
  const watch = async (fake: FakeRegistry): Promise<string> => {
    const machine = new TempProject();
    try {
      return await codesOf(verifyLog({ registry: REGISTRY }, await machine.context(fake)));
    } finally {
      machine.remove();
    }
  };
  assert.equal(await watch(await honest()), "ok");
  const twice = await honest();
  await twice.publish([codecDefinition("2.0.0")]);
  assert.equal(await watch(twice), "log.republished 5");
  const hidden = await honest();
  hidden.unlogged.push({ change: "published", name: "github.com/acme/hidden", version: "1.0.0" });
  assert.equal(await watch(hidden), "log.excluded 5");
  const changing = (change: (entries: { record: { version: string }; number: number }[]) => unknown) => async () => {
    const fake = await honest();
    fake.tamper = async (path, response) =>
      path === "/api/log/entries" ? Response.json({ entries: change((await response.json()).entries) }) : response;
    return await watch(fake);
  };
  assert.equal(await changing((entries) => entries.slice(1))(), "log.inconsistent 5");
  assert.equal(await changing(() => [])(), "log.inconsistent 5");
  assert.equal(await changing(([a, b]) => [{ ...b, number: 0 }, { ...a, number: 1 }])(), "log.inconsistent 5");
  assert.equal(
    await changing((entries) => entries.map((e) => ({ ...e, record: { ...e.record, version: "9.0.0" } })))(),
    "signature.wrong 5",
  );
  const without = await honest();
  without.hasLog = false;
  assert.equal(await watch(without), "log.missing 5");
});

Deno.test("`registry verify` reads the log of a running registry, and of one that was restored from a backup", async () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-verify-"));
  const head = join(folder, "head");
  const run = async (url: string): Promise<{ code: number | null; text: string }> => {
    const app = new App(["verify", url, "--head", head], { env: { WAFT_HOME: join(folder, "machine") } });
    const code = await app.ended;
    return { code, text: app.text };
  };
  try {
    const restored = new SqliteDatabase(join(folder, "restored.sqlite"));
    await withRegistry(async (r) => {
      const { token } = await r.author("acme", ["github.com/acme"]);
      assert.equal((await r.publish(token, [codecDefinition("2.0.0")])).status, 201);
      await copyDatabase(r.database, restored);
      assert.equal((await r.publish(token, [codecDefinition("2.0.1")])).status, 201);
      const first = await run(r.url);
      assert.equal(first.code, 0, first.text);
      assert.match(first.text, /the log has 2 releases/);
      const { checkpoint, keyId } = await r.get<{ checkpoint: string; keyId: string }>("/api/log/checkpoint");
      assert.equal(readFileSync(head, "utf8"), checkpoint);
      assert.equal(keyId, r.registry.services.signingKey.id);
      assert.equal((await r.publish(token, [codecDefinition("2.0.2")])).status, 201);
      const second = await run(r.url);
      assert.equal(second.code, 0, second.text);
      assert.match(second.text, /the log has 3 releases; signatures, tree and 1 earlier head agree/);

      // What clients ask for, against the same registry.
      const now = readCheckpoint(readFileSync(head, "utf8"))!;
      const release = "/api/packages/github.com:acme:codec/versions/2.0.1";
      const of = await r.get<{ number: number; proof: string[] }>(`${release}/inclusion`);
      const { record } = await r.get<{ record: Parameters<typeof recordBytes>[0] }>(release);
      const bytes = (proof: readonly string[]) => proof.map((hex) => new Uint8Array(Buffer.from(hex, "hex")));
      assert.ok(isIncluded(hashLeaf(recordBytes(record)), of.number, 3, bytes(of.proof), now.root));
      const grown = await r.get<{ proof: string[] }>("/api/log/consistency?from=2&to=3");
      assert.ok(isConsistent(2, 3, bytes(grown.proof), readCheckpoint(checkpoint)!.root, now.root));
      for (
        const [path, code] of [
          [`${release}/inclusion?size=1`, "log.unknown"],
          [`${release}/inclusion?size=4`, "request.query"],
          [`${release.replace("2.0.1", "3.0.0")}/inclusion`, "log.unknown"],
          ["/api/log/consistency?from=3&to=2", "request.query"],
          ["/api/log/consistency?from=-1", "request.query"],
          ["/api/log/entries?limit=501", "request.query"],
        ]
      ) assert.equal((await r.problem(path)).code, code, path);
    });
    // A backup from before the last releases: whoever saw them finds out.
    await withRegistry(async (r) => {
      const { code, text } = await run(r.url);
      assert.notEqual(code, 0);
      assert.match(text, /log\.rollback: .* shows a log of 1 releases; the head in .* has 3/);
    }, { database: restored });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
