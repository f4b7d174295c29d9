/**
 * Machine code of an addon of Node-API, which Deno and Bun offer, too: functions for weak references
 * (systems/native_references.ts). In: the addresses of the functions of Node-API that it calls. Out: the text of a
 * shared object whose entry is at offset 0. Data only, assembled by clang; the comments are the disassembly.
 *
 * Behind the code are the list of functions (a name of at most seven letters, and the distance of its code; an empty
 * name ends it) and the addresses that the code calls. The C type of a function is
 * `napi_value f(napi_env env, napi_callback_info info)`; it has one argument, an object or an integer.
 *
 * Source: "Node-API" of Node's documentation.
 */

/** The functions of Node-API that the code calls, in the order of their addresses. */
export const REFERENCE_CALLS = [
  "napi_create_function",
  "napi_set_named_property",
  "napi_get_cb_info",
  "napi_get_value_int64",
  "napi_create_reference",
  "napi_create_int64",
  "napi_get_reference_value",
  "napi_delete_reference",
  "napi_adjust_external_memory",
] as const;

/** Code for one architecture, and the offsets of the functions that it offers. */
interface ReferenceCode {
  readonly bytes: Uint8Array;
  readonly functions: Readonly<Record<"make" | "get" | "remove" | "adjust", number>>;
}

