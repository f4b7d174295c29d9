/** `waft debug` in a project: breakpoints, steps, stacks and traps in plugins. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { binaryOf } from "../../component/binary_of.ts";
import type { Definition } from "../../project/definitions/definition.ts";
import { assemble } from "../../project/definitions/engine_inspector.ts";
import { FakeRegistry } from "../project/fake_registry.ts";
import { CODEC, codecDefinition, definition } from "../project/sample_plugins.ts";
import { TempProject } from "../project/temp_project.ts";
import { Editor } from "../support/editor.ts";
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

/** Runs a test in a project whose registry has a plugin. */
function projectTest(
  name: string,
  [definition, bytes]: readonly [Definition, Uint8Array],
  test: (context: TestContext) => Promise<void>,
): void {
  Deno.test({
    name,
    sanitizeResources: false,
    sanitizeOps: false,
    fn: async () => {
      const fake = new FakeRegistry();
      await fake.publish([definition], "github.com/acme", bytes);
      const env = { WAFT_REGISTRY: await fake.listen() };
      const project = new TempProject();
      try {
        await test({
          project,
          add: async (...args) =>
            assert.equal((await waft(["add", ...args], project.root, project.home, env)).code, 0, args.join(" ")),
          session: (args, lines) => session(project, env, args, lines),
          edit: (args, use) => edit(project, env, args, use),
        });
      } finally {
        await fake.close();
        project.remove();
      }
    },
  });
}

/** A project in a test. */
interface TestContext {
  readonly project: TempProject;
  readonly add: (...args: string[]) => Promise<void>;
  /** The output of a session whose commands are `lines`. */
  readonly session: (args: readonly string[], lines: readonly string[]) => Promise<string>;
  /** Runs `use` with an editor whose adapter has the arguments `args`. */
  readonly edit: (args: readonly string[], use: (editor: Editor) => Promise<void>) => Promise<void>;
}

/** The stack of a program that has stopped for `reason`: the functions with their modules. */
async function stackAt(editor: Editor, reason: string): Promise<{ frames: readonly StackFrame[]; text: string }> {
  assert.equal((await editor.event("stopped")).body?.["reason"], reason);
  const frames = (await editor.request("stackTrace", { threadId: 1 }))["stackFrames"] as StackFrame[];
  return { frames, text: frames.map(({ name, moduleId }) => `${name} (${moduleId})`).join(" ") };
}

/** A frame in the protocol. */
interface StackFrame {
  readonly id: number;
  readonly name: string;
  readonly moduleId: string;
  readonly source: { readonly name: string; readonly sourceReference: number };
}

/** The locals of a frame. */
async function localsOf(editor: Editor, { id }: StackFrame): Promise<string> {
  const { scopes } = await editor.request("scopes", { frameId: id });
  const locals = (scopes as { name: string; variablesReference: number }[]).find(({ name }) => name === "Locals")!;
  const { variables } = await editor.request("variables", { variablesReference: locals.variablesReference });
  return (variables as { name: string; value: string }[]).map(({ name, value }) => `${name}=${value}`).join(" ");
}

function started(project: TempProject, env: Record<string, string>, args: readonly string[]) {
  return spawn(process.execPath, [...hostArguments(CLI), "debug", ...args], {
    cwd: project.root,
    env: { ...process.env, ...env, WAFT_HOME: join(project.home, "waft"), NO_COLOR: "1", WAFT_NO_REPORT: "1" },
  });
}

async function edit(
  project: TempProject,
  env: Record<string, string>,
  args: readonly string[],
  use: (editor: Editor) => Promise<void>,
): Promise<void> {
  const child = started(project, env, ["--dap", ...args]);
  const timer = setTimeout(() => child.kill("SIGKILL"), HANG_MS);
  const closed = new Promise((resolve) => child.on("close", resolve));
  try {
    const ended = closed.then(() => assert.fail("the adapter has ended"));
    await Promise.race([use(new Editor(child.stdout, child.stdin)), ended]);
    child.stdin.end();
    await closed;
  } finally {
    child.kill("SIGKILL");
    clearTimeout(timer);
  }
}

