/**
 * Out-of-line code of a body: branches that are practically never taken lead here, behind the body. In: pieces, as they are asked for. Out: their
 * code, in the same order, at the end of the body.
 */
import { callSite, trapSite } from "./code.ts";
import { MEMORY_LENGTH_FIELD, TRAP_MEMORY_OUT_OF_BOUNDS } from "./constants.ts";
import { dropFrame } from "./epilogue.ts";
import * as layout from "./layout.ts";
import { COLD, COLD_END, STATUS_TOO_LARGE } from "./layout.ts";
import * as machine from "./machine.ts";
import * as code from "./code.ts";
import { type i32, load32, store32 } from "./memory.ts";
import { stop } from "./reader.ts";

// A piece: what it is, address of the branch to it, and three words.
const PIECE: i32 = 20;
/** Calls the trap stub: trap code, position. */
const PIECE_TRAP: i32 = 0;
/** Calls a record of another instance: address to go on at, position. */
const PIECE_CROSS_CALL: i32 = 1;
/** An access is behind the known length of a shared memory: address to go on at, position, memory. */
const PIECE_BOUNDS: i32 = 2;
/** Makes a tail call of a record of another instance. */
const PIECE_CROSS_TAIL_CALL: i32 = 3;

let next: i32 = COLD;

export function beginCold(): void {
  next = COLD;
}

function addPiece(kind: i32, branch: i32, a: i32, b: i32, c: i32): void {
  if (next + PIECE > COLD_END) {
    stop(STATUS_TOO_LARGE);
    return;
  }
  store32(next, kind);
  store32(next + 4, branch);
  store32(next + 8, a);
  store32(next + 12, b);
  store32(next + 16, c);
  next = next + PIECE;
}

/** The branch whose displacement is at `branch` leads to a trap. */
export function coldTrapAt(branch: i32, trap: i32, position: i32): void {
  addPiece(PIECE_TRAP, branch, trap, position, 0);
}

/** The branch leads to a call of the record in the record register in its own context; execution goes on at `back`. */
export function coldCrossCall(branch: i32, back: i32, position: i32): void {
  addPiece(PIECE_CROSS_CALL, branch, back, position, 0);
}

/** The branch leads to a look at the true length of shared memory `memory`; execution goes on at `back` if the access is in bounds. */
export function coldBounds(branch: i32, back: i32, memory: i32, position: i32): void {
  addPiece(PIECE_BOUNDS, branch, back, position, memory);
}

/** The branch leads to a tail call of the record in the record register in its own context. */
export function coldCrossTailCall(branch: i32): void {
  addPiece(PIECE_CROSS_TAIL_CALL, branch, 0, 0, 0);
}

/** Writes all pieces. */
export function emitCold(): void {
  for (let piece: i32 = COLD; piece < next; piece += PIECE) {
    code.reserveCode(0);
    machine.patchBranch(load32(piece + 4), code.at);
    const a = load32(piece + 8);
    const position = load32(piece + 12);
    switch (load32(piece)) {
      case PIECE_TRAP:
        machine.callTrap(a);
        trapSite(a, 0, position);
        break;
      case PIECE_CROSS_CALL:
        machine.callCrossRecord();
        callSite(machine.CROSS_CALL_BYTES, position, -1, 1);
        machine.restoreContext();
        machine.patchBranch(machine.jump(), a);
        break;
      case PIECE_BOUNDS:
        emitBounds(load32(piece + 16), a, position);
        break;
      case PIECE_CROSS_TAIL_CALL:
        dropFrame();
        machine.jumpToCrossRecord();
        break;
    }
  }
}

function emitBounds(memory: i32, back: i32, position: i32): void {
  const row = load32(layout.H_MEMORIES) + memory * layout.MEMORY_ROW;
  const length = load32(row + layout.MEMORY_OFFSET) + MEMORY_LENGTH_FIELD;
  const isPinned = memory === 0 && (load32(layout.H_MODE) & layout.MODE_EXPLICIT_BOUNDS) !== 0;
  const branch = machine.refreshLength(length, load32(row + layout.MEMORY_SHARED_LENGTH), isPinned);
  machine.patchBranch(branch, back);
  machine.callTrap(TRAP_MEMORY_OUT_OF_BOUNDS);
  trapSite(TRAP_MEMORY_OUT_OF_BOUNDS, 0, position);
}
