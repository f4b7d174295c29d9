/**
 * Runs test files of this tree on a JavaScript runtime that has no `Deno.test`: `test_runner.js FILE…`. The files have been made JavaScript, and
 * `Deno.test` in them has become `registerTest` (scripts/test_hosts.ts). Out: one line per test, the counts last; status 1 when any failed, also
 * when a file registered nothing, which no test file does on purpose.
 *
 * Each file has a process of its own, as many at a time as there are processors: what one leaves behind (objects nobody has collected yet, mappings,
 * the code of a collection at work) is nothing that another one counts, and one that crashes or hangs is named. A file that fails runs once more by
 * itself, since what measures time can be late on a machine that does other things as well; the first failure is shown.
 */
import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { exitProcess } from "@waft/engine/host/process";
import { type TestContext, tests } from "./registered_tests.ts";

/** Before the one file that a process is to run by itself. */
const ALONE = "--alone";
/** How long a file may take. */
const FILE_MS = 300_000;
/** The last line of a file's output. */
const COUNTS = /^(\d+) passed, (\d+) failed, (\d+) ignored$/;

type Counts = readonly [passed: number, failed: number, ignored: number];

const CONTEXT: TestContext = {
  step: async (_, run) => {
    await run(CONTEXT);
    return true;
  },
};

function countsLine([passed, failed, ignored]: Counts): string {
  return `${passed} passed, ${failed} failed, ${ignored} ignored`;
}

/** Runs what a file registers, in this process. */
async function runAlone(file: string): Promise<Counts> {
  let [passed, failed, ignored] = [0, 0, 0];
  try {
    await import(pathToFileURL(file).href);
  } catch (error) {
    console.log(`FAILED ${file} cannot be loaded\n${error instanceof Error ? error.stack : String(error)}`);
    return [0, 1, 0];
  }
  if (tests.length === 0) {
    console.log(`FAILED ${file} registers no test`);
    failed++;
  }
  for (const { name, ignore, fn } of tests) {
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
  return [passed, failed, ignored];
}

/** Runs a file in a process of its own: its counts, and what it said. */
function runFile(file: string): Promise<{ counts: Counts; output: string }> {
  const child = spawn(process.execPath, [...process.execArgv, fileURLToPath(import.meta.url), ALONE, file], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: FILE_MS,
    killSignal: "SIGKILL",
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => output += text);
  }
  return new Promise((resolve) => {
    child.on("close", (status, signal) => {
      const lines = output.trimEnd().split("\n");
      const at = lines.findLastIndex((line) => COUNTS.test(line));
      const [passed, failed, ignored] = COUNTS.exec(lines[at] ?? "")?.slice(1).map(Number) ?? [0, 1, 0];
      if (at >= 0) lines.splice(at, 1);
      const ended = at >= 0 && status === (failed === 0 ? 0 : 1);
      if (!ended) lines.push(`FAILED ${file} ended early, with ${signal ?? `status ${status}`}`);
      resolve({ counts: [passed!, ended ? failed! : Math.max(1, failed!), ignored!], output: lines.join("\n") });
    });
  });
}

/** Runs files beside each other, then those that failed once more; returns the exit status. */
async function runFiles(files: readonly string[]): Promise<number> {
  const total = [0, 0, 0];
  const add = (counts: Counts): void => counts.forEach((count, k) => total[k]! += count);
  const again: string[] = [];
  const waiting = [...files];
  const runWaiting = async (): Promise<void> => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const { counts, output } = await runFile(file);
      console.log(output);
      if (counts[1] === 0) add(counts);
      else again.push(file);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, runWaiting));
  for (const file of again) {
    console.log(`once more ${file}`);
    const { counts, output } = await runFile(file);
    console.log(output);
    add(counts);
  }
  console.log(countsLine(total as unknown as Counts));
  return total[1] === 0 ? 0 : 1;
}

const [first, ...rest] = process.argv.slice(2);
if (first === ALONE) {
  // A test may wait for what alone keeps no process alive, such as the timer of an AbortSignal.
  setInterval(() => {}, 1000);
  const counts = await runAlone(rest[0]!);
  console.log(countsLine(counts));
  await exitProcess(counts[1] === 0 ? 0 : 1);
} else await exitProcess(await runFiles(process.argv.slice(2)));
