/**
 * A function has the same code and rows in three forms of the compiler: TypeScript, WebAssembly on the host's engine,
 * and machine code of the optimizing tier. The latter two go from its bytes to the code without JavaScript.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { programBytes, PROGRAMS } from "../../bench/programs.ts";
import { OPTIMIZING_ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { fromBase64 } from "../../engine/base/base64.ts";
import { Statistics } from "../../engine/base/statistics.ts";
import { KERNEL } from "../../engine/baseline/generated/kernel_x64.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { Allocation } from "../../engine/codegen/allocation.ts";
import { MachineCode } from "../../engine/codegen/machine_code.ts";
import type { CodegenContext, OptimizingTarget } from "../../engine/codegen/target.ts";
import { VCode } from "../../engine/codegen/vcode.ts";
import { passOptions } from "../../engine/optimize/pass_options.ts";
import { optimize, OptimizerWorkspace } from "../../engine/optimize/passes.ts";
import { passBits } from "../../engine/portable/compiler_interface.ts";
import { allocateRegisters, AllocatorWorkspace } from "../../engine/regalloc/allocate.ts";
import { OPTIMIZATION_ROWS, type OptimizationSet, optimizationSet } from "../../engine/settings/optimizations.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import type { Module } from "../../engine/wasm/module.ts";
import { AllocatorModule } from "../../scripts/generate/portable/allocator_module.ts";
import { BackendModule } from "../../scripts/generate/portable/backend_module.ts";
import { buildCompiler, portableSubset } from "../../scripts/generate/portable/build_compiler.ts";
import { compilerExports } from "../../scripts/generate/portable/compiler_forms.ts";
import { OptimizerModule } from "../../scripts/generate/portable/optimizer_module.ts";
import { TranslatorModule } from "../../scripts/generate/portable/translator_module.ts";
import { GENERATED_FEATURES, generateModules } from "../fuzz/generate_module.ts";
import { translatedDecoded } from "../support/translated_functions.ts";

const SEEDS = Number(Deno.env.get("WAFT_SEEDS") ?? 20);
const TARGETS: readonly { readonly target: OptimizingTarget; readonly cpus: readonly ReadonlySet<string>[] }[] = [
  {
    target: OPTIMIZING_X64,
    cpus: [new Set(["avx", "avx2", "bmi1", "bmi2", "lzcnt", "popcnt"]), new Set(), new Set(["avx"])],
  },
  { target: OPTIMIZING_ARM64, cpus: [new Set(["lse"]), new Set()] },
];

function everyOptimization(on: boolean): OptimizationSet {
  return optimizationSet(Object.fromEntries(OPTIMIZATION_ROWS.map(({ name }) => [name, on])));
}

const SETS = [optimizationSet(), everyOptimization(true), everyOptimization(false)];

const bytes = await buildCompiler(await portableSubset());
const forms = (["WebAssembly", "machine code"] as const).map((name) => {
  const exports = compilerExports(name, bytes, () => {});
  return {
    name,
    exports,
    optimizer: new OptimizerModule(exports),
    allocator: new AllocatorModule(exports),
    backend: new BackendModule(exports),
    translator: new TranslatorModule(exports),
  };
});
const optimizer = new OptimizerWorkspace(), allocator = new AllocatorWorkspace();
const v = new VCode(), allocation = new Allocation();
let functions = 0;

/** Compiles the functions of a module in all forms, and compares code, rows and written registers of each. */
function compareModule(name: string, bytes: Uint8Array<ArrayBuffer>, turn: number): void {
  compareDecoded(name, decodeModule(bytes), turn);
}

function compareDecoded(name: string, module: Module, turn: number): void {
  const optimizations = SETS[turn % SETS.length], explicitBounds = turn % 2 === 1, fuel = turn % 4 > 1;
  for (const { target, cpus } of TARGETS) {
    const options = { explicitBounds, optimizations, fuel, interruptible: fuel };
    const { env, functions: bodies } = translatedDecoded(module, options);
    const context: CodegenContext = {
      layout: env.layout,
      explicitBounds,
      fuel,
      sharedMemories: env.memoryIsShared,
      signatures: env.signatures,
      functionSignature: env.functionSignature,
      optimizations,
      statistics: new Statistics(),
      cpu: cpus[turn % cpus.length],
      stackFence: turn % 5 !== 0,
    };
    const code = new MachineCode(env.functionSignature.length, env.signatures.length);
    target.emitStubs(context, code);
    const registers = target.registers(explicitBounds, fuel);
    for (const { exports, backend, allocator, translator } of forms) {
      exports.reset();
      translator.open(env);
      backend.begin(target.name, context, withoutRows(code));
      allocator.begin(registers, optimizations);
    }
    const rows = withoutRows(code);
    const compiler = target.functionBackend();
    let index = 0;
    for (const f of bodies) {
      const passes = passBits(passOptions(optimizations)), signature = env.functionSignature[index];
      for (const form of forms) {
        // By turns from the bytes, in the instance's memory alone, and from the IR.
        if ((turn + index) % 2 === 0) form.exports.compileFunction(index, passes, form.allocator.bits);
        else {
          form.optimizer.load(f);
          form.exports.compileBody(signature, f.funcIndex, index, passes, form.allocator.bits);
        }
      }
      rows.clear();
      optimize(f, optimizations, new Statistics(), undefined, optimizer);
      compiler.select(f, v, context, rows);
      allocateRegisters(v, registers, optimizations, allocation, new Statistics(), allocator);
      compiler.emit(v, allocation, context, rows, index);
      for (const { name: form, backend } of forms) {
        const difference = backend.difference(rows, index);
        assert.equal(difference, undefined, `${name}, ${target.name}, function ${index}, turn ${turn}, ${form}`);
      }
      index++;
      functions++;
    }
  }
}

