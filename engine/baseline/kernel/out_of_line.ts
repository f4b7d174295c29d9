/**
 * Emits out-of-line code. In: the fragments that a body has queued (fragments.ts). Out: their code or data, after the
 * body, with call and trap sites.
 */
import { callSite, trapSite } from "./code.ts";
import {
  MEMORY_LENGTH_FIELD,
  MODE_EXPLICIT_BOUNDS,
  MODE_MASK_MEMORIES,
  TRAP_MEMORY_OUT_OF_BOUNDS,
  TRAP_OUT_OF_FUEL,
} from "./constants.ts";
import {
  FRAGMENT_ALLOCATION,
  FRAGMENT_BOUNDS,
  FRAGMENT_BYTES,
  FRAGMENT_CROSS_CALL,
  FRAGMENT_CROSS_TAIL_CALL,
  FRAGMENT_FUEL,
  FRAGMENT_POLL,
  FRAGMENT_TRAP,
  FRAGMENT_VECTOR,
  next,
} from "./fragments.ts";
import { dropFrame } from "./epilogue.ts";
import * as landings from "./landings.ts";
import * as layout from "./layout.ts";
import * as machine from "./machine.ts";
import * as code from "./code.ts";
import * as cond from "./conditions.ts";
import { type i32, load32 } from "./memory.ts";

/** Emits all fragments. */
export function emitFragments(): void {
  for (let fragment: i32 = layout.FRAGMENTS; fragment < next; fragment += FRAGMENT_BYTES) {
    code.reserveCode(0);
    machine.patchBranch(load32(fragment + 4), code.at);
    const a = load32(fragment + 8);
    const position = load32(fragment + 12);
    switch (load32(fragment)) {
      case FRAGMENT_TRAP:
        machine.callTrap(a);
        trapSite(a, 0, position);
        break;
      case FRAGMENT_CROSS_CALL:
        emitCrossCall(a, load32(fragment + 16), position);
        break;
      case FRAGMENT_BOUNDS:
        emitBounds(load32(fragment + 16), a, position);
        break;
      case FRAGMENT_CROSS_TAIL_CALL:
        dropFrame();
        machine.jumpToCrossRecord();
        break;
      case FRAGMENT_FUEL:
        // Refund the charge that exceeds the remaining fuel.
        machine.giveFuelBack(a);
        machine.callTrap(TRAP_OUT_OF_FUEL);
        trapSite(TRAP_OUT_OF_FUEL, 0, position);
        break;
      case FRAGMENT_ALLOCATION:
        emitAllocation(load32(fragment + 16), load32(fragment + 20), position);
        machine.patchBranch(machine.jump(), a);
        break;
      case FRAGMENT_POLL:
        machine.pollDistance();
        break;
      case FRAGMENT_VECTOR:
        for (let word: i32 = 8; word < FRAGMENT_BYTES; word += 4) code.emit32(load32(fragment + word));
        break;
    }
  }
}

function emitCrossCall(back: i32, landing: i32, position: i32): void {
  machine.callCrossRecord();
  // If the stack pointer needs an adjustment, exceptions land on a pad here first.
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
  const isPinned = memory === 0 && (load32(layout.H_MODE) & MODE_EXPLICIT_BOUNDS) !== 0;
  const inside = (load32(layout.H_MODE) & MODE_MASK_MEMORIES) !== 0 ? cond.LT_U : cond.LE_U;
  const branch = machine.refreshLength(length, load32(row + layout.MEMORY_SHARED_LENGTH), isPinned, inside);
  machine.patchBranch(branch, back);
  machine.callTrap(TRAP_MEMORY_OUT_OF_BOUNDS);
  trapSite(TRAP_MEMORY_OUT_OF_BOUNDS, 0, position);
}
