/**
 * Out-of-line code of a body: branches that are practically never taken lead here, behind the body. In: pieces, as they are asked for. Out: their
 * code, in the same order, at the end of the body.
 */
import { callSite, trapSite } from "./code.ts";
import { COLD, COLD_END, STATUS_TOO_LARGE } from "./layout.ts";
import * as machine from "./machine.ts";
import * as code from "./code.ts";
import { type i32, load32, store32 } from "./memory.ts";
import { stop } from "./reader.ts";

// A piece: what it is, address of the branch to it, and two words.
const PIECE: i32 = 16;
/** Calls the trap stub: trap code, position. */
const PIECE_TRAP: i32 = 0;
/** Calls a record of another instance: address to go on at, position. */
const PIECE_CROSS_CALL: i32 = 1;

let next: i32 = COLD;

export function beginCold(): void {
  next = COLD;
}

function addPiece(kind: i32, branch: i32, a: i32, b: i32): void {
  if (next + PIECE > COLD_END) {
    stop(STATUS_TOO_LARGE);
    return;
  }
  store32(next, kind);
  store32(next + 4, branch);
  store32(next + 8, a);
  store32(next + 12, b);
  next = next + PIECE;
}

/** The branch whose displacement is at `branch` leads to a trap. */
export function coldTrapAt(branch: i32, trap: i32, position: i32): void {
  addPiece(PIECE_TRAP, branch, trap, position);
}

/** The branch leads to a call of the record in the record register in its own context; execution goes on at `back`. */
export function coldCrossCall(branch: i32, back: i32, position: i32): void {
  addPiece(PIECE_CROSS_CALL, branch, back, position);
}

/** Writes all pieces. */
export function emitCold(): void {
  for (let piece: i32 = COLD; piece < next; piece += PIECE) {
    code.reserveCode(0);
    machine.patchBranch(load32(piece + 4), code.at);
    const a = load32(piece + 8);
    const position = load32(piece + 12);
    if (load32(piece) === PIECE_TRAP) {
      machine.callTrap(a);
      trapSite(a, 0, position);
    } else {
      machine.callCrossRecord();
      callSite(machine.CROSS_CALL_BYTES, position, -1, 1);
      machine.restoreContext();
      machine.patchBranch(machine.jump(), a);
    }
  }
}
