/**
 * `add` and `rm` against a registry in memory: written files, kept state, refusals.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FakeRegistry, packageFiles } from "../../../tests/project/fake_registry.ts";
import { CODEC, codecDefinition, definition, KV, kvDefinition } from "../../../tests/project/sample_plugins.ts";
import { ALLOW_ALL, NO_TERMINAL, TempProject } from "../../../tests/project/temp_project.ts";
import { ProjectError } from "../../base/diagnostic.ts";
import { readLockfile } from "../../lockfile/lockfile.ts";
import type { Lockfile } from "../../lockfile/lock_schema.ts";
import { addPlugins, type AddRequest, removePlugins } from "./add.ts";
import { deciderFromFlags } from "./decide.ts";
import { changeProject } from "./change.ts";

async function registry(): Promise<FakeRegistry> {
  const fake = new FakeRegistry();
  for (const version of ["2.0.0", "2.0.1", "3.0.0"]) await fake.publish([codecDefinition(version)]);
  for (const version of ["1.2.2", "1.2.3"]) await fake.publish([kvDefinition(version)]);
  return fake;
}
function withProject(
  name: string,
  run: (project: TempProject, fake: FakeRegistry) => Promise<void>,
  manifest?: string,
): void {
  Deno.test(`add: ${name}`, async () => {
    const project = new TempProject(manifest);
    try {
      await run(project, await registry());
    } finally {
      project.remove();
    }
  });
}
function add(project: TempProject, specs: readonly string[], more: Partial<AddRequest> = {}): AddRequest {
  return { root: project.root, directory: project.root, specs, decider: ALLOW_ALL, ...more };
}
function lockOf(project: TempProject): Lockfile {
  const requirements = (JSON.parse(project.read("waft.json")!) as { plugins: { [id: string]: string } }).plugins;
  return readLockfile(new TextEncoder().encode(project.read("waft-lock.json")), { requirements });
}
async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    assert.ok(error instanceof ProjectError, String(error));
    return `${error.diagnostics[0].code} ${error.exitCode}`;
  }
  return "ok";
}

withProject("a plugin and its requirements are resolved, reviewed and locked", async (project, fake) => {
  const result = await addPlugins(await project.context(fake), add(project, [KV], { report: true }));
  assert.deepEqual(result.written, ["waft.json", "waft-lock.json"]);
  assert.deepEqual(result.changes.map((c) => [c.id, c.action, c.to, c.needsReview]), [[CODEC, "add", "2.0.1", false], [
    KV,
    "add",
    "1.2.3",
    true,
  ]]);
  assert.deepEqual(result.loadOrder, [CODEC, KV]);
  assert.equal(project.read("waft.json"), `{\n  "plugins": {\n    "${KV}": "^1.2.3"\n  }\n}\n`);
  const lock = lockOf(project);
  assert.deepEqual({ ...lock.plugins[KV].bindings }, { "github.com/acme/contracts/codec@1": [CODEC] });
  assert.deepEqual({ ...lock.guest.bindings }, { acme_kv: KV, "github.com/acme/contracts/kv@1": KV });
  assert.deepEqual(JSON.parse(JSON.stringify(lock.plugins[KV].grants["fs.write"])), {
    roots: { "/store": "./store" },
  });
  assert.deepEqual(fake.installs.sort(), [CODEC, KV]);
  // Nothing changes the second time, and nothing is asked or downloaded.
  const again = await addPlugins(await project.context(fake), add(project, [], { decider: NO_TERMINAL }));
  assert.deepEqual([again.written, again.changes.map((c) => c.action)], [[], ["keep", "keep"]]);
});

withProject("the constraint is as typed, a caret, or exact", async (project, fake) => {
  const context = await project.context(fake);
  for (
    const [spec, exact, range] of [
      [CODEC, false, "^3.0.0"],
      [`${CODEC}@^2.0.0`, false, "^2.0.0"],
      [`${CODEC}@2.0.0`, false, "2.0.0"],
      [`${CODEC}@~2.0`, false, "~2.0"],
      [CODEC, true, "2.0.0"],
    ] as const
  ) {
    await addPlugins(context, add(project, [spec], { exact }));
    assert.equal(
      (JSON.parse(project.read("waft.json")!) as { plugins: { [id: string]: string } }).plugins[CODEC],
      range,
      spec,
    );
  }
});

withProject("the bytes do not depend on the order of answers", async (project, fake) => {
  await addPlugins(await project.context(fake), add(project, [KV]));
  const expected = project.read("waft-lock.json");
  let n = 0;
  fake.random = () => (n += 0.37) % 1;
  for (let i = 0; i < 5; i++) {
    const other = new TempProject();
    await addPlugins(await other.context(fake), add(other, [KV]));
    assert.equal(other.read("waft-lock.json"), expected);
    other.remove();
  }
});

withProject("no terminal to prompt on: nothing is written, and the flags to paste are named", async (project, fake) => {
  const before = project.read("waft.json");
  try {
    await addPlugins(await project.context(fake), add(project, [KV], { decider: NO_TERMINAL }));
    assert.fail();
  } catch (error) {
    assert.ok(error instanceof ProjectError);
    assert.equal(error.exitCode, 4);
    const help = error.diagnostics[0].help!;
    assert.ok(
      help.endsWith(
        "waft add --allow github.com/acme/kv=caller.memory.read --allow github.com/acme/kv=clock.wall:resolutionNs=1000 " +
          "--allow github.com/acme/kv=fs.write:/store=./store --allow github.com/acme/kv=import.define:acme_kv",
      ),
      help,
    );
    // Pasting them works.
    const allow = [...help.matchAll(/--allow (\S+)/g)].map((m) => m[1]);
    const { decide, unused } = deciderFromFlags({ allow, deny: [], allowRequested: false, command: "" });
    assert.equal(project.read("waft.json"), before);
    assert.equal(project.read("waft-lock.json"), undefined);
    await addPlugins(await project.context(fake), add(project, [KV], { decider: decide }));
    assert.deepEqual(unused(), []);
    assert.deepEqual(lockOf(project).plugins[KV].denied, []);
  }
});

withProject(
  "several plugins without a terminal: one failure names all, and its one command line decides all",
  async (project, fake) => {
    const ids = ["a", "b", "c"].map((name) => `github.com/acme/${name}`);
    const authorities = [{ name: "random", mode: "required" as const, reason: "For dice." }];
    for (const id of ids) await fake.publish([definition(id, "1.0.0", id.endsWith("c") ? {} : { authorities })]);
    const error = await addPlugins(await project.context(fake), add(project, ids, { decider: NO_TERMINAL })).catch((
      e,
    ) => e);
    assert.ok(error instanceof ProjectError);
    assert.equal(
      error.message,
      ids.slice(0, 2).map((id) =>
        `review.needed: ${id} 1.0.0 needs a review: it is new in this project\n` +
        `note: review.authority: ${id} asks for random (required): For dice.\n`
      ).join("") +
        "  help: review it at a terminal, or decide with flags: waft add --allow github.com/acme/a=random " +
        "--allow github.com/acme/b=random",
    );
    assert.equal(error.exitCode, 4);
    assert.equal(project.read("waft-lock.json"), undefined);
  },
);

withProject("flags narrow and deny", async (project, fake) => {
  const { decide } = deciderFromFlags({
    allow: ["caller.memory.read", "import.define", "fs.write:/store=./data/kv"],
    deny: [`${KV}=clock.wall`],
    allowRequested: false,
    command: "",
  });
  await addPlugins(await project.context(fake), add(project, [KV], { decider: decide }));
  const plugin = lockOf(project).plugins[KV];
  assert.deepEqual(plugin.denied, ["clock.wall"]);
  assert.deepEqual(JSON.parse(JSON.stringify(plugin.grants["fs.write"])), { roots: { "/store": "./data/kv" } });
});

withProject("wrong flags and ids are usage errors", async (project, fake) => {
  const context = await project.context(fake);
  const flags = (allow: string) =>
    deciderFromFlags({ allow: [allow], deny: [], allowRequested: true, command: "" }).decide;
  assert.equal(await codeOf(addPlugins(context, add(project, ["acme/kv"]))), "usage.plugin-id 2");
  assert.equal(await codeOf(addPlugins(context, add(project, ["kv"]))), "usage.plugin-id 2");
  assert.equal(await codeOf(addPlugins(context, add(project, [`${KV}@^1,^2`]))), "usage.range 2");
  assert.equal(await codeOf(addPlugins(context, add(project, [KV, `${KV}@1`]))), "usage.twice 2");
  assert.equal(await codeOf(addPlugins(context, add(project, ["../elsewhere"]))), "usage.path 2");
  assert.throws(() => flags("fs.everything"), ProjectError);
  assert.equal(
    await codeOf(addPlugins(context, add(project, [KV], { decider: flags("fs.write:/etc=/etc") }))),
    "usage.scope 2",
  );
  assert.equal(
    await codeOf(removePlugins(context, { root: project.root, ids: [KV], decider: NO_TERMINAL })),
    "usage.not-required 2",
  );
});

withProject("locked versions are kept; update moves them; wider requests are reviewed again", async (project, fake) => {
  const context = await project.context(fake);
  await addPlugins(context, add(project, [`${KV}@^1.2.0`]));
  await fake.publish([codecDefinition("2.1.0")]);
  await fake.publish([kvDefinition("1.3.0")]);
  const wider = kvDefinition("1.4.0");
  wider.authorities.push({ name: "random", mode: "optional", reason: "Shuffles." });
  await fake.publish([wider]);
  const kept = await addPlugins(await project.context(fake), add(project, [], { decider: NO_TERMINAL }));
  assert.deepEqual(kept.written, []);
  const update = { root: project.root, update: new Set([KV]) };
  assert.equal(
    await codeOf(changeProject(await project.context(fake), { ...update, decider: NO_TERMINAL })),
    "review.needed 4",
  );
  const { decide } = deciderFromFlags({ allow: [], deny: ["random"], allowRequested: false, command: "" });
  const result = await changeProject(await project.context(fake), { ...update, decider: decide });
  assert.deepEqual(result.changes.map((c) => [c.id, c.action, c.from, c.to, c.authority.added]), [
    [CODEC, "keep", "2.0.1", "2.0.1", []],
    [KV, "update", "1.2.3", "1.4.0", ["random"]],
  ]);
  const plugin = lockOf(project).plugins[KV];
  assert.deepEqual([plugin.denied, Object.keys(plugin.grants)], [["random"], [
    "caller.memory.read",
    "clock.wall",
    "fs.write",
    "import.define",
  ]]);
});

withProject("another publisher is a new review", async (project, fake) => {
  await addPlugins(await project.context(fake), add(project, [`${KV}@^1.2.0`]));
  await fake.publish([kvDefinition("1.3.0")], "github.com/mallory");
  const work = changeProject(await project.context(fake), { root: project.root, update: "all", decider: NO_TERMINAL });
  await assert.rejects(work, /its publisher changed from github\.com\/acme to github\.com\/mallory/);
});

withProject("a replaced version, a damaged archive, a lying index are integrity failures", async (project, fake) => {
  await addPlugins(await project.context(fake), add(project, [`${CODEC}@2.0.1`]));
  const wrong =
    (path: RegExp, change: (body: Uint8Array) => Uint8Array) =>
    async (at: string, response: Response): Promise<Response> => {
      if (!path.test(at)) return response;
      return new Response(new Uint8Array(change(new Uint8Array(await response.arrayBuffer()))), {
        status: 200,
        headers: { "content-type": "application/json" },
      });
    };
  const text = (body: Uint8Array): string => new TextDecoder().decode(body);
  fake.tamper = wrong(
    /index$/,
    (b) => new TextEncoder().encode(text(b).replace(/("artifact":\{"digest":"sha256:)[0-9a-f]{4}/g, "$1beef")),
  );
  assert.equal(await codeOf(addPlugins(await project.context(fake), add(project, []))), "integrity.republished 5");
  const fresh = new TempProject();
  assert.equal(
    await codeOf(addPlugins(await fresh.context(fake), add(fresh, [`${CODEC}@2.0.0`]))),
    "signature.disagrees 5",
  );
  fake.tamper = wrong(/blobs/, (b) => b.map((x, i) => i === 30 ? x ^ 1 : x));
  assert.equal(
    await codeOf(addPlugins(await fresh.context(fake), add(fresh, [`${CODEC}@2.0.0`]))),
    "integrity.artifact 5",
  );
  fake.tamper = wrong(/blobs/, (b) => Uint8Array.of(...b, ...b));
  assert.equal(
    await codeOf(addPlugins(await fresh.context(fake), add(fresh, [`${CODEC}@2.0.0`]))),
    "registry.answer 7",
  );
  fake.tamper = wrong(
    /index$/,
    (b) =>
      new TextEncoder().encode(
        text(b).replace(/"definitionDigest":"sha256:[0-9a-f]{4}/g, '"definitionDigest":"sha256:beef'),
      ),
  );
  assert.equal(
    await codeOf(addPlugins(await fresh.context(fake), add(fresh, [`${CODEC}@2.0.0`]))),
    "signature.disagrees 5",
  );
  assert.equal(fresh.read("waft-lock.json"), undefined);
  fresh.remove();
});

withProject("the network: unreachable, strange answers, redirects, offline", async (project, fake) => {
  const spec = add(project, [`${CODEC}@2.0.1`]);
  const cases: readonly (readonly [string, () => Response, string])[] = [
    ["unreachable", () => {
      throw new TypeError("connection refused");
    }, "registry.unreachable 7"],
    ["html", () => new Response("<html>", { headers: { "content-type": "text/html" } }), "registry.answer 7"],
    ["not JSON", () => new Response("{", { headers: { "content-type": "application/json" } }), "registry.answer 7"],
    ["another id", () => Response.json({ schemaVersion: 1, id: KV, package: KV, releases: [] }), "registry.answer 7"],
    [
      "endless",
      () =>
        new Response(new ReadableStream({ pull: (c) => c.enqueue(new Uint8Array(1 << 20)) }), {
          headers: { "content-type": "application/json" },
        }),
      "registry.answer 7",
    ],
    [
      "other host",
      () => new Response("", { status: 302, headers: { location: "https://evil.example/x" } }),
      "registry.redirect 7",
    ],
    ["redirect loop", () => new Response("", { status: 302, headers: { location: "/x" } }), "registry.redirect 7"],
    ["server error", () => Response.json({ title: "Broken\u001b[31m" }, { status: 500 }), "registry.answer 7"],
    ["rate limit", () => new Response("", { status: 429 }), "registry.busy 7"],
    ["forbidden", () => new Response("", { status: 403 }), "auth.refused 8"],
  ];
  for (const [name, answer, expected] of cases) {
    fake.tamper = answer;
    const work = addPlugins(await project.context(fake), spec);
    assert.equal(await codeOf(work), expected, name);
  }
  fake.tamper = undefined;
  assert.equal(await codeOf(addPlugins(await project.context(fake, { offline: true }), spec)), "registry.offline 7");
  await addPlugins(await project.context(fake), spec);
  fake.tamper = () => {
    throw new TypeError("no network");
  };
  // Offline once locked: the lockfile and the cache are enough.
  assert.equal(await codeOf(addPlugins(await project.context(fake, { offline: true }), add(project, []))), "ok");
});

withProject(
  "--locked forbids changes, --dry-run writes none, a cancelled review writes none",
  async (project, fake) => {
    const context = await project.context(fake);
    assert.equal(await codeOf(addPlugins(context, add(project, [KV], { locked: true }))), "lock.stale 3");
    assert.deepEqual((await addPlugins(context, add(project, [KV], { dryRun: true }))).written, []);
    const cancelled = await addPlugins(context, add(project, [KV], { decider: () => Promise.resolve(undefined) }));
    assert.deepEqual([cancelled.cancelled, cancelled.written], [true, []]);
    assert.equal(project.read("waft.json"), '{\n  "plugins": {}\n}\n');
    assert.equal(project.read("waft-lock.json"), undefined);
  },
);

withProject("rm removes a requirement and plugins that nothing requires any more", async (project, fake) => {
  const context = await project.context(fake);
  await addPlugins(context, add(project, [KV, "github.com/acme/codec@^2.0.0"]));
  await removePlugins(context, { root: project.root, ids: [KV], decider: NO_TERMINAL });
  assert.deepEqual(Object.keys(lockOf(project).plugins), [CODEC]);
  await removePlugins(context, { root: project.root, ids: [CODEC], decider: NO_TERMINAL });
  assert.deepEqual(Object.keys(lockOf(project).plugins), []);
  assert.equal(project.read("waft.json"), '{\n  "plugins": {}\n}\n');
});

withProject("a directory of the project is a source, and a change of it is noticed", async (project, fake) => {
  const directory = join(project.root, "plugins", "codec");
  const write = (wasm: string): void => {
    for (const [path, bytes] of packageFiles([codecDefinition("2.0.5")], new TextEncoder().encode(wasm))) {
      mkdirSync(join(directory, path, ".."), { recursive: true });
      writeFileSync(join(directory, path), bytes);
    }
  };
  write("one");
  await addPlugins(await project.context(fake), add(project, ["./plugins/codec", KV]));
  const lock = lockOf(project);
  assert.deepEqual(JSON.parse(JSON.stringify(lock.packages[CODEC].source)), { kind: "path", path: "./plugins/codec" });
  assert.equal(lock.packages[CODEC].version, "2.0.5");
  assert.equal(lock.requirements[CODEC], "^2.0.5");
  write("two");
  const result = await addPlugins(await project.context(fake), add(project, [], { decider: NO_TERMINAL }));
  assert.deepEqual(result.written, ["waft-lock.json"]);
});

withProject("a conflicted lockfile is merged; grants that differ are reviewed again", async (project, fake) => {
  const context = await project.context(fake);
  await addPlugins(context, add(project, [KV]));
  const ours = project.read("waft-lock.json")!;
  const { decide } = deciderFromFlags({ allow: [], deny: ["clock.wall"], allowRequested: true, command: "" });
  await changeProject(context, { root: project.root, asked: new Set([KV]), decider: decide });
  const theirs = project.read("waft-lock.json")!;
  assert.notEqual(ours, theirs);
  const conflict = `<<<<<<< ours\n${ours}=======\n${theirs}>>>>>>> theirs\n`;
  project.write("waft-lock.json", conflict);
  assert.equal(await codeOf(addPlugins(context, add(project, [], { decider: NO_TERMINAL }))), "review.needed 4");
  assert.equal(project.read("waft-lock.json"), conflict);
  const result = await addPlugins(context, add(project, []));
  assert.match(result.warnings[0].message, /merging both sides/);
  lockOf(project);
  // Two sides that differ only in unrelated entries need no review.
  const now = project.read("waft-lock.json")!;
  project.write(
    "waft-lock.json",
    now.replace('  "lockVersion": 1,\n', '<<<<<<< a\n  "lockVersion": 1,\n=======\n  "lockVersion": 1,\n>>>>>>> b\n'),
  );
  await addPlugins(context, add(project, [], { decider: NO_TERMINAL }));
  assert.equal(project.read("waft-lock.json"), now);
});

withProject("a damaged lockfile is repaired; untouched plugins are not reviewed again", async (project, fake) => {
  const context = await project.context(fake);
  await addPlugins(context, add(project, [KV]));
  const good = project.read("waft-lock.json")!;
  // Configuration edited by hand: checked and sealed again, no review.
  project.write(
    "waft-lock.json",
    good.replace(/"config": \{\}(?![^]*"config": \{\})/, '"config": {\n        "maxEntries": 5\n      }'),
  );
  await addPlugins(context, add(project, [], { decider: NO_TERMINAL }));
  assert.match(JSON.stringify(lockOf(project).plugins), /"maxEntries":5/);
  // A grant edited by hand is a review.
  project.write("waft-lock.json", good.replace('"/store": "./store"', '"/store": "/etc"'));
  assert.equal(await codeOf(addPlugins(context, add(project, [], { decider: NO_TERMINAL }))), "review.needed 4");
  // Cut off in the middle: all is reviewed again.
  project.write("waft-lock.json", good.slice(0, 2000));
  assert.equal(await codeOf(addPlugins(context, add(project, [], { decider: NO_TERMINAL }))), "review.needed 4");
  await addPlugins(context, add(project, []));
  assert.equal(project.read("waft-lock.json"), good);
});

withProject("several providers need a choice, contracts pull nothing in", async (project, fake) => {
  const second = {
    ...codecDefinition("1.0.0"),
    id: "git.example.org/fast/codec",
    provenance: { repository: "https://git.example.org/fast", license: "MIT" },
  };
  await fake.publish([second]);
  const context = await project.context(fake);
  const specs = [KV, "git.example.org/fast/codec"];
  assert.equal(await codeOf(addPlugins(context, add(project, specs))), "binding.choice 6");
  const namespace = "github.com/acme/contracts/codec@1";
  await addPlugins(context, add(project, specs, { bind: new Map([[namespace, ["git.example.org/fast/codec"]]]) }));
  assert.deepEqual(lockOf(project).plugins[KV].bindings[namespace], ["git.example.org/fast/codec"]);
  // The choice stays.
  assert.deepEqual((await addPlugins(context, add(project, [], { decider: NO_TERMINAL }))).written, []);
  const lonely = definition("a.b/lonely", "1.0.0", { consumes: kvDefinition().consumes });
  await fake.publish([lonely]);
  const other = new TempProject();
  assert.equal(await codeOf(addPlugins(await other.context(fake), add(other, ["a.b/lonely"]))), "binding.unbound 6");
  other.remove();
});

withProject("plugins in a circle are refused with the path", async (project, fake) => {
  await fake.publish([definition("a.b/x", "1.0.0", { requires: { "a.b/y": "*" } })]);
  await fake.publish([definition("a.b/y", "1.0.0", { requires: { "a.b/x": "*" } })]);
  await assert.rejects(
    addPlugins(await project.context(fake), add(project, ["a.b/x"])),
    /a\.b\/x -> a\.b\/y -> a\.b\/x/,
  );
});

withProject("a registry that only a lockfile names is refused until it is trusted", async (project, fake) => {
  await addPlugins(await project.context(fake), add(project, [`${CODEC}@2.0.1`]));
  const context = await project.context(fake, { registry: "https://other.example" });
  assert.equal(await codeOf(addPlugins(context, add(project, []))), "registry.untrusted 4");
  // A mapped prefix never asks another registry.
  mkdirSync(join(project.home, "waft", "config"), { recursive: true });
  writeFileSync(
    join(project.home, "waft", "config", "config.json"),
    JSON.stringify({ registries: { "github.com/acme": "https://plugins.example" } }),
  );
  assert.equal(
    await codeOf(addPlugins(await project.context(fake, { registry: "https://other.example" }), add(project, []))),
    "ok",
  );
});
