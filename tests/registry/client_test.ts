/**
 * The project's own client against the registry: add, check, yank, publish, install counting, on SQLite and PostgreSQL.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { inspectModule } from "../../project/definitions/engine_inspector.ts";
import { addPlugins } from "../../project/ops/project/add.ts";
import { checkProject } from "../../project/ops/project/check.ts";
import { publishPackage } from "../../project/ops/project/publish.ts";
import { deprecateRelease } from "../../project/ops/project/deprecate.ts";
import { listPlugins } from "../../project/ops/project/list.ts";
import { yankRelease } from "../../project/ops/project/yank.ts";
import type { ProjectError } from "../../project/base/diagnostic.ts";
import { CODEC, codecDefinition, definition, KV, kvDefinition } from "../project/sample_plugins.ts";
import { ALLOW_ALL, TempProject } from "../project/temp_project.ts";
import { eachDatabase } from "./temp_database.ts";
import { realFiles, withRegistry } from "./test_registry.ts";

eachDatabase("waft publishes, adds, checks and sees yanks over loopback", async (_database, open) => {
  await withRegistry(async (r) => {
    const { token } = await r.author("acme", ["github.com/acme"]);
    const project = new TempProject();
    const author = new TempProject("");
    try {
      const choices = { registry: r.url, fetch: globalThis.fetch, inspect: inspectModule };
      const publishing = await author.context(undefined, { ...choices, env: { WAFT_TOKEN: token } });
      const publish = async (definitions: Parameters<typeof realFiles>[0]): Promise<boolean | undefined> => {
        for (const [path, bytes] of realFiles(definitions, { "README.md": "# Read me" })) {
          mkdirSync(dirname(join(author.root, path)), { recursive: true });
          writeFileSync(join(author.root, path), bytes);
        }
        const request = { root: author.root, dryRun: false, allowDirty: false };
        return (await publishPackage(publishing, request)).created;
      };
      assert.equal(await publish([codecDefinition("2.0.0")]), true);
      assert.equal(await publish([codecDefinition("2.0.0")]), false, "the same bytes again are not a new release");
      assert.equal(await publish([codecDefinition("2.0.1")]), true);
      assert.equal(await publish([kvDefinition()]), true);

      const context = await project.context(undefined, choices);
      const add = { root: project.root, directory: project.root, decider: ALLOW_ALL, report: true };
      const added = await addPlugins(context, { ...add, specs: [KV] });
      assert.deepEqual(added.changes.map((c) => [c.id, c.to]), [[CODEC, "2.0.1"], [KV, "1.2.3"]]);
      const { installs } = await r.get<{ installs: { total: number } }>("/api/packages/github.com:acme:kv");
      assert.equal(installs.total, 1, "the installation was reported and counted");
      const lock = project.read("waft-lock.json")!;
      assert.match(lock, /"publisher": "github\.com\/acme"/);

      const checked = await checkProject(await project.context(undefined, choices), project.root);
      assert.deepEqual(checked.checks.filter((l) => l.status === "failed"), []);
      await tryYanks(publishing, author.root, r.url);
      const warned = await checkProject(await project.context(undefined, choices), project.root);
      assert.match(JSON.stringify(warned), /Broken on empty input/);

      await tryDeprecations(publishing, author.root, () => project.context(undefined, choices), add);

      await addElsewhere(choices, add);
      await assert.rejects(publish([definition("github.com/else/x", "1.0.0")]), /auth\.refused/);
    } finally {
      project.remove();
      author.remove();
    }
  }, { database: open() });
});

/** Yanks and restores a release, which stays yanked; wrong requests are refused. */
async function tryYanks(publishing: Parameters<typeof yankRelease>[0], root: string, registry: string): Promise<void> {
  const yank = (spec: string, more: object): Promise<unknown> =>
    yankRelease(publishing, root, { spec, undo: false, ...more });
  const broken = { reason: "Broken on empty input", severity: "broken" };
  const state = { package: CODEC, version: "2.0.1", registry };
  assert.deepEqual(await yank(`${CODEC}@2.0.1`, broken), { ...state, yanked: broken });
  assert.deepEqual(await yank(`${CODEC}@2.0.1`, { undo: true }), { ...state, yanked: null });
  await yank(`${CODEC}@2.0.1`, broken);
  for (
    const [spec, more, code] of [
      [`${CODEC}@9.9.9`, broken, /registry\.not-found/],
      [CODEC, broken, /usage\.version/],
      [`${CODEC}@2.0.1`, {}, /usage\.reason/],
      [`${CODEC}@2.0.1`, { reason: "x", severity: "bad" }, /usage\.severity/],
      ["github.com/else/x@1.0.0", broken, /registry\.not-found/],
    ] as const
  ) await assert.rejects(yank(spec, more), code, spec);
}

