/**
 * Values at the boundary between JavaScript and compiled code (JavaScript API, "ToWebAssemblyValue" and "ToJSValue"): how a value of
 * each type is read from and written to 16-byte cells (slots of the thread state, globals) of a region.
 */
import { Bug } from "../../errors.ts";
import type { Sharer } from "../../gc/references.ts";
import {
  EXTERNREF,
  F32,
  F64,
  HEAP,
  heapOf,
  I32,
  I64,
  isNullable,
  isRef,
  V128,
  type ValType,
  valTypeName,
} from "../../wasm/types.ts";
import type { NativeRegion } from "../memory/native_region.ts";

/** A JavaScript value that WebAssembly code can take or give. */
export type WasmValue = number | bigint | string | boolean | symbol | object | null | undefined;

/** How references cross: to words of compiled code and back. */
export interface ReferenceBorder {
  /** The word of a JavaScript value for reference type `type` (closed). Throws TypeError when it does not belong to it. */
  toWord(value: unknown, type: ValType, receiver?: Sharer): number;
  fromWord(word: number, type: ValType, giver?: Sharer): unknown;
}

/** The same with short ways for what crosses most often. */
export interface Boundary extends ReferenceBorder {
  /** What a word with the tag of host values refers to. */
  hostValue(word: number): unknown;
  /** The word of a string, for any type that takes host values. */
  textWord(value: string): number;
  /** Called when the arguments of a host function are still roots: a program that takes host values for ever has no moment of rest. */
  relieve(): void;
}

/** Writes `value`, converted to `type`, to the cell at `offset`. Throws TypeError when there is no conversion. */
export function writeValue(
  region: NativeRegion,
  offset: number,
  type: ValType,
  value: unknown,
  boundary: ReferenceBorder,
): void {
  switch (type) {
    case I32:
      region.i32[offset >> 2] = (value as number) | 0;
      return;
    case I64:
      region.i64[offset >> 3] = value as bigint;
      return;
    case F32:
      region.f32[offset >> 2] = +(value as number);
      return;
    case F64:
      region.f64[offset >> 3] = +(value as number);
      return;
    case V128:
      throw new TypeError("A v128 cannot be converted to or from a JavaScript value");
    default:
      if (!isRef(type)) throw new Bug(`No conversion to ${valTypeName(type)}`);
      region.setWord(offset, boundary.toWord(value, type));
  }
}

/** Reads the cell at `offset` as a value of `type`. */
export function readValue(region: NativeRegion, offset: number, type: ValType, boundary: ReferenceBorder): unknown {
  switch (type) {
    case I32:
      return region.i32[offset >> 2]!;
    case I64:
      return region.i64[offset >> 3]!;
    case F32:
      return region.f32[offset >> 2]!;
    case F64:
      return region.f64[offset >> 3]!;
    case V128:
      throw new TypeError("A v128 cannot be converted to or from a JavaScript value");
    default:
      return boundary.fromWord(region.word(offset), type);
  }
}

/** The value a cell of `type` has when none is given: 0 or null. */
export function defaultValue(type: ValType): unknown {
  if (type === I64) return 0n;
  if (!isRef(type)) return 0;
  return type === EXTERNREF || heapOf(type) === HEAP.extern ? undefined : null;
}

/** The first half of every TypeError about a reference. */
export function referenceMismatch(value: unknown, type: ValType): TypeError {
  const what = value === null ? "null" : typeof value;
  const wants = isNullable(type) ? " or null" : "";
  return new TypeError(
    `Cannot pass ${what} as ${valTypeName(type)}${wants === "" ? "" : ` (a matching value${wants})`}`,
  );
}
