/**
 * The out-of-line code of a body, emitted after it: the fragments that cold_pieces.ts has queued.
 */
import { callSite, trapSite } from "./code.ts";
import { MEMORY_LENGTH_FIELD, TRAP_MEMORY_OUT_OF_BOUNDS, TRAP_OUT_OF_FUEL } from "./constants.ts";
import {
  next,
  PIECE,
  PIECE_ALLOCATION,
  PIECE_BOUNDS,
  PIECE_CROSS_CALL,
  PIECE_CROSS_TAIL_CALL,
  PIECE_FUEL,
  PIECE_POLL,
  PIECE_TRAP,
  PIECE_VECTOR,
} from "./cold_pieces.ts";
import { dropFrame } from "./epilogue.ts";
import * as landings from "./landings.ts";
import * as layout from "./layout.ts";
import * as machine from "./machine.ts";
import * as code from "./code.ts";
import { type i32, load32 } from "./memory.ts";

/** Writes all pieces. */
export function emitCold(): void {
  for (let piece: i32 = layout.COLD; piece < next; piece += PIECE) {
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
        emitCrossCall(a, load32(piece + 16), position);
        break;
      case PIECE_BOUNDS:
        emitBounds(load32(piece + 16), a, position);
        break;
      case PIECE_CROSS_TAIL_CALL:
        dropFrame();
        machine.jumpToCrossRecord();
        break;
      case PIECE_FUEL:
        // The charge that could not be paid is returned.
        machine.giveFuelBack(a);
        machine.callTrap(TRAP_OUT_OF_FUEL);
        trapSite(TRAP_OUT_OF_FUEL, 0, position);
        break;
      case PIECE_ALLOCATION:
        emitAllocation(load32(piece + 16), load32(piece + 20), position);
        machine.patchBranch(machine.jump(), a);
        break;
      case PIECE_POLL:
        machine.pollDistance();
        break;
      case PIECE_VECTOR:
        for (let word: i32 = 8; word < PIECE; word += 4) code.emit32(load32(piece + word));
        break;
    }
  }
}

function emitCrossCall(back: i32, landing: i32, position: i32): void {
  machine.callCrossRecord();
  // Exceptions land here first where the stack pointer needs an adjustment.
  const isAdjusted = machine.CROSS_LANDING_BYTES !== 0 && landing !== 0;
  const own = isAdjusted ? landings.openSlot() : landing;
  callSite(machine.CROSS_CALL_BYTES, position, own, 1);
  machine.restoreContext();
  machine.patchBranch(machine.jump(), back);
  if (!isAdjusted || own === 0) return;
  landings.bindSlot(own);
  machine.dropCrossLanding();
  landings.jumpToBound(landing);
}

function emitAllocation(object: i32, bytes: i32, position: i32): void {
  if (bytes < 0) machine.move(1, machine.SCRATCH, -1 - bytes);
  else machine.constant(machine.SCRATCH, bytes, 0, 0);
  machine.callAllocate();
  callSite(0, position, 0, 0);
  machine.move(1, object, machine.SCRATCH);
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
