/**
 * The types of IR values for the value types of WebAssembly. In: a value type, or its letter in an opcode row. Out: one
 * of TY; references are one type.
 */
import { TY } from "../ir/types.ts";
import { F32, F64, I32, I64, V128, type ValType } from "./types.ts";

/** The IR type by letter of an opcode row's signature. */
export const TY_OF_LETTER: Readonly<Record<string, number>> = {
  i: TY.I32,
  I: TY.I64,
  f: TY.F32,
  F: TY.F64,
  v: TY.V128,
};

/** The IR type of a value type. */
export function tyOf(type: ValType): number {
  switch (type) {
    case I32:
      return TY.I32;
    case I64:
      return TY.I64;
    case F32:
      return TY.F32;
    case F64:
      return TY.F64;
    case V128:
      return TY.V128;
    default:
      return TY.REF;
  }
}
