/**
 * `waft debug` as a process: the prompt with mistakes and hostile names, programs of WASI, modules that are refused,
 * and an editor on standard input and output, with messages that are not the protocol's.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { longNameModule } from "../support/long_name.ts";
import { removeFolder } from "../support/remove_folder.ts";
import { HANG_MS } from "../support/hang.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

const SUM = `(module
  (memory (export "memory") 1)
  (data (i32.const 16) "hello")
  (global $turns (mut i64) (i64.const 0))
  (func $add (param $a i32) (param $b i32) (result i32)
    (i32.add (local.get $a) (local.get $b)))
  (func (export "sum") (param $n i32) (result i32) (local $total i32) (local $rest f64)
    (loop $again
      (local.set $total (call $add (local.get $total) (local.get $n)))
      (global.set $turns (i64.add (global.get $turns) (i64.const 1)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $total)))`;

const HELLO = `(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\\10\\00\\00\\00\\06\\00\\00\\00")
  (data (i32.const 16) "hello\\0a")
  (func (export "_start")
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    (call $exit (i32.const 7))))`;

function inFolder(files: Record<string, string>, run: (folder: string) => void | Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "debug-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return Promise.resolve(run(folder)).finally(() => removeFolder(folder));
}

/** The session's output without the first line; commands are lines. */
function session(folder: string, args: readonly string[], commands: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...hostArguments(CLI), "debug", ...args], {
    cwd: folder,
    encoding: "utf8",
    input: commands.join("\n") + "\n",
    timeout: HANG_MS,
  });
  assert.equal(stderr, "");
  return `${stdout.slice(stdout.indexOf("\n") + 1).trimEnd()}\nstatus ${status}`;
}

Deno.test("the prompt moves between frames, stops once, watches values, and shows memory as numbers", () =>
  inFolder({ "sum.wat": SUM }, (folder) => {
    const commands = [
      "tbreak add",
      "info breakpoints",
      "run",
      "info breakpoints",
      "up",
      "up",
      "down",
      "x/4xw 16",
      "x/5c 16",
      "x/9q 16",
      "watch turns",
      "watch a",
      "continue",
      "info watches",
      "continue",
      "unwatch",
      "watch total",
      "continue",
      "info watches",
      "unwatch",
      "continue",
    ];
    assert.equal(
      session(folder, ["sum.wat", "3"], commands).replaceAll("(waft) ", "> "),
      `> tbreak add
Breakpoint 1 at sum.wat:6
> info breakpoints
  1  add (once)
> run
#0 add at sum.wat:6:15
>     6      (i32.add (local.get $a) (local.get $b)))
> info breakpoints
  (none)
> up
#1 sum at sum.wat:9:26
>     9        (local.set $total (call $add (local.get $total) (local.get $n)))
> up
This is the outermost frame.
> down
#0 add at sum.wat:6:15
>     6      (i32.add (local.get $a) (local.get $b)))
> x/4xw 16
  00000010  0x6c6c6568  0x0000006f  0x00000000  0x00000000
> x/5c 16
  00000010  104 'h'  101 'e'  108 'l'  108 'l'  111 'o'
> x/9q 16
x takes /COUNT FORMAT SIZE with a count up to 1024, x d u c, and b h w g; not /9q.
> watch turns
Watching turns: 0
> watch a
Watching a: 0
> continue
watch a: its function has returned
#0 sum at sum.wat:9:8
>     9        (local.set $total (call $add (local.get $total) (local.get $n)))
> info watches
  turns
> continue
watch turns: 0 -> 1
#0 sum at sum.wat:11:45
>    11        (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
> unwatch
> watch total
Watching total: 3
> continue
watch total: 3 -> 5
#0 sum at sum.wat:10:36
>    10        (global.set $turns (i64.add (global.get $turns) (i64.const 1)))
> info watches
  total
> unwatch
> continue
6
The program ended with status 0.
(waft)
status 0`,
    );
  }));

