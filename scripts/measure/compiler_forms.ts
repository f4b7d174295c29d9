/**
 * Measures the forms of the compiler's parts: `deno task forms [FILE.wasm] [--processes N]`. In: a module, the kernel
 * of the baseline tier by default. Out: for translation, for the optimizer, for the register allocator, for selection
 * and emission (the backend), and for all of these together, and for each form, a row with the time of its first run
 * over all functions in a fresh process, as a median over processes that alternate, and the best of its later runs.
 *
 * Every process prepares the functions first; that and copies to the module's memory do not count. The workspace is new
 * for the first run. Machine code comes from the engine, outside of the measured time. As TypeScript, translation
 * validates the bodies; the other forms read bodies that are valid.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { median } from "../../bench/measure.ts";
import { OPTIMIZING_X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { fromBase64 } from "../../engine/base/base64.ts";
import { KERNEL } from "../../engine/baseline/generated/kernel_x64.ts";
import { Allocation } from "../../engine/codegen/allocation.ts";
import { MachineCode } from "../../engine/codegen/machine_code.ts";
import type { CodegenContext } from "../../engine/codegen/target.ts";
import { VCode } from "../../engine/codegen/vcode.ts";
import { IrFunction } from "../../engine/ir/function.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { passOptions } from "../../engine/optimize/pass_options.ts";
import { optimize, OptimizerWorkspace } from "../../engine/optimize/passes.ts";
import { passBits } from "../../engine/portable/compiler_interface.ts";
import { allocateRegisters, AllocatorWorkspace } from "../../engine/regalloc/allocate.ts";
import { Statistics } from "../../engine/base/statistics.ts";
import { FunctionTranslator } from "../../engine/translate/function.ts";
import { type ModuleEnv, moduleEnv } from "../../engine/translate/module_env.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { translatedFunctions, translatedModule } from "../../tests/support/translated_functions.ts";
import { functionSelector } from "../../tests/support/selected_functions.ts";
import { AllocatorModule } from "../generate/portable/allocator_module.ts";
import { BackendModule } from "../generate/portable/backend_module.ts";
import { buildCompiler, portableSubset } from "../generate/portable/build_compiler.ts";
import { compilerExports } from "../generate/portable/compiler_forms.ts";
import { OptimizerModule } from "../generate/portable/optimizer_module.ts";
import { TranslatorModule } from "../generate/portable/translator_module.ts";
import { progress, readTaskLine } from "../task_options.ts";

const FORMS = ["TypeScript", "WebAssembly", "machine code", "baseline code"] as const;
type Form = typeof FORMS[number];
const PARTS = ["translator", "optimizer", "allocator", "backend", "compiler"] as const;
type Part = typeof PARTS[number];
/** Runs in one process. */
const RUNS = 12;

const task = {
  name: "task forms",
  about: "Measures the parts of the compiler as TypeScript, as WebAssembly and as machine code.",
  operands: "[FILE.wasm]",
  options: {
    processes: { value: "N", least: 1, help: "processes for each form", default: "5" },
    form: { value: "NAME", words: FORMS, help: "measure this form in this process", hidden: true },
    part: { value: "NAME", words: PARTS, help: "measure this part in this process", hidden: true },
  },
} as const;
const { values: { processes, form, part }, operands: [file] } = readTaskLine(task);

const optimizations = optimizationSet();
const registers = OPTIMIZING_X64.registers(false);

function moduleBytes(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(file === undefined ? fromBase64(KERNEL) : readFileSync(file));
}

/** The functions after selection. */
function selected(): VCode[] {
  const { env, functions } = translatedModule(moduleBytes(), { optimizations });
  const select = functionSelector(OPTIMIZING_X64, env, { optimizations, explicitBounds: false, cpu: new Set() });
  return Array.from(functions, (f) => {
    optimize(f, optimizations, new Statistics());
    const v = new VCode();
    select(f, v);
    return v;
  });
}

