/**
 * Values of the debugger: numbers and vectors in records, as text. In: a place in memory and a type. Out: a number, a
 * bigint (integers), or the text of a vector; and back from text.
 */
import { F32, F64, I32, I64, V128, type ValType, valTypeName } from "@waft/engine/internal/wasm/types";

/** A value: bigint for integers, number for floats, text for vectors. */
export type Value = bigint | number | string;

/** Reads the value of numeric type `type` at `at`. */
export function readNumber(view: DataView, at: number, type: ValType): Value {
  switch (type) {
    case I32:
      return BigInt(view.getInt32(at, true));
    case I64:
      return view.getBigInt64(at, true);
    case F32:
      return view.getFloat32(at, true);
    case F64:
      return view.getFloat64(at, true);
    default:
      return vectorText(view, at);
  }
}

function vectorText(view: DataView, at: number): string {
  const lanes = [0, 4, 8, 12].map((k) => `0x${view.getUint32(at + k, true).toString(16).padStart(8, "0")}`);
  return `i32x4 ${lanes.join(" ")}`;
}

/**
 * Writes the value that `text` names, such as `-7`, `0xff` or `1.5`. Throws a RangeError if it is outside of the type's
 * range, or if the type is a vector, and a SyntaxError if it is not a number.
 */
export function writeNumber(view: DataView, at: number, type: ValType, text: string): void {
  if (type === F32 || type === F64) {
    const value = Number(text);
    if (text.trim() === "" || (Number.isNaN(value) && text.trim() !== "NaN")) {
      throw new SyntaxError(`"${text}" is not a number`);
    }
    if (type === F32) view.setFloat32(at, value, true);
    else view.setFloat64(at, value, true);
    return;
  }
  if (type === V128) throw new RangeError("Vectors cannot be changed");
  const bits = type === I32 ? 32 : 64;
  const value = integerOf(text);
  if (value < -(1n << BigInt(bits - 1)) || value >= 1n << BigInt(bits)) {
    throw new RangeError(`${text} is outside of the range of ${valTypeName(type)}`);
  }
  if (type === I32) view.setInt32(at, Number(BigInt.asIntN(32, value)), true);
  else view.setBigInt64(at, BigInt.asIntN(64, value), true);
}

function integerOf(text: string): bigint {
  const digits = text.trim();
  const negative = digits.startsWith("-");
  const magnitude = negative ? digits.slice(1) : digits;
  if (!/^(0x[0-9a-f]+|\d+)$/i.test(magnitude)) throw new SyntaxError(`"${text}" is not an integer`);
  return negative ? -BigInt(magnitude) : BigInt(magnitude);
}

/** The bits of a number of type `type`; undefined for a vector. */
export function bitsOf(value: Value, type: ValType): bigint | undefined {
  if (typeof value === "string") return undefined;
  const view = new DataView(new ArrayBuffer(8));
  if (type === F32) view.setFloat32(0, Number(value), true);
  else if (type === F64) view.setFloat64(0, Number(value), true);
  else view.setBigInt64(0, BigInt(value), true);
  return view.getBigUint64(0, true);
}

/** A value as text. */
export function valueText(value: Value): string {
  return Object.is(value, -0) ? "-0" : String(value);
}
