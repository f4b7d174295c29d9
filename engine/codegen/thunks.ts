/**
 * Parts of thunks that do not depend on the instruction set: the slots of the thread state, and which signatures have
 * fast entries.
 */
import { THREAD } from "../abi/context_layout.ts";
import { type Signature, TY, TY_BANK } from "../ir/types.ts";

/** Offset of slot `index` in the thread state. */
export function threadSlot(index: number): number {
  return THREAD.SLOTS + index * THREAD.SLOT_SIZE;
}

/**
 * Whether a fast entry (Target.fastEntry) exists for `signature`: whether C functions pass that many parameters in
 * registers.
 */
export function hasFastEntry({ params, results }: Signature, maxIntegers: number, maxFloats: number): boolean {
  if (params.includes(TY.V128) || results.length > 1 || results[0] === TY.V128) return false;
  const integers = params.reduce((count, ty) => count + (TY_BANK[ty] === 1 ? 1 : 0), 0);
  return integers <= maxIntegers && params.length - integers <= maxFloats;
}
