/**
 * The worker's side of optimize_job.ts: compiles the module of a job and places its code. In: a job. Out: the
 * description in its output, and executable code at the address that the requester allocated.
 */
import { decodeModule } from "../binary/decode.ts";
import type { Target } from "../codegen/target.ts";
import {
  type BatchCode,
  compileBatch,
  type CompiledCode,
  compileLoopEntry,
  compileModule,
  type LoopEntryCode,
  prepareAnalysis,
} from "../compile/compile.ts";
import { publishCode } from "../host/memory/code_arena.ts";
import { currentHost } from "../host/current.ts";
import { resolvePolls } from "../link/image.ts";
import type { Module } from "../wasm/module.ts";
import { changeState, JOB, type OptimizeJob, type OutputText, WORD } from "./optimize_job.ts";
import { Output } from "../parallel/output.ts";
import { prepareCompiledForm } from "../portable/late_form.ts";

await prepareAnalysis();
await prepareCompiledForm(true);

/** Milliseconds after which a worker no longer waits for an address: its requester is gone. */
const PATIENCE_MS = 60_000;

/** Runs a job. Never throws: a failure is a state of the job. */
export function runOptimizeJob(job: OptimizeJob, target: Target): void {
  const output = new Output(job.output);
  const state = new Int32Array(job.output, 0, WORD.COUNT);
  output.take(WORD.COUNT);
  // Its requester may have abandoned it while it waited for its turn.
  if (Atomics.load(state, WORD.STATE) !== JOB.RUNNING) return;
  try {
    const bytes = new Uint8Array(job.binary).slice();
    const code = compileJob(job, decodeModule(bytes), target);
    if (code === undefined) return void changeState(state, JOB.RUNNING, JOB.FAILED);
    writeDescription(output, state, code);
    if (job.isShared) writeCode(output, state, code.bytes);
    if (!changeState(state, JOB.RUNNING, JOB.COMPILED) || job.isShared) return;
    Atomics.wait(state, WORD.STATE, JOB.COMPILED, PATIENCE_MS);
    if (Atomics.load(state, WORD.STATE) !== JOB.ALLOCATED) return;
    const address = (state[WORD.ADDRESS_LOW] >>> 0) + state[WORD.ADDRESS_HIGH] * 0x1_0000_0000;
    publishCode(currentHost(), address, code.bytes, (placed) => {
      resolvePolls(placed, address, code.tables.pollAt, job.pollPage);
    });
    changeState(state, JOB.ALLOCATED, JOB.PLACED);
  } catch {
    Atomics.store(state, WORD.STATE, JOB.FAILED);
  }
  Atomics.notify(state, WORD.STATE);
}

function writeCode(output: Output, state: Int32Array, code: Uint8Array): void {
  const at = output.take(Math.ceil(code.length / 4));
  new Uint8Array(output.buffer, at * 4, code.length).set(code);
  state[WORD.CODE_AT] = at;
}

function compileJob({ options, cpu, loop, batch }: OptimizeJob, module: Module, target: Target) {
  // The requester has compiled the module with the baseline tier, so its bodies are valid.
  const all = { ...options, target, cpu: new Set(cpu), hasValidBodies: true };
  if (batch !== undefined) return compileBatch(module, all, batch.wanted, batch.mostBytes);
  return loop === undefined ? compileModule(module, all) : compileLoopEntry(module, all, loop);
}

function writeDescription(
  output: Output,
  state: Int32Array,
  code: CompiledCode | LoopEntryCode | BatchCode,
): void {
  const columns: { name: string; at: number; length: number; bytes: boolean }[] = [];
  for (const [name, column] of [...Object.entries(code.tables), ["signatureIds", code.signatureIds] as const]) {
    const at = output.take(Math.ceil(column.byteLength / 4));
    new Uint8Array(output.buffer, at * 4, column.byteLength)
      .set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength));
    columns.push({ name, at, length: column.length, bytes: column instanceof Uint8Array });
  }
  const { layout, settings, inlineSites, statistics } = code;
  const text: OutputText = {
    description: { layout, settings },
    inlineSites: [...inlineSites],
    statistics,
    ...("entry" in code ? { entry: code.entry } : {}),
    ...("jumps" in code ? { jumps: code.jumps } : {}),
    columns,
  };
  const bytes = new TextEncoder().encode(JSON.stringify(text));
  const at = output.take(Math.ceil(bytes.length / 4));
  new Uint8Array(output.buffer, at * 4, bytes.length).set(bytes);
  state[WORD.TEXT_AT] = at;
  state[WORD.TEXT_BYTES] = bytes.length;
  state[WORD.CODE_BYTES] = code.bytes.length;
}
