/**
 * `waft profile`: runs a module or component once with a profiler. In: the inputs of a run. Out: the profile, also if
 * the program traps or ends with a status; the failure is passed on after it. Invariant: the code that runs is that of
 * `waft run` without its cache.
 */
import { NewEngine, type Profile } from "@waft/engine";
import { UsageError } from "../../base/failure.ts";
import { readProgram } from "./program.ts";
import type { RunOptions } from "./run_options.ts";
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
  const program = readProgram(file);
  // Samples are those of one thread.
  if (program.startsThreads) {
    throw new UsageError(`${file} starts threads; a profile has the samples of one thread only`);
  }
  const profiler = await NewEngine(options.engine).profile({
    interval,
    sourceMap: (url) => readSourceMap(file, url),
  });
  try {
    const lines = await program.run(args, options);
    return { lines, profile: profiler.stop() };
  } catch (failure) {
    return { lines: [], failure, profile: profiler.stop() };
  }
}
