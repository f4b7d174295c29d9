/**
 * The project commands as processes, from init to rm, against a registry on loopback: output, JSON, exit codes.
 */
import process from "node:process";
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { assemble } from "../../project/definitions/engine_inspector.ts";
import type { Definition } from "../../project/definitions/definition.ts";
import { OUTPUT_SCHEMAS } from "../../project/output_schemas.ts";
import { FakeRegistry } from "../project/fake_registry.ts";
import { CODEC, CODEC_WASM, codecDefinition, definition, KV, kvDefinition } from "../project/sample_plugins.ts";
import { TempProject } from "../project/temp_project.ts";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { assertOutputSchema, type Envelope, seenCommands } from "./output_schema.ts";
import { type Run, waft } from "./waft.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

const KV_WASM = assemble(`(module
  (import "waft:caller@1" "read" (func (param i64 i32 i32) (result i32)))
  (import "waft:fs@1" "write" (func (param i32 i32 i64 i32 i32) (result i32)))
  (import "waft:clock-wall@1" "now" (func (result i64)))
  (import "github.com/acme/contracts/codec@1" "encode" (func (param i32 i32) (result i32)))
  (memory 1)
  (func (export "github.com/acme/contracts/kv@1#get") (param i32 i32 i32) (result i32) (i32.const 0)))`);

/** Is git installed? It is not under Wine. */
const HAS_GIT = spawnSync("git", ["--version"]).status === 0;

function commandTest(
  name: string,
  work: (
    t: {
      project: TempProject;
      fake: FakeRegistry;
      address: string;
      run: (...args: string[]) => Promise<Run>;
      json: (...args: string[]) => Promise<Envelope & { code: number }>;
    },
  ) => Promise<void>,
  manifest?: string,
  env: { readonly [name: string]: string } = {},
): void {
  Deno.test({
    name: `command: ${name}`,
    sanitizeResources: false,
    sanitizeOps: false,
    async fn() {
      const fake = new FakeRegistry();
      const publish = (d: Definition, wasm: Uint8Array): Promise<void> => fake.publish([d], "github.com/acme", wasm);
      await publish(codecDefinition("2.0.0"), CODEC_WASM);
      await publish(kvDefinition("1.2.3"), KV_WASM);
      const address = await fake.listen();
      const project = new TempProject(manifest);
      const run = (...args: string[]) => waft(args, project.root, project.home, { WAFT_REGISTRY: address, ...env });
      try {
        await work({
          project,
          fake,
          address,
          run,
          async json(...args) {
            const { code, out, err } = await run(...args, "--json");
            const lines = out.trimEnd().split("\n");
            assert.equal(lines.length, 1, `one JSON document on stdout: ${out} ${err}`);
            const envelope = JSON.parse(lines[0]) as Envelope;
            assertOutputSchema(envelope);
            return { ...envelope, code };
          },
        });
      } finally {
        await fake.close();
        project.remove();
      }
    },
  });
}
const codes = (e: Envelope): string[] => e.diagnostics.map((d) => d.code);

