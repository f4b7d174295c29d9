/**
 * Calls of C functions with the error number as part of the result. In: addresses of functions and integer arguments.
 * Out: the result, or −errno when the function returned −1.
 *
 * One piece of machine code makes the call and reads errno, because the JavaScript runtime may make calls of its own
 * between two foreign calls. Arguments and results are words of a block outside the JavaScript heap. On arm64, macOS
 * passes variadic arguments on the stack (Apple, "Writing ARM64 code for Apple platforms"), so the block has a word for
 * one; functions without variadic arguments ignore it.
 */
import { type Host, PROT } from "../host.ts";
import { isPosix } from "../systems/systems.ts";

/** Byte offsets in the block. */
const BLOCK = {
  FUNCTION: 0,
  ARGUMENTS: 8,
  /** The argument that arm64 passes on the stack. */
  VARIADIC: 56,
  RESULT: 64,
  /** Not 0 if the function returns an int, whose upper half is undefined. */
  IS_INT: 72,
  /** Address of the function that returns the address of errno. */
  ERRNO: 80,
  SIZE: 88,
} as const;

// deno-fmt-ignore
const X64 = Uint8Array.of(
  // int call(block: rdi)
  0x53, // push rbx
  0x48, 0x89, 0xfb, // mov rbx, rdi
  0x48, 0x8b, 0x7b, 0x08, // mov rdi, [rbx + 8]
  0x48, 0x8b, 0x73, 0x10, // mov rsi, [rbx + 16]
  0x48, 0x8b, 0x53, 0x18, // mov rdx, [rbx + 24]
  0x48, 0x8b, 0x4b, 0x20, // mov rcx, [rbx + 32]
  0x4c, 0x8b, 0x43, 0x28, // mov r8, [rbx + 40]
  0x4c, 0x8b, 0x4b, 0x30, // mov r9, [rbx + 48]
  0x31, 0xc0, // xor eax, eax
  0xff, 0x13, // call qword ptr [rbx]
  0x83, 0x7b, 0x48, 0x00, // cmp dword ptr [rbx + 72], 0
  0x74, 0x02, // je wide
  0x48, 0x98, // cdqe
  0x48, 0x83, 0xf8, 0xff, // cmp rax, -1
  0x75, 0x08, // jne done
  0xff, 0x53, 0x50, // call qword ptr [rbx + 80]
  0x8b, 0x00, // mov eax, [rax]
  0x48, 0xf7, 0xd8, // neg rax
  0x48, 0x89, 0x43, 0x40, // mov [rbx + 64], rax
  0x31, 0xc0, // xor eax, eax
  0x5b, // pop rbx
  0xc3, // ret
);

// deno-fmt-ignore
const ARM64 = Uint32Array.of(
  // int call(block: x0)
  0xa9bf7bf3, // stp x19, x30, [sp, #-16]
  0xaa0003f3, // mov x19, x0
  0xa9400268, // ldp x8, x0, [x19]
  0xa9410a61, // ldp x1, x2, [x19, #16]
  0xa9421263, // ldp x3, x4, [x19, #32]
  0xa9432665, // ldp x5, x9, [x19, #48]
  0xf81f0fe9, // str x9, [sp, #-16]
  0xd63f0100, // blr x8
  0x910043ff, // add sp, sp, #16
  0xb9404a69, // ldr w9, [x19, #72]
  0x34000049, // cbz w9, wide
  0x93407c00, // sxtw x0, w0
  0xb100041f, // cmn x0, #1
  0x540000a1, // b.ne done
  0xf9402a69, // ldr x9, [x19, #80]
  0xd63f0120, // blr x9
  0xb9400000, // ldr w0, [x0]
  0xcb0003e0, // neg x0, x0
  0xf9002260, // str x0, [x19, #64]
  0x2a1f03e0, // mov w0, wzr
  0xa8c17bf3, // ldp x19, x30, [sp], #16
  0xd65f03c0, // ret
);

/** The machine code by processor, with which the emulated tests call functions. */
export const CALL_CODE: Readonly<Record<Host["arch"], Uint8Array>> = {
  x64: X64,
  arm64: new Uint8Array(ARM64.buffer),
};

/** A C function: its address, whether it returns an int, and the index of its variadic argument. */
interface CFunction {
  readonly address: number;
  readonly isInt: boolean;
  readonly variadic?: number | undefined;
}

/** Calls a function with up to six integers or addresses: the result, or −errno. */
export type CCall = (fn: CFunction, args: readonly (number | bigint)[]) => number;

/** Calls through this host. Throws an Error on a system whose functions have no errno. */
export function cCalls(host: Host): CCall {
  if (!isPosix(host.system)) throw new Error(`Functions of ${host.system.title} have no errno`);
  const { errnoFunction } = host.system;
  return host.releasingOnError(() => callsThrough(host, errnoFunction));
}

function callsThrough(host: Host, errnoFunction: string): CCall {
  const base = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
  const words = new BigInt64Array(host.view(base, BLOCK.SIZE));
  words[BLOCK.ERRNO >> 3] = BigInt(host.functionAddresses([errnoFunction])[errnoFunction]);
  const { call } = host.boundCalls(CALL_CODE[host.arch], { call: 0 }, base);
  return ({ address, isInt, variadic }, args) => {
    words[BLOCK.FUNCTION >> 3] = BigInt(address);
    words[BLOCK.IS_INT >> 3] = isInt ? 1n : 0n;
    for (let k = 0; k < args.length; k++) words[(BLOCK.ARGUMENTS >> 3) + k] = BigInt(args[k]);
    if (variadic !== undefined) words[BLOCK.VARIADIC >> 3] = BigInt(args[variadic] ?? 0);
    call();
    return Number(words[BLOCK.RESULT >> 3]);
  };
}