async function session(
  project: TempProject,
  env: Record<string, string>,
  args: readonly string[],
  lines: readonly string[],
): Promise<string> {
  const child = started(project, env, args);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => output += text);
  child.stderr.setEncoding("utf8").on("data", (text: string) => output += text);
  child.stdin.end(`${lines.join("\n")}\n`);
  const timer = setTimeout(() => child.kill("SIGKILL"), HANG_MS);
  const status = await new Promise((resolve) => child.on("close", resolve));
  clearTimeout(timer);
  return `${output.replaceAll("(waft) ", "> ").trimEnd()}\nstatus ${status}`;
}

projectTest(
  "waft debug stops in plugins that are modules, and steps from the guest into them and back",
  [codecDefinition("2.0.0"), assemble(PLUGIN)],
  async ({ project, add, session }) => {
    project.write("g.wat", GUEST);
    await add(CODEC);
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
    await add("--wasi", "clock");
    const narrowed = await session([hello], ["run"]);
    assert.match(
      narrowed,
      /authority\.wasi: the project does not allow its guests wasi:cli\/stdout \(stdio\)\n {2}help: /,
    );
    assert.match(narrowed, /\nstatus 4$/);
    const bare = await session(["--bare", "--invoke", "run", "g.wat", "1"], ["run"]);
    assert.match(bare, /^waft: g\.wat: 2 unknown imports:\n[^]*\nstatus 1$/);
  },
);

/** A plugin whose `init` needs a number that its start function has left, and fails if `bad` is set. */
const STARTING = `(module
  (global $ready (mut i32) (i32.const 0))
  (global $bad (export "bad") (mut i32) (i32.const 0))
  (func $begin (global.set $ready (i32.const 3)))
  (start $begin)
  (func $check (param $ready i32) (if (global.get $bad) (then unreachable)))
  (func $init (export "waft:self@1#init") (call $check (global.get $ready)))
  (func (export "${CONTRACT}#encode") (param i32 i32) (result i32) (local.get 1))
  (func (export "${CONTRACT}#decode") (param i32 i32) (result i32) (local.get 1)))`;
const STARTED = `(module
  (import "${CONTRACT}" "encode" (func $encode (param i32 i32) (result i32)))
  (global $length (mut i32) (i32.const 0))
  (func $prepare (global.set $length (call $encode (i32.const 0) (i32.const 7))))
  (start $prepare)
  (func $run (export "run") (result i32) (global.get $length)))`;

projectTest(
  "init functions of plugins and the start function of the guest stop",
  [codecDefinition("2.0.0"), assemble(STARTING)],
  async ({ project, add, session }) => {
    project.write("g.wat", STARTED);
    await add(CODEC);
    const commands = ["break check", "run", "bt", "globals", "finish", "step", "bt", "continue"];
    assert.equal(
      await session(["--invoke", "run", "g.wat"], commands),
      `g.wat: "run" starts it, "help" lists the commands.
> break check
Breakpoint 1 at github.com/acme/codec.wat:17
> run
#0 check at github.com/acme/codec.wat:17:5
>    17      global.get $bad
> bt
* #0 check at github.com/acme/codec.wat:17:5
  #1 init at github.com/acme/codec.wat:24:5
> globals
  ready: mut i32 = 3
  bad: mut i32 = 0
> finish
#0 init at github.com/acme/codec.wat:25:3
>    25    )
> step
#0 prepare at g.wat:4:53
>     4    (func $prepare (global.set $length (call $encode (i32.const 0) (i32.const 7))))
> bt
* #0 prepare at g.wat:4:53
> continue
7
The program ended with status 0.
>
status 0`,
    );
    const trap = await session(["--invoke", "run", "g.wat"], [
      "break init",
      "run",
      "set bad = 1",
      "continue",
      "bt",
      "c",
    ]);
    assert.match(
      trap,
      /> continue\nTrap: unreachable\n#0 check at .*\n.*\n> bt\n\* #0 check at .*\n {2}#1 init at .*\n>/,
    );
    assert.match(trap, /> c\ng\.wat: trap: unreachable in plugin github\.com\/acme\/codec\n[^]*\nstatus 134$/);
    const left = await session(["--invoke", "run", "g.wat"], ["break init", "run", "quit"]);
    assert.match(left, /\n> quit\nstatus 0$/);
  },
);

