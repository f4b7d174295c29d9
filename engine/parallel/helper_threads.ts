/**
 * Decides when helper threads take part in a compilation: for big modules only, since a thread has to load the compiler
 * first and is slow until V8 has tiered up the compiler's code again, which occupies a second processor. In: the number
 * of threads that an engine may use. Out: the `share` option of compileModule.
 */
import { inWords } from "../base/arguments.ts";
import type { BodyWork, CompileOptions } from "../compile/compile.ts";
import { keepWorkersWhile, processorCount, startWorkers, workerCount } from "../host/workers.ts";
import { compileTogether } from "./compile_together.ts";

/** Fewest bytes of bodies for which it pays to start threads (cold), and to use running ones (warm). */
const COLD_BYTES = 1_000_000;
const WARM_BYTES = 250_000;
/** More threads than this have never been measured. */
const MAX_THREADS = 16;
/** The maximum for `auto`. */
const AUTO_THREADS = 8;

/** The number of threads that an option selects, this one included. Throws RangeError for an invalid option. */
export function threadCount(parallel: number | "auto" = 1): number {
  // JavaScript runtimes optimize a thread's code in background threads: each needs about as much processor time as the
  // thread itself while it is new.
  if (parallel === "auto") return Math.max(1, Math.min(processorCount() >> 1, AUTO_THREADS));
  if (!Number.isSafeInteger(parallel) || parallel < 0) {
    throw new RangeError(`The option parallel must be "auto" or a whole number, not ${inWords(parallel)}`);
  }
  return Math.max(1, Math.min(parallel, MAX_THREADS));
}

let shares: readonly number[] = [];

/**
 * Number of functions that each thread compiled of the module that was shared last, the requesting thread first: for
 * tests and tools.
 */
export function lastShares(): readonly number[] {
  return shares;
}

function pays(bytes: number): boolean {
  return bytes >= (workerCount() > 0 ? WARM_BYTES : COLD_BYTES);
}

function helpers(threads: number): ((message: unknown) => void)[] {
  const suffix = import.meta.url.endsWith(".ts") ? "ts" : "js";
  return startWorkers(new URL(`./worker.${suffix}`, import.meta.url), threads - 1);
}

/** Lets threads begin to load the compiler while a module of `bytes` is read, if they will be used. */
export function prepareHelpers(threads: number, bytes: number): void {
  if (threads > 1 && workerCount() === 0 && bytes >= COLD_BYTES * 1.5) helpers(threads);
}

/** The function that shares the bodies of a module among `threads`; undefined for one. */
export function bodySharing(threads: number): CompileOptions["share"] {
  if (threads <= 1) return undefined;
  return (work: BodyWork) => {
    const { bytes } = work.env.summaries;
    let total = 0;
    for (let k = 0; k < bytes.length; k++) total += bytes[k];
    if (!pays(total)) return "declined";
    const others = helpers(threads);
    if (others.length === 0) return "declined";
    const counts = compileTogether(work, others);
    if (counts !== undefined) shares = counts;
    return counts === undefined ? "failed" : "done";
  };
}

/**
 * Sends a job to a helper thread, which is kept for as long as `isUnderWay` says. Returns false if no thread can be
 * had.
 */
export function sendJob(message: unknown, isUnderWay: () => boolean): boolean {
  const [send] = helpers(2);
  if (send === undefined) return false;
  keepWorkersWhile(isUnderWay);
  send(message);
  return true;
}
