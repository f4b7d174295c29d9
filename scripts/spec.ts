/**
 * Runs the specification suite: `deno task spec [--matrix] [--guard | --explicit] [FILTER…]`, in guard and in explicit bounds mode, with the
 * compiler checking its own work. A filter is part of a file's name, or, as `=NAME`, all of it. `--matrix` runs it again with every optimization that this build obeys forced the other way, one by one, and all
 * of them off. The suite's folder comes from WASM_TESTSUITE, else tests/spec/testsuite. Ends with the counts of the last
 * run; fails when any assertion fails.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { OPTIMIZATION_ROWS, type OptimizationName } from "@waft/engine/optimizations";
import { optionsOfScript, runScript } from "@waft/engine/script/run_script";

const folder = process.env["WASM_TESTSUITE"] ?? "tests/spec/testsuite";
if (!existsSync(folder)) {
  console.log(`The specification suite is not at ${folder}: set WASM_TESTSUITE to its folder.`);
  process.exit(process.env["CI"] === undefined ? 0 : 1);
}
const args = process.argv.slice(2);
const matrix = args.includes("--matrix");
const filters = args.filter((arg) => !arg.startsWith("--"));
const files = readdirSync(folder, { recursive: true }).map(String).filter((name) => name.endsWith(".wast")).sort()
  .filter((name) =>
    filters.length === 0 || filters.some((f) => f.startsWith("=") ? name === f.slice(1) : name.includes(f))
  );
const scripts = files.map((file) => ({ file, text: readFileSync(join(folder, file)) }));
let failures = 0;

type Switches = Partial<Record<OptimizationName, boolean>>;

/** Runs everything once; prints failures and counts. */
async function runAll(
  label: string,
  bounds: "guard" | "explicit",
  optimizations: Switches,
  verify: boolean,
): Promise<void> {
  let passed = 0;
  let failed = 0;
  const skipped = new Map<string, number>();
  for (const { file, text } of scripts) {
    const result = await runScript(text, optionsOfScript(file, { bounds, verify, optimizations }));
    passed += result.passed;
    failed += result.failures.length;
    for (const { line, message } of result.failures) console.log(`${label}: ${file}:${line}: ${message}`);
    for (const [reason, count] of result.skipped) skipped.set(reason, (skipped.get(reason) ?? 0) + count);
  }
  const left = [...skipped.values()].reduce((sum, n) => sum + n, 0);
  const why = left === 0 ? "" : ` (${[...skipped].map(([reason, count]) => `${count} ${reason}`).join(", ")})`;
  console.log(`${label}: ${passed} passed, ${failed} failed, ${left} skipped${why}`);
  if (!matrix) console.log(`${passed} passed, ${failed} failed, ${left} skipped`);
  failures += failed;
}

const modes = (["guard", "explicit"] as const).filter((mode) =>
  !args.includes(mode === "guard" ? "--explicit" : "--guard")
);
for (const bounds of modes) {
  await runAll(bounds, bounds, {}, true);
  if (!matrix) continue;
  const keys = OPTIMIZATION_ROWS.filter((row) => row.state === "on" || row.state === "off");
  for (const { name, state } of keys) {
    await runAll(`${bounds}, ${name} ${state === "on" ? "off" : "on"}`, bounds, { [name]: state !== "on" }, false);
  }
  await runAll(`${bounds}, all off`, bounds, Object.fromEntries(keys.map(({ name }) => [name, false])), false);
  await runAll(`${bounds}, all on`, bounds, Object.fromEntries(keys.map(({ name }) => [name, true])), false);
}
process.exit(failures > 0 ? 1 : 0);
