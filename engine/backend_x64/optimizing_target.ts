/**
 * The whole x64 backend: the OptimizingTarget of codegen/target.ts.
 */
import { functionBackend, type FunctionBackendParts } from "../codegen/function_backend.ts";
import type { OptimizingTarget } from "../codegen/target.ts";
import { disassemble, listCode } from "./disassemble.ts";
import { Emission } from "./emission.ts";
import { emitFunction } from "./emit.ts";
import { newLowering, selectFunction } from "./select.ts";
import { X64 } from "./target.ts";

const PARTS: FunctionBackendParts<ReturnType<typeof newLowering>, Emission> = {
  newLowering,
  select: selectFunction,
  newEmission: () => new Emission(),
  emit: emitFunction,
};

export const OPTIMIZING_X64: OptimizingTarget = {
  ...X64,
  functionBackend: () => functionBackend(PARTS),
  disassemble,
  listCode,
};
