/**
 * The lowering context of x64: codegen/lowering_context.ts, plus CPU features and the source operand, which may be a
 * register, a stack slot or memory.
 */
import type { TargetHooks } from "../codegen/lowering_context.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import { FOLDING, LoweringContext } from "../codegen/lowering_context.ts";
import type { CodegenContext } from "../codegen/target.ts";
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

export class X64Lowering extends LoweringContext {
  constructor(readonly lowering: TargetHooks) {
    super();
  }

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
  readonly compare = { row: 0, imm: 0, cc: 0, register: 0, sourceFirst: false, hasRegister: false };

  /** The lanes of the shuffle being matched, as bytes; as lanes of 2 and 4 bytes while `whole2` and `whole4` hold. */
  readonly shuffle = {
    lanes: new Uint8Array(16),
    lanes2: new Uint8Array(8),
    lanes4: new Uint8Array(4),
    whole2: false,
    whole4: false,
  };

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

  begin(f: IrFunction, v: VCode, context: CodegenContext, code: MachineCode): void {
    this.beginFunction(f, v, context, code);
    const cpu = context.cpu;
    this.avx = cpu.has("avx");
    this.avx2 = this.avx && cpu.has("avx2");
    this.bmi1 = cpu.has("bmi1");
    this.bmi2 = cpu.has("bmi2");
    this.lzcnt = cpu.has("lzcnt");
    this.popcnt = cpu.has("popcnt");
    this.rorx = this.bmi2 && context.optimizations["bmi2-rorx"];
    const switches = context.optimizations;
    this.affineLea = switches["affine-lea"];
    this.commute = switches["commute-self-update"];
    // Only the three-operand forms gain from a memory operand.
    this.floatMemory = !this.avx || switches["vex-float-mem"];
    this.flags = switches["st-flags"];
    this.storeFlags = switches["store8-flags"];
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