commandTest(
  "add, list, check, plan, update, grant, rm: output and exit codes",
  async ({ project, fake, run, json }) => {
    const added = await json("add", `${KV}@^1.2.0`, "--allow-requested", "--deny", "clock.wall");
    assert.deepEqual(
      [added.code, added.ok, added.command, added.schemaVersion],
      [0, true, "add", 1],
      JSON.stringify(added),
    );
    assert.deepEqual(added.data.written, ["waft.json", "waft-lock.json"]);
    const listed = await run("plugin", "list");
    assert.match(
      listed.out,
      /github\.com\/acme\/kv +1\.2\.3 +wasm +direct +ok +caller\.memory\.read fs\.write\[\/store=\.\/store\] import\.define\[acme_kv\]\n/,
    );
    const checked = await run("plugin", "check");
    assert.equal(checked.code, 0, checked.err);
    assert.match(checked.out, /ok +lockfile +2 plugins, canonical\n/);
    assert.match(checked.out, /ok +artifacts +2 verified, 0 downloaded\n/);
    assert.match(checked.out, /ok +links +4 imports, all granted or bound\n/);
    assert.match(checked.out, /passed\n$/);

    await fake.publish([codecDefinition("2.0.2")], "github.com/acme", CODEC_WASM);
    fake.yank(CODEC, "2.0.0", { reason: "broken on empty input", severity: "broken" });
    const yanked = await json("plugin", "check");
    assert.deepEqual([yanked.code, codes(yanked)], [0, ["registry.yanked"]]);
    const locked = project.read("waft-lock.json");
    const plan = await run("plugin", "plan", "--update", "--detailed-exitcode");
    assert.equal(plan.code, 10, plan.err);
    assert.equal(project.read("waft-lock.json"), locked);
    assert.match(plan.out, /~ github\.com\/acme\/codec +2\.0\.0 -> 2\.0\.2/);
    assert.match(plan.out, /load order: 1 github\.com\/acme\/codec {2}2 github\.com\/acme\/kv/);
    assert.match(plan.out, /github\.com\/acme\/kv +waft:caller@1 read +-> grant caller\.memory\.read/);
    assert.match(plan.out, /github\.com\/acme\/kv +waft:clock-wall@1 now +-> denied stub/);
    assert.match(plan.out, /guest +acme_kv get +-> github\.com\/acme\/kv/);
    assert.equal((await run("plugin", "update", CODEC)).code, 0);
    assert.match(project.read("waft-lock.json")!, /"version": "2\.0\.2"/);
    assert.equal((await run("plugin", "plan", "--detailed-exitcode")).code, 0);

    assert.equal((await run("plugin", "grant", KV)).code, 4);
    const granted = await run("plugin", "grant", KV, "--allow-requested", "--allow", "fs.write:/store=./elsewhere");
    assert.equal(granted.code, 0, granted.err);
    assert.match(project.read("waft-lock.json")!, /"\/store": "\.\/elsewhere"/);
    const unused = await json("add", "--allow", "random");
    assert.deepEqual([unused.code, codes(unused)], [2, ["usage.unused"]]);

    const status = await json("status");
    assert.deepEqual([status.data.lockfile.state, status.data.plugins.total], ["up to date", 2]);
    assert.equal(status.data.machine.state, process.platform === "linux" ? "supported" : "untested");
    const inspected = await run("plugin", "inspect", KV);
    assert.match(inspected.out, /clock\.wall +resolutionNs=1000 +optional +granted/);
    assert.equal((await run("rm", KV)).code, 0);
    assert.equal((await run("plugin", "list")).out, "The project has no plugins.\n");
  },
);

commandTest(
  "broken projects: status and check say why, the others refuse with codes",
  async ({ project, run, json }) => {
    await run("add", KV, "--allow-requested");
    const good = project.read("waft-lock.json")!;
    for (
      const [text, code, exit] of [
        [good.replace('"publisher": "github.com/acme"', '"publisher": "github.com/evil"'), "lock.digest", 5],
        [good.replace('"./store"', '"./x"'), "lock.review", 4],
        [good.replace('"^1.2.3"', '"^1.2.2"'), "lock.stale", 3],
        [good.slice(0, 900), "lock.syntax", 3],
        [`<<<<<<< a\n${good}=======\n${good}>>>>>>> b\n`, "lock.conflict-markers", 3],
        [good.replace('"lockVersion": 1', '"lockVersion": 2'), "lock.version", 3],
      ] as const
    ) {
      project.write("waft-lock.json", text);
      const status = await json("status");
      assert.deepEqual([status.code, codes(status).includes(code)], [exit, true], code);
      const check = await json("plugin", "check", "--offline");
      assert.deepEqual([check.code, codes(check)[0], check.ok], [exit, code, false]);
      const list = await json("plugin", "list");
      assert.deepEqual([list.code, codes(list)[0]], [exit, code]);
    }
    // Non-canonical JSON of the same content is a warning; `add` rewrites it in canonical form.
    project.write("waft-lock.json", JSON.stringify(JSON.parse(good)));
    const reformed = await json("plugin", "check", "--offline");
    assert.deepEqual([reformed.code, codes(reformed), reformed.ok], [0, ["lock.format"], true]);
    assert.equal((await json("add")).code, 0);
    assert.equal(project.read("waft-lock.json"), good);
    project.write("waft.json", '{ "plugins": { "acme/kv": "^1" }, "x": 1 }');
    const broken = await json("add");
    assert.deepEqual([broken.code, codes(broken)], [3, ["manifest.value", "manifest.unknown-key"]]);
    const status = await json("status");
    assert.deepEqual([status.code, status.data.manifest.state], [3, "broken"]);
  },
);

