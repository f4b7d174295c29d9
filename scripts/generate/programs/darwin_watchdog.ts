/**
 * The watchdog on macOS, whose system calls are not a stable interface: the code calls functions of the C library,
 * whose addresses are in the shared state. The thread waits for a dispatch semaphore, which counts, so a signal between
 * its last look at the deadline and the wait is not lost. The order of stores and loads is that of watchdog.ts. Times
 * are those of CLOCK_UPTIME_RAW, the clock of dispatch_time.
 */
import { DARWIN_WATCH, WATCHDOG_FUNCTIONS } from "../../../engine/host/code/darwin_watchdog.ts";
import { WATCH, WATCH_STATE } from "../../../engine/host/code/watchdog.ts";
import { X64_DISARM } from "./watchdog.ts";

const { DEADLINE, WAKES, PAGE, PAGE_BYTES, DELAY, SIGNALS } = WATCH;
const { IS_FIRING, HAS_FIRED } = WATCH_STATE;
const { SEMAPHORE } = DARWIN_WATCH;
const [SIGMASK, CLOCK, DISPATCH_TIME, WAIT, SIGNAL, PROTECT] = WATCHDOG_FUNCTIONS.map((_, k) =>
  DARWIN_WATCH.FUNCTIONS + 8 * k
);

const SIG_SETMASK = 3;
const CLOCK_UPTIME_RAW = 8;

const X64 = `
  .globl arm
  .globl disarm
  // void* thread(state: rdi): never returns
thread:
  push rbx
  mov rbx, rdi
  mov edi, ${SIG_SETMASK}
  lea rsi, [rbx + ${SIGNALS}]
  xor edx, edx
  call [rbx + ${SIGMASK}]
look: // whether there is a deadline, and whether it has passed
  mov r12, [rbx + ${DEADLINE}]
  cmp r12, ${HAS_FIRED}
  jbe none
  mov edi, ${CLOCK_UPTIME_RAW}
  call [rbx + ${CLOCK}]
  mov rsi, r12
  sub rsi, rax
  jbe fire
  xor edi, edi
  call [rbx + ${DISPATCH_TIME}]
  mov r13, rax
  mov r14, r12
  jmp sleep
none:
  movabs r14, 0x7fffffffffffffff
  mov r13, -1
sleep: // publish the wake-up time, check again, wait
  xchg [rbx + ${WAKES}], r14
  cmp r12, [rbx + ${DEADLINE}]
  jne look
  mov rdi, [rbx + ${SEMAPHORE}]
  mov rsi, r13
  call [rbx + ${WAIT}]
  jmp look
fire: // close the page, unless the deadline has changed
  mov rax, r12
  mov ecx, ${IS_FIRING}
  lock cmpxchg [rbx + ${DEADLINE}], rcx
  jne look
  mov rdi, [rbx + ${PAGE}]
  mov rsi, [rbx + ${PAGE_BYTES}]
  xor edx, edx
  call [rbx + ${PROTECT}]
  mov eax, ${HAS_FIRED}
  xchg [rbx + ${DEADLINE}], rax
  jmp look
  // int arm(state: rdi)
arm:
  push rbx
  mov rbx, rdi
  mov edi, ${CLOCK_UPTIME_RAW}
  call [rbx + ${CLOCK}]
  add rax, [rbx + ${DELAY}]
  mov rcx, rax
  xchg [rbx + ${DEADLINE}], rcx
  cmp rax, [rbx + ${WAKES}]
  jge armed
  mov rdi, [rbx + ${SEMAPHORE}]
  call [rbx + ${SIGNAL}]
armed:
  xor eax, eax
  pop rbx
  ret
  // int disarm(state: rdi): 0, 1 when the deadline had passed, negative when the page cannot be opened
disarm:
${X64_DISARM}
fired: // open the page
  push rbx
  mov rbx, rdi
  mov rdi, [rbx + ${PAGE}]
  mov rsi, [rbx + ${PAGE_BYTES}]
  mov edx, 1
  call [rbx + ${PROTECT}]
  test eax, eax
  js failed
  xor ecx, ecx
  xchg [rbx + ${DEADLINE}], rcx
  mov eax, 1
failed:
  pop rbx
  ret
`;

const ARM64 = `
  .globl arm
  .globl disarm
  // void* thread(state: x0): never returns
thread:
  mov x19, x0
  mov w0, #${SIG_SETMASK}
  add x1, x19, #${SIGNALS}
  mov x2, #0
  ldr x9, [x19, #${SIGMASK}]
  blr x9
look: // whether there is a deadline, and whether it has passed
  ldar x21, [x19]
  cmp x21, #${HAS_FIRED}
  b.ls none
  mov w0, #${CLOCK_UPTIME_RAW}
  ldr x9, [x19, #${CLOCK}]
  blr x9
  subs x1, x21, x0
  b.ls fire
  mov x0, #0
  ldr x9, [x19, #${DISPATCH_TIME}]
  blr x9
  mov x20, x0
  mov x22, x21
  b sleep
none:
  mov x22, #0x7fffffffffffffff
  mov x20, #-1
sleep: // publish the wake-up time, check again, wait
  add x9, x19, #${WAKES}
  stlr x22, [x9]
  dmb ish
  ldar x10, [x19]
  cmp x21, x10
  b.ne look
  ldr x0, [x19, #${SEMAPHORE}]
  mov x1, x20
  ldr x9, [x19, #${WAIT}]
  blr x9
  b look
fire: // close the page, unless the deadline has changed
  ldaxr x10, [x19]
  cmp x10, x21
  b.ne look
  mov x11, #${IS_FIRING}
  stlxr w12, x11, [x19]
  cbnz w12, fire
  ldp x0, x1, [x19, #${PAGE}]
  mov w2, #0
  ldr x9, [x19, #${PROTECT}]
  blr x9
  mov x10, #${HAS_FIRED}
  stlr x10, [x19]
  b look
  // int arm(state: x0)
arm:
  stp x19, x30, [sp, #-16]!
  mov x19, x0
  mov w0, #${CLOCK_UPTIME_RAW}
  ldr x9, [x19, #${CLOCK}]
  blr x9
  ldr x10, [x19, #${DELAY}]
  add x10, x0, x10
  stlr x10, [x19]
  dmb ish
  add x11, x19, #${WAKES}
  ldar x12, [x11]
  cmp x10, x12
  b.ge armed
  ldr x0, [x19, #${SEMAPHORE}]
  ldr x9, [x19, #${SIGNAL}]
  blr x9
armed:
  mov w0, #0
  ldp x19, x30, [sp], #16
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
  stp x19, x30, [sp, #-16]!
  mov x19, x9
  ldp x0, x1, [x19, #${PAGE}]
  mov w2, #1
  ldr x9, [x19, #${PROTECT}]
  blr x9
  tbnz w0, #31, failed
  stlr xzr, [x19]
  mov w0, #1
failed:
  ldp x19, x30, [sp], #16
  ret
`;

/** By processor. */
export const DARWIN_WATCHDOG = { x64: X64, arm64: ARM64 } as const;