Deno.test("the prompt answers mistakes, and changes of variables take effect", () =>
  inFolder({ "sum.wat": SUM }, (folder) => {
    const commands = [
      "x 16",
      "fly",
      "break nowhere",
      "break sum.wat:900",
      "step",
      "break add if c > 1",
      "run",
      "set a = x",
    ];
    const more = [
      "delete 9",
      "delete",
      "break sum.wat:10 if total > 100",
      "set a = 100",
      "continue",
      "print total",
      "globals",
    ];
    const last = ["x 16 5", "frame 3", "print 1 / 0", "print (", "delete", "continue", "continue"];
    assert.equal(
      session(folder, ["sum.wat", "3"], [...commands, ...more, ...last]).replaceAll("(waft) ", "> "),
      `> x 16
The program has not started: "run" starts it.
> fly
There is no command "fly"; "help" lists them.
> break nowhere
There is no code at nowhere.
> break sum.wat:900
There is no code at sum.wat:900.
> step
The program has not started: "run" starts it.
> break add if c > 1
Breakpoint 1 at sum.wat:6
> run
condition: no variable is called c
#0 add at sum.wat:6:15
>     6      (i32.add (local.get $a) (local.get $b)))
> set a = x
"x" is not an integer
> delete 9
There is no such breakpoint.
> delete
> break sum.wat:10 if total > 100
Breakpoint 1 at sum.wat:10
> set a = 100
> continue
#0 sum at sum.wat:10:36
>    10        (global.set $turns (i64.add (global.get $turns) (i64.const 1)))
> print total
103
> globals
  turns: mut i64 = 0
> x 16 5
  00000010  68 65 6c 6c 6f                                   hello
> frame 3
There is no such frame.
> print 1 / 0
division by zero
> print (
cannot read "(": Unclosed ( at character 1
> delete
> continue
106
The program ended with status 0.
> continue
The program has ended.
(waft)
status 0`,
    );
  }));

Deno.test("a program of WASI prints, reads nothing and ends with its status", () =>
  inFolder({ "hello.wat": HELLO }, (folder) => {
    const output = session(folder, ["hello.wat"], ["run", "quit"]);
    assert.equal(output, "(waft) run\nhello\nThe program ended with status 7.\n(waft) quit\nstatus 7");
  }));

Deno.test("modules that cannot be debugged are refused, and names cannot forge output", () =>
  inFolder({
    "shared.wat": '(module (memory 1 1 shared) (func (export "f")))',
    "part.wat": "(component)",
    "empty.wat":
      '(component (import "wasi:random/random@0.2.0" (instance $r (export "get-random-u64" (func (result u64))))) (alias export $r "get-random-u64" (func $f)) (export "f" (func $f)))',
    "bad.wat": '(module (func (export "f") (result i32)))',
    "evil.wat": '(module (func $"a\\1b[2Jb" (export "f") unreachable))',
  }, (folder) => {
    const refused = (...args: string[]) => {
      const { status, stderr } = spawnSync(process.execPath, [...hostArguments(CLI), "debug", ...args], {
        cwd: folder,
        encoding: "utf8",
      });
      return `${status} ${stderr.trimEnd()}`;
    };
    assert.match(refused("shared.wat"), /^1 waft: shared\.wat: a module with shared memories cannot be debugged/);
    assert.match(
      refused("part.wat"),
      /^1 waft: part\.wat: the component has no code of its own to debug$/,
    );
    assert.match(refused("--invoke", "f()", "empty.wat"), /^1 waft: empty\.wat: the component has no code of its own/);
    assert.match(refused("bad.wat"), /^1 waft: bad\.wat:1:\d+: type mismatch/);
    assert.match(refused("gone.wat"), /^1 waft: gone\.wat: /);
    assert.match(refused(), /^2 waft: waft debug takes a FILE/);
    const output = session(folder, ["evil.wat"], ["run", "continue"]);
    assert.match(output, /Trap: unreachable/);
    assert(!output.includes("\u001b"));
    assert.match(output, /status 134$/);
  }));

