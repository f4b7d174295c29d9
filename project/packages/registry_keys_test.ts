/**
 * Signatures of releases, against hostile registries: wrong, missing and foreign signatures, keys that change.
 */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FakeRegistry, TestKey } from "../../tests/project/fake_registry.ts";
import { CODEC, codecDefinition } from "../../tests/project/sample_plugins.ts";
import { ALLOW_ALL, REGISTRY, TempProject } from "../../tests/project/temp_project.ts";
import { LACKS_POSIX_FILES } from "../../tests/support/posix_files.ts";
import { ProjectError } from "../base/diagnostic.ts";
import { addPlugins } from "../ops/project/add.ts";
import { changeProject } from "../ops/project/change.ts";
import { checkProject } from "../ops/project/check.ts";
import { isSigned } from "./release_record.ts";

function withRegistry(name: string, run: (project: TempProject, fake: FakeRegistry) => Promise<void>): void {
  Deno.test(`signatures: ${name}`, async () => {
    const project = new TempProject();
    const fake = new FakeRegistry();
    await fake.publish([codecDefinition("2.0.0")]);
    try {
      await run(project, fake);
    } finally {
      project.remove();
    }
  });
}

async function add(project: TempProject, fake: FakeRegistry, spec: string = CODEC): Promise<string> {
  try {
    const request = { root: project.root, directory: project.root, specs: [spec], decider: ALLOW_ALL };
    await addPlugins(await project.context(fake), request);
    return "ok";
  } catch (error) {
    if (!(error instanceof ProjectError)) throw error;
    return `${error.diagnostics[0].code} ${error.exitCode}`;
  }
}

/** Changes the JSON of answers whose path ends so. */
function changing(end: RegExp, change: (body: Record<string, unknown>) => unknown): FakeRegistry["tamper"] {
  return async (path, response) => end.test(path) ? Response.json(change(await response.json())) : response;
}

interface Signed {
  readonly record: { readonly version: string; readonly publisher: string };
  readonly signature: { readonly keyId: string; readonly value: string };
}
const RECORD = /\/versions\/[^/]+$/;

withRegistry("a good one is accepted and its key is remembered", async (project, fake) => {
  assert.equal(await add(project, fake), "ok");
  const kept = JSON.parse(readFileSync(join(project.home, "waft", "config", "registry-keys.json"), "utf8"));
  const [key] = fake.keys;
  assert.deepEqual(kept, { [REGISTRY]: { [key!.id]: key!.publicKey } });
  const { checks } = await checkProject(await project.context(fake), project.root);
  assert.match(checks.find((c) => c.name === "registry")!.detail, /signatures are good/);
});

withRegistry("wrong, foreign, missing and empty ones are integrity failures", async (project, fake) => {
  const other = new TestKey();
  const cases: [string, FakeRegistry["tamper"]][] = [
    [
      "signature.wrong",
      changing(RECORD, (b) => {
        const { record, signature } = b as unknown as Signed;
        const value = (signature.value[0] === "A" ? "B" : "A") + signature.value.slice(1);
        return { record, signature: { ...signature, value } };
      }),
    ],
    [
      "signature.wrong",
      changing(RECORD, (b) => {
        const { record, signature } = b as unknown as Signed;
        return { record: { ...record, publisher: "github.com/mallory" }, signature };
      }),
    ],
    ["signature.wrong", changing(RECORD, (b) => ({ ...b, signature: { ...(b.signature as object), value: "" } }))],
    [
      "signature.wrong",
      changing(RECORD, (b) => {
        const { record, signature } = b as unknown as Signed;
        const value = other.sign(new TextEncoder().encode(JSON.stringify(record)));
        return { record, signature: { ...signature, value } };
      }),
    ],
    ["signature.key", changing(RECORD, (b) => ({ ...b, signature: { ...(b.signature as object), keyId: other.id } }))],
    ["registry.answer", changing(RECORD, ({ record }) => ({ record }))],
    ["registry.answer", changing(RECORD, (b) => ({ ...b, record: { ...(b.record as object), more: 1 } }))],
    ["signature.missing", (path, response) => RECORD.test(path) ? new Response("", { status: 404 }) : response],
    ["signature.missing", (path, response) => path === "/api/keys" ? new Response("", { status: 404 }) : response],
    ["signature.key", changing(/keys$/, () => ({ keys: [] }))],
    // Another key under the name of the right one.
    [
      "signature.key",
      changing(/keys$/, (b) => ({
        keys: (b.keys as object[]).map((k) => ({ ...k, publicKey: other.publicKey })),
      })),
    ],
    [
      "signature.disagrees",
      changing(/index$/, (b) => ({
        ...b,
        releases: (b.releases as object[]).map((r) => ({ ...r, publisher: "github.com/mallory" })),
      })),
    ],
  ];
  for (const [i, [code, tamper]] of cases.entries()) {
    fake.tamper = tamper;
    const fresh = new TempProject();
    try {
      const outcome = await add(fresh, fake);
      assert.equal(outcome, `${code} ${code.startsWith("registry") ? 7 : 5}`, `case ${i}`);
      assert.equal(fresh.read("waft-lock.json"), undefined);
    } finally {
      fresh.remove();
    }
  }
  fake.tamper = undefined;
  assert.equal(await add(project, fake), "ok");
});

