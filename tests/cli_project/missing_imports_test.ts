/**
 * `waft run` checks the function, its arguments and the imports before it compiles, and reports all missing imports at
 * once.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assemble } from "../../project/definitions/engine_inspector.ts";
import { type Run, waft } from "./waft.ts";

async function inFolder(
  work: (run: (...args: string[]) => Promise<Run>, home: string) => Promise<void>,
): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "waft-imports-"));
  try {
    await work((...args) => waft(args, home, home), home);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

const SIX = `(module
  (import "env" "abort" (func (param i32 i32 i32 i32)))
  (import "wasi_snapshot_preview1" "fd_writ" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func (param i32 i32 i32 i32) (result i32)))
  (import "wbg" "__wbg_log" (func))
  (import "github.com/acme/kv@1" "get" (func (param i64)))
  (import "wasi_snapshot_preview" "fd_close" (func (param i32) (result i32)))
  (import "env" "memory" (memory 1))
  (func (export "_start"))
  (func (export "late") (drop (call $write (i32.const 1) (i32.const 1) (i32.const 1) (i32.const 1)))))`;

Deno.test("missing imports: all at once, with types, places and hints", () =>
  inFolder(async (run, home) => {
    writeFileSync(join(home, "six.wat"), SIX);
    const { code, err } = await run("run", "six.wat");
    assert.equal(code, 1);
    assert.equal(
      err,
      `waft: six.wat: 6 unknown imports:
    six.wat:2:3: "env" "abort" (func [i32 i32 i32 i32] -> [])
        AssemblyScript: build with --use abort= or with its WASI shim
    six.wat:3:3: "wasi_snapshot_preview1" "fd_writ" (func [i32 i32 i32 i32] -> [i32])
        did you mean fd_write?
    six.wat:5:3: "wbg" "__wbg_log" (func [] -> [])
        wasm-bindgen: made for JavaScript; build for wasm32-wasip1 instead
    six.wat:6:3: "github.com/acme/kv@1" "get" (func [i64] -> [])
        a plugin's contract: add a plugin that provides it (\`waft add <plugin>\`)
    six.wat:7:3: "wasi_snapshot_preview" "fd_close" (func [i32] -> [i32])
        did you mean the namespace wasi_snapshot_preview1?
    six.wat:8:3: "env" "memory" (memory 1 pages)
`,
    );
    writeFileSync(join(home, "six.wasm"), assemble(SIX));
    const binary = await run("run", "six.wasm");
    assert.match(binary.err, /^waft: six\.wasm: 6 unknown imports:\n {4}"env" "abort" \(func/);
    // Functions can trap when they are called; a memory cannot.
    assert.match((await run("run", "--unknown-imports", "trap", "six.wat")).err, /1 unknown import:\n.*"env" "memory"/);
    assert.equal((await run("run", "--unknown-imports", "ignore", "six.wat")).code, 2);
    writeFileSync(join(home, "five.wat"), SIX.replace(/\n.*memory 1.*\n/, "\n"));
    for (let again = 0; again < 2; again++) {
      assert.equal((await run("run", "--unknown-imports", "trap", "five.wat")).code, 0);
      const called = await run("run", "--unknown-imports", "trap", "--invoke", "late", "five.wat");
      assert.match(called.err, /trap: the unknown import "wasi_snapshot_preview1" "fd_writ" was called/);
      assert.equal(called.code, 134);
    }
  }));

Deno.test("before compiling: function, arguments and imports of a module whose bodies are not valid", () =>
  inFolder(async (run, home) => {
    const invalid = `(func (export "f") (param i32) (result i32) (i64.const 1))`;
    writeFileSync(join(home, "plain.wat"), `(module ${invalid})`);
    writeFileSync(join(home, "needs.wat"), `(module (import "a" "b" (func)) ${invalid})`);
    const rows: readonly (readonly [string[], RegExp])[] = [
      [["--invoke", "g", "plain.wat"], /exports no function "g"/],
      [["plain.wat"], /"f" takes 1 argument, not 0/],
      [["plain.wat", "x"], /"x" is not an i32/],
      [["needs.wat", "1"], /1 unknown import:/],
      [["plain.wat", "1"], /^waft: plain\.wat:1:[0-9]+: /],
    ];
    for (const [args, message] of rows) assert.match((await run("run", ...args)).err, message, args.join(" "));
  }));
