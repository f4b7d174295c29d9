/**
 * A process of its own that compiles one module again and again. In: `waft` or `v8`, a file, how often, by how many threads of waft. Out: one JSON line: the milliseconds
 * of each time, and the greatest resident size in bytes. V8's flags are the caller's business.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { timeOf } from "./measure.ts";
import { withSalt } from "./salt.ts";

const [side, file, times, threads] = process.argv.slice(2);
const bytes = new Uint8Array(readFileSync(file!));
const compile = side === "waft" ? await waftCompiler() : (salted: Uint8Array<ArrayBuffer>) => {
  new WebAssembly.Module(salted);
};
const result: number[] = [];
for (let i = 0; i < Number(times); i++) {
  const salted = withSalt(bytes, i);
  result.push(timeOf(() => compile(salted)));
}
console.log(JSON.stringify({ times: result, maxResident: process.resourceUsage().maxRSS * 1024 }));
process.exit(0);

async function waftCompiler(): Promise<(salted: Uint8Array<ArrayBuffer>) => void> {
  const { NewEngine } = await import("@waft/engine");
  const engine = NewEngine({ parallel: Number(threads) });
  return (salted) => {
    engine.compile(salted);
  };
}
