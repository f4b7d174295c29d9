/**
 * Runs test files of this tree on a JavaScript runtime that has no `Deno.test`: `run_tests.js FILE…`. The files have been made JavaScript, and
 * `Deno.test` in them has become `registerTest` (scripts/test_hosts.ts). Out: one line per test, the counts last; status 1 when any failed, also
 * when a file registered nothing, which no test file does on purpose.
 */
import process from "node:process";
import { pathToFileURL } from "node:url";
import { type TestContext, tests } from "./registered_tests.ts";

const CONTEXT: TestContext = {
  step: async (_, run) => {
    await run(CONTEXT);
    return true;
  },
};

/** Runs what the files register; returns the exit status. */
async function runFiles(files: readonly string[]): Promise<number> {
  let [passed, failed, ignored] = [0, 0, 0];
  for (const file of files) {
    try {
      await import(pathToFileURL(file).href);
    } catch (error) {
      console.log(`FAILED ${file} cannot be loaded\n${error instanceof Error ? error.stack : String(error)}`);
      failed++;
      continue;
    }
    const registered = tests.splice(0);
    if (registered.length === 0) {
      console.log(`FAILED ${file} registers no test`);
      failed++;
    }
    for (const { name, ignore, fn } of registered) {
      if (ignore === true) {
        ignored++;
        console.log(`ignored ${name}`);
        continue;
      }
      const start = performance.now();
      try {
        await fn(CONTEXT);
        passed++;
        console.log(`ok ${name} (${(performance.now() - start).toFixed(0)} ms)`);
      } catch (error) {
        failed++;
        console.log(`FAILED ${file}: ${name}\n${error instanceof Error ? error.stack : String(error)}`);
      }
    }
  }
  console.log(`${passed} passed, ${failed} failed, ${ignored} ignored`);
  return failed === 0 ? 0 : 1;
}

// A test may wait for what alone keeps no process alive, such as the timer of an AbortSignal.
setInterval(() => {}, 1000);
process.exit(await runFiles(process.argv.slice(2)));
