/**
 * Loading a project for a run: the result for a valid project, and each reason to refuse.
 */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FakeRegistry, packageFiles } from "../../tests/project/fake_registry.ts";
import { CODEC, CODEC_WASM, codecDefinition, KV, kvDefinition } from "../../tests/project/sample_plugins.ts";
import { ALLOW_ALL, TempProject } from "../../tests/project/temp_project.ts";
import { ProjectError } from "../base/diagnostic.ts";
import { assemble, inspectModule } from "../definitions/engine_inspector.ts";
import { addPlugins } from "../ops/project/add.ts";
import type { ContextChoices } from "../packages/context.ts";
import { type Decider, deciderFromFlags } from "../ops/project/decide.ts";
import { loadProject } from "./load.ts";

const KV_WASM = assemble(`(module
  (import "waft:caller@1" "read" (func (param i64 i32 i32) (result i32)))
  (import "waft:fs@1" "write" (func (param i32 i32 i64 i32 i32) (result i32)))
  (import "waft:clock-wall@1" "now" (func (result i64)))
  (import "waft:self@1" "config-size" (func (result i32)))
  (import "github.com/acme/contracts/codec@1" "encode" (func (param i32 i32) (result i32)))
  (memory 1)
  (func (export "github.com/acme/contracts/kv@1#get") (param i32 i32 i32) (result i32) (i32.const 0)))`);

interface Setting {
  readonly project: TempProject;
  readonly fake: FakeRegistry;
  load(choices?: ContextChoices, options?: Parameters<typeof loadProject>[2]): ReturnType<typeof loadProject>;
  code(choices?: ContextChoices, options?: Parameters<typeof loadProject>[2]): Promise<string>;
}

function loadTest(name: string, work: (t: Setting) => Promise<void>, decider: Decider = ALLOW_ALL): void {
  Deno.test(`load: ${name}`, async () => {
    const fake = new FakeRegistry();
    await fake.publish([codecDefinition()], "github.com/acme", CODEC_WASM);
    await fake.publish([kvDefinition()], "github.com/acme", KV_WASM);
    const project = new TempProject();
    await addPlugins(await project.context(fake, { inspect: inspectModule }), {
      root: project.root,
      directory: project.root,
      specs: [KV],
      decider,
    });
    const load = async (choices: ContextChoices = {}, options = {}) =>
      await loadProject(await project.context(fake, { inspect: inspectModule, ...choices }), project.root, options);
    try {
      await work({
        project,
        fake,
        load,
        async code(choices, options) {
          try {
            await load(choices, options);
            return "ok";
          } catch (error) {
            assert.ok(error instanceof ProjectError, String(error));
            return `${error.diagnostics[0].code} ${error.exitCode}`;
          }
        },
      });
    } finally {
      project.remove();
    }
  });
}
const blobsOf = (project: TempProject): string => join(project.home, "waft", "cache", "blobs", "sha256");

loadTest(
  "plugins come in start order, linked, with their configuration; offline from the cache",
  async ({ fake, load }) => {
    fake.tamper = () => {
      throw new TypeError("no network");
    };
    const loaded = await load({ offline: true });
    assert.deepEqual(loaded.plugins.map((p) => p.id), [CODEC, KV]);
    const kv = loaded.plugins[1];
    assert.deepEqual(kv.bytes, KV_WASM);
    assert.deepEqual(kv.links.map((l) => `${l.module} ${l.name} ${l.target.kind}`), [
      "waft:caller@1 read host",
      "waft:fs@1 write host",
      "waft:clock-wall@1 now host",
      "waft:self@1 config-size self",
      "github.com/acme/contracts/codec@1 encode provider",
    ]);
    assert.equal(new TextDecoder().decode(kv.config), '{"maxEntries":10}');
    assert.deepEqual([kv.maxMemoryPages, loaded.plugins[0].maxMemoryPages], [256, 1024]);
    assert.deepEqual(loaded.guest.map((g) => `${g.module} ${g.name}`), [
      "acme_kv get",
      "github.com/acme/contracts/kv@1 get",
    ]);
  },
);

