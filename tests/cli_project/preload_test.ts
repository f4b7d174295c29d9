/** `waft run --preload`: modules whose exports a program imports. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waft } from "./waft.ts";

const FILES: Readonly<Record<string, string>> = {
  // A reactor with WASI, which counts its initialization.
  "store.wat": `(module
    (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
    (memory (export "memory") 1)
    (global $count (mut i32) (i32.const 0))
    (func (export "_initialize") (global.set $count (i32.const 40)))
    (func (export "next") (result i32)
      (drop (call $yield))
      (global.set $count (i32.add (global.get $count) (i32.const 1)))
      (global.get $count)))`,
  "twice.wat": `(module
    (import "store" "next" (func $next (result i32)))
    (func (export "twice") (result i32) (drop (call $next)) (call $next)))`,
  "main.wat": `(module
    (import "store" "memory" (memory 1))
    (import "twice" "twice" (func $twice (result i32)))
    (func (export "main") (result i32) (i32.store (i32.const 0) (call $twice)) (i32.load (i32.const 0))))`,
  "trap.wat": `(module (func (export "_initialize") unreachable))`,
  "other.wat": `(module (func (export "twice") (param i32)))`,
  "program.wat": `(module (func (export "_start")))`,
  "threads.wat": `(module (import "wasi" "thread-spawn" (func (param i32) (result i32))) (func (export "_start")))`,
  "component.wat": `(component)`,
};

Deno.test("run --preload: modules are instantiated in order, and share their exports with the program", async () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-preload-"));
  try {
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
    const run = (...args: string[]) => waft(["run", ...args], folder, folder);
    const store = ["--preload", "store=store.wat"], twice = ["--preload", "twice=twice.wat"];
    for (let k = 0; k < 2; k++) {
      assert.deepEqual(await run(...store, ...twice, "main.wat"), { code: 0, out: "42\n", err: "" });
    }
    const cases: [string[], number, RegExp][] = [
      [["main.wat"], 1, /2 unknown imports/],
      [[...store, "main.wat"], 1, /1 unknown import/],
      [[...twice, ...store, "main.wat"], 1, /twice\.wat: .*"store"/],
      [[...store, "--preload", "twice=other.wat", "main.wat"], 1, /main\.wat: .*"twice"/],
      [["--preload", "store=missing.wat", "main.wat"], 1, /./],
      [["--preload", "store", "main.wat"], 2, /--preload takes NAME=FILE, not "store"/],
      [[...store, ...store, ...twice, "main.wat"], 2, /--preload: the name "store" is taken/],
      [
        ["--preload", "wasi_snapshot_preview1=store.wat", "program.wat"],
        2,
        /the name "wasi_snapshot_preview1" is taken/,
      ],
      [["--preload", "a=program.wat", "program.wat"], 1, /program\.wat: a program \("_start"\)/],
      [["--preload", "a=trap.wat", "program.wat"], 134, /trap\.wat/],
      [["--preload", "a=component.wat", "program.wat"], 1, /component\.wat/],
      [[...store, "component.wat"], 2, /--preload is for modules/],
      [[...store, "threads.wat"], 1, /--preload is for programs without threads/],
      [
        [...store, "--record", "log", "program.wat"],
        2,
        /--preload is for programs without plugins that are not recorded/,
      ],
    ];
    for (const [args, code, message] of cases) {
      const { code: status, err } = await run(...args);
      assert.equal(status, code, `${args.join(" ")}: ${err}`);
      assert.match(err, message);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
