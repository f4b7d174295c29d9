/**
 * Reviews and their reasons: every reason for a new review, providers before consumers, and the limits of flags.
 */
import assert from "node:assert/strict";
import { FakeRegistry } from "../../../tests/project/fake_registry.ts";
import { CODEC, codecDefinition, definition, KV, kvDefinition } from "../../../tests/project/sample_plugins.ts";
import { ALLOW_ALL, TempProject } from "../../../tests/project/temp_project.ts";
import type { Definition } from "../../definitions/definition.ts";
import { ProjectError } from "../../base/diagnostic.ts";
import type { Lockfile } from "../../lockfile/lock_schema.ts";
import { addPlugins } from "./add.ts";
import { changeProject, type ChangeRequest } from "./change.ts";
import { type Decider, deciderFromFlags, type ReviewRequest } from "./decide.ts";
import type { PreparedPlugin } from "./prepare.ts";

const flags = (allow: string[], deny: string[] = [], allowRequested = false): Decider =>
  deciderFromFlags({ allow, deny, allowRequested, command: "waft add" }).decide;

function decideTest(
  name: string,
  work: (
    t: {
      project: TempProject;
      fake: FakeRegistry;
      update: (decider: Decider, more?: Partial<ChangeRequest>) => Promise<string[]>;
    },
  ) => Promise<void>,
): void {
  Deno.test(`review: ${name}`, async () => {
    const fake = new FakeRegistry();
    await fake.publish([codecDefinition("2.0.0")]);
    await fake.publish([kvDefinition("1.2.0")]);
    const project = new TempProject();
    await addPlugins(await project.context(fake), {
      root: project.root,
      directory: project.root,
      specs: [`${KV}@^1.0.0`],
      decider: ALLOW_ALL,
    });
    try {
      await work({
        project,
        fake,
        async update(decider, more = {}) {
          const asked: string[] = [];
          const recording: Decider = (request: ReviewRequest) => {
            asked.push(`${request.plugin.id}: ${request.reasons.map((r) => r.rule).join(" ")}`);
            return decider(request);
          };
          await changeProject(await project.context(fake), {
            root: project.root,
            update: "all",
            decider: recording,
            ...more,
          });
          return asked;
        },
      });
    } finally {
      project.remove();
    }
  });
}
const lockOf = (project: TempProject): Lockfile => JSON.parse(project.read("waft-lock.json")!) as Lockfile;
const changed = (d: Definition, change: (d: Definition) => void): Definition => {
  change(d);
  return d;
};

decideTest(
  "not asked for fewer authorities, narrower scopes, or other words; grants narrow by themselves",
  async ({ project, fake, update }) => {
    await fake.publish([changed(kvDefinition("1.3.0"), (d) => {
      d.description = "Other words";
      d.authorities = d.authorities.filter((a) => a.name !== "fs.write").map((a) =>
        a.name === "clock.wall" ? { ...a, scope: { resolutionNs: 1_000_000 } } : { ...a, reason: "Other words." }
      );
    })]);
    assert.deepEqual(await update(flags([])), []);
    const { grants } = lockOf(project).plugins[KV];
    assert.deepEqual([Object.keys(grants), grants["clock.wall"]], [[
      "caller.memory.read",
      "clock.wall",
      "import.define",
    ], { resolutionNs: 1_000_000 }]);
  },
);

decideTest("asked for a wider scope", async ({ fake, update }) => {
  await fake.publish([
    changed(
      kvDefinition("1.3.0"),
      (d) => d.authorities.find((a) => a.name === "fs.write")!.scope = { roots: ["/store", "/etc"] },
    ),
  ]);
  await assert.rejects(update(flags([])), /asks for a wider fs\.write/);
  assert.deepEqual(await update(flags(["fs.write:/store=./data"])), [`${KV}: wider-request`]);
});

decideTest(
  "asked when a provider gains authority: the consumer can act through it",
  async ({ project, fake, update }) => {
    await fake.publish([
      changed(
        codecDefinition("2.1.0"),
        (d) => d.authorities = [{ name: "random", mode: "optional", reason: "Salts." }],
      ),
    ]);
    // Allowing the provider is not yet allowing the consumer to reach it.
    await assert.rejects(update(flags([`${CODEC}=random`])), (error) => {
      assert.ok(error instanceof ProjectError);
      assert.match(
        error.message,
        /github\.com\/acme\/kv 1\.2\.0 needs a review: it can now act through github\.com\/acme\/codec with random/,
      );
      return true;
    });
    assert.deepEqual(await update(flags([], [], true)), [`${CODEC}: wider-request`, `${KV}: reach`]);
    assert.deepEqual(await update(flags([])), []);
    // Denied to the provider, there is nothing to reach.
    const before = lockOf(project).plugins[KV].review;
    assert.deepEqual(await update(flags([], [`${CODEC}=random`]), { asked: new Set([CODEC]) }), [`${CODEC}: asked`]);
    assert.notEqual(lockOf(project).plugins[KV].review, before);
  },
);

