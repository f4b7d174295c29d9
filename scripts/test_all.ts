/**
 * Runs all tests, and the files of failed ones once more with nothing beside them: `deno run -A scripts/test_all.ts
 * [PATH…]`. In: the tests below the paths. Out: exit status 0 if every test has passed in one of its two runs; those
 * that needed the second are listed, because each of them is a fault of its own.
 *
 * The whole run keeps every processor busy, and some tests start servers, browsers, or other processes. One of them in
 * thousands fails now and then on a slow machine. Whatever fails in more than a few files is broken, and not repeated.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { readTaskLine } from "./task_options.ts";

/** Largest number of files with failures that are repeated. */
const MOST_REPEATED = 5;

const { operands: paths } = readTaskLine({
  name: "run -A scripts/test_all.ts",
  about: "Runs all tests, and the files of failed ones once more with nothing beside them.",
  operands: "[PATH…]",
  options: {},
});

const report = join(mkdtempSync(join(tmpdir(), "waft-tests-")), "report.xml");
let status = runTests(["--parallel", `--junit-path=${report}`], paths);
const failed = status === 0 ? [] : failedSuites();
const files = [...new Set(failed.flatMap(testFilesOf))];
if (failed.length > MOST_REPEATED) console.error(`\n${failed.length} files failed: none is repeated.`);
else if (files.length > 0) {
  console.error(`\nOnce more, with nothing beside them: ${files.join(" ")}\n`);
  status = runTests([], files);
  if (status === 0) console.error(`\nPassed the second time alone, which is a fault to mend: ${failed.join(" ")}`);
}
process.exitCode = status;

function runTests(options: readonly string[], operands: readonly string[]): number {
  const task = ["test", "-A", "--no-check", "--doc", ...options, ...operands];
  return spawnSync(process.execPath, task, { stdio: "inherit" }).status ?? 1;
}

/** The files in which failed tests are registered, as the report names them. */
function failedSuites(): string[] {
  const rows = readFileSync(report, "utf8").matchAll(/<testsuite name="([^"]+)"[^>]* failures="([1-9]\d*)"/g);
  return [...rows].map(([, name]) => name.replace(/#.*/, ""));
}

/** The test files of a file in which tests are registered: itself, or those beside and below it that import it. */
function testFilesOf(suite: string): string[] {
  if (!suite.endsWith(".ts") || suite.endsWith("_test.ts")) return [suite];
  const folder = dirname(suite);
  const users = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith("_test.ts"))
    .map((name) => join(folder, name))
    .filter((path) => readFileSync(path, "utf8").includes(`/${basename(suite)}"`));
  return users.length > 0 ? users : [suite];
}
