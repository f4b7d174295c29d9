/**
 * The functions that generated code calls, for one memory and one set of handle codecs. In: the environment of a lifted
 * or lowered function. Out: helpers under the names that emitter.ts uses. Invariant: no helper keeps a view across a
 * call of guest code.
 */
import type { StringEncoding } from "../model/canon.ts";
import type { GuestMemory } from "./guest_memory.ts";
import { addressOf, MAX_RANGE_BYTES } from "./layout.ts";
import { liftForeign, liftText, lowerText, unitsStored } from "./strings.ts";
import { trap } from "./traps.ts";

/** Lifts and lowers a handle, stream, future or error context: between an index in a table and a value. */
export interface HandleCodec {
  lift(index: number): unknown;
  lower(value: unknown): number;
}

/** The environment of generated code. */
export interface AbiEnv {
  readonly memory: GuestMemory;
  readonly encoding: StringEncoding;
  /** Codecs in the order of the handle types that the code uses. */
  readonly handles: readonly HandleCodec[];
  /** Whether the values are for another component: strings keep their encoding, maps their duplicates. */
  readonly foreign: boolean;
}

/** The entries of a map that are added between two charges. */
const ENTRIES_PER_CHARGE = 64;

/** The cost of comparing a key with an earlier one. */
const LOOK_COST = 8;

const FLOAT = new Float64Array(1);
const FLOAT32 = new Float32Array(FLOAT.buffer);
const BITS32 = new Int32Array(FLOAT.buffer);
const BITS64 = new BigInt64Array(FLOAT.buffer);
const TAG64 = 1n << 63n;

function char(code: number): string {
  if (code >= 0x110000 || (code >= 0xd800 && code <= 0xdfff)) trap("character is not a Unicode scalar value");
  return String.fromCodePoint(code);
}

function codePoint(value: unknown): number {
  if (typeof value !== "string") throw new TypeError(`Expected a character, not ${typeof value}`);
  const code = value.codePointAt(0);
  if (code === undefined || (code >= 0xd800 && code <= 0xdfff)) throw new TypeError("Expected a character");
  return code;
}

function badCase(): never {
  return trap("discriminant is not that of a case");
}

function badTag(tag: unknown, tags: readonly string[]): never {
  throw new TypeError(`Expected one of ${tags.join(", ")}, not ${typeof tag === "string" ? `"${tag}"` : typeof tag}`);
}

function checkCount(list: ArrayLike<unknown>, count: number): void {
  if (list.length !== count) throw new TypeError(`Expected ${count} elements, not ${list.length}`);
}

function checkBytes(bytes: number): void {
  if (bytes > MAX_RANGE_BYTES) trap("list is too long");
}

function listOf(value: unknown): ArrayLike<unknown> {
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return value as unknown as ArrayLike<unknown>;
  if (typeof value === "object" && value !== null && Symbol.iterator in value) return [...value as Iterable<unknown>];
  throw new TypeError(`Expected a list, not ${value === null ? "null" : typeof value}`);
}

function f32ToBits(value: number): number {
  FLOAT32[0] = value;
  return BITS32[0];
}

function bitsToF32(bits: number): number {
  BITS32[0] = bits;
  return FLOAT32[0];
}

function f64ToBits(value: number): bigint {
  FLOAT[0] = value;
  return BITS64[0];
}

function bitsToF64(bits: bigint): number {
  BITS64[0] = bits;
  return FLOAT[0];
}

/** The helpers for `env`. */
export function runtimeOf(env: AbiEnv) {
  const { memory, encoding, foreign } = env;
  const tagged = encoding === "latin1+utf16";
  return {
    address: addressOf,
    char,
    codePoint,
    badCase,
    badTag,
    checkCount,
    checkBytes,
    listOf,
    entriesOf: listOf,
    f32ToBits,
    bitsToF32,
    f64ToBits,
    bitsToF64,
    text: (pointer: number, units: number): unknown => {
      memory.refresh();
      return (foreign ? liftForeign : liftText)(memory, encoding, pointer, units);
    },
    storeText: (value: unknown): number => lowerText(memory, encoding, value),
    units32: tagged
      ? (units: number): number => units >= 0x8000_0000 ? -1 - (units - 0x8000_0000) : units
      : (units: number): number => units,
    units64: (units: bigint): number => tagged && units >= TAG64 ? -1 - Number(units - TAG64) : Number(units),
    tag32: (): number => {
      const units = unitsStored();
      return units < 0 ? ((-1 - units) | 0x8000_0000) >>> 0 : units;
    },
    tag64: (): bigint => {
      const units = unitsStored();
      return BigInt.asIntN(64, units < 0 ? BigInt(-1 - units) | TAG64 : BigInt(units));
    },
    checkList: (pointer: number, count: number, size: number, align: number, cost: number): void => {
      if (count * size > MAX_RANGE_BYTES) trap("list is too long");
      memory.charge(count * cost);
      memory.check(pointer, align, count * size, "list pointer");
    },
    toMap: foreign
      ? (entries: unknown): unknown => entries
      : (entries: readonly (readonly [unknown, unknown])[]): unknown => {
        const map = new Map<unknown, unknown>();
        // The guest chooses the keys: if their hashes collide, each entry is compared with all earlier ones. Hosts do
        // not tell whether that happens, so every map is charged as if it did.
        entries.forEach(([key, value], k) => {
          map.set(key, value);
          if (k % ENTRIES_PER_CHARGE === 0) memory.spend(ENTRIES_PER_CHARGE * map.size * LOOK_COST);
        });
        return map;
      },
  };
}

/** The names of the helpers. */
export const RUNTIME_NAMES: readonly string[] = [
  ..."address char codePoint badCase badTag checkCount checkBytes listOf entriesOf f32ToBits bitsToF32 f64ToBits".split(
    " ",
  ),
  ..."bitsToF64 text storeText units32 units64 tag32 tag64 checkList toMap".split(" "),
];