decideTest("asked for a new plugin that asks for nothing, but acts through another one", async ({ project, fake }) => {
  const quiet = "github.com/acme/quiet";
  const consumes = [{
    id: "github.com/acme/contracts/kv",
    major: 1,
    mode: "optional" as const,
    functions: [{ name: "get", params: ["i32", "i32", "i32"], results: ["i32"] }],
  }];
  await fake.publish([definition(quiet, "1.0.0", { consumes })]);
  const locked = project.read("waft-lock.json");
  const add = async (decide: Decider): Promise<unknown> =>
    await addPlugins(await project.context(fake), {
      root: project.root,
      directory: project.root,
      specs: [quiet],
      decider: decide,
    });
  await assert.rejects(
    add(flags([])),
    /review\.needed: github\.com\/acme\/quiet 1\.0\.0 needs a review: it can now act through github\.com\/acme\/kv/,
  );
  assert.equal(project.read("waft-lock.json"), locked);
  await add(flags([], [], true));
  assert.deepEqual(lockOf(project).plugins[quiet].bindings, { "github.com/acme/contracts/kv@1": [KV] });
});

decideTest("asked when an optional authority that was denied becomes required", async ({ fake, update }) => {
  await update(flags([], ["clock.wall"], true), { asked: new Set([KV]) });
  await fake.publish([
    changed(kvDefinition("1.3.0"), (d) => d.authorities.find((a) => a.name === "clock.wall")!.mode = "required"),
  ]);
  assert.deepEqual(await update(flags(["clock.wall"])), [`${KV}: wider-request`]);
});

decideTest("plugin grant asks for everything again, and flags must then decide everything", async ({ update }) => {
  const asked = { asked: new Set([KV]) };
  await assert.rejects(update(flags(["fs.write"]), asked), /--allow github\.com\/acme\/kv=caller\.memory\.read/);
  assert.deepEqual(await update(flags(["caller.memory.read", "fs.write", "import.define"], ["clock.wall"]), asked), [
    `${KV}: asked`,
  ]);
});

decideTest("a rule for one plugin does not decide for another", async ({ fake, update }) => {
  await fake.publish([
    changed(codecDefinition("2.1.0"), (d) => d.authorities = [{ name: "random", mode: "required", reason: "x" }]),
  ]);
  await assert.rejects(update(flags([`${KV}=random`])), /github\.com\/acme\/codec 2\.1\.0 needs a review/);
});

decideTest("configuration is set by --set, checked, and kept", async ({ project, update }) => {
  await update(flags([]), { config: new Map([[KV, { maxEntries: 3 }]]) });
  assert.deepEqual(lockOf(project).plugins[KV].config, { maxEntries: 3 });
  await assert.rejects(update(flags([]), { config: new Map([[KV, { maxEntries: 0 }]]) }), /lock\.config/);
  await update(flags([]));
  assert.deepEqual(lockOf(project).plugins[KV].config, { maxEntries: 3 });
});

decideTest(
  "two plugins that offer one guest namespace need a choice, which stays",
  async ({ project, fake, update }) => {
    const rival = "git.example.org/x/kv";
    await fake.publish([{
      ...kvDefinition("5.0.0"),
      id: rival,
      provenance: { repository: "https://git.example.org/x", license: "MIT" },
      requires: { [CODEC]: "*" },
    }], "x");
    const add = async (bind?: Map<string, string[]>): Promise<unknown> =>
      await addPlugins(await project.context(fake), {
        root: project.root,
        directory: project.root,
        specs: [rival],
        decider: ALLOW_ALL,
        ...(bind === undefined ? {} : { bind }),
      });
    // A binding persists until the user makes another choice; two candidates added together need a choice.
    await add();
    assert.equal(lockOf(project).guest.bindings.acme_kv, KV);
    const fresh = new TempProject();
    const together = { root: fresh.root, directory: fresh.root, specs: [KV, rival], decider: ALLOW_ALL };
    await assert.rejects(addPlugins(await fresh.context(fake), together), /both offer acme_kv to guests/);
    fresh.remove();
    await add(new Map([["acme_kv", [rival]], ["guest github.com/acme/contracts/kv@1", [KV]]]));
    assert.deepEqual(lockOf(project).guest.bindings, { "acme_kv": rival, "github.com/acme/contracts/kv@1": KV });
    assert.deepEqual(await update(flags([])), []);
    assert.deepEqual(lockOf(project).guest.bindings.acme_kv, rival);
  },
);

decideTest(
  "a denial of a required authority fails at once",
  async ({ update }) => {
    const { name } = kvDefinition("1.2.0").authorities.find((a) => a.mode === "required")!;
    for (const rule of [name, `${KV}=${name}`]) {
      await assert.rejects(
        update(flags([], [rule], true), { asked: new Set([KV]) }),
        (error: unknown) =>
          error instanceof ProjectError && error.exitCode === 2 &&
          error.message.includes(`usage.required: --deny ${rule}: ${KV} requires ${name} and never runs without it`),
      );
    }
    // Before the first plugin is asked about, in whichever order they come.
    const { decide } = deciderFromFlags({ allow: [], deny: [name], allowRequested: false, command: "waft add" });
    const plugin = { id: KV, definition: kvDefinition("1.2.0") } as PreparedPlugin;
    assert.throws(() => decide.check!(plugin), /requires .* and never runs without it/);
    decide.check!({ ...plugin, definition: codecDefinition("2.0.0") } as PreparedPlugin);
  },
);
