/**
 * The watchdog (engine/host/code/watchdog.ts) on Linux: the thread's body and the two routines that the host calls. The
 * code makes system calls by number.
 *
 * The thread stores its wake-up time before its last load of the deadline, and `arm` stores the deadline before it
 * loads the wake-up time; a full barrier separates the store and the load (on arm64 `dmb ish`), so that one side sees
 * the other's store. The arm64 code uses exclusive loads and stores, which every arm64 processor has.
 */
import { callNumber } from "../../../engine/host/calls/linux_calls.ts";
import { WATCH, WATCH_STATE } from "../../../engine/host/code/watchdog.ts";

const { DEADLINE, WAKES, SEQUENCE, TIME, PAGE, PAGE_BYTES, DELAY, SIGNALS } = WATCH;
const { IS_FIRING, HAS_FIRED } = WATCH_STATE;

/** System calls, and their arguments (<linux/futex.h>, <linux/time.h>, <asm-generic/signal-defs.h>). */
const X64_CALLS = {
  rt_sigprocmask: 14,
  futex: 202,
  clock_gettime: callNumber("clock_gettime", "x64"),
  mprotect: callNumber("mprotect", "x64"),
} as const;
const ARM64_CALLS = {
  rt_sigprocmask: 135,
  futex: 98,
  clock_gettime: callNumber("clock_gettime", "arm64"),
  mprotect: callNumber("mprotect", "arm64"),
} as const;
const SIG_SETMASK = 2;
const CLOCK_MONOTONIC = 1;
const FUTEX_WAIT_BITSET_PRIVATE = 9 | 128;
const FUTEX_WAKE_PRIVATE = 1 | 128;

/** Nanoseconds. */
const SECOND = 1_000_000_000;

/**
 * The beginning of every system's `disarm` on x64: returns 0 if the deadline has not passed, waits while the page is
 * being closed, and continues at `fired`, where the page is opened. In: rdi = the state.
 */
export const X64_DISARM: string = `
  mov rax, [rdi + ${DEADLINE}]
  cmp rax, ${IS_FIRING}
  je wait
  cmp rax, ${HAS_FIRED}
  je fired
  xor ecx, ecx
  lock cmpxchg [rdi + ${DEADLINE}], rcx
  jne disarm
  xor eax, eax
  ret
wait: // the page is being closed
  pause
  jmp disarm
`;

const X64 = `
  .globl arm
  .globl disarm
  // void* thread(state: rdi): never returns
thread:
  mov rbx, rdi
  mov eax, ${X64_CALLS.rt_sigprocmask}
  mov edi, ${SIG_SETMASK}
  lea rsi, [rbx + ${SIGNALS}]
  xor edx, edx
  mov r10d, 8
  syscall
look: // whether there is a deadline, and whether it has passed
  mov r13d, [rbx + ${SEQUENCE}]
  mov r12, [rbx + ${DEADLINE}]
  cmp r12, ${HAS_FIRED}
  jbe none
  mov eax, ${X64_CALLS.clock_gettime}
  mov edi, ${CLOCK_MONOTONIC}
  lea rsi, [rbx + ${TIME}]
  syscall
  imul rax, [rbx + ${TIME}], ${SECOND}
  add rax, [rbx + ${TIME + 8}]
  cmp r12, rax
  jle fire
  mov rax, r12
  xor edx, edx
  mov ecx, ${SECOND}
  div rcx
  mov [rbx + ${TIME}], rax
  mov [rbx + ${TIME + 8}], rdx
  lea r10, [rbx + ${TIME}]
  mov r14, r12
  jmp sleep
none:
  movabs r14, 0x7fffffffffffffff
  xor r10d, r10d
sleep: // publish the wake-up time, check again, wait
  xchg [rbx + ${WAKES}], r14
  cmp r12, [rbx + ${DEADLINE}]
  jne look
  lea rdi, [rbx + ${SEQUENCE}]
  mov esi, ${FUTEX_WAIT_BITSET_PRIVATE}
  mov edx, r13d
  xor r8d, r8d
  mov r9d, ${-1 >>> 0}
  mov eax, ${X64_CALLS.futex}
  syscall
  jmp look
fire: // close the page, unless the deadline has changed
  mov rax, r12
  mov ecx, ${IS_FIRING}
  lock cmpxchg [rbx + ${DEADLINE}], rcx
  jne look
  mov rdi, [rbx + ${PAGE}]
  mov rsi, [rbx + ${PAGE_BYTES}]
  xor edx, edx
  mov eax, ${X64_CALLS.mprotect}
  syscall
  mov eax, ${HAS_FIRED}
  xchg [rbx + ${DEADLINE}], rax
  jmp look
  // int arm(state: rdi)
arm:
  push rbx
  mov rbx, rdi
  sub rsp, 16
  mov eax, ${X64_CALLS.clock_gettime}
  mov edi, ${CLOCK_MONOTONIC}
  mov rsi, rsp
  syscall
  imul rax, [rsp], ${SECOND}
  add rax, [rsp + 8]
  add rsp, 16
  add rax, [rbx + ${DELAY}]
  mov rcx, rax
  xchg [rbx + ${DEADLINE}], rcx
  cmp rax, [rbx + ${WAKES}]
  jge armed
  lock add dword ptr [rbx + ${SEQUENCE}], 1
  lea rdi, [rbx + ${SEQUENCE}]
  mov esi, ${FUTEX_WAKE_PRIVATE}
  mov edx, 1
  mov eax, ${X64_CALLS.futex}
  syscall
armed:
  xor eax, eax
  pop rbx
  ret
  // int disarm(state: rdi): 0, 1 when the deadline had passed, negative when the page cannot be opened
disarm:
${X64_DISARM}
fired: // open the page
  push rdi
  mov rsi, [rdi + ${PAGE_BYTES}]
  mov rdi, [rdi + ${PAGE}]
  mov edx, 1
  mov eax, ${X64_CALLS.mprotect}
  syscall
  pop rdi
  test eax, eax
  js failed
  xor ecx, ecx
  xchg [rdi + ${DEADLINE}], rcx
  mov eax, 1
failed:
  ret
`;

