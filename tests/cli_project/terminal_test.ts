/**
 * Prompts in a real (pseudo-)terminal: the review, its defaults, cancelling, `init`; and no prompt where there is none.
 */
import assert from "node:assert/strict";
import { stripVTControlCharacters } from "node:util";
import { assemble } from "../../project/definitions/engine_inspector.ts";
import type { Lockfile } from "../../project/lockfile/lock_schema.ts";
import { FakeRegistry } from "../project/fake_registry.ts";
import { definition } from "../project/sample_plugins.ts";
import { TempProject } from "../project/temp_project.ts";
import { hasPty, KEY, waft, waftTyped } from "./waft.ts";

const STORE = "github.com/acme/store";
const WASM = assemble(`(module
  (import "waft:fs@1" "sync" (func (param i32 i32) (result i32)))
  (import "waft:random@1" "fill" (func (param i32 i32) (result i32)))
  (memory 1))`);

const hostile = "Keeps data.\u001b[2K\u202e\u200bTrusted";

async function registry(): Promise<FakeRegistry> {
  const fake = new FakeRegistry();
  await fake.publish(
    [definition(STORE, "1.0.0", {
      description: hostile,
      authorities: [
        { name: "fs.write", mode: "required", reason: hostile, scope: { roots: ["/store"] } },
        { name: "random", mode: "optional", reason: "Shuffles." },
      ],
    })],
    "github.com/acme",
    WASM.subarray(0),
  );
  return fake;
}

function terminalTest(
  name: string,
  work: (project: TempProject, address: string) => Promise<void>,
  manifest?: string | undefined,
): void {
  Deno.test({
    name: `terminal: ${name}${hasPty() ? "" : " (ignored: python3 with pty is needed for a pseudo-terminal)"}`,
    ignore: !hasPty(),
    // The server's sockets close a little later than the test.
    sanitizeResources: false,
    sanitizeOps: false,
    async fn() {
      const fake = await registry();
      const address = await fake.listen();
      const project = new TempProject(manifest);
      try {
        await work(project, address);
      } finally {
        await fake.close();
        project.remove();
      }
    },
  });
}
const add = (address: string): string[] => ["add", STORE, "--registry", address];
const untouched = '{\n  "plugins": {}\n}\n';

