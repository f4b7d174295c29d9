/**
 * Emission of calls for x64: the instructions that codegen/emit_calls.ts needs, calls into other instances, tail calls,
 * charges of fuel and polls.
 */
import { CONTEXT, MEMORY, RECORD, THREAD } from "../abi/context_layout.ts";
import { RELOC, STUB } from "../codegen/machine_code.ts";
import { TRAP } from "../base/traps.ts";
import { type Emission, KIND, OUT_OF_LINE } from "./emission.ts";
import { emitMemory, emitRegister } from "./encoding.ts";
import { X } from "./instructions.ts";
import { CC, P } from "./machine_ops.ts";
import { CONTEXT_REGISTER, FUEL, MEMORY_BASE, MEMORY_LENGTH, RSP, SCRATCH } from "./registers.ts";
import { RECORD_REGISTER } from "./abi.ts";
import { ri, rm, rr } from "./emit_row.ts";

/** Emits an opcode with a 32-bit displacement that relocation fills in. */
export function relative(e: Emission, row: number, kind: number, target: number): void {
  emitRegister(e.asm, row, 0, 0, 0, 0, 0);
  e.fixupFrom(e.asm.at - 4, KIND.RELOCATION, kind, target, 0, 0);
}

/** Loads memory 0 of the context into its registers; the length only when code of this module uses it. */
function reloadMemory(e: Emission, length: boolean): void {
  const at = e.options.memoriesOffset;
  rm(e, X.MOV64_L, MEMORY_BASE, CONTEXT_REGISTER, at + MEMORY.BASE);
  if (length) rm(e, X.MOV64_L, MEMORY_LENGTH, CONTEXT_REGISTER, at + MEMORY.LENGTH);
}

export function dropFrame(e: Emission): void {
  if (e.frame !== 0) ri(e, X.ADD64_I, RSP, e.frame);
}

/** Calls the trap stub of `code` for instruction `at`: its return offset is the trap site. */
export function callTrap(e: Emission, at: number, code: number, frame: number): void {
  relative(e, X.CALL32, RELOC.STUB, STUB.TRAP + code);
  e.trapSite(at, code, frame);
}

/** Makes label `after` the return address of the jump that follows. */
export function returnTo(e: Emission, after: number): void {
  leaLabel(e, SCRATCH, after);
  emitRegister(e.asm, X.PUSH, SCRATCH, 0, 0, 0, 0);
}

/** Puts the address of the record that the context embeds for import `index` into the record register. */
export function loadImportRecord(e: Emission, index: number): void {
  const at = e.options.importsOffset + index * RECORD.SIZE;
  rm(e, X.LEA64, RECORD_REGISTER, CONTEXT_REGISTER, at);
}

/** Branches to `label` unless the record belongs to the context. */
export function branchForeign(e: Emission, label: number): void {
  rm(e, X.CMP64_M, CONTEXT_REGISTER, RECORD_REGISTER, RECORD.CONTEXT);
  e.branch(CC.NE, label);
}

/** Calls, or jumps to, the record's code by `row`. */
export function throughRecord(e: Emission, row: number): void {
  emitMemory(e.asm, row, 0, e.asm.based(RECORD_REGISTER, RECORD.CODE));
}

/**
 * Before a call into another instance: metered code stores its fuel to THREAD.FUEL, other code loads the register from
 * there, because the callee may be metered. Changes r11.
 */
function handFuelOver(e: Emission): void {
  rm(e, X.MOV64_L, SCRATCH, CONTEXT_REGISTER, CONTEXT.THREAD);
  rm(e, e.options.fuel ? X.MOV64_S : X.MOV64_L, FUEL, SCRATCH, THREAD.FUEL);
}

/**
 * After the call: the fuel is in the register if the callee, whose context is still in r15, is metered, else in
 * THREAD.FUEL. Moves it to the one of the two that this code uses.
 */
function takeFuelBack(e: Emission): void {
  const metered = e.options.fuel;
  const done = e.newLabel();
  rm(e, X.CMP32_I, 0, CONTEXT_REGISTER, CONTEXT.METERED);
  e.branch(metered ? CC.NE : CC.E, done);
  rm(e, X.MOV64_L, SCRATCH, CONTEXT_REGISTER, CONTEXT.THREAD);
  rm(e, metered ? X.MOV64_L : X.MOV64_S, FUEL, SCRATCH, THREAD.FUEL);
  e.bind(done);
}

/** The record's own context and memory around the call; r10 holds the record. */
function switchContext(e: Emission): void {
  handFuelOver(e);
  emitRegister(e.asm, X.PUSH, CONTEXT_REGISTER, 0, 0, 0, 0);
  rm(e, X.MOV64_L, CONTEXT_REGISTER, RECORD_REGISTER, RECORD.CONTEXT);
  reloadMemory(e, true);
  throughRecord(e, X.CALL_M);
}