const ADDER = "github.com/acme/adder";
const ADDER_CONTRACT = "github.com/acme/contracts/adder";
const INTERFACE = "t:p/x@1.0.0";
/** A component of two core modules, the second of which calls the first. */
const COMPONENT = `(component
  (core module $lib
    (memory (export "memory") 1)
    (data (i32.const 0) "lib")
    (global $free (mut i32) (i32.const 1024))
    (func $realloc (export "realloc") (param i32 i32 i32 i32) (result i32) (global.get $free))
    (func $plus (export "plus") (param $a i32) (param $b i32) (result i32)
      (i32.add (local.get $a) (local.get $b))))
  (core instance $lib (instantiate $lib))
  (core module $main
    (import "lib" "plus" (func $plus (param i32 i32) (result i32)))
    (import "lib" "memory" (memory 1))
    (func $add (export "add") (param $x i32) (param $y i32) (result i32)
      (call $plus (local.get $y) (local.get $x)))
    (func $fail (export "fail") (param $x i32) (result i32) (i32.div_u (i32.const 1) (local.get $x)))
    (func $echo (export "echo") (param $at i32) (param $length i32) (result i32)
      (i32.store (i32.const 16) (local.get $at))
      (i32.store (i32.const 20) (call $plus (local.get $length) (i32.const -1)))
      (i32.const 16))
    (func (export "length") (param i32 i32) (result i32) (local.get 1)))
  (core instance $i (instantiate $main (with "lib" (instance $lib))))
  (func $add (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "add")))
  (func $fail (param "a" u32) (result u32) (canon lift (core func $i "fail")))
  (func $echo (param "s" string) (result string) (canon lift (core func $i "echo")
    (memory (core memory $lib "memory")) (realloc (core func $lib "realloc"))))
  (instance $x (export "add" (func $add)) (export "fail" (func $fail)) (export "echo" (func $echo)))
  (export "${INTERFACE}" (instance $x)))`;
const ADDER_DEFINITION = definition(ADDER, "1.0.0", {
  provides: [{
    id: ADDER_CONTRACT,
    major: 1,
    interface: INTERFACE,
    functions: [
      { name: "add", params: ["i32", "i32"], results: ["i32"] },
      { name: "echo", params: ["i32", "i32", "i32"], results: [] },
      { name: "fail", params: ["i32"], results: ["i32"] },
    ],
  }],
  world: { imports: [], exports: [INTERFACE] },
});
const CALLER = `(module
  (import "${ADDER_CONTRACT}@1" "add" (func $add (param i32 i32) (result i32)))
  (import "${ADDER_CONTRACT}@1" "echo" (func $echo (param i32 i32 i32)))
  (import "${ADDER_CONTRACT}@1" "fail" (func $fail (param i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 100) "guest")
  (func $allocate (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 200))
  (func $run (export "run") (param $n i32) (result i32) (call $add (local.get $n) (i32.const 2)))
  (func $text (export "text") (result i32)
    (call $echo (i32.const 100) (i32.const 5) (i32.const 8))
    (i32.load (i32.const 12)))
  (func $crash (export "crash") (result i32) (call $fail (i32.const 0))))`;

