/**
 * Compile speed of large modules in child processes: waft cold (the first compilation of a process) and warm (the
 * median of the second half of the following ones), V8's optimizing compiler, eager on one thread, and V8's baseline
 * compiler for reference. Out: MB of code section per second.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { median } from "./measure.ts";
import { type BigModule, codeSectionBytes } from "./modules.ts";

/** V8 compiles everything eagerly with its optimizing compiler, on the calling thread. */
const V8_OPTIMIZING = "--no-liftoff,--no-wasm-tier-up,--no-wasm-lazy-compilation,--single-threaded";
const V8_BASELINE =
  "--liftoff,--no-wasm-tier-up,--no-wasm-dynamic-tiering,--no-wasm-lazy-compilation,--single-threaded";

/** Compile speeds of one module, in megabytes (10⁶) of code section per second. */
export interface CompileResult {
  name: string;
  /** Number of waft's compiler threads; V8 has one. */
  threads: number;
  codeBytes: number;
  coldMBs: number;
  warmMBs: number;
  v8OptimizingMBs: number;
  v8BaselineMBs: number;
  /** warm / V8 optimizing: higher is better. */
  warmToV8: number;
  coldToV8: number;
  /** Maximum resident size of the waft process after its first compilation, in MiB. */
  residentMiB: number;
}

/** Measures `module`, the file at `path`. `known`, a row for the same module, provides V8's speeds. */
export function measureCompile(
  module: BigModule,
  path: string,
  quick: boolean,
  threads = 1,
  known?: CompileResult,
): CompileResult {
  const codeBytes = codeSectionBytes(readFileSync(path));
  const speed = (ms: number) => codeBytes / 1e3 / ms;
  const rounds = quick ? module.warmRounds.quick : module.warmRounds.full;
  const first = child("waft", path, 1, threads);
  const waft = rounds > 0 ? child("waft", path, 1 + rounds, threads) : first;
  const v8Speed = (flags: string) => speed(median(child("v8", path, codeBytes > 4e6 ? 1 : 3, 1, flags).times));
  const coldMBs = speed(median([first.times[0], waft.times[0]]));
  const warmMBs = rounds > 0 ? speed(median(waft.times.slice(1 + (rounds >> 1)))) : coldMBs;
  const v8OptimizingMBs = known?.v8OptimizingMBs ?? v8Speed(V8_OPTIMIZING);
  return {
    name: threads === 1 ? module.name : `${module.name}, ${threads} threads`,
    threads,
    codeBytes,
    coldMBs,
    warmMBs,
    v8OptimizingMBs,
    v8BaselineMBs: known?.v8BaselineMBs ?? v8Speed(V8_BASELINE),
    warmToV8: warmMBs / v8OptimizingMBs,
    coldToV8: coldMBs / v8OptimizingMBs,
    residentMiB: first.maxResident / 2 ** 20,
  };
}

function child(
  side: "waft" | "v8",
  path: string,
  times: number,
  threads: number,
  flags?: string,
): { times: number[]; maxResident: number } {
  const script = fileURLToPath(new URL("compile_child.ts", import.meta.url));
  const args = [
    "run",
    "-A",
    ...(flags === undefined ? [] : [`--v8-flags=${flags}`]),
    script,
    side,
    path,
    String(times),
    String(threads),
  ];
  const output = execFileSync(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], timeout: 600_000 });
  return JSON.parse(output.toString().trim().split("\n").at(-1) ?? "");
}
