/**
 * The limits of the running call, for host functions that block or do work proportional to their arguments. Out: the
 * deadline, whether time is up, the trap that follows, and a function that charges fuel. Invariant: outside of calls
 * there is no deadline, and fuel is unlimited.
 */
import { now } from "../host/clocks.ts";
import { THREAD } from "../abi/context_layout.ts";
import type { TrapError } from "../base/errors.ts";
import { TRAP, TRAP_MESSAGES } from "../base/traps.ts";
import { realmStore } from "./realm_store.ts";
import { UNLIMITED_FUEL } from "./thread/guest_thread.ts";

/** Bytes per unit of fuel, as for bulk instructions. */
const BYTES_PER_FUEL = 64;

/** The deadline of the running call, on the clock of performance.now(); Infinity if it has none. */
export function callDeadline(): number {
  return realmStore().thread.limits.interruption;
}

/** Whether the deadline or the processor time of the running call has passed. */
export function callIsOver(): boolean {
  const { thread } = realmStore();
  return now() >= thread.limits.interruption || thread.limits.processorTimeIsUp;
}

/** Whether the running call has a deadline, or limited processor time or fuel. */
export function callIsBounded(): boolean {
  const { thread } = realmStore();
  return thread.limits.interruption !== Infinity || thread.limits.processorDeadline !== Infinity ||
    thread.state.i64[THREAD.FUEL >> 3] < UNLIMITED_FUEL / 2n;
}

/** Whether the running call can be suspended until a promise of the host function that it calls now is settled. */
export function callCanSuspend(): boolean {
  const { thread } = realmStore();
  return thread.depth === thread.suspendableDepth;
}

/** The trap of a call whose time is up in a host function. */
export function interruptedCall(): Error {
  return trapNow(TRAP_MESSAGES[TRAP.INTERRUPTED]);
}

/** A trap in a host function; without frames where the host works on behalf of a call while no guest runs. */
function trapNow(message: string): TrapError {
  const store = realmStore();
  return store.traps.withMessage(message);
}

/**
 * Charges the fuel for `bytes` moved by a host function. If there is too little, charges nothing and throws the trap.
 */
export function chargeBytes(bytes: number): void {
  const store = realmStore();
  const { i64 } = store.thread.state;
  const units = BigInt(Math.floor(bytes / BYTES_PER_FUEL));
  const left = i64[THREAD.FUEL >> 3];
  if (left < units) throw trapNow(TRAP_MESSAGES[TRAP.OUT_OF_FUEL]);
  i64[THREAD.FUEL >> 3] = left - units;
}
