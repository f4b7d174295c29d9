/**
 * The register allocator gives the same allocation in three forms: TypeScript, WebAssembly on the host's engine, and
 * machine code of the optimizing tier.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { programBytes, PROGRAMS } from "../../bench/programs.ts";
import { OPTIMIZING_ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { fromBase64 } from "../../engine/base/base64.ts";
import { KERNEL } from "../../engine/baseline/generated/kernel_x64.ts";
import { Allocation } from "../../engine/codegen/allocation.ts";
import type { OptimizingTarget, RegisterFile } from "../../engine/codegen/target.ts";
import { randomVCode, toyRegisters } from "../../engine/codegen/testing/random_vcode.ts";
import { VCode } from "../../engine/codegen/vcode.ts";
import { OPTIMIZATION_ROWS, type OptimizationSet, optimizationSet } from "../../engine/settings/optimizations.ts";
import { optimize } from "../../engine/optimize/passes.ts";
import { allocateRegisters, AllocatorWorkspace } from "../../engine/regalloc/allocate.ts";
import { Statistics } from "../../engine/base/statistics.ts";
import { AllocatorModule } from "../../scripts/generate/portable/allocator_module.ts";
import { buildCompiler, portableSubset } from "../../scripts/generate/portable/build_compiler.ts";
import { compilerExports } from "../../scripts/generate/portable/compiler_forms.ts";
import { GENERATED_FEATURES, generateModules } from "../fuzz/generate_module.ts";
import { functionSelector } from "../support/selected_functions.ts";
import { translatedModule } from "../support/translated_functions.ts";

const SEEDS = Number(Deno.env.get("WAFT_SEEDS") ?? 30);
const TARGETS = [
  { target: OPTIMIZING_X64, cpu: new Set(["avx", "avx2", "bmi1", "bmi2", "lzcnt", "popcnt"]) },
  { target: OPTIMIZING_ARM64, cpu: new Set(["lse"]) },
] as const;

function everyOptimization(on: boolean): OptimizationSet {
  return optimizationSet(Object.fromEntries(OPTIMIZATION_ROWS.map(({ name }) => [name, on])));
}

const SETS = [optimizationSet(), everyOptimization(true), everyOptimization(false)];

const bytes = await buildCompiler(await portableSubset());
const forms = (["WebAssembly", "machine code"] as const).map((name) => {
  const exports = compilerExports(name, bytes, () => {});
  return { name, exports, module: new AllocatorModule(exports) };
});
const workspace = new AllocatorWorkspace(), allocation = new Allocation();
let functions = 0;

/** Allocates `v` in all forms and compares the results, and how often each freedom was used. */
function compare(v: VCode, registers: RegisterFile, optimizations: OptimizationSet, name: string): void {
  const statistics = new Statistics();
  for (const { module } of forms) {
    module.begin(registers, optimizations);
    module.load(v);
  }
  allocateRegisters(v, registers, optimizations, allocation, statistics, workspace);
  for (const { name: form, module } of forms) {
    module.run();
    assert.equal(module.difference(v, allocation), undefined, `${name}, ${form}`);
    const counts = new Statistics();
    module.report(counts);
    assert.deepEqual(counts.snapshot(), statistics.snapshot(), `${name}, ${form}`);
  }
  functions++;
}

/** Compares the forms on the functions of a module, compiled for a target. */
function compareModule(
  name: string,
  bytes: Uint8Array<ArrayBuffer>,
  { target, cpu }: { readonly target: OptimizingTarget; readonly cpu: ReadonlySet<string> },
  turn: number,
): void {
  const optimizations = SETS[turn % SETS.length], explicitBounds = turn % 2 === 1;
  const { env, functions: bodies } = translatedModule(bytes, { explicitBounds, optimizations });
  const select = functionSelector(target, env, { optimizations, explicitBounds, cpu }), v = new VCode();
  let at = 0;
  for (const f of bodies) {
    optimize(f, optimizations, new Statistics());
    select(f, v);
    compare(v, target.registers(explicitBounds), optimizations, `${name}, function ${at++}, turn ${turn}`);
  }
  for (const { exports } of forms) exports.reset();
}

Deno.test("the register allocator gives the same allocation in three forms: programs on two processors", () => {
  const before = functions;
  for (const [turn, program] of PROGRAMS.entries()) {
    for (const target of TARGETS) compareModule(program.name, programBytes(program), target, turn);
  }
  for (const [turn, name] of ["files", "lisp", "pack", "threads", "words"].entries()) {
    const file = new Uint8Array(readFileSync(new URL(`../../examples/wasi/${name}.wasm`, import.meta.url)));
    compareModule(name, file, TARGETS[turn % 2], turn);
  }
  for (const [turn, target] of TARGETS.entries()) {
    compareModule("kernel", new Uint8Array(fromBase64(KERNEL)), target, turn);
    compareModule("compiler", bytes, target, turn);
  }
  assert.ok(functions - before > 1000, `${functions - before} functions`);
});

Deno.test("the register allocator gives the same allocation in three forms: random modules and VCode", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    for (const module of generateModules(seed, GENERATED_FEATURES)) {
      for (const target of TARGETS) compareModule(`seed ${seed}`, module, target, seed);
    }
    for (const optimizations of SETS) {
      for (const [general, vector] of [[4, 3], [6, 6], [12, 12]]) {
        const shape = { general, vector, variables: 6 + seed % 20, statements: 40 + seed * 3, calls: seed % 9 };
        compare(randomVCode(seed, shape), toyRegisters(general, vector), optimizations, `VCode ${seed}`);
      }
    }
  }
});
