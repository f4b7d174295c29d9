/** `waft wast` as a process: features of proposals, deterministic code, and the status of skipped assertions. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waft } from "./waft.ts";

/** Runs a script with options; returns the status and the lines, with the file's name left out. */
async function run(script: string, ...options: string[]): Promise<[number, string[]]> {
  const folder = mkdtempSync(join(tmpdir(), "waft-wast-"));
  try {
    const file = join(folder, "script.wast");
    writeFileSync(file, script);
    const { code, out } = await waft(["wast", ...options, file], folder, folder);
    return [code, out.trimEnd().split("\n").map((line) => line.replace(file, "FILE"))];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

Deno.test("a script that needs a proposal says which option switches it on, and is not passed without it", async () => {
  const script = `(module (func (export "f") (result i64 i64)
      (i64.add128 (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4))))
    (assert_return (invoke "f") (i64.const 4) (i64.const 6))`;
  assert.deepEqual(await run(script, "--feature", "wide-arithmetic=off"), [1, [
    "FILE: 1 skipped: wide-arithmetic: --feature wide-arithmetic=on",
    "0 passed, 0 failed, 1 skipped",
  ]]);
  assert.deepEqual(await run(script), [0, ["1 passed, 0 failed, 0 skipped"]]);
});

Deno.test("a script that needs deterministic code says so", async () => {
  // The sign of the NaN that a division makes is that of the processor; the deterministic profile has the positive one.
  const script = `(module (func (export "f") (param f32 f32) (result f32) (f32.div (local.get 0) (local.get 1))))
    (assert_return (invoke "f" (f32.const nan:0x600000) (f32.const 1)) (f32.const nan))`;
  assert.deepEqual(await run(script), [1, [
    "FILE:2: f: result 0 is 0x7fe00000, expected 0x7fc00000",
    "FILE: expects NaNs of deterministic code: --deterministic",
    "0 passed, 1 failed, 0 skipped",
  ]]);
  assert.deepEqual(await run(script, "--deterministic"), [0, ["1 passed, 0 failed, 0 skipped"]]);
});

Deno.test("a wrong i32 is printed without the rest of its cell", async () => {
  const script = `(module (func (export "f") (result i64 i32) (i64.const -1) (i32.const -2)))
    (assert_return (invoke "f") (i64.const -1) (i32.const 2))`;
  assert.deepEqual(await run(script), [1, [
    "FILE:2: f: result 1 is 0xfffffffe, expected 0x2",
    "0 passed, 1 failed, 0 skipped",
  ]]);
});
