/**
 * The lowering context: state of instruction selection for one function, shared by the rules of a backend
 * (select_*.ts): values folded into their users (`folded`), virtual registers of values, and the construction of VCode
 * instructions. Backends extend it.
 *
 * Invariant: the virtual register of an i32 always holds it zero-extended. The one exception is a folded WRAP, whose
 * users see the i64 operand and read its low half only. No rule leaves flags live between two VCode instructions.
 */
import type { IrFunction } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import type { ArgumentRegisters } from "./abi_locations.ts";
import type { CodegenOptions } from "./codegen_options.ts";
import type { MachineCode } from "./machine_code.ts";
import { PSEUDO } from "./pseudo_ops.ts";
import { CONSTRAINT, operandWord, ROLE, type VCode } from "./vcode.ts";

/** The form in which a value is folded. */
export const FOLDING = {
  NO: 0,
  /** Computed by its only user. */
  ONCE: 1,
  /** A compare that each of its users repeats; its operands stay in registers. */
  REPEATED: 2,
  /** First of the backend's own. */
  OWN: 3,
} as const;

/** Registers of calls. */
interface CallConvention {
  /** Registers of parameters and results. */
  readonly params: ArgumentRegisters;
  readonly results: ArgumentRegisters;
  /** Bytes of an entry of the overflow buffer. */
  readonly overflowEntry: number;
  /** Register of a record at a call through it. */
  readonly record: number;
  /** Registers that any call may destroy, and those that native builtins destroy; masks as RegisterFile's. */
  readonly generalClobbers: number;
  readonly vectorClobbers: number;
  readonly nativeGeneral: number;
  readonly nativeVector: number;
}

export abstract class LoweringContext {
  readonly convention: CallConvention;
  f!: IrFunction;
  v!: VCode;
  options!: CodegenOptions;
  code!: MachineCode;
  explicit = false;

  // Columns of the function.
  op: Uint16Array = new Uint16Array(0);
  ty: Uint8Array = new Uint8Array(0);
  a: Int32Array = new Int32Array(0);
  b: Int32Array = new Int32Array(0);
  c: Int32Array = new Int32Array(0);
  imm: Int32Array = new Int32Array(0);

  // Per value: number of uses, uses as a condition, folding, virtual register, block, effect groups.
  uses: Int32Array = new Int32Array(0);
  conditionUses: Int32Array = new Int32Array(0);
  folded: Uint8Array = new Uint8Array(0);
  vregs: Int32Array = new Int32Array(0);
  blockOf: Int32Array = new Int32Array(0);
  /**
   * Two loads or operations with equal trap groups have nothing between them that traps (loads aside), writes or calls.
   */
  trapGroup: Int32Array = new Int32Array(0);
  /** Equal write groups: nothing between them writes memory or calls. */
  writeGroup: Int32Array = new Int32Array(0);
  /** The TRAP_IF into which a value is folded, itself for a TRAP_IF; 0 for none. */
  trapUser: Int32Array = new Int32Array(0);
  /** For a CONST: the block (plus one) for which vregs[] holds; −1: it holds everywhere. */
  constantBlock: Int32Array = new Int32Array(0);

  /** Number of the stretch of code being selected: ends at block boundaries and calls. */
  region = 0;
  /** The block and the IR instruction being selected. */
  block = 0;
  current = 0;
  /** Registers that hold results of the call selected last. */
  resultGeneral = 0;
  resultVector = 0;
  /** Index of the current instruction in IrFunction.sched. */
  scheduled = 0;
  /** Scratch list of select_control.ts: the vregs of a call's or return's values. */
  readonly listVregs: number[] = [];

  /** Locations of the parameters and results of the call selected last; −1 for the overflow buffer. */
  paramLocations: Int8Array = new Int8Array(16);
  resultLocations: Int8Array = new Int8Array(16);

  constructor(convention: CallConvention) {
    this.convention = convention;
  }

  // The few instructions that the shared rules (select_control.ts, divide_constant.ts) need of a backend.

