/**
 * Compilation of a module with helper threads. In: the module's environment, threads that take jobs. Out: the same
 * image as one thread makes, to the byte; or nothing if anything went wrong: then one thread compiles, and reports the
 * error.
 *
 * The requesting thread compiles as well, so helpers that come late, or never, cost only their part of the work. It
 * waits at the end for threads that are still compiling.
 */
import { now } from "../host/clocks.ts";
import { appendFunctionCode } from "../codegen/function_code.ts";
import { type BodyWork, noteInlineSites, withBodyCompiler } from "../compile/compile.ts";
import type { CompileBody } from "../compile/compile_options.ts";
import { codeEnd, type CompileJob, readStatistics } from "./helper.ts";
import { Output } from "./output.ts";
import { makeSchedule, type Schedule, STATE } from "./schedule.ts";
import { compileShare, shareCode } from "./share.ts";

/** Sends a job to a thread. */
export type SendJob = (job: CompileJob) => void;

/** The compilation is given up if no function is finished for this long, in milliseconds: a helper has died. */
const STUCK_MS = 30_000;
/** Milliseconds between two checks for progress while helpers are working. */
const LOOK_MS = 200;

/**
 * Compiles all bodies of `work`. Out: how many functions each thread has compiled, this one first; undefined when it
 * has failed, and the work is to be thrown away.
 */
export function compileTogether(
  work: BodyWork,
  helpers: readonly SendJob[],
  stuckMs: number = STUCK_MS,
): number[] | undefined {
  try {
    return compileAll(work, helpers, stuckMs);
  } catch {
    return undefined;
  }
}

function compileAll(work: BodyWork, helpers: readonly SendJob[], stuckMs: number): number[] | undefined {
  const { valid, env, context, options, code, inlineSites } = work;
  const threads = helpers.length + 1;
  const counts = new Array<number>(threads).fill(0);
  if (valid.funcs.length === 0) return counts;
  const { schedule, edges } = makeSchedule(env.summaries, threads);
  const { target, cpu, share: _, note: __, form: ___, progress, ...rest } = options;
  const end = codeEnd(valid);
  const outputs = Array.from({ length: threads }, () => Output.make(end));
  const binary = new SharedArrayBuffer(end);
  new Uint8Array(binary).set(valid.bytes.subarray(0, end));
  helpers.forEach((send, k) =>
    send({
      binary,
      dataCount: valid.datas.length,
      target: target.name,
      options: rest,
      cpu: [...cpu],
      summaries: env.summaries,
      schedule: schedule.buffer,
      threads,
      edges,
      thread: k + 1,
      output: outputs[k + 1].buffer,
    })
  );
  const watch = failsWhenStuck(schedule, stuckMs);
  try {
    const own = shareCode(schedule, target, context);
    withBodyCompiler(work, (compile) => {
      const compileOne: CompileBody = (code, k) => {
        const words = compile(code, k);
        progress?.(schedule.finished + 1, valid.funcs.length);
        return words;
      };
      compileShare(schedule, 0, outputs[0], own, compileOne, env.statistics, watch);
    });
  } catch (error) {
    schedule.fail();
    throw error;
  }
  const helped = waitForHelpers(schedule, watch);
  if (schedule.failed) return undefined;
  for (const index of env.summaries.calleesFirst) {
    const thread = schedule.thread[index];
    counts[thread]++;
    const { words } = outputs[thread];
    const own = appendFunctionCode(code, target.filler, words, schedule.place[index]);
    noteInlineSites(inlineSites, index, own);
  }
  for (const thread of helped) {
    env.statistics.add(readStatistics(outputs[thread], schedule.counted[thread]));
  }
  return counts;
}

/** Returns a function that fails the compilation if no function has been finished for `stuckMs` when it is called. */
function failsWhenStuck(schedule: Schedule, stuckMs: number): () => void {
  let finished = -1;
  let since = 0;
  return () => {
    if (schedule.finished !== finished) {
      finished = schedule.finished;
      since = now();
    } else if (now() - since > stuckMs) schedule.fail();
  };
}

/** Waits until the helpers that have begun are done, and bars the others; returns the former. */
function waitForHelpers(schedule: Schedule, watch: () => void): number[] {
  const helped: number[] = [];
  for (let thread = 1; thread < schedule.threads; thread++) {
    if (schedule.change(thread, STATE.IDLE, STATE.BARRED)) continue;
    helped.push(thread);
    while (!schedule.failed && schedule.isWorking(thread, LOOK_MS)) watch();
  }
  return helped;
}