loadTest("a denied optional authority is a stub, a denied required one refuses", async ({ load }) => {
  const kv = (await load()).plugins[1];
  assert.deepEqual(kv.links.find((l) => l.name === "now")!.target, {
    kind: "denied",
    status: -3,
    reason: "clock.wall is denied",
  });
}, deciderFromFlags({ allow: [], deny: ["clock.wall"], allowRequested: true, command: "" }).decide);
loadTest(
  "a denied required authority refuses",
  async ({ code }) => assert.equal(await code(), "authority.denied 4"),
  // Flags do not deny it, but a lockfile can.
  async (request) => {
    const { "caller.memory.read": removed, ...grants } = (await ALLOW_ALL(request))!.grants;
    return { grants, denied: removed === undefined ? [] : ["caller.memory.read"] };
  },
);

loadTest("no lockfile, stale lockfile, broken lockfile", async ({ project, code }) => {
  const [manifest, lock] = [project.read("waft.json")!, project.read("waft-lock.json")!];
  project.write("waft.json", manifest.replace("^1.2.3", "^1.2.2"));
  assert.equal(await code(), "lock.stale 3");
  project.write("waft.json", manifest);
  project.write("waft-lock.json", lock.slice(1));
  assert.equal(await code(), "lock.syntax 3");
  project.write("waft-lock.json", lock.replace("./store", "./other"));
  assert.equal(await code(), "lock.review 4");
  const { unlinkSync } = await import("node:fs");
  unlinkSync(join(project.root, "waft-lock.json"));
  assert.equal(await code(), "lock.missing 3");
});

loadTest("engine, platform and policy", async ({ project, code }) => {
  assert.equal(await code({ engines: { waft: "0.0.9" } }), "incompatible.engine 9");
  mkdirSync(join(project.home, "waft", "config"), { recursive: true });
  const policy = join(project.home, "waft", "config", "policy.json");
  writeFileSync(policy, '{"deny":["caller.memory.read"]}');
  assert.equal(await code(), "policy.denied 4");
  writeFileSync(policy, '{"deny":["fs.write"]}');
  assert.equal(await code(), "ok");
});

loadTest(
  "a damaged blob is fetched again; a wrong one from the registry is refused",
  async ({ project, fake, code }) => {
    for (const name of readdirSync(blobsOf(project))) writeFileSync(join(blobsOf(project), name), "damaged");
    assert.equal(await code({ offline: true }), "registry.offline 7");
    assert.equal(await code(), "ok");
    for (const name of readdirSync(blobsOf(project))) writeFileSync(join(blobsOf(project), name), "damaged");
    fake.tamper = async (path, response) => {
      const body = new Uint8Array(await response.arrayBuffer());
      return path.includes("/blobs/")
        ? new Response(body.map((b, i) => i === 40 ? b ^ 1 : b))
        : new Response(body, response);
    };
    assert.equal(await code(), "integrity.artifact 5");
  },
);

loadTest("packages from paths: changes are noticed, --locked refuses them", async ({ project, fake, code }) => {
  const directory = join(project.root, "codec");
  for (const [path, bytes] of packageFiles([codecDefinition("2.0.9")], CODEC_WASM)) {
    mkdirSync(join(directory, path, ".."), { recursive: true });
    writeFileSync(join(directory, path), bytes);
  }
  await addPlugins(await project.context(fake, { inspect: inspectModule }), {
    root: project.root,
    directory: project.root,
    specs: ["./codec"],
    decider: ALLOW_ALL,
  });
  assert.equal(await code(), "ok");
  assert.equal(await code({}, { locked: true }), "lock.path 3");
  assert.equal(await code({}, { locked: true, allowPathPlugins: true }), "ok");
  writeFileSync(join(directory, "README.md"), "changed");
  assert.equal(await code(), "lock.path-changed 3");
});
