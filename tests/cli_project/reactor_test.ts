/**
 * `waft run` of WASI reactors: `_initialize` runs exactly once, before the export, on the full path, from the cache and
 * as an artifact. In: modules as text. Checked: output and status.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Run, waft } from "./waft.ts";

async function inFolder(
  work: (run: (...args: string[]) => Promise<Run>, home: string) => Promise<void>,
): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "waft-reactor-"));
  try {
    await work((...args) => waft(args, home, home), home);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** A library that counts its initializations, and traps in a call before the first. */
const REACTOR = `(module
  (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
  (memory (export "memory") 1)
  (global $count (mut i32) (i32.const 0))
  (func (export "_initialize") (drop (call $yield)) (global.set $count (i32.add (global.get $count) (i32.const 1))))
  (func (export "plus") (param i32 i32) (result i32)
    (if (i32.eqz (global.get $count)) (then unreachable))
    (i32.add (i32.mul (global.get $count) (i32.const 1000)) (i32.add (local.get 0) (local.get 1)))))`;

Deno.test("a reactor is initialized once before its export is called", () =>
  inFolder(async (run, home) => {
    writeFileSync(join(home, "reactor.wat"), REACTOR);
    // The second run takes the module from the cache.
    for (let round = 0; round < 2; round++) {
      const named = await run("run", "--invoke", "plus", "reactor.wat", "2", "3");
      assert.deepEqual([named.code, named.out, named.err], [0, "1005\n", ""]);
    }
    // It is the only function to choose from.
    assert.equal((await run("run", "reactor.wat", "4", "5")).out, "1009\n");
    // As a function of its own it is not called twice.
    const alone = await run("run", "--invoke", "_initialize", "reactor.wat");
    assert.deepEqual([alone.code, alone.out], [0, ""]);
    assert.equal((await run("compile", "reactor.wat", "-o", "reactor.waftbin")).code, 0);
    const loaded = await run("run", "--allow-precompiled", "--invoke", "plus", "reactor.waftbin", "6", "7");
    assert.equal(loaded.out, "1013\n", loaded.err);
  }));

Deno.test("a failing or malformed _initialize ends the run before the export", () =>
  inFolder(async (run, home) => {
    const plus = `(func (export "one") (result i32) (i32.const 1))`;
    writeFileSync(join(home, "traps.wat"), `(module (func $start (export "_initialize") unreachable) ${plus})`);
    const traps = await run("run", "--invoke", "one", "traps.wat");
    assert.deepEqual([traps.code, traps.out], [134, ""]);
    assert.match(traps.err, /^waft: traps\.wat: trap: unreachable/);
    writeFileSync(join(home, "typed.wat"), `(module (func (export "_initialize") (param i32)) ${plus})`);
    const typed = await run("run", "--invoke", "one", "typed.wat");
    assert.deepEqual([typed.code, typed.out], [1, ""]);
    assert.match(typed.err, /^waft: typed\.wat: its export "_initialize" must have no parameters and no results/);
    writeFileSync(
      join(home, "exits.wat"),
      `(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32))) (memory (export "memory") 1)
        (func (export "_initialize") (call $exit (i32.const 9))) ${plus})`,
    );
    assert.deepEqual((await run("run", "--invoke", "one", "exits.wat")).code, 9);
  }));
