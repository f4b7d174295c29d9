/**
 * The routine that has the kernel of the baseline tier, as machine code, compile a lazy body
 * (engine/baseline/lazy_routine.ts), for Linux on x64. It makes system calls by number.
 */
import { CONTEXT } from "../../../engine/abi/context_layout.ts";
import { CODE, RESULT_STARTS } from "../../../engine/baseline/kernel/layout.ts";
import { LAZY_BLOCK } from "../../../engine/baseline/lazy_routine.ts";
import { callNumber } from "../../../engine/host/calls/linux_calls.ts";
import { PROT } from "../../../engine/host/host.ts";

const MPROTECT = callNumber("mprotect", "x64");
const PAGE = 4096;

/** The registers that the routine saves, in the order in which it pushes them. */
const GENERAL = ["rax", "rcx", "rdx", "rbx", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r12", "r13", "r14", "r15"];
const VECTORS = 16;
/** Offset in the routine's frame of the function's index, which the gate has pushed. */
const INDEX_AT = VECTORS * 16 + GENERAL.length * 8;

/** The lines for xmm0 to xmm15, whose places begin at [rsp]. */
function everyVector(line: (register: string, place: string) => string): string {
  return Array.from({ length: VECTORS }, (_, k) => `  ${line(`xmm${k}`, `[rsp + ${k * 16}]`)}`).join("\n");
}

/** In: r11 = the block, the function's index on the stack. A trap of the kernel continues at `trap`. */
const LAZY = `
  .globl trap
${GENERAL.map((register) => `  push ${register}`).join("\n")}
  sub rsp, ${VECTORS * 16}
${everyVector((register, place) => `movups ${place}, ${register}`)}
  mov [r11 + ${LAZY_BLOCK.SAVED_SP}], rsp
  mov eax, [rsp + ${INDEX_AT}]
  mov rcx, [r11 + ${LAZY_BLOCK.NEXT}]
  mov r15, [r11 + ${LAZY_BLOCK.CONTEXT}]
  mov rdx, [r15 + ${CONTEXT.TRAP_EXIT}]
  mov [r11 + ${LAZY_BLOCK.TRAP_EXIT_BEFORE}], rdx
  mov rdx, [r11 + ${LAZY_BLOCK.TRAP}]
  mov [r15 + ${CONTEXT.TRAP_EXIT}], rdx
  mov rdx, [r15 + ${CONTEXT.TAIL_RETURN}]
  mov [r11 + ${LAZY_BLOCK.TAIL_RETURN_BEFORE}], rdx
  mov [r15 + ${CONTEXT.TAIL_RETURN}], r11
  mov rbx, [r11 + ${LAZY_BLOCK.MEMORY}]
  mov r14d, 1
  shl r14, 32
  mov rsp, [r11 + ${LAZY_BLOCK.STACK}]
  push r11
  push r11
  mov r11, [r11 + ${LAZY_BLOCK.CODE}]
  call r11
  pop rbx
compiled: // rbx = block, eax = end of the code in the image, or 0
  mov r15, [rbx + ${LAZY_BLOCK.CONTEXT}]
  mov rdx, [rbx + ${LAZY_BLOCK.TRAP_EXIT_BEFORE}]
  mov [r15 + ${CONTEXT.TRAP_EXIT}], rdx
  mov rdx, [rbx + ${LAZY_BLOCK.TAIL_RETURN_BEFORE}]
  mov [r15 + ${CONTEXT.TAIL_RETURN}], rdx
  mov rsp, [rbx + ${LAZY_BLOCK.SAVED_SP}]
  mov r12d, eax
  test r12, r12
  je failed
  mov r13, [rbx + ${LAZY_BLOCK.IMAGE}]
  add r12, r13
  add r13, [rbx + ${LAZY_BLOCK.NEXT}]
  mov rdi, r13
  and rdi, ${-PAGE}
  mov rsi, r12
  sub rsi, rdi
  mov edx, ${PROT.READ | PROT.WRITE}
  mov eax, ${MPROTECT}
  syscall
  test rax, rax
  jne refused
  mov r8, rdi
  mov r9, rsi
  mov rdi, r13
  mov rsi, [rbx + ${LAZY_BLOCK.MEMORY}]
  mov r10d, [rsi + ${RESULT_STARTS}]
  add rsi, ${CODE}
  mov rcx, r12
  sub rcx, r13
  rep movsb
  mov rdi, r8
  mov rsi, r9
  mov edx, ${PROT.READ | PROT.EXEC}
  mov eax, ${MPROTECT}
  mov r13, r10
  syscall
  mov rdx, [rbx + ${LAZY_BLOCK.IMAGE}]
  add r13, rdx
  sub r12, rdx
  add r12, 15
  and r12, -16
  mov [rbx + ${LAZY_BLOCK.NEXT}], r12
  mov eax, [rsp + ${INDEX_AT}]
  mov rcx, [rbx + ${LAZY_BLOCK.SLOTS}]
  mov [rcx + rax*8], r13
  mov [rsp + ${INDEX_AT}], r13
  lea r11, [rip + enter]
restore: // r11 = address to continue at
${everyVector((register, place) => `movups ${register}, ${place}`)}
  add rsp, ${VECTORS * 16}
${GENERAL.toReversed().map((register) => `  pop ${register}`).join("\n")}
  jmp r11
enter: // the index has been replaced with the code's address
  pop r11
  jmp r11
refused:
  mov qword ptr [rbx + ${LAZY_BLOCK.REFUSED}], 1
failed:
  mov r11, [rbx + ${LAZY_BLOCK.SLOW}]
  jmp restore
trap: // r15 = the kernel's context
  mov rbx, [r15 + ${CONTEXT.TAIL_RETURN}]
  xor eax, eax
  jmp compiled
`;

/** x64 alone. */
export const ROUTINES = { lazy: { x64: LAZY } } as const;
