/**
 * Calling convention and frames.
 *
 *     parameters   general: rax rcx rdx rsi rdi r8 r9 · vector: xmm0-xmm7
 *                  the rest: overflow buffer, 16 bytes × parameter index
 *     results      general: rax rcx · vector: xmm0 xmm1 · the rest: overflow buffer, 16 bytes × result index
 *     record       r10 holds the address of the function record (CALL_RECORD, CALL_IMPORT); host thunks read
 *                  RECORD.HOST
 *     preserved    rsp, r15 (context), rbx and r14 (memory 0 of the context, as fresh as its fields); nothing else
 *     i32 values   are zero-extended to 64 bits in registers, always
 *
 * The overflow buffer is written right before the call (or return) and read right after it, so it needs no stack
 * discipline. rsp is aligned to 8 only: compiled code needs no more, and the host is entered only on its own stack.
 *
 *     frame of a function                          a parked call (guest stack while the host runs)
 *       [rsp + frame]  return address                [GUEST_SP + 24]  frame of the code at RESUME, a call site like any
 *       …              slots of 8 bytes              [GUEST_SP + 16]  where resume continues (in a thunk of the image)
 *       [rsp]          slot 0                        [GUEST_SP +  8]  VM context of the parked code
 *                                                    [GUEST_SP]       GUEST_SP as it was when the activation began
 *
 * While guest code runs, THREAD.GUEST_SP still holds the stack pointer at the start of its activation, so a trap needs
 * no unwinding and an abandoned parked call is undone by writing [GUEST_SP] back to GUEST_SP.
 */
import { argumentLocations, ArgumentRegisters } from "../codegen/abi_locations.ts";
import { R10, R8, R9, RAX, RCX, RDI, RDX, RSI } from "./registers.ts";

/** The registers of parameters. */
export function paramRegisters(): ArgumentRegisters {
  return new ArgumentRegisters([RAX, RCX, RDX, RSI, RDI, R8, R9], 8);
}

/** The registers of results. */
export function resultRegisters(): ArgumentRegisters {
  return new ArgumentRegisters([RAX, RCX], 2);
}

/** The register that holds a record's address at a call through it. */
export const RECORD_REGISTER = R10;

/** Bytes below CONTEXT.STACK_LIMIT that leaf functions, stubs and frames without a stack check may use. */
export const STACK_SLACK = 1024;

/** Size of one entry of the overflow buffer. */
export const OVERFLOW_ENTRY = 16;

/** Physical register per parameter, −1 for the overflow buffer. */
export const paramLocations: (types: Uint8Array) => Int8Array = argumentLocations(paramRegisters());

/** Physical register per result, −1 for the overflow buffer. */
export const resultLocations: (types: Uint8Array) => Int8Array = argumentLocations(resultRegisters());
