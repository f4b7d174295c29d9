/**
 * Registers of x86-64 as this backend uses them. Physical numbers as in codegen/vcode.ts: 0-15 general, 32-47 vector.
 *
 *     rsp  guest stack          rbx  base of memory 0          r15  VM context
 *     r14  byte length of memory 0 where bounds are checked explicitly, otherwise allocatable
 *     r13  the thread's fuel in modules that charge it, otherwise allocatable
 *     r11, xmm15  scratch of the emitter: never live across a machine operation
 *     all others are allocatable and caller-saved: a call destroys the registers that its callee writes
 */
import { type RegisterFiles, registerFiles } from "../codegen/register_files.ts";

export const RAX = 0;
export const RCX = 1;
export const RDX = 2;
export const RBX = 3;
export const RSP = 4;
export const RBP = 5;
export const RSI = 6;
export const RDI = 7;
export const R8 = 8;
export const R9 = 9;
export const R10 = 10;
export const R11 = 11;
export const R12 = 12;
export const R13 = 13;
export const R14 = 14;
export const R15 = 15;
/** Physical number of xmm0. */
const XMM0 = 32;

/** Registers with a fixed role. */
export const MEMORY_BASE = RBX;
export const MEMORY_LENGTH = R14;
export const FUEL = R13;
export const CONTEXT_REGISTER = R15;
export const SCRATCH = R11;
/** Hardware number of the vector scratch register. */
export const SCRATCH_VECTOR = 15;

/** Printable names by physical number. */
const REGISTER_NAMES: readonly string[] = [
  ...["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"],
  ...Array.from({ length: 16 }, (_, i) => `general${i + 16}`),
  ...Array.from({ length: 32 }, (_, i) => `xmm${i}`),
];

// Registers without a REX prefix come first; rbp before r8 because only its use as a base costs a byte. r12 and r13
// have the longest encodings as bases. Argument registers come early so that leaf functions need few moves.
const GENERAL_ORDER = [RAX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R13, R12];
const VECTOR_ORDER = Array.from({ length: 15 }, (_, i) => XMM0 + i);

export const registerFile: RegisterFiles = registerFiles({
  generalOrder: GENERAL_ORDER,
  vectorOrder: VECTOR_ORDER,
  names: REGISTER_NAMES,
  memoryLength: MEMORY_LENGTH,
  fuel: FUEL,
  halfSlots: true,
});

const ALL = registerFile(false);
/** Registers that a call to an unknown callee may destroy: all that any compiled function may allocate. */
export const CALL_CLOBBERS = { general: ALL.general, vector: ALL.vector } as const;
