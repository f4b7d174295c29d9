/**
 * The process stubs: machine code that a process needs once, for entering and resuming guest code, leaving it by a
 * trap, and handling hardware faults. Position-independent; the host copies it into executable memory and fills the
 * fault words.
 *
 *     call        save host registers · HOST_SP = rsp · rsp = GUEST_SP · r15, rbx, r14 from CALL_CONTEXT
 *                 call CALL_THUNK · DONE
 *     resume      the same, then pops the state of the parked call (abi.ts) and continues there
 *     tailReturn  pops the context of the caller of a tail call into another instance, and returns to that caller
 *     trapExit    entered by a jump with the code in eax and the trap's return address on the stack
 *     fault       in a signal frame: records program counter, stack pointer and address, and continues at the landing
 *     poll        where the fault of a poll continues: saves every register on the guest stack and parks, so that the
 *                 guest can continue
 *
 * r15 always holds a context with a thread while guest code runs, so both exits find the thread state through it.
 */
import type { ProcessStubs } from "../codegen/target.ts";
import { CONTEXT, FAULT_WORDS, OLD_HANDLERS, STATUS, THREAD } from "../abi/context_layout.ts";
import { KIND } from "./emission.ts";
import { assembleProcessStubs } from "../codegen/process_stubs.ts";
import { X } from "./instructions.ts";
import { POLL_GENERAL, POLL_VECTORS } from "./poll_frame.ts";
import { CC } from "./machine_ops.ts";
import { CONTEXT_REGISTER, R10, R11, R8, R9, RAX, RCX, RDI, RDX, RSI, RSP } from "./registers.ts";
import { StubCode } from "./stub_code.ts";

/** Offsets in siginfo (on Windows EXCEPTION_RECORD) and in the saved registers that the handler reads. */
interface SignalLayout {
  /** Offset of the address of the access: si_addr, or ExceptionInformation[1]. */
  address: number;
  /**
   * The ucontext (on Windows EXCEPTION_POINTERS) holds a pointer to the registers at this offset, or, if 0, the
   * registers themselves.
   */
  registers: number;
  rip: number;
  rsp: number;
  r15: number;
}

const SIGNALS: Readonly<Record<string, SignalLayout>> = {
  // glibc and musl: ucontext.uc_mcontext.gregs begins at 40; REG_R15 = 7, REG_RSP = 15, REG_RIP = 16.
  linux: { address: 16, registers: 0, rip: 168, rsp: 160, r15: 96 },
  // mcontext64: 16 bytes of exception state, then rax rbx rcx rdx rdi rsi rbp rsp r8…r15 rip.
  darwin: { address: 24, registers: 48, rip: 144, rsp: 72, r15: 136 },
  // EXCEPTION_POINTERS: record, CONTEXT. CONTEXT: rax at 120, rsp 152, r8 184 … r15 240, rip 248.
  windows: { address: 40, registers: 8, rip: 248, rsp: 152, r15: 240 },
};

/** NumberParameters in EXCEPTION_RECORD; an exception other than an access has none, and the address is undefined. */
const EXCEPTION_PARAMETERS = 24;

/** The least size of a page; polls read its first word. */
const POLL_PAGE_BYTES = 4096;

const SIGFPE = 8;
const SIGSEGV = 11;
const SYS_RT_SIGACTION = 13;

/** Builds the stubs for `os` "linux", "darwin" or "windows". */
export function buildProcessStubs(os: string): ProcessStubs {
  const layout = SIGNALS[os];
  if (layout === undefined) throw new RangeError(`No x64 process stubs for operating system "${os}"`);
  return assembleProcessStubs(new StubCode(), {
    wordAlignment: 8,
    unwinds: true,
    call: emitCallStub,
    resume: emitResumeStub,
    trapExit: emitTrapExit,
    tailReturn: emitTailReturn,
    pollLanding: emitPollLanding,
    faultHandler: (s, label, words, poll) => emitFaultHandler(s, label, words, poll, layout, os),
  });
}

