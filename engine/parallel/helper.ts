/**
 * A helper thread: compiles functions of a module for another thread. In: a job, which is plain data and shared memory.
 * Out: code of functions in the job's output. Types, layout and alias classes are recomputed from the same bytes, so
 * that they are equal.
 *
 * Invariant: an error here fails the compilation as a whole; the requesting thread then compiles alone, and reports the
 * error of the module.
 */
import { decodeModulePrefix } from "../binary/decode.ts";
import type { Target } from "../codegen/target.ts";
import { type CompileOptions, compilerState, withBodyCompiler } from "../compile/compile.ts";
import type { Summaries } from "../translate/summaries.ts";
import { validateModule } from "../validate/module.ts";
import type { DataSegment, Module } from "../wasm/module.ts";
import { Output } from "./output.ts";
import { Schedule, STATE } from "./schedule.ts";
import { compileShare, shareCode } from "./share.ts";

/** A request to a helper. */
export interface CompileJob {
  /**
   * The module up to the end of its code section. A buffer, because Deno serializes a view of shared memory byte by
   * byte.
   */
  binary: SharedArrayBuffer;
  /** The number of data segments; their section follows and is not sent. */
  dataCount: number;
  target: Target["name"];
  options: Omit<CompileOptions, "target" | "cpu" | "share" | "form" | "note">;
  cpu: readonly string[];
  summaries: Summaries;
  schedule: SharedArrayBuffer;
  threads: number;
  edges: number;
  /** The index of this thread. */
  thread: number;
  output: SharedArrayBuffer;
}

const NO_SEGMENT: DataSegment = { bytes: new Uint8Array(0), mode: { kind: "passive" }, offset: 0 };

/** End of the code section of `module` in its bytes; 0 if there is none. */
export function codeEnd({ funcs, bytes }: Module): number {
  const last = funcs.at(-1)?.body.bytes;
  return last === undefined ? 0 : last.byteOffset - bytes.byteOffset + last.length;
}

/** Performs a share of the job, unless the requesting thread has finished without this one. */
export function helpCompile(job: CompileJob, target: Target): void {
  const { thread } = job;
  const schedule = new Schedule(job.schedule, job.summaries.calleesFirst.length, job.threads, job.edges);
  if (!schedule.change(thread, STATE.IDLE, STATE.WORKING)) return;
  try {
    const options: CompileOptions = { ...job.options, target, cpu: new Set(job.cpu) };
    const module = decodeModulePrefix(new Uint8Array(job.binary));
    const valid = validateModule(module, options.features, { bodies: false });
    // Bodies depend on the number of data segments only.
    Object.assign(valid, { datas: new Array(job.dataCount).fill(NO_SEGMENT) });
    const { env, context } = compilerState(valid, options, job.summaries);
    const output = new Output(job.output);
    const code = shareCode(schedule, target, context);
    withBodyCompiler(
      { env, context, options },
      (compile) => compileShare(schedule, thread, output, code, compile, env.statistics),
    );
    schedule.counted[thread] = writeStatistics(output, env.statistics.snapshot());
  } catch {
    schedule.fail();
  }
  schedule.change(thread, STATE.WORKING, STATE.DONE);
}

function writeStatistics(output: Output, statistics: Readonly<Record<string, number>>): number {
  const text = new TextEncoder().encode(JSON.stringify(statistics));
  const at = output.take(1 + Math.ceil(text.length / 4));
  output.words[at] = text.length;
  new Uint8Array(output.buffer, (at + 1) * 4, text.length).set(text);
  return at;
}

/** The statistics of the helper of an output, at word `at`. */
export function readStatistics({ buffer, words }: Output, at: number): Record<string, number> {
  const text = new Uint8Array(buffer, (at + 1) * 4, words[at]).slice(); // not every TextDecoder accepts shared memory
  return JSON.parse(new TextDecoder().decode(text));
}
