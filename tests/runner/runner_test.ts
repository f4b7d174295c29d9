/**
 * Runners: the engine's API in a process of its own, with host functions, limits, WASI, and the confinement by the
 * system.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { LinkError, MalformedError, TrapError } from "../../engine/base/errors.ts";
import { Runner, RunnerError } from "../../engine/runner/mod.ts";
import { hostCommand } from "../support/host_arguments.ts";

const MODULE = `(module $guest
  (import "env" "host" (func $host (param i32) (result i32)))
  (import "env" "start" (global $start i32))
  (memory (export "memory") 40 4000)
  (global $count (mut i32) (global.get $start))
  (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "host") (param i32) (result i32) (call $host (local.get 0)))
  (func (export "next") (result i32)
    (global.set $count (i32.add (global.get $count) (i32.const 1))) (global.get $count))
  (func (export "both") (param i64 f64) (result i64 f64) (local.get 0) (local.get 1))
  (func (export "same") (param externref) (result externref) (local.get 0))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "fill") (param i32) (memory.fill (i32.const 0) (i32.const 7) (i32.shl (local.get 0) (i32.const 16))))
  (func (export "trap") unreachable)
  (func (export "spin") (loop (br 0))))`;

const isLinux = process.platform === "linux";

/** Runs `test` with a runner, which is closed afterwards. */
async function withRunner(test: (runner: Runner) => Promise<void>, options: Parameters<typeof Runner.start>[0] = {}) {
  const runner = await Runner.start(options);
  try {
    await test(runner);
  } finally {
    await runner.close();
  }
}

Deno.test("a runner compiles, instantiates and calls, with host functions of the program", async () => {
  await withRunner(async (runner) => {
    const module = await runner.compile(MODULE);
    assert.deepEqual(module.imports.map(({ name, kind }) => `${kind} ${name}`), ["func host", "global start"]);
    const nested = await module.instantiate({}, { env: { host: (n: number) => n, start: 100 } });
    const failure = new Error("the program's own");
    const host = async (n: number) => {
      if (n === 13) throw failure;
      return n === 1 ? await nested.call({}, "next") : n * 2;
    };
    const instance = await module.instantiate({ resettable: true }, { env: { host, start: 5 } });
    assert.equal(await instance.call({}, "add", 2, 3), 5);
    assert.deepEqual(await instance.call({}, "both", -1n, -0), [-1n, -0]);
    for (const value of ["text", null, true, 2n ** 64n - 1n, NaN, undefined]) {
      assert.deepEqual(await instance.call({}, "same", value), value);
    }
    assert.equal(await instance.call({}, "host", 21), 42);
    assert.equal(await instance.call({}, "host", 1), 101, "a host function calls the runner while the guest waits");
    await assert.rejects(instance.call({}, "host", 13), (error) => error === failure);
    assert.deepEqual([await instance.call({}, "next"), await instance.call({}, "next")], [6, 7]);
    await instance.reset();
    assert.equal(await instance.call({}, "next"), 6);
    const bytes = Uint8Array.from({ length: 2_500_000 }, (_, k) => k * 7);
    await instance.write(1000, bytes);
    assert.deepEqual(await instance.read(1000, bytes.length), bytes);
    await assert.rejects(instance.read(40 * 65536, 1), RangeError);
    await assert.rejects(instance.read(0, 1, "other"), TypeError);
    await assert.rejects(instance.call({}, "same", () => 1), /has a function, which cannot leave its process/);
    await instance.close();
    await assert.rejects(instance.call({}, "add", 1, 2), /the instance has been closed/i);
    await module.close();
    await assert.rejects(module.instantiate({}, { env: { host, start: 1 } }), /the module has been closed/i);
  });
});

Deno.test("errors of a runner have the engine's classes, and limits end calls in it", async () => {
  await withRunner(async (runner) => {
    await assert.rejects(runner.compile("(module (fun))"), MalformedError);
    const module = await runner.compile(MODULE);
    await assert.rejects(module.instantiate({}, { env: { start: 1 } }), LinkError);
    const never = () => new Promise(() => {});
    const instance = await module.instantiate({}, { env: { host: never, start: 1 } });
    const trap = await instance.call({}, "trap").catch((error) => error);
    assert.ok(trap instanceof TrapError);
    assert.deepEqual([trap.code, trap.frames[0].funcName, trap.frames[0].line], ["unreachable", "trap", 14]);
    for (const [name, ...args] of [["spin"], ["host", 1]] as const) {
      const ended = await instance.call({ deadline: 30 }, name, ...args).catch((error) => error);
      assert.ok(ended instanceof TrapError, String(ended));
      assert.deepEqual([ended.code, ended.detail], ["interrupted", "the deadline of 30 ms"]);
    }
    const context = { fuel: 1000 };
    await instance.call(context, "add", 1, 2);
    assert.ok(context.fuel < 1000 && context.fuel > 900, String(context.fuel));
    const out = await instance.call(context, "spin").catch((error) => error);
    assert.ok(out instanceof TrapError, String(out));
    assert.deepEqual([out.code, context.fuel], ["out-of-fuel", 0]);
    assert.equal(await instance.call({ processorTime: 1000 }, "add", 1, 2), 3);
    await assert.rejects(instance.call({ deadlin: 5 } as never, "add", 1, 2), /did you mean "deadline"/);
  }, { engine: { fuel: true } });
});