/** Milliseconds of each run over all functions. */
async function measure(part: Part, form: Form): Promise<number[]> {
  const times: number[] = [];
  if (part === "optimizer") {
    const optimizeOne = await optimizerOf(form);
    for (let run = 0; run < RUNS; run++) {
      times.push(
        [...translatedFunctions(moduleBytes(), { optimizations })].reduce((sum, f) => sum + optimizeOne(f), 0),
      );
    }
  } else if (part === "translator" || part === "compiler") {
    const compileAll = await (part === "translator" ? translatorOf(form) : compilerOf(form));
    for (let run = 0; run < RUNS; run++) times.push(compileAll(environment()));
  } else if (part === "allocator") {
    const allocateOne = await allocatorOf(form), functions = selected();
    for (let run = 0; run < RUNS; run++) times.push(functions.reduce((sum, v) => sum + allocateOne(v), 0));
  } else {
    const { env, functions } = translatedModule(moduleBytes(), { optimizations });
    const bodies = Array.from(functions, (f) => {
      optimize(f, optimizations, new Statistics());
      return f;
    });
    for (let run = 0, begin = await backendOf(form, env); run < RUNS; run++) {
      const generateOne = begin();
      times.push(bodies.reduce((sum, f, index) => sum + generateOne(f, index), 0));
    }
  }
  return times;
}

/** The environment of the module. */
function environment(): ModuleEnv {
  const valid = validateModule(decodeModule(moduleBytes()), featureSet());
  return moduleEnv(valid, { optimizations });
}

/** A function that translates all functions of a module and returns the milliseconds that it took. */
async function translatorOf(form: Form): Promise<(env: ModuleEnv) => number> {
  if (form === "TypeScript") {
    const translator = new FunctionTranslator(), f = new IrFunction();
    return (env) => timeOf(() => env.valid.funcs.forEach((_, k) => translator.translate(env, k, f)));
  }
  const exports = compilerExports(form, await buildCompiler(await portableSubset()), () => {});
  const translator = new TranslatorModule(exports);
  return (env) => {
    exports.reset();
    translator.open(env);
    return timeOf(() => env.valid.funcs.forEach((_, k) => translator.translate(k)));
  };
}

/** A function that compiles all functions of a module and returns the milliseconds that it took. */
async function compilerOf(form: Form): Promise<(env: ModuleEnv) => number> {
  if (form === "TypeScript") {
    const translator = new FunctionTranslator(), f = new IrFunction(), v = new VCode(), out = new Allocation();
    const optimizer = new OptimizerWorkspace(), allocator = new AllocatorWorkspace(), statistics = new Statistics();
    const backend = OPTIMIZING_X64.functionBackend();
    return (env) => {
      const context = contextOf(env), code = codeAfterStubs(context);
      return timeOf(() =>
        env.valid.funcs.forEach((_, k) => {
          translator.translate(env, k, f);
          optimize(f, optimizations, statistics, undefined, optimizer);
          backend.select(f, v, context, code);
          allocateRegisters(v, registers, optimizations, out, statistics, allocator);
          backend.emit(v, out, context, code, k);
        })
      );
    };
  }
  const exports = compilerExports(form, await buildCompiler(await portableSubset()), () => {});
  const translator = new TranslatorModule(exports), backend = new BackendModule(exports);
  const allocator = new AllocatorModule(exports), passes = passBits(passOptions(optimizations));
  return (env) => {
    const context = contextOf(env), code = codeAfterStubs(context);
    exports.reset();
    translator.open(env);
    backend.begin("x64", context, code);
    allocator.begin(registers, optimizations);
    return timeOf(() => env.valid.funcs.forEach((_, k) => exports.compileFunction(k, passes, allocator.bits)));
  };
}

/** A function that optimizes a function and returns the milliseconds that it took. */
async function optimizerOf(form: Form): Promise<(f: IrFunction) => number> {
  if (form === "TypeScript") {
    const workspace = new OptimizerWorkspace();
    return (f) => timeOf(() => optimize(f, optimizations, new Statistics(), undefined, workspace));
  }
  const optimizer = new OptimizerModule(compilerExports(form, await buildCompiler(await portableSubset()), () => {}));
  const bits = passBits(passOptions(optimizations));
  return (f) => {
    optimizer.load(f);
    return timeOf(() => optimizer.run(bits));
  };
}

