/** What thunks of all instruction sets share: the types and the slots of values. */
import { THREAD } from "../abi/context_layout.ts";
import { TY } from "../ir/types.ts";

/** The types of values in slots, from TY.I32 on; references are passed as TY.I64. */
export const VALUE_TYPES: readonly number[] = [TY.I32, TY.I64, TY.F32, TY.F64, TY.V128];

/** Offset of slot `index` in the thread state. */
export function threadSlot(index: number): number {
  return THREAD.SLOTS + index * THREAD.SLOT_SIZE;
}