commandTest("grants, denials, yanks and versions out of range are told where they matter", async (t) => {
  const { fake, run, project, json } = t;
  project.write("main.wat", '(module (func (export "f")))');
  const allow = ["caller.memory.read", "import.define", "fs.write:/store=./data"].flatMap((a) => ["--allow", a]);
  const added = await run("add", KV, ...allow, "--deny", "clock.wall");
  assert.match(
    added.out,
    /granted: caller\.memory\.read, fs\.write \/store=\.\/data, import\.define acme_kv; denied: clock\.wall/,
  );
  assert.doesNotMatch(added.out, /\+clock\.wall|\+fs\.write/);

  await fake.publish([kvDefinition("2.0.0")], "github.com/acme", KV_WASM);
  const update = await run("plugin", "update");
  assert.match(update.out, /2\.0\.0 skipped: outside of \^1\.2\.3/);
  assert.doesNotMatch(update.out, /up to date/);
  assert.match((await run("add")).out, /^Everything is up to date\.$/m);

  assert.doesNotMatch((await run("status")).err, /yanked/);
  fake.yank(KV, "1.2.3", { reason: "loses data", severity: "broken" });
  const check = await run("plugin", "check");
  assert.match(check.err, /registry\.yanked: .*loses data/);
  assert.match(check.out, /warning +registry +digests and signatures are good; see the warnings/);
  assert.doesNotMatch(check.out, /nothing is yanked/);
  for (const words of [["status"], ["run", "main.wat"]]) {
    const told = await run(...words);
    assert.match(
      told.err,
      /warning: registry\.yanked: github\.com\/acme\/kv 1\.2\.3 was yanked \(broken\): loses data/,
    );
    assert.equal(told.code, 0, told.err);
  }

  // Links say nothing good of modules that could not be read.
  fake.tamper = (path, response) => path.includes("/blobs/") ? new Response("damaged") : response;
  rmSync(join(project.home, "waft", "cache", "blobs"), { recursive: true });
  const failed = await json("plugin", "check");
  const of = (name: string) => failed.data.checks.find((c: { readonly name: string }) => c.name === name).status;
  assert.deepEqual([failed.code, of("artifacts"), of("links")], [5, "failed", "skipped"]);
});

commandTest("search, tree, outdated; login keeps a token for its owner alone, logout forgets it", async (t) => {
  const { fake, project, run } = t;
  assert.match(
    (await run("search", "key", "value")).out,
    /github\.com\/acme\/kv +1\.2\.3 +About github\.com\/acme\/kv/,
  );
  assert.equal((await run("tree")).out, "The project has no plugins.\n");
  await run("add", KV, "--allow-requested");
  assert.equal(
    (await run("tree")).out,
    `└─ ${KV} 1.2.3 (^1.2.3)\n   └─ ${CODEC} 2.0.0 (^2.0.0)\n`,
  );
  assert.equal((await run("outdated")).out, "All plugins are up to date.\n");
  await fake.publish([kvDefinition("1.3.0")], "github.com/acme", KV_WASM);
  await fake.publish([kvDefinition("2.0.0")], "github.com/acme", KV_WASM);
  const outdated = await run("outdated", "--detailed-exitcode");
  assert.match(outdated.out, /github\.com\/acme\/kv +1\.2\.3 +1\.3\.0 +2\.0\.0 +you/);
  assert.equal(outdated.code, 10);

  // The registry is on loopback in this process; keeping a token asks it nothing.
  const keep = (input: string, ...flags: string[]) => {
    const env = {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      DENO_DIR: process.env.DENO_DIR,
      WAFT_HOME: `${project.home}/waft`,
    };
    const args = [...hostArguments(CLI), "login", "--registry", t.address, ...flags];
    return spawnSync(process.execPath, args, { cwd: project.root, env, input, encoding: "utf8" });
  };
  const yank = ["plugin", "yank", `${KV}@1.2.3`, "--reason", "Old", "--severity", "other"];
  assert.equal((await run(...yank)).code, 8);
  assert.match(keep("short\n").stderr, /auth\.token/);
  assert.match(keep("has spaces in it\n").stderr, /auth\.token/);
  const kept = keep("waft_0123456789\n", "--json");
  assert.equal(kept.status, 0);
  assertOutputSchema(JSON.parse(kept.stdout));
  const file = join(project.home, "waft", "config", "credentials.json");
  assert.equal((await run(...yank)).code, 0);
  if (!LACKS_POSIX_FILES) {
    assert.equal(statSync(file).mode & 0o777, 0o600);
    // A file that others can read does not count.
    chmodSync(file, 0o644);
    assert.equal((await run(...yank)).code, 8);
    assert.match((await run("logout")).err, /auth\.unsafe/);
    chmodSync(file, 0o600);
  }
  assert.match((await run("logout")).out, /is forgotten/);
  assert.equal((await run(...yank)).code, 8);
  assert.match((await run("logout")).out, /there is no token/);
});

