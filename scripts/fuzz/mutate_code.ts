/**
 * Breaks proven machine code on purpose, and counts the mutants that the verifier catches: `deno task mutate --count N
 * FILE…`. Out: mutants and catches by kind; status 1 if one is missed. --list prints the missed ones.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { OPTIMIZING_ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { compileModule, prepareBodyCompiler, stubContext } from "../../engine/compile.ts";
import { NewEngine } from "../../engine/engine.ts";
import { featureSet } from "../../engine/features.ts";
import { CPU_FEATURES, cpuFeatures } from "../../engine/host/cpu.ts";
import { currentHost } from "../../engine/host/current.ts";
import { optimizationSet } from "../../engine/optimizations.ts";
import { arm64MutantsOf } from "../../engine/verify/testing/arm64_mutants.ts";
import { mutantsOf } from "../../engine/verify/testing/mutants.ts";
import { functionVerifier } from "../../engine/verify/verify_code.ts";
import { machineModuleOf, machineOf } from "../../engine/verify_module.ts";
import { readTaskLine, wholeNumber } from "../task_options.ts";

const task = {
  name: "task mutate",
  about: "Breaks proven machine code on purpose, and counts the mutants that the verifier catches.",
  operands: "FILE…",
  options: {
    count: { value: "N", help: "most mutants of one kind in one module", default: "100" },
    explicit: { help: "compile with explicit bounds checks" },
    arm64: { help: "compile for arm64" },
    baseline: { help: "compile with the baseline tier" },
    masks: { help: "compile with masked addresses of memories, too" },
    list: { help: "list the mutants that are missed, with their code" },
  },
} as const;
const { values: flags, operands } = readTaskLine(task);
const most = wholeNumber(task, "--count", flags.count, 1);
const target = flags.arm64 ? OPTIMIZING_ARM64 : OPTIMIZING_X64;
const allMutants = flags.arm64 ? arm64MutantsOf : mutantsOf;
await prepareBodyCompiler(target.name);

const options = {
  target,
  features: featureSet(),
  optimizations: optimizationSet({ "mask-memories": flags.masks === true }),
  explicitBounds: flags.explicit,
  cpu: flags.arm64 ? new Set(CPU_FEATURES.arm64) : cpuFeatures(currentHost()),
  tier: flags.baseline ? "baseline" : "optimizing",
} as const;

const made = new Map<string, number>();
const caught = new Map<string, number>();

/** Applies mutants to the proven functions of a module. */
function mutateModule(file: string): void {
  const code = compileModule(NewEngine().parse(readFileSync(file)), options);
  const module = machineModuleOf({ ...code, bytes: code.bytes.slice() }, options, stubContext(code.valid, options));
  const verifier = functionVerifier(machineOf(target), module);
  const { functionStart } = module.tables;
  const used = new Map<string, number>();
  for (let index = 0; index < functionStart.length; index++) {
    if (functionStart[index] < 0 || verifier.verify(index) !== undefined) continue;
    // Code that control never reaches may be anything.
    const mutants = [...allMutants(module, index)].filter(({ at }) => verifier.isReached(at));
    for (const mutant of mutants) {
      const count = (used.get(mutant.kind) ?? 0) + 1;
      if (count > most) continue;
      used.set(mutant.kind, count);
      const { kind, at, bytes } = mutant;
      const original = module.bytes.slice(at, at + bytes.length);
      module.bytes.set(bytes, at);
      made.set(kind, (made.get(kind) ?? 0) + 1);
      if (verifier.verify(index) !== undefined) caught.set(kind, (caught.get(kind) ?? 0) + 1);
      else if (flags.list) listMiss(file, kind, index, at, module.bytes, original);
      module.bytes.set(original, at);
    }
  }
}

function listMiss(
  file: string,
  kind: string,
  index: number,
  at: number,
  bytes: Uint8Array,
  original: Uint8Array,
): void {
  const before = target.disassemble(original, 0, original.length).trim();
  const after = target.disassemble(bytes, at, at + original.length).trim().replaceAll("\n", ";");
  console.log(`${file}: function ${index} at ${at}: ${kind}: ${before} -> ${after}`);
}

for (const file of operands) mutateModule(file);

let mutants = 0, catches = 0;
for (const [kind, count] of made) {
  mutants += count;
  catches += caught.get(kind) ?? 0;
  console.log(`${kind}: ${caught.get(kind) ?? 0} of ${count}`);
}
console.log(`${catches} of ${mutants} mutants caught`);
process.exit(catches < mutants ? 1 : 0);