// deno-fmt-ignore
const X64 = Uint8Array.of(
  // napi_value register(napi_env env, napi_value exports): adds the functions of the list behind the code
  0x53, // push rbx
  0x41, 0x54, // push r12
  0x41, 0x55, // push r13
  0x48, 0x83, 0xec, 0x10, // sub rsp, 0x10
  0x48, 0x89, 0xfb, // mov rbx, rdi
  0x49, 0x89, 0xf4, // mov r12, rsi
  0x4c, 0x8d, 0x2d, 0x42, 0x01, 0x00, 0x00, // lea r13, [rip+0x142] (functions)
  0x48, 0x89, 0xdf, // mov rdi, rbx
  0x4c, 0x89, 0xee, // mov rsi, r13
  0x48, 0xc7, 0xc2, 0xff, 0xff, 0xff, 0xff, // mov rdx, 0xffffffffffffffff
  0x49, 0x8b, 0x4d, 0x08, // mov rcx, [r13+0x8]
  0x4c, 0x01, 0xe9, // add rcx, r13
  0x45, 0x31, 0xc0, // xor r8d, r8d
  0x49, 0x89, 0xe1, // mov r9, rsp
  0xff, 0x15, 0x6a, 0x01, 0x00, 0x00, // call (create_function)
  0x48, 0x89, 0xdf, // mov rdi, rbx
  0x4c, 0x89, 0xe6, // mov rsi, r12
  0x4c, 0x89, 0xea, // mov rdx, r13
  0x48, 0x8b, 0x0c, 0x24, // mov rcx, [rsp]
  0xff, 0x15, 0x5f, 0x01, 0x00, 0x00, // call (set_named_property)
  0x49, 0x83, 0xc5, 0x10, // add r13, 0x10
  0x41, 0x80, 0x7d, 0x00, 0x00, // cmp BYTE PTR [r13+0x0], 0x0
  0x75, 0xc2, // jne next
  0x4c, 0x89, 0xe0, // mov rax, r12
  0x48, 0x83, 0xc4, 0x10, // add rsp, 0x10
  0x41, 0x5d, // pop r13
  0x41, 0x5c, // pop r12
  0x5b, // pop rbx
  0xc3, // ret
  // first: the first argument of the call; env is in rbx
  0x48, 0x83, 0xec, 0x18, // sub rsp, 0x18
  0x48, 0xc7, 0x04, 0x24, 0x01, 0x00, 0x00, 0x00, // mov [rsp], 0x1
  0x48, 0x89, 0xdf, // mov rdi, rbx
  0x48, 0x89, 0xe2, // mov rdx, rsp
  0x48, 0x8d, 0x4c, 0x24, 0x08, // lea rcx, [rsp+0x8]
  0x45, 0x31, 0xc0, // xor r8d, r8d
  0x45, 0x31, 0xc9, // xor r9d, r9d
  0xff, 0x15, 0x2c, 0x01, 0x00, 0x00, // call (get_cb_info)
  0x48, 0x8b, 0x44, 0x24, 0x08, // mov rax, [rsp+0x8]
  0x48, 0x83, 0xc4, 0x18, // add rsp, 0x18
  0xc3, // ret
  // number: the same as an integer
  0x48, 0x83, 0xec, 0x18, // sub rsp, 0x18
  0xe8, 0xca, 0xff, 0xff, 0xff, // call first
  0x48, 0x89, 0xdf, // mov rdi, rbx
  0x48, 0x89, 0xc6, // mov rsi, rax
  0x48, 0x89, 0xe2, // mov rdx, rsp
  0xff, 0x15, 0x12, 0x01, 0x00, 0x00, // call (get_value_int64)
  0x48, 0x8b, 0x04, 0x24, // mov rax, [rsp]
  0x48, 0x83, 0xc4, 0x18, // add rsp, 0x18
  0xc3, // ret
  // make(object): the address of a weak reference, 0 if there is no memory for one
  0x53, // push rbx
  0x48, 0x83, 0xec, 0x10, // sub rsp, 0x10
  0x48, 0x89, 0xfb, // mov rbx, rdi
  0xe8, 0xa5, 0xff, 0xff, 0xff, // call first
  0x48, 0x83, 0x24, 0x24, 0x00, // and [rsp], 0x0
  0x48, 0x89, 0xdf, // mov rdi, rbx
  0x48, 0x89, 0xc6, // mov rsi, rax
  0x31, 0xd2, // xor edx, edx
  0x48, 0x89, 0xe1, // mov rcx, rsp
  0xff, 0x15, 0xee, 0x00, 0x00, 0x00, // call (create_reference)
  0x48, 0x89, 0xdf, // mov rdi, rbx
  0x48, 0x8b, 0x34, 0x24, // mov rsi, [rsp]
  0x48, 0x89, 0xe2, // mov rdx, rsp
  0xff, 0x15, 0xe6, 0x00, 0x00, 0x00, // call (create_int64)
  // result: the value of the local word
  0x48, 0x8b, 0x04, 0x24, // mov rax, [rsp]
  0x48, 0x83, 0xc4, 0x10, // add rsp, 0x10
  0x5b, // pop rbx
  0xc3, // ret
  // get(address): the object of a reference, or nothing
  0x53, // push rbx
  0x48, 0x83, 0xec, 0x10, // sub rsp, 0x10
  0x48, 0x89, 0xfb, // mov rbx, rdi
  0xe8, 0x95, 0xff, 0xff, 0xff, // call number
  0x48, 0x83, 0x24, 0x24, 0x00, // and [rsp], 0x0
  0x48, 0x89, 0xdf, // mov rdi, rbx
  0x48, 0x89, 0xc6, // mov rsi, rax
  0x48, 0x89, 0xe2, // mov rdx, rsp
  0xff, 0x15, 0xc3, 0x00, 0x00, 0x00, // call (get_reference_value)
  0xeb, 0xd3, // jmp result
  // remove(address): frees a reference
  0x53, // push rbx
  0x48, 0x83, 0xec, 0x10, // sub rsp, 0x10
  0x48, 0x89, 0xfb, // mov rbx, rdi
  0xe8, 0x72, 0xff, 0xff, 0xff, // call number
  0x48, 0x89, 0xdf, // mov rdi, rbx
  0x48, 0x89, 0xc6, // mov rsi, rax
  0xff, 0x15, 0xb0, 0x00, 0x00, 0x00, // call (delete_reference)
  0x48, 0x83, 0x24, 0x24, 0x00, // and [rsp], 0x0
  0xeb, 0xb3, // jmp result
  // adjust(bytes): tells the collector that memory outside of its heap has grown or shrunk
  0x53, // push rbx
  0x48, 0x83, 0xec, 0x10, // sub rsp, 0x10
  0x48, 0x89, 0xfb, // mov rbx, rdi
  0xe8, 0x52, 0xff, 0xff, 0xff, // call number
  0x48, 0x89, 0xdf, // mov rdi, rbx
  0x48, 0x89, 0xc6, // mov rsi, rax
  0x48, 0x89, 0xe2, // mov rdx, rsp
  0xff, 0x15, 0x95, 0x00, 0x00, 0x00, // call (adjust_external_memory)
  0x48, 0x83, 0x24, 0x24, 0x00, // and [rsp], 0x0
  0xeb, 0x90, // jmp result
  0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00, // nop
);

