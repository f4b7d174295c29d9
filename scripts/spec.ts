/**
 * Runs the specification suite: `deno task spec [FILTER…]`. The suite's folder comes from WASM_TESTSUITE, else
 * tests/spec/testsuite. Ends with the counts, and fails when an assertion fails or when more is skipped than
 * tests/spec/skipped.txt allows.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { optionsOfScript, runScript } from "../engine/script/run_script.ts";

const folder = process.env["WASM_TESTSUITE"] ?? "tests/spec/testsuite";
if (!existsSync(folder)) {
  console.log(`The specification suite is not at ${folder}: set WASM_TESTSUITE to its folder.`);
  process.exit(process.env["CI"] === undefined ? 0 : 1);
}
const filters = process.argv.slice(2);
const modes = ["guard", "explicit"] as const;
let failures = 0;
for (const bounds of modes) {
  let passed = 0;
  let failed = 0;
  const skipped = new Map<string, number>();
  const files = readdirSync(folder, { recursive: true }).map(String).filter((name) => name.endsWith(".wast")).sort();
  for (const file of files.filter((name) => filters.length === 0 || filters.some((f) => name.includes(f)))) {
    const result = runScript(readFileSync(join(folder, file)), optionsOfScript(file, { bounds, verify: true }));
    passed += result.passed;
    failed += result.failures.length;
    for (const { line, message } of result.failures) console.log(`${file}:${line}: ${message}`);
    for (const [reason, count] of result.skipped) skipped.set(reason, (skipped.get(reason) ?? 0) + count);
  }
  const left = [...skipped.values()].reduce((sum, n) => sum + n, 0);
  console.log(
    `${bounds}: skipped ${[...skipped].map(([reason, count]) => `${count} ${reason}`).join(", ") || "nothing"}`,
  );
  console.log(`${passed} passed, ${failed} failed, ${left} skipped`);
  failures += failed;
}
process.exit(failures > 0 ? 1 : 0);
