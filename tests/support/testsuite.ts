/**
 * Where the WebAssembly specification's test suite is: the folder that the environment variable WASM_TESTSUITE names, else
 * tests/spec/testsuite. A test that needs it is ignored, saying so, when it is not there.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** The suite's folder; it need not exist. */
export const TESTSUITE: string = process.env.WASM_TESTSUITE ??
  fileURLToPath(new URL("../spec/testsuite", import.meta.url));

/** Is the suite there? */
export const HAS_TESTSUITE: boolean = existsSync(join(TESTSUITE, "i32.wast"));

/** What to put after a test's name. */
export const NEEDS_TESTSUITE: string = HAS_TESTSUITE ? "" : " (needs the spec suite: set WASM_TESTSUITE)";

/** Paths of all scripts of the suite, sorted. */
export function suiteScripts(): string[] {
  return readdirSync(TESTSUITE, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".wast"))
    .sort()
    .map((path) => join(TESTSUITE, path));
}
