/**
 * `runtime` of the machine's configuration: component plugins in processes of their own, modules refused or not.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inspectPlugin } from "../../project/definitions/engine_inspector.ts";
import { loadProject } from "../../project/plugins/load.ts";
import { componentOf } from "../plugins/component_plugin.ts";
import { FakeRegistry } from "../project/fake_registry.ts";
import { CODEC, CODEC_WASM, codecDefinition, definition } from "../project/sample_plugins.ts";
import { TempProject } from "../project/temp_project.ts";
import { waft } from "./waft.ts";

const ID = "github.com/acme/adder";
const CONTRACT = "github.com/acme/contracts/adder";
const INTERFACE = "t:p/x@1.0.0";
const COMPONENT = componentOf(
  "interface x { add: func(a: u32, b: u32) -> u32; } world w { export x; }",
  `(module (func (export "${INTERFACE}#add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))`,
);
const DEFINITION = definition(ID, "1.0.0", {
  provides: [{
    id: CONTRACT,
    major: 1,
    interface: INTERFACE,
    functions: [{ name: "add", params: ["i32", "i32"], results: ["i32"] }],
  }],
  world: { imports: [], exports: [INTERFACE] },
});

Deno.test({
  name: "runtime of config.json: components in runners; modules are refused or run in the program's process",
  sanitizeResources: false,
  sanitizeOps: false,
  fn: async () => {
    const fake = new FakeRegistry();
    await fake.publish([DEFINITION], "github.com/acme", COMPONENT);
    await fake.publish([codecDefinition("2.0.0")], "github.com/acme", CODEC_WASM);
    const address = await fake.listen();
    const project = new TempProject();
    const run = (...args: string[]) => waft(args, project.root, project.home, { WAFT_REGISTRY: address });
    const configure = (runtime: string) => {
      const folder = join(project.home, "waft", "config");
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "config.json"), JSON.stringify({ runtime }));
    };
    /** Whether the component runs elsewhere. */
    const isRemote = async () => {
      const context = await project.context(fake, { inspect: inspectPlugin, registry: address });
      const { plugins } = await loadProject(context, project.root);
      return plugins.find(({ id }) => id === ID)!.component!.runtime.waits === true;
    };
    try {
      project.write(
        "g.wat",
        `(module (import "${CONTRACT}@1" "add" (func $add (param i32 i32) (result i32)))
          (func (export "f") (param i32) (result i32) (call $add (local.get 0) (i32.const 2))))`,
      );
      assert.equal((await run("add", ID)).code, 0);
      const five = { code: 0, out: "5\n", err: "" };
      assert.deepEqual([await isRemote(), await run("run", "--invoke", "f", "g.wat", "3")], [false, five]);
      for (const runtime of ["runner", "prefer-runner"]) {
        configure(runtime);
        assert.deepEqual([await isRemote(), await run("run", "--invoke", "f", "g.wat", "3")], [true, five], runtime);
      }
      configure("process");
      assert.equal(await isRemote(), false);
      assert.equal((await run("add", CODEC)).code, 0);
      configure("runner");
      const refused = await run("run", "--invoke", "f", "g.wat", "3");
      assert.notEqual(refused.code, 0);
      assert.match(refused.err, /incompatible\.runtime: github\.com\/acme\/codec is a module/);
      configure("prefer-runner");
      assert.deepEqual(await run("run", "--invoke", "f", "g.wat", "3"), five);
      configure("elsewhere");
      assert.match((await run("run", "--invoke", "f", "g.wat", "3")).err, /runtime/);
    } finally {
      await fake.close();
      project.remove();
    }
  },
});
