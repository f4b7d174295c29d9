/**
 * Fuel (fuel_prices.ts): emits a charge where a region begins, with a constant that is filled in when the region's end is known. In: the
 * visitor's calls, also those in unreachable code. Out: for each region { left = fuel − price; trap if left < 0; fuel = left }.
 *
 * Invariant: what is charged depends on the bytes of the body and on nothing else. Code that the translator finds to be dead is
 * counted as long as the region it belongs to is open, since another setting may not find it to be dead; a region opens at its first
 * instruction that costs anything, and only in reachable code, which is where control can come at all. A body that is inlined has
 * regions of its own, within one of its caller's.
 */
import { CONTEXT, THREAD } from "../context_layout.ts";
import { FUEL_BULK_SHIFT, FUEL_PRICE } from "./fuel_prices.ts";
import { CLASS_CONSTANT, REGION, region } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../traps.ts";
import { OPCODES } from "../wasm/opcodes.ts";
import type { FunctionTranslator } from "./function.ts";

const { I32, I64, NONE } = TY;
const CONSTANT_CONTEXT = region(REGION.CONTEXT, CLASS_CONSTANT);

/** By opcode row: does control perhaps not go on after it? */
const ENDS_REGION: Uint8Array = Uint8Array.from(
  OPCODES,
  ({ mnemonic }) => /^(br|return|throw|rethrow|unreachable$)/.test(mnemonic) ? 1 : 0,
);

/** The function's own body begins: the thread's address is wanted in every region, so it is loaded once. */
export function beginFuel(t: FunctionTranslator): void {
  t.charge = 0;
  t.price = 0;
  t.fuelThread = t.b.emit(OP.LOAD, I64, 0, 0, CONSTANT_CONTEXT, CONTEXT.THREAD);
}

/** Counts `price` in the open region, which opens here if it has not yet. */
export function addPrice(t: FunctionTranslator, price: number): void {
  if (t.charge === 0) {
    if (!t.reachable || price === 0) return;
    t.charge = t.b.emit(OP.CONST, I64, 0, 0, 0, 0);
    take(t, t.charge);
  }
  t.price += price;
}

/** An instruction is about to be translated, or passed over as dead. */
export function meterInstruction(t: FunctionTranslator, id: number): void {
  addPrice(t, FUEL_PRICE[id]!);
  const shift = FUEL_BULK_SHIFT[id]!;
  if (shift !== 0 && t.reachable) {
    const { b } = t;
    const count = t.stack[t.sp - 1]!;
    const wide = t.f.ty[count] === I64 ? count : b.unary(OP.EXTEND_U, I64, count);
    take(t, b.binary(OP.SHR_U, I64, wide, b.i64(shift, 0)));
  }
  if (ENDS_REGION[id] !== 0) closeRegion(t);
}

/** The open region ends: what it costs is known. */
export function closeRegion(t: FunctionTranslator): void {
  if (t.charge !== 0) t.f.imm[t.charge] = t.price;
  t.charge = 0;
  t.price = 0;
}

/** Takes `units` (i64, below 2^62) of fuel, or traps and leaves it. */
function take(t: FunctionTranslator, units: number): void {
  const { b, env, fuelThread } = t;
  const fuel = b.emit(OP.LOAD, I64, fuelThread, 0, env.fuelRegion, THREAD.FUEL);
  const left = b.emit(OP.SUB, I64, fuel, units, 0, 0);
  b.trapIf(b.binary(OP.LT_S, I32, left, b.i64(0, 0)), TRAP.OUT_OF_FUEL);
  b.emit(OP.STORE, NONE, fuelThread, left, env.fuelRegion, THREAD.FUEL);
}