projectTest(
  "waft debug stops in plugins that are components, in each of their core modules",
  [ADDER_DEFINITION, binaryOf(COMPONENT)],
  async ({ project, add, session }) => {
    project.write("g.wat", CALLER);
    await add(ADDER);
    const commands = ["break plus", "run", "backtrace", "locals", "x/3c 0", "up", "locals", "up", "locals", "x/5c 100"];
    assert.equal(
      await session(["--invoke", "run", "g.wat", "40"], [...commands, "finish", "finish", "rc", "continue"]),
      `g.wat: "run" starts it, "help" lists the commands.
> break plus
Breakpoint 1 at github.com/acme/adder#2.wat:13
> run
#0 plus at github.com/acme/adder#2.wat:13:5
>    13      local.get $a
> backtrace
* #0 plus at github.com/acme/adder#2.wat:13:5
  #1 add at github.com/acme/adder.wat:13:5
  #2 run at g.wat:8:58
> locals
  a: i32 = 2
  b: i32 = 40
> x/3c 0
  00000000  108 'l'  105 'i'  98 'b'
> up
#1 add at github.com/acme/adder.wat:13:5
>    13      call $plus
> locals
  x: i32 = 40
  y: i32 = 2
> up
#2 run at g.wat:8:58
>     8    (func $run (export "run") (param $n i32) (result i32) (call $add (local.get $n) (i32.const 2)))
> locals
  n: i32 = 40
> x/5c 100
  00000064  103 'g'  117 'u'  101 'e'  115 's'  116 't'
> finish
#0 add at github.com/acme/adder.wat:14:3
>    14    )
> finish
#0 run at g.wat:8:97
>     8    (func $run (export "run") (param $n i32) (result i32) (call $add (local.get $n) (i32.const 2)))
> rc
components, and programs with plugins or that an editor is attached to, cannot go back
> continue
42
The program ended with status 0.
>
status 0`,
    );
    const into = await session(["--invoke", "run", "g.wat", "1"], ["break run", "run", "stepi", "stepi", "stepi", "c"]);
    assert.match(into, /> stepi\n#0 add at github\.com\/acme\/adder\.wat:11:5\n[^]*> c\n3\n/);
    const text = await session(["--invoke", "text", "g.wat"], [
      "break plus",
      "break allocate",
      "run",
      "bt",
      "finish",
      "c",
    ]);
    assert.match(text, /> bt\n\* #0 plus at .*\n {2}#1 echo at .*\n {2}#2 text at g\.wat:10:6\n/);
    assert.match(text, /> c\n4\nThe program ended with status 0\.\n/, "the guest's allocator does not stop");
    const trap = await session(["--invoke", "crash", "g.wat"], ["run", "bt", "print $x", "c"]);
    assert.match(
      trap,
      /> run\nTrap: integer divide by zero\n#0 fail at github\.com\/acme\/adder\.wat:18:5\n/,
    );
    assert.match(trap, /> bt\n\* #0 fail at .*\n {2}#1 crash at g\.wat:12:47\n> print \$x\n0\n/);
    assert.equal(trap.match(/Trap: /g)?.length, 1, "the guest does not stop, too");
    assert.match(trap, /> c\ng\.wat: trap: integer divide by zero in plugin github\.com\/acme\/adder\n/);
    const folder = join(project.home, "waft", "config");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "config.json"), JSON.stringify({ runtime: "runner" }));
    const remote = await session(["--invoke", "run", "g.wat", "40"], ["break plus", "break run", "run", "next"]);
    assert.match(
      remote,
      /^g\.wat: .*\ngithub\.com\/acme\/adder runs in a process of its own, in which it does not stop\.\n> break plus\n/,
    );
    assert.match(remote, /> break plus\nThere is no code at plus\.\n> break run\nBreakpoint 1 at g\.wat:8\n/);
    assert.match(remote, /> next\n42\nThe program ended with status 0\.\n/);
  },
);

/** The same plugin for guests that are components, which import its interface. */
const OFFERED: Definition = {
  ...ADDER_DEFINITION,
  provides: ADDER_DEFINITION.provides.map((each) => ({ ...each, namespaces: [INTERFACE] })),
  authorities: [{
    name: "import.define",
    mode: "required",
    reason: "Serves components.",
    scope: { namespaces: [INTERFACE] },
  }],
};
const APPLICATION = `(component
  (import "${INTERFACE}" (instance $x
    (export "add" (func (param "a" u32) (param "b" u32) (result u32)))
    (export "fail" (func (param "a" u32) (result u32)))))
  (core func $add (canon lower (func $x "add")))
  (core func $fail (canon lower (func $x "fail")))
  (core module $m
    (import "x" "add" (func $add (param i32 i32) (result i32)))
    (import "x" "fail" (func $fail (param i32) (result i32)))
    (func $sum (export "sum") (param $n i32) (result i32) (call $add (local.get $n) (i32.const 2)))
    (func $crash (export "crash") (param $n i32) (result i32) (call $fail (local.get $n))))
  (core instance $i (instantiate $m
    (with "x" (instance (export "add" (func $add)) (export "fail" (func $fail))))))
  (func (export "sum") (param "n" u32) (result u32) (canon lift (core func $i "sum")))
  (func (export "crash") (param "n" u32) (result u32) (canon lift (core func $i "crash"))))`;

projectTest(
  "a guest that is a component stops with plugins that are components",
  [OFFERED, binaryOf(COMPONENT)],
  async ({ project, add, session }) => {
    project.write("app.wat", APPLICATION);
    await add(ADDER, "--allow", "import.define");
    const commands = ["break plus", "run", "bt", "up", "up", "print $n", "finish", "finish", "continue"];
    assert.equal(
      await session(["--invoke", "sum(40)", "app.wat"], commands),
      `app.wat: "run" starts it, "help" lists the commands.
> break plus
Breakpoint 1 at github.com/acme/adder#2.wat:13
> run
#0 plus at github.com/acme/adder#2.wat:13:5
>    13      local.get $a
> bt
* #0 plus at github.com/acme/adder#2.wat:13:5
  #1 add at github.com/acme/adder.wat:13:5
  #2 sum at app.wat.wat:11:5
> up
#1 add at github.com/acme/adder.wat:13:5
>    13      call $plus
> up
#2 sum at app.wat.wat:11:5
>    11      call $add
> print $n
40
> finish
#0 add at github.com/acme/adder.wat:14:3
>    14    )
> finish
#0 sum at app.wat.wat:12:3
>    12    )
> continue
42
The program ended with status 0.
>
status 0`,
    );
    const steps = ["break sum", "run", "stepi", "stepi", "stepi", "continue"];
    const into = await session(["--invoke", "sum(40)", "app.wat"], steps);
    assert.match(into, /> stepi\n#0 add at github\.com\/acme\/adder\.wat:11:5\n[^]*> continue\n42\n/);
    const trap = await session(["--invoke", "crash(0)", "app.wat"], ["run", "bt", "continue"]);
    assert.match(
      trap,
      /> run\nTrap: integer divide by zero\n#0 fail at .*\n.*\n> bt\n.*\n {2}#1 crash at app\.wat\.wat:15:5\n/,
    );
    assert.equal(trap.match(/Trap: /g)?.length, 1, "the guest does not stop, too");
    assert.match(trap, /\napp\.wat: trap: integer divide by zero in plugin github\.com\/acme\/adder\n/);
    const none = await session(["--invoke", "none(0)", "app.wat"], ["run"]);
    assert.match(none, /^waft: --invoke: app\.wat does not export none; it exports:\n {4}sum: [^]*\nstatus 2$/);
    const bare = await session(["--bare", "--invoke", "sum(1)", "app.wat"], ["run"]);
    assert.match(
      bare,
      /^waft: app\.wat: the component's imports are missing:\n {4}t:p\/x@1\.0\.0#add: [^]*\nstatus 1$/,
    );
  },
);

projectTest(
  "an editor sets breakpoints in the core modules of a plugin, and steps from them to the guest",
  [ADDER_DEFINITION, binaryOf(COMPONENT)],
  async ({ project, add, edit }) => {
    project.write("g.wat", CALLER);
    await add(ADDER);
    await edit(["--invoke", "run", "g.wat", "40"], async (editor) => {
      await editor.request("initialize");
      await editor.request("launch", { program: "g.wat" });
      await editor.event("initialized");
      const { breakpoints } = await editor.request("setFunctionBreakpoints", { breakpoints: [{ name: "plus" }] });
      assert.equal((breakpoints as { verified: boolean }[])[0].verified, true);
      await editor.request("configurationDone");
      const { frames, text } = await stackAt(editor, "breakpoint");
      assert.equal(text, `plus (${ADDER}#2) add (${ADDER}) run (g.wat)`);
      const locals = [];
      for (const frame of frames) locals.push(await localsOf(editor, frame));
      assert.deepEqual(locals, ["a=2 b=40", "x=40 y=2", "n=40"]);
      const { name, sourceReference } = frames[1].source;
      assert.equal(name, "adder.wat");
      const { content } = await editor.request("source", { sourceReference });
      const line = String(content).split("\n").findIndex((each) => each.includes("call $plus")) + 2;
      await editor.request("setBreakpoints", { source: { sourceReference }, breakpoints: [{ line }] });
      await editor.request("continue", { threadId: 1 });
      assert.equal((await stackAt(editor, "breakpoint")).text, `add (${ADDER}) run (g.wat)`);
      await editor.request("stepOut", { threadId: 1 });
      assert.equal((await stackAt(editor, "step")).text, "run (g.wat)");
      await editor.request("continue", { threadId: 1 });
      assert.equal((await editor.event("output")).body?.["output"], "42\n");
      assert.equal((await editor.event("exited")).body?.["exitCode"], 0);
    });
  },
);