// deno-fmt-ignore
const ARM64 = Uint32Array.of(
  // napi_value register(napi_env env, napi_value exports): adds the functions of the list behind the code
  0xa9bd7bfd, // stp x29, x30, [sp, #-48, pre-indexed]
  0xa90153f3, // stp x19, x20, [sp, #16]
  0xf90013f5, // str x21, [sp, #32]
  0xaa0003f3, // mov x19, x0
  0xaa0103f4, // mov x20, x1
  0x10000bb5, // adr x21, #372
  0xaa1303e0, // mov x0, x19
  0xaa1503e1, // mov x1, x21
  0x92800002, // mov x2, #-1
  0xf94006a3, // ldr x3, [x21, #8]
  0x8b150063, // add x3, x3, x21
  0xd2800004, // mov x4, #0
  0x9100a3e5, // add x5, sp, #40
  0x58000cf0, // ldr x16, create_function
  0xd63f0200, // blr x16
  0xaa1303e0, // mov x0, x19
  0xaa1403e1, // mov x1, x20
  0xaa1503e2, // mov x2, x21
  0xf94017e3, // ldr x3, [sp, #40]
  0x58000c70, // ldr x16, set_named_property
  0xd63f0200, // blr x16
  0x38410ea3, // ldrb w3, [x21, #16, pre-indexed]
  0x35fffe03, // cbnz w3, next
  0xaa1403e0, // mov x0, x20
  0xf94013f5, // ldr x21, [sp, #32]
  0xa94153f3, // ldp x19, x20, [sp, #16]
  0xa8c37bfd, // ldp x29, x30, [sp], #48
  0xd65f03c0, // ret
  // first: the first argument of the call; env is in x19
  0xa9be7bfd, // stp x29, x30, [sp, #-32, pre-indexed]
  0xaa1303e0, // mov x0, x19
  0xd2800022, // mov x2, #1
  0xf9000be2, // str x2, [sp, #16]
  0x910043e2, // add x2, sp, #16
  0x910063e3, // add x3, sp, #24
  0xd2800004, // mov x4, #0
  0xd2800005, // mov x5, #0
  0x58000a90, // ldr x16, get_cb_info
  0xd63f0200, // blr x16
  0xf9400fe1, // ldr x1, [sp, #24]
  0xa8c27bfd, // ldp x29, x30, [sp], #32
  0xd65f03c0, // ret
  // number: the same as an integer
  0xa9be7bfd, // stp x29, x30, [sp, #-32, pre-indexed]
  0x97fffff2, // bl first
  0xaa1303e0, // mov x0, x19
  0x910043e2, // add x2, sp, #16
  0x580009b0, // ldr x16, get_value_int64
  0xd63f0200, // blr x16
  0xf9400be1, // ldr x1, [sp, #16]
  0xa8c27bfd, // ldp x29, x30, [sp], #32
  0xd65f03c0, // ret
  // make(object): the address of a weak reference, 0 if there is no memory for one
  0xa9be7bfd, // stp x29, x30, [sp, #-32, pre-indexed]
  0xf9000bf3, // str x19, [sp, #16]
  0xaa0003f3, // mov x19, x0
  0x97ffffe7, // bl first
  0xf9000fff, // str xzr, [sp, #24]
  0xaa1303e0, // mov x0, x19
  0xd2800002, // mov x2, #0
  0x910063e3, // add x3, sp, #24
  0x58000850, // ldr x16, create_reference
  0xd63f0200, // blr x16
  0xaa1303e0, // mov x0, x19
  0xf9400fe1, // ldr x1, [sp, #24]
  0x910063e2, // add x2, sp, #24
  0x580007f0, // ldr x16, create_int64
  0xd63f0200, // blr x16
  // result: the value of the local word
  0xa94103f3, // ldp x19, x0, [sp, #16]
  0xa8c27bfd, // ldp x29, x30, [sp], #32
  0xd65f03c0, // ret
  // get(address): the object of a reference, or nothing
  0xa9be7bfd, // stp x29, x30, [sp, #-32, pre-indexed]
  0xf9000bf3, // str x19, [sp, #16]
  0xaa0003f3, // mov x19, x0
  0x97ffffe2, // bl number
  0xf9000fff, // str xzr, [sp, #24]
  0xaa1303e0, // mov x0, x19
  0x910063e2, // add x2, sp, #24
  0x580006b0, // ldr x16, get_reference_value
  0xd63f0200, // blr x16
  0x17fffff4, // b result
  // remove(address): frees a reference
  0xa9be7bfd, // stp x29, x30, [sp, #-32, pre-indexed]
  0xf9000bf3, // str x19, [sp, #16]
  0xaa0003f3, // mov x19, x0
  0x97ffffd8, // bl number
  0xf9000fff, // str xzr, [sp, #24]
  0xaa1303e0, // mov x0, x19
  0x580005d0, // ldr x16, delete_reference
  0xd63f0200, // blr x16
  0x17ffffeb, // b result
  // adjust(bytes): tells the collector that memory outside of its heap has grown or shrunk
  0xa9be7bfd, // stp x29, x30, [sp, #-32, pre-indexed]
  0xf9000bf3, // str x19, [sp, #16]
  0xaa0003f3, // mov x19, x0
  0x97ffffcf, // bl number
  0xaa1303e0, // mov x0, x19
  0x910063e2, // add x2, sp, #24
  0x580004f0, // ldr x16, adjust_external_memory
  0xd63f0200, // blr x16
  0xf9000fff, // str xzr, [sp, #24]
  0x17ffffe1, // b result
  0xd503201f, // nop
);

