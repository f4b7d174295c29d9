/**
 * Values at the boundary between JavaScript and compiled code (JavaScript API, "ToWebAssemblyValue" and "ToJSValue"):
 * reads and writes values of each type in 16-byte cells (slots of the thread state, globals) of a region.
 */
import { Bug } from "../../base/errors.ts";
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

/** Conversion of references between JavaScript values and words of compiled code. */
export interface ReferenceBoundary {
  /**
   * The word of a JavaScript value for the closed reference type `type`. Throws TypeError if the value does not have
   * that type.
   */
  toWord(value: unknown, type: ValType, receiver?: Sharer): number;
  fromWord(word: number, type: ValType, giver?: Sharer): unknown;
}

/** Reference conversion with fast paths for the most frequent cases. */
export interface Boundary extends ReferenceBoundary {
  /** The value of a word with the tag of host values. */
  hostValue(word: number): unknown;
  /** The word of a string, for any type that includes host values. */
  textWord(value: string): number;
  /**
   * Sweeps if necessary; called while the arguments of a host function are still roots. A program that calls host
   * functions with references in an endless loop reaches no other safepoint.
   */
  relieve(): void;
}

/** Converts `value` to `type` and writes it to the cell at `offset`. Throws TypeError if there is no conversion. */
export function writeValue(
  region: NativeRegion,
  offset: number,
  type: ValType,
  value: unknown,
  boundary: ReferenceBoundary,
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

/** Reads the cell at `offset` as a value of `type`. Throws TypeError for a v128. */
export function readValue(region: NativeRegion, offset: number, type: ValType, boundary: ReferenceBoundary): unknown {
  switch (type) {
    case I32:
      return region.i32[offset >> 2];
    case I64:
      return region.i64[offset >> 3];
    case F32:
      return region.f32[offset >> 2];
    case F64:
      return region.f64[offset >> 3];
    case V128:
      throw new TypeError("A v128 cannot be converted to or from a JavaScript value");
    default:
      return boundary.fromWord(region.word(offset), type);
  }
}

/** The default value of a cell of `type`: 0, null or undefined. */
export function defaultValue(type: ValType): unknown {
  if (type === I64) return 0n;
  if (!isRef(type)) return 0;
  return type === EXTERNREF || heapOf(type) === HEAP.extern ? undefined : null;
}

/** The TypeError for a value that does not have reference type `type`. */
export function referenceMismatch(value: unknown, type: ValType): TypeError {
  const what = value === null ? "null" : typeof value;
  const wants = isNullable(type) ? " (a matching value or null)" : "";
  // The number of a closed type differs between processes.
  const name = heapOf(type) >= 0 ? "a reference of a type of the module" : valTypeName(type);
  return new TypeError(`Cannot pass ${what} as ${name}${wants}`);
}
