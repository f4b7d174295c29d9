/**
 * Machine code of the watchdog (watchdog.ts) on macOS, whose system calls are not a stable interface: the code calls
 * functions of the C library, whose addresses are in the shared state behind the words that watchdog.ts describes.
 * Data only.
 *
 * The thread waits for a dispatch semaphore, which counts, so a signal between its last look at the deadline and the
 * wait is not lost. The order of stores and loads is that of watchdog_code.ts. Times are those of CLOCK_UPTIME_RAW (8),
 * the clock of dispatch_time. Assembled by clang; the comments are the disassembly.
 */
import { type WatchdogCode, X64_DISARM } from "./watchdog_code.ts";

/** The functions, in the order of their words from FUNCTIONS on. */
export const WATCHDOG_FUNCTIONS = [
  "pthread_sigmask",
  "clock_gettime_nsec_np",
  "dispatch_time",
  "dispatch_semaphore_wait",
  "dispatch_semaphore_signal",
  "mprotect",
] as const;

/** Byte offsets in the shared state: the semaphore, and the first of the functions' addresses. */
export const DARWIN_WATCH = { SEMAPHORE: 72, FUNCTIONS: 80 } as const;

// deno-fmt-ignore
const X64 = Uint8Array.of(
  // void* thread(state: rdi): never returns
  0x53, // push rbx
  0x48, 0x89, 0xfb, // mov rbx, rdi
  0xbf, 0x03, 0x00, 0x00, 0x00, // mov edi, 3
  0x48, 0x8d, 0x73, 0x40, // lea rsi, [rbx + 64]
  0x31, 0xd2, // xor edx, edx
  0xff, 0x53, 0x50, // call qword ptr [rbx + 80]
  // look: whether there is a deadline, and whether it has passed
  0x4c, 0x8b, 0x23, // mov r12, [rbx]
  0x49, 0x83, 0xfc, 0x02, // cmp r12, 2
  0x76, 0x1d, // jbe none
  0xbf, 0x08, 0x00, 0x00, 0x00, // mov edi, 8
  0xff, 0x53, 0x58, // call qword ptr [rbx + 88]
  0x4c, 0x89, 0xe6, // mov rsi, r12
  0x48, 0x29, 0xc6, // sub rsi, rax
  0x76, 0x33, // jbe fire
  0x31, 0xff, // xor edi, edi
  0xff, 0x53, 0x60, // call qword ptr [rbx + 96]
  0x49, 0x89, 0xc5, // mov r13, rax
  0x4d, 0x89, 0xe6, // mov r14, r12
  0xeb, 0x11, // jmp sleep
  // none
  0x49, 0xbe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, // movabs r14, 9223372036854775807
  0x49, 0xc7, 0xc5, 0xff, 0xff, 0xff, 0xff, // mov r13, -1
  // sleep: publish the wake-up time, check again, wait
  0x4c, 0x87, 0x73, 0x08, // xchg [rbx + 8], r14
  0x4c, 0x3b, 0x23, // cmp r12, qword ptr [rbx]
  0x75, 0xc0, // jne look
  0x48, 0x8b, 0x7b, 0x48, // mov rdi, [rbx + 72]
  0x4c, 0x89, 0xee, // mov rsi, r13
  0xff, 0x53, 0x68, // call qword ptr [rbx + 104]
  0xeb, 0xb4, // jmp look
  // fire: close the page, unless the deadline has changed
  0x4c, 0x89, 0xe0, // mov rax, r12
  0xb9, 0x01, 0x00, 0x00, 0x00, // mov ecx, 1
  0xf0, 0x48, 0x0f, 0xb1, 0x0b, // lock cmpxchg qword ptr [rbx], rcx
  0x75, 0xa5, // jne look
  0x48, 0x8b, 0x7b, 0x28, // mov rdi, [rbx + 40]
  0x48, 0x8b, 0x73, 0x30, // mov rsi, [rbx + 48]
  0x31, 0xd2, // xor edx, edx
  0xff, 0x53, 0x78, // call qword ptr [rbx + 120]
  0xb8, 0x02, 0x00, 0x00, 0x00, // mov eax, 2
  0x48, 0x87, 0x03, // xchg [rbx], rax
  0xeb, 0x8e, // jmp look
  0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, // (padding)
  0x66, 0x90, // (padding)
  // int arm(state: rdi)
  0x53, // push rbx
  0x48, 0x89, 0xfb, // mov rbx, rdi
  0xbf, 0x08, 0x00, 0x00, 0x00, // mov edi, 8
  0xff, 0x53, 0x58, // call qword ptr [rbx + 88]
  0x48, 0x03, 0x43, 0x38, // add rax, [rbx + 56]
  0x48, 0x89, 0xc1, // mov rcx, rax
  0x48, 0x87, 0x0b, // xchg [rbx], rcx
  0x48, 0x3b, 0x43, 0x08, // cmp rax, qword ptr [rbx + 8]
  0x7d, 0x07, // jge armed
  0x48, 0x8b, 0x7b, 0x48, // mov rdi, [rbx + 72]
  0xff, 0x53, 0x70, // call qword ptr [rbx + 112]
  // armed
  0x31, 0xc0, // xor eax, eax
  0x5b, // pop rbx
  0xc3, // ret
  0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, // (padding)
  // int disarm(state: rdi): 0, 1 when the deadline had passed, negative when the page cannot be opened
  ...X64_DISARM,
  // fired: open the page
  0x53, // push rbx
  0x48, 0x89, 0xfb, // mov rbx, rdi
  0x48, 0x8b, 0x7b, 0x28, // mov rdi, [rbx + 40]
  0x48, 0x8b, 0x73, 0x30, // mov rsi, [rbx + 48]
  0xba, 0x01, 0x00, 0x00, 0x00, // mov edx, 1
  0xff, 0x53, 0x78, // call qword ptr [rbx + 120]
  0x85, 0xc0, // test eax, eax
  0x78, 0x0a, // js failed
  0x31, 0xc9, // xor ecx, ecx
  0x48, 0x87, 0x0b, // xchg [rbx], rcx
  0xb8, 0x01, 0x00, 0x00, 0x00, // mov eax, 1
  // failed
  0x5b, // pop rbx
  0xc3, // ret
);