/** Deprecates a package and a version of it, whose users are told so, and takes both back. */
async function tryDeprecations(
  publishing: Parameters<typeof deprecateRelease>[0],
  root: string,
  context: () => ReturnType<TempProject["context"]>,
  add: Omit<Parameters<typeof addPlugins>[1], "specs">,
): Promise<void> {
  const change = (spec: string, message?: string) =>
    deprecateRelease(publishing, root, {
      spec,
      undo: message === undefined,
      ...(message === undefined ? {} : { message }),
    });
  const told = async (): Promise<string[]> => {
    const { diagnostics } = await checkProject(await context(), add.root);
    const { warnings } = await addPlugins(await context(), { ...add, specs: [] });
    const messages = (list: typeof diagnostics) =>
      list.flatMap(({ code, message }) => code === "registry.deprecated" ? [message] : []);
    assert.deepEqual(messages(warnings), messages(diagnostics), "add and check say the same");
    return messages(diagnostics);
  };
  const state = async () => (await listPlugins(await context(), add.root)).plugins.find(({ id }) => id === KV)?.state;
  const text = "Use github.com/acme/store";
  const result = await change(KV, text);
  assert.deepEqual([result.version, result.deprecated], [null, text]);
  assert.deepEqual(await told(), [`${KV} 1.2.3 is deprecated: ${text}`]);
  assert.equal(await state(), "deprecated");
  // The message about a version precedes the message about its package.
  await change(`${KV}@1.2.3`, "Loses keys");
  assert.deepEqual(await told(), [`${KV} 1.2.3 is deprecated: Loses keys`]);
  await change(`${KV}@1.2.3`);
  assert.deepEqual(await told(), [`${KV} 1.2.3 is deprecated: ${text}`]);
  await change(KV);
  assert.deepEqual(await told(), []);
  assert.equal(await state(), "ok");
  for (
    const [spec, message, code] of [
      [`${KV}@9.9.9`, "x", /registry\.not-found/],
      [`${KV}@^1`, "x", /usage\.version/],
      ["github.com/else/x", "x", /registry\.not-found/],
      ["kv", "x", /usage\./],
    ] as const
  ) await assert.rejects(change(spec, message), code, spec);
  for (const options of [{ undo: false }, { undo: true, message: "x" }]) {
    await assert.rejects(deprecateRelease(publishing, root, { spec: KV, ...options }), /usage\.message/);
  }
}

/** Another project gets the newest release that is not yanked; an unknown plugin is refused. */
async function addElsewhere(
  choices: Parameters<TempProject["context"]>[1],
  request: Omit<Parameters<typeof addPlugins>[1], "root" | "directory" | "specs">,
): Promise<void> {
  const other = new TempProject();
  try {
    const add = { ...request, root: other.root, directory: other.root };
    const fresh = await addPlugins(await other.context(undefined, choices), { ...add, specs: [KV] });
    assert.deepEqual(fresh.changes.map((c) => [c.id, c.to]), [[CODEC, "2.0.0"], [KV, "1.2.3"]]);
    await assert.rejects(
      addPlugins(await other.context(undefined, choices), { ...add, specs: ["github.com/acme/none"] }),
      (error: ProjectError) => error.exitCode === 6,
    );
  } finally {
    other.remove();
  }
}