Deno.test("a runner runs programs of WASI, each with files of its own", async () => {
  const program = `(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (func (export "_start")
      (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 32))
      (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))
      (i32.store (i32.const 4) (i32.load (i32.const 16)))
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
      (call $exit (i32.const 3))))`;
  await withRunner(async (runner) => {
    const module = await runner.compile(program);
    for (const stdin of ["hello", "again"]) {
      const { status, stdout, files } = await module.run({ stdin, files: { "a/b.txt": stdin } });
      assert.deepEqual([status, stdout, new TextDecoder().decode(files["a/b.txt"])], [3, stdin, stdin]);
    }
    const spin = await runner.compile(`(module (memory (export "memory") 1) (func (export "_start") (loop (br 0))))`);
    const { status, trap } = await spin.run({ limits: { deadline: 30 } });
    assert.deepEqual([status, trap?.code], [134, "interrupted"]);
  });
});

Deno.test("a confined runner optimizes code, and compiles with objects, strings and exceptions", async () => {
  await withRunner(async (runner) => {
    const module = await runner.compile(`(module
      (import "env" "pass" (func $pass (param externref) (result externref)))
      (type $pair (struct (field i32) (field (mut i32))))
      (type $list (array (mut i32)))
      (tag $tag (param i32))
      (memory (export "memory") 2) (data (i32.const 131000) "\\07")
      (func (export "objects") (param i32) (result i32) (local $sum i32)
        (loop $next
          (local.set $sum (i32.add (local.get $sum)
            (struct.get $pair 0 (struct.new $pair (i32.const 1) (local.get 0)))))
          (drop (array.new_default $list (i32.const 100)))
          (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get $sum))
      (func (export "throws") (result i32)
        (block $caught (result i32)
          (try_table (catch $tag $caught) (throw $tag (i32.const 5)))
          (i32.const 0)))
      (func (export "pass") (param externref) (result externref) (call $pass (local.get 0))))`);
    const instance = await module.instantiate({ resettable: true }, { env: { pass: (value: unknown) => value } });
    for (let k = 0; k < 5; k++) assert.equal(await instance.call({ deadline: 60_000 }, "objects", 2000), 2000);
    assert.equal(await instance.call({}, "throws"), 5);
    assert.equal(await instance.call({}, "pass", "text"), "text");
    await instance.reset();
    assert.equal((await instance.read(131000, 1))[0], 7);
    // As many calls as move a module up to optimized code in this thread.
    for (let k = 0; k < 100; k++) assert.equal(await instance.call({}, "objects", 10), 10);
  }, { engine: { tierUpCalls: 20 } });
});

Deno.test("code that cannot be interrupted ends with its runner, and other runners go on", async () => {
  await withRunner(async (other) => {
    const runner = await Runner.start({ engine: { interruptible: false } });
    const instance = await (await runner.compile(`(module (func (export "spin") (loop (br 0))))`)).instantiate();
    const spinning = assert.rejects(instance.call({ deadline: 1e6 }, "spin"), RunnerError);
    await runner.close();
    await spinning;
    await assert.rejects(runner.compile("(module)"), /The runner has been closed/);
    assert.equal(runner.isOpen, false);
    assert.equal((await other.compile("(module)")).exports.length, 0);
  });
});

Deno.test("a runner at its limit of memory costs the program nothing", { ignore: !isLinux }, async () => {
  const MiB = 1 << 20;
  await withRunner(async (runner) => {
    if (!runner.measures.includes("memory")) return; // an emulator of processors
    const module = await runner.compile(MODULE);
    const instance = await module.instantiate({}, { env: { host: () => 1, start: 1 } });
    let pages = 40;
    const outcome = await (async () => {
      for (; pages < 4000; pages += 100) {
        if (await instance.call({}, "grow", 100) === -1) return "refused";
        await instance.call({}, "fill", pages + 100);
      }
      return "unlimited";
    })().catch((error) => error instanceof RunnerError ? "ended" : String(error));
    assert.match(outcome, /^(?:refused|ended|.*memory.*)$/i);
  }, { maxBytes: 150 * MiB, engine: { limits: { maxMemoryPages: 4000 } } });
});

Deno.test("a runner ends with its program", { ignore: !isLinux }, async () => {
  const [command, first] = hostCommand(fileURLToPath(new URL("./orphan_program.ts", import.meta.url)));
  const child = spawn(command, first, { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(child.stdout, "data");
  const runner = Number(String(line));
  assert.ok(isAlive(runner), `the runner ${line} spins`);
  child.kill("SIGKILL");
  await once(child, "close");
  while (isAlive(runner)) await new Promise((resolve) => setTimeout(resolve, 5));
});

function isAlive(id: number): boolean {
  try {
    return process.kill(id, 0);
  } catch {
    return false;
  }
}
