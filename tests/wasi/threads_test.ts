/**
 * Multithreaded programs (wasi-threads): exit behaviour, state shared between threads, and the example through the
 * command.
 */
import { deepEqual, equal, rejects } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { NewEngine, type TrapError } from "../../engine/mod.ts";
import { runThreads } from "../../engine/wasi/threads.ts";
import { CHILD_TIMEOUT, hostCommand } from "../support/host_arguments.ts";

const EXAMPLE = fileURLToPath(new URL("../../examples/wasi/threads.wasm", import.meta.url));
const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

/** A program whose first thread runs `start` and whose other threads run `thread`. */
function program(start: string, thread: string, interruptible = false, memory = '"env" "memory"') {
  return NewEngine({ interruptible }).compile(`(module
    (import ${memory} (memory 1 4 shared))
    (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
    (func $sleep (drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1))))
    (func $boom unreachable)
    (func (export "wasi_thread_start") (param $id i32) (param $argument i32) ${thread})
    (func (export "_start") ${start}))`);
}

const SPAWN = "(drop (call $spawn (i32.const 5)))";

Deno.test("the example counts primes with several threads, and refuses other arguments", () => {
  const run = (...args: string[]) => {
    const [file, first] = hostCommand(CLI);
    const { status, stdout } = spawnSync(file, [...first, "run", EXAMPLE, ...args], { timeout: CHILD_TIMEOUT });
    return { status, out: stdout.toString() };
  };
  deepEqual(run("3", "20000"), { status: 0, out: "2262 primes below 20000, found by 3 threads\n" });
  deepEqual(run("99"), { status: 2, out: "between 1 and 16 threads\n" });
});

Deno.test("the shared memory is imported by any name", async () => {
  const exits = `${SPAWN} (call $sleep)`;
  for (
    const name of ['"foo" "bar"', '"" ""', '"wasi" "memory"', '"wasi_snapshot_preview1" "m"', '"__proto__" "then"']
  ) {
    const module = program(exits, "(call $exit (i32.const 4))", false, name);
    equal(await runThreads(module), 4, name);
  }
});

Deno.test("a limit of threads makes thread-spawn fail", async () => {
  const module = NewEngine().compile(readFileSync(EXAMPLE));
  equal(await runThreads(module, { args: ["threads", "4"], maxThreads: 2 }), 3);
});

Deno.test("the program ends when its first thread returns, whatever the others do", async () => {
  equal(await runThreads(program(SPAWN, "(call $sleep)")), 0);
});

Deno.test("a program may end while its threads are still starting", async () => {
  const many = program(SPAWN.repeat(3), "(call $sleep)");
  equal(await runThreads(many), 0);
});

Deno.test("a deadline ends a program whose threads all wait, and that still starts threads", async () => {
  const many = program(`(loop $more ${SPAWN} (br $more))`, "(call $sleep)", true);
  await rejects(runThreads(many, {}, { deadline: 200 }), { message: "interrupted" });
  const waiting = program(`${SPAWN.repeat(40)} (call $sleep)`, "(call $sleep)", true);
  await rejects(runThreads(waiting, {}, { deadline: 200 }), { message: "interrupted" });
});

Deno.test("proc_exit in any thread ends the program with its status", async () => {
  equal(
    await runThreads(program(`${SPAWN} (call $sleep)`, "(call $exit (i32.add (local.get $argument) (i32.const 2)))")),
    7,
  );
});

Deno.test("a trap in any thread ends the program, with its frames", async () => {
  await rejects(runThreads(program(`${SPAWN} (call $sleep)`, "(call $boom)")), (error) => {
    equal((error as TrapError).name, "TrapError");
    equal((error as TrapError).message, "unreachable");
    equal((error as TrapError).frames[0].funcName, "boom");
    return true;
  });
});

Deno.test("threads have one table of descriptors, and clocks of their own", async () => {
  // The first thread wakes when another has closed descriptor 2; closing it again is badf (8).
  const start = `${SPAWN}
    (if (call $clock (i32.const 1) (i64.const 1) (i32.const 16)) (then unreachable))
    (if (i64.eqz (i64.load (i32.const 16))) (then unreachable))
    (call $sleep)
    (call $exit (call $close (i32.const 2)))`;
  const thread = `(if (call $close (i32.const 2)) (then unreachable))
    (i32.atomic.store (i32.const 0) (i32.const 1))
    (drop (memory.atomic.notify (i32.const 0) (i32.const 1)))`;
  equal(await runThreads(program(start, thread)), 8);
});

Deno.test("a deadline is for all threads together", async () => {
  await rejects(runThreads(program(`${SPAWN} (call $sleep)`, "(loop $l (br $l))", true), {}, { deadline: 1500 }), {
    message: "interrupted",
  });
});

Deno.test("fuel and signals are refused; so is a module that does not import its memory", async () => {
  await rejects(runThreads(program("", ""), {}, { fuel: 5 }), TypeError);
  await rejects(runThreads(NewEngine().compile(`(module (memory 1) (func (export "_start")))`)), /import its memory/);
});
