/**
 * The lowering context of x64: codegen/lowering_context.ts, plus CPU features and the source operand, which may be a
 * register, a stack slot or memory.
 */
import type { CodegenOptions } from "../codegen/codegen_options.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import { FOLDING, LoweringContext } from "../codegen/lowering_context.ts";
import { CONSTRAINT, operandWord, ROLE, type VCode } from "../codegen/vcode.ts";
import type { IrFunction } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { ROW_VEX_TWIN } from "./instructions.ts";
import { AUX_POOL_SHIFT, AUX_SCALE_SHIFT, AUX_TRAP_SHIFT, MODE } from "./machine_ops.ts";

/** The form in which a value is folded. */
export const FOLD = {
  ...FOLDING,
  /** The arithmetic of a read-modify-write store. */
  MEMORY: FOLDING.OWN,
  /** Part of an address mode. */
  ADDRESS: 4,
  /** A compare whose only user is a store of a byte. */
  CONDITION: 5,
} as const;

/** A compare: its row, immediate, condition and register; the source operand is in the lowering context. */
class ResolvedCompare {
  row = 0;
  imm = 0;
  cc = 0;
  register = 0;
  sourceFirst = false;
  hasRegister = false;
}

/** The lanes of a shuffle as bytes; as lanes of 2 and 4 bytes while `whole2` and `whole4` hold. */
class ShuffleLanes {
  readonly lanes: Uint8Array = new Uint8Array(16);
  readonly lanes2: Uint8Array = new Uint8Array(8);
  readonly lanes4: Uint8Array = new Uint8Array(4);
  whole2 = false;
  whole4 = false;
}

export abstract class X64Lowering extends LoweringContext {
  // CPU features and switches, resolved once per function.
  avx = false;
  avx2 = false;
  bmi1 = false;
  bmi2 = false;
  lzcnt = false;
  popcnt = false;
  rorx = false;
  affineLea = true;
  commute = true;
  floatMemory = true;
  flags = true;
  storeFlags = true;

  /** The compare that `resolveCondition` chose last (select_compare.ts). */
  readonly compare: ResolvedCompare = new ResolvedCompare();

  /** The shuffle being matched. */
  readonly shuffle: ShuffleLanes = new ShuffleLanes();

  // The source operand that `source` or `address` resolved last.
  mode = 0;
  base = 0;
  index = 0;
  scale = 0;
  disp = 0;
  high = 0;
  trap = 0;
  poolSize = 0;
  /**
   * The load or store whose address the source is, 0 if it is none. An instruction whose access may trap has the wasm
   * position of the access.
   */
  origin = 0;
  /** Whether the source register may be a stack slot. */
  any = true;

  begin(f: IrFunction, v: VCode, options: CodegenOptions, code: MachineCode): void {
    this.beginFunction(f, v, options, code);
    this.avx = options.avx;
    this.avx2 = options.avx2;
    this.bmi1 = options.bmi1;
    this.bmi2 = options.bmi2;
    this.lzcnt = options.lzcnt;
    this.popcnt = options.popcnt;
    this.rorx = options.immediateRotations;
    this.affineLea = options.affineLea;
    this.commute = options.commutesUpdates;
    this.floatMemory = options.floatMemory;
    this.flags = options.reusesFlags;
    this.storeFlags = options.storesConditions;
  }

  /** The VEX form of a legacy row if the CPU has AVX, else the row itself. */
  vex(row: number): number {
    return this.avx ? ROW_VEX_TWIN[row] : row;
  }

  /** Whether value `id` is folded as a load. */
  isFoldedLoad(id: number): boolean {
    return this.folded[id] !== 0 && this.op[id] >= OP.LOAD && this.op[id] <= OP.LOAD32_U;
  }

  /** Begins an instruction whose r/m operand is the source resolved last; `aux` holds condition and consumer. */
  withSource(row: number, imm: number, aux: number): number {
    const { v, f } = this;
    const word = this.mode | (this.scale << AUX_SCALE_SHIFT) | (this.trap << AUX_TRAP_SHIFT) |
      (this.poolSize << AUX_POOL_SHIFT) | aux;
    const i = v.beginInstruction(row, this.mode === MODE.POOL && this.poolSize < 2 ? this.high : imm, this.disp, word);
    const at = this.origin !== 0 && this.trap !== 0 ? this.origin : this.current;
    v.pos[i] = f.pos[at];
    v.site[i] = f.site[at];
    return i;
  }

  /** Adds the operand words of the source resolved last. */
  sourceOperands(): void {
    const mode = this.mode;
    if (mode === MODE.REGISTER) {
      this.v.operand(operandWord(this.base, ROLE.USE, this.any ? CONSTRAINT.ANY : CONSTRAINT.REG));
      return;
    }
    if (mode === MODE.POINTER || mode === MODE.POINTER_INDEX) this.use(this.base);
    if (mode === MODE.MEMORY || mode === MODE.POINTER_INDEX || mode === MODE.INDEX) this.use(this.index);
  }

  useAny(vreg: number): void {
    this.v.operand(operandWord(vreg, ROLE.USE, CONSTRAINT.ANY));
  }

  tempFixed(ty: number, register: number): void {
    this.v.operand(operandWord(this.v.newVreg(ty), ROLE.TEMP, CONSTRAINT.FIXED, register));
  }

  /** Makes the source a register (or slot): virtual register `vreg`. */
  sourceRegister(vreg: number, any: boolean): void {
    this.mode = MODE.REGISTER;
    this.base = vreg;
    this.any = any;
    this.index = 0;
    this.scale = 0;
    this.disp = 0;
    this.trap = 0;
    this.poolSize = 0;
    this.origin = 0;
  }
}
