/**
 * The process stubs: machine code that a process needs once, for entering and resuming guest code, leaving it by a
 * trap, and handling hardware faults. Position-independent; the host copies it into executable memory and fills the
 * fault words.
 *
 *     call        save host registers · HOST_SP = sp · sp = GUEST_SP · x28, x26, x27 from CALL_CONTEXT
 *                 call CALL_THUNK · DONE
 *     resume      the same, but loads the state of the parked call (abi.ts) and continues there
 *     tailReturn  restores the context of the caller of a tail call into another instance, and returns to that caller
 *     trapExit    entered by a jump with the code in w0 and the trap's return address in x30
 *     fault       in a signal frame: records program counter, stack pointer and address, and continues at the landing
 *     poll        where the fault of a poll continues: saves every register on the guest stack and parks, so that the
 *                 guest can continue
 *
 * x28 always holds a context with a thread while guest code runs, so both exits find the thread state through it.
 */
import type { ProcessStubs } from "../codegen/target.ts";
import { CONTEXT, FAULT_WORDS, OLD_HANDLERS, PARKED, STATUS, THREAD } from "../abi/context_layout.ts";
import { FAULT_FRAME } from "./abi.ts";
import { assembleProcessStubs } from "../codegen/process_stubs.ts";
import { X } from "./instructions.ts";
import { CC } from "./machine_ops.ts";
import { emitCacheMaintenance } from "./native_builtins.ts";
import { emitPark } from "./park.ts";
import { POLL_FRAME, POLL_GENERAL, POLL_LINK, POLL_PAIRS, POLL_VECTORS } from "./poll_frame.ts";
import { CONTEXT_REGISTER, LINK, SCRATCH, SCRATCH2, SP, THREAD_REGISTER, ZERO } from "./registers.ts";
import { StubCode } from "./stub_code.ts";

/** Offsets in siginfo and in the saved registers that the handler reads. */
interface SignalLayout {
  /** Offset of si_addr. */
  address: number;
  /** The ucontext holds a pointer to the registers at this offset, or, if 0, the registers themselves. */
  registers: number;
  pc: number;
  sp: number;
  x28: number;
  x30: number;
  /** Offset of the flags word whose lowest bit says that pc is not signed; undefined where there is none. */
  flags?: number;
}

/** Layouts by operating system. */
export const SIGNALS: Readonly<Record<string, SignalLayout>> = {
  // ucontext: flags, link, stack (40 bytes), mask (128); sigcontext is aligned to 16: fault_address 176, regs[31] 184,
  // sp, pc.
  linux: { address: 16, registers: 0, pc: 440, sp: 432, x28: 184 + 28 * 8, x30: 184 + 30 * 8 },
  // ucontext.uc_mcontext is a pointer; mcontext64: 16 bytes of exception state, then x0…x28 fp lr sp pc, cpsr, flags.
  darwin: { address: 24, registers: 48, pc: 272, sp: 264, x28: 16 + 28 * 8, x30: 256, flags: 284 },
};

/** log2 of the least size of a page; polls read its first word. */
const POLL_PAGE_SHIFT = 12;

const SIGFPE = 8;
const SIGSEGV = 11;
const SYS_RT_SIGACTION = 134;

/** Builds the stubs for `os` "linux" or "darwin". */
export function buildProcessStubs(os: string): ProcessStubs {
  const layout = SIGNALS[os];
  if (layout === undefined) throw new RangeError(`No arm64 process stubs for operating system "${os}"`);
  return assembleProcessStubs(new StubCode(), {
    wordAlignment: 16,
    unwinds: false,
    call: emitCallStub,
    resume: emitResumeStub,
    trapExit: emitTrapExit,
    tailReturn: emitTailReturn,
    pollLanding: emitPollLanding,
    faultHandler: (s, label, words, poll) => emitFaultHandler(s, label, words, poll, layout, os),
  });
}

/** A C function void (first, end) that makes freshly written code visible to instruction fetch. */
export function buildCacheMaintenance(): Uint8Array {
  const s = new StubCode();
  emitCacheMaintenance(s);
  s.finish();
  return s.code.bytes.slice(0, s.code.length);
}

