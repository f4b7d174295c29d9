/**
 * One thread's share of a compilation. In: the schedule, a compiler of single functions, an output. Out: the code of
 * all functions that this thread took, in its output, and the statistics of compiling them.
 */
import type { Statistics } from "../base/statistics.ts";
import { CalleeUnknown } from "../codegen/callee_unknown.ts";
import { MachineCode } from "../codegen/machine_code.ts";
import type { CodegenContext, Target } from "../codegen/target.ts";
import { functionCodeWords, writeFunctionCode } from "../codegen/function_code.ts";
import type { Output } from "./output.ts";
import { LATER, NONE, type Schedule } from "./schedule.ts";

/**
 * Milliseconds that a thread waits for a function before it checks for other work; less when it has functions that it
 * could not compile yet.
 */
const PATIENCE_MS = 200;
const RETRY_MS = 1;

/**
 * Compiles defined function `k` into `code`; returns the words that go with it. Throws CalleeUnknown when others come
 * first.
 */
type BodyCompiler = (code: MachineCode, k: number) => ArrayLike<number>;

/** Code for single functions, with the schedule's facts about other functions and the offsets of the image's stubs. */
export function shareCode(schedule: Schedule, target: Target, context: CodegenContext): MachineCode {
  const code = new MachineCode(schedule.count, context.signatures.length);
  target.emitStubs(context, code);
  code.rank = schedule.rank;
  code.writtenGeneral = schedule.writtenGeneral;
  code.writtenVector = schedule.writtenVector;
  code.writtenKnown = schedule.writtenKnown;
  return code;
}

/**
 * Compiles functions until none is left or the compilation has failed. `statistics` counts applications of
 * optimizations; those of a discarded attempt, for a function that had to wait, are not counted. `waiting` is called
 * now and then while other threads work. Passes on errors of compiling.
 */
export function compileShare(
  schedule: Schedule,
  thread: number,
  output: Output,
  code: MachineCode,
  compile: BodyCompiler,
  statistics: Statistics,
  waiting: () => void = () => {},
): void {
  /**
   * Functions that this thread could not compile yet, and the callee that each waits for: an inlined function calls it.
   */
  let early: { k: number; callee: number }[] = [];
  const attempt = (k: number) => {
    const before = statistics.snapshot();
    try {
      code.clear();
      const own = compile(code, k);
      const words = functionCodeWords(code, own);
      const at = output.take(words);
      writeFunctionCode(code, k, own, output.words, at);
      schedule.finish(k, thread, at);
    } catch (error) {
      if (!(error instanceof CalleeUnknown)) throw error;
      statistics.restore(before);
      early.push({ k, callee: error.callee });
    }
  };
  for (;;) {
    const k = schedule.take(early.length === 0 ? PATIENCE_MS : RETRY_MS);
    if (k >= 0) attempt(k);
    else waiting();
    if (schedule.failed || (k === NONE && early.length === 0)) return;
    if (k !== NONE && k !== LATER && early.length === 0) continue;
    const ready = early.filter(({ callee }) => Atomics.load(schedule.writtenKnown, callee) !== 0);
    if (ready.length === 0) {
      if (k === NONE) schedule.pause(RETRY_MS);
      continue;
    }
    early = early.filter((entry) => !ready.includes(entry));
    for (const entry of ready) attempt(entry.k);
  }
}
