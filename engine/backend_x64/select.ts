/**
 * Instruction selection for x64: IrFunction → VCode. Two analysis sweeps (folding.ts), then one walk over the blocks that applies
 * the rule of each operation. Blocks and edges keep their numbers.
 *
 * The rule table has a row for every IR operation, so a new operation without a rule does not compile.
 */
import type { CodegenContext } from "../codegen/target.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { VCode } from "../codegen/vcode.ts";
import type { IrFunction } from "../ir/function.ts";
import { FLAG, OP, OP_FLAGS, OP_ROWS, OP_VALUE_MASK, type OpName } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { countUses, markFolds } from "./folding.ts";
import * as atomic from "./select_atomic.ts";
import * as compare from "./select_compare.ts";
import * as control from "./select_control.ts";
import * as float from "./select_float.ts";
import * as integer from "./select_integer.ts";
import * as lanes from "./select_lanes.ts";
import * as memory from "./select_memory.ts";
import * as shuffle from "./select_shuffle.ts";
import * as vector from "./select_simd.ts";
import { Selection } from "./selection.ts";
import { isZeroVector } from "./vector_code.ts";

type Rule = (s: Selection, id: number) => void;

function nothing(): void {}

/** Float constants of an outer loop level stay in a register; others appear where they are used. */
function selectConstant(s: Selection, id: number): void {
  if (s.constantBlock[id] === -1) s.constant(id, s.ty[id], -1);
}

const RULES = {
  UNDEF: nothing,
  // Its BRANCH is all there is of it.
  UNWOUND: nothing,
  CONST: selectConstant,
  PARAM: nothing,
  RESULT: control.selectResult,
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
  CONTEXT: control.selectContext,
  TRAP_IF: control.selectTrapIf,
  CALL: control.selectCall,
  CALL_RECORD: control.selectCallRecord,
  CALL_IMPORT: control.selectCallImport,
  CALL_BUILTIN: control.selectCallBuiltin,
  POLL: control.selectPoll,
  GC_ALLOC: control.selectAllocation,
  ATOMIC_LOAD: atomic.selectAtomicLoad,
  ATOMIC_STORE: atomic.selectAtomicStore,
  ATOMIC_ADD: atomic.selectAtomicModify,
  ATOMIC_SUB: atomic.selectAtomicModify,
  ATOMIC_AND: atomic.selectAtomicModify,
  ATOMIC_OR: atomic.selectAtomicModify,
  ATOMIC_XOR: atomic.selectAtomicModify,
  ATOMIC_XCHG: atomic.selectAtomicExchange,
  ATOMIC_CMPXCHG: atomic.selectAtomicCompareExchange,
  FENCE: atomic.selectFence,
  JUMP: control.selectJump,
  BRANCH: control.selectBranch,
  SWITCH: control.selectSwitch,
  RETURN: control.selectReturn,
  TRAP: control.selectTrap,
  TAIL_CALL: control.selectTailCall,
  TAIL_CALL_RECORD: control.selectTailCallRecord,
  TAIL_CALL_IMPORT: control.selectTailCallImport,
  VSPLAT: lanes.selectSplat,
  VFROM_SCALAR: lanes.selectFromScalar,
  VREPLACE: lanes.selectReplace,
  VEXTRACT_S: lanes.selectExtract,
  VEXTRACT_U: lanes.selectExtract,
  VANY_TRUE: lanes.selectAnyTrue,
  VALL_TRUE: lanes.selectAllTrue,
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
  VSHUFFLE: shuffle.selectShuffle,
  VSWIZZLE: shuffle.selectSwizzle,
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

const selection = new Selection();

/** Chooses instructions for `f`, replacing what `v` held. */
export function selectFunction(f: IrFunction, v: VCode, context: CodegenContext, code: MachineCode): void {
  const s = selection;
  v.reset();
  s.begin(f, v, context, code);
  v.ensureGraph(f.blockCount, f.edgeCount);
  v.blockCount = f.blockCount;
  v.edgeCount = f.edgeCount;
  countUses(s);
  pinConstants(s);
  markFolds(s);
  for (let k = 0; k < f.blockCount; k++) {
    s.block = k;
    v.blockFirst[k] = v.count;
    v.blockDepth[k] = f.blockDepth[k];
    v.blockFlags[k] = f.blockFlags[k];
    v.layout[k] = f.layout[k];
    v.succStart[k] = v.succTotal;
    selectBlock(s, k);
    v.succCount[k] = v.succTotal - v.succStart[k];
  }
  v.blockFirst[f.blockCount] = v.count;
}

function selectBlock(s: Selection, k: number): void {
  const { f, v, op, uses, folded } = s;
  const { sched } = f;
  const start = f.blockStart[k];
  const end = f.blockEnd[k];
  const params = f.blockParams[k];
  if (k === 0) {
    s.current = sched[start];
    v.paramStart[0] = v.allocPool(0);
    v.paramCount[0] = 0;
    selectEntry(s);
  } else {
    const first = v.allocPool(params);
    v.paramStart[k] = first;
    v.paramCount[k] = params;
    for (let i = 0; i < params; i++) v.pool[first + i] = s.defVreg(sched[start + i]);
  }
  for (let p = start + params; p < end; p++) {
    const id = sched[p];
    if (folded[id] !== 0) continue;
    const o = op[id];
    if (uses[id] === 0 && (OP_FLAGS[o] & FLAG.PURE) !== 0) continue;
    s.current = id;
    s.place = p;
    RULE_BY_OP[o](s, id);
  }
}

const selectEntry = control.selectEntry;

/** Marks float constants that a deeper loop uses: they are put into a register where they stand. */
function pinConstants(s: Selection): void {
  const { f, op, ty, a, b, blockOf } = s;
  const { sched, blockDepth } = f;
  for (let k = 0; k < f.blockCount; k++) {
    const depth = blockDepth[k];
    if (depth === 0) continue;
    for (let p = f.blockStart[k]; p < f.blockEnd[k]; p++) {
      const id = sched[p];
      const o = op[id];
      if (o >= OP.VSPLAT) pinVectorConstants(s, id, depth);
      if (o < OP.FADD || o > OP.FGE) continue;
      const x = a[id];
      const y = b[id];
      if (op[x] === OP.CONST && ty[x] !== TY.NONE && blockDepth[blockOf[x]] < depth) s.constantBlock[x] = -1;
      if (y > 0 && o < OP.FABS || o >= OP.FEQ) {
        if (op[y] === OP.CONST && blockDepth[blockOf[y]] < depth) s.constantBlock[y] = -1;
      }
    }
  }
}

/** The same for the vector constants that vector operation `id` uses (key v128-const-cache); a zero is cheaper to make than to keep. */
function pinVectorConstants(s: Selection, id: number, depth: number): void {
  if (s.context.optimizations["v128-const-cache"] === false) return;
  const { op, ty, blockOf } = s;
  const { blockDepth } = s.f;
  const mask = OP_VALUE_MASK[op[id]];
  for (let k = 0; k < 3; k++) {
    if ((mask & (1 << k)) === 0) continue;
    const x = k === 0 ? s.a[id] : k === 1 ? s.b[id] : s.c[id];
    if (op[x] === OP.CONST && ty[x] === TY.V128 && blockDepth[blockOf[x]] < depth && !isZeroVector(s, x)) {
      s.constantBlock[x] = -1;
    }
  }
}