commandTest("a poisoned lockfile is found by asking the registry", async ({ project, fake, run, json }) => {
  await run("add", KV, "--allow-requested");
  const { sealLockfile, writeLockfile } = await import("../../project/lockfile/lock_write.ts");
  const lock = JSON.parse(project.read("waft-lock.json")!);
  // Everything in the lockfile is consistent, and the blob is in the cache: only the registry knows better.
  await fake.publish([{ ...codecDefinition("2.0.0"), description: "evil" }], "github.com/acme", CODEC_WASM);
  const evil = fake.published.pop()!;
  const { digestBytes } = await import("../../project/base/integrity.ts");
  lock.packages[CODEC].artifact = { digest: digestBytes(evil.archive), size: evil.archive.length };
  lock.plugins[CODEC].definition = evil.plugins[CODEC].definition;
  lock.plugins[CODEC].entry.digest = digestBytes(CODEC_WASM);
  project.write("waft-lock.json", writeLockfile(sealLockfile(lock)));
  const { mkdirSync, writeFileSync } = await import("node:fs");
  const blobs = join(project.home, "waft", "cache", "blobs", "sha256");
  mkdirSync(blobs, { recursive: true });
  writeFileSync(join(blobs, digestBytes(evil.archive).slice(7)), evil.archive);
  assert.equal((await json("plugin", "check", "--offline")).code, 0);
  const check = await json("plugin", "check");
  assert.deepEqual([check.code, codes(check)], [5, ["integrity.disagrees"]]);
});

commandTest("a module whose imports are not covered by its definition cannot be added", async ({ fake, json }) => {
  const sneaky = assemble(
    `(module (import "waft:net@1" "connect" (func (param i32 i32 i32) (result i32))) (import "env" "f" (func)) (memory 1))`,
  );
  await fake.publish(
    [definition("a.b/sneaky", "1.0.0", { authorities: [{ name: "random", mode: "optional", reason: "x" }] })],
    "a.b",
    sneaky,
  );
  const added = await json("add", "a.b/sneaky", "--allow-requested");
  assert.deepEqual([added.code, codes(added)], [3, ["link.unrequested", "link.import", "link.unused"]]);
  await fake.publish([definition("a.b/broken", "1.0.0")], "a.b", Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 99));
  assert.deepEqual(codes(await json("add", "a.b/broken")), ["link.module"]);
});

commandTest(
  "init makes a project that builds and publishes; the version may come from a tag",
  async ({ project, run, json }) => {
    const missing = await json("init", "--full", "--kind", "plugin", "--yes");
    assert.equal(missing.code, 2);
    assert.match(JSON.stringify(missing.diagnostics), /needs --name, --module, --description, --license, --repository/);
    const flags = [
      "--kind",
      "plugin",
      "--name",
      "Greeter",
      "--module",
      "github.com/ada/greeter",
      "--description",
      "Greets.",
      "--license",
      "MIT",
      "--repository",
      "https://github.com/ada/greeter",
    ];
    const made = await json("init", "--full", ...flags, "--yes");
    assert.deepEqual([made.code, made.data.created], [0, [
      ".gitignore",
      "README.md",
      "dist/plugin.wasm",
      "register/catalog.json",
      "src/plugin.wat",
      "test/guest.wat",
      "waft.json",
    ]]);
    assert.equal((await run("init", "--quick")).code, 3);
    // The build command in its README gives the same module.
    const built = readFileSync(join(project.root, "dist/plugin.wasm"));
    assert.equal((await run("parse", "src/plugin.wat", "-o", "dist/plugin.wasm")).code, 0);
    assert.deepEqual(readFileSync(join(project.root, "dist/plugin.wasm")), built);
    const dry = await json("plugin", "publish", "--dry-run");
    assert.deepEqual([
      dry.code,
      dry.data.version,
      dry.data.versionSource,
      dry.data.files.map((f: { path: string }) => f.path),
    ], [
      0,
      "0.1.0",
      "package.version",
      ["README.md", "dist/plugin.wasm", "register/catalog.json", "waft.json"],
    ]);
    assert.deepEqual((await json("plugin", "publish")).diagnostics.map((d) => d.code), ["auth.missing"]);
    if (!HAS_GIT) return;

    const git = (...args: string[]): void => {
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], {
        cwd: project.root,
        stdio: "ignore",
      });
    };
    git("init");
    git("add", ".");
    git("commit", "-m", "first");
    project.write("waft.json", project.read("waft.json")!.replace(/ +"version": "0\.1\.0",\n/, ""));
    assert.deepEqual(codes(await json("plugin", "publish", "--dry-run")), ["publish.version"]);
    git("commit", "-am", "no version");
    git("tag", "v0.2.0");
    git("tag", "not-a-version");
    const tagged = await json("plugin", "publish", "--dry-run");
    assert.deepEqual(
      [tagged.data?.version, tagged.data?.versionSource],
      ["0.2.0", "git tag"],
      JSON.stringify(tagged.diagnostics),
    );
    project.write("README.md", "changed");
    assert.deepEqual(codes(await json("plugin", "publish", "--dry-run")), ["publish.dirty"]);
    git("commit", "-am", "later");
    assert.deepEqual(codes(await json("plugin", "publish", "--dry-run")), ["publish.tag"]);
  },
  "",
);