const CODE: Readonly<Record<"x64" | "arm64", ReferenceCode>> = {
  x64: { bytes: X64, functions: { make: 175, get: 236, remove: 271, adjust: 303 } },
  arm64: { bytes: new Uint8Array(ARM64.buffer), functions: { make: 200, get: 272, remove: 312, adjust: 348 } },
};

const ENTRY_BYTES = 16;

/** The text of the addon. */
export function referenceCode(
  arch: "x64" | "arm64",
  addresses: Readonly<Record<(typeof REFERENCE_CALLS)[number], number>>,
): Uint8Array {
  const { bytes, functions } = CODE[arch];
  const entries = Object.entries(functions);
  const called = bytes.length + entries.length * ENTRY_BYTES + 8;
  const text = new Uint8Array(called + REFERENCE_CALLS.length * 8);
  const view = new DataView(text.buffer);
  text.set(bytes);
  entries.forEach(([name, offset], k) => {
    const at = bytes.length + k * ENTRY_BYTES;
    new TextEncoder().encodeInto(name, text.subarray(at, at + 8));
    view.setBigInt64(at + 8, BigInt(offset - at), true);
  });
  REFERENCE_CALLS.forEach((name, k) => view.setBigUint64(called + k * 8, BigInt(addresses[name]), true));
  return text;
}
