/**
 * Plugins of a user: `waft add --user` and programs that import from them, with and without a project, as processes
 * against a registry on loopback.
 */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assemble } from "../../project/definitions/engine_inspector.ts";
import { FakeRegistry } from "../project/fake_registry.ts";
import { definition } from "../project/sample_plugins.ts";
import { TempProject } from "../project/temp_project.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { assertOutputSchema } from "./output_schema.ts";
import { type Run, waft } from "./waft.ts";

const DICE = "github.com/acme/dice";
const OTHER = "github.com/acme/other-dice";
const TOOLS = "github.com/acme/tools";

/** A plugin that needs random bytes, and says `value`. */
function dice(value: number): Uint8Array {
  return assemble(`(module
    (import "waft:random@1" "fill" (func $fill (param i32 i32) (result i32)))
    (memory 1)
    (func (export "github.com/acme/contracts/dice@1#roll") (result i32)
      (drop (call $fill (i32.const 0) (i32.const 4)))
      (i32.const ${value})))`);
}

function diceDefinition(id: string, version = "1.0.0") {
  return definition(id, version, {
    authorities: [{ name: "random", mode: "required", reason: "Dice have to be fair." }],
    provides: [{
      id: "github.com/acme/contracts/dice",
      major: 1,
      functions: [{ name: "roll", params: [], results: ["i32"] }],
    }],
  });
}

/** A plugin without authority and without relation to the others. */
const TOOLS_WASM = assemble(`(module
  (func (export "github.com/acme/contracts/tools@1#one") (result i32) (i32.const 1)))`);
const TOOLS_DEFINITION = definition(TOOLS, "1.0.0", {
  provides: [{
    id: "github.com/acme/contracts/tools",
    major: 1,
    functions: [{ name: "one", params: [], results: ["i32"] }],
  }],
});

const GUEST = `(module
  (import "github.com/acme/contracts/dice@1" "roll" (func $roll (result i32)))
  (func (export "f") (result i32) (call $roll)))`;

interface Place {
  readonly project: TempProject;
  /** The folder of the user's manifest and lockfile. */
  readonly user: string;
  /** Runs in a folder without a project. */
  readonly outside: (...args: string[]) => Promise<Run>;
  readonly inside: (...args: string[]) => Promise<Run>;
}

function userTest(name: string, work: (place: Place) => Promise<void>): void {
  Deno.test({
    name: `plugins of a user: ${name}`,
    sanitizeResources: false,
    sanitizeOps: false,
    async fn() {
      const fake = new FakeRegistry();
      await fake.publish([diceDefinition(DICE)], "github.com/acme", dice(4));
      await fake.publish([diceDefinition(OTHER)], "github.com/acme", dice(6));
      await fake.publish([TOOLS_DEFINITION], "github.com/acme", TOOLS_WASM);
      const address = await fake.listen();
      const project = new TempProject();
      const folder = join(project.home, "elsewhere");
      mkdirSync(folder);
      writeFileSync(join(folder, "g.wat"), GUEST);
      project.write("g.wat", GUEST);
      const run = (directory: string) => (...args: string[]) =>
        waft(args, directory, project.home, { WAFT_REGISTRY: address });
      try {
        await work({
          project,
          user: join(project.home, "waft", "config", "user"),
          outside: run(folder),
          inside: run(project.root),
        });
      } finally {
        await fake.close();
        project.remove();
      }
    },
  });
}

userTest("a program without a project imports from a reviewed plugin", async ({ user, outside }) => {
  assert.match((await outside("run", "--invoke", "f", "g.wat")).err, /add a plugin that provides it/);
  assert.match((await outside("plugin", "list", "--user")).err, /user\.missing: you have no plugins of your own/);
  const dry = await outside("add", "--user", "--dry-run", DICE);
  assert.deepEqual([dry.code === 0, existsSync(user)], [false, false], dry.err);
  const undecided = await outside("add", "--user", DICE);
  assert.match(undecided.err, /waft add .*--user/, "the command to paste keeps the flag");
  assert.notEqual(undecided.code, 0);
  const added = await outside("add", "--user", "--json", "--allow", "random", DICE);
  assert.equal(added.code, 0, added.err + added.out);
  assertOutputSchema(JSON.parse(added.out));
  assert.equal(JSON.parse(readFileSync(join(user, "waft.json"), "utf8")).plugins[DICE], "^1.0.0");
  assert.deepEqual(await outside("run", "--invoke", "f", "g.wat"), { code: 0, out: "4\n", err: "" });
  assert.match((await outside("run", "--bare", "--invoke", "f", "g.wat")).err, /unknown import/);
  assert.match((await outside("plugin", "list", "--user")).out, /github\.com\/acme\/dice +1\.0\.0/);
  assert.match((await outside("tree", "--user")).out, /github\.com\/acme\/dice/);
  assert.equal((await outside("plugin", "check", "--user")).code, 0);
  assert.match((await outside("add", "--user", "--project", ".", DICE)).err, /--user and --project exclude/);
  assert.match((await outside("add", "--user", "--wasi", "none", DICE)).err, /--wasi is for the guests of a project/);
  assert.equal((await outside("rm", "--user", DICE)).code, 0);
  assert.match((await outside("run", "--invoke", "f", "g.wat")).err, /unknown import/);
});