function restoreContext(e: Emission): void {
  takeFuelBack(e);
  emitRegister(e.asm, X.POP, CONTEXT_REGISTER, 0, 0, 0, 0);
  // The caller of a tail call may use explicit bounds even if this code does not, but then it is of this module, whose
  // own mode decides.
  reloadMemory(e, e.options.explicitBounds);
}

/**
 * `landing` as in Emission.landing: at the landing pad the stack has this function's frame, without the pushed context.
 */
export function emitCrossCall(e: Emission, i: number, landing: number, back: number): void {
  switchContext(e);
  e.landing = landing;
  e.callSite(i, e.frame + 8, 1);
  e.landing = 0;
  restoreContext(e);
  e.jump(back);
}

export function emitTailCall(e: Emission, i: number, op: number): void {
  const { v } = e;
  const target = v.imm[i];
  if (op === P.TAIL_CALL) {
    dropFrame(e);
    relative(e, X.JMP32, RELOC.FUNCTION, target);
    return;
  }
  if (op === P.TAIL_CALL_IMPORT) {
    loadImportRecord(e, target);
  } else if (v.aux[i] !== 0) e.trapSite(i, v.aux[i], e.frame);
  branchForeign(e, e.outOfLine(OUT_OF_LINE.CROSS_TAIL_CALL, i, 0, 0));
  dropFrame(e);
  throughRecord(e, X.JMP_M);
}

/**
 * A tail call into another instance needs a frame after all, to return to the caller's context (TAIL_FRAME); but not if
 * this function's own return address is such a frame's, since the context will be restored there.
 */
export function emitCrossTailCall(e: Emission): void {
  const there = e.newLabel();
  dropFrame(e);
  handFuelOver(e);
  rm(e, X.MOV64_L, SCRATCH, CONTEXT_REGISTER, CONTEXT.TAIL_RETURN);
  emitMemory(e.asm, X.CMP64_R, SCRATCH, e.asm.based(RSP));
  e.branch(CC.E, there);
  emitRegister(e.asm, X.PUSH, CONTEXT_REGISTER, 0, 0, 0, 0);
  emitRegister(e.asm, X.PUSH, SCRATCH, 0, 0, 0, 0);
  e.bind(there);
  rm(e, X.MOV64_L, CONTEXT_REGISTER, RECORD_REGISTER, RECORD.CONTEXT);
  reloadMemory(e, true);
  throughRecord(e, X.JMP_M);
}

/**
 * Charges fuel: one instruction and a branch, which processors fuse. The out-of-line code undoes a charge that exceeds
 * the fuel.
 */
export function emitCharge(e: Emission, i: number): void {
  const { v } = e;
  const aux = v.aux[i];
  const row = (aux & 2) !== 0 ? X.CMP64_I : X.SUB64_I;
  if ((aux & 1) !== 0) rr(e, X.SUB64_R, FUEL, e.register(v.firstOperand[i]));
  else ri(e, row, FUEL, v.imm[i] + v.disp[i]);
  e.branch(CC.L, e.outOfLine(OUT_OF_LINE.FUEL, i, 0, 0));
}

/** Restores the fuel as it was before the charge, minus the units that earlier regions owed (coalesce_fuel.ts). */
export function emitOutOfFuel(e: Emission, i: number): void {
  const { v } = e;
  const aux = v.aux[i];
  if ((aux & 1) !== 0) rr(e, X.ADD64_R, FUEL, e.register(v.firstOperand[i]));
  else if ((aux & 2) === 0) ri(e, X.ADD64_I, FUEL, v.imm[i]);
  else if (v.disp[i] !== 0) ri(e, X.SUB64_I, FUEL, v.disp[i]);
  callTrap(e, i, TRAP.OUT_OF_FUEL, e.frame);
}

/**
 * Interruption point: reads the poll page of the code arena, one instruction without flags or registers of its own. The
 * watchdog takes the page's access rights away, and the fault is the trap.
 */
export function emitPoll(e: Emission, i: number): void {
  e.trapSite(i, TRAP.INTERRUPTED, e.frame);
  emitMemory(e.asm, X.MOV32_L, SCRATCH, e.asm.ripRelative());
  e.fixupFrom(e.asm.ripAt, KIND.RELOCATION, RELOC.POLL_PAGE, 0, 0, 0);
  // The memory may grow while the guest is parked here, and resuming restores the old length to the register.
  if (e.options.explicitBounds) {
    rm(e, X.MOV64_L, MEMORY_LENGTH, CONTEXT_REGISTER, e.options.memoriesOffset + MEMORY.LENGTH);
  }
}

/** `lea reg, [label]` relative to the instruction pointer. */
export function leaLabel(e: Emission, reg: number, label: number): void {
  emitMemory(e.asm, X.LEA64, reg, e.asm.ripRelative());
  const at = e.asm.ripAt;
  e.fixupFrom(at, KIND.RELATIVE, label, e.asm.at - at, 0, 0);
}
