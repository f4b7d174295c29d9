/**
 * A project opened by a program: settings reach the engine, plugins serve guests, each guest has its own, refusals come
 * first.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { WaftError } from "@waft/engine";
import { packageFiles } from "../../../tests/project/fake_registry.ts";
import { definition } from "../../../tests/project/sample_plugins.ts";
import { ALLOW_ALL, TempProject } from "../../../tests/project/temp_project.ts";
import { ProjectError } from "../../base/diagnostic.ts";
import { assemble, inspectModule } from "../../definitions/engine_inspector.ts";
import { openProject, type ProjectOptions } from "./open_project.ts";
import { addPlugins } from "./add.ts";

const COUNTER = "github.com/acme/contracts/counter";
const WASM = assemble(`(module (global $n (mut i32) (i32.const 0))
  (func (export "${COUNTER}@1#next") (result i32)
    (global.set $n (i32.add (global.get $n) (i32.const 1))) (global.get $n)))`);
const GUEST = `(module (import "${COUNTER}@1" "next" (func $next (result i32)))
  (func (export "twice") (result i32) (drop (call $next)) (call $next)))`;

async function withProject(run: (project: TempProject, options: ProjectOptions) => Promise<void>): Promise<void> {
  const project = new TempProject('{ "settings": { "features": { "simd": false } } }');
  try {
    const plugin = {
      ...definition("github.com/acme/counter", "1.0.0"),
      provides: [{ id: COUNTER, major: 1, functions: [{ name: "next", params: [], results: ["i32"] }] }],
    };
    for (const [path, bytes] of packageFiles([plugin], WASM)) {
      mkdirSync(dirname(join(project.root, "plugin", path)), { recursive: true });
      writeFileSync(join(project.root, "plugin", path), bytes);
    }
    const context = await project.context(undefined, { inspect: inspectModule, offline: true });
    const add = { root: project.root, directory: project.root, decider: ALLOW_ALL };
    await addPlugins(context, { ...add, specs: ["./plugin"] });
    await run(project, { context });
  } finally {
    project.remove();
  }
}

Deno.test("openProject: plugins serve guests, each with its own; settings reach the engine", () =>
  withProject(async ({ root }, options) => {
    const project = await openProject(join(root, "plugin", ".."), options);
    assert.equal(project.root, root);
    const [a, b] = [project.start(GUEST), project.start(GUEST)];
    assert.deepEqual([a.call({}, "twice"), a.call({}, "twice"), b.call({}, "twice")], [2, 4, 2]);
    a.close();
    b.close();
    const module = project.engine.compile(GUEST);
    const again = project.startModule(module, GUEST);
    assert.equal(again.call({}, "twice"), 2);
    again.close();
    const vector = '(module (func (export "v") (drop (v128.const i32x4 0 0 0 0))))';
    assert.throws(() => project.start(vector), WaftError);
    const allowed = await openProject(root, { ...options, engine: { features: { simd: true } } });
    allowed.start(vector).close();
    assert.throws(() => project.start(`(module (import "env" "f" (func)))`), ProjectError);
  }));

Deno.test("openProject: a difference from the lockfile is refused before anything runs", () =>
  withProject(async (project, options) => {
    await assert.rejects(openProject(project.root, { ...options, locked: true }), /lock\.path/);
    project.write("plugin/dist/0.wasm", assemble("(module)"));
    await assert.rejects(openProject(project.root, options), /lock\.path-changed/);
    project.write("waft-lock.json", "{");
    await assert.rejects(openProject(project.root, options), /lock\.syntax/);
    await assert.rejects(openProject(project.home, options), /project\.missing/);
  }));