commandTest("init --upgrade rewrites a v0 manifest, asking for hosts", async ({ project, run, json }) => {
  project.write(
    "waft.json",
    '{\n  "$schema": "https://waft.sh/schemas/v0/schema.json",\n  "plugins": {\n    "acme/kv": "^0.0.0"\n  }\n}\n',
  );
  assert.deepEqual(codes(await json("add")), ["manifest.schema-version"]);
  assert.deepEqual(codes(await json("init", "--upgrade")), ["usage.host"]);
  assert.equal((await run("init", "--upgrade", "--host", "github.com")).code, 0);
  assert.deepEqual(JSON.parse(project.read("waft.json")!), {
    $schema: "https://waft.sh/schemas/v1/schema.json",
    plugins: { "github.com/acme/kv": "^0.0.0" },
  });
}, "");

commandTest("opts and features show state and where it came from", async ({ project, json }) => {
  project.write(
    "waft.json",
    '{ "settings": { "features": { "simd": false }, "optimizations": { "inline": false }, "runtime": { "parallel": "4" } } }',
  );
  const opts = await json("opts", "--opt", "bounds-facts=off");
  const find = (e: Envelope, name: string) =>
    (e.data.keys as { name: string; value: boolean; from: string }[]).find((k) => k.name === name)!;
  assert.deepEqual([find(opts, "inline").value, find(opts, "inline").from], [false, "manifest"]);
  assert.deepEqual([find(opts, "bounds-facts").value, find(opts, "bounds-facts").from], [false, "flag"]);
  assert.deepEqual([opts.data.runtime.parallel, opts.data.keys.length], [{ value: 4, from: "manifest" }, 50]);
  const features = await json("features", "--feature", "simd=on");
  assert.deepEqual([find(features, "simd").value, find(features, "simd").from, features.data.keys.length], [
    true,
    "flag",
    24,
  ]);
  assert.deepEqual(codes(await json("features", "--feature", "sidm=on")), ["usage.switch"]);
});

commandTest(
  "plugin catalog scaffolds from the module, plugin inspect shows a directory",
  async ({ project, run, json }) => {
    const flags = [
      "--name",
      "G",
      "--module",
      "github.com/ada/g",
      "--description",
      "d",
      "--license",
      "MIT",
      "--repository",
      "https://github.com/ada/g",
    ];
    await run("init", "--full", "--kind", "plugin", ...flags, "--yes");
    const shown = await run("plugin", "inspect", ".");
    assert.match(shown.out, /provides github\.com\/ada\/g\/contracts\/greet@1\n {2}greet {2}\(i64, i32\) -> \(i32\)/);
    assert.deepEqual(codes(await json("plugin", "catalog", "dist/plugin.wasm")), ["project.exists"]);
    const made = await json("plugin", "catalog", "dist/plugin.wasm", "--dry-run");
    const { definition } = JSON.parse(made.data.text).plugins[0];
    assert.deepEqual(definition.authorities.map((a: { name: string }) => a.name), ["caller.memory.write"]);
    assert.deepEqual(definition.provides, [{
      id: "github.com/ada/g/contracts/greet",
      major: 1,
      functions: [{ name: "greet", params: ["i64", "i32"], results: ["i32"] }],
    }]);
    assert.deepEqual(made.data.todo, ["write the reason for caller.memory.write"]);
    project.write("dist/plugin.wasm", "no module");
    for (
      const args of [["plugin", "inspect", "."], ["plugin", "catalog", "dist/plugin.wasm", "--dry-run"], [
        "plugin",
        "publish",
        "--dry-run",
      ]]
    ) {
      const broken = await json(...args);
      assert.deepEqual([broken.code, codes(broken)], [3, ["link.module"]], args.join(" "));
    }
  },
  "",
);

