/**
 * Entries whose operands are filled in when they are written: that of a function with its only argument
 * (engine/host/code/object_entry.ts), those of functions that are compiled when they are called, and the gate to which
 * these lead (target.ts of the backends). A label behind an instruction is the end of the operand that is filled in; on
 * arm64, operands are fields of the words at the labels.
 */

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

/** By use and processor. */
export const ENTRIES = {
  bound: { x64: X64_BOUND, arm64: ARM64_BOUND },
  x64: { jump: { x64: X64_JUMP }, lazy: { x64: X64_LAZY }, gate: { x64: X64_GATE } },
  arm64: { jump: { arm64: ARM64_JUMP }, lazy: { arm64: ARM64_LAZY } },
} as const;
