/**
 * The frame of code that has parked at a poll: the registers that the process stubs save, and their offsets. In: the
 * stack pointer at the poll. Out: every register of the code in the frame, so that resuming returns to the poll itself.
 *
 *     [GUEST_SP]  PARKED …  vector registers  general registers  flags  address of the poll
 */
import { PARKED } from "../abi/context_layout.ts";
import { R10, R12, R13, R14, R8, R9, RAX, RBP, RCX, RDI, RDX, RSI } from "./registers.ts";

/**
 * Registers that a poll keeps: all but r15, which parking keeps, rbx, which resume loads, and r11, which polls read
 * into.
 */
export const POLL_GENERAL: readonly number[] = [RAX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R12, R13, R14];
export const POLL_VECTORS = 16;

/** Offset of the poll's address from the parked stack pointer. */
export const POLL_RESUME: number = PARKED.FRAME + POLL_VECTORS * 16 + POLL_GENERAL.length * 8 + 8;

/** Bytes of a poll: MOV r11d, [rip + displacement]. */
export const POLL_BYTES = 7;