terminalTest("a review by a person: all, with the directory chosen", async (project, address) => {
  const run = await waftTyped(
    add(address),
    [["Allow github.com/acme/store?", KEY.up.repeat(3) + KEY.enter], [
      "directory of this machine",
      "./data" + KEY.enter,
    ]],
    project.root,
    project.home,
  );
  assert.equal(run.code, 0, run.out);
  assert.match(
    run.out,
    /github\.com\/acme\/store 1\.0\.0 {3}wasm {3}published 2026-08-01 by github\.com\/acme {3}required by: you/,
  );
  assert.match(run.out, /\+ fs\.write {2}\/store {2}required/);
  assert.match(run.out, /reaches: {2}nothing else/);
  // Nothing from the registry moves the cursor or reorders text.
  assert.match(run.out, /Keeps data\.\\u\{1b\}\[2K\\u\{202e\}\\u\{200b\}Trusted/);
  assert.doesNotMatch(run.out, /\u202e|\u200b/);
  const lock = JSON.parse(project.read("waft-lock.json")!) as Lockfile;
  assert.deepEqual(lock.plugins[STORE].grants, { "fs.write": { roots: { "/store": "./data" } }, random: {} });
});

terminalTest("the default answer allows nothing and writes nothing", async (project, address) => {
  for (const keys of [KEY.enter, KEY.escape, KEY.interrupt]) {
    const run = await waftTyped(add(address), [["Allow github.com/acme/store?", keys]], project.root, project.home);
    assert.equal(run.code, 4, run.out);
    assert.equal(project.read("waft.json"), untouched);
    assert.equal(project.read("waft-lock.json"), undefined);
  }
});

terminalTest("input before the question does not answer it", async (project, address) => {
  const run = await waftTyped(
    add(address),
    [["", KEY.up.repeat(3) + KEY.enter], ["Allow github.com/acme/store?", KEY.enter]],
    project.root,
    project.home,
  );
  assert.equal(run.code, 4, run.out);
  assert.equal(project.read("waft-lock.json"), undefined);
});

terminalTest(
  "a person selects: required authorities are selected already, others are denied",
  async (project, address) => {
    const run = await waftTyped(
      add(address),
      [
        ["Allow github.com/acme/store?", KEY.up.repeat(2) + KEY.enter],
        ["Allow which?", KEY.enter],
        ["directory of this machine", KEY.enter],
      ],
      project.root,
      project.home,
    );
    assert.equal(run.code, 0, run.out);
    const lock = JSON.parse(project.read("waft-lock.json")!) as Lockfile;
    assert.deepEqual([lock.plugins[STORE].grants, lock.plugins[STORE].denied], [{
      "fs.write": { roots: { "/store": "./store" } },
    }, ["random"]]);
  },
);

terminalTest("no prompt without a terminal, in CI, with --no-input or --json", async (project, address) => {
  const piped = await waft(add(address), project.root, project.home);
  assert.equal(piped.code, 4);
  assert.match(
    piped.err,
    /review\.needed: .*\n {2}help: .* waft add github\.com\/acme\/store --registry \S+ --allow github\.com\/acme\/store=fs\.write:\/store=\.\/store/,
  );
  const ci = await waftTyped(add(address), [], project.root, project.home, { CI: "true" });
  assert.equal(ci.code, 4, ci.out);
  const flag = await waftTyped([...add(address), "--no-input"], [], project.root, project.home);
  assert.equal(flag.code, 4, flag.out);
  const json = await waftTyped([...add(address), "--json"], [], project.root, project.home);
  assert.equal(json.code, 4, json.out);
  assert.equal(project.read("waft.json"), untouched);
});

/** Hosts of a request that takes more room than a screen. */
const HOSTS = Array.from({ length: 64 }, (_, i) => `${"long-label.".repeat(16)}host-${i}.example:443`);

terminalTest("a long scope is shown whole, page by page, before the question", async (project, address) => {
  const fake = await registry();
  await fake.publish(
    [definition("github.com/acme/net", "1.0.0", {
      authorities: [{ name: "net.connect", mode: "required", reason: "Fetches.", scope: { hosts: HOSTS } }],
    })],
    "github.com/acme",
    assemble(`(module (import "waft:net@1" "close" (func (param i32) (result i32))) (memory 1))`),
  );
  const own = await fake.listen();
  try {
    const spec = ["add", "github.com/acme/net", "--registry", own];
    const run = await waftTyped(
      spec,
      [["-- more", " "], ["Allow github.com/acme/net?", KEY.enter]],
      project.root,
      project.home,
    );
    assert.equal(run.code, 4, run.out);
    const shown = stripVTControlCharacters(run.out).replace(/-- more: press a key --|\u21b3|\s/g, "");
    for (const host of HOSTS) assert.ok(shown.includes(host), host);
    assert.doesNotMatch(run.out, /…/);
    // Also without a terminal, and afterwards in the list.
    const piped = await waft(spec, project.root, project.home);
    for (const host of HOSTS) assert.ok(piped.err.includes(host), host);
    const added = await waft([...spec, "--allow-requested"], project.root, project.home);
    assert.equal(added.code, 0, added.err);
    for (const command of [["plugin", "list"], ["plugin", "inspect", "github.com/acme/net"], ["trust"]]) {
      const { out } = await waft([...command, "--registry", own], project.root, project.home);
      for (const host of HOSTS) assert.ok(out.includes(host), `${command.join(" ")}: ${host}`);
    }
  } finally {
    await fake.close();
  }
  assert.ok(address.startsWith("http"));
});

terminalTest("init asks for a plugin and makes one that can be published", async (project) => {
  const run = await waftTyped(
    ["init"],
    [
      ["What do you want to create?", KEY.down + KEY.down + KEY.enter],
      ["Name", "Greeter" + KEY.enter],
      ["Plugin id", "github.com/ada/greeter" + KEY.enter],
      ["What does it do?", "Greets." + KEY.enter],
      ["License", KEY.enter],
      ["Repository", KEY.enter],
    ],
    project.root,
    project.home,
  );
  assert.equal(run.code, 0, run.out);
  const published = await waft(["plugin", "publish", "--dry-run"], project.root, project.home);
  assert.equal(published.code, 0, published.err);
  assert.match(published.out, /github\.com\/ada\/greeter 0\.1\.0/);
}, "");

/** Adds a second plugin to the registry of a test, served beside the first. */
async function withBell(work: (address: string) => Promise<void>): Promise<void> {
  const fake = await registry();
  await fake.publish(
    [definition("github.com/acme/bell", "1.0.0", {
      authorities: [{ name: "random", mode: "required", reason: "Chooses a sound." }],
    })],
    "github.com/acme",
    assemble(`(module (import "waft:random@1" "fill" (func (param i32 i32) (result i32))) (memory 1))`),
  );
  try {
    await work(await fake.listen());
  } finally {
    await fake.close();
  }
}
const BOTH = ["add", "github.com/acme/bell", STORE, "--registry"];

terminalTest(
  "several plugins begin with one summary, and can be allowed together",
  (project) =>
    withBell(async (address) => {
      const run = await waftTyped(
        [...BOTH, address],
        [
          ["Allow github.com/acme/bell?", KEY.up.repeat(3) + KEY.enter],
          ["directory of this machine", KEY.enter],
        ],
        project.root,
        project.home,
      );
      assert.equal(run.code, 0, run.out);
      const shown = stripVTControlCharacters(run.out);
      assert.match(
        shown,
        /2 plugins need a review:\r?\n *github\.com\/acme\/bell +1\.0\.0 +random +required\r?\n *github\.com\/acme\/store +1\.0\.0 +fs\.write \/store=\.\/store +required\r?\n +random +optional/,
      );
      const lock = JSON.parse(project.read("waft-lock.json")!) as Lockfile;
      assert.deepEqual(Object.keys(lock.plugins[STORE].grants), ["fs.write", "random"]);
    }),
);

terminalTest(
  "a refused plugin keeps the answers before it until that is confirmed",
  (project) =>
    withBell(async (address) => {
      const allow: [string, string] = ["Allow github.com/acme/bell?", KEY.up.repeat(2) + KEY.enter];
      const dropped = await waftTyped(
        [...BOTH, address],
        [allow, ["Allow github.com/acme/store?", KEY.enter], ["Drop the answers", KEY.enter]],
        project.root,
        project.home,
      );
      assert.equal(dropped.code, 4, dropped.out);
      assert.equal(project.read("waft-lock.json"), undefined);
      const kept = await waftTyped(
        [...BOTH, address],
        [
          allow,
          ["Allow github.com/acme/store?", KEY.enter],
          ["Drop the answers about github.com/acme/bell", KEY.down + KEY.enter],
          ["Allow github.com/acme/store?", KEY.up.repeat(3) + KEY.enter],
          ["directory of this machine", KEY.enter],
        ],
        project.root,
        project.home,
      );
      assert.equal(kept.code, 0, kept.out);
    }),
);

terminalTest(
  "a word is searched in the registry; nothing is chosen without a question",
  (project) =>
    withBell(async (address) => {
      const run = await waftTyped(
        ["add", "bell", "--registry", address, "--allow-requested"],
        [["Which plugin is", KEY.up + KEY.enter]],
        project.root,
        project.home,
      );
      assert.equal(run.code, 0, run.out);
      assert.match(project.read("waft.json")!, /"github\.com\/acme\/bell"/);
      const none = await waftTyped(
        ["add", "store", "--registry", address],
        [["Which plugin is", KEY.enter]],
        project.root,
        project.home,
      );
      assert.equal(none.code, 2, none.out);
      const piped = await waft(["add", "store", "--registry", address], project.root, project.home);
      assert.equal(piped.code, 2);
      assert.match(
        piped.err,
        /usage\.plugin-id: "store" is not a plugin id\n {2}help: the registry has github\.com\/acme\/store/,
      );
      const offline = await waft(["add", "store", "--offline", "--registry", address], project.root, project.home);
      assert.match(offline.err, /usage\.plugin-id: "store" is not a plugin id: /);
    }),
);
