/**
 * Instruction selection for x64: IrFunction → VCode. Two analysis sweeps (folding.ts), then one sweep over the blocks
 * that applies the rule of each operation (codegen/selection_rules.ts). Blocks and edges keep their numbers.
 */
import type { TargetHooks } from "../codegen/lowering_context.ts";
import { selectBlocks } from "../codegen/select_function.ts";
import { selectionRules } from "../codegen/selection_rules.ts";
import type { CodegenContext } from "../codegen/target.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { VCode } from "../codegen/vcode.ts";
import type { IrFunction } from "../ir/function.ts";
import { TY } from "../ir/types.ts";
import { OVERFLOW_ENTRY, paramLocations, RECORD_REGISTER, resultLocations } from "./abi.ts";
import { markFolds } from "./folding.ts";
import { X } from "./instructions.ts";
import { MODE } from "./machine_ops.ts";
import { NATIVE_CLOBBERS } from "./native_builtins.ts";
import { CALL_CLOBBERS } from "./registers.ts";
import * as atomic from "./select_atomic.ts";
import * as compare from "./select_compare.ts";
import * as float from "./select_float.ts";
import * as integer from "./select_integer.ts";
import * as lanes from "./select_lanes.ts";
import * as memory from "./select_memory.ts";
import * as shuffle from "./select_shuffle.ts";
import * as vector from "./select_simd.ts";
import { X64Lowering } from "./lowering_context.ts";

const RULES = selectionRules<X64Lowering>({
  ...atomic,
  ...compare,
  ...float,
  ...integer,
  ...lanes,
  ...memory,
  ...vector,
  ...shuffle,
});

/** The instructions that the shared rules need. */
const LOWERING: TargetHooks = {
  convention: {
    params: paramLocations,
    results: resultLocations,
    overflowEntry: OVERFLOW_ENTRY,
    record: RECORD_REGISTER,
    clobbers: CALL_CLOBBERS,
    nativeClobbers: NATIVE_CLOBBERS,
  },
  beginContextAddress: (s, id) => s.plain(X.LEA64, 0, s.imm[id], MODE.CONTEXT),
  loadContext: memory.loadContext,
  loadFrom: memory.loadFrom,
  storeTo: memory.storeTo,
  switchOperands: (s) => s.temp(TY.I64),
  branchCompare: compare.selectBranchCompare,
  trapCompare: compare.selectTrapCompare,
};

/** The state of selection, which one function at a time may use. */
export function newLowering(): X64Lowering {
  return new X64Lowering(LOWERING);
}

/** Selects instructions for `f` in `s`, replacing the contents of `v`. */
export function selectFunction(
  s: X64Lowering,
  f: IrFunction,
  v: VCode,
  context: CodegenContext,
  code: MachineCode,
): void {
  v.reset();
  s.begin(f, v, context, code);
  selectBlocks(s, RULES, markFolds);
}