/** A message of the protocol. */
function message(seq: number, command: string, args: object = {}): string {
  const body = JSON.stringify({ seq, type: "request", command, arguments: args });
  return `Content-Length: ${new TextEncoder().encode(body).length}\r\n\r\n${body}`;
}

/** Sends `input` to `waft debug --dap`; ends it once the output contains `until`. Returns the output and the status. */
async function converse(
  folder: string,
  input: string,
  until: string,
): Promise<{ output: string; status: number | null }> {
  const child = spawn(process.execPath, [...hostArguments(CLI), "debug", "--dap"], { cwd: folder });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    if (output.includes(until)) child.stdin.end();
  });
  child.stdin.on("error", () => {}); // it may be gone
  child.stdin.write(input);
  const timer = setTimeout(() => child.kill("SIGKILL"), HANG_MS);
  const status = await new Promise<number | null>((resolve) => child.on("close", resolve));
  clearTimeout(timer);
  return { output, status };
}

/** A component of two core modules, the second of which calls the first. */
const TWO_MODULES = `(component
  (core module $lib
    (global $calls (mut i32) (i32.const 0))
    (func $half (export "half") (param $n i32) (result i32)
      (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
      (i32.div_u (local.get $n) (i32.const 2)))
    (func $fail (export "fail") (result i32) unreachable))
  (core instance $lib (instantiate $lib))
  (core module $main
    (import "lib" "half" (func $half (param i32) (result i32)))
    (import "lib" "fail" (func $fail (result i32)))
    (func $square (param $n i32) (result i32) (i32.mul (local.get $n) (local.get $n)))
    (func $run (export "run") (param $n i32) (result i32)
      (i32.add (call $square (call $half (local.get $n))) (call $half (i32.const 8))))
    (func $crash (export "crash") (result i32) (i32.add (call $fail) (call $square (i32.const 3)))))
  (core instance $i (instantiate $main (with "lib" (instance $lib))))
  (func (export "run") (param "n" u32) (result u32) (canon lift (core func $i "run")))
  (func (export "crash") (result u32) (canon lift (core func $i "crash"))))`;

