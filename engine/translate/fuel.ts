/**
 * Fuel (fuel_prices.ts): emits a charge where a region begins, with a constant that is filled in when the region's end is known. In: the
 * visitor's calls, also those in unreachable code. Out: a CHARGE for each region.
 *
 * Invariant: what is charged depends on the bytes of the body and on nothing else. Code that the translator finds to be dead is
 * counted as long as the region it belongs to is open, since another setting may not find it to be dead; a region opens at its first
 * instruction that costs anything, and only in reachable code, which is where control can come at all. A body that is inlined has
 * regions of its own, within one of its caller's.
 */
import { FUEL_BULK_SHIFT, FUEL_PRICE } from "./fuel_prices.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { OPCODES } from "../wasm/opcodes.ts";
import type { Translation } from "./translation.ts";

const { I64, NONE } = TY;

/** By opcode row: does control perhaps not go on after it? */
const ENDS_REGION: Uint8Array = Uint8Array.from(
  OPCODES,
  ({ mnemonic }) => /^(br|return|throw|rethrow|unreachable$)/.test(mnemonic) ? 1 : 0,
);

/** Column b of a price that is not known yet: no constant of the program is like it, so that none is taken for the same. */
const OPEN = 1;

/** The function's own body begins. */
export function beginFuel(t: Translation): void {
  t.charge = 0;
  t.price = 0;
  t.f.charged = true;
}

/** Counts `price` in the open region, which opens here if it has not yet. */
export function addPrice(t: Translation, price: number): void {
  if (t.charge === 0) {
    if (!t.reachable || price === 0) return;
    t.charge = t.b.emit(OP.CONST, I64, 0, OPEN, 0, 0);
    take(t, t.charge);
  }
  t.price += price;
}

/** An instruction is about to be translated, or passed over as dead. */
export function meterInstruction(t: Translation, id: number): void {
  addPrice(t, FUEL_PRICE[id]);
  const shift = FUEL_BULK_SHIFT[id];
  if (shift !== 0 && t.reachable) {
    const { b } = t;
    const count = t.stack[t.sp - 1];
    const wide = t.f.ty[count] === I64 ? count : b.unary(OP.EXTEND_U, I64, count);
    take(t, b.binary(OP.SHR_U, I64, wide, b.i64(shift, 0)));
  }
  if (ENDS_REGION[id] !== 0) closeRegion(t);
}

/** The open region ends: what it costs is known. */
export function closeRegion(t: Translation): void {
  if (t.charge !== 0) {
    t.f.imm[t.charge] = t.price;
    t.f.b[t.charge] = 0;
  }
  t.charge = 0;
  t.price = 0;
}

/** Takes `units` (i64, below 2^62) of fuel, or traps and leaves it. */
function take(t: Translation, units: number): void {
  t.b.emit(OP.CHARGE, NONE, units, 0, 0, 0);
}
