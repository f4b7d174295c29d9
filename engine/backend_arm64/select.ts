/**
 * Instruction selection for arm64: IrFunction → VCode. Two analysis sweeps (folding.ts), then one walk over the blocks that applies
 * the rule of each operation. Blocks and edges keep their numbers.
 *
 * Operations without a rule are those of vectors: they end compilation with an error that says so.
 */
import type { Lowering } from "../codegen/lowering.ts";
import { selectBlocks, SHARED_RULES } from "../codegen/select_function.ts";
import type { CodegenContext } from "../codegen/target.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { VCode } from "../codegen/vcode.ts";
import type { IrFunction } from "../ir/function.ts";
import { OP_ROWS, type OpName } from "../ir/ops.ts";
import { UnsupportedError } from "../errors.ts";
import { OVERFLOW_ENTRY, paramPlaces, RECORD_REGISTER, resultPlaces } from "./abi.ts";
import { markFolds } from "./folding.ts";
import { P } from "./machine_ops.ts";
import { NATIVE_CLOBBERS } from "./native_builtins.ts";
import { CALL_CLOBBERS } from "./registers.ts";
import * as compare from "./select_compare.ts";
import * as float from "./select_float.ts";
import * as integer from "./select_integer.ts";
import * as memory from "./select_memory.ts";
import { Selection } from "./selection.ts";

type Rule = (s: Selection, id: number) => void;

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

/** The instructions that the shared rules need. */
const LOWERING: Lowering = {
  convention: {
    params: paramPlaces,
    results: resultPlaces,
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

const selection = new Selection(LOWERING);

/** Chooses instructions for `f`, replacing what `v` held. */
export function selectFunction(f: IrFunction, v: VCode, context: CodegenContext, code: MachineCode): void {
  const s = selection;
  v.reset();
  s.begin(f, v, context, code);
  selectBlocks(s, RULE_BY_OP, markFolds);
}