const ARM64 = `
  .globl arm
  .globl disarm
  // void* thread(state: x0): never returns
thread:
  mov x19, x0
  mov x8, #${ARM64_CALLS.rt_sigprocmask}
  mov x0, #${SIG_SETMASK}
  add x1, x19, #${SIGNALS}
  mov x2, #0
  mov x3, #8
  svc #0
look: // whether there is a deadline, and whether it has passed
  add x9, x19, #${SEQUENCE}
  ldar w20, [x9]
  ldar x21, [x19]
  cmp x21, #${HAS_FIRED}
  b.ls none
  mov x8, #${ARM64_CALLS.clock_gettime}
  mov x0, #${CLOCK_MONOTONIC}
  add x1, x19, #${TIME}
  svc #0
  ldp x10, x11, [x19, #${TIME}]
  mov w12, #${SECOND & 0xffff}
  movk w12, #${SECOND >> 16}, lsl #16
  madd x10, x10, x12, x11
  cmp x21, x10
  b.le fire
  udiv x10, x21, x12
  msub x11, x10, x12, x21
  stp x10, x11, [x19, #${TIME}]
  add x3, x19, #${TIME}
  mov x22, x21
  b sleep
none:
  mov x22, #0x7fffffffffffffff
  mov x3, #0
sleep: // publish the wake-up time, check again, wait
  add x9, x19, #${WAKES}
  stlr x22, [x9]
  dmb ish
  ldar x10, [x19]
  cmp x21, x10
  b.ne look
  add x0, x19, #${SEQUENCE}
  mov x1, #${FUTEX_WAIT_BITSET_PRIVATE}
  mov w2, w20
  mov x4, #0
  mov w5, #-1
  mov x8, #${ARM64_CALLS.futex}
  svc #0
  b look
fire: // close the page, unless the deadline has changed
  ldaxr x10, [x19]
  cmp x10, x21
  b.ne look
  mov x11, #${IS_FIRING}
  stlxr w12, x11, [x19]
  cbnz w12, fire
  ldp x0, x1, [x19, #${PAGE}]
  mov x2, #0
  mov x8, #${ARM64_CALLS.mprotect}
  svc #0
  mov x10, #${HAS_FIRED}
  stlr x10, [x19]
  b look
  // int arm(state: x0)
arm:
  mov x9, x0
  sub sp, sp, #16
  mov x8, #${ARM64_CALLS.clock_gettime}
  mov x0, #${CLOCK_MONOTONIC}
  mov x1, sp
  svc #0
  ldp x10, x11, [sp], #16
  mov w12, #${SECOND & 0xffff}
  movk w12, #${SECOND >> 16}, lsl #16
  madd x10, x10, x12, x11
  ldr x11, [x9, #${DELAY}]
  add x10, x10, x11
  stlr x10, [x9]
  dmb ish
  add x11, x9, #${WAKES}
  ldar x12, [x11]
  cmp x10, x12
  b.ge armed
  add x11, x9, #${SEQUENCE}
count:
  ldaxr w12, [x11]
  add w12, w12, #1
  stlxr w13, w12, [x11]
  cbnz w13, count
  mov x0, x11
  mov x1, #${FUTEX_WAKE_PRIVATE}
  mov x2, #1
  mov x8, #${ARM64_CALLS.futex}
  svc #0
armed:
  mov w0, #0
  ret
  // int disarm(state: x0): 0, 1 when the deadline had passed, negative when the page cannot be opened
disarm:
  mov x9, x0
again:
  ldaxr x10, [x9]
  cmp x10, #${IS_FIRING}
  b.eq wait
  cmp x10, #${HAS_FIRED}
  b.eq fired
  stlxr w11, xzr, [x9]
  cbnz w11, again
  mov w0, #0
  ret
wait: // the page is being closed
  clrex
  yield
  b again
fired: // open the page
  clrex
  ldp x0, x1, [x9, #${PAGE}]
  mov x2, #1
  mov x8, #${ARM64_CALLS.mprotect}
  svc #0
  tbnz w0, #31, failed
  stlr xzr, [x9]
  mov w0, #1
failed:
  ret
`;

/** By processor. */
export const LINUX_WATCHDOG = { x64: X64, arm64: ARM64 } as const;
