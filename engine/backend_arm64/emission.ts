/**
 * Code of one arm64 function during emission: codegen/emission.ts, whose buffer holds words (branches included, without
 * their targets), plus the parts specific to arm64: fields for distances, and the distance to the poll page.
 * branch_relaxation.ts turns a branch whose target is too far into the opposite branch over an unconditional one.
 */
import type { Allocation } from "../codegen/allocation.ts";
import { FIXUP, FunctionEmission, OUT_OF_LINE as SHARED } from "../codegen/emission.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { CodegenOptions } from "../codegen/codegen_options.ts";
import type { VCode } from "../codegen/vcode.ts";
import { FAULT_FRAME } from "./abi.ts";
import { Assembler } from "./encoding.ts";
import { X } from "./instructions.ts";

/**
 * Kinds of fixups, with the meaning of x, y, z, w. BRANCH: the word at the fixup is the branch, whose displacement
 * field has y bits at bit z. Its opposite differs in bit w.
 */
export const KIND = {
  ...FIXUP,
  /** The literal load at the fixup reads label x. */
  LITERAL: FIXUP.OWN,
  /** The ADR at the fixup gives the address of label x. */
  ADDRESS: 9,
} as const;

/** Kinds of out-of-line code. */
export const OUT_OF_LINE = {
  ...SHARED,
  /** x = label of a landing pad: exceptions of a call into another instance arrive here, 8 bytes below the frame. */
  CROSS_LANDING: SHARED.OWN,
} as const;

/** The access emitted last. */
export class LastAccess {
  /** Number of bytes and of fixups right after it; −1: there is none. */
  at = -1;
  fixups = 0;
  row = 0;
  t = 0;
  base = 0;
  /** Its displacement, in units of its size. */
  index = 0;
  trap = 0;
}

export class Emission extends FunctionEmission {
  readonly asm: Assembler;

  /** Label of the distance to the poll page, −1 until it is used. */
  poll = -1;

  /** The load or store emitted last (emit_pairs.ts). */
  readonly last: LastAccess = new LastAccess();
  /** Keys store-load-fwd and small-frame. */
  forwards = true;
  smallFrames = true;

  constructor(asm: Assembler = new Assembler(1 << 16)) {
    super(asm);
    this.asm = asm;
  }

  override begin(v: VCode, allocation: Allocation, options: CodegenOptions, code: MachineCode): void {
    this.beginFunction(v, allocation, options, code, options.elidesHomedFrames);
    // The return address included; 0: x30 has it.
    const bytes = allocation.slotCount * 8;
    this.frame = v.hasCalls || bytes > 0 || !this.elides ? (bytes + 8 + 15) & ~15 : 0;
    this.poll = -1;
    this.last.at = -1;
    this.forwards = options.forwardsLoads;
    this.smallFrames = options.smallFrames;
  }

  /** Jumps to `label` if condition `cc` holds. */
  branch(cc: number, label: number): void {
    this.fixup(KIND.BRANCH, label, 19, 5, 0);
    this.asm.rrrc(X.BCOND, 0, 0, 0, cc);
  }

  /** Jumps to `label` by row CBZ… or CBNZ… of register `register`. */
  branchZero(row: number, register: number, label: number): void {
    this.fixup(KIND.BRANCH, label, 19, 5, 24);
    this.asm.rrr(row, register, 0, 0);
  }

  /** Jumps to `label` by row TBZ or TBNZ on bit `bit` of register `register`. */
  branchBit(row: number, register: number, bit: number, label: number): void {
    this.fixup(KIND.BRANCH, label, 14, 5, 24);
    this.asm.rri(row, register, 0, 0, bit & 31);
    if (bit > 31) this.asm.buffer[this.asm.at - 1] |= 0x80;
  }

  /** adr register, label */
  address(register: number, label: number): void {
    this.fixup(KIND.ADDRESS, label, 0, 0, 0);
    this.asm.rrr(X.ADR, register, 0, 0);
  }

  /** Label of the word that holds the distance to the poll page. */
  pollWord(): number {
    if (this.poll < 0) this.poll = this.newLabel();
    return this.poll;
  }

  /** The position of a call just emitted is a return offset; `frame` includes the return address. */
  override callSite(at: number, frame: number, cross: number): void {
    this.recordCallSite(at, frame - 8, cross);
  }

  /** The instruction about to be emitted may fault with `code`. */
  faultSite(at: number, code: number): void {
    this.trapSite(at, code, this.frame + FAULT_FRAME);
  }

  /** The position is a trap site; `frame` includes the return address. */
  trapSite(at: number, code: number, frame: number): void {
    this.recordTrapSite(at, code, frame - 8);
  }

  /** Register number 0-31 of operand `o`. */
  register(o: number): number {
    return this.location[o] & 31;
  }
}
