/**
 * The machine code of a thread's start routine, which runs one function of the baseline tier's kernel. In: a block of
 * words (KERNEL_THREAD) with the function, its context and its arguments. Out: the function's result in the block, −1
 * after a trap.
 *
 * The thread blocks all signals, because their handlers expect a JavaScript thread, and runs the function on the
 * kernel's stack. A trap leaves through CONTEXT.TRAP_EXIT, which must be the address of `trap` here;
 * CONTEXT.TAIL_RETURN must be the address of the block. Linux only: the routine makes a system call by number.
 */
import { CONTEXT } from "../abi/context_layout.ts";

/** Offsets in the block. */
export const KERNEL_THREAD = {
  CODE: 0,
  CONTEXT: 8,
  /** The highest address of the stack. */
  STACK: 16,
  MEMORY_BASE: 24,
  MEMORY_LENGTH: 32,
  FIRST: 40,
  SECOND: 48,
  RESULT: 56,
  /** The signal mask of the thread: all signals blocked. */
  SIGNALS: 64,
  SIZE: 72,
} as const;

// deno-fmt-ignore
const X64 = Uint8Array.of(
  0x53, // push rbx
  0x55, // push rbp
  0x41, 0x54, // push r12
  0x41, 0x55, // push r13
  0x41, 0x56, // push r14
  0x41, 0x57, // push r15
  0x48, 0x89, 0xfb, // mov rbx,rdi
  0xb8, 0x0e, 0x00, 0x00, 0x00, // mov eax,0xe (rt_sigprocmask)
  0xbf, 0x02, 0x00, 0x00, 0x00, // mov edi,0x2 (SIG_SETMASK)
  0x48, 0x8d, 0x73, KERNEL_THREAD.SIGNALS, // lea rsi,[rbx+SIGNALS]
  0x31, 0xd2, // xor edx,edx
  0x41, 0xba, 0x08, 0x00, 0x00, 0x00, // mov r10d,0x8
  0x0f, 0x05, // syscall
  0x48, 0x89, 0xe0, // mov rax,rsp
  0x48, 0x8b, 0x63, KERNEL_THREAD.STACK, // mov rsp,[rbx+STACK]
  0x50, // push rax
  0x53, // push rbx
  0x4c, 0x8b, 0x7b, KERNEL_THREAD.CONTEXT, // mov r15,[rbx+CONTEXT]
  0x4c, 0x8b, 0x5b, KERNEL_THREAD.CODE, // mov r11,[rbx+CODE]
  0x48, 0x8b, 0x43, KERNEL_THREAD.FIRST, // mov rax,[rbx+FIRST]
  0x48, 0x8b, 0x4b, KERNEL_THREAD.SECOND, // mov rcx,[rbx+SECOND]
  0x4c, 0x8b, 0x73, KERNEL_THREAD.MEMORY_LENGTH, // mov r14,[rbx+MEMORY_LENGTH]
  0x48, 0x8b, 0x5b, KERNEL_THREAD.MEMORY_BASE, // mov rbx,[rbx+MEMORY_BASE]
  0x41, 0xff, 0xd3, // call r11
  // done:
  0x5b, // pop rbx
  0x5c, // pop rsp
  0x48, 0x89, 0x43, KERNEL_THREAD.RESULT, // mov [rbx+RESULT],rax
  0x41, 0x5f, // pop r15
  0x41, 0x5e, // pop r14
  0x41, 0x5d, // pop r13
  0x41, 0x5c, // pop r12
  0x5d, // pop rbp
  0x5b, // pop rbx
  0x31, 0xc0, // xor eax,eax
  0xc3, // ret
  // trap:
  0x49, 0x8b, 0x5f, CONTEXT.TAIL_RETURN, // mov rbx,[r15+TAIL_RETURN]
  0x48, 0x8b, 0x63, KERNEL_THREAD.STACK, // mov rsp,[rbx+STACK]
  0x48, 0x83, 0xec, 0x10, // sub rsp,0x10
  0x48, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff, // mov rax,-1
  0xeb, 0xd8, // jmp done
);

/** Size in bytes of the code from `trap` to the end. */
const X64_TRAP_BYTES = 21;

/** The routine and the offset of `trap` in it, by architecture. */
export const KERNEL_THREAD_CODE: Readonly<Record<string, { readonly bytes: Uint8Array; readonly trap: number }>> = {
  x64: { bytes: X64, trap: X64.length - X64_TRAP_BYTES },
};