  /** Begins an instruction that makes the address context + imm of CONTEXT `id`; returns its index. */
  abstract beginContextAddress(id: number): number;
  /** Loads the 64-bit field of the context at `offset` into a new vreg. */
  abstract loadContext(offset: number): number;
  /** Loads vreg `to` of type `ty` from [base + disp]. */
  abstract loadFrom(to: number, base: number, disp: number, ty: number): void;
  /** Stores vreg `value` of type `ty` to [base + disp]. */
  abstract storeTo(value: number, base: number, disp: number, ty: number): void;
  /** Adds the operands that the backend's SWITCH needs after the index. */
  abstract switchOperands(): void;
  /** The compare that ends a block: branches on value `condition`. */
  abstract branchCompare(condition: number): void;
  /** Traps with the code in `codeBits` (in place in aux) if value `condition` is not zero. */
  abstract trapCompare(condition: number, codeBits: number): void;
  // 64-bit arithmetic on vregs; each returns the vreg of its result.
  /** High half of n × m, signed or not. */
  abstract highProduct(signed: boolean, n: number, m: number): number;
  abstract wideSum(x: number, y: number): number;
  abstract wideDifference(x: number, y: number): number;
  /** x shifted to the right by a count from 1 on, signed or not. */
  abstract wideShiftRight(signed: boolean, x: number, count: number): number;
  /** Value `id` = n − quotient × the divisor with halves `low` and `high`, signed or not. */
  abstract defineRemainder(
    signed: boolean,
    id: number,
    n: number,
    quotient: number,
    low: number,
    high: number,
  ): void;

  /** Forgets the last function. */
  beginFunction(f: IrFunction, v: VCode, options: CodegenOptions, code: MachineCode): void {
    this.f = f;
    this.v = v;
    this.options = options;
    this.code = code;
    this.explicit = options.explicitBounds;
    this.op = f.op;
    this.ty = f.ty;
    this.a = f.a;
    this.b = f.b;
    this.c = f.c;
    this.imm = f.imm;
    this.region = 0;
    const count = f.count;
    if (this.uses.length < count) {
      const size = Math.max(count, this.uses.length * 2, 1024);
      this.uses = new Int32Array(size);
      this.conditionUses = new Int32Array(size);
      this.folded = new Uint8Array(size);
      this.vregs = new Int32Array(size);
      this.blockOf = new Int32Array(size);
      this.trapGroup = new Int32Array(size);
      this.writeGroup = new Int32Array(size);
      this.trapUser = new Int32Array(size);
      this.constantBlock = new Int32Array(size);
    } else {
      this.uses.fill(0, 0, count);
      this.conditionUses.fill(0, 0, count);
      this.folded.fill(0, 0, count);
      this.vregs.fill(0, 0, count);
      this.blockOf.fill(0, 0, count);
      this.trapUser.fill(0, 0, count);
      this.constantBlock.fill(0, 0, count);
    }
  }

  /** 1 if value `id` is a 64-bit integer or reference. */
  wide(id: number): number {
    const ty = this.ty[id];
    return ty === TY.I64 || ty === TY.REF ? 1 : 0;
  }

  /** Whether value `id` is an integer constant whose value fits a signed 32-bit number. Then `imm` is that. */
  isImmediate(id: number): boolean {
    if (this.op[id] !== OP.CONST) return false;
    const ty = this.ty[id];
    return ty === TY.I32 || ((ty === TY.I64 || ty === TY.REF) && this.c[id] === this.imm[id] >> 31);
  }

  /** Whether value `id` is the integer constant 0. */
  isZero(id: number): boolean {
    return this.isImmediate(id) && this.imm[id] === 0;
  }

  /**
   * The virtual register that holds value `id`; a constant is put into one here. Call it before an instruction is
   * begun.
   */
  reg(id: number): number {
    const op = this.op[id];
    if (this.folded[id] !== 0) {
      // Conversions without code: the user reads the low half, or relies on the zero upper half.
      if (op === OP.WRAP || op === OP.EXTEND_U) return this.reg(this.a[id]);
      throw new Error(`Value ${id} was folded, but an instruction needs it in a register`);
    }
    const vreg = this.vregs[id];
    if (
      vreg !== 0 && (op !== OP.CONST || this.constantBlock[id] < 0 || this.constantBlock[id] === this.block + 1)
    ) {
      return vreg;
    }
    if (op === OP.CONST || op === OP.UNDEF) {
      return this.constant(id, this.ty[id] === TY.NONE ? TY.I64 : this.ty[id], this.block + 1);
    }
    throw new Error(`Value ${id} is used before it is defined`);
  }

  /** Like {@linkcode reg}, for a value of type `ty` that may be UNDEF. */
  regOf(id: number, ty: number): number {
    return id === 0 ? this.constant(0, ty, 0) : this.reg(id);
  }

