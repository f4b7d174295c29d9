/**
 * A child process that compiles, instantiates and runs one module once. In: `waft` or `v8`, the engine's tier, a file,
 * the argument of its export `run` (absent: compile only). Out: one JSON line with the milliseconds of importing the
 * engine, of compiling, and from the bytes to the first result, and the maximum resident size in bytes.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { peakMemory } from "./peak_memory.ts";
import type { Call, SideModule } from "./sides.ts";

const [side, tier, file, n] = process.argv.slice(2);
const bytes = new Uint8Array(readFileSync(file));
const imported = performance.now();
const compile = side === "waft" ? await waftCompiler() : v8Compiler;
const start = performance.now();
const module = compile(bytes);
const compiled = performance.now();
if (n !== undefined) (module.instantiate().exports["run"] as Call)(Number(n));
const end = performance.now();
console.log(JSON.stringify({
  importMs: start - imported,
  compileMs: compiled - start,
  firstMs: end - start,
  maxResident: peakMemory(),
}));
process.exit(0);

function v8Compiler(bytes: Uint8Array<ArrayBuffer>): Pick<SideModule, "instantiate"> {
  const module = new WebAssembly.Module(bytes);
  return { instantiate: () => ({ exports: new WebAssembly.Instance(module).exports, close: () => {} }) };
}

async function waftCompiler(): Promise<typeof v8Compiler> {
  const { NewEngine } = await import("@waft/engine");
  const engine = NewEngine({ tier: tier as "auto" | "baseline" | "optimizing" });
  return (bytes) => engine.compile(bytes);
}
