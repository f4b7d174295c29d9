/**
 * Artifact files, as installed packages use them: large code is mapped instead of copied and behaves as compiled; a
 * damaged file is refused.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { ArtifactError, NewEngine } from "@waft/engine";

Deno.test("loadFile() maps the artifact of a large module from its file and refuses a damaged one", () => {
  const directory = mkdtempSync(join(tmpdir(), "waft-artifact-"));
  try {
    // Jump tables produce large code from short text.
    const targets = Array.from({ length: 60_000 }, (_, k) => k % 2).join(" ");
    const text = `(module (memory 1) ${
      Array.from({ length: 5 }, (_, n) =>
        `(func (export "f${n}") (param i32) (result i32)
          (block (block (br_table ${targets} 1 (local.get 0))) (return (i32.const ${n}0))) (i32.const ${n}1))`).join("")
    } (func (export "load") (param i32) (result i32) (i32.load (local.get 0))))`;
    const artifact = NewEngine().compile(text).serialize();
    const path = join(directory, "artifact");
    writeFileSync(path, artifact);
    const module = NewEngine().loadFile(path);
    const instance = module.instantiate();
    assert.deepEqual([0, 1, 59_999].map((k) => instance.call({}, "f3", k)), [30, 31, 31]);
    assert.throws(() => instance.call({}, "load", -1), /out of bounds/);
    if (process.platform === "linux") {
      const lines = readFileSync("/proc/self/maps", "utf8").split("\n").filter((line) => line.includes(path));
      assert(lines.some((line) => line.includes("r-xp")), "the file's pages are executable");
    }
    assert.deepEqual(module.serialize(), artifact);
    artifact[artifact.length >> 1] ^= 1;
    const damaged = join(directory, "damaged");
    writeFileSync(damaged, artifact);
    assert.throws(() => NewEngine().loadFile(damaged), ArtifactError);
    assert.deepEqual([0, 1].map((k) => instance.call({}, "f4", k)), [40, 41]);
    instance.close();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
