/**
 * Comparisons that the C library's `bsearch` calls (engine/host/code/bsearch_entry.ts): code that follows the text of a
 * library and enters one of its functions, `distance` bytes from the beginning of the comparison.
 *
 *     int bound(key: the pointer, base: the address of the result)
 *     int block(key: the address of the block, base)
 *
 * `block` loads every register that a parameter can be in from the words of the block, first the integers and then the
 * floats, and stores the result over the first word of its kind.
 *
 * Comparisons follow System V on x64. On Windows, whose `bsearch` calls as Windows does, the shell at `win64` is
 * entered (win64.ts).
 *
 * Sources: System V ABI, AMD64; Procedure Call Standard for the Arm 64-bit Architecture.
 */
import { BLOCK_FLOATS } from "../../../engine/host/code/bsearch_entry.ts";
import { keepingWin64Registers } from "./win64.ts";

const SHELL = `
win64:
${
  keepingWin64Registers(`  mov rdi, rcx
  mov rsi, rdx
  call start`)
}
`;

const X64_BOUND = `
  .globl distance
  .globl win64
start:
  push rsi
  lea rax, [rip + start]
  add rax, [rip + distance]
  call rax
  pop rsi
  mov [rsi], eax
  xor eax, eax
  ret
${SHELL}
  .balign 8, 204
distance:
  .quad 0
`;

const ARM64_BOUND = `
  .globl distance
start:
  stp x1, x30, [sp, #-16]!
  adr x16, start
  ldr x17, distance
  add x16, x16, x17
  blr x16
  ldp x1, x30, [sp], #16
  str w0, [x1]
  mov w0, wzr
  ret
  nop
distance:
  .quad 0
`;

const X64_INTEGERS = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];
const FLOATS = 8;

const X64_BLOCK = `
  .globl distance
  .globl win64
start:
  push rbx
  mov rbx, rdi
  lea rax, [rip + start]
  add rax, [rip + distance]
${X64_INTEGERS.map((register, k) => `  mov ${register}, [rbx + ${8 * k}]`).join("\n")}
${Array.from({ length: FLOATS }, (_, k) => `  movsd xmm${k}, [rbx + ${8 * (BLOCK_FLOATS + k)}]`).join("\n")}
  call rax
  mov [rbx], rax
  movsd [rbx + ${8 * BLOCK_FLOATS}], xmm0
  xor eax, eax
  pop rbx
  ret
${SHELL}
  .balign 8, 204
distance:
  .quad 0
`;

const ARM64_BLOCK = `
  .globl distance
start:
  stp x19, x30, [sp, #-16]!
  mov x19, x0
  adr x16, start
  ldr x17, distance
  add x16, x16, x17
${[0, 2, 4, 6].map((k) => `  ldp x${k}, x${k + 1}, [x19, #${8 * k}]`).join("\n")}
${[0, 2, 4, 6].map((k) => `  ldp d${k}, d${k + 1}, [x19, #${8 * (BLOCK_FLOATS + k)}]`).join("\n")}
  blr x16
  str x0, [x19]
  str d0, [x19, #${8 * BLOCK_FLOATS}]
  ldp x19, x30, [sp], #16
  mov w0, wzr
  ret
  nop
distance:
  .quad 0
`;

/** By processor. */
export const COMPARISONS = {
  bound: { x64: X64_BOUND, arm64: ARM64_BOUND },
  block: { x64: X64_BLOCK, arm64: ARM64_BLOCK },
} as const;
