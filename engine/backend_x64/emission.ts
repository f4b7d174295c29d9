/**
 * Code of one x64 function during emission: codegen/emission.ts, whose buffer holds bytes without branches, plus the
 * parts specific to x64: fixups of displacements, jump tables, and reuse of flags.
 */
import type { Allocation } from "../codegen/allocation.ts";
import { FIXUP, FunctionEmission, OUT_OF_LINE as SHARED } from "../codegen/emission.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { CodegenOptions } from "../codegen/codegen_options.ts";
import type { VCode } from "../codegen/vcode.ts";
import { Assembler } from "./encoding.ts";

/** Kinds of fixups, with the meaning of x, y, z, w. BRANCH: y = condition. */
export const KIND = {
  ...FIXUP,
  /**
   * The 32-bit word at the fixup is label x minus the end of its instruction, which is y bytes after the word's start.
   */
  RELATIVE: FIXUP.OWN,
  /** The same for offset x of the image. */
  IMAGE: 9,
} as const;

/** Kinds of out-of-line code. */
export const OUT_OF_LINE = {
  ...SHARED,
  /** Slow path of a float operation `at`. */
  EXTREMUM: SHARED.OWN,
  TRUNCATION: SHARED.OWN + 1,
  CONVERSION: SHARED.OWN + 2,
  CANONICAL_NAN: SHARED.OWN + 3,
} as const;

export class Emission extends FunctionEmission {
  readonly asm: Assembler;
  avx = false;
  /**
   * Flags set by the last instruction: those of register `flagsRegister` (its width `flagsWide`) compared with 0, valid
   * at byte position `flagsAt` as long as no fixup has been added; `flagsExact` if overflow and carry are 0, as after a
   * test.
   */
  reuseFlags = true;
  flagsAt = -1;
  flagsFixups = 0;
  flagsRegister = 0;
  flagsWide = 0;
  flagsExact = false;

  /** Jump tables: label and first edge position in `tableTargets`. */
  tableLabel: number[] = [];
  tableFirst: number[] = [];
  tableTargets: number[] = [];

  constructor(asm: Assembler = new Assembler(1 << 16)) {
    super(asm);
    this.asm = asm;
  }

  override begin(v: VCode, allocation: Allocation, options: CodegenOptions, code: MachineCode): void {
    this.beginFunction(v, allocation, options, code, options.elidesFrames);
    this.avx = options.avx;
    this.reuseFlags = options.reusesFlags;
    // From rsp to the return address.
    this.frame = allocation.slotOffset(allocation.slotCount);
    this.flagsAt = -1;
    this.tableLabel.length = 0;
    this.tableFirst.length = 0;
    this.tableTargets.length = 0;
  }

  /** Notes that the instruction just emitted set the flags by its result in general register `register`. */
  flagsOf(register: number, wide: number, exact: boolean): void {
    this.flagsAt = this.asm.at;
    this.flagsFixups = this.fixupCount;
    this.flagsRegister = register;
    this.flagsWide = wide;
    this.flagsExact = exact;
  }

  /** Jumps to `label` if hardware condition `cc` holds. */
  branch(cc: number, label: number): void {
    this.fixup(KIND.BRANCH, label, cc, 0, 0);
  }

  /** The position of a call just emitted is a return offset. */
  override callSite(at: number, frame: number, cross: number): void {
    this.recordCallSite(at, frame, cross);
  }

  /** The instruction about to be emitted may fault with `code`. */
  trapSite(at: number, code: number, frame: number): void {
    this.recordTrapSite(at, code, frame);
  }

  /** Register number 0-15 of operand `o`. */
  register(o: number): number {
    return this.location[o] & 15;
  }
}