/** A function that allocates the registers of a function and returns the milliseconds that it took. */
async function allocatorOf(form: Form): Promise<(v: VCode) => number> {
  if (form === "TypeScript") {
    const workspace = new AllocatorWorkspace(), out = new Allocation();
    return (v) => timeOf(() => allocateRegisters(v, registers, optimizations, out, new Statistics(), workspace));
  }
  const allocator = new AllocatorModule(compilerExports(form, await buildCompiler(await portableSubset()), () => {}));
  allocator.begin(registers, optimizations);
  return (v) => {
    allocator.load(v);
    return timeOf(() => allocator.run());
  };
}

/**
 * A function that begins a run over all functions of a module. It returns a function that selects and emits one, and
 * returns the milliseconds that these took; its registers are allocated in between.
 */
async function backendOf(form: Form, env: ModuleEnv): Promise<() => (f: IrFunction, index: number) => number> {
  const context = contextOf(env);
  if (form === "TypeScript") {
    const workspace = new AllocatorWorkspace(), out = new Allocation(), v = new VCode();
    const backend = OPTIMIZING_X64.functionBackend();
    return () => {
      const code = codeAfterStubs(context);
      return (f, index) => {
        const selection = timeOf(() => backend.select(f, v, context, code));
        allocateRegisters(v, registers, optimizations, out, new Statistics(), workspace);
        return selection + timeOf(() => backend.emit(v, out, context, code, index));
      };
    };
  }
  const exports = compilerExports(form, await buildCompiler(await portableSubset()), () => {});
  const optimizer = new OptimizerModule(exports), allocator = new AllocatorModule(exports);
  const backend = new BackendModule(exports);
  allocator.begin(registers, optimizations);
  return () => {
    backend.begin("x64", context, codeAfterStubs(context));
    return (f, index) => {
      optimizer.load(f);
      const selection = timeOf(() => backend.select(f, env.functionSignature[index]));
      backend.allocate(allocator.bits);
      return selection + timeOf(() => backend.emit(index));
    };
  };
}

/** The context in which functions of a module are compiled. */
function contextOf(env: ModuleEnv): CodegenContext {
  return {
    layout: env.layout,
    explicitBounds: false,
    sharedMemories: env.memoryIsShared,
    signatures: env.signatures,
    functionSignature: env.functionSignature,
    optimizations,
    statistics: new Statistics(),
    cpu: new Set(["avx"]),
    stackFence: true,
  };
}

/** An image of which only the stubs exist. */
function codeAfterStubs(context: CodegenContext): MachineCode {
  const code = new MachineCode(context.functionSignature.length, context.signatures.length);
  OPTIMIZING_X64.emitStubs(context, code);
  return code;
}

function timeOf(action: () => void): number {
  const start = performance.now();
  action();
  return performance.now() - start;
}

function measureInProcess(part: Part, form: Form): number[] {
  const script = fileURLToPath(import.meta.url);
  const args = ["run", "-A", "--no-check", script, "--part", part, "--form", form, ...file === undefined ? [] : [file]];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${form} failed: ${stderr}`);
  return JSON.parse(stdout) as number[];
}

/** Measures a part in processes of each form by turns, and prints its rows. */
function measurePart(part: Part): void {
  const first = new Map<Form, number[]>(FORMS.map((name) => [name, []]));
  const later = new Map<Form, number[]>(FORMS.map((name) => [name, []]));
  for (let n = 0; n < processes; n++) {
    for (const name of FORMS) {
      progress(`${part}, process ${n + 1} of ${processes}: ${name}`);
      const times = measureInProcess(part, name);
      first.get(name)!.push(times[0]);
      later.get(name)!.push(Math.min(...times.slice(1)));
    }
  }
  progress("");
  console.log(part.padEnd(16) + ["first ms", "least", "most", "later ms"].map((title) => title.padStart(10)).join(""));
  for (const name of FORMS) {
    const times = first.get(name)!;
    const cells = [median(times), Math.min(...times), Math.max(...times), Math.min(...later.get(name)!)];
    console.log(name.padEnd(16) + cells.map((ms) => ms.toFixed(2).padStart(10)).join(""));
  }
}

if (form !== undefined && part !== undefined) console.log(JSON.stringify(await measure(part, form)));
else {
  // So that no child does it.
  await buildCompiler(await portableSubset());
  for (const each of PARTS) measurePart(each);
}
