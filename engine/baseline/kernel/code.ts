/**
 * The output of the kernel: bytes of code, call sites, trap sites and relocations (see codegen/machine_code.ts).
 * Offsets are relative to the run's code until it is placed (link.ts). Invariant: rows are in ascending order of
 * offset, because code is written in one direction; the out-of-line code of a body, and its rows, follow the body
 * (out_of_line.ts).
 */
import {
  CALLS,
  CALLS_END,
  CODE,
  CODE_END,
  RELOCATIONS,
  RELOCATIONS_END,
  STATUS_FULL,
  TRAPS,
  TRAPS_END,
} from "./layout.ts";
import { type i32, loadAny32, store32, store8, storeAny32 } from "./memory.ts";
import { stop } from "./reader.ts";

/** Address of the next byte of code. */
export let at: i32 = CODE;
/** Addresses of the next rows. */
export let callsAt: i32 = CALLS;
export let trapsAt: i32 = TRAPS;
export let relocationsAt: i32 = RELOCATIONS;

/** Bytes of code, and of each table of rows, that one instruction may add without calling reserveCode. */
const SLACK_BYTES: i32 = 4096;
const SLACK_ROWS: i32 = 1024;

/** Forgets all code. */
export function beginCode(): void {
  at = CODE;
  callsAt = CALLS;
  trapsAt = TRAPS;
  relocationsAt = RELOCATIONS;
}

/** Forgets all code and relocations, and keeps the rows of call and trap sites. */
export function beginNext(): void {
  at = CODE;
  relocationsAt = RELOCATIONS;
}

/** Discards the code and rows of a body, which begin at these addresses. */
export function rewind(code: i32, calls: i32, traps: i32, relocations: i32): void {
  at = code;
  callsAt = calls;
  trapsAt = traps;
  relocationsAt = relocations;
}

/** Discards the relocation rows from address `end` on. */
export function keepRelocations(end: i32): void {
  relocationsAt = end;
}

/**
 * Fails the body unless there is space for `bytes` of code and for the rows of one instruction. The current instruction
 * is still emitted, so code that emits in a loop must call this in every iteration: without space it overwrites the end
 * of the region and nothing else.
 */
export function reserveCode(bytes: i32): void {
  if (
    at + bytes + SLACK_BYTES <= CODE_END && callsAt + SLACK_ROWS <= CALLS_END && trapsAt + SLACK_ROWS <= TRAPS_END &&
    relocationsAt + SLACK_ROWS <= RELOCATIONS_END
  ) return;
  stop(STATUS_FULL);
  at = smaller(at, CODE_END - SLACK_BYTES);
  callsAt = smaller(callsAt, CALLS_END - SLACK_ROWS);
  trapsAt = smaller(trapsAt, TRAPS_END - SLACK_ROWS);
  relocationsAt = smaller(relocationsAt, RELOCATIONS_END - SLACK_ROWS);
}

function smaller(a: i32, b: i32): i32 {
  return a < b ? a : b;
}

export function emit8(byte: i32): void {
  store8(at, byte);
  at = at + 1;
}

export function emit32(word: i32): void {
  storeAny32(at, word);
  at = at + 4;
}

/** Fills with `byte` up to a multiple of `alignment`. */
export function alignCode(alignment: i32, byte: i32): void {
  while ((at & (alignment - 1)) !== 0) emit8(byte);
}

/** The offset in this run's code at which the next byte will be. */
export function here(): i32 {
  return at - CODE;
}

/** The address of the code at an offset in this run's code. */
export function addressOf(offset: i32): i32 {
  return offset + CODE;
}

/** Overwrites the word at address `address`. */
export function patch32(address: i32, word: i32): void {
  storeAny32(address, word);
}

export function patchByte(address: i32, byte: i32): void {
  store8(address, byte);
}

export function wordAt(address: i32): i32 {
  return loadAny32(address);
}

/**
 * Records that the last instruction is a call with its return address here. `frame`: bytes pushed below the function's
 * frame at the call; addFrame (kernel.ts) adds the distance from the frame to the return address. `landing`: slot of
 * the landing pad (landings.ts), or 0. `cross`: 1 if the call saves the context because the callee belongs to another
 * instance.
 */
export function callSite(frame: i32, position: i32, landing: i32, cross: i32): void {
  store32(callsAt, here());
  store32(callsAt + 4, frame);
  store32(callsAt + 8, position);
  store32(callsAt + 12, 0);
  store32(callsAt + 16, landing);
  store32(callsAt + 20, cross);
  callsAt = callsAt + 24;
}

/**
 * Records that the last instruction called the trap stub of `code`; `frame` as for callSite. For instructions that may
 * fault, see faultSite in the machine file.
 */
export function trapSite(code: i32, frame: i32, position: i32): void {
  store32(trapsAt, here());
  store32(trapsAt + 4, code);
  store32(trapsAt + 8, frame);
  store32(trapsAt + 12, position);
  store32(trapsAt + 16, 0);
  trapsAt = trapsAt + 20;
}

/** The 32-bit displacement that was written last refers to `target`. */
export function relocation(kind: i32, target: i32): void {
  store32(relocationsAt, here() - 4);
  store32(relocationsAt + 4, kind);
  store32(relocationsAt + 8, target);
  relocationsAt = relocationsAt + 12;
}
