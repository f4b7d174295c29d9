/**
 * The sampler (engine/profile/sampler.ts) on Linux: the handler of the timer's signal.
 *
 *     void handler(int signal, siginfo_t *info, ucontext_t *context)
 *
 * The timer's value, in `info`, is the address of the sampler's state (SAMPLER). The handler appends one record
 * (SAMPLE) with the interrupted program counter and the top of the guest stack. Code outside of the arena is the
 * host's: then the program counter is 0 and the guest stack is that of the parked code. A signal that no timer sent has
 * no effect. The handler uses no stack and calls nothing.
 */
import { THREAD } from "../../../engine/abi/context_layout.ts";
import { COPIED_BYTES, SAMPLE, SAMPLER } from "../../../engine/profile/sampler.ts";

/** Offsets in siginfo_t, and si_code of a timer's signal. */
const INFO = { CODE: 8, OVERRUN: 20, VALUE: 24 } as const;
const SI_TIMER = -2;
/** Offsets in ucontext_t: of rip and rsp on x64, of x30, which sp and pc follow, on arm64. */
const CONTEXT = { rip: 168, rsp: 160, link: 424 } as const;

const X64 = `
  cmp dword ptr [rsi + ${INFO.CODE}], ${SI_TIMER}
  jne other
  mov r8, [rsi + ${INFO.VALUE}]
  mov eax, [rsi + ${INFO.OVERRUN}]
  mov rsi, [r8 + ${SAMPLER.NEXT}]
  mov [rsi + ${SAMPLE.MISSED}], eax
  mov rax, [rdx + ${CONTEXT.rip}]
  mov r10, [rdx + ${CONTEXT.rsp}]
  mov r11, [r8 + ${SAMPLER.THREAD}]
  cmp rax, [r8 + ${SAMPLER.START}]
  jb host
  cmp rax, [r8 + ${SAMPLER.END}]
  jb guest
host: // the guest is parked
  xor eax, eax
  mov r10, [r11 + ${THREAD.GUEST_SP}]
guest: // rax = program counter, r10 = guest stack pointer
  mov rcx, [r8 + ${SAMPLER.STACK_HIGH}]
  sub rcx, r10
  cmp rcx, [r8 + ${SAMPLER.STACK_BYTES}]
  jbe inside
  xor ecx, ecx
inside:
  mov edx, ${COPIED_BYTES}
  cmp rcx, rdx
  cmova rcx, rdx
  lea rdx, [rsi + rcx + ${SAMPLE.HEAD}]
  cmp rdx, [r8 + ${SAMPLER.LIMIT}]
  ja full
  mov [rsi + ${SAMPLE.BYTES}], ecx
  mov [rsi + ${SAMPLE.PC}], rax
  mov [rsi + ${SAMPLE.SP}], r10
  mov eax, [r11 + ${THREAD.STATUS}]
  mov [rsi + ${SAMPLE.STATUS}], eax
  mov eax, [r11 + ${THREAD.PARK_INDEX}]
  mov [rsi + ${SAMPLE.INDEX}], eax
  mov rax, [r11 + ${THREAD.PARK_CONTEXT}]
  mov [rsi + ${SAMPLE.CONTEXT}], rax
  lea rdi, [rsi + ${SAMPLE.HEAD}]
  mov rsi, r10
  shr ecx, 3
  cld
  rep movsq
  mov [r8 + ${SAMPLER.NEXT}], rdx
other:
  ret
full: // no room for a record
  add qword ptr [r8 + ${SAMPLER.DROPPED}], 1
  ret
`;

const ARM64 = `
  ldr w9, [x1, #${INFO.CODE}]
  cmn w9, #${-SI_TIMER}
  b.ne other
  ldr x3, [x1, #${INFO.VALUE}]
  ldr w9, [x1, #${INFO.OVERRUN}]
  ldr x4, [x3, #${SAMPLER.NEXT}]
  add x2, x2, #${CONTEXT.link}
  ldp x5, x6, [x2] // x30, sp
  ldr x7, [x2, #16] // pc
  ldr x10, [x3, #${SAMPLER.THREAD}]
  ldp x11, x12, [x3, #${SAMPLER.START}]
  cmp x7, x11
  b.lo host
  cmp x7, x12
  b.lo guest
host: // the guest is parked
  mov x7, #0
  ldr x6, [x10, #${THREAD.GUEST_SP}]
guest: // x7 = program counter, x6 = guest stack pointer, x5 = link register
  ldp x11, x12, [x3, #${SAMPLER.STACK_HIGH}]
  sub x11, x11, x6
  cmp x11, x12
  csel x11, x11, xzr, ls
  mov x12, #${COPIED_BYTES}
  cmp x11, x12
  csel x11, x11, x12, ls
  and x11, x11, #-8
  add x13, x4, #${SAMPLE.HEAD}
  add x13, x13, x11
  ldr x12, [x3, #${SAMPLER.LIMIT}]
  cmp x13, x12
  b.hi full
  stp w11, w9, [x4, #${SAMPLE.BYTES}]
  stp x7, x6, [x4, #${SAMPLE.PC}]
  str x5, [x4, #${SAMPLE.LINK}]
  ldr w9, [x10, #${THREAD.STATUS}]
  ldr w12, [x10, #${THREAD.PARK_INDEX}]
  stp w9, w12, [x4, #${SAMPLE.STATUS}]
  ldr x9, [x10, #${THREAD.PARK_CONTEXT}]
  str x9, [x4, #${SAMPLE.CONTEXT}]
  add x4, x4, #${SAMPLE.HEAD}
copy:
  cmp x4, x13
  b.hs copied
  ldr x9, [x6], #8
  str x9, [x4], #8
  b copy
copied:
  str x13, [x3, #${SAMPLER.NEXT}]
other:
  ret
full: // no room for a record
  ldr x9, [x3, #${SAMPLER.DROPPED}]
  add x9, x9, #1
  str x9, [x3, #${SAMPLER.DROPPED}]
  ret
`;

/** By processor. */
export const SAMPLER_HANDLER = { x64: X64, arm64: ARM64 } as const;
