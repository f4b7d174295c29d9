/**
 * `waft profile`: runs a module or component once with a profiler. In: the inputs of a run. Out: the profile, also if
 * the program traps or ends with a status; the failure is passed on after it. Invariant: the code that runs is that of
 * `waft run` without its cache.
 */
import { NewEngine, type Profile } from "@waft/engine";
import { FileFailure, UsageError } from "../../base/failure.ts";
import { readInput } from "../tools/read_input.ts";
import { readShape } from "./module_shape.ts";
import { runFile } from "./run.ts";
import type { RunOptions } from "./run_options.ts";
import { startsThreads } from "./run_module.ts";
import { readSourceMap } from "../tools/source_files.ts";

/** The lines that the program's results give, its failure, and the profile. */
export interface ProfiledRun {
  readonly lines: readonly string[];
  readonly failure?: unknown;
  readonly profile: Profile;
}

/** Runs `file` with samples every `interval` milliseconds. */
export async function profileFile(
  file: string,
  args: readonly string[],
  options: RunOptions,
  interval: number,
): Promise<ProfiledRun> {
  refuseThreads(file);
  const profiler = await NewEngine(options.engine).profile({
    interval,
    sourceMap: (url) => readSourceMap(file, url),
  });
  try {
    const lines = await runFile(file, args, options);
    return { lines, profile: profiler.stop() };
  } catch (failure) {
    return { lines: [], failure, profile: profiler.stop() };
  }
}

/** Samples are those of one thread. */
function refuseThreads(file: string): void {
  if (file === "-") return;
  let bytes: Uint8Array;
  try {
    bytes = readInput(file);
  } catch (error) {
    throw new FileFailure(file, error);
  }
  const shape = readShape(bytes);
  if (shape !== undefined && startsThreads(shape)) {
    throw new UsageError(`${file} starts threads; a profile has the samples of one thread only`);
  }
}
