/**
 * ABI argument locations. In: a calling convention's argument registers. Out: the location of each parameter or result
 * of a signature: the registers of its bank in order, then the overflow buffer.
 */
import { TY_BANK } from "../ir/types.ts";

/** Physical number of the first vector register. */
export const FIRST_VECTOR = 32;

/** Registers of parameters or of results: `general` in this order, and the first `vectors` vector registers. */
export class ArgumentRegisters {
  readonly #general: readonly number[];
  readonly #vectors: number;

  constructor(general: readonly number[], vectors: number) {
    this.#general = general;
    this.#vectors = vectors;
  }

  /**
   * Writes the physical register of each of `types` to `list`, −1 for the overflow buffer. Returns `list`, or a longer
   * one if it is too short.
   */
  locate(types: Uint8Array, list: Int8Array): Int8Array {
    const locations = list.length < types.length ? new Int8Array(types.length * 2) : list;
    const general = this.#general;
    let g = 0;
    let v = 0;
    for (let i = 0; i < types.length; i++) {
      if (TY_BANK[types[i]] === 1) locations[i] = g < general.length ? general[g++] : -1;
      else locations[i] = v < this.#vectors ? FIRST_VECTOR + v++ : -1;
    }
    return locations;
  }
}

/**
 * A function from a list of types to a list of their locations in `registers`. Results are cached by list, since thunks
 * ask for those of each signature more than once.
 */
export function argumentLocations(registers: ArgumentRegisters): (types: Uint8Array) => Int8Array {
  const known = new WeakMap<Uint8Array, Int8Array>();
  return (types) => {
    let list = known.get(types);
    if (list === undefined) {
      list = registers.locate(types, new Int8Array(types.length));
      known.set(types, list);
    }
    return list;
  };
}