function emitCallStub(s: StubCode, label: number): void {
  s.bind(label);
  s.saveHost(RDI);
  s.rm(X.MOV64_L, RSP, RDI, THREAD.GUEST_SP);
  s.rm(X.MOV64_L, CONTEXT_REGISTER, RDI, THREAD.CALL_CONTEXT);
  s.loadMemory();
  s.loadFuel(RDI);
  s.rm(X.CALL_M, 0, RDI, THREAD.CALL_THUNK);
  s.rm(X.MOV64_L, R11, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.storeFuel(R11);
  s.rr(X.XOR32_R, RAX, RAX);
  s.rm(X.MOV32_S, RAX, R11, THREAD.STATUS);
  s.returnToHost(R11);
}

function emitResumeStub(s: StubCode, label: number): void {
  s.fixup(KIND.ALIGN, 16, 1, 0, 0);
  s.bind(label);
  s.saveHost(RDI);
  s.rm(X.MOV64_L, RSP, RDI, THREAD.GUEST_SP);
  s.pop(RAX);
  s.rm(X.MOV64_S, RAX, RDI, THREAD.GUEST_SP);
  s.pop(CONTEXT_REGISTER);
  s.loadMemory();
  s.loadFuel(RDI);
  s.rr(X.MOV64_L, R11, RDI);
  s.pop(RCX);
  s.rr(X.JMP_M, 0, RCX);
}

/** Results are in registers or in the overflow buffer of the thread: nothing here touches them. */
function emitTailReturn(s: StubCode, label: number): void {
  s.fixup(KIND.ALIGN, 16, 1, 0, 0);
  s.bind(label);
  s.rm(X.MOV64_L, R11, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.storeFuel(R11);
  s.pop(CONTEXT_REGISTER);
  s.loadMemory();
  s.loadFuel(R11);
  s.op(X.RET);
}

function emitTrapExit(s: StubCode, label: number, landing: number): void {
  const leave = s.newLabel();
  s.fixup(KIND.ALIGN, 16, 1, 0, 0);
  s.bind(label);
  s.rm(X.MOV64_L, R11, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.pop(RCX);
  s.rm(X.MOV64_S, RCX, R11, THREAD.TRAP_PC);
  s.rm(X.MOV64_S, RSP, R11, THREAD.TRAP_SP);
  s.rm(X.MOV64_SI, 0, R11, THREAD.FAULT_ADDRESS, 0);
  s.rm(X.MOV32_S, RAX, R11, THREAD.TRAP_CODE);
  s.jump(leave);
  s.bind(landing);
  s.rm(X.MOV64_L, R11, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.rm(X.MOV32_SI, 0, R11, THREAD.TRAP_CODE, 0);
  s.bind(leave);
  s.rm(X.MOV64_S, CONTEXT_REGISTER, R11, THREAD.TRAP_CONTEXT);
  s.storeFuel(R11);
  s.constant(RAX, BigInt(STATUS.TRAP));
  s.rm(X.MOV32_S, RAX, R11, THREAD.STATUS);
  s.returnToHost(R11);
}

/** Parks in the middle of a function; resuming returns to the poll itself, which reads its page again. */
function emitPollLanding(s: StubCode, label: number): void {
  const after = s.newLabel();
  s.fixup(KIND.ALIGN, 16, 1, 0, 0);
  s.bind(label);
  s.rm(X.MOV64_L, R11, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.rm(X.PUSH_M, 0, R11, THREAD.TRAP_PC);
  s.op(X.PUSHF);
  s.storeFuel(R11);
  for (const register of POLL_GENERAL) s.push(register);
  s.rm(X.LEA64, RSP, RSP, -POLL_VECTORS * 16);
  for (let k = 0; k < POLL_VECTORS; k++) s.rm(X.MOVUPS_S, k, RSP, k * 16);
  s.address(RAX, after);
  s.push(RAX);
  s.push(CONTEXT_REGISTER);
  s.rm(X.PUSH_M, 0, R11, THREAD.GUEST_SP);
  s.rm(X.MOV64_S, RSP, R11, THREAD.GUEST_SP);
  s.rm(X.MOV64_S, CONTEXT_REGISTER, R11, THREAD.PARK_CONTEXT);
  s.constant(RAX, BigInt(STATUS.POLL));
  s.rm(X.MOV32_S, RAX, R11, THREAD.STATUS);
  s.returnToHost(R11);
  s.bind(after);
  for (let k = 0; k < POLL_VECTORS; k++) s.rm(X.MOVUPS_L, k, RSP, k * 16);
  s.rm(X.LEA64, RSP, RSP, POLL_VECTORS * 16);
  for (const register of POLL_GENERAL.toReversed()) s.pop(register);
  const unmetered = s.newLabel();
  s.rm(X.CMP32_I, 0, CONTEXT_REGISTER, CONTEXT.METERED, 0);
  s.branch(CC.E, unmetered);
  s.rm(X.MOV64_L, R11, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.loadFuel(R11);
  s.bind(unmetered);
  s.op(X.POPF);
  s.op(X.RET);
}

/** Loads the address of the saved registers into r10, and on Windows that of the exception record into rdx. */
function emitHandlerEntry(s: StubCode, layout: SignalLayout, os: string): void {
  if (os === "windows") {
    s.rm(X.MOV64_L, R10, RCX, layout.registers);
    s.rm(X.MOV64_L, RDX, RCX, 0);
    return;
  }
  s.rr(X.MOV64_L, R10, RDX);
  if (layout.registers !== 0) s.rm(X.MOV64_L, R10, RDX, layout.registers);
}

/** Loads the address of the access into r9; 0 for an exception other than an access. */
function emitFaultAddress(s: StubCode, layout: SignalLayout, os: string): void {
  if (os !== "windows") return s.rm(X.MOV64_L, R9, RSI, layout.address);
  const none = s.newLabel();
  s.rr(X.XOR32_R, R9, R9);
  s.rm(X.CMP32_I, 0, RDX, EXCEPTION_PARAMETERS, 0);
  s.branch(CC.E, none);
  s.rm(X.MOV64_L, R9, RDX, layout.address);
  s.bind(none);
}

/** EXCEPTION_CONTINUE_EXECUTION and EXCEPTION_CONTINUE_SEARCH of <excpt.h>. */
const CONTINUE = { EXECUTION: 0xffffffffn, SEARCH: 0n } as const;

/** void handler(int signal: edi, siginfo: rsi, ucontext: rdx); on Windows LONG handler(EXCEPTION_POINTERS *: rcx) */
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
  s.fixup(KIND.ALIGN, 16, 1, 0, 0);
  s.bind(label);
  emitHandlerEntry(s, layout, os);
  s.rm(X.MOV64_L, RAX, R10, layout.rip);
  s.address(RCX, words);
  s.rm(X.CMP64_R, RAX, RCX, FAULT_WORDS.START);
  s.branch(CC.B, chain);
  s.rm(X.CMP64_R, RAX, RCX, FAULT_WORDS.END);
  s.branch(CC.AE, chain);
  // A fault of guest code: its context is in r15.
  s.rm(X.MOV64_L, R8, R10, layout.r15);
  s.rm(X.MOV64_L, R8, R8, CONTEXT.THREAD);
  s.rm(X.MOV64_S, RAX, R8, THREAD.TRAP_PC);
  s.rm(X.MOV64_L, R9, R10, layout.rsp);
  s.rm(X.MOV64_S, R9, R8, THREAD.TRAP_SP);
  emitFaultAddress(s, layout, os);
  s.rm(X.MOV64_S, R9, R8, THREAD.FAULT_ADDRESS);
  // The first page of the arena is that of polls.
  s.rm(X.SUB64_R, R9, RCX, FAULT_WORDS.START);
  s.ri(X.CMP64_I, R9, POLL_PAGE_BYTES);
  s.rm(X.MOV64_L, R9, RCX, FAULT_WORDS.LANDING);
  s.branch(CC.AE, land);
  s.address(R9, poll);
  s.bind(land);
  s.rm(X.MOV64_S, R9, R10, layout.rip);
  if (os === "windows") s.constant(RAX, CONTINUE.EXECUTION);
  s.op(X.RET);
  // A fault of other code: call the previous handler.
  s.bind(chain);
  if (os === "windows") {
    s.constant(RAX, CONTINUE.SEARCH);
    s.op(X.RET);
    return;
  }
  s.rm(X.MOV64_L, RCX, RCX, FAULT_WORDS.OLD_HANDLERS);
  s.rm(X.MOV64_L, RAX, RCX, OLD_HANDLERS.SEGV);
  s.ri(X.CMP32_I, RDI, SIGSEGV);
  s.branch(CC.E, known);
  s.rm(X.MOV64_L, RAX, RCX, OLD_HANDLERS.FPE);
  s.ri(X.CMP32_I, RDI, SIGFPE);
  s.branch(CC.E, known);
  s.rm(X.MOV64_L, RAX, RCX, OLD_HANDLERS.BUS);
  s.bind(known);
  const byDefault = s.newLabel();
  s.ri(X.CMP64_I, RAX, 1);
  s.branch(CC.BE, byDefault);
  s.rr(X.JMP_M, 0, RAX);
  s.bind(byDefault);
  emitDefaultAction(s, os);
}

/** No previous handler: restores the kernel's default and faults again; on macOS ends the process by a trap. */
function emitDefaultAction(s: StubCode, os: string): void {
  if (os !== "linux") {
    s.op(X.UD2);
    return;
  }
  // rt_sigaction(signal, { SIG_DFL, 0, 0, 0 }, null, 8); the signal number is in edi already.
  for (let k = 0; k < 4; k++) {
    s.rr(X.XOR32_R, RAX, RAX);
    s.push(RAX);
  }
  s.rr(X.MOV64_L, RSI, RSP);
  s.rr(X.XOR32_R, RDX, RDX);
  s.constant(R10, BigInt(8));
  s.constant(RAX, BigInt(SYS_RT_SIGACTION));
  s.op(X.SYSCALL);
  s.ri(X.ADD64_I, RSP, 32);
  s.op(X.RET);
}