commandTest("run passes and prints NaNs by their bits", async ({ project, run }) => {
  project.write(
    "m.wat",
    `(module
      (func (export "f32") (param f32) (result i32) (i32.reinterpret_f32 (local.get 0)))
      (func (export "f64") (param f64) (result i64) (i64.reinterpret_f64 (local.get 0)))
      (func (export "id") (param f32 f64 i32 i64) (result i64 i32 f64 f32)
        (local.get 3) (local.get 2) (local.get 1) (local.get 0))
      (func (export "trap") (param f64) unreachable)
      (func (export "swap") (param i32 i64) (result f32 f64)
        (f32.reinterpret_i32 (local.get 0)) (f64.reinterpret_i64 (local.get 1))))`,
  );
  const out = async (...args: string[]) => (await run("run", "--invoke", ...args)).out;
  assert.equal(await out("f32", "m.wat", "nan:0x123"), `${0x7f800123}\n`);
  assert.equal(await out("f32", "m.wat", "-nan"), `${0xffc00000 | 0}\n`);
  assert.equal(await out("f64", "m.wat", "nan:0x123"), `${0x7ff0000000000123n}\n`);
  assert.equal(await out("id", "m.wat", "nan:0x1", "-nan:0x2", "-3", "-4"), "-4\n-3\n-nan:0x2\nnan:0x1\n");
  assert.equal(await out("id", "m.wat", "1.5", "-inf", "0xffffffff", "-0x8"), "-8\n-1\n-inf\n1.5\n");
  assert.equal(await out("swap", "m.wat", "0x7fc00000", "0xffffffffffffffff"), "nan\n-nan:0xfffffffffffff\n");
  assert.match((await run("run", "--invoke", "trap", "m.wat", "nan")).err, /trap: unreachable\n {4}at trap/);
  assert.match((await run("run", "--invoke", "f32", "m.wat", "nan:0x0")).err, /nan:0x0 is out of range for an f32/);
  assert.equal(
    (await run("run", "--record", "log", "--invoke", "id", "m.wat", "2", "nan", "3", "4")).out,
    "4\n3\nnan\n2\n",
  );
});

commandTest("run compiles a big module by as many threads as the manifest or a flag says", async ({ project, run }) => {
  project.write("waft.json", '{ "settings": { "runtime": { "parallel": "2" } } }');
  const body = "(drop (v128.const i32x4 1 2 3 4))".repeat(1200);
  const functions = Array.from({ length: 60 }, () => `(func ${body})`).join("");
  project.write("m.wat", `(module ${functions} (func (export "f") (result i32) (i32.const 7)))`);
  for (const flags of [[], ["--parallel", "3"], ["--parallel", "auto"], ["--parallel", "0"]]) {
    assert.deepEqual(await run("run", ...flags, "--invoke", "f", "m.wat"), { code: 0, out: "7\n", err: "" });
  }
  assert.equal((await run("run", "--parallel", "many", "m.wat")).code, 2);
});

commandTest("run takes its defaults from the nearest manifest, flags override them", async ({ project, run }) => {
  project.write("m.wat", '(module (func (export "f") (result i32 i32) (i32.const 1) (i32.const 2)))');
  const settings = (value: object): void => project.write("waft.json", JSON.stringify({ settings: value }));
  assert.deepEqual(await run("run", "m.wat"), { code: 0, out: "1\n2\n", err: "" });
  settings({
    features: { "multi-value": false },
    optimizations: { inline: false },
    runtime: { deferredBoundsChecking: false },
  });
  const off = await run("run", "m.wat");
  assert.equal(off.code, 1);
  assert.match(off.err, /multi-value/);
  assert.deepEqual(await run("run", "--feature", "multi-value=on", "m.wat"), { code: 0, out: "1\n2\n", err: "" });
  settings({ features: { "multi-value": "off" } });
  const invalid = await run("run", "m.wat");
  assert.deepEqual([invalid.code, invalid.out], [3, ""]);
  assert.match(
    invalid.err,
    /waft\.json:1:\d+: manifest\.type: settings\.features\["multi-value"\] must be a boolean, not a string\n {2}help: write true or false\n$/,
  );
});

