/**
 * Instruction selection for arm64: IrFunction → VCode. Two analysis sweeps (folding.ts), then one walk over the blocks that applies
 * the rule of each operation. Blocks and edges keep their numbers.
 *
 * Operations without a rule are those of vectors: they end compilation with an error that says so.
 */
import type { CodegenContext } from "../codegen/target.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { VCode } from "../codegen/vcode.ts";
import type { IrFunction } from "../ir/function.ts";
import { FLAG, OP, OP_FLAGS, OP_ROWS, OP_VALUE_MASK, type OpName } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { UnsupportedError } from "../errors.ts";
import { countUses, markFolds } from "./folding.ts";
import * as compare from "./select_compare.ts";
import * as control from "./select_control.ts";
import * as float from "./select_float.ts";
import * as integer from "./select_integer.ts";
import * as memory from "./select_memory.ts";
import { Selection } from "./selection.ts";

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
  JUMP: control.selectJump,
  BRANCH: control.selectBranch,
  SWITCH: control.selectSwitch,
  RETURN: control.selectReturn,
  TRAP: control.selectTrap,
  TAIL_CALL: control.selectTailCall,
  TAIL_CALL_RECORD: control.selectTailCallRecord,
  TAIL_CALL_IMPORT: control.selectTailCallImport,
} as const satisfies Partial<Record<OpName, Rule>>;

/** Vectors are not compiled for arm64 yet. */
function unsupported(s: Selection, id: number): void {
  const name = OP_ROWS[s.op[id]].name;
  throw new UnsupportedError("simd", `Operation ${name} is not compiled for arm64 by this build`, {
    offset: s.f.pos[id],
  });
}

const RULE_LIST: Readonly<Partial<Record<OpName, Rule>>> = RULES;
const RULE_BY_OP: readonly Rule[] = OP_ROWS.map((row) => RULE_LIST[row.name] ?? unsupported);

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
    s.region++;
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

/** The same for the vector constants that vector operation `id` uses. */
function pinVectorConstants(s: Selection, id: number, depth: number): void {
  const { op, ty, blockOf } = s;
  const { blockDepth } = s.f;
  const mask = OP_VALUE_MASK[op[id]];
  for (let k = 0; k < 3; k++) {
    if ((mask & (1 << k)) === 0) continue;
    const x = k === 0 ? s.a[id] : k === 1 ? s.b[id] : s.c[id];
    if (op[x] === OP.CONST && ty[x] === TY.V128 && blockDepth[blockOf[x]] < depth) s.constantBlock[x] = -1;
  }
}
