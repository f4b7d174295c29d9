/**
 * Fuel and determinism (translate/fuel.ts, translate/deterministic.ts). In: instructions as they are compiled. Out: a
 * charge at the start of each region, whose price is filled in at its end; canonical NaNs; a budget for the depth of
 * calls.
 *
 * The price of a region depends only on the bytes of the body, so totals equal those of the optimizing compiler.
 */
import { queueFuel, setPrice } from "./fragments.ts";
import * as cond from "./conditions.ts";
import {
  DEPTH_ACTIVATION_UNITS,
  DEPTH_LOCAL_UNITS,
  FUEL_LENGTH_BITS,
  MODE_DETERMINISTIC,
  MODE_FUEL,
  MODE_OWN_NANS,
  THREAD_DEPTH_LEFT,
  TRAP_STACK_EXHAUSTED,
} from "./constants.ts";
import * as frames from "./frames.ts";
import * as layout from "./layout.ts";
import * as machine from "./machine.ts";
import { type i32, load32, load8 } from "./memory.ts";
import * as module from "./module.ts";
import * as operands from "./operands.ts";
import * as op from "./operations.ts";
import { instructionOffset } from "./reader.ts";
import { F64, I32, I64, V128 } from "./types.ts";

/**
 * The open region: address of the price in the code of its charge, 0 for none; its out-of-line fragment; its price so
 * far, in fuel units.
 */
let charge: i32 = 0;
let fragment: i32 = 0;
let price: i32 = 0;
/**
 * The first of two homes: the stack budget that this activation received, and the budget that it leaves to its callees,
 * in the units of THREAD.DEPTH_LEFT.
 */
let depthHome: i32 = 0;
/** Whether the function counts the depth of calls (translate/counted_functions.ts). */
let countsDepth: boolean = false;

/** Begins the function of index `func`. */
export function beginMetering(func: i32): void {
  charge = 0;
  price = 0;
  countsDepth = isDeterministic() && module.countsDepth(func);
}

export function isMetered(): boolean {
  return (load32(layout.H_MODE) & MODE_FUEL) !== 0;
}

function isDeterministic(): boolean {
  return (load32(layout.H_MODE) & MODE_DETERMINISTIC) !== 0;
}

/** Whether every NaN that an instruction makes is canonical. */
export function hasCanonicalNans(): boolean {
  return (load32(layout.H_MODE) & (MODE_DETERMINISTIC | MODE_OWN_NANS)) === MODE_DETERMINISTIC;
}

/** Adds `units` to the price of the open region; emits its charge if there is none yet. */
function addPrice(units: i32): void {
  if (charge === 0) {
    if (!frames.live || units === 0) return;
    charge = machine.charge();
    fragment = queueFuel(machine.jumpIf(cond.LT_S), 0, instructionOffset);
  }
  price = price + units;
}

/** Ends the open region and fills in its price. */
function closeRegion(): void {
  if (charge !== 0) {
    machine.patchPrice(charge, price);
    setPrice(fragment, price);
  }
  charge = 0;
  price = 0;
}

/** The price of the instruction of `row`. */
function priceOf(row: i32): i32 {
  const prices = load32(layout.H_PRICES);
  const given = prices === 0 ? 0 : load8(prices + ((row - layout.OPCODE_ROWS) / layout.OPCODE_ROW | 0));
  return given === 0 ? load8(row + layout.ROW_PRICE) : given - 1;
}

/** Adds the price of the instruction of `row`, before it is compiled or, if unreachable, skipped. */
export function meter(row: i32): void {
  const flags = load8(row + layout.ROW_FLAGS);
  addPrice(priceOf(row));
  const shift = load8(row + layout.ROW_BULK_SHIFT);
  if (shift !== 0 && frames.live) chargeBulk(shift);
  if ((flags & (layout.FLAG_ENDS_REGION | layout.FLAG_REGION_ENDS_BEFORE)) !== 0) closeRegion();
}

/**
 * Charges for the length in the top operand, if there is one: one unit of fuel per 2^shift. The operand has not been
 * checked yet.
 */
function chargeBulk(shift: i32): void {
  const entry = operands.top - operands.ENTRY;
  if (entry < frames.base) return;
  operands.loadInto(entry, machine.SCRATCH);
  let dropped = 0;
  if (operands.entryType(entry) === I64) {
    dropped = 64 - FUEL_LENGTH_BITS;
    machine.shiftImmediate(op.SHL, 1, machine.SCRATCH, machine.SCRATCH, dropped);
  }
  machine.shiftImmediate(op.SHR_U, 1, machine.SCRATCH, machine.SCRATCH, dropped + shift);
  machine.chargeScratch();
  queueFuel(machine.jumpIf(cond.LT_S), -1, instructionOffset);
}

/** Makes NaNs canonical in the operand on top, the result of the instruction of `row`. */
export function canonicalize(row: i32): void {
  const flags = load8(row + layout.ROW_FLAGS) & (layout.FLAG_MAKES_NAN32 | layout.FLAG_MAKES_NAN64);
  if (flags === 0) return;
  const entry = operands.top - operands.ENTRY;
  const register = operands.currentRegister(entry);
  if (operands.entryType(entry) !== V128) {
    machine.canonicalize(operands.entryType(entry) === F64 ? 1 : 0, register);
    return;
  }
  const t = operands.allocate(1);
  machine.canonicalizeLanes(flags === layout.FLAG_MAKES_NAN64 ? op.F64X2 : op.F32X4, register, t);
  operands.freeRegister(t);
}

/** Reserves the homes of the stack budgets, if the function counts. */
export function reserveDepth(): void {
  if (!countsDepth) return;
  depthHome = operands.reserveHome();
  operands.reserveHome();
}

/**
 * Subtracts the units of an activation with `locals` locals from the stack budget, if the function counts; traps if it
 * is exhausted.
 */
export function takeDepth(locals: i32): void {
  if (!countsDepth) return;
  const register = operands.allocate(0);
  machine.loadThread(register, THREAD_DEPTH_LEFT);
  machine.storeHome(I32, register, depthHome);
  machine.binaryImmediate(op.SUB, 0, register, register, DEPTH_ACTIVATION_UNITS + locals * DEPTH_LOCAL_UNITS);
  machine.storeHome(I32, register, depthHome + 8);
  machine.compareImmediate(0, register, 0);
  machine.trapIf(cond.LT_S, TRAP_STACK_EXHAUSTED, instructionOffset);
  operands.freeRegister(register);
}

/**
 * Before a call in a function that counts: stores the stack budget of the callee, or for a tail call the budget that
 * this activation received.
 */
export function leaveDepth(isTail: boolean): void {
  if (!countsDepth) return;
  const register = operands.allocate(0);
  machine.loadHome(I32, register, isTail ? depthHome : depthHome + 8);
  machine.storeThread(register, THREAD_DEPTH_LEFT);
  operands.freeRegister(register);
}
