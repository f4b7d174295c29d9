/**
 * The example log as a component: its build is that of its source, and it is added, reviewed, run and updated like a
 * plugin that is a module.
 */
import assert from "node:assert/strict";
import { closeSync, cpSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { NewEngine } from "@waft/engine";
import { newComponent } from "../../component/build/new_component.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { parseWit } from "../../component/wit/parse.ts";
import { resolveWit } from "../../component/wit/resolve.ts";
import { ProjectError } from "../../project/base/diagnostic.ts";
import { digestBytes } from "../../project/base/integrity.ts";
import { assemble, inspectPlugin as inspect } from "../../project/definitions/engine_inspector.ts";
import { addPlugins } from "../../project/ops/project/add.ts";
import type { ReviewRequest } from "../../project/ops/project/decide.ts";
import { loadProject } from "../../project/plugins/load.ts";
import { PluginHost } from "../../project/plugins/plugin_host.ts";
import { ALLOW_ALL, NO_TERMINAL, TempProject } from "../project/temp_project.ts";

const SOURCE = fileURLToPath(new URL("../../examples/plugins/log_component", import.meta.url));
const NS = "plugins.waft.example/contracts/log-interface@0";

Deno.test("log component: the build in the repository is that of its text and world", () => {
  const wit = parseWit({ file: "log.wit", text: readFileSync(join(SOURCE, "log.wit"), "utf8") });
  const world = resolveWit([wit]).root.worlds.get("plugin")!;
  const built = newComponent(assemble(readFileSync(join(SOURCE, "log.wat"), "utf8")), { world });
  assert.deepEqual(new Uint8Array(readFileSync(join(SOURCE, "dist", "log.wasm"))), new Uint8Array(built));
});

const GUEST = `(module
  (import "${NS}" "event" (func $event (param i32 i32 i32)))
  (import "${NS}" "count" (func $count (param i32 i32 i64) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 8) "said \\"hi\\"\\n\\c3\\a4")
  (func (export "event") (param i32 i32) (call $event (local.get 0) (i32.const 8) (local.get 1)))
  (func (export "count") (param i32 i64) (result i32) (call $count (i32.const 200) (local.get 0) (local.get 1))))`;

Deno.test("log component: events and counters, in a file if that is granted", async () => {
  for (const deny of [[], ["clock.wall", "fs.write"]]) {
    const project = new TempProject();
    try {
      cpSync(SOURCE, join(project.root, "log"), { recursive: true });
      const context = await project.context(undefined, { inspect });
      const decider = (request: ReviewRequest) =>
        ALLOW_ALL(request).then((decision) => {
          const grants = Object.entries(decision!.grants).filter(([name]) => !deny.includes(name));
          return { grants: Object.fromEntries(grants), denied: deny };
        });
      await addPlugins(context, { root: project.root, directory: project.root, specs: ["./log"], decider });
      const stderr = join(project.root, "stderr");
      writeFileSync(stderr, "");
      const engine = NewEngine();
      const file = openSync(stderr, "r+");
      const host = new PluginHost(await loadProject(context, project.root), engine, { stdio: [0, 1, file] });
      const module = engine.compile(GUEST);
      const graph = host.start({ module, digest: digestBytes(new TextEncoder().encode(GUEST)) });
      graph.call({}, "event", 1, 12);
      graph.call({}, "event", 3, 12); // more verbose than the configuration
      graph.call({}, "event", 0, 70_000); // longer than the buffer of a line, and than the plugin's first memory
      assert.deepEqual([5, 5, 0, 65].map((size) => graph.call({}, "count", size, -4n)), [0, 0, 1, 1]);
      for (let size = 1; size < 64; size++) graph.call({}, "count", size, 1n);
      assert.equal(graph.call({}, "count", 64, 1n), 0);
      graph.close();
      closeSync(file);
      const lines = (text: string) =>
        text.trimEnd().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>);
      const [first, second, last, ...more] = lines(readFileSync(stderr, "utf8"));
      assert.equal(more.length, 0);
      assert.equal("ms" in first!, deny.length === 0);
      assert.deepEqual([first!.level, first!.message], ["warn", 'said "hi"\nä']);
      assert.deepEqual([second!.level, (second!.message as string).length], ["error", 69_999]);
      const counters = last!.counters as Record<string, number>;
      assert.deepEqual([Object.keys(counters).length, Object.values(counters)[0]], [64, -7]);
      const logged = project.read("logs/app.log");
      if (deny.length > 0) assert.equal(logged, undefined);
      else assert.deepEqual(lines(logged!), lines(readFileSync(stderr, "utf8")));
    } finally {
      project.remove();
    }
  }
});

