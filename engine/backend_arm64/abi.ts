/**
 * Calling convention and frames.
 *
 *     parameters   general: x0-x7 · vector: v0-v7 · the rest: overflow buffer, 16 bytes × parameter index
 *     results      general: x0 x1 · vector: v0 v1 · the rest: overflow buffer, 16 bytes × result index
 *     record       x15 holds the address of the function record (CALL_RECORD, CALL_IMPORT); host thunks read
 *                  RECORD.HOST
 *     preserved    sp, x28 (context), x26 and x27 (memory 0 of the context, as fresh as its fields); nothing else
 *     i32 values   are zero-extended to 64 bits in registers, always
 *
 * sp is a multiple of 16. The runtime walks stacks as if calls pushed return addresses: a site's `frame` is the
 * distance from sp to the saved return address, and the caller's sp is 8 bytes above that. Functions therefore save x30
 * in the uppermost word of their frame, and GUEST_SP needs no alignment (parked frames begin 24 bytes below an aligned
 * sp).
 *
 *     frame of a function, N bytes                 a parked call (guest stack while the host runs)
 *       [sp + N − 8]  return address                 [GUEST_SP + 24]  frame of the code at RESUME, a call site like any
 *       …             slots of 8 bytes               [GUEST_SP + 16]  where resume continues (in a thunk of the image)
 *       [sp]          slot 0                         [GUEST_SP +  8]  VM context of the parked code
 *                                                    [GUEST_SP]       GUEST_SP as it was when the activation began
 *
 * A function without calls has no frame, or one without return address: x30 keeps it. When such a function faults, the
 * handler writes x30 to [sp − 8] and reports sp − 16; therefore the frame of a faulting site is FAULT_FRAME greater
 * than its distance to the return address (or to the word right below the frame, in functions that have not saved it:
 * distance −8).
 */
import { argumentLocations, ArgumentRegisters } from "../codegen/abi_locations.ts";

/** The register that holds a record's address at a call through it. */
export const RECORD_REGISTER = 15;

/** Bytes below CONTEXT.STACK_LIMIT that leaf functions, stubs and frames without a stack check may use. */
export const STACK_SLACK = 1024;

/** Size of one entry of the overflow buffer. */
export const OVERFLOW_ENTRY = 16;

/** Distance from sp down to the stack pointer that the fault handler reports. */
export const FAULT_FRAME = 16;

/** The registers of parameters. */
export function paramRegisters(): ArgumentRegisters {
  return new ArgumentRegisters([0, 1, 2, 3, 4, 5, 6, 7], 8);
}

/** The registers of results. */
export function resultRegisters(): ArgumentRegisters {
  return new ArgumentRegisters([0, 1], 2);
}

/** Physical register per parameter, −1 for the overflow buffer. */
export const paramLocations: (types: Uint8Array) => Int8Array = argumentLocations(paramRegisters());

/** Physical register per result, −1 for the overflow buffer. */
export const resultLocations: (types: Uint8Array) => Int8Array = argumentLocations(resultRegisters());
