/**
 * Prints a line per target and bounds mode with a hash of the code and tables that the benchmark's programs compile to, for fixed processor
 * features: `deno run -A tests/arm64/code_hash.ts [COUNT]`. The lines must be the same on every host (scripts/test_arm64.ts compares them).
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { ARM64 } from "../../engine/backend_arm64/target.ts";
import { X64 } from "../../engine/backend_x64/target.ts";
import { compileModule } from "../../engine/compile.ts";
import { NewEngine } from "../../engine/engine.ts";
import { featureSet } from "../../engine/features.ts";
import { optimizationSet } from "../../engine/optimizations.ts";

const FOLDER = new URL("../../bench/wasm/", import.meta.url);
const TARGETS = [
  { target: X64, cpu: ["avx", "avx2", "bmi1", "bmi2", "lzcnt", "popcnt"] },
  { target: X64, cpu: [] },
  { target: ARM64, cpu: ["lse"] },
  { target: ARM64, cpu: [] },
];

const engine = NewEngine();
const files = readdirSync(FOLDER).filter((name) => name.endsWith(".wasm")).sort();
const modules = files.slice(0, Number(process.argv[2] ?? files.length))
  .map((name) => engine.parse(readFileSync(new URL(name, FOLDER))));
for (const { target, cpu } of TARGETS) {
  for (const explicitBounds of [false, true]) {
    const hash = createHash("sha256");
    let bytes = 0;
    for (const module of modules) {
      const code = compileModule(module, {
        target,
        features: featureSet(),
        optimizations: optimizationSet({}),
        explicitBounds,
        cpu: new Set(cpu),
      });
      hash.update(code.bytes).update(JSON.stringify(code.tables));
      bytes += code.bytes.length;
    }
    const mode = explicitBounds ? "explicit" : "guard";
    console.log(`${target.name} ${cpu.join("+")} ${mode}: ${bytes} bytes ${hash.digest("hex").slice(0, 32)}`);
  }
}
