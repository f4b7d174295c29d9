/** `waft debug` in a project: breakpoints, steps and traps in plugins that are modules. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { assemble } from "../../project/definitions/engine_inspector.ts";
import { FakeRegistry } from "../project/fake_registry.ts";
import { CODEC, codecDefinition } from "../project/sample_plugins.ts";
import { TempProject } from "../project/temp_project.ts";
import { hostArguments } from "../support/host_arguments.ts";
import { HANG_MS } from "../support/hang.ts";
import { waft } from "./waft.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));
const CONTRACT = "github.com/acme/contracts/codec@1";
const PLUGIN = `(module
  (global $calls (mut i32) (i32.const 0))
  (func $twice (param $n i32) (result i32) (i32.mul (local.get $n) (i32.const 2)))
  (func $encode (export "${CONTRACT}#encode") (param $at i32) (param $length i32) (result i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (call $twice (local.get $length)))
  (func $decode (export "${CONTRACT}#decode") (param i32 i32) (result i32) unreachable))`;
const GUEST = `(module
  (import "${CONTRACT}" "encode" (func $encode (param i32 i32) (result i32)))
  (import "${CONTRACT}" "decode" (func $decode (param i32 i32) (result i32)))
  (func $run (export "run") (param $n i32) (result i32)
    (i32.add (call $encode (i32.const 0) (local.get $n)) (i32.const 1)))
  (func $fail (export "fail") (result i32) (call $decode (i32.const 0) (i32.const 0))))`;

Deno.test({
  name: "waft debug stops in plugins that are modules, and steps from the guest into them and back",
  sanitizeResources: false,
  sanitizeOps: false,
  fn: async () => {
    const fake = new FakeRegistry();
    await fake.publish([codecDefinition("2.0.0")], "github.com/acme", assemble(PLUGIN));
    const address = await fake.listen();
    const project = new TempProject();
    const env = { WAFT_REGISTRY: address };
    /** The output of a session whose commands are `lines`. */
    const session = async (args: readonly string[], lines: readonly string[]): Promise<string> => {
      const child = spawn(process.execPath, [...hostArguments(CLI), "debug", ...args], {
        cwd: project.root,
        env: { ...process.env, ...env, WAFT_HOME: join(project.home, "waft"), NO_COLOR: "1", WAFT_NO_REPORT: "1" },
      });
      let output = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => output += text);
      child.stderr.setEncoding("utf8").on("data", (text: string) => output += text);
      child.stdin.end(`${lines.join("\n")}\n`);
      const timer = setTimeout(() => child.kill("SIGKILL"), HANG_MS);
      const status = await new Promise((resolve) => child.on("close", resolve));
      clearTimeout(timer);
      return `${output.replaceAll("(waft) ", "> ").trimEnd()}\nstatus ${status}`;
    };
    try {
      project.write("g.wat", GUEST);
      assert.equal((await waft(["add", CODEC], project.root, project.home, env)).code, 0);
      const commands = ["break twice", "run", "backtrace", "locals", "globals", "finish", "finish", "rc", "continue"];
      assert.equal(
        await session(["--invoke", "run", "g.wat", "20"], commands),
        `g.wat: "run" starts it, "help" lists the commands.
> break twice
Breakpoint 1 at github.com/acme/codec.wat:8
> run
#0 twice at github.com/acme/codec.wat:8:5
>     8      local.get $n
> backtrace
* #0 twice at github.com/acme/codec.wat:8:5
  #1 encode at github.com/acme/codec.wat:18:5
  #2 run at g.wat:5:15
> locals
  n: i32 = 20
> globals
  calls: mut i32 = 1
> finish
#0 encode at github.com/acme/codec.wat:19:3
>    19    )
> finish
#0 run at g.wat:5:59
>     5      (i32.add (call $encode (i32.const 0) (local.get $n)) (i32.const 1)))
> rc
components, and programs with plugins or that an editor is attached to, cannot go back
> continue
41
The program ended with status 0.
>
status 0`,
      );
      const into = await session(["--invoke", "run", "g.wat", "1"], [
        "break run",
        "run",
        "stepi",
        "stepi",
        "stepi",
        "c",
      ]);
      assert.match(into, /> stepi\n#0 encode at github\.com\/acme\/codec\.wat:13:5\n[^]*> c\n3\n/);
      const trap = await session(["--invoke", "fail", "g.wat"], ["run", "backtrace", "continue"]);
      assert.match(trap, /> run\nTrap: unreachable\n#0 decode at github\.com\/acme\/codec\.wat:\d+:\d+\n/);
      assert.equal(trap.match(/Trap: /g)?.length, 1, "the guest does not stop, too");
      assert.match(trap, /> continue\ng\.wat: trap: unreachable in plugin github\.com\/acme\/codec\n/);
      assert.match(trap, /The program ended with status 134\.\n/);
      const hello = fileURLToPath(new URL("../component/fixtures/hello.wasm", import.meta.url));
      assert.equal((await waft(["add", "--wasi", "clock"], project.root, project.home, env)).code, 0);
      const narrowed = await session([hello], ["run"]);
      assert.match(
        narrowed,
        /authority\.wasi: the project does not allow its guests wasi:cli\/stdout \(stdio\)\n {2}help: /,
      );
      assert.match(narrowed, /\nstatus 4$/);
      const bare = await session(["--bare", "--invoke", "run", "g.wat", "1"], ["run"]);
      assert.match(bare, /^waft: g\.wat: 2 unknown imports:\n[^]*\nstatus 1$/);
    } finally {
      await fake.close();
      project.remove();
    }
  },
});