withRegistry("the record of another release does not do", async (project, fake) => {
  await fake.publish([codecDefinition("2.0.1")]);
  const old = await (await fake.fetch(`${REGISTRY}/api/packages/${encodeURIComponent(CODEC)}/versions/2.0.0`)).json();
  fake.tamper = changing(/versions\/2\.0\.1$/, () => old);
  assert.equal(await add(project, fake), "signature.disagrees 5");
  assert.equal(await add(project, fake, `${CODEC}@2.0.0`), "ok");
});

withRegistry("a key that changed is refused, one that the known key endorsed is not", async (project, fake) => {
  assert.equal(await add(project, fake), "ok");
  const [known] = fake.keys;
  await fake.publish([codecDefinition("2.0.1")]);
  const update = async (): Promise<string> => {
    try {
      await changeProject(await project.context(fake), { root: project.root, update: "all", decider: ALLOW_ALL });
      return "ok";
    } catch (error) {
      if (!(error instanceof ProjectError)) throw error;
      return `${error.diagnostics[0].code} ${error.exitCode}`;
    }
  };
  const thief = new TestKey();
  fake.keys = [known!, thief];
  assert.equal(await update(), "signature.key-changed 5");
  // Endorsed by itself, by another unknown key, and with the known key's name but not its signature.
  for (const by of [thief, new TestKey()]) {
    by.endorse(thief);
    assert.equal(await update(), "signature.key-changed 5");
    thief.endorsement = { keyId: known!.id, value: thief.endorsement!.value };
    assert.equal(await update(), "signature.key-changed 5");
  }
  assert.match(project.read("waft-lock.json")!, /"version": "2\.0\.0"/);
  const second = new TestKey();
  const third = new TestKey();
  known!.endorse(second);
  second.endorse(third);
  fake.keys = [third, second, known!, thief, third];
  assert.equal(await update(), "ok");
  assert.match(project.read("waft-lock.json")!, /"version": "2\.0\.1"/);
  const kept = readFileSync(join(project.home, "waft", "config", "registry-keys.json"), "utf8");
  assert.ok(kept.includes(third.id) && !kept.includes(thief.id));
});

withRegistry(
  "keys of the configuration count alone; a damaged list of keys is never taken for empty",
  async (project, fake) => {
    const config = join(project.home, "waft", "config");
    mkdirSync(config, { recursive: true });
    writeFileSync(
      join(config, "config.json"),
      JSON.stringify({ keys: { [`${REGISTRY}/`]: [new TestKey().publicKey] } }),
    );
    assert.equal(await add(project, fake), "signature.key 5");
    writeFileSync(join(config, "config.json"), JSON.stringify({ keys: { [REGISTRY]: [fake.keys[0].publicKey] } }));
    assert.equal(await add(project, fake), "ok");
    writeFileSync(join(config, "config.json"), JSON.stringify({ keys: { [REGISTRY]: ["short"] } }));
    assert.equal(await add(project, fake), "machine.value 1");
    writeFileSync(join(config, "config.json"), "{}");
    writeFileSync(join(config, "registry-keys.json"), "{");
    assert.equal((await add(project, fake)).startsWith("machine."), true);
  },
);

Deno.test({
  name: "signatures: keys that others could have written are refused",
  ignore: LACKS_POSIX_FILES, // permissions of Windows are not judged
}, async () => {
  const project = new TempProject();
  const fake = new FakeRegistry();
  try {
    await fake.publish([codecDefinition("2.0.0")]);
    const config = join(project.home, "waft", "config");
    const file = join(config, "registry-keys.json");
    mkdirSync(config, { recursive: true, mode: 0o755 });
    writeFileSync(file, JSON.stringify({ [REGISTRY]: {} }), { mode: 0o644 });
    for (const [path, mode] of [[file, 0o666], [config, 0o777]] as const) {
      const before = statSync(path).mode;
      chmodSync(path, mode);
      assert.match(await add(project, fake), /^machine\.unsafe/);
      chmodSync(path, before);
    }
  } finally {
    project.remove();
  }
});

withRegistry(
  "check reports keys that changed and releases that are no longer signed; offline it asks nothing",
  async (project, fake) => {
    assert.equal(await add(project, fake), "ok");
    fake.requests.length = 0;
    const offline = await checkProject(await project.context(fake, { offline: true }), project.root);
    assert.deepEqual([offline.diagnostics, fake.requests], [[], []]);
    fake.keys = [new TestKey()];
    const kept = await checkProject(await project.context(fake), project.root);
    // The release was verified before; the head of the log is new, and its key is not endorsed.
    assert.deepEqual(kept.diagnostics.map((d) => d.code), ["signature.key-changed"]);
    const machine = new TempProject();
    try {
      machine.write("waft.json", project.read("waft.json")!);
      machine.write("waft-lock.json", project.read("waft-lock.json")!);
      fake.tamper = changing(RECORD, (b) => ({ ...b, signature: { ...(b.signature as object), value: "AAAA" } }));
      const { diagnostics } = await checkProject(await machine.context(fake), machine.root);
      assert.deepEqual(diagnostics.map((d) => d.code), ["signature.wrong"]);
    } finally {
      machine.remove();
    }
  },
);

Deno.test("signatures: keys and signatures of other forms are refused", () => {
  const key = new TestKey();
  const bytes = new TextEncoder().encode("text");
  const good = key.sign(bytes);
  assert.equal(isSigned(bytes, good, key.publicKey), true);
  for (
    const [s, k] of [[good, ""], [good, "A".repeat(44)], [`${good}=`, key.publicKey], ["", key.publicKey], [
      good.replace(/.$/, "\n"),
      key.publicKey,
    ]]
  ) {
    assert.equal(isSigned(bytes, s!, k!), false);
  }
});
