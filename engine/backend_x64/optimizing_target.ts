/**
 * The whole x64 backend: the OptimizingTarget of codegen/target.ts.
 */
import { BlockEnds } from "../codegen/block_ends.ts";
import type { FunctionBackend, OptimizingTarget } from "../codegen/target.ts";
import { disassemble } from "./disassemble.ts";
import { Emission } from "./emission.ts";
import { emitFunction } from "./emit.ts";
import { newLowering, selectFunction } from "./select.ts";
import { X64 } from "./target.ts";

function functionBackend(): FunctionBackend {
  const lowering = newLowering();
  const emission = new Emission();
  const ends = new BlockEnds();
  return {
    select: (f, v, context, code) => selectFunction(lowering, f, v, context, code),
    emit: (v, allocation, context, code, index) => emitFunction(emission, ends, v, allocation, context, code, index),
  };
}

export const OPTIMIZING_X64: OptimizingTarget = { ...X64, functionBackend, disassemble };
