/**
 * Landing pads of calls. A try that may catch has a slot. Call sites name the slot and receive the offset of the
 * landing pad at the end of the body, because the pad follows the try. A nested try that does not catch an exception
 * jumps to the pad of the enclosing one.
 */
import * as code from "./code.ts";
import { LANDINGS, LANDINGS_END, STATUS_TOO_LARGE } from "./layout.ts";
import * as machine from "./machine.ts";
import { type i32, load32, store32 } from "./memory.ts";
import { stop } from "./reader.ts";

// A slot: the offset of the landing pad once it is bound, before that UNUSED or USED; the newest branch to it, or 0.
const SLOT: i32 = 8;
const UNUSED: i32 = -1;
const USED: i32 = -2;

/** The slot of the innermost try, 0 for none. */
export let current: i32 = 0;
let next: i32 = LANDINGS;

export function beginLandings(): void {
  current = 0;
  next = LANDINGS;
}

/** Opens a new slot and makes it the current one. */
export function openSlot(): i32 {
  if (next + SLOT > LANDINGS_END) {
    stop(STATUS_TOO_LARGE);
    return 0;
  }
  store32(next, UNUSED);
  store32(next + 4, 0);
  current = next;
  next = next + SLOT;
  return current;
}

/** Makes an enclosing slot the current one again. */
export function setCurrent(slot: i32): void {
  current = slot;
}

/** The current slot for a call site; marks it as used. */
export function useCurrent(): i32 {
  if (current !== 0) store32(current, USED);
  return current;
}

/** Jumps to the landing pad of `slot`, which is not bound yet. */
export function jumpTo(slot: i32): void {
  store32(slot, USED);
  const branch = machine.jump();
  machine.setLink(branch, load32(slot + 4));
  store32(slot + 4, branch);
}

/** Whether a call site or a jump refers to `slot`. */
export function isUsed(slot: i32): boolean {
  return slot !== 0 && load32(slot) === USED;
}

/** Binds the landing pad of `slot` here. */
export function bindSlot(slot: i32): void {
  store32(slot, code.here());
  let branch = load32(slot + 4);
  while (branch !== 0) {
    const before = machine.linkOf(branch);
    machine.patchBranch(branch, code.at);
    branch = before;
  }
}

/** Jumps to the landing pad of `slot`, which is bound. */
export function jumpToBound(slot: i32): void {
  machine.patchBranch(machine.jump(), code.addressOf(load32(slot)));
}

/** The offset for a call site that names `slot`: −1 for none. */
export function offsetOf(slot: i32): i32 {
  return slot === 0 ? -1 : load32(slot);
}
