/** The option `explain`: one report per compilation, which changes no code. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { type CompilationReport, type EngineOptions, NewEngine } from "@waft/engine";
import { CHILD_TIMEOUT, hostCommand } from "../support/host_arguments.ts";

const TEXT = `(module $m
  (import "m" "f" (func (param i32)))
  (func $double (param i32) (result i32) (i32.add (local.get 0) (local.get 0)))
  (func (export "quadruple") (param i32) (result i32) (call $double (call $double (local.get 0)))))`;

const HAS_BASELINE = process.arch === "x64";

function reportsOf(options: EngineOptions, calls = 0): CompilationReport[] {
  const reports: CompilationReport[] = [];
  const engine = NewEngine({ ...options, explain: (report) => reports.push(report) });
  const binary = new Uint8Array(engine.parse(TEXT).bytes);
  const module = engine.compile(binary);
  const instance = module.instantiate({}, { m: { f: () => {} } });
  for (let k = 0; k < calls; k++) assert.equal(instance.call({}, "quadruple", k), 4 * k);
  return reports;
}

Deno.test("a report names the compiler, the size and the time of every function", () => {
  const [report, ...more] = reportsOf({ tier: "optimizing" });
  assert.equal(more.length, 0);
  const { tier, kernel, origin, ms, codeBytes, functions } = report;
  assert.deepEqual([tier, kernel, origin], ["optimizing", undefined, "compile"]);
  assert.deepEqual(functions.map(({ index, name, tier }) => [index, name, tier]), [
    [1, "double", "optimizing"],
    [2, "quadruple", "optimizing"],
  ]);
  assert.ok(functions.every(({ bodyBytes, codeBytes, ms }) => bodyBytes > 0 && codeBytes > 0 && ms !== undefined));
  assert.ok(codeBytes > functions.reduce((sum, each) => sum + each.codeBytes, 0), "and stubs");
  assert.ok(ms >= functions.reduce((sum, each) => sum + (each.ms ?? 0), 0));
});

Deno.test({
  name: "with tier auto there is a report of each compiler",
  ignore: !HAS_BASELINE,
  fn: () => {
    const reports = reportsOf({ tier: "auto", tierUpCalls: 3 }, 10);
    assert.deepEqual(reports.map(({ tier, kernel }) => [tier, kernel !== undefined]), [
      ["baseline", true],
      ["optimizing", false],
    ]);
    assert.ok(reports[0].functions.every(({ tier, ms }) => tier === "baseline" && ms !== undefined));
    assert.ok(reports[1].functions.every(({ tier, ms }) => tier === "optimizing" && ms !== undefined));
  },
});

Deno.test("a module from the cache is reported as such; reports change no code", () => {
  const directory = mkdtempSync(join(tmpdir(), "waft-explain-"));
  try {
    const options = { tier: "optimizing", cache: { directory } } as const;
    assert.deepEqual([...reportsOf(options), ...reportsOf(options)].map(({ origin }) => origin), ["compile", "cache"]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  for (const tier of ["baseline", "optimizing"] as const) {
    const codes = [NewEngine({ tier }), NewEngine({ tier, explain: () => {} })].map((engine) => {
      const { image } = engine.compile(TEXT).instantiate({}, { m: { f: () => {} } }).internal.module;
      return Array.from(image.tables.functionEnd);
    });
    assert.deepEqual(codes[0], codes[1]);
  }
});

/** The compilations up to the first result of a module, in two processes that share a cache. */
function tiersOfTwoRuns(padding: number): string[] {
  const directory = mkdtempSync(join(tmpdir(), "waft-explain-"));
  try {
    const program = fileURLToPath(new URL("./second_run_program.ts", import.meta.url));
    const [command, first] = hostCommand(program);
    return [1, 2].map(() => {
      const options = { encoding: "utf8", timeout: CHILD_TIMEOUT } as const;
      return execFileSync(command, [...first, directory, String(padding)], options).trim();
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

Deno.test({
  name: "the second run of a small module compiles optimized code at once, that of a big one does not",
  ignore: !HAS_BASELINE,
  fn: () => {
    assert.deepEqual(tiersOfTwoRuns(10), ["baseline compile", "optimizing compile"]);
    assert.deepEqual(tiersOfTwoRuns(1 << 20), ["baseline compile", "baseline compile"]);
  },
});

Deno.test("the option progress counts the functions that the optimizing compiler has compiled", () => {
  const module = `(module ${"(func (result i32) (i32.const 1))".repeat(40)})`;
  for (const parallel of [1, 2]) {
    const seen: (readonly [number, number])[] = [];
    NewEngine({ tier: "optimizing", parallel, progress: (done, total) => seen.push([done, total]) }).compile(module);
    assert.ok(seen.length > 0 && seen.every(([done, total]) => done >= 1 && done <= 40 && total === 40), String(seen));
    assert.deepEqual(seen.map(([done]) => done), seen.map(([done]) => done).toSorted((a, b) => a - b));
    assert.equal(seen.at(-1)![0], 40);
  }
  let calls = 0;
  NewEngine({ tier: "baseline", progress: () => calls++ }).compile(module);
  assert.equal(calls, 0, "the baseline tier is done at once");
});
