/**
 * The parts of an architecture that the rules need: its decoder, the rules for its instructions, and its calling
 * convention in terms of locations (facts.ts). x64_machine.ts and arm64_machine.ts implement it.
 *
 * Masks of registers have a bit per general register, by its number in the instruction set.
 */
import type { Analysis } from "./analysis.ts";
import type { CodeMap } from "./code_map.ts";
import type { Instructions } from "./instructions.ts";

/** One architecture. */
export interface Machine {
  /** Location of each general register. */
  readonly locations: Uint8Array;
  /** The location number by which columns name the stack pointer; no facts are kept under it. */
  readonly stackPointer: number;
  /** The first location of slots. */
  readonly firstSlot: number;
  /** Locations of the registers with a role. `link`: holds the return address, −1: the stack does. */
  readonly context: number;
  readonly memoryBase: number;
  readonly memoryLength: number;
  readonly record: number;
  readonly scratch: number;
  readonly link: number;
  /** Locations of parameters and results. */
  readonly parameters: readonly number[];
  readonly results: readonly number[];
  /** Masks of the registers that a call may change: of any function, of a native routine, of the allocation stub. */
  readonly allWritten: number;
  readonly nativeWrites: number;
  readonly allocateWrites: number;
  /** Bytes of a frame that the tables of call sites do not count: the word with the saved return address on arm64. */
  readonly siteBytes: number;
  /** Bytes of a jump in a table of jumps. */
  readonly jumpBytes: number;

  /** Decodes one function into `into`, which has begun. */
  decode(bytes: Uint8Array, start: number, end: number, into: Instructions): void;
  /** The mask of general registers that instruction `n`, no call, writes. */
  written(code: Instructions, n: number): number;
  /** The constant of 64 bits that instruction `n` moves to a register, with sign; 0 for other instructions. */
  constantOf(code: Instructions, n: number): number;
  /** Whether instruction `n`, KIND.JUMP_INDIRECT, jumps among places of its function. */
  jumpsInside(code: Instructions, n: number): boolean;
  /** Whether instruction `n` may be a poll, whose last four bytes are the displacement to the poll page. */
  isPoll(code: Instructions, n: number): boolean;
  /** Pseudo-locations at the entry of a function. */
  enter(a: Analysis): void;
  /** Interprets an instruction without control flow. */
  step(a: Analysis, map: CodeMap): void;
  /** Interprets a push or pop, or another change of the stack that is a control instruction. */
  moveStack(a: Analysis): void;
  /** Sets the flags for a branch that compares by itself. Returns the condition code of x64 that the branch tests. */
  branchCondition(a: Analysis): number;
  /** Whether the branch is always taken. */
  isTaken(a: Analysis, condition: number): boolean;
  /** Takes the return address of a jump that is a call away; returns false unless it is the next instruction's. */
  popReturn(a: Analysis): boolean;
  /** Whether the instruction calls the code of the record in the record register. */
  targetsRecord(a: Analysis): boolean;
  /** Fails unless an instruction that leaves the function returns to the function's caller. */
  checkReturn(a: Analysis): void;
  /** The function was entered by a tail call from another instance, whose frame counts as pushed. */
  reuseTailFrame(a: Analysis): void;
  /** Whether a frame for a tail call into another instance was pushed. */
  hasTailFrame(a: Analysis): boolean;
  /** Fails unless the return address is saved in the word of the frame that stack walks read. */
  checkSavedReturn(a: Analysis): void;
}
