/** A module whose two functions trap, and its source map. Out: the binary form with a given address of the map. */
import { NewEngine, type TrapError } from "@waft/engine";

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const encoder = new TextEncoder();

/** The module without an address: `f` calls `inner`, which traps. */
const PLAIN = new Uint8Array(
  NewEngine().parse(`(module (func $inner (unreachable)) (func (export "f") (call $inner)))`).bytes,
);

/** The frames with the places of the map, as `stack` shows them. */
export const MAPPED_FRAMES: readonly string[] = ["at inner (lib/inner.ts:5:3)", "at f (lib/inner.ts:8:3)"];

/** An unsigned number in LEB128. */
function leb(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...leb(value >> 7)];
}

/** A number of a segment of a map, at least 0, in base 64. */
function digits(value: number): string {
  let rest = value << 1, text = "";
  do {
    text += DIGITS[(rest & 31) | (rest > 31 ? 32 : 0)];
    rest >>= 5;
  } while (rest > 0);
  return text;
}

/** The module with `url` as the address of its map. */
export function mappedModule(url: string): Uint8Array<ArrayBuffer> {
  const [name, address] = [encoder.encode("sourceMappingURL"), encoder.encode(url)];
  const section = [name.length, ...name, ...leb(address.length), ...address];
  return Uint8Array.from([...PLAIN, 0, ...leb(section.length), ...section]);
}

/** The text of the map: both frames are in one file. */
export function sourceMap(): string {
  let offsets: number[] = [];
  try {
    NewEngine().compile(PLAIN).instantiate().call({}, "f");
  } catch (error) {
    offsets = (error as TrapError).frames.map(({ offset }) => offset);
  }
  const [inner, f] = offsets;
  // Column of the code, source, line and column; each relative to the segment before.
  const segments = [[inner, 0, 4, 2], [f - inner, 0, 3, 0]];
  const mappings = segments.map((fields) => fields.map(digits).join("")).join();
  return JSON.stringify({ version: 3, sources: ["lib/inner.ts"], names: [], mappings });
}
