/**
 * Fuel charges (fuel_prices.ts): a charge at the beginning of each region, with a constant that is patched when the
 * region ends. In: the visitor's calls, in unreachable code too. Out: a CHARGE for each region.
 *
 * Invariant: the charges depend only on the bytes of the body. Code that the translator finds dead counts as long as
 * its region is open, since other settings may not find it dead; a region opens at its first instruction with a price,
 * and only in reachable code. An inlined body has regions of its own, inside one of its caller's.
 */
import { FUEL_BULK_SHIFT, FUEL_PRICE, LENGTH_BITS } from "./fuel_prices.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { opcodeColumn } from "../wasm/opcodes.ts";
import type { Translation } from "./translation.ts";

const { I64, NONE } = TY;

/** By opcode row: 1 if control may not continue after it. */
export const ENDS_REGION: Uint8Array = opcodeColumn(
  Uint8Array,
  ({ mnemonic }) => /^(br|return|throw|rethrow|unreachable$)/.test(mnemonic) ? 1 : 0,
);

/**
 * Column b of a price that is not known yet. It makes the constant unlike all others, so that GVN does not merge it.
 */
const OPEN = 1;

/** Begins the function's own body. */
export function beginFuel(t: Translation): void {
  t.charge = 0;
  t.price = 0;
  t.f.charged = true;
}

/** Adds `price` to the open region, and opens one if there is none. */
export function addPrice(t: Translation, price: number): void {
  if (t.charge === 0) {
    if (!t.reachable || price === 0) return;
    t.charge = t.b.emit(OP.CONST, I64, 0, OPEN, 0, 0);
    take(t, t.charge);
  }
  t.price += price;
}

/** The price of the instruction of row `id`. */
export function priceOf(t: Translation, id: number): number {
  const { fuelPrices } = t.env;
  return fuelPrices.length === 0 || fuelPrices[id] === 0 ? FUEL_PRICE[id] : fuelPrices[id] - 1;
}

/** Charges for an instruction that is about to be translated, or skipped as dead. */
export function meterInstruction(t: Translation, id: number): void {
  addPrice(t, priceOf(t, id));
  const shift = FUEL_BULK_SHIFT[id];
  if (shift !== 0 && t.reachable) {
    const { b } = t;
    const length = t.stack[t.sp - 1];
    const high = 64 - LENGTH_BITS;
    take(
      t,
      t.f.ty[length] === I64
        ? b.binary(OP.SHR_U, I64, b.binary(OP.SHL, I64, length, b.i64(high, 0)), b.i64(high + shift, 0))
        : b.binary(OP.SHR_U, I64, t.wide(length), b.i64(shift, 0)),
    );
  }
  if (ENDS_REGION[id] !== 0) closeRegion(t);
}

/** Ends the open region and patches its price. */
export function closeRegion(t: Translation): void {
  if (t.charge !== 0) {
    t.f.imm[t.charge] = t.price;
    t.f.b[t.charge] = 0;
  }
  t.charge = 0;
  t.price = 0;
}

/** Takes `units` (i64, below 2^62) of fuel, or traps without taking any. */
function take(t: Translation, units: number): void {
  t.b.emit(OP.CHARGE, NONE, units, 0, 0, 0);
}
