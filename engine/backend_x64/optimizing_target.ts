/**
 * The whole x64 backend: the OptimizingTarget of codegen/target.ts.
 */
import { functionBackend, type FunctionBackendParts } from "../codegen/function_backend.ts";
import { PSEUDO_BASE } from "../codegen/pseudo_ops.ts";
import type { OptimizingTarget } from "../codegen/target.ts";
import { disassemble, listCode } from "./disassemble.ts";
import { Emission } from "./emission.ts";
import { emitFunction, X64Emitter } from "./emit.ts";
import { selectFunction, X64Selection } from "./select.ts";
import { X64 } from "./target.ts";
import { ROW_COUNT } from "./instructions.ts";

if (ROW_COUNT >= PSEUDO_BASE) throw new Error("Too many instruction rows");

const PARTS: FunctionBackendParts<X64Selection, { emitter: X64Emitter; emission: Emission }> = {
  elideKey: X64.elideKey,
  newLowering: () => new X64Selection(),
  select: selectFunction,
  newEmission: () => ({ emitter: new X64Emitter(), emission: new Emission() }),
  emit: ({ emitter, emission }, ends, v, allocation, options, code, index) =>
    emitFunction(emitter, emission, ends, v, allocation, options, code, index),
};

export const OPTIMIZING_X64: OptimizingTarget = {
  ...X64,
  functionBackend: () => functionBackend(PARTS),
  disassemble,
  listCode,
};
