/**
 * The queue of out-of-line fragments of a body, in the order of their requests (out_of_line.ts emits them). In:
 * branches that are rarely taken, and references to constants. Out: rows at FRAGMENTS.
 */
import { FRAGMENTS, FRAGMENTS_END, STATUS_TOO_LARGE } from "./layout.ts";
import { type i32, store32 } from "./memory.ts";
import { stop } from "./reader.ts";

// A fragment: its kind, the address of the branch to it, and four words.
export const FRAGMENT_BYTES: i32 = 24;
/** Calls the trap stub: trap code, position. */
export const FRAGMENT_TRAP: i32 = 0;
/** Calls a record of another instance: continuation address, position, landing slot. */
export const FRAGMENT_CROSS_CALL: i32 = 1;
/** An access beyond the known length of a shared memory: continuation address, position, memory. */
export const FRAGMENT_BOUNDS: i32 = 2;
/** A tail call of a record of another instance: no further words. */
export const FRAGMENT_CROSS_TAIL_CALL: i32 = 3;
/** Data: the four words of a vector constant. */
export const FRAGMENT_VECTOR: i32 = 4;
/** Out of fuel: the price in fuel units, or −1 if the scratch register holds it; position. */
export const FRAGMENT_FUEL: i32 = 5;
/**
 * Allocates an object: continuation address, position, register of the object, its size in bytes or −1 − the register
 * that holds the size.
 */
export const FRAGMENT_ALLOCATION: i32 = 6;
/** Data: the distance to the poll page. */
export const FRAGMENT_POLL: i32 = 7;

/** Address after the last fragment. */
export let next: i32 = FRAGMENTS;

export function beginFragments(): void {
  next = FRAGMENTS;
}

function addFragment(kind: i32, branch: i32, a: i32, b: i32, c: i32, d: i32): void {
  if (next + FRAGMENT_BYTES > FRAGMENTS_END) {
    stop(STATUS_TOO_LARGE);
    return;
  }
  store32(next, kind);
  store32(next + 4, branch);
  store32(next + 8, a);
  store32(next + 12, b);
  store32(next + 16, c);
  store32(next + 20, d);
  next = next + FRAGMENT_BYTES;
}

/** Queues a trap as the target of the branch whose displacement is at `branch`. */
export function queueTrap(branch: i32, trap: i32, position: i32): void {
  addFragment(FRAGMENT_TRAP, branch, trap, position, 0, 0);
}

/**
 * Queues a call of the record in the record register in that record's context. Execution continues at `back`,
 * exceptions at slot `landing`.
 */
export function queueCrossCall(branch: i32, back: i32, landing: i32, position: i32): void {
  addFragment(FRAGMENT_CROSS_CALL, branch, back, position, landing, 0);
}

/**
 * Queues a comparison with the current length of shared memory `memory`. Execution continues at `back` if the access is
 * in bounds.
 */
export function queueBounds(branch: i32, back: i32, memory: i32, position: i32): void {
  addFragment(FRAGMENT_BOUNDS, branch, back, position, memory, 0);
}

/** Queues a tail call of the record in the record register in that record's context, as the target of `branch`. */
export function queueCrossTailCall(branch: i32): void {
  addFragment(FRAGMENT_CROSS_TAIL_CALL, branch, 0, 0, 0, 0);
}

/** Queues a vector constant of these words, to which the displacement at `branch` refers. */
export function queueVector(branch: i32, w0: i32, w1: i32, w2: i32, w3: i32): void {
  addFragment(FRAGMENT_VECTOR, branch, w0, w1, w2, w3);
}

/**
 * Queues the exit for a charge of `price` that cannot be paid (−1: the scratch register holds the price). Returns the
 * fragment, for setPrice.
 */
export function queueFuel(branch: i32, price: i32, position: i32): i32 {
  const fragment = next;
  addFragment(FRAGMENT_FUEL, branch, price, position, 0, 0);
  return next === fragment ? FRAGMENTS : fragment;
}

/**
 * Queues the allocation of an object of `bytes` bytes, or, if negative, of the bytes in register −1 − `bytes`.
 * Execution continues at `back` with the object in register `object`.
 */
export function queueAllocation(branch: i32, back: i32, object: i32, bytes: i32, position: i32): void {
  addFragment(FRAGMENT_ALLOCATION, branch, back, position, object, bytes);
}

/** Queues the distance to the poll page, to whose address the instruction at `branch` refers. */
export function queuePoll(branch: i32): void {
  addFragment(FRAGMENT_POLL, branch, 0, 0, 0, 0);
}

/** Sets the price of a queued charge. */
export function setPrice(fragment: i32, price: i32): void {
  store32(fragment + 8, price);
}
