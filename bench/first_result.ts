/**
 * The first result in fresh processes, without a cache: from the bytes of a module to the end of its first run, on waft
 * with `tier: "auto"`, from its npm package, and on V8 with its default pipeline, in alternating processes. Modules
 * that cannot run alone are only compiled. Out: medians in milliseconds, and the geometric mean of the ratios.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RunProgram } from "./engine_package.ts";
import { geometricMean, median } from "./measure.ts";
import { BIG_MODULES, fetchModule } from "./modules.ts";
import type { Program } from "./programs.ts";

/** The smallest module with a function: (module (func (export "run") (param i32) (result i32) (local.get 0))). */
// deno-fmt-ignore
const SMALLEST = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 6, 1, 0x60, 1, 0x7f, 1, 0x7f, 3, 2, 1, 0,
  7, 7, 1, 3, 0x72, 0x75, 0x6e, 0, 0, 10, 6, 1, 4, 0, 0x20, 0, 0x0b);

/** The report of a child process. */
interface Times {
  readonly importMs: number;
  readonly compileMs: number;
  readonly firstMs: number;
  readonly maxResident: number;
}

/** The measurements of one module. */
export interface FirstResult {
  readonly name: string;
  /** Only compiled, because it has imports. */
  readonly compiledOnly: boolean;
  readonly waftMs: number;
  readonly v8Ms: number;
  readonly ratio: number;
  readonly compileMs: number;
  readonly importMs: number;
  /** Maximum resident sizes, waft / V8. */
  readonly memoryRatio: number;
}

function child(run: RunProgram, side: "waft" | "v8", file: string, n: number | undefined): Times {
  return run("first_child.ts", [side, "auto", file, ...(n === undefined ? [] : [String(n)])]) as Times;
}

/** Measures the module in `file` in `rounds` pairs of processes. */
function measure(
  run: RunProgram,
  name: string,
  file: string,
  n: number | undefined,
  rounds: number,
): FirstResult {
  const waft: Times[] = [];
  const v8: Times[] = [];
  for (let round = 0; round < rounds; round++) {
    waft.push(child(run, "waft", file, n));
    v8.push(child(run, "v8", file, n));
  }
  const of = (times: readonly Times[], key: keyof Times) => median(times.map((each) => each[key]));
  const [waftMs, v8Ms] = [of(waft, "firstMs"), of(v8, "firstMs")];
  return {
    name,
    compiledOnly: n === undefined,
    waftMs,
    v8Ms,
    ratio: waftMs / v8Ms,
    compileMs: of(waft, "compileMs"),
    importMs: of(waft, "importMs"),
    memoryRatio: of(waft, "maxResident") / of(v8, "maxResident"),
  };
}

/** Measures the smallest module, `programs`, and the big modules that can be fetched, in processes by `run`. */
export function measureFirst(
  run: RunProgram,
  programs: readonly Program[],
  fileOf: (program: Program) => string,
  rounds: number,
  progress: (name: string) => void,
): FirstResult[] {
  const folder = mkdtempSync(join(tmpdir(), "waft-first-"));
  try {
    const smallest = join(folder, "smallest.wasm");
    writeFileSync(smallest, SMALLEST);
    const results = [measure(run, "smallest module", smallest, 1, rounds)];
    for (const program of programs) {
      progress(`first result of ${program.name}`);
      results.push(measure(run, program.name, fileOf(program), program.n, rounds));
    }
    for (const module of BIG_MODULES) {
      const found = fetchModule(module);
      if ("missing" in found) continue;
      progress(`first code of ${module.name}`);
      results.push(measure(run, module.name, found.path, undefined, rounds));
    }
    return results;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Ratios of the programs, whose first runs end; compiling alone is not comparable, since V8 compiles lazily. */
export function firstRatios(results: readonly FirstResult[]): { mean: number; worst: number } | undefined {
  const ratios = results.filter(({ name, compiledOnly }) => !compiledOnly && name !== "smallest module")
    .map(({ ratio }) => ratio);
  return ratios.length === 0 ? undefined : { mean: geometricMean(ratios), worst: Math.max(...ratios) };
}
