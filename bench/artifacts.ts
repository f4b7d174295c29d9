/**
 * Loading the artifact of a big module against V8's `new WebAssembly.Module` of its bytes, which compiles nothing yet either. Out: lines for the
 * report: the first time in a process of its own would be another number for both; these are medians after one of each.
 */
import { NewEngine } from "@waft/engine";
import { readFileSync } from "node:fs";
import { BIG_MODULES, fetchModule } from "./modules.ts";

const ROUNDS = 9;

/** Lines for the report; one that says why when the module cannot be had. */
export function measureArtifacts(): string[] {
  const module = BIG_MODULES.at(-1)!;
  const found = fetchModule(module);
  if ("missing" in found) return [`artifact left out: ${found.missing}`];
  const bytes = new Uint8Array(readFileSync(found.path));
  const engine = NewEngine();
  const start = performance.now();
  const artifact = engine.compile(bytes).serialize();
  const compiled = performance.now() - start;
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const first = performance.now();
    engine.load(artifact);
    const second = performance.now();
    new WebAssembly.Module(bytes);
    if (round === 0) continue;
    ours.push(second - first);
    theirs.push(performance.now() - second);
  }
  const median = (times: number[]) => times.sort((a, b) => a - b)[times.length >> 1]!;
  const own = median(ours), other = median(theirs);
  return [
    `artifact of ${module.name} (${(bytes.length / 1e6).toFixed(1)} MB; artifact ${
      (artifact.length / 1e6).toFixed(1)
    } MB): load ${own.toFixed(1)} ms, V8's lazy new Module ${other.toFixed(1)} ms (${
      (own / other).toFixed(2)
    } ×); compile and serialize ${(compiled / 1000).toFixed(1)} s`,
  ];
}
