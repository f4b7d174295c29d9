/**
 * `waft run` of plugins of Extism: modules and manifests. In: a plugin in text form. Checked: input and output, errors
 * of the plugin, limits, and that a manifest grants nothing that the command line does not.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NewEngine } from "../../engine/mod.ts";
import { type Run, waft } from "./waft.ts";

const PLUGIN = `(module
  (import "extism:host/env" "input_offset" (func $input (result i64)))
  (import "extism:host/env" "input_length" (func $length (result i64)))
  (import "extism:host/env" "output_set" (func $output (param i64 i64)))
  (import "extism:host/env" "error_set" (func $error (param i64)))
  (import "extism:host/env" "log_info" (func $log (param i64)))
  (import "extism:host/env" "config_get" (func $config (param i64) (result i64)))
  (import "extism:host/env" "length" (func $size (param i64) (result i64)))
  (memory (export "memory") 1)
  (func (export "echo") (result i32) (call $log (call $input)) (call $output (call $input) (call $length)) (i32.const 0))
  (func (export "config") (result i32) (local $at i64)
    (local.set $at (call $config (call $input)))
    (call $output (local.get $at) (call $size (local.get $at))) (i32.const 0))
  (func (export "grow") (result i32)
    (if (i32.eq (memory.grow (i32.const 20)) (i32.const -1)) (then (call $error (call $input)) (return (i32.const 1))))
    (i32.const 0))
  (func (export "fail") (result i32) (call $error (call $input)) (i32.const 1))
  (func (export "spin") (loop (br 0))))`;

async function inFolder(
  work: (run: (...args: string[]) => Promise<Run>, home: string) => Promise<void>,
): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "waft-extism-"));
  try {
    writeFileSync(join(home, "plugin.wat"), PLUGIN);
    writeFileSync(join(home, "plugin.wasm"), NewEngine().parse(PLUGIN).bytes);
    await work((...args) => waft(args, home, home), home);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

Deno.test("a plugin gets its input, and its output is printed as it is", () =>
  inFolder(async (run) => {
    // The second run finds the module in the cache.
    for (const file of ["plugin.wat", "plugin.wasm", "plugin.wasm"]) {
      const { code, out, err } = await run("run", "--invoke", "echo", file, "hello");
      assert.deepEqual([code, out, err], [0, "hello", "info: hello\n"], file);
    }
    assert.deepEqual((await run("run", "--invoke", "echo", "plugin.wat")).out, "", "standard input is empty");
  }));

Deno.test("errors of a plugin, limits, and wrong words are reported", () =>
  inFolder(async (run) => {
    const failed = await run("run", "--invoke", "fail", "plugin.wat", "oops");
    assert.deepEqual([failed.code, failed.err], [1, "waft: plugin.wat: The plugin reports an error: oops\n"]);
    const spins = await run("run", "--timeout", "50", "--invoke", "spin", "plugin.wat", "x");
    assert.equal(spins.code, 134);
    assert.match(spins.err, /^waft: plugin\.wat: trap: interrupted \(--timeout 50 ms\)/);
    const full = await run("run", "--max-memory", "10", "--invoke", "grow", "plugin.wat", "full");
    assert.match(full.err, /reports an error: full/);
    const many = await run("run", "--invoke", "echo", "plugin.wat", "a", "b");
    assert.deepEqual([many.code, many.err], [2, "waft: a plugin of Extism takes one input, not 2 arguments\n"]);
    const unnamed = await run("run", "plugin.wat", "a");
    assert.equal(unnamed.code, 2);
    assert.match(
      unnamed.err,
      /choose a function of the plugin plugin\.wat with --invoke NAME before the file:\n {4}echo\n/,
    );
    assert.match(
      (await run("run", "--invoke", "none", "plugin.wat", "a")).err,
      /exports no function "none"; it exports:\n/,
    );
    assert.match((await run("run", "--fuel", "5", "plugin.wat")).err, /--fuel is not for plugins of Extism/);
  }));

Deno.test("a manifest has configuration and limits, and gets only what the command line grants", () =>
  inFolder(async (run, home) => {
    const manifest = (fields: object): void =>
      writeFileSync(join(home, "m.json"), JSON.stringify({ wasm: [{ path: "plugin.wasm" }], ...fields }, undefined, 2));
    manifest({ config: { key: "value" }, memory: { max_pages: 10 } });
    assert.equal((await run("run", "--invoke", "config", "m.json", "key")).out, "value");
    assert.match((await run("run", "--invoke", "grow", "m.json", "full")).err, /reports an error: full/);
    manifest({ allowed_hosts: ["api.example"], allowedPaths: { "/data": "./data" } });
    const refused = await run("run", "--invoke", "echo", "m.json", "x");
    assert.deepEqual([refused.code, refused.out], [2, ""]);
    assert.match(refused.err, /m\.json asks for more than .* grants: add --net api\.example --dir \.\/data::\/data\n/);
    const granted = await run("run", "--net", "api.example", "--dir", ".::/data", "--invoke", "echo", "m.json", "x");
    assert.deepEqual([granted.code, granted.out], [0, "x"]);
    writeFileSync(join(home, "m.json"), JSON.stringify({ wasm: [{ url: "http://127.0.0.1:1/p.wasm" }] }));
    assert.match((await run("run", "m.json")).err, /add --net 127\.0\.0\.1\n/);
    manifest({ wasm: [{ path: "plugin.wasm", hash: "00" }] });
    assert.match(
      (await run("run", "--invoke", "echo", "m.json", "x")).err,
      /^waft: m\.json: The module has the digest/,
    );
    writeFileSync(join(home, "m.json"), `{"wasm": [`);
    const broken = await run("run", "m.json");
    assert.equal(broken.code, 1);
    assert.match(broken.err, /^waft: m\.json: /);
  }));
