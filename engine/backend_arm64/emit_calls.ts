/**
 * Emission of calls for arm64: the instructions that codegen/emit_calls.ts needs, calls into other instances, tail
 * calls, charges of fuel and polls.
 */
import { RELOC, STUB } from "../codegen/machine_code.ts";
import { CALL_OWN } from "../ir/ops.ts";
import { CONTEXT, MEMORY, RECORD, THREAD } from "../abi/context_layout.ts";
import { TRAP } from "../base/traps.ts";
import { RECORD_REGISTER } from "./abi.ts";
import { type Emission, KIND, OUT_OF_LINE } from "./emission.ts";
import { emitAt } from "./emit_row.ts";
import { X } from "./instructions.ts";
import { CC, P } from "./machine_ops.ts";
import { CONTEXT_REGISTER, FUEL, LINK, MEMORY_BASE, MEMORY_LENGTH, SCRATCH, SCRATCH2, SP, ZERO } from "./registers.ts";

/** Option of an extended operand: all 64 bits. */
const UXTX = 3;

/** Emits B or BL with a displacement that relocation fills in. */
export function relative(e: Emission, row: number, kind: number, target: number): void {
  e.fixup(KIND.RELOCATION, kind, target, 0, 0);
  e.asm.rrr(row, 0, 0, 0);
}

/** Loads memory 0 of the context into its registers; the length only when code of this module uses it. */
function reloadMemory(e: Emission, length: boolean): void {
  const at = e.options.memoriesOffset;
  emitAt(e, X.LDR_X_U, MEMORY_BASE, CONTEXT_REGISTER, at + MEMORY.BASE);
  if (length) emitAt(e, X.LDR_X_U, MEMORY_LENGTH, CONTEXT_REGISTER, at + MEMORY.LENGTH);
}

export function loadRecordField(e: Emission, to: number, field: number): void {
  emitAt(e, X.LDR_X_U, to, RECORD_REGISTER, field);
}

/** x17, x16 = code and context of the record. */
function loadRecord(e: Emission): void {
  e.asm.pair(X.LDP_X, SCRATCH2, SCRATCH, RECORD_REGISTER, RECORD.CODE >> 3);
}

/** Puts the address of the record that the context embeds for import `index` into the record register. */
export function loadImportRecord(e: Emission, index: number): void {
  e.asm.addConstant(RECORD_REGISTER, CONTEXT_REGISTER, e.options.importsOffset + index * RECORD.SIZE, SCRATCH);
}

/** Takes a frame of `frame` bytes, the return address in its uppermost word. */
export function takeFrame(e: Emission, frame: number): void {
  e.asm.pair(X.STP_PRE, ZERO, LINK, SP, -2);
  if (frame > 16) moveStack(e, 16 - frame);
}

/** sp += bytes; in the fewest instructions with the key small-frame, through x16 without. */
function moveStack(e: Emission, bytes: number): void {
  if (e.smallFrames) {
    e.options.counts.smallFrames++;
    e.asm.addConstant(SP, SP, bytes, SCRATCH);
    return;
  }
  e.asm.constant(SCRATCH, Math.abs(bytes), 0);
  e.asm.rrri(bytes < 0 ? X.SUB_E64 : X.ADD_E64, SP, SP, SCRATCH, 0, UXTX);
}

export function dropFrame(e: Emission): void {
  const { asm, frame } = e;
  if (frame === 0) return;
  if (frame > 16) moveStack(e, frame - 16);
  asm.pair(X.LDP_POST, ZERO, LINK, SP, 2);
}

/** Calls the trap stub of `code` for instruction `at`: its return offset is the trap site. */
export function callTrap(e: Emission, at: number, code: number, frame: number): void {
  // Without a frame the return address would be lost.
  if (frame === 0) takeFrame(e, 16);
  relative(e, X.BL, RELOC.STUB, STUB.TRAP + code);
  e.trapSite(at, code, frame === 0 ? 16 : frame);
}

