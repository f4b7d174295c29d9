/**
 * Measures the forms of the optimizer: `deno task forms [FILE.wasm] [--processes N]`. In: a module, the kernel of the
 * baseline tier by default. Out: for each form a row with the time of its first run over all functions in a fresh
 * process, as a median over processes that alternate, and the best of its later runs.
 *
 * Every process translates the functions first and optimizes copies of them; translation and copies do not count. The
 * workspace is new for the first run. Machine code comes from the engine, outside of the measured time.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { median } from "../../bench/measure.ts";
import { fromBase64 } from "../../engine/base/base64.ts";
import { KERNEL } from "../../engine/baseline/generated/kernel_x64.ts";
import type { IrFunction } from "../../engine/ir/function.ts";
import { optimizationSet } from "../../engine/optimizations.ts";
import { optimize, OptimizerWorkspace, passOptions } from "../../engine/optimize/passes.ts";
import { Statistics } from "../../engine/statistics.ts";
import { translatedFunctions } from "../../tests/support/translated_functions.ts";
import { buildCompiler, portableSubset } from "../generate/portable/build_compiler.ts";
import { compilerExports } from "../generate/portable/compiler_forms.ts";
import { OptimizerModule, optionBits } from "../generate/portable/optimizer_module.ts";
import { progress, readTaskLine } from "../task_options.ts";

const FORMS = ["TypeScript", "WebAssembly", "machine code", "baseline code"] as const;
type Form = typeof FORMS[number];
/** Runs in one process. */
const RUNS = 12;

const task = {
  name: "task forms",
  about: "Measures the optimizer as TypeScript, as WebAssembly on the host's engine, and as machine code.",
  operands: "[FILE.wasm]",
  options: {
    processes: { value: "N", least: 1, help: "processes for each form", default: "5" },
    form: { value: "NAME", words: FORMS, help: "measure this form in this process", hidden: true },
  },
} as const;
const { values: { processes, form }, operands: [file] } = readTaskLine(task);

const optimizations = optimizationSet();

/** The functions, as translated. */
function translated(): IrFunction[] {
  const bytes = file === undefined ? fromBase64(KERNEL) : readFileSync(file);
  return [...translatedFunctions(new Uint8Array(bytes), { optimizations })];
}

/** Milliseconds of each run over all functions. */
async function measure(form: Form): Promise<number[]> {
  const optimizeOne = await optimizerOf(form);
  const times: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    const functions = translated();
    times.push(functions.reduce((sum, f) => sum + optimizeOne(f), 0));
  }
  return times;
}

/** A function that optimizes a function and returns the milliseconds that it took. */
async function optimizerOf(form: Form): Promise<(f: IrFunction) => number> {
  if (form === "TypeScript") {
    const workspace = new OptimizerWorkspace();
    return (f) => timeOf(() => optimize(f, optimizations, new Statistics(), undefined, workspace));
  }
  const bytes = await buildCompiler(await portableSubset());
  const optimizer = new OptimizerModule(compilerExports(form, bytes, () => {}));
  const bits = optionBits(passOptions(optimizations));
  return (f) => {
    optimizer.load(f);
    return timeOf(() => optimizer.run(bits));
  };
}

function timeOf(action: () => void): number {
  const start = performance.now();
  action();
  return performance.now() - start;
}

function measureInProcess(form: Form): number[] {
  const script = fileURLToPath(import.meta.url);
  const args = ["run", "-A", "--no-check", script, "--form", form, ...file === undefined ? [] : [file]];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${form} failed: ${stderr}`);
  return JSON.parse(stdout) as number[];
}

if (form !== undefined) console.log(JSON.stringify(await measure(form)));
else {
  // So that no child does it.
  await buildCompiler(await portableSubset());
  const first = new Map<Form, number[]>(FORMS.map((name) => [name, []]));
  const later = new Map<Form, number[]>(FORMS.map((name) => [name, []]));
  for (let n = 0; n < processes; n++) {
    for (const name of FORMS) {
      progress(`process ${n + 1} of ${processes}: ${name}`);
      const times = measureInProcess(name);
      first.get(name)!.push(times[0]);
      later.get(name)!.push(Math.min(...times.slice(1)));
    }
  }
  progress("");
  console.log(
    `${"".padEnd(16)}${["first ms", "least", "most", "later ms"].map((title) => title.padStart(10)).join("")}`,
  );
  for (const name of FORMS) {
    const times = first.get(name)!;
    const cells = [median(times), Math.min(...times), Math.max(...times), Math.min(...later.get(name)!)];
    console.log(name.padEnd(16) + cells.map((ms) => ms.toFixed(2).padStart(10)).join(""));
  }
}