commandTest("a project narrows WASI for its guests", async ({ project, run, json }) => {
  project.write(
    "guest.wat",
    `(module
      (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
      (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (memory (export "memory") 1)
      (func (export "errors") (result i32 i32 i32)
        (call $random (i32.const 0) (i32.const 8))
        (call $clock (i32.const 0) (i64.const 1) (i32.const 8))
        (call $write (i32.const 1) (i32.const 16) (i32.const 0) (i32.const 32))))`,
  );
  const errors = async (...flags: string[]): Promise<string> =>
    (await run("run", ...flags, "--invoke", "errors", "guest.wat")).out.trim().replace(/\s+/g, " ");
  assert.equal(await errors(), "0 0 0");
  const narrowed = await json("add", "--wasi", "none");
  assert.deepEqual([narrowed.code, narrowed.data.written], [0, ["waft-lock.json"]]);
  assert.match(project.read("waft-lock.json")!, /"guest": \{\s+"bindings": \{\},\s+"wasi": \[\]\s+\}/);
  assert.equal(await errors(), "76 76 8", "not capable, and no such descriptor");
  assert.equal(await errors("--bare"), "0 0 0");
  const refused = await run("run", "--dir", ".::/", "--invoke", "errors", "guest.wat");
  assert.deepEqual([refused.code, refused.out], [4, ""]);
  assert.match(refused.err, /authority\.wasi: the project does not allow its guests --dir \(fs\)/);
  assert.equal((await json("add", "--wasi", "stdio,clock")).code, 0);
  assert.equal(await errors(), "76 0 0");
  assert.match((await run("plugin", "check")).out, /ok +wasi +only clock, stdio/);
  assert.equal((await json("add", CODEC)).code, 0);
  assert.match(project.read("waft-lock.json")!, /"wasi": \[\s+"clock",\s+"stdio"\s+\]/, "other changes keep it");
  assert.equal((await json("add", "--wasi", "fs,fly")).code, 2);
  assert.equal((await json("add", "--wasi", "all")).code, 0);
  assert.equal(await errors(), "0 0 0");
  assert.doesNotMatch(project.read("waft-lock.json")!, /"wasi"/);
});

