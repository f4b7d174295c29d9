/**
 * Short programs of the host: the probe of the processor (engine/host/cpu.ts), system calls of Linux
 * (calls/linux_calls.ts), calls of C functions (calls/c_calls.ts), and the deallocator of lent memory
 * (runtimes/bun.ts).
 */
import { THREAD } from "../../../engine/abi/context_layout.ts";
import { BLOCK } from "../../../engine/host/calls/c_calls.ts";

/** Bit of CPUID.1:ECX: the system uses XSAVE. */
const OSXSAVE = 1 << 27;

/**
 * void probe(uint32_t out[4]): out[0] = CPUID.1:ECX, out[1] = CPUID.7.0:EBX (0 if there is no leaf 7), out[2] =
 * CPUID.80000001h:ECX, out[3] = XCR0 (0 if the system does not use XSAVE). The entry at offset 0 takes the address of
 * the thread state, whose slots receive the results.
 */
const X64_PROBE = `
  .globl probe
  add rdi, ${THREAD.SLOTS}
probe:
  push rbx
  xor eax, eax
  cpuid
  mov r8d, eax
  mov eax, 1
  xor ecx, ecx
  cpuid
  mov [rdi], ecx
  mov r9d, ecx
  cmp r8d, 7
  jb no_leaf_7
  mov eax, 7
  xor ecx, ecx
  cpuid
  mov [rdi + 4], ebx
no_leaf_7:
  mov eax, 0x80000001
  cpuid
  mov [rdi + 8], ecx
  test r9d, ${OSXSAVE}
  je no_state
  xor ecx, ecx
  xgetbv
  mov [rdi + 12], eax
no_state:
  pop rbx
  ret
`;

/** void probe(uint64_t out[1]): out[0] = ID_AA64ISAR0_EL1. The entry at offset 0 as on x64. */
const ARM64_PROBE = `
  .globl probe
  add x0, x0, #${THREAD.SLOTS}
probe:
  mrs x1, ID_AA64ISAR0_EL1
  str x1, [x0]
  ret
`;

/** long system_call(long number, long a, long b, long c, long d, long e, long f) */
const X64_SYSTEM_CALL = `
  mov rax, rdi
  mov rdi, rsi
  mov rsi, rdx
  mov rdx, rcx
  mov r10, r8
  mov r8, r9
  mov r9, [rsp + 8]
  syscall
  ret
`;

const ARM64_SYSTEM_CALL = `
  mov x8, x0
  mov x0, x1
  mov x1, x2
  mov x2, x3
  mov x3, x4
  mov x4, x5
  mov x5, x6
  svc #0
  ret
`;

const X64_C_CALL = `
  // int call(block: rdi)
call:
  push rbx
  mov rbx, rdi
  mov rdi, [rbx + ${BLOCK.ARGUMENTS}]
  mov rsi, [rbx + ${BLOCK.ARGUMENTS + 8}]
  mov rdx, [rbx + ${BLOCK.ARGUMENTS + 16}]
  mov rcx, [rbx + ${BLOCK.ARGUMENTS + 24}]
  mov r8, [rbx + ${BLOCK.ARGUMENTS + 32}]
  mov r9, [rbx + ${BLOCK.ARGUMENTS + 40}]
  xor eax, eax
  call [rbx + ${BLOCK.FUNCTION}]
  cmp dword ptr [rbx + ${BLOCK.IS_INT}], 0
  je wide
  cdqe
wide:
  cmp rax, -1
  jne done
  call [rbx + ${BLOCK.ERRNO}]
  mov eax, [rax]
  neg rax
done:
  mov [rbx + ${BLOCK.RESULT}], rax
  xor eax, eax
  pop rbx
  ret
`;

const ARM64_C_CALL = `
  // int call(block: x0)
call:
  stp x19, x30, [sp, #-16]!
  mov x19, x0
  ldp x8, x0, [x19, #${BLOCK.FUNCTION}]
  ldp x1, x2, [x19, #${BLOCK.ARGUMENTS + 8}]
  ldp x3, x4, [x19, #${BLOCK.ARGUMENTS + 24}]
  ldp x5, x9, [x19, #${BLOCK.ARGUMENTS + 40}]
  str x9, [sp, #-16]!
  blr x8
  add sp, sp, #16
  ldr w9, [x19, #${BLOCK.IS_INT}]
  cbz w9, wide
  sxtw x0, w0
wide:
  cmn x0, #1
  b.ne done
  ldr x9, [x19, #${BLOCK.ERRNO}]
  blr x9
  ldr w0, [x0]
  neg x0, x0
done:
  str x0, [x19, #${BLOCK.RESULT}]
  mov w0, wzr
  ldp x19, x30, [sp], #16
  ret
`;

/** void let_go(void *pages, int64_t *word) { *word = 1; }, and at `address` a function that returns its address. */
const letGo = (word: string) => `
  .globl address
let_go:
  mov qword ptr [${word}], 1
  ret
address:
  lea rax, [rip + let_go]
  ret
`;

const ARM64_LET_GO = `
  .globl address
let_go:
  mov x2, #1
  str x2, [x1]
  ret
address:
  adr x0, let_go
  ret
`;

/** By use, and by processor or calling convention. */
export const CALLS = {
  probe: { x64: X64_PROBE, arm64: ARM64_PROBE },
  systemCall: { x64: X64_SYSTEM_CALL, arm64: ARM64_SYSTEM_CALL },
  cCall: { x64: X64_C_CALL, arm64: ARM64_C_CALL },
  letGo: { systemV: letGo("rsi"), win64: letGo("rdx"), arm64: ARM64_LET_GO },
} as const;
