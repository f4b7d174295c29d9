/**
 * Prints the compilation stages of a module: `deno task dump FILE [FUNC] [options]`: the IR, as translated (--ir) and
 * as optimized, and the disassembled machine code. FUNC is a function index, an export name or a name from the name
 * section; without it, all functions are printed. --passes adds the IR after each pass that changed it.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { OPTIMIZING_ARM64 as ARM64 } from "../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 as X64 } from "../engine/backend_x64/optimizing_target.ts";
import { compileModule } from "../engine/compile/compile.ts";
import { NewEngine } from "../engine/api/engine.ts";
import { codeSettings } from "../engine/settings/code_settings.ts";
import { cpuFeatures } from "../engine/host/cpu.ts";
import { currentHost } from "../engine/host/current.ts";
import { IrFunction } from "../engine/ir/function.ts";
import { printFunction } from "../engine/ir/print.ts";
import { type AfterPass, optimize } from "../engine/optimize/passes.ts";
import { Statistics } from "../engine/base/statistics.ts";
import { FunctionTranslator } from "../engine/translate/function.ts";
import { moduleEnv } from "../engine/translate/module_env.ts";
import { validateModule } from "../engine/validate/module.ts";
import { FEATURE_SWITCHES, switchedFeatures } from "./feature_switches.ts";
import { OPTIMIZATION_SWITCHES, switchedOptimizations } from "./optimization_switches.ts";
import { readTaskLine } from "./task_options.ts";

const task = {
  name: "task dump",
  about: "Prints the optimized IR and the disassembly of a module, or of one function given by index or name.",
  operands: "FILE [FUNC]",
  options: {
    ir: { help: "also print the IR before optimization" },
    arm64: { help: "compile for arm64 instead of x64" },
    explicit: { help: "compile with explicit bounds checks" },
    interruptible: { help: "compile with interruption polls" },
    fuel: { help: "compile with fuel metering" },
    deterministic: { help: "compile code that runs the same everywhere" },
    ...OPTIMIZATION_SWITCHES,
    ...FEATURE_SWITCHES,
    passes: { help: "also print the IR after each pass that changes it" },
  },
} as const;
const { values: flags, operands } = readTaskLine(task);
const [file, wanted] = operands as [string, string?];
const target = flags.arm64 ? ARM64 : X64;
const explicitBounds = flags.explicit;
const optimizations = switchedOptimizations(task, flags);
const features = switchedFeatures(flags.feature);
const { module, valid } = readModule(file);
const { interruptible, fuel, deterministic } = flags;
const settings = codeSettings({ explicitBounds, interruptible, fuel, deterministic });
const env = moduleEnv(valid, { ...settings, optimizations });
const exported = valid.exports.find((e) => e.kind === "func" && e.name === wanted)?.index;
const named = [...valid.names.funcs].find(([, name]) => name === wanted)?.[0];
const selected = wanted === undefined ? undefined : exported ?? named ?? Number(wanted);
if (selected !== undefined && valid.funcs[selected - valid.importedFuncCount] === undefined) {
  endWith(`${file} defines no function ${wanted}`);
}
const code = compileModule(module, {
  target,
  features,
  optimizations,
  settings,
  cpu: target === ARM64 ? new Set(["lse"]) : cpuFeatures(currentHost()),
});
const f = new IrFunction();
for (let i = 0; i < valid.funcs.length; i++) {
  const index = valid.importedFuncCount + i;
  if (selected !== undefined && index !== selected) continue;
  console.log(`==== func ${index} ${valid.names.funcs.get(index) ?? ""}`);
  new FunctionTranslator().translate(env, i, f);
  if (flags.ir) console.log(printFunction(f));
  optimize(f, optimizations, new Statistics(), flags.passes ? passPrinter(f) : undefined);
  console.log(printFunction(f));
  console.log(target.disassemble(code.bytes, code.tables.functionStart[i], code.tables.functionEnd[i]));
}

/** Reads a module and validates it; an error ends the process. */
function readModule(path: string) {
  try {
    const module = NewEngine().parse(readFileSync(path));
    return { module, valid: validateModule(module, features) };
  } catch (error) {
    return endWith(`${path}: ${(error as Error).message}`);
  }
}

function endWith(message: string): never {
  console.error(`dump: ${message}`);
  process.exit(1);
}

/** Prints the function after each pass whose result differs from the text before it. */
function passPrinter(before: IrFunction): AfterPass {
  let last = printFunction(before);
  return (pass, f) => {
    const text = printFunction(f);
    if (text !== last) console.log(`-- after ${pass}\n${text}`);
    last = text;
  };
}
