/**
 * The perf map: one line per function; unsafe files are refused.
 */
import assert from "node:assert/strict";
import { linkSync, lstatSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { NewEngine } from "../../mod.ts";
import { addToPerfMap } from "./perf_map.ts";

const TEXT = `(module $shop (import "a" "b" (func)) (func $first) (func (export "two\\nlines") (param i32)) (func))`;

Deno.test("each function has a line with its address, size and name", () => {
  const path = `/tmp/perf-${process.pid}.map`;
  rmSync(path, { force: true });
  try {
    const module = NewEngine({ perfMap: true }).compile(TEXT);
    const lines = readFileSync(path, "utf8").trimEnd().split("\n").map((line) => line.split(" "));
    assert.deepEqual(lines.map(([, , name]) => name), ["wasm:shop:first", "wasm:shop:two_lines", "wasm:shop:func[3]"]);
    const { compiled } = { compiled: module.instantiate({}, { a: { b: () => {} } }).internal.module };
    const { base, size } = compiled.image;
    for (const [start, bytes] of lines) {
      assert(parseInt(start!, 16) >= base && parseInt(start!, 16) + parseInt(bytes!, 16) <= base + size);
      assert(parseInt(bytes!, 16) > 0);
    }
    assert.equal(lstatSync(path).mode & 0o777, 0o600);
    NewEngine({ perfMap: true }).load(NewEngine().compile(TEXT).serialize());
    assert.equal(readFileSync(path, "utf8").trimEnd().split("\n").length, 6, "added to");
  } finally {
    rmSync(path, { force: true });
  }
});

Deno.test("symbolic and hard links are refused", () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-perf-"));
  try {
    writeFileSync(join(folder, "target"), "");
    symlinkSync(join(folder, "target"), join(folder, "symbolic"));
    linkSync(join(folder, "target"), join(folder, "hard"));
    const { module } = NewEngine().compile("(module (func))").instantiate().internal;
    for (const name of ["symbolic", "hard"]) assert.throws(() => addToPerfMap(module, join(folder, name)), name);
    assert.equal(readFileSync(join(folder, "target"), "utf8"), "");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
