/**
 * Instruction selection for arm64: IrFunction → VCode. Two analysis sweeps (folding.ts), then one walk over the blocks that applies
 * the rule of each operation. Blocks and edges keep their numbers.
 *
 * The rule table has a row for every IR operation, so a new operation without a rule does not compile.
 */
import { hoistConstants } from "../regalloc/hoist_constants.ts";
import type { TargetHooks } from "../codegen/target_hooks.ts";
import { selectBlocks, SHARED_RULES } from "../codegen/select_function.ts";
import type { CodegenContext } from "../codegen/target.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { VCode } from "../codegen/vcode.ts";
import type { IrFunction } from "../ir/function.ts";
import { OP_ROWS, type OpName } from "../ir/ops.ts";
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

type Rule = (s: Arm64Lowering, id: number) => void;

const RULES = {
  ...SHARED_RULES,
  ADD: integer.selectAdd,
  SUB: integer.selectSub,
  MUL: integer.selectMul,
  AND: integer.selectAnd,
  OR: integer.selectOr,
  XOR: integer.selectXor,
  SHL: integer.selectShl,
  SHR_S: integer.selectShrS,
  SHR_U: integer.selectShrU,
  ROTL: integer.selectRotl,
  ROTR: integer.selectRotr,
  CLZ: integer.selectClz,
  CTZ: integer.selectCtz,
  POPCNT: integer.selectPopcnt,
  DIV_S: integer.selectDivS,
  DIV_U: integer.selectDivU,
  REM_S: integer.selectRemS,
  REM_U: integer.selectRemU,
  EXTEND8_S: integer.selectExtend8,
  EXTEND16_S: integer.selectExtend16,
  EXTEND32_S: integer.selectExtend32,
  EXTEND_S: integer.selectExtend32,
  EXTEND_U: integer.selectExtendU,
  WRAP: integer.selectWrap,
  EQ: compare.selectCompare,
  NE: compare.selectCompare,
  LT_S: compare.selectCompare,
  LT_U: compare.selectCompare,
  GT_S: compare.selectCompare,
  GT_U: compare.selectCompare,
  LE_S: compare.selectCompare,
  LE_U: compare.selectCompare,
  GE_S: compare.selectCompare,
  GE_U: compare.selectCompare,
  FADD: float.selectFadd,
  FSUB: float.selectFsub,
  FMUL: float.selectFmul,
  FDIV: float.selectFdiv,
  FMIN: float.selectFmin,
  FMAX: float.selectFmax,
  FCOPYSIGN: float.selectFcopysign,
  FABS: float.selectFabs,
  FNEG: float.selectFneg,
  FSQRT: float.selectFsqrt,
  FCEIL: float.selectFceil,
  FFLOOR: float.selectFfloor,
  FTRUNC: float.selectFtrunc,
  FNEAREST: float.selectFnearest,
  FEQ: compare.selectCompare,
  FNE: compare.selectCompare,
  FLT: compare.selectCompare,
  FGT: compare.selectCompare,
  FLE: compare.selectCompare,
  FGE: compare.selectCompare,
  FDEMOTE: float.selectFdemote,
  FPROMOTE: float.selectFpromote,
  CONVERT_S: float.selectConvertS,
  CONVERT_U: float.selectConvertU,
  TRUNC_S: float.selectTruncS,
  TRUNC_U: float.selectTruncU,
  TRUNC_SAT_S: float.selectTruncSatS,
  TRUNC_SAT_U: float.selectTruncSatU,
  BITCAST: float.selectBitcast,
  SELECT: compare.selectSelect,
  LOAD: memory.selectLoad,
  LOAD8_S: memory.selectLoad,
  LOAD8_U: memory.selectLoad,
  LOAD16_S: memory.selectLoad,
  LOAD16_U: memory.selectLoad,
  LOAD32_S: memory.selectLoad,
  LOAD32_U: memory.selectLoad,
  STORE: memory.selectStore,
  STORE8: memory.selectStore,
  STORE16: memory.selectStore,
  STORE32: memory.selectStore,
  BOUNDS: memory.selectBounds,
  ATOMIC_LOAD: atomic.selectAtomicLoad,
  ATOMIC_STORE: atomic.selectAtomicStore,
  ATOMIC_ADD: atomic.selectAtomicModify,
  ATOMIC_SUB: atomic.selectAtomicModify,
  ATOMIC_AND: atomic.selectAtomicModify,
  ATOMIC_OR: atomic.selectAtomicModify,
  ATOMIC_XOR: atomic.selectAtomicModify,
  ATOMIC_XCHG: atomic.selectAtomicModify,
  ATOMIC_CMPXCHG: atomic.selectAtomicCompareExchange,
  FENCE: atomic.selectFence,
  VSPLAT: lanes.selectSplat,
  VFROM_SCALAR: lanes.selectFromScalar,
  VREPLACE: lanes.selectReplace,
  VEXTRACT_S: lanes.selectExtract,
  VEXTRACT_U: lanes.selectExtract,
  VANY_TRUE: lanes.selectTest,
  VALL_TRUE: lanes.selectTest,
  VBITMASK: lanes.selectBitmask,
  VSHL: vector.selectShift,
  VSHR_S: vector.selectShift,
  VSHR_U: vector.selectShift,
  VNOT: vector.selectUnary,
  VNEG: vector.selectUnary,
  VABS: vector.selectUnary,
  VPOPCNT: vector.selectUnary,
  VEXTEND_LOW_S: vector.selectUnary,
  VEXTEND_LOW_U: vector.selectUnary,
  VEXTEND_HIGH_S: vector.selectUnary,
  VEXTEND_HIGH_U: vector.selectUnary,
  VEXTADD_S: vector.selectUnary,
  VEXTADD_U: vector.selectUnary,
  VFABS: vector.selectUnary,
  VFNEG: vector.selectUnary,
  VFSQRT: vector.selectUnary,
  VFCEIL: vector.selectUnary,
  VFFLOOR: vector.selectUnary,
  VFTRUNC: vector.selectUnary,
  VFNEAREST: vector.selectUnary,
  VFDEMOTE: vector.selectUnary,
  VFPROMOTE: vector.selectUnary,
  VCONVERT_S: vector.selectUnary,
  VCONVERT_U: vector.selectUnary,
  VTRUNC_SAT_S: vector.selectUnary,
  VTRUNC_SAT_U: vector.selectUnary,
  VAND: vector.selectBinary,
  VANDNOT: vector.selectBinary,
  VOR: vector.selectBinary,
  VXOR: vector.selectBinary,
  VADD: vector.selectBinary,
  VSUB: vector.selectBinary,
  VMUL: vector.selectBinary,
  VADD_SAT_S: vector.selectBinary,
  VADD_SAT_U: vector.selectBinary,
  VSUB_SAT_S: vector.selectBinary,
  VSUB_SAT_U: vector.selectBinary,
  VMIN_S: vector.selectBinary,
  VMIN_U: vector.selectBinary,
  VMAX_S: vector.selectBinary,
  VMAX_U: vector.selectBinary,
  VAVGR_U: vector.selectBinary,
  VQ15MULR_S: vector.selectBinary,
  VDOT_S: vector.selectBinary,
  VEXTMUL_LOW_S: vector.selectBinary,
  VEXTMUL_LOW_U: vector.selectBinary,
  VEXTMUL_HIGH_S: vector.selectBinary,
  VEXTMUL_HIGH_U: vector.selectBinary,
  VNARROW_S: vector.selectBinary,
  VNARROW_U: vector.selectBinary,
  VSHUFFLE: selectShuffle,
  VSWIZZLE: vector.selectBinary,
  VEQ: vector.selectBinary,
  VNE: vector.selectBinary,
  VLT_S: vector.selectBinary,
  VLT_U: vector.selectBinary,
  VGT_S: vector.selectBinary,
  VGT_U: vector.selectBinary,
  VLE_S: vector.selectBinary,
  VLE_U: vector.selectBinary,
  VGE_S: vector.selectBinary,
  VGE_U: vector.selectBinary,
  VFADD: vector.selectBinary,
  VFSUB: vector.selectBinary,
  VFMUL: vector.selectBinary,
  VFDIV: vector.selectBinary,
  VFMIN: vector.selectBinary,
  VFMAX: vector.selectBinary,
  VFPMIN: vector.selectBinary,
  VFPMAX: vector.selectBinary,
  VFEQ: vector.selectBinary,
  VFNE: vector.selectBinary,
  VFLT: vector.selectBinary,
  VFGT: vector.selectBinary,
  VFLE: vector.selectBinary,
  VFGE: vector.selectBinary,
  VBITSELECT: vector.selectBitselect,
} as const satisfies Record<OpName, Rule>;

const RULE_BY_OP: readonly Rule[] = OP_ROWS.map((row) => RULES[row.name]);

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

const selection = new Arm64Lowering(LOWERING);

/** Chooses instructions for `f`, replacing what `v` held. */
export function selectFunction(f: IrFunction, v: VCode, context: CodegenContext, code: MachineCode): void {
  const s = selection;
  v.reset();
  s.begin(f, v, context, code);
  selectBlocks(s, RULE_BY_OP, markFolds);
  hoistConstants(v, CALL_CLOBBERS.general, constantCost);
}

/** Instructions that the constant of instruction `i` takes, 0 if it is none. Vectors are taken out of loops before (v128-const-cache). */
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
