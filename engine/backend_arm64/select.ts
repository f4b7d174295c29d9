/**
 * Instruction selection for arm64: IrFunction → VCode. Two analysis sweeps (folding.ts), then one sweep over the blocks
 * that applies the rule of each operation (codegen/selection_rules.ts). Blocks and edges keep their numbers.
 */
import type { CodegenOptions } from "../codegen/codegen_options.ts";
import { type Rule, selectBlocks } from "../codegen/select_function.ts";
import { selectionRules } from "../codegen/selection_rules.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { VCode } from "../codegen/vcode.ts";
import type { IrFunction } from "../ir/function.ts";
import { OVERFLOW_ENTRY, paramRegisters, RECORD_REGISTER, resultRegisters } from "./abi.ts";
import { markFolds } from "./folding.ts";
import { constantWords, isFloatImmediate } from "./immediates.ts";
import { P } from "./machine_ops.ts";
import { NATIVE_CLOBBERS } from "./native_builtins.ts";
import { CALL_CLOBBERS } from "./registers.ts";
import * as division from "./divide_constant.ts";
import { X } from "./instructions.ts";
import * as atomic from "./select_atomic.ts";
import * as compare from "./select_compare.ts";
import * as float from "./select_float.ts";
import * as integer from "./select_integer.ts";
import * as lanes from "./select_lanes.ts";
import * as memory from "./select_memory.ts";
import { selectShuffle } from "./select_shuffle.ts";
import * as vector from "./select_vector.ts";
import { Arm64Lowering } from "./lowering_context.ts";

const RULES: readonly Rule<Arm64Lowering>[] = selectionRules<Arm64Lowering>({
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

/** The state of selection, which one function at a time may use. */
export class Arm64Selection extends Arm64Lowering {
  constructor() {
    super({
      params: paramRegisters(),
      results: resultRegisters(),
      overflowEntry: OVERFLOW_ENTRY,
      record: RECORD_REGISTER,
      generalClobbers: CALL_CLOBBERS.general,
      vectorClobbers: CALL_CLOBBERS.vector,
      nativeGeneral: NATIVE_CLOBBERS.general,
      nativeVector: NATIVE_CLOBBERS.vector,
    });
  }

  override beginContextAddress(id: number): number {
    return this.plain(P.CONTEXT_ADDRESS, this.imm[id], 0, 0);
  }

  override loadContext(offset: number): number {
    return memory.loadContext(this, offset);
  }

  override loadFrom(to: number, base: number, disp: number, ty: number): void {
    memory.loadFrom(this, to, base, disp, ty);
  }

  override storeTo(value: number, base: number, disp: number, ty: number): void {
    memory.storeTo(this, value, base, disp, ty);
  }

  override switchOperands(): void {}

  override branchCompare(condition: number): void {
    compare.selectBranchCompare(this, condition);
  }

  override trapCompare(condition: number, codeBits: number): void {
    compare.selectTrapCompare(this, condition, codeBits);
  }

  override highProduct(signed: boolean, n: number, m: number): number {
    return division.binary(this, signed ? X.SMULH : X.UMULH, n, m);
  }

  override wideSum(x: number, y: number): number {
    return division.binary(this, X.ADD64, x, y);
  }

  override wideDifference(x: number, y: number): number {
    return division.binary(this, X.SUB64, x, y);
  }

  override wideShiftRight(signed: boolean, x: number, count: number): number {
    return division.shiftRight(this, signed, x, count);
  }

  override defineRemainder(
    _signed: boolean,
    id: number,
    n: number,
    quotient: number,
    low: number,
    high: number,
  ): void {
    division.defineRemainder(this, id, n, quotient, low, high);
  }
}

/** Selects instructions for `f` in `s`, replacing the contents of `v`. */
export function selectFunction(
  s: Arm64Selection,
  f: IrFunction,
  v: VCode,
  options: CodegenOptions,
  code: MachineCode,
): void {
  v.reset();
  s.begin(f, v, options, code);
  selectBlocks<Arm64Lowering>(s, RULES, markFolds);
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
      return constantWords(v.imm[i], v.disp[i]);
    case P.CONST_F32:
    case P.CONST_F64:
      return isFloatImmediate(v.imm[i], v.disp[i], v.op[i] === P.CONST_F64) ? 1 : 2;
  }
  return 0;
}
