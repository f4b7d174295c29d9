/**
 * Random programs over vectors (random_program.ts) on V8 and on waft, with default optimizations and with none, with
 * all features of the processor and with SSE4.1 only. Final memory must be bit-identical. `FUZZ_VECTORS=N` runs N
 * programs, `FUZZ_SEED=S` starts with seed S.
 */
import { equal } from "node:assert/strict";
import process from "node:process";
import { NewEngine } from "../../engine/api/engine.ts";
import { OPTIMIZATION_ROWS, type OptimizationName } from "../../engine/settings/optimizations.ts";
import { textToBinary } from "../../engine/text/parse_module.ts";
import { hidingFeatures } from "./hiding_features.ts";
import { randomProgram } from "./random_program.ts";
import { randomNumbers, randomVector } from "./random_vectors.ts";

const COUNT = Number(process.env["FUZZ_VECTORS"] ?? 25);
const FIRST = Number(process.env["FUZZ_SEED"] ?? 1);
const ADDRESS = 2053;
const REGION = 512;
const ALL_OFF = Object.fromEntries(OPTIMIZATION_ROWS.map(({ name }) => [name, false])) as Record<
  OptimizationName,
  boolean
>;

interface Instance {
  m: { buffer: ArrayBuffer };
  run(p: number): void;
}

function finalMemory({ m, run }: Instance, seed: number): Uint8Array {
  const memory = new Uint8Array(m.buffer);
  const next = randomNumbers(seed);
  for (let round = 0; round < 3; round++) {
    for (let k = 0; k < 8; k++) memory.set(randomVector(next), ADDRESS + 16 * k);
    run(ADDRESS);
  }
  return memory.slice(ADDRESS, ADDRESS + REGION);
}

function compareProgram(seed: number): void {
  const bytes = textToBinary(randomProgram(seed)) as Uint8Array<ArrayBuffer>;
  const v8 = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as unknown as Instance;
  const expected = finalMemory(v8, seed);
  const check = (mode: string, options: Parameters<typeof NewEngine>[0]) => {
    const { exports } = NewEngine(options).compile(bytes).instantiate();
    const actual = finalMemory(exports as unknown as Instance, seed);
    for (let k = 0; k < REGION; k++) equal(actual[k], expected[k], `seed ${seed}, ${mode}: byte ${k} of memory`);
  };
  const verify = seed % 4 === 0;
  check("optimized", { verify });
  hidingFeatures(["avx", "avx2", "bmi1", "bmi2", "lzcnt", "popcnt"], () => {
    check("SSE4.1 only", { verify, bounds: seed % 2 === 0 ? "explicit" : "guard" });
  });
  if (seed % 3 === 0 || FAILED.includes(seed)) {
    check("all optimizations off", { verify, optimizations: ALL_OFF, bounds: "explicit" });
  }
}

/** Seeds that failed in the past. */
const FAILED = [41274, 42492];

Deno.test("programs of past failures leave the same memory as on V8", () => FAILED.forEach(compareProgram));

Deno.test("random programs over vectors leave the same memory as on V8", () => {
  for (let seed = FIRST; seed < FIRST + COUNT; seed++) compareProgram(seed);
});
