/**
 * ABI argument locations. In: a calling convention's argument registers. Out: the location of each parameter or result
 * of a signature: the registers of its bank in order, then the overflow buffer.
 */
import { TY_BANK } from "../ir/types.ts";

/** Physical number of the first vector register. */
export const FIRST_VECTOR = 32;

/**
 * A function from a list of types to physical registers, −1 for the overflow buffer: `general` in this order, and the
 * first `vectors` vector registers. Results are cached by list, since every call asks for those of its signature.
 */
export function argumentLocations(general: readonly number[], vectors: number): (types: Uint8Array) => Int8Array {
  const known = new WeakMap<Uint8Array, Int8Array>();
  return (types) => {
    let list = known.get(types);
    if (list === undefined) {
      list = new Int8Array(types.length);
      let g = 0;
      let v = 0;
      for (let i = 0; i < types.length; i++) {
        if (TY_BANK[types[i]] === 1) list[i] = g < general.length ? general[g++] : -1;
        else list[i] = v < vectors ? FIRST_VECTOR + v++ : -1;
      }
      known.set(types, list);
    }
    return list;
  };
}
