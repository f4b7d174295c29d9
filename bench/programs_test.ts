/**
 * The benchmark programs are complete (source, module and row), import nothing, and return the same results on waft as
 * on V8.
 */
import { type EngineOptions, NewEngine } from "@waft/engine";
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { programBytes, PROGRAMS } from "./programs.ts";
import { type Call, V8, waftSide } from "./sides.ts";

function names(folder: string, ending: RegExp): string[] {
  const path = fileURLToPath(new URL(folder, import.meta.url));
  return readdirSync(path).filter((name) => ending.test(name)).map((name) => name.replace(/\.\w+$/, "")).sort();
}

Deno.test("every program has a source, a module and a row", () => {
  const rows = PROGRAMS.map(({ name }) => name).sort();
  assert.deepEqual(names("wasm", /\.wasm$/), rows);
  assert.deepEqual(names("programs", /\.(c|cpp|wat|ts)$/), rows);
  assert.equal(new Set(rows).size, rows.length);
});

Deno.test("programs return the same results on waft as on V8, also when called repeatedly", () => {
  const waft = waftSide(NewEngine());
  for (const program of PROGRAMS) {
    const bytes = programBytes(program);
    assert.deepEqual(WebAssembly.Module.imports(new WebAssembly.Module(bytes)), [], program.name);
    const [ours, theirs] = [waft, V8].map((side) => side.compile(bytes).instantiate());
    for (const n of [3, 8, 3]) {
      const answers = [ours, theirs].map(({ exports }) => (exports["run"] as Call)(n));
      assert.ok(Object.is(answers[0], answers[1]), `${program.name}(${n}): ${answers}`);
    }
    ours.close();
  }
});

Deno.test({
  name: "programs return the same results when functions continue in optimized code within their loops",
  ignore: process.arch !== "x64",
  fn() {
    let entered = 0;
    for (const [k, program] of PROGRAMS.entries()) {
      const bytes = programBytes(program);
      const bounds = k % 2 === 0 ? "guard" : "explicit";
      const run = (options: EngineOptions) => {
        const module = NewEngine({ ...options, bounds }).compile(bytes);
        return { module, result: (module.instantiate({}, {}).exports["run"] as Call)(8) };
      };
      const expected = run({}).result;
      for (const tierUpIterations of [0, 3, 37, 500]) {
        const { module, result } = run({ tier: "auto", tierUpIterations });
        assert.ok(
          Object.is(result, expected),
          `${program.name}, after ${tierUpIterations} turns: ${result}, ${expected}`,
        );
        entered += module.loopsEntered;
      }
    }
    assert.ok(entered > PROGRAMS.length, `${entered} frames entered`);
  },
});