userTest("a project's own plugins win", async ({ project, outside, inside }) => {
  assert.equal((await outside("add", "--user", "--allow", "random", DICE)).code, 0);
  assert.deepEqual(await inside("run", "--invoke", "f", "g.wat"), { code: 0, out: "4\n", err: "" });
  assert.equal((await inside("add", "--allow", "random", OTHER)).code, 0);
  assert.deepEqual(await inside("run", "--invoke", "f", "g.wat"), { code: 0, out: "6\n", err: "" });
  assert.match(project.read("waft.json")!, /other-dice/);
  // A namespace that only the user's plugins serve, beside one of the project's.
  assert.equal((await outside("add", "--user", TOOLS)).code, 0);
  project.write(
    "both.wat",
    `(module
      (import "github.com/acme/contracts/dice@1" "roll" (func $roll (result i32)))
      (import "github.com/acme/contracts/tools@1" "one" (func $one (result i32)))
      (func (export "f") (result i32) (i32.add (call $roll) (call $one))))`,
  );
  assert.deepEqual(await inside("run", "--invoke", "f", "both.wat"), { code: 0, out: "7\n", err: "" });
});

userTest(
  "grants that this user did not accept, and damaged files, stop programs that need them alone",
  async (place) => {
    const { user, outside, project } = place;
    assert.equal((await outside("add", "--user", "--allow", "random", DICE)).code, 0);
    const lock = readFileSync(join(user, "waft-lock.json"), "utf8");
    writeFileSync(
      join(project.home, "elsewhere", "plain.wat"),
      `(module (func (export "f") (result i32) (i32.const 3)))`,
    );
    const needsNone = () => outside("run", "--invoke", "f", "plain.wat");
    assert.equal((await outside("trust", "--user", "--forget")).code, 0);
    const unaccepted = await outside("run", "--invoke", "f", "g.wat");
    assert.equal(unaccepted.code !== 0 && unaccepted.out, "");
    const [, digest] = /waft trust --user (sha256:[0-9a-f]{64})/.exec(unaccepted.err) ?? [];
    assert.ok(digest !== undefined, unaccepted.err);
    assert.equal((await outside("trust", "--user", digest)).code, 0);
    assert.equal((await outside("run", "--invoke", "f", "g.wat")).out, "4\n");
    const hostile = [
      lock.replace(/"random": \{\}/, `"random": {},\n        "net.connect": {}`),
      lock.replace(/1\.0\.0/g, "1.0.1"),
      lock.slice(0, lock.length / 2),
      "{".repeat(100_000),
      JSON.stringify({ lockVersion: 99 }),
      `{"__proto__": {"lockVersion": 1}}`,
    ];
    for (const text of hostile) {
      writeFileSync(join(user, "waft-lock.json"), text);
      const refused = await outside("run", "--invoke", "f", "g.wat");
      assert.ok(refused.code !== 0 && refused.out === "", text.slice(0, 80));
      assert.match(refused.err, /^waft: /);
      assert.doesNotMatch(refused.err, /\n {4}at /, "no stack trace");
      assert.equal((await needsNone()).out, "3\n");
    }
    writeFileSync(join(user, "waft-lock.json"), lock);
    writeFileSync(join(user, "waft.json"), `{"plugins": {"../../x": "*"}}`);
    assert.notEqual((await outside("add", "--user")).code, 0);
  },
);

if (!LACKS_POSIX_FILES) {
  userTest("files that other users can write are refused", async ({ user, outside }) => {
    assert.equal((await outside("add", "--user", "--allow", "random", DICE)).code, 0);
    for (const name of ["waft.json", "waft-lock.json", "."]) {
      const path = join(user, name);
      const mode = statSync(path).mode & 0o777;
      chmodSync(path, mode | 0o022);
      const refused = await outside("run", "--invoke", "f", "g.wat");
      assert.deepEqual([refused.out, /machine\.unsafe/.test(refused.err)], ["", true], `${name}: ${refused.err}`);
      chmodSync(path, mode);
    }
    assert.equal((await outside("run", "--invoke", "f", "g.wat")).out, "4\n");
  });
}

userTest("two processes add at once", async ({ user, outside }) => {
  const runs = await Promise.all([
    outside("add", "--user", "--allow", "random", DICE),
    outside("add", "--user", TOOLS),
  ]);
  // The one that comes second finds another manifest than it has read.
  for (const { code, err } of runs) assert.ok(code === 0 || /project\.changed|project\.busy/.test(err), err);
  assert.ok(runs.some(({ code }) => code === 0));
  const added = [DICE, TOOLS].filter((_, k) => runs[k].code === 0);
  const manifest = JSON.parse(readFileSync(join(user, "waft.json"), "utf8"));
  assert.deepEqual(Object.keys(manifest.plugins).sort(), added);
  assert.equal((await outside("add", "--user", "--locked")).code, 0, "manifest and lockfile agree");
});
