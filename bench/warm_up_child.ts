/**
 * A child process that runs one module again and again for a time. In: `waft` or `v8`, a file, the argument of its
 * export `run`, milliseconds. Out: one JSON line with the times at which the runs ended, in milliseconds after the
 * bytes were handed to the engine, whose import is not counted.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import type { Call } from "./sides.ts";

const [side, file, n, ms] = process.argv.slice(2);
const bytes = new Uint8Array(readFileSync(file));
const compile = side === "waft" ? await waftRun() : v8Run;
const argument = Number(n);
const ends: number[] = [];
const start = performance.now();
const run = compile(bytes);
do {
  run(argument);
  ends.push(performance.now() - start);
} while (ends[ends.length - 1] < Number(ms));
console.log(JSON.stringify(ends));
process.exit(0);

function v8Run(bytes: Uint8Array<ArrayBuffer>): Call {
  return new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports["run"] as Call;
}

async function waftRun(): Promise<typeof v8Run> {
  const { NewEngine } = await import("@waft/engine");
  const engine = NewEngine();
  return (bytes) => engine.compile(bytes).instantiate().exports["run"] as Call;
}
