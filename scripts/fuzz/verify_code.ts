/**
 * Verifies the machine code of modules: `deno task verify [FILE…]`. In: WebAssembly files, text files, `.wast` scripts,
 * and folders of them. Out: the functions that are not proven, by reason, and totals; status 1 if there are any.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { OPTIMIZING_ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { compileModule, prepareBodyCompiler, stubContext } from "../../engine/compile.ts";
import { NewEngine } from "../../engine/engine.ts";
import { featureSet } from "../../engine/features.ts";
import { CPU_FEATURES, cpuFeatures } from "../../engine/host/cpu.ts";
import { currentHost } from "../../engine/host/current.ts";
import { optimizationSet } from "../../engine/optimizations.ts";
import { parseScript, ScriptModule } from "../../engine/text/script.ts";
import { type Finding, verifyCompiled } from "../../engine/verify_module.ts";
import type { Module } from "../../engine/wasm/module.ts";
import { readTaskLine } from "../task_options.ts";

const task = {
  name: "task verify",
  about: "Verifies the machine code of modules, scripts, and folders of them.",
  operands: "FILE…",
  options: {
    explicit: { help: "compile with explicit bounds checks" },
    arm64: { help: "compile for arm64" },
    baseline: { help: "compile with the baseline tier" },
    masks: { help: "compile with masked addresses of memories, too" },
    list: { help: "list every function that is not proven" },
    listing: { value: "N", help: "print the code around the place in the N-th function that is not proven" },
  },
} as const;
const { values: flags, operands } = readTaskLine(task);
const target = flags.arm64 ? OPTIMIZING_ARM64 : OPTIMIZING_X64;
await prepareBodyCompiler(flags.arm64 ? "arm64" : "x64");

const options = {
  target,
  features: featureSet(),
  optimizations: optimizationSet({ "mask-memories": flags.masks === true }),
  explicitBounds: flags.explicit,
  cpu: flags.arm64 ? new Set(CPU_FEATURES.arm64) : cpuFeatures(currentHost()),
  tier: flags.baseline ? "baseline" : "optimizing",
} as const;

const total = { modules: 0, functions: 0, unproven: 0, bytes: 0, milliseconds: 0 };
const byReason = new Map<string, number>();
let left = Number(flags.listing ?? 0);

function files(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  const inside = readdirSync(path).sort().map((name) => join(path, name));
  return inside.filter((name) => /\.(wasm|wat|wast)$/.test(name) || statSync(name).isDirectory()).flatMap(files);
}

function verifyModule(name: string, module: Module): void {
  let code;
  try {
    code = compileModule(module, options);
  } catch {
    return; // an intentionally invalid module, or a feature without machine code
  }
  const start = performance.now();
  const findings = verifyCompiled(code, options, stubContext(code.valid, options));
  total.milliseconds += performance.now() - start;
  total.modules++;
  total.functions += code.tables.functionStart.length;
  total.bytes += code.bytes.length;
  total.unproven += findings.length;
  for (const finding of findings) report(name, finding, code.bytes, code.tables.functionStart, code.tables.functionEnd);
}

function report(name: string, finding: Finding, bytes: Uint8Array, starts: Int32Array, ends: Int32Array): void {
  const { index, at, reason } = finding;
  byReason.set(reason, (byReason.get(reason) ?? 0) + 1);
  if (flags.list) console.log(`${name}: function ${index} at ${at - (starts[index] ?? 0)}: ${reason}`);
  if (index < 0 || --left !== 0) return;
  console.log(target.disassemble(bytes, starts[index], at).split("\n").slice(-60).join("\n"));
  console.log(`>>>> ${reason}`);
  console.log(target.disassemble(bytes, at, ends[index]).split("\n").slice(0, 12).join("\n"));
}

function modulesOf(file: string): Module[] {
  const text = readFileSync(file);
  if (!file.endsWith(".wast")) return [NewEngine().parse(text)];
  const modules: Module[] = [];
  for (const command of parseScript(text)) {
    if (!("module" in command) || !(command.module instanceof ScriptModule)) continue;
    try {
      modules.push(NewEngine().parse(command.module.encode()));
    } catch {
      continue; // an intentionally malformed module
    }
  }
  return modules;
}

for (const file of operands.flatMap(files)) for (const module of modulesOf(file)) verifyModule(file, module);

const speed = total.bytes / 1000 / total.milliseconds;
console.log(
  `${total.modules} modules, ${total.functions} functions, ${total.bytes} bytes, ${speed.toFixed(1)} MB/s: ` +
    `${total.unproven} functions not proven`,
);
for (const [reason, count] of [...byReason].sort((x, y) => y[1] - x[1])) console.log(`${count}  ${reason}`);
process.exit(total.unproven > 0 ? 1 : 0);
