/**
 * Building blocks of code without VCode: stubs, thunks, native builtins. A StubCode is an Emission whose words go to
 * the image it is given, with short methods for the instruction shapes that such code uses.
 */
import { BARE_CONTEXT, NO_ALLOCATION, NO_VCODE } from "../codegen/bare_context.ts";
import { codegenOptions } from "../codegen/codegen_options.ts";
import { MachineCode } from "../codegen/machine_code.ts";
import type { CodegenContext } from "../codegen/target.ts";
import { CONTEXT, MEMORY, THREAD } from "../abi/context_layout.ts";
import { Emission, KIND } from "./emission.ts";
import { emitAt } from "./emit_row.ts";
import { finish } from "./branch_relaxation.ts";
import { X } from "./instructions.ts";
import { CONTEXT_REGISTER, FUEL, LINK, MEMORY_BASE, MEMORY_LENGTH, SCRATCH, SP, ZERO } from "./registers.ts";

/**
 * Bytes that `saveHost` takes: x19-x30 and d8-d15, the callee-saved registers of the host's calling convention
 * (AAPCS64).
 */
const HOST_SAVED = 160;

export class StubCode extends Emission {
  readonly context: CodegenContext;
  /** Offset of the code in the image. */
  start: number;

  constructor(context: CodegenContext = BARE_CONTEXT, code: MachineCode = new MachineCode(0, 0)) {
    super();
    this.context = context;
    this.begin(NO_VCODE, NO_ALLOCATION, codegenOptions(context), code);
    // All labels are the code's own.
    this.labelCount = 0;
    this.start = code.length;
  }

  /** Moves the code into the image. */
  finish(): void {
    finish(this);
  }

  /** row d, n, m */
  rrr(row: number, d: number, n: number, m: number): void {
    this.asm.reserve(64);
    this.asm.rrr(row, d, n, m);
  }

  /** row d, n and the fields i and s */
  rri(row: number, d: number, n: number, i: number, s = 0): void {
    this.asm.reserve(64);
    this.asm.rri(row, d, n, i, s);
  }

  /** Load or store of t at [base + disp]. */
  at(row: number, t: number, base: number, disp: number): void {
    this.asm.reserve(64);
    emitAt(this, row, t, base, disp);
  }

  /** mov d, n (64 bits) */
  move(d: number, n: number): void {
    this.asm.reserve(64);
    this.asm.move(1, d, n);
  }

  /** d = n + value; either may be the stack pointer. */
  add(d: number, n: number, value: number): void {
    this.asm.reserve(64);
    this.asm.addConstant(d, n, value, SCRATCH);
  }

  /** mov register, value */
  constant(register: number, value: bigint): void {
    this.asm.reserve(64);
    this.asm.constant(register, Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
  }

  /** cmp n, value (64 bits, value below 4096) */
  compare(n: number, value: number): void {
    this.rri(X.SUBS_I64, ZERO, n, value);
  }

  /** row of a pair at [n + 8 × i] */
  pair(row: number, d: number, a: number, n: number, i: number): void {
    this.asm.reserve(64);
    this.asm.pair(row, d, a, n, i);
  }

  ret(): void {
    this.rrr(X.RET, 0, LINK, 0);
  }

  /** Aligns the following code. */
  align(): void {
    this.fixup(KIND.ALIGN, 16, 1, 0, 0);
  }

  /** b to a stub of the image, through a relocation. */
  jumpStub(kind: number, target: number): void {
    this.fixup(KIND.RELOCATION, kind, target, 0, 0);
    this.rrr(X.B, 0, 0, 0);
  }

  /** bl to a stub of the image, through a relocation. */
  callStub(kind: number, target: number): void {
    this.fixup(KIND.RELOCATION, kind, target, 0, 0);
    this.rrr(X.BL, 0, 0, 0);
  }

  /**
   * Saves the host's callee-saved registers and leaves its stack pointer in the thread state at `thread`. Changes x16.
   */
  saveHost(thread: number): void {
    this.add(SP, SP, -HOST_SAVED);
    for (let k = 0; k < 6; k++) this.pair(X.STP_X, 19 + 2 * k, 20 + 2 * k, SP, 2 * k);
    for (let k = 0; k < 4; k++) this.pair(X.STP_D, 8 + 2 * k, 9 + 2 * k, SP, 12 + 2 * k);
    this.add(SCRATCH, SP, 0);
    this.at(X.STR_X_U, SCRATCH, thread, THREAD.HOST_SP);
  }

  /** Back to the host's stack and caller; `thread` holds the thread state, x0 or v0 the result. Changes x16. */
  returnToHost(thread: number): void {
    this.at(X.LDR_X_U, SCRATCH, thread, THREAD.HOST_SP);
    this.add(SP, SCRATCH, 0);
    for (let k = 0; k < 6; k++) this.pair(X.LDP_X, 19 + 2 * k, 20 + 2 * k, SP, 2 * k);
    for (let k = 0; k < 4; k++) this.pair(X.LDP_D, 8 + 2 * k, 9 + 2 * k, SP, 12 + 2 * k);
    this.add(SP, SP, HOST_SAVED);
    this.ret();
  }

  /** sp = GUEST_SP of the thread, aligned. Changes x16. */
  enterStack(thread: number): void {
    this.at(X.LDR_X_U, SCRATCH, thread, THREAD.GUEST_SP);
    // and sp, x16, #~15
    this.rri(X.AND_I64, SP, SCRATCH, (1 << 12) | (60 << 6) | 59);
  }

  /** Loads the fuel register from the thread state at `thread`; code that is not metered ignores it. */
  loadFuel(thread: number): void {
    this.at(X.LDR_X_U, FUEL, thread, THREAD.FUEL);
  }

  /**
   * Stores the fuel register to the thread state at `thread` if the code of the context in x28 is metered. Changes x16.
   */
  storeFuel(thread: number): void {
    const none = this.newLabel();
    this.at(X.LDR_W_U, SCRATCH, CONTEXT_REGISTER, CONTEXT.METERED);
    this.branchZero(X.CBZ32, SCRATCH, none);
    this.at(X.STR_X_U, FUEL, thread, THREAD.FUEL);
    this.bind(none);
  }

  /** Loads the registers of memory 0 from the context in x28. */
  loadMemory(): void {
    const at = BARE_CONTEXT.layout.memoriesOffset;
    this.at(X.LDR_X_U, MEMORY_BASE, CONTEXT_REGISTER, at + MEMORY.BASE);
    this.at(X.LDR_X_U, MEMORY_LENGTH, CONTEXT_REGISTER, at + MEMORY.LENGTH);
  }
}
