/**
 * Machine code that compiles a lazy body without JavaScript: the first call of a function leads here, and continues in
 * the function's code. In: a block of words per image (LAZY_BLOCK), and the kernel as machine code with the module's
 * tables and bodies in its memory. Out: the code behind the rest of the image, its address in the function's slot, and
 * a row in the kernel's journal, which JavaScript reads before it looks at the image again.
 *
 * Invariants: no other thread executes the image, as for all lazy bodies (lazy_bodies.ts); pages are never writable and
 * executable at once; all registers but r11 are unchanged. The kernel runs on its own stack. If it needs the driver, if
 * it traps, or if the system refuses access to the pages, the call continues at SLOW with all registers unchanged.
 * Linux only: the routine makes system calls by number.
 */
import { CONTEXT } from "../abi/context_layout.ts";
import { CODE, RESULT_STARTS } from "./kernel/layout.ts";

/** Offsets in the block. */
export const LAZY_BLOCK = {
  /** Where first calls continue: the routine, or SLOW. */
  ROUTINE: 0,
  /** The code that lets JavaScript compile the function, whose index is on the stack. */
  SLOW: 8,
  /** The kernel's VM context, `compileNext`, the highest address of its stack, and its memory. */
  CONTEXT: 16,
  CODE: 24,
  STACK: 32,
  MEMORY: 40,
  /** The address of the image, and the offset at which its next code begins. */
  IMAGE: 48,
  NEXT: 56,
  /** The address of the slots. */
  SLOTS: 64,
  /** The address of `trap` in the routine. */
  TRAP: 72,
  /** Saved by the routine: its stack pointer, and two words of the kernel's context. */
  SAVED_SP: 80,
  TRAP_EXIT_BEFORE: 88,
  TAIL_RETURN_BEFORE: 96,
  /** 1 after the system has refused access: the last row of the journal has no code. */
  REFUSED: 104,
  SIZE: 112,
} as const;

/** The kernel's part of a block. */
export interface LazyRoutine {
  readonly routine: number;
  readonly trap: number;
  readonly context: number;
  readonly code: number;
  readonly stack: number;
  readonly memory: number;
}

const VECTORS = 16;
const GENERAL = 14;
/** Offset in the routine's frame of the function's index, which the gate has pushed. */
const INDEX_AT = VECTORS * 16 + GENERAL * 8;
const MOVUPS_LOAD = 0x10;
const MOVUPS_STORE = 0x11;

function word(value: number): number[] {
  return [value & 0xff, (value >> 8) & 0xff, (value >> 16) & 0xff, value >>> 24];
}

/** movups of xmm0 to xmm15 at [rsp] to [rsp + 240]. */
function everyVector(opcode: number): number[] {
  return Array.from({ length: VECTORS }, (_, k) => [
    ...(k < 8 ? [] : [0x44]),
    ...[0x0f, opcode, 0x84 | (k & 7) << 3, 0x24],
    ...word(k * 16),
  ]).flat();
}

