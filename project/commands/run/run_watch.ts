/**
 * `waft run --watch`: runs a file again whenever it changes. In: the command line of this process. Out: the output of
 * the runs, each a process with that command line without `--watch`; lines about them on standard error. Invariant: a
 * run that goes on when the file changes is killed before the next one starts, and the last one ends with this process.
 */
import { type ChildProcess, fork } from "node:child_process";
import process from "node:process";
import { exitProcess, programArguments, writeText } from "@waft/engine/internal/host/process";
import { FileFailure, UsageError } from "../../base/failure.ts";
import { fileStatus } from "../../base/file_status.ts";
import { fileState, watchFile } from "../../ops/run/file_watch.ts";

/** The status of a process that SIGINT ends. */
const EXIT_SIGNAL = 130;

/** Runs the file until a signal ends this process. */
export async function runWatched(file: string): Promise<void> {
  if (file === "-") throw new UsageError("--watch needs a file, not standard input");
  if (fileStatus(file)?.kind !== "file") throw new FileFailure(file, new Error("no such file to watch"));
  const words = programArguments();
  const args = words.toSpliced(words.indexOf("--watch"), 1);
  const [, script] = process.argv;
  let child: ChildProcess | undefined;
  const start = () => {
    const run = child = fork(script, args, { stdio: ["inherit", "inherit", "inherit", "ipc"] });
    run.on("exit", (status, signal) => {
      if (child !== run) return;
      child = undefined;
      writeText(2, `waft: ended with ${signal ?? `status ${status}`}; waiting for a change of ${file}\n`);
    });
  };
  const state = fileState(file);
  start();
  watchFile(file, state, () => {
    const old = child;
    child = undefined;
    writeText(2, `waft: ${file} has changed\n`);
    if (old === undefined) return start();
    old.once("exit", start);
    old.kill("SIGKILL");
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      child?.kill(signal);
      exitProcess(EXIT_SIGNAL);
    });
  }
  await new Promise(() => setInterval(() => {}, 2 ** 30));
}