/** An image that continues behind the stubs of `stubs`, without their rows. */
function withoutRows(stubs: MachineCode): MachineCode {
  const code = new MachineCode(stubs.functionStart.length, stubs.entryThunk.length);
  code.reserve(stubs.length);
  code.length = stubs.length;
  code.stubStart.set(stubs.stubStart);
  return code;
}

Deno.test("functions have the same code in three forms: programs", () => {
  for (const [turn, program] of PROGRAMS.entries()) compareModule(program.name, programBytes(program), turn);
  for (const [turn, name] of ["files", "lisp", "pack", "threads", "words"].entries()) {
    const file = new Uint8Array(readFileSync(new URL(`../../examples/wasi/${name}.wasm`, import.meta.url)));
    compareModule(name, file, turn + 2);
  }
  compareModule("kernel", new Uint8Array(fromBase64(KERNEL)), 0);
  compareModule("compiler", bytes, 3);
  assert.ok(functions > 1000, `${functions} functions`);
});

Deno.test("functions have the same code in three forms: random modules", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    for (const module of generateModules(seed, GENERATED_FEATURES)) compareModule(`seed ${seed}`, module, seed);
  }
});

/** Constants at the bounds of immediates, and of the integers in which the forms compute. */
const EXTREMES = [
  ...[0, 1, -1, 2, 3, 0x7f, 0x80, -0x80, 0xff, 0x100, 0xfff, 0x1000, 0x7fff, 0x8000, 0xffff, 0x10000],
  ...[0xffffff, 0x1000000, -0xfff, -0x1000, -0x1001, -0xffffff, -0x1000000, 0x7ffffffe, 0x7fffffff, -0x7fffffff],
  ...[-0x80000000, 0x55555555, 0x0ff00ff0, 0x3ffffff8, 7, 10, 641, 1000000007],
];
const OPERATIONS = [
  ...["add", "sub", "mul", "and", "or", "xor", "shl", "shr_s", "shr_u", "rotl", "div_s", "div_u", "rem_s", "rem_u"],
  ...["eq", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"],
];

/** For each constant a function that applies every operation to its parameter, as value, condition and address. */
function constantsModule(ty: "i32" | "i64", constants: readonly bigint[]): Module {
  const functions = constants.map((constant) => {
    const steps = OPERATIONS.map((name, k) => {
      const value = `(${ty}.${name} (local.get 0) (${ty}.const ${constant}))`;
      if (!/^[lg][te]_|^eq$/.test(name)) return `(${ty}.store offset=${8 * k} (i32.const 0) ${value})`;
      return `(i32.store8 offset=${8 * k} (i32.const 0) ${value})
        (if ${value} (then (i32.store (i32.const ${8 * k + 4}) (i32.const 5))))`;
    });
    const address = ty === "i32" ? "(local.get 0)" : "(i32.wrap_i64 (local.get 0))";
    const low = BigInt.asIntN(32, constant), offset = BigInt.asUintN(31, constant);
    return `(func (param ${ty}) (result i32) ${steps.join("\n")}
      (i32.load offset=${offset} (i32.add ${address} (i32.const ${low}))))`;
  });
  return parseModule(`(memory 1) ${functions.join("\n")}`);
}

Deno.test("functions have the same code in three forms: extreme constants", () => {
  const words = EXTREMES.map(BigInt);
  const wide = [...words, ...words.map((word) => (word << 32n) | 5n), 1n << 63n, 0xfffffffffffffffdn];
  for (const turn of [0, 1, 2]) {
    compareDecoded("i32", constantsModule("i32", words), turn);
    compareDecoded("i64", constantsModule("i64", wide.map((word) => BigInt.asIntN(64, word))), turn);
  }
});
