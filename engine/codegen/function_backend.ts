/**
 * The part of a function backend that does not depend on the processor. In: a processor's selection and emission. Out:
 * a FunctionBackend. Invariant: each backend owns its state, which compilations in progress do not share.
 */
import type { OptimizationName } from "../settings/optimizations.ts";
import type { IrFunction } from "../ir/function.ts";
import type { Allocation } from "./allocation.ts";
import { BlockEnds } from "./block_ends.ts";
import { CalleeUnknown } from "./callee_unknown.ts";
import { type CodegenOptions, codegenOptions, countCodegen } from "./codegen_options.ts";
import type { MachineCode } from "./machine_code.ts";
import type { CodegenContext, FunctionBackend } from "./target.ts";
import type { VCode } from "./vcode.ts";

/** The parts of a function backend: state of selection `L` and of emission `E`, and the functions that use it. */
export interface FunctionBackendParts<L, E> {
  /** As Target.elideKey. */
  readonly elideKey: OptimizationName;
  newLowering(): L;
  select(lowering: L, f: IrFunction, v: VCode, options: CodegenOptions, code: MachineCode): void;
  newEmission(): E;
  emit(
    emission: E,
    ends: BlockEnds,
    v: VCode,
    allocation: Allocation,
    options: CodegenOptions,
    code: MachineCode,
    index: number,
  ): void;
}

/** A backend with new state. */
export function functionBackend<L, E>(parts: FunctionBackendParts<L, E>): FunctionBackend {
  const lowering = parts.newLowering();
  const emission = parts.newEmission();
  const ends = new BlockEnds();
  let current: CodegenContext | undefined, options: CodegenOptions | undefined;
  const begin = (context: CodegenContext) => {
    if (context !== current || options === undefined) options = codegenOptions(context);
    current = context;
    options.counts.reset();
    return options;
  };
  return {
    select(f, v, context, code) {
      const options = begin(context);
      code.missing = -1;
      parts.select(lowering, f, v, options, code);
      if (code.missing >= 0) throw new CalleeUnknown(code.missing);
      countCodegen(options, parts.elideKey, context);
    },
    emit(v, allocation, context, code, index) {
      const options = begin(context);
      parts.emit(emission, ends, v, allocation, options, code, index);
      countCodegen(options, parts.elideKey, context);
    },
  };
}