/** Loads the record's code and context, and branches to `label` unless it belongs to the context. */
export function branchForeign(e: Emission, label: number): void {
  loadRecord(e);
  e.asm.rrr(X.SUBS64, ZERO, SCRATCH, CONTEXT_REGISTER);
  e.branch(CC.NE, label);
}

/**
 * Before a call into another instance: metered code stores its fuel to THREAD.FUEL, other code loads the register from
 * there, because the callee may be metered. Changes x16.
 */
function handFuelOver(e: Emission): void {
  emitAt(e, X.LDR_X_U, SCRATCH, CONTEXT_REGISTER, CONTEXT.THREAD);
  emitAt(e, e.options.fuel ? X.STR_X_U : X.LDR_X_U, FUEL, SCRATCH, THREAD.FUEL);
}

/**
 * After the call: the fuel is in the register if the callee, whose context is still in x28, is metered, else in
 * THREAD.FUEL. Moves it to the one of the two that this code uses.
 */
function takeFuelBack(e: Emission): void {
  const metered = e.options.fuel;
  const done = e.newLabel();
  emitAt(e, X.LDR_W_U, SCRATCH, CONTEXT_REGISTER, CONTEXT.METERED);
  e.branchZero(metered ? X.CBNZ32 : X.CBZ32, SCRATCH, done);
  emitAt(e, X.LDR_X_U, SCRATCH, CONTEXT_REGISTER, CONTEXT.THREAD);
  emitAt(e, metered ? X.LDR_X_U : X.STR_X_U, FUEL, SCRATCH, THREAD.FUEL);
  e.bind(done);
}

/**
 * `landing` as in Emission.landing: at the landing pad the stack has this function's frame, without the saved context.
 */
export function emitCrossCall(e: Emission, i: number, landing: number, back: number): void {
  const { asm } = e;
  handFuelOver(e);
  // The context is right above the return address that the callee saves; the word above it is padding.
  asm.pair(X.STP_PRE, CONTEXT_REGISTER, ZERO, SP, -2);
  loadRecordField(e, CONTEXT_REGISTER, RECORD.CONTEXT);
  reloadMemory(e, true);
  loadRecordField(e, SCRATCH, RECORD.CODE);
  asm.rrr(X.BLR, 0, SCRATCH, 0);
  e.landing = landing === 0 ? 0 : e.outOfLine(OUT_OF_LINE.CROSS_LANDING, i, landing - 1, 0) + 1;
  e.callSite(i, e.frame + 16, 1);
  e.landing = 0;
  takeFuelBack(e);
  asm.pair(X.LDP_POST, CONTEXT_REGISTER, ZERO, SP, 2);
  // The caller of a tail call may use explicit bounds even if this code does not, but then it is of this module, whose
  // own mode decides.
  reloadMemory(e, e.options.explicitBounds);
  e.jump(back);
}

export function emitTailCall(e: Emission, i: number, op: number): void {
  const { v, asm } = e;
  const target = v.imm[i];
  if (op === P.TAIL_CALL) {
    dropFrame(e);
    relative(e, X.B, RELOC.FUNCTION, target);
    return;
  }
  if (op === P.TAIL_CALL_IMPORT) loadImportRecord(e, target);
  else if (v.aux[i] !== 0) e.faultSite(i, v.aux[i]);
  if (op === P.TAIL_CALL_RECORD && (target & CALL_OWN) !== 0) {
    loadRecordField(e, SCRATCH2, RECORD.CODE);
    dropFrame(e);
    asm.rrr(X.BR, 0, SCRATCH2, 0);
    return;
  }
  loadRecordField(e, SCRATCH, RECORD.CONTEXT);
  asm.rrr(X.SUBS64, ZERO, SCRATCH, CONTEXT_REGISTER);
  e.branch(CC.NE, e.outOfLine(OUT_OF_LINE.CROSS_TAIL_CALL, i, 0, 0));
  dropFrame(e);
  loadRecordField(e, SCRATCH, RECORD.CODE);
  asm.rrr(X.BR, 0, SCRATCH, 0);
}

