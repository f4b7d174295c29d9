/**
 * Instruction selection for x64: IrFunction → VCode. Two analysis sweeps (folding.ts), then one sweep over the blocks
 * that applies the rule of each operation (codegen/selection_rules.ts). Blocks and edges keep their numbers.
 */
import type { CodegenOptions } from "../codegen/codegen_options.ts";
import { type Rule, selectBlocks } from "../codegen/select_function.ts";
import { selectionRules } from "../codegen/selection_rules.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { VCode } from "../codegen/vcode.ts";
import type { IrFunction } from "../ir/function.ts";
import { TY } from "../ir/types.ts";
import { OVERFLOW_ENTRY, paramRegisters, RECORD_REGISTER, resultRegisters } from "./abi.ts";
import { markFolds } from "./folding.ts";
import { X } from "./instructions.ts";
import { MODE } from "./machine_ops.ts";
import { NATIVE_CLOBBERS } from "./native_builtins.ts";
import { CALL_CLOBBERS } from "./registers.ts";
import * as division from "./divide_constant.ts";
import * as atomic from "./select_atomic.ts";
import * as compare from "./select_compare.ts";
import * as float from "./select_float.ts";
import * as integer from "./select_integer.ts";
import * as lanes from "./select_lanes.ts";
import * as memory from "./select_memory.ts";
import * as shuffle from "./select_shuffle.ts";
import * as vector from "./select_simd.ts";
import { X64Lowering } from "./lowering_context.ts";

const RULES: readonly Rule<X64Lowering>[] = selectionRules<X64Lowering>({
  ...atomic,
  ...compare,
  ...float,
  ...integer,
  ...lanes,
  ...memory,
  ...vector,
  ...shuffle,
});

/** The state of selection, which one function at a time may use. */
export class X64Selection extends X64Lowering {
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
    return this.plain(X.LEA64, 0, this.imm[id], MODE.CONTEXT);
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

  override switchOperands(): void {
    this.temp(TY.I64);
  }

  override branchCompare(condition: number): void {
    compare.selectBranchCompare(this, condition);
  }

  override trapCompare(condition: number, codeBits: number): void {
    compare.selectTrapCompare(this, condition, codeBits);
  }

  override highProduct(signed: boolean, n: number, m: number): number {
    return division.highProduct(this, signed, n, m);
  }

  override wideSum(x: number, y: number): number {
    return division.binary(this, X.ADD64_R, x, y);
  }

  override wideDifference(x: number, y: number): number {
    return division.binary(this, X.SUB64_R, x, y);
  }

  override wideShiftRight(signed: boolean, x: number, count: number): number {
    return division.shiftRight(this, signed, x, count);
  }

  override defineRemainder(
    signed: boolean,
    id: number,
    n: number,
    quotient: number,
    low: number,
    high: number,
  ): void {
    division.defineRemainder(this, signed, id, n, quotient, low, high);
  }
}

/** Selects instructions for `f` in `s`, replacing the contents of `v`. */
export function selectFunction(
  s: X64Selection,
  f: IrFunction,
  v: VCode,
  options: CodegenOptions,
  code: MachineCode,
): void {
  v.reset();
  s.begin(f, v, options, code);
  selectBlocks<X64Lowering>(s, RULES, markFolds);
}
