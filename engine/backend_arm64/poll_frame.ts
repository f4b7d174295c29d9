/**
 * The frame of code that has parked at a poll: the registers that the process stubs save, and their offsets. In: the
 * stack pointer at the poll. Out: every register of the code in the frame, so that resuming returns to the poll itself.
 *
 *     [GUEST_SP]  PARKED …  vector registers  general registers  x30  address of the poll  FAULT_FRAME
 */
import { PARKED } from "../abi/context_layout.ts";
import { FAULT_FRAME } from "./abi.ts";
import { registerFile, SCRATCH } from "./registers.ts";

/** Registers that a poll preserves besides x30: all allocatable ones, and x16, from which polls read. */
export const POLL_GENERAL: readonly number[] = [...registerFile(false).generalOrder, SCRATCH];
export const POLL_VECTORS = 32;

/** Words of the vectors, and of everything in front of x30; general registers are saved in pairs. */
export const POLL_PAIRS = POLL_VECTORS * 2;
export const POLL_LINK: number = POLL_PAIRS + POLL_GENERAL.length + (POLL_GENERAL.length & 1);

/** Bytes of the frame, with the words that the fault handler wrote. */
export const POLL_FRAME: number = (POLL_LINK + 2) * 8 + FAULT_FRAME;

/** Offset of the poll's address from the parked stack pointer. */
export const POLL_RESUME: number = PARKED.FRAME + POLL_LINK * 8 + 8;

/** Bytes of a poll: LDR wzr, [x16]. */
export const POLL_BYTES = 4;
