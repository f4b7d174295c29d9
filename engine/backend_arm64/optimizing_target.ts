/**
 * The whole arm64 backend: the OptimizingTarget of codegen/target.ts.
 */
import { functionBackend, type FunctionBackendParts } from "../codegen/function_backend.ts";
import { RECORD } from "../abi/context_layout.ts";
import { PSEUDO_BASE } from "../codegen/pseudo_ops.ts";
import type { OptimizingTarget } from "../codegen/target.ts";
import { disassemble, listCode } from "./disassemble.ts";
import { Emission } from "./emission.ts";
import { Arm64Emitter, emitFunction } from "./emit.ts";
import { Arm64Selection, selectFunction } from "./select.ts";
import { ARM64 } from "./target.ts";
import { INSTRUCTION_ROWS } from "./instructions.ts";

if (RECORD.CONTEXT !== RECORD.CODE + 8) throw new Error("The first two fields of a record are not a pair");
if (INSTRUCTION_ROWS.length >= PSEUDO_BASE) throw new Error("Too many instruction rows");

const PARTS: FunctionBackendParts<Arm64Selection, { emitter: Arm64Emitter; emission: Emission }> = {
  elideKey: ARM64.elideKey,
  newLowering: () => new Arm64Selection(),
  select: selectFunction,
  newEmission: () => ({ emitter: new Arm64Emitter(), emission: new Emission() }),
  emit: ({ emitter, emission }, ends, v, allocation, options, code, index) =>
    emitFunction(emitter, emission, ends, v, allocation, options, code, index),
};

export const OPTIMIZING_ARM64: OptimizingTarget = {
  ...ARM64,
  functionBackend: () => functionBackend(PARTS),
  disassemble,
  listCode,
};
