/**
 * An addon of Node-API (engine/host/code/reference_code.ts), whose entry is at offset 0: functions for weak references,
 * of the C type `napi_value f(napi_env env, napi_callback_info info)`. Each has one argument, an object or an integer.
 *
 * Behind the code are the list of functions (a name of at most seven letters, and the distance of its code; an empty
 * name ends it) and the addresses that the code calls.
 *
 * Source: "Node-API" of Node's documentation.
 */
import { ADDON_FUNCTIONS, REFERENCE_CALLS } from "../../../engine/host/code/reference_code.ts";

/** The part behind the code, and the labels that the result has. */
const DATA = `
${ADDON_FUNCTIONS.map((name) => `  .globl ${name}`).join("\n")}
  .globl functions
  .globl calls
functions:
${"  .quad 0\n".repeat(2 * ADDON_FUNCTIONS.length + 1)}
calls:
${REFERENCE_CALLS.map((name) => `${name}:\n  .quad 0`).join("\n")}
`;

const X64 = `
  // napi_value register(napi_env env, napi_value exports): adds the functions of the list behind the code
register:
  push rbx
  push r12
  push r13
  sub rsp, 16
  mov rbx, rdi
  mov r12, rsi
  lea r13, [rip + functions]
next:
  mov rdi, rbx
  mov rsi, r13
  mov rdx, -1
  mov rcx, [r13 + 8]
  add rcx, r13
  xor r8d, r8d
  mov r9, rsp
  call [rip + napi_create_function]
  mov rdi, rbx
  mov rsi, r12
  mov rdx, r13
  mov rcx, [rsp]
  call [rip + napi_set_named_property]
  add r13, 16
  cmp byte ptr [r13], 0
  jne next
  mov rax, r12
  add rsp, 16
  pop r13
  pop r12
  pop rbx
  ret
first: // the first argument of the call; env is in rbx
  sub rsp, 24
  mov qword ptr [rsp], 1
  mov rdi, rbx
  mov rdx, rsp
  lea rcx, [rsp + 8]
  xor r8d, r8d
  xor r9d, r9d
  call [rip + napi_get_cb_info]
  mov rax, [rsp + 8]
  add rsp, 24
  ret
number: // the same as an integer
  sub rsp, 24
  call first
  mov rdi, rbx
  mov rsi, rax
  mov rdx, rsp
  call [rip + napi_get_value_int64]
  mov rax, [rsp]
  add rsp, 24
  ret
  // make(object): the address of a weak reference, 0 if there is no memory for one
make:
  push rbx
  sub rsp, 16
  mov rbx, rdi
  call first
  and qword ptr [rsp], 0
  mov rdi, rbx
  mov rsi, rax
  xor edx, edx
  mov rcx, rsp
  call [rip + napi_create_reference]
  mov rdi, rbx
  mov rsi, [rsp]
  mov rdx, rsp
  call [rip + napi_create_int64]
result: // the value of the local word
  mov rax, [rsp]
  add rsp, 16
  pop rbx
  ret
  // get(address): the object of a reference, or nothing
get:
  push rbx
  sub rsp, 16
  mov rbx, rdi
  call number
  and qword ptr [rsp], 0
  mov rdi, rbx
  mov rsi, rax
  mov rdx, rsp
  call [rip + napi_get_reference_value]
  jmp result
  // remove(address): frees a reference
remove:
  push rbx
  sub rsp, 16
  mov rbx, rdi
  call number
  mov rdi, rbx
  mov rsi, rax
  call [rip + napi_delete_reference]
  and qword ptr [rsp], 0
  jmp result
  // adjust(bytes): tells the collector that memory outside of its heap has grown or shrunk
adjust:
  push rbx
  sub rsp, 16
  mov rbx, rdi
  call number
  mov rdi, rbx
  mov rsi, rax
  mov rdx, rsp
  call [rip + napi_adjust_external_memory]
  and qword ptr [rsp], 0
  jmp result
  .balign 8, 204
${DATA}
`;

const ARM64 = `
  // napi_value register(napi_env env, napi_value exports): adds the functions of the list behind the code
register:
  stp x29, x30, [sp, #-48]!
  stp x19, x20, [sp, #16]
  str x21, [sp, #32]
  mov x19, x0
  mov x20, x1
  adr x21, functions
next:
  mov x0, x19
  mov x1, x21
  mov x2, #-1
  ldr x3, [x21, #8]
  add x3, x3, x21
  mov x4, #0
  add x5, sp, #40
  ldr x16, napi_create_function
  blr x16
  mov x0, x19
  mov x1, x20
  mov x2, x21
  ldr x3, [sp, #40]
  ldr x16, napi_set_named_property
  blr x16
  ldrb w3, [x21, #16]!
  cbnz w3, next
  mov x0, x20
  ldr x21, [sp, #32]
  ldp x19, x20, [sp, #16]
  ldp x29, x30, [sp], #48
  ret
first: // the first argument of the call; env is in x19
  stp x29, x30, [sp, #-32]!
  mov x0, x19
  mov x2, #1
  str x2, [sp, #16]
  add x2, sp, #16
  add x3, sp, #24
  mov x4, #0
  mov x5, #0
  ldr x16, napi_get_cb_info
  blr x16
  ldr x1, [sp, #24]
  ldp x29, x30, [sp], #32
  ret
number: // the same as an integer
  stp x29, x30, [sp, #-32]!
  bl first
  mov x0, x19
  add x2, sp, #16
  ldr x16, napi_get_value_int64
  blr x16
  ldr x1, [sp, #16]
  ldp x29, x30, [sp], #32
  ret
  // make(object): the address of a weak reference, 0 if there is no memory for one
make:
  stp x29, x30, [sp, #-32]!
  str x19, [sp, #16]
  mov x19, x0
  bl first
  str xzr, [sp, #24]
  mov x0, x19
  mov x2, #0
  add x3, sp, #24
  ldr x16, napi_create_reference
  blr x16
  mov x0, x19
  ldr x1, [sp, #24]
  add x2, sp, #24
  ldr x16, napi_create_int64
  blr x16
result: // the value of the local word
  ldp x19, x0, [sp, #16]
  ldp x29, x30, [sp], #32
  ret
  // get(address): the object of a reference, or nothing
get:
  stp x29, x30, [sp, #-32]!
  str x19, [sp, #16]
  mov x19, x0
  bl number
  str xzr, [sp, #24]
  mov x0, x19
  add x2, sp, #24
  ldr x16, napi_get_reference_value
  blr x16
  b result
  // remove(address): frees a reference
remove:
  stp x29, x30, [sp, #-32]!
  str x19, [sp, #16]
  mov x19, x0
  bl number
  str xzr, [sp, #24]
  mov x0, x19
  ldr x16, napi_delete_reference
  blr x16
  b result
  // adjust(bytes): tells the collector that memory outside of its heap has grown or shrunk
adjust:
  stp x29, x30, [sp, #-32]!
  str x19, [sp, #16]
  mov x19, x0
  bl number
  mov x0, x19
  add x2, sp, #24
  ldr x16, napi_adjust_external_memory
  blr x16
  str xzr, [sp, #24]
  b result
  nop
${DATA}
`;

/** By processor. */
export const REFERENCES = { x64: X64, arm64: ARM64 } as const;
