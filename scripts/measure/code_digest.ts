/**
 * `deno task digest [FILE…]`: digests of compiled code, for changes that must not change it. In: modules and scripts,
 * folders of them, and random modules. Out: for each tier and processor, the number of modules, the bytes of their code
 * and the SHA-256 of it, with bounds by guard pages and explicit ones, and with and without optional instructions.
 * Two trees with equal lines compile these modules alike.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { NewEngine } from "../../engine/api/engine.ts";
import { OPTIMIZING_ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { compileModule, prepareBodyCompiler } from "../../engine/compile/compile.ts";
import type { CompileOptions } from "../../engine/compile/compile_options.ts";
import { CPU_FEATURES } from "../../engine/host/cpu.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { parseScript, ScriptModule } from "../../engine/text/script.ts";
import type { Module } from "../../engine/wasm/module.ts";
import { COMPILED_FEATURES } from "../../tests/fuzz/compare.ts";
import { generateModules } from "../../tests/fuzz/generate_module.ts";
import { readTaskLine } from "../task_options.ts";

const TIERS = ["baseline", "optimizing"] as const;
const TARGETS = [OPTIMIZING_X64, OPTIMIZING_ARM64];

const { values: { count, tier: only }, operands } = readTaskLine({
  name: "task digest",
  about: "Digests of the compiled code of modules, to compare two trees.",
  operands: "[FILE…]",
  options: {
    count: { value: "N", least: 0, help: "number of seeds of random modules", default: "200" },
    tier: { value: "TIER", words: TIERS, help: "this tier alone: baseline or optimizing" },
  },
});

/** The options of one line, by the position of a module: every configuration gets its share. */
function configurationsOf(tier: (typeof TIERS)[number], target: (typeof TARGETS)[number]): CompileOptions[] {
  return [0, 1, 2, 3].map((k) => ({
    features: featureSet(),
    optimizations: optimizationSet(),
    target,
    tier,
    cpu: new Set((k & 1) === 0 ? CPU_FEATURES[target.name] : []),
    settings: codeSettings({
      explicitBounds: k >= 2,
      interruptible: k === 2,
      fuel: k === 3,
      deterministic: k === 3,
    }),
  }));
}

function files(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  const inside = readdirSync(path).sort().map((name) => join(path, name));
  return inside.filter((name) => /\.(wasm|wat|wast)$/.test(name) || statSync(name).isDirectory()).flatMap(files);
}

/** The modules of a file; those that are malformed on purpose are left out. */
function modulesOf(file: string): Module[] {
  const text = readFileSync(file);
  if (!file.endsWith(".wast")) return [NewEngine().parse(text)];
  return parseScript(text).flatMap((command) => {
    if (!("module" in command) || !(command.module instanceof ScriptModule)) return [];
    try {
      return [NewEngine().parse(command.module.encode())];
    } catch {
      return [];
    }
  });
}

function* modules(): Generator<Module> {
  for (const file of operands.flatMap(files)) yield* modulesOf(file);
  for (let seed = 0; seed < count; seed++) {
    for (const binary of generateModules(seed, COMPILED_FEATURES)) yield NewEngine().parse(binary);
  }
}

for (const { name } of TARGETS) await prepareBodyCompiler(name);
const all = [...modules()];
for (const tier of TIERS) {
  if (only !== undefined && only !== tier) continue;
  for (const target of TARGETS) {
    const configurations = configurationsOf(tier, target);
    const digest = createHash("sha256");
    let compiled = 0, size = 0;
    for (const module of all) {
      for (const options of configurations) {
        try {
          const { bytes } = compileModule(module, options);
          digest.update(bytes);
          size += bytes.length;
          compiled++;
        } catch {
          digest.update("refused"); // an invalid module, or a feature without machine code
        }
      }
    }
    console.log(`${tier} ${target.name}: ${compiled} images, ${size} bytes, ${digest.digest("hex")}`);
  }
}
