/**
 * Loading the artifact of a large module, against V8's `new WebAssembly.Module` of the module's bytes, which compiles
 * lazily. Out: lines for the report. V8 receives different bytes in each round, because it caches compiled modules. An
 * unmeasured first round keeps warm-up costs out of the figures.
 */
import { NewEngine } from "@waft/engine";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { median, timeOf } from "./measure.ts";
import { BIG_MODULES, fetchModule } from "./modules.ts";
import { withSalt } from "./salt.ts";

const ROUNDS = 9;

/** Lines for the report; if the module is not available, one line with the reason. */
export function measureArtifacts(): string[] {
  const module = BIG_MODULES[BIG_MODULES.length - 1];
  const found = fetchModule(module);
  if ("missing" in found) return [`artifact left out: ${found.missing}`];
  const bytes = new Uint8Array(readFileSync(found.path));
  const engine = NewEngine({ tier: "optimizing" });
  const start = performance.now();
  const artifact = engine.compile(bytes).serialize();
  const compiled = performance.now() - start;
  const folder = mkdtempSync(join(tmpdir(), "waft-bench-"));
  try {
    const path = join(folder, "artifact");
    writeFileSync(path, artifact);
    const times = { file: [] as number[], bytes: [] as number[], v8: [] as number[] };
    for (let round = 0; round <= ROUNDS; round++) {
      const salted = withSalt(bytes, round);
      const file = timeOf(() => engine.loadFile(path));
      const memory = timeOf(() => engine.load(artifact));
      const v8 = timeOf(() => new WebAssembly.Module(salted));
      if (round === 0) continue;
      times.file.push(file);
      times.bytes.push(memory);
      times.v8.push(v8);
    }
    const file = median(times.file), memory = median(times.bytes), v8 = median(times.v8);
    const size = (length: number) => `${(length / 1e6).toFixed(1)} MB`;
    return [
      `artifact of ${module.name} (${size(bytes.length)}; artifact ${size(artifact.length)}): loading its file ${
        file.toFixed(1)
      } ms (${(file / v8).toFixed(2)} ×), its bytes ${memory.toFixed(1)} ms (${(memory / v8).toFixed(2)} ×), ` +
      `V8's lazy new Module ${v8.toFixed(1)} ms; compile and serialize ${(compiled / 1000).toFixed(1)} s`,
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
