/**
 * Compile speed of big modules in processes of their own: waft cold (the first compile of a process) and warm (the median of the second half of those after), V8's optimizing
 * compiler eager on one thread, and V8's baseline likewise for orientation. Out: MB of code section per second.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { median } from "./measure.ts";
import { type BigModule, codeSectionBytes } from "./modules.ts";

/** V8 compiles everything with its optimizing compiler, at once, on the calling thread. */
const V8_OPTIMIZING = "--no-liftoff,--no-wasm-tier-up,--no-wasm-lazy-compilation,--single-threaded";
const V8_BASELINE =
  "--liftoff,--no-wasm-tier-up,--no-wasm-dynamic-tiering,--no-wasm-lazy-compilation,--single-threaded";

/** Compile speeds of one module, in megabytes (10⁶) of code section per second. */
export interface CompileResult {
  name: string;
  codeBytes: number;
  coldMBs: number;
  warmMBs: number;
  v8OptimizingMBs: number;
  v8BaselineMBs: number;
  /** warm / V8 optimizing: higher is better. */
  warmToV8: number;
  coldToV8: number;
  /** Greatest resident size of the waft process after its first compile, in MiB. */
  residentMiB: number;
}

/** Measures `module`, which lies at `path`. */
export function measureCompile(module: BigModule, path: string, quick: boolean): CompileResult {
  const codeBytes = codeSectionBytes(readFileSync(path));
  const speed = (ms: number) => codeBytes / 1e3 / ms;
  const rounds = quick ? module.warmRounds.quick : module.warmRounds.full;
  const first = child("waft", path, 1);
  const waft = rounds > 0 ? child("waft", path, 1 + rounds) : first;
  const v8 = child("v8", path, codeBytes > 4e6 ? 1 : 3, V8_OPTIMIZING);
  const baseline = child("v8", path, codeBytes > 4e6 ? 1 : 3, V8_BASELINE);
  const coldMBs = speed(median([first.times[0]!, waft.times[0]!]));
  const warmMBs = rounds > 0 ? speed(median(waft.times.slice(1 + (rounds >> 1)))) : coldMBs;
  const v8OptimizingMBs = speed(median(v8.times));
  return {
    name: module.name,
    codeBytes,
    coldMBs,
    warmMBs,
    v8OptimizingMBs,
    v8BaselineMBs: speed(median(baseline.times)),
    warmToV8: warmMBs / v8OptimizingMBs,
    coldToV8: coldMBs / v8OptimizingMBs,
    residentMiB: first.maxResident / 2 ** 20,
  };
}

function child(
  side: "waft" | "v8",
  path: string,
  times: number,
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
  ];
  const output = execFileSync(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], timeout: 600_000 });
  return JSON.parse(output.toString().trim().split("\n").at(-1)!);
}
