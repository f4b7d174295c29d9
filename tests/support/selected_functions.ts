/**
 * VCode of modules, as the register allocator gets it. In: a target, the environment of a module, options. Out: a
 * function that selects instructions for one function after another.
 */
import { MachineCode } from "../../engine/codegen/machine_code.ts";
import type { CodegenContext, OptimizingTarget } from "../../engine/codegen/target.ts";
import type { VCode } from "../../engine/codegen/vcode.ts";
import type { IrFunction } from "../../engine/ir/function.ts";
import { Statistics } from "../../engine/base/statistics.ts";
import type { ModuleEnv } from "../../engine/translate/module_env.ts";

/** Selects instructions for optimized functions of the module of `env`. */
export function functionSelector(
  target: OptimizingTarget,
  env: ModuleEnv,
  options: Pick<CodegenContext, "optimizations" | "explicitBounds" | "cpu">,
): (f: IrFunction, v: VCode) => void {
  const context: CodegenContext = {
    ...options,
    layout: env.layout,
    sharedMemories: env.memoryIsShared,
    signatures: env.signatures,
    functionSignature: env.functionSignature,
    statistics: new Statistics(),
    stackFence: true,
  };
  const code = new MachineCode(env.functionSignature.length, env.signatures.length);
  target.emitStubs(context, code);
  const backend = target.functionBackend();
  return (f, v) => backend.select(f, v, context, code);
}
