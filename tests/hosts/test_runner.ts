/**
 * Runs test files of this tree on a JavaScript runtime without `Deno.test`: `test_runner.js FILE…`. The files are
 * transpiled and use `registerTest` instead of `Deno.test` (scripts/hosts/test_hosts.ts). Out: one line per test, the
 * slowest files, then the counts; status 1 if a test failed or a file registered no test.
 *
 * Each file runs in its own process, as many in parallel as there are processors: objects awaiting collection, mappings
 * and pending collections of one file do not affect the counts of another, and a crash or a hang is attributed to its
 * file. A file that fails runs once more by itself, since tests that measure time may be late on a busy machine; the
 * first failure is shown.
 */
import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { exitProcess } from "@waft/engine/internal/host/process";
import { type TestContext, tests } from "./registered_tests.ts";

/** Precedes the single file that a child process runs. */
const ALONE = "--alone";
/** Time limit of a file. */
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

/** Runs the tests of a file in this process. */
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

/** Runs a file in a child process; returns its counts, its output and its time in seconds. */
function runFile(file: string): Promise<{ counts: Counts; output: string; seconds: number }> {
  const start = performance.now();
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
      const seconds = (performance.now() - start) / 1000;
      const lines = output.trimEnd().split("\n");
      const at = lines.findLastIndex((line) => COUNTS.test(line));
      const [passed, failed, ignored] = COUNTS.exec(lines[at] ?? "")?.slice(1).map(Number) ?? [0, 1, 0];
      if (at >= 0) lines.splice(at, 1);
      const ended = at >= 0 && status === (failed === 0 ? 0 : 1);
      if (!ended) lines.push(`FAILED ${file} ended early, with ${signal ?? `status ${status}`}`);
      resolve({ counts: [passed, ended ? failed : Math.max(1, failed), ignored], output: lines.join("\n"), seconds });
    });
  });
}

/** Runs files in parallel, then retries those that failed; returns the exit status. */
async function runFiles(files: readonly string[]): Promise<number> {
  const total = [0, 0, 0];
  const add = (counts: Counts): void => counts.forEach((count, k) => total[k] += count);
  const again: string[] = [];
  const times: [file: string, seconds: number][] = [];
  const waiting = [...files];
  const runWaiting = async (): Promise<void> => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const { counts, output, seconds } = await runFile(file);
      console.log(output);
      times.push([file, seconds]);
      if (counts[1] === 0) add(counts);
      else again.push(file);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, runWaiting));
  for (const file of again) {
    console.log(`retry ${file}`);
    const { counts, output } = await runFile(file);
    console.log(output);
    add(counts);
  }
  times.sort((a, b) => b[1] - a[1]);
  console.log(times.slice(0, 5).map(([file, seconds]) => `slow: ${file} (${seconds.toFixed(1)} s)`).join("\n"));
  console.log(countsLine(total as unknown as Counts));
  return total[1] === 0 ? 0 : 1;
}

const [first, ...rest] = process.argv.slice(2);
if (first === ALONE) {
  // A test may wait for something that does not keep the process alive, such as the timer of an AbortSignal.
  setInterval(() => {}, 1000);
  const counts = await runAlone(rest[0]);
  console.log(countsLine(counts));
  await exitProcess(counts[1] === 0 ? 0 : 1);
} else await exitProcess(await runFiles(process.argv.slice(2)));