/** The package of a component that imports `imports`. */
function writePackage(directory: string, imports: readonly string[], authorities: readonly object[]): void {
  mkdirSync(join(directory, "register"), { recursive: true });
  const metadata = {
    module: "t.example/p",
    version: "1.0.0",
    name: "p",
    description: "A plugin",
    license: "MIT",
    repository: "https://t.example/p",
    authors: [{ name: "T" }],
  };
  const definition = { id: "t.example/p", world: { imports, exports: [] }, authorities };
  writeFileSync(join(directory, "waft.json"), JSON.stringify({ plugins: {}, package: metadata }));
  writeFileSync(
    join(directory, "register", "catalog.json"),
    JSON.stringify({ plugins: [{ entry: "p.wasm", definition }] }),
  );
  const text = `(component ${imports.map((name) => `(import "${name}" (instance))`).join(" ")})`;
  writeFileSync(join(directory, "p.wasm"), componentToBinary(text));
}

Deno.test("component plugins: an import that an update adds is asked for again, another version of it is not", async () => {
  const project = new TempProject();
  try {
    const context = await project.context(undefined, { inspect });
    const directory = join(project.root, "p");
    const authorities = [{ name: "random", mode: "required", reason: "Tests." }];
    const reasons: string[] = [];
    const add = async (imports: readonly string[], decider = NO_TERMINAL) => {
      writePackage(directory, imports, authorities);
      const request = { root: project.root, directory: project.root, specs: ["./p"] };
      const asked = (review: ReviewRequest) => {
        reasons.push(...review.reasons.map(({ text }) => text));
        return decider(review);
      };
      return (await addPlugins(context, { ...request, decider: asked })).changes[0];
    };
    const first = await add(["wasi:random/random@0.2.0"], ALLOW_ALL);
    assert.deepEqual(first.world, {
      imports: ["wasi:random/random@0.2.0"],
      exports: [],
      added: ["wasi:random/random@0.2.0"],
    });
    reasons.length = 0;
    assert.equal((await add(["wasi:random/random@0.2.3"])).needsReview, false);
    assert.deepEqual(reasons, []);
    // The same authority opens it, and one needs none: both are shown to the reviewer all the same.
    const more = ["wasi:io/poll@0.2.3", "wasi:random/insecure@0.2.3", "wasi:random/random@0.2.3"];
    const change = await add(more, ALLOW_ALL);
    assert.deepEqual(reasons, ["it now imports wasi:io/poll@0.2.3, wasi:random/insecure@0.2.3"]);
    assert.deepEqual(change.world?.added, more.slice(0, 2));
    // A definition that hides an import is refused, whatever it requests.
    writePackage(directory, more, authorities);
    const hidden = readFileSync(join(directory, "register", "catalog.json"), "utf8").replace(
      '"wasi:io/poll@0.2.3",',
      "",
    );
    writeFileSync(join(directory, "register", "catalog.json"), hidden);
    const request = { root: project.root, directory: project.root, specs: ["./p"], decider: ALLOW_ALL };
    await assert.rejects(addPlugins(context, request), (error) => {
      assert.ok(error instanceof ProjectError);
      assert.match(
        error.diagnostics[0].message,
        /imports "wasi:io\/poll@0\.2\.3", which its definition does not list/,
      );
      return true;
    });
  } finally {
    project.remove();
  }
});