function emitCallStub(s: StubCode, label: number): void {
  s.bind(label);
  s.move(THREAD_REGISTER, 0);
  s.saveHost(THREAD_REGISTER);
  s.enterStack(THREAD_REGISTER);
  s.at(X.LDR_X_U, CONTEXT_REGISTER, THREAD_REGISTER, THREAD.CALL_CONTEXT);
  s.loadMemory();
  s.loadFuel(THREAD_REGISTER);
  s.at(X.LDR_X_U, SCRATCH, THREAD_REGISTER, THREAD.CALL_THUNK);
  s.rrr(X.BLR, 0, SCRATCH, 0);
  s.at(X.LDR_X_U, THREAD_REGISTER, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.storeFuel(THREAD_REGISTER);
  s.move(0, ZERO);
  s.at(X.STR_W_U, 0, THREAD_REGISTER, THREAD.STATUS);
  s.returnToHost(THREAD_REGISTER);
}

function emitResumeStub(s: StubCode, label: number): void {
  s.align();
  s.bind(label);
  s.move(THREAD_REGISTER, 0);
  s.saveHost(THREAD_REGISTER);
  s.at(X.LDR_X_U, 10, THREAD_REGISTER, THREAD.GUEST_SP);
  s.at(X.LDR_X_U, 11, 10, PARKED.ENTRY_SP);
  s.at(X.STR_X_U, 11, THREAD_REGISTER, THREAD.GUEST_SP);
  s.at(X.LDR_X_U, CONTEXT_REGISTER, 10, PARKED.CONTEXT);
  s.at(X.LDR_X_U, 11, 10, PARKED.RESUME);
  s.add(SP, 10, PARKED.FRAME);
  s.loadMemory();
  s.loadFuel(THREAD_REGISTER);
  s.rrr(X.BR, 0, 11, 0);
}

/** Results are in registers or in the overflow buffer of the thread: nothing here touches them. */
function emitTailReturn(s: StubCode, label: number): void {
  s.align();
  s.bind(label);
  s.at(X.LDR_X_U, THREAD_REGISTER, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.storeFuel(THREAD_REGISTER);
  s.pair(X.LDP_POST, CONTEXT_REGISTER, LINK, SP, 2);
  s.loadMemory();
  s.loadFuel(THREAD_REGISTER);
  s.ret();
}

function emitTrapExit(s: StubCode, label: number, landing: number): void {
  const leave = s.newLabel();
  s.align();
  s.bind(label);
  s.at(X.LDR_X_U, THREAD_REGISTER, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.at(X.STR_X_U, LINK, THREAD_REGISTER, THREAD.TRAP_PC);
  s.add(SCRATCH, SP, 0);
  s.at(X.STR_X_U, SCRATCH, THREAD_REGISTER, THREAD.TRAP_SP);
  s.at(X.STR_X_U, ZERO, THREAD_REGISTER, THREAD.FAULT_ADDRESS);
  s.at(X.STR_W_U, 0, THREAD_REGISTER, THREAD.TRAP_CODE);
  s.jump(leave);
  s.bind(landing);
  s.at(X.LDR_X_U, THREAD_REGISTER, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.at(X.STR_W_U, ZERO, THREAD_REGISTER, THREAD.TRAP_CODE);
  s.bind(leave);
  s.at(X.STR_X_U, CONTEXT_REGISTER, THREAD_REGISTER, THREAD.TRAP_CONTEXT);
  s.storeFuel(THREAD_REGISTER);
  s.constant(0, BigInt(STATUS.TRAP));
  s.at(X.STR_W_U, 0, THREAD_REGISTER, THREAD.STATUS);
  s.returnToHost(THREAD_REGISTER);
}

/** Stores or loads the registers of a poll; x17 points to the frame. */
function pollRegisters(s: StubCode, vectors: number, general: number): void {
  for (let k = 0; k < POLL_VECTORS; k += 2) s.pair(vectors, k, k + 1, SCRATCH2, k);
  s.add(SCRATCH2, SCRATCH2, POLL_PAIRS * 8);
  for (let k = 0; k < POLL_GENERAL.length; k += 2) {
    s.pair(general, POLL_GENERAL[k], POLL_GENERAL[k + 1] ?? ZERO, SCRATCH2, k);
  }
}

/**
 * Parks in the middle of a function; resuming returns to the poll itself, which reads its page again. x17 is free at a
 * poll.
 */
function emitPollLanding(s: StubCode, label: number): void {
  const after = s.newLabel();
  s.align();
  s.bind(label);
  s.add(SP, SP, -POLL_FRAME);
  s.add(SCRATCH2, SP, 0);
  pollRegisters(s, X.STP_Q, X.STP_X);
  s.at(X.LDR_X_U, THREAD_REGISTER, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.at(X.LDR_X_U, SCRATCH2, THREAD_REGISTER, THREAD.TRAP_PC);
  s.at(X.STR_X_U, LINK, SP, POLL_LINK * 8);
  s.at(X.STR_X_U, SCRATCH2, SP, POLL_LINK * 8 + 8);
  s.address(SCRATCH2, after);
  s.constant(0, BigInt(STATUS.POLL));
  emitPark(s);
  s.bind(after);
  s.add(SCRATCH2, SP, 0);
  pollRegisters(s, X.LDP_Q, X.LDP_X);
  s.at(X.LDR_X_U, LINK, SP, POLL_LINK * 8);
  const unmetered = s.newLabel();
  s.at(X.LDR_W_U, SCRATCH2, CONTEXT_REGISTER, CONTEXT.METERED);
  s.branchZero(X.CBZ32, SCRATCH2, unmetered);
  s.at(X.LDR_X_U, SCRATCH2, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.loadFuel(SCRATCH2);
  s.bind(unmetered);
  s.at(X.LDR_X_U, SCRATCH2, SP, POLL_LINK * 8 + 8);
  s.add(SP, SP, POLL_FRAME);
  s.rrr(X.BR, 0, SCRATCH2, 0);
}

/** void handler(int signal: w0, siginfo: x1, ucontext: x2) */
function emitFaultHandler(
  s: StubCode,
  label: number,
  words: number,
  poll: number,
  layout: SignalLayout,
  os: string,
): void {
  const land = s.newLabel();
  const chain = s.newLabel();
  const known = s.newLabel();
  const low = s.newLabel();
  s.align();
  s.bind(label);
  if (layout.registers !== 0) s.at(X.LDR_X_U, 10, 2, layout.registers);
  else s.move(10, 2);
  s.at(X.LDR_X_U, 11, 10, layout.pc);
  s.address(12, words);
  s.at(X.LDR_X_U, 13, 12, FAULT_WORDS.START);
  s.rrr(X.SUBS64, ZERO, 11, 13);
  s.branch(CC.LO, chain);
  s.at(X.LDR_X_U, 13, 12, FAULT_WORDS.END);
  s.rrr(X.SUBS64, ZERO, 11, 13);
  s.branch(CC.HS, chain);
  // A fault of guest code: its context is in x28.
  s.at(X.LDR_X_U, 14, 10, layout.x28);
  s.at(X.LDR_X_U, 14, 14, CONTEXT.THREAD);
  s.at(X.STR_X_U, 11, 14, THREAD.TRAP_PC);
  s.at(X.LDR_X_U, 13, 10, layout.sp);
  s.add(13, 13, -FAULT_FRAME);
  s.at(X.STR_X_U, 13, 14, THREAD.TRAP_SP);
  // The return address of a function that has not saved it, if there is room for it on the stack.
  s.at(X.LDR_X_U, 15, 14, THREAD.STACK_LOW);
  s.rrr(X.SUBS64, ZERO, 13, 15);
  s.branch(CC.LO, low);
  s.at(X.LDR_X_U, 15, 10, layout.x30);
  s.at(X.STR_X_U, 15, 13, FAULT_FRAME - 8);
  s.bind(low);
  s.at(X.LDR_X_U, 13, 1, layout.address);
  s.at(X.STR_X_U, 13, 14, THREAD.FAULT_ADDRESS);
  // The first page of the arena is that of polls.
  s.at(X.LDR_X_U, 15, 12, FAULT_WORDS.START);
  s.rrr(X.SUB64, 13, 13, 15);
  s.rri(X.SUBS_I64, ZERO, 13, 1 << (POLL_PAGE_SHIFT - 12), 1);
  s.at(X.LDR_X_U, 13, 12, FAULT_WORDS.LANDING);
  s.branch(CC.HS, land);
  s.address(13, poll);
  s.bind(land);
  s.at(X.STR_X_U, 13, 10, layout.pc);
  if (layout.flags !== undefined) emitUnsignedPc(s, layout.flags);
  s.ret();
  // A fault of other code: call the previous handler.
  s.bind(chain);
  s.at(X.LDR_X_U, 12, 12, FAULT_WORDS.OLD_HANDLERS);
  s.at(X.LDR_X_U, SCRATCH2, 12, OLD_HANDLERS.SEGV);
  s.compare(0, SIGSEGV);
  s.branch(CC.EQ, known);
  s.at(X.LDR_X_U, SCRATCH2, 12, OLD_HANDLERS.FPE);
  s.compare(0, SIGFPE);
  s.branch(CC.EQ, known);
  s.at(X.LDR_X_U, SCRATCH2, 12, OLD_HANDLERS.BUS);
  s.bind(known);
  const byDefault = s.newLabel();
  s.compare(SCRATCH2, 1);
  s.branch(CC.LS, byDefault);
  s.rrr(X.BR, 0, SCRATCH2, 0);
  s.bind(byDefault);
  emitDefaultAction(s, os);
}

/** Sets the flag of the saved state that pc is a plain address, which macOS requires of a handler that changes pc. */
function emitUnsignedPc(s: StubCode, flags: number): void {
  s.at(X.LDR_W_U, 13, 10, flags);
  s.constant(11, 1n);
  s.rrr(X.ORR32, 13, 13, 11);
  s.at(X.STR_W_U, 13, 10, flags);
}

/** No previous handler: restores the kernel's default and faults again; on macOS ends the process by a trap. */
function emitDefaultAction(s: StubCode, os: string): void {
  if (os !== "linux") {
    s.rri(X.BRK, 0, 0, 0);
    return;
  }
  // rt_sigaction(signal, { SIG_DFL, 0, 0, 0 }, null, 8); the signal number is in w0 already.
  s.add(SP, SP, -32);
  s.pair(X.STP_X, ZERO, ZERO, SP, 0);
  s.pair(X.STP_X, ZERO, ZERO, SP, 2);
  s.add(1, SP, 0);
  s.move(2, ZERO);
  s.constant(3, 8n);
  s.constant(8, BigInt(SYS_RT_SIGACTION));
  s.rri(X.SVC, 0, 0, 0);
  s.add(SP, SP, 32);
  s.ret();
}
