/**
 * Building blocks of code without VCode: stubs, thunks, native builtins. A StubCode is an Emission whose bytes go to
 * the image it is given, with short methods for the instruction shapes that such code uses.
 */
import { BARE_CONTEXT, NO_ALLOCATION, NO_VCODE } from "../codegen/bare_context.ts";
import { codegenOptions } from "../codegen/codegen_options.ts";
import { MachineCode } from "../codegen/machine_code.ts";
import type { CodegenContext } from "../codegen/target.ts";
import { CONTEXT, MEMORY, THREAD } from "../abi/context_layout.ts";
import { Emission, KIND } from "./emission.ts";
import { emitConstant, emitMemory, emitRegister } from "./encoding.ts";
import { finish } from "./branch_relaxation.ts";
import { needRow } from "./expand_rows.ts";
import { ROW_VEX_TWIN, X } from "./instructions.ts";
import { CC } from "./machine_ops.ts";
import { CONTEXT_REGISTER, FUEL, MEMORY_BASE, MEMORY_LENGTH, R12, R13, R14, R15, RBP, RBX, RSP } from "./registers.ts";

/** Callee-saved registers of the host's calling convention (System V), in the order they are pushed. */
const HOST_SAVED = [RBX, RBP, R12, R13, R14, R15];

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

  /** row reg, rm */
  rr(row: number, reg: number, rm: number): void {
    this.asm.reserve(64);
    emitRegister(this.asm, row, reg, rm, 0, 0, 0);
  }

  /** row rm, imm */
  ri(row: number, rm: number, imm: number): void {
    this.asm.reserve(64);
    emitRegister(this.asm, row, 0, rm, 0, imm, 0);
  }

  /** row reg, [base + disp]; for rows with an opcode extension `reg` does not matter. */
  rm(row: number, reg: number, base: number, disp: number, imm = 0): void {
    this.asm.reserve(64);
    emitMemory(this.asm, row, reg, this.asm.based(base, disp), imm);
  }

  /** row reg, [base + index + disp] */
  rx(row: number, reg: number, base: number, index: number, disp: number): void {
    this.asm.reserve(64);
    emitMemory(this.asm, row, reg, this.asm.indexed(base, index, 0, disp));
  }

  /** The VEX form of a row where the image is compiled for AVX. */
  vexRow(row: number): number {
    needRow(row);
    return this.avx && ROW_VEX_TWIN[row] !== 0 ? ROW_VEX_TWIN[row] : row;
  }

  /** d = d op x on vector registers. */
  vectorTied(row: number, d: number, x: number): void {
    this.asm.reserve(64);
    emitRegister(this.asm, this.vexRow(row), d, x, d, 0, 0);
  }

  /** A row without operands. */
  op(row: number): void {
    this.rr(row, 0, 0);
  }

  push(register: number): void {
    this.rr(X.PUSH, register, 0);
  }

  pop(register: number): void {
    this.rr(X.POP, register, 0);
  }

  /** mov register, value */
  constant(register: number, value: bigint): void {
    this.asm.reserve(64);
    emitConstant(this.asm, register, Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
  }

  /** lea register, [label] */
  address(register: number, label: number): void {
    this.asm.reserve(64);
    emitMemory(this.asm, X.LEA64, register, this.asm.ripRelative());
    const at = this.asm.ripAt;
    this.fixupFrom(at, KIND.RELATIVE, label, this.asm.at - at, 0, 0);
  }

  /** jmp to a stub of the image, through a relocation. */
  jumpStub(kind: number, target: number): void {
    this.op(X.JMP32);
    this.fixupFrom(this.asm.at - 4, KIND.RELOCATION, kind, target, 0, 0);
  }

  /** call of a stub of the image, through a relocation. */
  callStub(kind: number, target: number): void {
    this.op(X.CALL32);
    this.fixupFrom(this.asm.at - 4, KIND.RELOCATION, kind, target, 0, 0);
  }

  /** Saves the host's callee-saved registers and leaves its stack pointer in the thread state at `thread`. */
  saveHost(thread: number): void {
    for (const register of HOST_SAVED) this.push(register);
    this.rm(X.MOV64_S, RSP, thread, THREAD.HOST_SP);
  }

  /** Back to the host's stack and caller; `thread` holds the thread state, eax (or the result register) the result. */
  returnToHost(thread: number): void {
    this.rm(X.MOV64_L, RSP, thread, THREAD.HOST_SP);
    for (const register of HOST_SAVED.toReversed()) this.pop(register);
    this.op(X.RET);
  }

  /** Loads the fuel register from the thread state at `thread`; code that is not metered ignores it. */
  loadFuel(thread: number): void {
    this.rm(X.MOV64_L, FUEL, thread, THREAD.FUEL);
  }

  /**
   * Stores the fuel register to the thread state at `thread` if the code of the context in r15 is metered. Changes the
   * flags.
   */
  storeFuel(thread: number): void {
    const none = this.newLabel();
    this.rm(X.CMP32_I, 0, CONTEXT_REGISTER, CONTEXT.METERED, 0);
    this.branch(CC.E, none);
    this.rm(X.MOV64_S, FUEL, thread, THREAD.FUEL);
    this.bind(none);
  }

  /** Loads the registers of memory 0 from the context in r15. */
  loadMemory(): void {
    const at = BARE_CONTEXT.layout.memoriesOffset;
    this.rm(X.MOV64_L, MEMORY_BASE, CONTEXT_REGISTER, at + MEMORY.BASE);
    this.rm(X.MOV64_L, MEMORY_LENGTH, CONTEXT_REGISTER, at + MEMORY.LENGTH);
  }
}
