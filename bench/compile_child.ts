/**
 * A child process that compiles one module repeatedly. In: `waft` or `v8`, a file, the number of repetitions, waft's
 * number of threads. Out: one JSON line with the milliseconds of each repetition and the maximum resident size in
 * bytes. The caller passes V8's flags.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { timeOf } from "./measure.ts";
import { peakMemory } from "./peak_memory.ts";
import { withSalt } from "./salt.ts";

const [side, file, times, threads] = process.argv.slice(2);
const bytes = new Uint8Array(readFileSync(file));
const compile = side === "waft" ? await waftCompiler() : (salted: Uint8Array<ArrayBuffer>) => {
  new WebAssembly.Module(salted);
};
const result: number[] = [];
for (let i = 0; i < Number(times); i++) {
  const salted = withSalt(bytes, i);
  result.push(timeOf(() => compile(salted)));
}
console.log(JSON.stringify({ times: result, maxResident: peakMemory() }));
process.exit(0);

async function waftCompiler(): Promise<(salted: Uint8Array<ArrayBuffer>) => void> {
  const { NewEngine } = await import("@waft/engine");
  const engine = NewEngine({ tier: "optimizing", parallel: Number(threads) });
  return (salted) => {
    engine.compile(salted);
  };
}
