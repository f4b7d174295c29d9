/** Fuel as callers give it. In: a number or bigint. Out: units of fuel, or an error that names the value. */
import { inWords } from "../../base/arguments.ts";
import { UNLIMITED_FUEL } from "../thread/guest_thread.ts";

/** Converts a context's fuel. Throws RangeError unless it is an integer from 0 to UNLIMITED_FUEL. */
export function fuelUnits(fuel: number | bigint): bigint {
  if (typeof fuel === "bigint" ? fuel < 0n || fuel > UNLIMITED_FUEL : !Number.isSafeInteger(fuel) || fuel < 0) {
    throw new RangeError(`The context's fuel must be a whole number from 0 to 2^62, not ${inWords(fuel)}`);
  }
  return BigInt(fuel);
}