  /** Puts constant `id` into a new virtual register. `scope` is the value of `constantBlock` for it. */
  constant(id: number, ty: number, scope: number): number {
    const low = ty === TY.V128 ? this.vectorIndex(id) : id === 0 ? 0 : this.imm[id];
    const vreg = this.constantBits(ty, low, id === 0 ? 0 : this.c[id]);
    this.vregs[id] = vreg;
    this.constantBlock[id] = scope;
    return vreg;
  }

  /**
   * A new virtual register with a constant of two 32-bit halves; of a vector, `low` is its index among the constants.
   */
  constantBits(ty: number, low: number, high: number): number {
    const { v } = this;
    const vreg = v.newVreg(ty);
    const op = ty === TY.I32
      ? PSEUDO.CONST_I32
      : ty === TY.F32
      ? PSEUDO.CONST_F32
      : ty === TY.F64
      ? PSEUDO.CONST_F64
      : ty === TY.V128
      ? PSEUDO.CONST_V128
      : PSEUDO.CONST_I64;
    const i = v.beginInstruction(op, low, ty === TY.F32 || ty === TY.I32 || ty === TY.V128 ? 0 : high, 0);
    v.operand(operandWord(vreg, ROLE.DEF, CONSTRAINT.REG));
    v.endInstruction();
    v.vregRemat[vreg] = i + 1;
    return vreg;
  }

  /** Index of vector constant `id` among the VCode's; UNDEF counts as the vector 0. */
  vectorIndex(id: number): number {
    if (id === 0) return this.v.addVector(0, 0, 0, 0);
    const { vectors } = this.f;
    const at = this.imm[id] * 16;
    return this.v.addVector(
      wordAt(vectors, at),
      wordAt(vectors, at + 4),
      wordAt(vectors, at + 8),
      wordAt(vectors, at + 12),
    );
  }

  /** Whether value `id` is the vector 0. */
  isZeroVector(id: number): boolean {
    if (this.op[id] !== OP.CONST) return false;
    const { vectors } = this.f;
    const at = this.imm[id] * 16;
    for (let k = 0; k < 16; k++) if (vectors[at + k] !== 0) return false;
    return true;
  }

  /** Begins an instruction. */
  plain(op: number, imm: number, disp: number, aux: number): number {
    const { v, current, f } = this;
    const i = v.beginInstruction(op, imm, disp, aux);
    v.pos[i] = f.pos[current];
    v.site[i] = f.site[current];
    return i;
  }

  /** Adds a DEF of value `id`, giving it its virtual register. */
  def(id: number): void {
    this.v.operand(operandWord(this.defVreg(id), ROLE.DEF, CONSTRAINT.REG));
  }

  /** Adds a DEF of value `id` in the register of operand `operand`. */
  defReuse(id: number, operand: number): void {
    this.v.operand(operandWord(this.defVreg(id), ROLE.DEF, CONSTRAINT.REUSE, operand));
  }

  defFixed(id: number, register: number): void {
    this.v.operand(operandWord(this.defVreg(id), ROLE.DEF, CONSTRAINT.FIXED, register));
  }

  /** Adds a DEF of virtual register `vreg`. */
  defOf(vreg: number): void {
    this.v.operand(operandWord(vreg, ROLE.DEF, CONSTRAINT.REG));
  }

  /** Gives value `id` a new virtual register. */
  defVreg(id: number): number {
    const vreg = this.v.newVreg(this.ty[id]);
    this.vregs[id] = vreg;
    return vreg;
  }

  use(vreg: number): void {
    this.v.operand(operandWord(vreg, ROLE.USE, CONSTRAINT.REG));
  }

  useFixed(vreg: number, register: number): void {
    this.v.operand(operandWord(vreg, ROLE.USE, CONSTRAINT.FIXED, register));
  }

  lateUse(vreg: number): void {
    this.v.operand(operandWord(vreg, ROLE.LATE_USE, CONSTRAINT.REG));
  }

  temp(ty: number): void {
    this.v.operand(operandWord(this.v.newVreg(ty), ROLE.TEMP, CONSTRAINT.REG));
  }

  end(): void {
    this.v.endInstruction();
  }
}

/** The four bytes at `k`, lowest first. */
function wordAt(bytes: Uint8Array, k: number): number {
  return bytes[k] | (bytes[k + 1] << 8) | (bytes[k + 2] << 16) | (bytes[k + 3] << 24);
}

/** Puts a vector constant of four words into a new virtual register. */
export function constantVector(s: LoweringContext, w0: number, w1: number, w2: number, w3: number): number {
  return s.constantBits(TY.V128, s.v.addVector(w0, w1, w2, w3), 0);
}
