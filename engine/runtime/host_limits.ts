/**
 * The limits of the running call, for host functions that may block or do work in proportion to their arguments. Out: the deadline,
 * the trap that ends the call at it, and a way to charge fuel. Invariant: outside of calls there is no deadline, and fuel is never
 * short.
 */
import { THREAD } from "../abi/context_layout.ts";
import { TRAP, TRAP_MESSAGES } from "../traps.ts";
import { realmStore } from "./realm_store.ts";

/** Bytes per unit of fuel, as of bulk instructions. */
const BYTES_PER_FUEL = 64;

/** The deadline of the call that runs now, on the clock of performance.now(); Infinity for none. */
export function callDeadline(): number {
  return realmStore().thread.deadline;
}

/** The trap of a call whose deadline passes in a host function. */
export function interruptedCall(): Error {
  return realmStore().trapInBuiltin(TRAP_MESSAGES[TRAP.INTERRUPTED]);
}

/** Charges the fuel of `bytes` moved by a host function. Throws the trap, and charges nothing, when there is too little. */
export function chargeBytes(bytes: number): void {
  const store = realmStore();
  const { i64 } = store.thread.state;
  const units = BigInt(Math.floor(bytes / BYTES_PER_FUEL));
  const left = i64[THREAD.FUEL >> 3];
  if (left < units) throw store.trapInBuiltin(TRAP_MESSAGES[TRAP.OUT_OF_FUEL]);
  i64[THREAD.FUEL >> 3] = left - units;
}