/**
 * A tail call into another instance needs a frame after all, to return to the caller's context (TAIL_FRAME); but not if
 * this function's own return address is such a frame's stub, since the context will be restored there.
 */
export function emitCrossTailCall(e: Emission): void {
  const { asm } = e;
  const there = e.newLabel();
  dropFrame(e);
  handFuelOver(e);
  emitAt(e, X.LDR_X_U, SCRATCH, CONTEXT_REGISTER, CONTEXT.TAIL_RETURN);
  asm.rrr(X.SUBS64, ZERO, LINK, SCRATCH);
  e.branch(CC.EQ, there);
  asm.pair(X.STP_PRE, CONTEXT_REGISTER, LINK, SP, -2);
  asm.move(1, LINK, SCRATCH);
  e.bind(there);
  loadRecordField(e, CONTEXT_REGISTER, RECORD.CONTEXT);
  reloadMemory(e, true);
  loadRecordField(e, SCRATCH, RECORD.CODE);
  asm.rrr(X.BR, 0, SCRATCH, 0);
}

/** Charges fuel. The out-of-line code undoes a charge that exceeds the fuel. */
export function emitCharge(e: Emission, i: number): void {
  const { asm, v } = e;
  const aux = v.aux[i];
  const units = v.imm[i] + v.disp[i];
  const to = (aux & 2) !== 0 ? ZERO : FUEL;
  if ((aux & 1) !== 0) asm.rrr(X.SUBS64, FUEL, FUEL, e.register(v.firstOperand[i]));
  else if (units < 4096) asm.rri(X.SUBS_I64, to, FUEL, units, 0);
  else {
    asm.constant(SCRATCH, units, 0);
    asm.rrr(X.SUBS64, to, FUEL, SCRATCH);
  }
  e.branch(CC.LT, e.outOfLine(OUT_OF_LINE.FUEL, i, 0, 0));
}

/** Restores the fuel as it was before the charge, minus the units that earlier regions owed (coalesce_fuel.ts). */
export function emitOutOfFuel(e: Emission, i: number): void {
  const { asm, v } = e;
  const aux = v.aux[i];
  if ((aux & 1) !== 0) asm.rrr(X.ADD64, FUEL, FUEL, e.register(v.firstOperand[i]));
  else if ((aux & 2) === 0) asm.addConstant(FUEL, FUEL, v.imm[i], SCRATCH);
  else if (v.disp[i] !== 0) asm.addConstant(FUEL, FUEL, -v.disp[i], SCRATCH);
  callTrap(e, i, TRAP.OUT_OF_FUEL, e.frame);
}

/**
 * Interruption point: reads the poll page of the code arena. The watchdog takes the page's access rights away, and the
 * fault is the trap. The distance to the page is data after the function, which is patched when the image is placed.
 */
export function emitPoll(e: Emission, i: number): void {
  const { asm } = e;
  const word = e.pollWord();
  e.address(SCRATCH, word);
  emitAt(e, X.LDRSW_U, SCRATCH2, SCRATCH, 0);
  asm.rrri(X.ADD64, SCRATCH, SCRATCH, SCRATCH2, 0, 0);
  e.faultSite(i, TRAP.INTERRUPTED);
  // The displacement counts from the end of its word.
  emitAt(e, X.LDR_W_U, ZERO, SCRATCH, 4);
  // The memory may grow while the guest is parked here, and resuming restores the old length to the register.
  if (e.options.explicitBounds) {
    emitAt(e, X.LDR_X_U, MEMORY_LENGTH, CONTEXT_REGISTER, e.options.memoriesOffset + MEMORY.LENGTH);
  }
}
