/**
 * Random changes to component binaries. In: a component and a seed. Out: changed bytes, the same for the same seed.
 */
import { decodeComponent } from "../../component/binary/decode.ts";
import { validateComponent } from "../../component/validate/validate_component.ts";
import { WaftError } from "../../engine/base/errors.ts";

/** Random integers below a bound (Marsaglia, "Xorshift RNGs", 2003). */
function randomFrom(seed: number): (below: number) => number {
  let state = (seed * 2654435761 + 88172645) | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** Changes up to four places of a component: a byte, a bit, a removed, repeated or cut-off range. */
export function mutateComponent(source: Uint8Array, seed: number): Uint8Array {
  const random = randomFrom(seed);
  let bytes = source.slice();
  for (let changes = 1 + random(4); changes > 0 && bytes.length > 8; changes--) {
    const at = 8 + random(bytes.length - 8);
    const length = 1 + random(8);
    switch (random(5)) {
      case 0:
        bytes[at] = random(256);
        break;
      case 1:
        bytes[at] ^= 1 << random(8);
        break;
      case 2:
        bytes = splice(bytes, at, Math.min(bytes.length, at + length), new Uint8Array(0));
        break;
      case 3:
        bytes = splice(bytes, at, at, bytes.slice(at, at + length));
        break;
      case 4:
        if (random(4) === 0) bytes = bytes.slice(0, at);
        else bytes[at] = (bytes[at] + 1) & 0xff;
        break;
    }
  }
  return bytes;
}

function splice(bytes: Uint8Array, from: number, to: number, insert: Uint8Array): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(bytes.length - (to - from) + insert.length);
  joined.set(bytes.subarray(0, from));
  joined.set(insert, from);
  joined.set(bytes.subarray(to), from + insert.length);
  return joined;
}

/**
 * The error with which a component is rejected; undefined if it is valid. Throws an Error that names the seed if the
 * rejection is not one of the engine's errors with a one-line message and an offset within the bytes.
 */
export function reject(bytes: Uint8Array, seed: number): WaftError | undefined {
  try {
    validateComponent(decodeComponent(bytes));
    return undefined;
  } catch (error) {
    const { offset } = error instanceof WaftError ? error.place : {};
    if (error instanceof WaftError && offset !== undefined && offset <= bytes.length && !error.message.includes("\n")) {
      return error;
    }
    throw new Error(`seed ${seed}: ${error instanceof Error ? error.stack : error}`);
  }
}