Deno.test("steps lead from one core module of a component into another and back", () =>
  inFolder({ "two.wat": TWO_MODULES }, (folder) => {
    const commands = ["tbreak run", "run", "next", "step", "locals", "globals", "backtrace", "up", "locals", "globals"];
    const steps = ["print $n", "break *0", "delete 1", "finish", "next", "rc"];
    const more = ["tbreak half", "info breakpoints", "continue", "info breakpoints", "globals", "continue"];
    assert.equal(
      session(folder, ["--invoke", "run(6)", "two.wat"], [...commands, ...steps, ...more]).replaceAll("(waft) ", "> "),
      `> tbreak run
Breakpoint 1 at two.wat.wat:14
> run
#0 run at two.wat.wat:14:5
>    14      local.get $n
> next
#0 run at two.wat.wat:15:5
>    15      call $half
> step
#0 half at two.wat#2.wat:8:5
>     8      global.get $calls
> locals
  n: i32 = 6
> globals
  calls: mut i32 = 0
> backtrace
* #0 half at two.wat#2.wat:8:5
  #1 run at two.wat.wat:15:5
> up
#1 run at two.wat.wat:15:5
>    15      call $half
> locals
  n: i32 = 6
> globals
  (none)
> print $n
6
> break *0
There is no code at *0.
> delete 1
There is no such breakpoint.
> finish
#0 run at two.wat.wat:16:5
>    16      call $square
> next
#0 run at two.wat.wat:17:5
>    17      i32.const 8
> rc
components, and programs with plugins or that an editor is attached to, cannot go back
> tbreak half
Breakpoint 1 at two.wat#2.wat:8
> info breakpoints
  1  half (once)
> continue
#0 half at two.wat#2.wat:8:5
>     8      global.get $calls
> info breakpoints
  (none)
> globals
  calls: mut i32 = 1
> continue
13
The program ended with status 0.
(waft)
status 0`,
    );
    const trap = session(folder, ["--invoke", "crash", "two.wat"], ["run", "backtrace", "break two.wat.wat:11", "c"]);
    assert.match(trap, /^\(waft\) run\nTrap: unreachable\n#0 fail at two\.wat#2\.wat:17:5\n/);
    assert.match(trap, /\n\* #0 fail at two\.wat#2\.wat:17:5\n {2}#1 crash at two\.wat\.wat:\d+:5\n\(waft\)/);
    assert.match(trap, /Breakpoint 1 at two\.wat\.wat:\d+\n/);
    assert.equal(trap.match(/Trap: /g)?.length, 1, "the core modules that call it do not stop, too");
    assert.match(trap, /two\.wat: trap: unreachable\nThe program ended with status 134\.\n/);
  }));

/** Two core modules that call each other through a table, into which exports do not lead, and by an exception. */
const TABLE = `(component
  (core module $lib
    (type $f (func))
    (table (export "table") 2 funcref)
    (memory (export "memory") 1)
    (data (i32.const 0) "lib")
    (tag $e)
    (elem (i32.const 0) $returns)
    (func $returns)
    (func $inner (param $depth i32))
    (func $each (export "each") (param $index i32)
      (call_indirect (type $f) (local.get $index))
      (call $inner (i32.const 7)))
    (func $fail (export "fail") (throw $e)))
  (core instance $lib (instantiate $lib))
  (core module $main
    (type $f (func))
    (import "lib" "table" (table 2 funcref))
    (import "lib" "each" (func $each (param i32)))
    (import "lib" "fail" (func $fail))
    (memory 1)
    (data (i32.const 0) "main")
    (elem (i32.const 1) $visit)
    (func $check (param $at i32))
    (func $visit (call $check (i32.const 2)))
    (func $run (export "run") (local $total i32)
      (call_indirect (type $f) (i32.const 0))
      (call $check (i32.const 1))
      (call $each (i32.const 1))
      (block $caught (try_table (catch_all $caught) (call $fail)))
      (call $check (i32.const 3))))
  (core instance $i (instantiate $main (with "lib" (instance $lib))))
  (func (export "run") (canon lift (core func $i "run"))))`;

Deno.test("a stack across core modules has the calls that have not returned, each with its own memory", () =>
  inFolder({ "table.wat": TABLE }, (folder) => {
    const stops = ["backtrace", "x/1c 0", "continue"];
    const commands = ["break check", "break inner", "run", ...stops, "backtrace", "x/1c 0", "frame 2", "locals"];
    const rest = ["x/1c 0", "frame 9", "continue", ...stops, ...stops];
    const output = session(folder, ["--invoke", "run()", "table.wat"], [...commands, ...rest]);
    const text = output.replaceAll("(waft) ", "> ").replaceAll(/(\.wat):\d+:\d+/g, "$1").replaceAll(/> {2}.*\n/g, "");
    assert.equal(
      text,
      `> break check
Breakpoint 1 at table.wat.wat:10
> break inner
Breakpoint 2 at table.wat#2.wat:14
> run
#0 check at table.wat.wat
> backtrace
* #0 check at table.wat.wat
  #1 run at table.wat.wat
> x/1c 0
  00000000  109 'm'
> continue
#0 check at table.wat.wat
> backtrace
* #0 check at table.wat.wat
  #1 visit at table.wat.wat
  #2 each at table.wat#2.wat
  #3 run at table.wat.wat
> x/1c 0
  00000000  109 'm'
> frame 2
#2 each at table.wat#2.wat
> locals
  index: i32 = 1
> x/1c 0
  00000000  108 'l'
> frame 9
There is no such frame.
> continue
#0 inner at table.wat#2.wat
> backtrace
* #0 inner at table.wat#2.wat
  #1 each at table.wat#2.wat
  #2 run at table.wat.wat
> x/1c 0
  00000000  108 'l'
> continue
#0 check at table.wat.wat
> backtrace
* #0 check at table.wat.wat
  #1 run at table.wat.wat
> x/1c 0
  00000000  109 'm'
> continue
The program ended with status 0.
(waft)
status 0`,
    );
  }));

/** A core module with debugging information, which another one calls, and a second instance of that one. */
function twice(module: Uint8Array): string {
  const bytes = [...module].map((byte) => `\\${byte.toString(16).padStart(2, "0")}`).join("");
  return `(component
    (core module $shapes binary "${bytes}")
    (core instance $shapes (instantiate $shapes))
    (core module $caller
      (import "shapes" "run" (func $call (param i32) (result i32)))
      (global $calls (mut i32) (i32.const 0))
      (func $through (export "run") (param $n i32) (result i32)
        (global.set $calls (i32.add (global.get $calls) (local.get $n)))
        (call $call (local.get $n))))
    (core instance $inner (instantiate $caller (with "shapes" (instance $shapes))))
    (core instance $outer (instantiate $caller (with "shapes" (instance $inner))))
    (func (export "run") (param "n" u32) (result u32) (canon lift (core func $outer "run"))))`;
}

const PROGRAMS = fileURLToPath(new URL("../debug/programs", import.meta.url));
const FIXTURES = fileURLToPath(new URL("../component/fixtures", import.meta.url));

Deno.test("frames with source files have the names of their core modules, and instances of one module are apart", () =>
  inFolder({ "twice.wat": twice(readFileSync(join(PROGRAMS, "shapes5.wasm"))) }, (folder) => {
    const commands = ["break run", "break through", "run", "globals", "c", "bt", "globals", "up", "globals", "c", "bt"];
    const output = session(folder, ["--invoke", "run(4)", "twice.wat"], commands);
    assert.equal(
      output.replaceAll("(waft) ", "> "),
      `> break run
Breakpoint 1 at /src/shapes.c:35
> break through
Breakpoint 2 at twice.wat#2.wat:7
> run
#0 through at twice.wat#2.wat:7:5
>     7      global.get $calls
> globals
  calls: mut i32 = 0
> c
#0 through at twice.wat#2.wat:7:5
>     7      global.get $calls
> bt
* #0 through at twice.wat#2.wat:7:5
  #1 through at twice.wat#2.wat:12:5
> globals
  calls: mut i32 = 0
> up
#1 through at twice.wat#2.wat:12:5
>    12      call $call
> globals
  calls: mut i32 = 4
> c
#0 run at /src/shapes.c:35:16 in twice.wat
  (the source /src/shapes.c is not on this machine)
> bt
* #0 run at /src/shapes.c:35:16 in twice.wat
  #1 through at twice.wat#2.wat:12:5
  #2 through at twice.wat#2.wat:12:5
(waft)
status 0`,
    );
  }));

Deno.test("commands of WASI 0.2 and 0.3 stop, and their output is shown", () =>
  inFolder({}, (folder) => {
    const commands = ["break run", "run", "finish"];
    const old = session(folder, [join(FIXTURES, "hello.wasm"), "word"], commands);
    assert.match(old, /\n#0 run at .*\n[^]*\(waft\) finish\nwordThe program ended with status 0\./);
    const failed = session(folder, [join(FIXTURES, "hello.wat"), "1", "2"], ["run"]);
    assert.match(failed, /^\(waft\) run\n1The program ended with status 1\.\n/);
    const args = [...hostArguments(CLI), "debug", join(FIXTURES, "async_command.wat"), "wait"];
    const { stdout, stderr } = spawnSync(process.execPath, args, {
      encoding: "utf8",
      input: ["tbreak run", "run", "next", "locals", "continue"].join("\n"),
      timeout: HANG_MS,
    });
    assert.equal(stderr, "done\n");
    assert.match(
      stdout,
      /\(waft\) run\n#0 run at [^]*\(waft\) next\n#0 run at [^]*\(waft\) continue\nThe program ended/,
    );
    const quit = session(folder, [join(FIXTURES, "async_command.wat"), "stuck"], ["break run", "run", "quit"]);
    assert.match(quit, /\(waft\) quit\nstatus 0$/);
  }));

Deno.test("components that cannot be debugged are refused in a sentence", () =>
  inFolder({
    "shared.wat": '(component (core module (memory 1 1 shared) (func (export "f"))))',
    "import.wat": '(component (import "f" (func)))',
    "bad.wat": "(component (core instance 0))",
    "two.wat": TWO_MODULES,
  }, (folder) => {
    const refused = (...args: string[]) => {
      const { status, stderr } = spawnSync(process.execPath, [...hostArguments(CLI), "debug", ...args], {
        cwd: folder,
        encoding: "utf8",
      });
      return `${status} ${stderr.trimEnd()}`;
    };
    assert.match(refused("shared.wat"), /^1 waft: shared\.wat: a module with shared memories cannot be debugged/);
    assert.match(refused("import.wat"), /^1 waft: import\.wat: the component's imports are missing:\n {4}/);
    assert.match(refused("bad.wat"), /^1 waft: bad\.wat:/);
    assert.match(refused("two.wat"), /^1 waft: two\.wat: the component is not a command: it does not export wasi:cli/);
    assert.match(refused("--invoke", "gone()", "two.wat"), /^2 waft: --invoke: two\.wat does not export gone/);
    assert.match(refused("--invoke", "run(", "two.wat"), /^2 waft: --invoke: /);
    assert.match(refused("--unknown-imports", "trap", "two.wat"), /^2 waft: --unknown-imports is for modules/);
  }));

Deno.test("an editor on standard input and output", () =>
  inFolder({ "hello.wat": HELLO }, async (folder) => {
    const input = message(1, "initialize", { adapterID: "waft" }) + message(2, "launch", { program: "hello.wat" }) +
      message(3, "configurationDone");
    const { output, status } = await converse(folder, input, '"terminated"');
    assert.match(output, /"category":"stdout","output":"hello\\n"/);
    assert.match(output, /"event":"exited","body":{"exitCode":7}/);
    assert.equal(status, 7);
  }));

/** Gives a stream another number, uses it, and ends with the number of bytes of that. */
function moved(from: number, to: number, use: "read" | "write"): string {
  return `(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_renumber" (func $renumber (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "\\10\\00\\00\\00\\06\\00\\00\\00")
    (data (i32.const 16) "hello\\0a")
    (func (export "_start")
      (drop (call $renumber (i32.const ${from}) (i32.const ${to})))
      (drop (call $${use} (i32.const ${to}) (i32.const 0) (i32.const 1) (i32.const 8)))
      (call $exit (i32.load (i32.const 8)))))`;
}

/** The text from the first place on where a message of the protocol should begin and does not. */
function outsideOfMessages(output: string): string {
  let rest = new TextEncoder().encode(output);
  for (;;) {
    const [header, length] = /^Content-Length: (\d+)\r\n\r\n/.exec(new TextDecoder().decode(rest)) ?? [];
    if (header === undefined) return new TextDecoder().decode(rest);
    rest = rest.slice(header.length + Number(length));
  }
}

Deno.test("a guest that renumbers its streams does not reach those of the editor", () =>
  inFolder({ "write.wat": moved(1, 0, "write"), "read.wat": moved(0, 2, "read") }, async (folder) => {
    const run = (program: string) =>
      converse(folder, message(1, "launch", { program }) + message(2, "configurationDone"), '"terminated"');
    const { output, status } = await run("write.wat");
    assert.equal(outsideOfMessages(output), "");
    assert.match(output, /"category":"stdout","output":"hello\\n"/);
    assert.equal(status, 6);
    assert.equal((await run("read.wat")).status, 0);
  }));

Deno.test("a source that is a device is not read", () =>
  inFolder({}, (folder) => {
    const shapes = readFileSync(new URL("../debug/programs/shapes5.wasm", import.meta.url), "latin1");
    const evil = shapes.replace("/src\0shapes.c\0", "/dev\0zero\0\0\0\0\0");
    assert.notEqual(evil, shapes);
    writeFileSync(join(folder, "evil.wasm"), evil, "latin1");
    const output = session(folder, ["--invoke", "run", "evil.wasm", "4"], ["break run", "run", "list", "quit"]);
    assert.match(output, /the source \/dev\/zero is not on this machine/);
    assert.match(output, /status 0$/);
  }));

Deno.test("calls of a function with a very long name do not make a text that is too long", () =>
  inFolder({}, (folder) => {
    writeFileSync(join(folder, "long.wasm"), longNameModule(5000));
    const output = session(folder, ["--invoke", "f", "long.wasm"], ["break f", "run", "delete", "continue"]);
    assert.match(output, /Breakpoint 1 at long\.wasm\.wat:\d+\n/);
    assert.match(output, /ended with status 0/);
    assert.match(output, /status 0$/);
  }));

Deno.test("globals take numbers of their type only", () =>
  inFolder({
    "globals.wat": `(module (global $g (mut i32) (i32.const 5)) (global $f (mut f64) (f64.const 1))
      (func (export "f") (result i32) (global.get $g)))`,
  }, (folder) => {
    const commands = ["break f", "run", "set g = abc", "set g = 9999999999", "set f = ", "set f = 2.5", "globals"];
    const output = session(folder, ["globals.wat"], [...commands, "set g = 0x10", "continue"]);
    assert.match(output, /"abc" is not an integer/);
    assert.match(output, /9999999999 is outside of the range of i32/);
    assert.match(output, /g: mut i32 = 5\n {2}f: mut f64 = 2\.5\n/);
    assert.match(output, /\n16\n/);
  }));

Deno.test("input that is not the protocol ends the adapter with a sentence", () =>
  inFolder({}, async (folder) => {
    for (const input of ["Content-Length: x\r\n\r\n{}", "Content-Length: 4\r\n\r\nnull", "x".repeat(5000)]) {
      const { output } = await converse(folder, input, "waft: ");
      assert.match(output, /"category":"stderr","output":"waft: /);
    }
  }));

const LINES = `(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\\10\\00\\00\\00\\05\\00\\00\\00")
  (data (i32.const 16) "line\\0a")
  (func (export "_start") (local $k i32) (local $found i32)
    (loop $l
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
      (local.set $found (call $prestat (i32.const 3) (i32.const 32)))
      (br_if $l (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 3))))))`;

Deno.test("the prompt goes back and forward, and the program prints each line once", () =>
  inFolder({ "lines.wat": LINES }, (folder) => {
    const commands = [
      "reverse-next",
      "break lines.wat:10",
      "run",
      "rc",
      "continue",
      "continue",
      "rc",
      "print k",
      "rsi",
    ];
    const more = ["rn", "print k", "delete", "continue", "rc"];
    const output = session(folder, ["--dir", ".::/", "lines.wat"], [...commands, ...more]);
    assert.equal(output.match(/^line$/gm)?.length, 3, output);
    assert.match(output, /\(waft\) reverse-next\nThe program has not started/);
    assert.match(output, /\(waft\) rc\n#0 _start at lines\.wat:8:\d+\n[^]*\(waft\) rc\n#0 _start at lines\.wat:10/);
    const back =
      /\(waft\) print k\n0\n\(waft\) rsi\n#0 _start at lines\.wat:9:8\n.*\n\(waft\) rn\n#0 _start at lines\.wat:9:27\n/;
    assert.match(output, back);
    assert.match(output, /The program ended with status 0\.\n\(waft\) rc\nThe program has ended\./);
  }));
