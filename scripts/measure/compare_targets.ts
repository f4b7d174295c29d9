/**
 * Compares the arm64 code with the x64 code: `deno run -A scripts/measure/compare_targets.ts [FILTER…]`. For each
 * benchmark program it prints code bytes and executed instructions, both as arm64 : x64, then the geometric means.
 * Fails if a mean exceeds 1.15.
 *
 * Executed instructions are an estimate: the IR interpreter runs the optimized program for a limited number of steps
 * and counts block entries; each entry costs the instructions between the block's start and the start of the next
 * emitted block. Out-of-line code is not counted.
 */
import { Statistics } from "../../engine/base/statistics.ts";
import process from "node:process";
import { OPTIMIZING_ARM64 as ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 as X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { programBytes, PROGRAMS } from "../../bench/programs.ts";
import { Allocation } from "../../engine/codegen/allocation.ts";
import { allocateRegisters } from "../../engine/regalloc/allocate.ts";
import { MachineCode } from "../../engine/codegen/machine_code.ts";
import type { CodegenContext, OptimizingTarget } from "../../engine/codegen/target.ts";
import { VCode } from "../../engine/codegen/vcode.ts";
import { NewEngine } from "../../engine/api/engine.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { IrFunction } from "../../engine/ir/function.ts";
import { StepLimitSignal } from "../../engine/ir/testing/interpret.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { optimize } from "../../engine/optimize/passes.ts";
import { FunctionTranslator } from "../../engine/translate/function.ts";
import { moduleEnv } from "../../engine/translate/module_env.ts";
import { validateModule } from "../../engine/validate/module.ts";
import type { ValidModule } from "../../engine/validate/valid_module.ts";
import { AddressSpace, InterpretedInstance, type PretendFunction } from "../../tests/support/interpreted_instance.ts";
import { readTaskLine } from "../task_options.ts";

/** Steps of the IR interpreter per program. */
const STEPS = 300_000;
const LIMIT = 1.15;
const TARGETS = [
  { target: X64, cpu: new Set(["avx", "avx2", "bmi1", "bmi2", "lzcnt", "popcnt"]) },
  { target: ARM64, cpu: new Set(["lse"]) },
];

const optimizations = optimizationSet({});

/** Entry counts, per function index and block. */
function profile(valid: ValidModule, n: number): Map<number, number[]> {
  const counts = new Map<number, number[]>();
  const space = new AddressSpace();
  space.stepLimit = STEPS;
  const instance = new InterpretedInstance(valid, space, () => undefined, {
    prepare: (f) => optimize(f, optimizations, new Statistics()),
    entered: (f, block) => {
      let row = counts.get(f.funcIndex);
      if (row === undefined) counts.set(f.funcIndex, row = []);
      row[block] = (row[block] ?? 0) + 1;
    },
  });
  const run = instance.exports.get("run") as PretendFunction;
  try {
    instance.invoke(run.record, [BigInt(n)]);
  } catch (error) {
    if (!(error instanceof StepLimitSignal)) throw error;
  }
  return counts;
}

/** Total code bytes, and instruction counts per function and block. */
function compiled(
  valid: ValidModule,
  target: OptimizingTarget,
  cpu: ReadonlySet<string>,
): { bytes: number; sizes: number[][] } {
  const env = moduleEnv(valid, { explicitBounds: false, optimizations });
  const context: CodegenContext = {
    layout: env.layout,
    explicitBounds: false,
    sharedMemories: env.memoryIsShared,
    signatures: env.signatures,
    functionSignature: env.functionSignature,
    optimizations,
    statistics: new Statistics(),
    cpu,
    stackFence: true,
  };
  const code = new MachineCode(valid.funcs.length, env.signatures.length);
  code.blockStarts = [];
  target.emitStubs(context, code);
  const backend = target.functionBackend();
  const [f, v, allocation] = [new IrFunction(), new VCode(), new Allocation()];
  let bytes = 0;
  const sizes: number[][] = [];
  for (const index of env.summaries.calleesFirst) {
    new FunctionTranslator().translate(env, index, f);
    optimize(f, optimizations, new Statistics());
    backend.select(f, v, context, code);
    allocateRegisters(v, target.registers(false), optimizations, allocation, context.statistics);
    backend.emit(v, allocation, context, code, index);
    bytes += code.functionEnd[index] - code.functionStart[index];
    const blockStarts = Array.from(code.blockStarts[index]);
    const starts = blockStarts.slice(0, -1);
    const cold = blockStarts[blockStarts.length - 1];
    starts[0] = code.functionStart[index];
    const order = [...starts.filter((at) => at >= 0), cold].sort((a, b) => a - b);
    sizes[index] = starts.map((at) => {
      if (at < 0) return 0;
      const end = order.find((next) => next > at) ?? at;
      const lines = target.disassemble(code.bytes, at, end).split("\n");
      // A jump table may follow its indirect jump.
      const jump = lines.findIndex((line) => /^\s*br x/.test(line));
      return jump >= 0 ? jump + 1 : lines.length - 1;
    });
  }
  return { bytes, sizes };
}

const engine = NewEngine();
const { operands: filters } = readTaskLine({
  name: "run -A scripts/measure/compare_targets.ts",
  about: "Compares the arm64 code of the benchmark programs, or of those whose names match, with the x64 code.",
  operands: "[FILTER…]",
  options: {},
});
let bytesLog = 0;
let executedLog = 0;
let programs = 0;
for (const program of PROGRAMS) {
  const { name, n } = program;
  if (filters.length > 0 && !filters.some((f) => name.includes(f))) continue;
  const module = engine.parse(programBytes(program));
  const valid = validateModule(module, featureSet());
  // The interpreter does not support threads or garbage collection.
  let counts: Map<number, number[]>;
  try {
    counts = profile(valid, Math.max(1, Math.floor(n / 100)));
  } catch (error) {
    console.log(`${name}: not interpreted (${(error as Error).message})`);
    continue;
  }
  const [x64, arm64] = TARGETS.map(({ target, cpu }) => {
    const { bytes, sizes } = compiled(valid, target, cpu);
    let executed = 0;
    for (const [func, row] of counts) {
      row.forEach((count, block) => executed += count * (sizes[func - valid.importedFuncCount][block] ?? 0));
    }
    return { bytes, executed };
  });
  const bytes = arm64.bytes / x64.bytes;
  const executed = arm64.executed / x64.executed;
  bytesLog += Math.log(bytes);
  executedLog += Math.log(executed);
  programs++;
  console.log(
    `${name.padEnd(18)} bytes ${bytes.toFixed(2)} (${arm64.bytes} : ${x64.bytes})  executed ${executed.toFixed(2)}`,
  );
}
const bytes = Math.exp(bytesLog / programs);
const executed = Math.exp(executedLog / programs);
console.log(`geometric mean of ${programs}: bytes ${bytes.toFixed(3)}, executed ${executed.toFixed(3)}`);
process.exit(bytes <= LIMIT && executed <= LIMIT ? 0 : 1);