// deno-fmt-ignore
const X64 = Uint8Array.of(
  0x50, // push rax
  0x51, // push rcx
  0x52, // push rdx
  0x53, // push rbx
  0x55, // push rbp
  0x56, // push rsi
  0x57, // push rdi
  0x41, 0x50, // push r8
  0x41, 0x51, // push r9
  0x41, 0x52, // push r10
  0x41, 0x54, // push r12
  0x41, 0x55, // push r13
  0x41, 0x56, // push r14
  0x41, 0x57, // push r15
  0x48, 0x81, 0xec, 0x00, 0x01, 0x00, 0x00, // sub rsp, 256
  ...everyVector(MOVUPS_STORE),
  0x49, 0x89, 0x63, LAZY_BLOCK.SAVED_SP, // mov [r11+SAVED_SP], rsp
  0x8b, 0x84, 0x24, ...word(INDEX_AT), // mov eax, [rsp+INDEX_AT]
  0x49, 0x8b, 0x4b, LAZY_BLOCK.NEXT, // mov rcx, [r11+NEXT]
  0x4d, 0x8b, 0x7b, LAZY_BLOCK.CONTEXT, // mov r15, [r11+CONTEXT]
  0x49, 0x8b, 0x57, CONTEXT.TRAP_EXIT, // mov rdx, [r15+TRAP_EXIT]
  0x49, 0x89, 0x53, LAZY_BLOCK.TRAP_EXIT_BEFORE, // mov [r11+TRAP_EXIT_BEFORE], rdx
  0x49, 0x8b, 0x53, LAZY_BLOCK.TRAP, // mov rdx, [r11+TRAP]
  0x49, 0x89, 0x57, CONTEXT.TRAP_EXIT, // mov [r15+TRAP_EXIT], rdx
  0x49, 0x8b, 0x57, CONTEXT.TAIL_RETURN, // mov rdx, [r15+TAIL_RETURN]
  0x49, 0x89, 0x53, LAZY_BLOCK.TAIL_RETURN_BEFORE, // mov [r11+TAIL_RETURN_BEFORE], rdx
  0x4d, 0x89, 0x5f, CONTEXT.TAIL_RETURN, // mov [r15+TAIL_RETURN], r11
  0x49, 0x8b, 0x5b, LAZY_BLOCK.MEMORY, // mov rbx, [r11+MEMORY]
  0x41, 0xbe, 0x01, 0x00, 0x00, 0x00, // mov r14d, 1
  0x49, 0xc1, 0xe6, 0x20, // shl r14, 32
  0x49, 0x8b, 0x63, LAZY_BLOCK.STACK, // mov rsp, [r11+STACK]
  0x41, 0x53, // push r11
  0x41, 0x53, // push r11
  0x4d, 0x8b, 0x5b, LAZY_BLOCK.CODE, // mov r11, [r11+CODE]
  0x41, 0xff, 0xd3, // call r11
  0x5b, // pop rbx
  // compiled: rbx = block, eax = end of the code in the image, or 0
  0x4c, 0x8b, 0x7b, LAZY_BLOCK.CONTEXT, // mov r15, [rbx+CONTEXT]
  0x48, 0x8b, 0x53, LAZY_BLOCK.TRAP_EXIT_BEFORE, // mov rdx, [rbx+TRAP_EXIT_BEFORE]
  0x49, 0x89, 0x57, CONTEXT.TRAP_EXIT, // mov [r15+TRAP_EXIT], rdx
  0x48, 0x8b, 0x53, LAZY_BLOCK.TAIL_RETURN_BEFORE, // mov rdx, [rbx+TAIL_RETURN_BEFORE]
  0x49, 0x89, 0x57, CONTEXT.TAIL_RETURN, // mov [r15+TAIL_RETURN], rdx
  0x48, 0x8b, 0x63, LAZY_BLOCK.SAVED_SP, // mov rsp, [rbx+SAVED_SP]
  0x41, 0x89, 0xc4, // mov r12d, eax
  0x4d, 0x85, 0xe4, // test r12, r12
  0x0f, 0x84, 0x50, 0x01, 0x00, 0x00, // jz failed
  0x4c, 0x8b, 0x6b, LAZY_BLOCK.IMAGE, // mov r13, [rbx+IMAGE]
  0x4d, 0x01, 0xec, // add r12, r13
  0x4c, 0x03, 0x6b, LAZY_BLOCK.NEXT, // add r13, [rbx+NEXT]
  0x4c, 0x89, 0xef, // mov rdi, r13
  0x48, 0x81, 0xe7, 0x00, 0xf0, 0xff, 0xff, // and rdi, -4096
  0x4c, 0x89, 0xe6, // mov rsi, r12
  0x48, 0x29, 0xfe, // sub rsi, rdi
  0xba, 0x03, 0x00, 0x00, 0x00, // mov edx, 3
  0xb8, 0x0a, 0x00, 0x00, 0x00, // mov eax, 10
  0x0f, 0x05, // syscall
  0x48, 0x85, 0xc0, // test rax, rax
  0x0f, 0x85, 0x18, 0x01, 0x00, 0x00, // jnz refused
  0x49, 0x89, 0xf8, // mov r8, rdi
  0x49, 0x89, 0xf1, // mov r9, rsi
  0x4c, 0x89, 0xef, // mov rdi, r13
  0x48, 0x8b, 0x73, LAZY_BLOCK.MEMORY, // mov rsi, [rbx+MEMORY]
  0x44, 0x8b, 0x96, ...word(RESULT_STARTS), // mov r10d, [rsi+RESULT_STARTS]
  0x48, 0x81, 0xc6, ...word(CODE), // add rsi, CODE
  0x4c, 0x89, 0xe1, // mov rcx, r12
  0x4c, 0x29, 0xe9, // sub rcx, r13
  0xf3, 0xa4, // rep movsb
  0x4c, 0x89, 0xc7, // mov rdi, r8
  0x4c, 0x89, 0xce, // mov rsi, r9
  0xba, 0x05, 0x00, 0x00, 0x00, // mov edx, 5
  0xb8, 0x0a, 0x00, 0x00, 0x00, // mov eax, 10
  0x4d, 0x89, 0xd5, // mov r13, r10
  0x0f, 0x05, // syscall
  0x48, 0x8b, 0x53, LAZY_BLOCK.IMAGE, // mov rdx, [rbx+IMAGE]
  0x49, 0x01, 0xd5, // add r13, rdx
  0x49, 0x29, 0xd4, // sub r12, rdx
  0x49, 0x83, 0xc4, 0x0f, // add r12, 15
  0x49, 0x83, 0xe4, 0xf0, // and r12, -16
  0x4c, 0x89, 0x63, LAZY_BLOCK.NEXT, // mov [rbx+NEXT], r12
  0x8b, 0x84, 0x24, ...word(INDEX_AT), // mov eax, [rsp+INDEX_AT]
  0x48, 0x8b, 0x4b, LAZY_BLOCK.SLOTS, // mov rcx, [rbx+SLOTS]
  0x4c, 0x89, 0x2c, 0xc1, // mov [rcx+rax*8], r13
  0x4c, 0x89, 0xac, 0x24, ...word(INDEX_AT), // mov [rsp+INDEX_AT], r13
  0x4c, 0x8d, 0x1d, 0xa7, 0x00, 0x00, 0x00, // lea r11, [rip+enter]
  // restore: r11 = address to continue at
  ...everyVector(MOVUPS_LOAD),
  0x48, 0x81, 0xc4, 0x00, 0x01, 0x00, 0x00, // add rsp, 256
  0x41, 0x5f, // pop r15
  0x41, 0x5e, // pop r14
  0x41, 0x5d, // pop r13
  0x41, 0x5c, // pop r12
  0x41, 0x5a, // pop r10
  0x41, 0x59, // pop r9
  0x41, 0x58, // pop r8
  0x5f, // pop rdi
  0x5e, // pop rsi
  0x5d, // pop rbp
  0x5b, // pop rbx
  0x5a, // pop rdx
  0x59, // pop rcx
  0x58, // pop rax
  0x41, 0xff, 0xe3, // jmp r11
  // enter: the index has been replaced with the code's address
  0x41, 0x5b, // pop r11
  0x41, 0xff, 0xe3, // jmp r11
  // refused:
  0x48, 0xc7, 0x43, LAZY_BLOCK.REFUSED, 0x01, 0x00, 0x00, 0x00, // mov qword ptr [rbx+REFUSED], 1
  // failed:
  0x4c, 0x8b, 0x5b, LAZY_BLOCK.SLOW, // mov r11, [rbx+SLOW]
  0xe9, 0x43, 0xff, 0xff, 0xff, // jmp restore
  // trap: r15 = the kernel's context
  0x49, 0x8b, 0x5f, CONTEXT.TAIL_RETURN, // mov rbx, [r15+TAIL_RETURN]
  0x31, 0xc0, // xor eax, eax
  0xe9, 0x78, 0xfe, 0xff, 0xff, // jmp compiled
);

/** Size in bytes of the code from `trap` to the end. */
const X64_TRAP_BYTES = 11;

/** The routine and the offset of `trap` in it, by architecture. */
export const LAZY_ROUTINES: Readonly<Record<string, { readonly bytes: Uint8Array; readonly trap: number }>> = {
  x64: { bytes: X64, trap: X64.length - X64_TRAP_BYTES },
};