// deno-fmt-ignore
const ARM64 = Uint32Array.of(
  // void* thread(state: x0): never returns
  0xaa0003f3, // mov x19, x0
  0x52800060, // mov w0, #3
  0x91010261, // add x1, x19, #64
  0xd2800002, // mov x2, #0
  0xf9402a69, // ldr x9, [x19, #80]
  0xd63f0120, // blr x9
  // look: whether there is a deadline, and whether it has passed
  0xc8dffe75, // ldar x21, [x19]
  0xf1000abf, // cmp x21, #2
  0x54000189, // b.ls none
  0x52800100, // mov w0, #8
  0xf9402e69, // ldr x9, [x19, #88]
  0xd63f0120, // blr x9
  0xeb0002a1, // subs x1, x21, x0
  0x54000289, // b.ls fire
  0xd2800000, // mov x0, #0
  0xf9403269, // ldr x9, [x19, #96]
  0xd63f0120, // blr x9
  0xaa0003f4, // mov x20, x0
  0xaa1503f6, // mov x22, x21
  0x14000003, // b sleep
  // none
  0x92f00016, // mov x22, #9223372036854775807
  0x92800014, // mov x20, #-1
  // sleep: publish the wake-up time, check again, wait
  0x91002269, // add x9, x19, #8
  0xc89ffd36, // stlr x22, [x9]
  0xd5033bbf, // dmb ish
  0xc8dffe6a, // ldar x10, [x19]
  0xeb0a02bf, // cmp x21, x10
  0x54fffd61, // b.ne look
  0xf9402660, // ldr x0, [x19, #72]
  0xaa1403e1, // mov x1, x20
  0xf9403669, // ldr x9, [x19, #104]
  0xd63f0120, // blr x9
  0x17ffffe6, // b look
  // fire: close the page, unless the deadline has changed
  0xc85ffe6a, // ldaxr x10, [x19]
  0xeb15015f, // cmp x10, x21
  0x54fffc61, // b.ne look
  0xd280002b, // mov x11, #1
  0xc80cfe6b, // stlxr w12, x11, [x19]
  0x35ffff6c, // cbnz w12, fire
  0xa9428660, // ldp x0, x1, [x19, #40]
  0x52800002, // mov w2, #0
  0xf9403e69, // ldr x9, [x19, #120]
  0xd63f0120, // blr x9
  0xd280004a, // mov x10, #2
  0xc89ffe6a, // stlr x10, [x19]
  0x17ffffd9, // b look
  // int arm(state: x0)
  0xa9bf7bf3, // stp x19, x30, [sp, #-16]
  0xaa0003f3, // mov x19, x0
  0x52800100, // mov w0, #8
  0xf9402e69, // ldr x9, [x19, #88]
  0xd63f0120, // blr x9
  0xf9401e6a, // ldr x10, [x19, #56]
  0x8b0a000a, // add x10, x0, x10
  0xc89ffe6a, // stlr x10, [x19]
  0xd5033bbf, // dmb ish
  0x9100226b, // add x11, x19, #8
  0xc8dffd6c, // ldar x12, [x11]
  0xeb0c015f, // cmp x10, x12
  0x5400008a, // b.ge armed
  0xf9402660, // ldr x0, [x19, #72]
  0xf9403a69, // ldr x9, [x19, #112]
  0xd63f0120, // blr x9
  // armed
  0x52800000, // mov w0, #0
  0xa8c17bf3, // ldp x19, x30, [sp], #16
  0xd65f03c0, // ret
  // int disarm(state: x0): 0, 1 when the deadline had passed, negative when the page cannot be opened
  0xaa0003e9, // mov x9, x0
  // again
  0xc85ffd2a, // ldaxr x10, [x9]
  0xf100055f, // cmp x10, #1
  0x540000e0, // b.eq wait
  0xf100095f, // cmp x10, #2
  0x54000100, // b.eq fired
  0xc80bfd3f, // stlxr w11, xzr, [x9]
  0x35ffff4b, // cbnz w11, again
  0x52800000, // mov w0, #0
  0xd65f03c0, // ret
  // wait: the page is being closed
  0xd5033f5f, // clrex
  0xd503203f, // yield
  0x17fffff5, // b again
  // fired: open the page
  0xd5033f5f, // clrex
  0xa9bf7bf3, // stp x19, x30, [sp, #-16]
  0xaa0903f3, // mov x19, x9
  0xa9428660, // ldp x0, x1, [x19, #40]
  0x52800022, // mov w2, #1
  0xf9403e69, // ldr x9, [x19, #120]
  0xd63f0120, // blr x9
  0x37f80060, // tbnz w0, #31, failed
  0xc89ffe7f, // stlr xzr, [x19]
  0x52800020, // mov w0, #1
  // failed
  0xa8c17bf3, // ldp x19, x30, [sp], #16
  0xd65f03c0, // ret
);

/** By processor. */
export const DARWIN_WATCHDOG_CODE: Readonly<Record<"x64" | "arm64", WatchdogCode>> = {
  x64: { bytes: X64, arm: 144, disarm: 192 },
  arm64: { bytes: new Uint8Array(ARM64.buffer), arm: 184, disarm: 260 },
};
