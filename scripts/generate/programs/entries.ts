/**
 * Entries whose operands are filled in when they are written: that of a function with its only argument
 * (engine/host/code/object_entry.ts), those of functions that are compiled when they are called, the gate to which
 * these lead, and those of loops (target.ts of the backends). A label behind an instruction is the end of the
 * operand that is filled in; on arm64, operands are fields of the words at the labels.
 */
import { CONTEXT, MEMORY } from "../../../engine/abi/context_layout.ts";

/** Jumps to the function with the argument `pointer`. */
const X64_BOUND = `
  .globl pointer
  .globl target
  movabs rdi, 0x7fffffffffffffff
pointer:
  {disp32} jmp target
target:
  .balign 16, 0
`;

const ARM64_BOUND = `
  .globl pointer
  .globl target
  ldr x0, pointer
target:
  b target
pointer:
  .quad 0
`;

/** Jumps to the address in a slot, with the index of the function. */
const X64_LAZY = `
  .globl index
  .globl slot
  mov r11d, 0
index:
  jmp [rip + slot]
slot:
  .balign 16, 204
`;

const ARM64_LAZY = `
  movz w16, #0
  movk w16, #0, lsl #16
  adrp x17, #0
  ldr x17, [x17]
  br x17
`;

/** Jumps from the entry of replaced code. */
const X64_JUMP = `
  .globl target
  {disp32} jmp target
target:
`;

const ARM64_JUMP = `
target:
  b target
`;

/** Leaves the function's index on the stack, and the address of the block in r11. */
const X64_GATE = `
  .globl block
  .globl slow
  .globl stub
  push r11
  lea r11, [rip + block]
block:
  jmp [r11]
slow:
  pop r11
  {disp32} jmp stub
stub:
  .balign 32, 204
`;

/** Offset in the context of the length of memory 0, which is in a register. */
const LENGTH = CONTEXT.SIZE + MEMORY.LENGTH;

/**
 * On-stack replacement: a baseline function continues here when it is resumed at a poll, with its frame at the stack
 * pointer. Calls the optimized rest of the function with the address of the frame, which stays on the stack meanwhile,
 * so that stack walks see an ordinary call; then returns to the caller. Each label begins a part: explicit bounds need
 * the first one, since the memory may be longer after a poll, and of the sums at most one releases the frame.
 */
const X64_LOOP = `
  .globl call
  .globl short
  .globl long
  .globl ret
  mov r14, [r15 + ${LENGTH}]
call:
  mov rax, rsp
  call short
short:
  add rsp, 0x7f
long:
  add rsp, 0x7fffffff
ret:
  ret
`;

/** The return address is in the uppermost word of the frame. The sums are the high and the low part of its size. */
const ARM64_LOOP = `
  .globl call
  .globl high
  .globl low
  .globl ret
  ldr x27, [x28, #${LENGTH}]
call:
  mov x0, sp
rest:
  bl rest
high:
  add sp, sp, #0, lsl #12
low:
  add sp, sp, #0
ret:
  ldp xzr, x30, [sp], #16
  ret
`;

/** By use and processor. */
export const ENTRIES = {
  bound: { x64: X64_BOUND, arm64: ARM64_BOUND },
  x64: { jump: { x64: X64_JUMP }, lazy: { x64: X64_LAZY }, gate: { x64: X64_GATE }, loop: { x64: X64_LOOP } },
  arm64: { jump: { arm64: ARM64_JUMP }, lazy: { arm64: ARM64_LAZY }, loop: { arm64: ARM64_LOOP } },
} as const;
