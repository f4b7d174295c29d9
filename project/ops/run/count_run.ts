/**
 * `waft profile --counts`: runs a module once in instrumented form. In: the inputs of a run. Out: how often functions
 * were called and loops turned, how many objects were allocated, by how much memories grew, and which host functions
 * were called for how long; also if the program traps or ends with a status. Invariant: the program's results and
 * effects are those of `waft run`; only its time differs.
 */
import { type Memory, TrapError } from "@waft/engine";
import type { RunCounts } from "@waft/engine/counts";
import { HostClock } from "@waft/engine/internal/counts/host_clock";
import { readCounts } from "@waft/engine/internal/counts/run_counts";
import { describeTrap } from "@waft/engine/internal/errors";
import { countModule } from "@waft/engine/internal/instrument/count_module";
import { FileFailure, UsageError } from "../../base/failure.ts";
import { checkImports } from "./missing_imports.ts";
import type { RunOptions } from "./run_options.ts";
import { compileInstrumented, instrumenting } from "../tools/instrumented_module.ts";
import { readModule } from "../tools/read_module.ts";
import { callGuest, inFile, planCall, programArguments, startsThreads, wasiFor, withStubs } from "./run_module.ts";
import { readSourceMap } from "../tools/source_files.ts";

/** The lines that the program's results give, its failure, and the counts. */
interface CountedRun {
  readonly lines: readonly string[];
  readonly failure?: unknown;
  readonly counts: RunCounts;
}

/** Runs `file` and counts. Throws FileFailure and UsageError if it cannot start. */
export async function countFile(file: string, args: readonly string[], options: RunOptions): Promise<CountedRun> {
  const { bytes, text, shape } = readModule(file, options.engine, "counted");
  if (startsThreads(shape)) throw new UsageError(`${file} starts threads; counts are those of one thread only`);
  const plan = planCall(file, shape, args, options.invoke);
  const stubs = checkImports(file, shape, { unknown: options.unknownImports });
  const { limits } = options.engine;
  const counted = instrumenting(file, "counted", () => countModule(bytes, limits?.maxMemoryPages));
  const { maxMemoryPages } = counted;
  const module = compileInstrumented(file, counted.bytes, "counted", {
    ...options.engine,
    ...(maxMemoryPages === undefined ? {} : { limits: { ...limits, maxMemoryPages } }),
  });
  const { wasi, imports } = wasiFor(module, programArguments(file, args), options);
  const clock = new HostClock();
  const { context } = options;
  const instance = inFile(file, () => module.instantiate(context, clock.timed(withStubs(imports, stubs))));
  wasi?.attach(instance);
  const guest = {
    call: (name: string, ...values: unknown[]) => instance.call(context, name, ...values),
    close: () => {},
  };
  const { lines, failure } = await ended(() => callGuest(file, guest, plan));
  const memory = (instance.exports as Record<string, unknown>)[counted.memory] as Memory;
  const counts = readCounts(
    counted.sites,
    memory.bytes,
    { bytes, text, sourceMap: (url) => readSourceMap(file, url) },
    clock.calls(),
  );
  instance.close();
  return { lines, counts, ...(failure === undefined ? {} : { failure: withoutFrames(file, failure) }) };
}

async function ended(run: () => Promise<string[]>): Promise<{ lines: string[]; failure?: unknown }> {
  try {
    return { lines: await run() };
  } catch (failure) {
    return { lines: [], failure };
  }
}

/** The failure of a run; frames of a trap are those of the instrumented module, which no user knows. */
function withoutFrames(file: string, failure: unknown): unknown {
  const cause = failure instanceof FileFailure ? failure.cause : failure;
  return cause instanceof TrapError ? new FileFailure(file, new TrapError(describeTrap(cause))) : failure;
}
