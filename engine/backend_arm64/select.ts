/**
 * Instruction selection for arm64: IrFunction → VCode. Two analysis sweeps (folding.ts), then one sweep over the blocks
 * that applies the rule of each operation (codegen/selection_rules.ts). Blocks and edges keep their numbers.
 */
import type { TargetHooks } from "../codegen/lowering_context.ts";
import { selectBlocks } from "../codegen/select_function.ts";
import { selectionRules } from "../codegen/selection_rules.ts";
import type { CodegenContext } from "../codegen/target.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { VCode } from "../codegen/vcode.ts";
import type { IrFunction } from "../ir/function.ts";
import { OVERFLOW_ENTRY, paramLocations, RECORD_REGISTER, resultLocations } from "./abi.ts";
import { markFolds } from "./folding.ts";
import { constantPlan, isFloatImmediate } from "./immediates.ts";
import { P } from "./machine_ops.ts";
import { NATIVE_CLOBBERS } from "./native_builtins.ts";
import { CALL_CLOBBERS } from "./registers.ts";
import * as atomic from "./select_atomic.ts";
import * as compare from "./select_compare.ts";
import * as float from "./select_float.ts";
import * as integer from "./select_integer.ts";
import * as lanes from "./select_lanes.ts";
import * as memory from "./select_memory.ts";
import { selectShuffle } from "./select_shuffle.ts";
import * as vector from "./select_vector.ts";
import { Arm64Lowering } from "./lowering_context.ts";

const RULES = selectionRules<Arm64Lowering>({
  ...atomic,
  ...compare,
  ...float,
  ...integer,
  ...lanes,
  ...memory,
  ...vector,
  selectAtomicExchange: atomic.selectAtomicModify,
  selectAnyTrue: lanes.selectTest,
  selectAllTrue: lanes.selectTest,
  selectShuffle,
  selectSwizzle: vector.selectBinary,
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
  beginContextAddress: (s, id) => s.plain(P.CONTEXT_ADDRESS, s.imm[id], 0, 0),
  loadContext: memory.loadContext,
  loadFrom: memory.loadFrom,
  storeTo: memory.storeTo,
  switchOperands: () => {},
  branchCompare: compare.selectBranchCompare,
  trapCompare: compare.selectTrapCompare,
};

/** The state of selection, which one function at a time may use. */
export function newLowering(): Arm64Lowering {
  return new Arm64Lowering(LOWERING);
}

/** Selects instructions for `f` in `s`, replacing the contents of `v`. */
export function selectFunction(
  s: Arm64Lowering,
  f: IrFunction,
  v: VCode,
  context: CodegenContext,
  code: MachineCode,
): void {
  v.reset();
  s.begin(f, v, context, code);
  selectBlocks(s, RULES, markFolds);
  s.hoister.run(v, CALL_CLOBBERS.general, constantCost);
}

/**
 * Number of instructions that make the constant of instruction `i`, 0 if it is not a constant. Vectors have been
 * hoisted before (v128-const-cache).
 */
function constantCost(v: VCode, i: number): number {
  switch (v.op[i]) {
    case P.CONST_I32:
    case P.CONST_I64:
      return constantPlan(v.imm[i], v.disp[i]).count;
    case P.CONST_F32:
    case P.CONST_F64:
      return isFloatImmediate(v.imm[i], v.disp[i], v.op[i] === P.CONST_F64) ? 1 : 2;
  }
  return 0;
}