commandTest("the command line that a missing review shows decides it as it stands", async ({ project, fake, run }) => {
  const address = await fake.listen();
  const flags = ["--allow", "caller.memory.read", "--deny", "clock.wall", "--registry", address];
  const asked = await run("add", `${KV}@^1.2.0`, ...flags);
  assert.equal(asked.code, 4, asked.err);
  const shown = /decide with flags: waft (.*)$/m.exec(asked.err)![1];
  const words = shown.split(" ").map((word) => word.replace(/^'(.*)'$/, "$1"));
  for (const flag of flags) assert.ok(words.includes(flag), `${flag} in ${shown}`);
  const decided = await run(...words);
  assert.equal(decided.code, 0, `${shown}: ${decided.err}`);
  assert.match(project.read("waft-lock.json")!, /"denied": \[\s+"clock\.wall"/);
});

commandTest(
  "every command that prints JSON conforms to its published schema",
  async ({ project, run, json }) => {
    const ok = async (...args: string[]): Promise<void> => {
      const { code, diagnostics } = await json(...args);
      assert.equal(code, 0, `${args.join(" ")}: ${JSON.stringify(diagnostics)}`);
    };
    await ok("add", `${KV}@^1.2.0`, "--allow-requested");
    await ok("plugin", "list");
    await ok("plugin", "inspect", KV);
    await ok("plugin", "inspect", `${CODEC}@2.0.0`);
    await ok("plugin", "plan", "--update");
    await ok("plugin", "grant", KV, "--allow-requested", "--deny", "clock.wall");
    await ok("plugin", "update");
    await ok("rm", KV);
    await ok("plugin", "yank", `${KV}@1.2.3`, "--reason", "Loses values", "--severity", "broken");
    await ok("plugin", "deprecate", `${KV}@1.2.3`, "--message", "Use another");
    await ok("plugin", "publishers");
    await ok("plugin", "transfer");
    await ok("trust");
    await ok("search", "kv");
    await ok("tree");
    await ok("outdated");
    await ok("logout");
    await ok("commands");
    await ok("config", "list");
    await ok("config", "set", "features.simd", "off");
    await ok("config", "diff");
    await ok("config", "get", "features.simd");
    await ok("config", "unset", "features.simd");
    project.write("c.wat", `(component (import "a:b/c@1.0.0" (instance (export "f" (func (result u8))))))`);
    const { data: { worlds } } = await json("inspect", "c.wat");
    assert.deepEqual((worlds as { imports: unknown }[])[0].imports, [{
      name: "a:b/c@1.0.0",
      kind: "interface",
      interface: "a:b/c@1.0.0",
      types: [],
      functions: [{ name: "f", type: "func() -> u8" }],
    }]);
    project.write("m.wat", `(module $m (memory 1) (func $f (export "f") unreachable))`);
    project.write(
      "loop.wat",
      `(module (func $f (export "f") (param i32)
      (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))`,
    );
    await ok("inspect", "m.wat");
    await ok("objdump", "-x", "-d", "-s", "m.wat");
    await ok("objdump", "c.wat");
    await ok("verify", "m.wat");
    await ok("verify", "c.wat");
    assert.equal((await run("compile", "m.wat", "-o", "m.artifact")).code, 0);
    await ok("inspect", "m.artifact");
    assert.equal((await run("run", "--coredump", "core", "m.wat")).code, 134);
    await ok("inspect", "core");
    project.write("w.wit", `package a:b@1.0.0; interface c { f: func() -> u8; } world w { export c; }`);
    project.write("p.wat", `(module (func (export "a:b/c@1.0.0#f") (result i32) (i32.const 42)))`);
    await ok("component", "new", "p.wat", "--wit", "w.wit", "-o", "p.wasm");
    project.write(
      "s.wat",
      `(component (import "a:b/c@1.0.0" (instance $c (export "f" (func (result u8)))))
      (alias export $c "f" (func $f)) (export "g" (func $f)))`,
    );
    await ok("compose", "s.wat", "--plug", "p.wasm", "-o", "composed.wasm");
    const { data: composed } = await json("inspect", "composed.wasm");
    assert.deepEqual(composed.worlds[0].imports, []);
    assert.equal((await run("run", "--invoke", "g()", "composed.wasm")).out, "42\n");
    const unfit = await json("component", "new", "m.wat", "--wit", "w.wit", "-o", "unfit.wasm");
    assert.deepEqual([unfit.code, unfit.data, codes(unfit)], [1, null, ["component.rejected"]]);
    assert.equal(project.read("unfit.wasm"), undefined);
    assert.deepEqual(codes(await json("compose", "s.wat", "--plug", "s.wat", "-o", "x.wasm")), ["compose.rejected"]);
    assert.deepEqual(codes(await json("component", "new", "no.wat", "-o", "x.wasm")), ["component.unreadable"]);
    assert.deepEqual((await run("component", "new", "p.wat", "--world", "w", "-o", "x.wasm")).code, 2);
    assert.deepEqual((await run("component", "new", "p.wat", "--adapt", "x", "-o", "x.wasm")).code, 2);
    assert.equal((await run("run", "--bare", "--record", "log", "m.wat")).code, 134);
    await ok("inspect", "log");
    await ok("replay", "log");
    for (const kind of process.platform === "linux" ? ["--counts", "--interval=1"] : ["--counts"]) {
      // Options come before the file, since later words are the program's.
      const { out, err } = await run("profile", "--json", kind, "loop.wat", "30000000");
      const envelope = JSON.parse(out) as Envelope;
      assertOutputSchema(envelope);
      assert.equal(envelope.data.functions[0].name, "f", err);
    }
    project.write("m.wat", "(module)");
    assert.deepEqual(codes(await json("replay", "m.wat")), ["replay.rejected"]);
    project.write("c.wat", "(component\n  nonsense)");
    const rejected = await json("inspect", "c.wat");
    assert.deepEqual([rejected.code, rejected.data, codes(rejected)], [1, null, ["inspect.rejected"]]);
    assert.deepEqual(codes(await json("inspect", "missing.wasm")), ["inspect.unreadable"]);
    assert.equal((await json("login")).code, 8, "no token on standard input");
    // The other tests of this file run the rest, but for those in tests/installer/version_command_test.ts.
    const here = Object.keys(OUTPUT_SCHEMAS).filter((command) => !/^(?:self|version)\./.test(command));
    assert.deepEqual([...seenCommands].sort(), here.sort());
  },
  undefined,
  { WAFT_TOKEN: "waft_test" },
);
