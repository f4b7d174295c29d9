/**
 * WebAssembly values on a command line. Arguments are parsed by the function's parameter types. Results are printed one
 * per line: integers as signed decimal, floats as the shortest text that reads back, `nan`, `inf`; a NaN with its
 * payload where the call was made by bits.
 */
import { parseFloatLiteral, printF32, printF64 } from "@waft/engine/internal/base/float";
import { EXTERNREF, F32, F64, FUNCREF, I32, I64, type ValType, valTypeName } from "@waft/engine/internal/wasm/types";
import { UsageError } from "../../base/failure.ts";

const BITS = { lo: 0, hi: 0 };
const HALVES = new DataView(new ArrayBuffer(8));

/** A JavaScript value for `text` as an argument of `type`. Throws UsageError. */
export function parseArgument(text: string, type: ValType): unknown {
  switch (type) {
    case I32:
      return Number(parseInteger(text, 32));
    case I64:
      return parseInteger(text, 64);
    case F32:
    case F64:
      return floatOf(parseFloatBits(text, type), type);
    case EXTERNREF:
    case FUNCREF:
      if (text === "null") return null;
      throw new UsageError(`"${text}" cannot be passed as ${valTypeName(type)}: only null can`);
    default:
      throw new UsageError(`a parameter of type ${valTypeName(type)} cannot be given on the command line`);
  }
}

function parseInteger(text: string, bits: 32 | 64): bigint {
  const match = /^([+-]?)(0[xX][0-9a-fA-F_]+|[0-9_]+)$/.exec(text);
  const digits = match?.[2]?.replaceAll("_", "");
  if (digits === undefined || digits === "" || /^0[xX]$/.test(digits)) {
    throw new UsageError(`"${text}" is not an i${bits}`);
  }
  const value = match![1] === "-" ? -BigInt(digits) : BigInt(digits);
  const limit = 1n << BigInt(bits);
  if (value >= limit || value < -limit / 2n) throw new UsageError(`${text} is out of range for an i${bits}`);
  return BigInt.asIntN(bits, value);
}

/** The bits of a float as an unsigned integer. */
function parseFloatBits(text: string, type: ValType): bigint {
  const width = type === F32 ? 32 : 64;
  const result = parseFloatLiteral(
    text.replace(/^([+-]?)(NaN|Infinity)$/, (_, sign, word) => sign + (word === "NaN" ? "nan" : "inf")),
    width,
    BITS,
  );
  if (result === "range") throw new UsageError(`${text} is out of range for an f${width}`);
  if (result !== "ok") throw new UsageError(`"${text}" is not an f${width}`);
  HALVES.setInt32(0, BITS.lo, true);
  HALVES.setInt32(4, BITS.hi, true);
  return width === 32 ? BigInt(HALVES.getUint32(0, true)) : HALVES.getBigUint64(0, true);
}

/** The number with these bits. A NaN's payload may not survive. */
function floatOf(bits: bigint, type: ValType): number {
  HALVES.setBigUint64(0, bits, true);
  return type === F32 ? HALVES.getFloat32(0, true) : HALVES.getFloat64(0, true);
}

/**
 * True for calls whose values are passed as bits: there are floats among them, whose NaNs have payloads, and nothing
 * but numbers.
 */
export function isCalledByBits(types: readonly ValType[]): boolean {
  const isFloat = (type: ValType) => type === F32 || type === F64;
  return types.some(isFloat) && types.every((type) => isFloat(type) || type === I32 || type === I64);
}

/** The bits of `text` as an argument of `type`, a number. Throws UsageError. */
export function parseArgumentBits(text: string, type: ValType): bigint {
  if (type === F32 || type === F64) return parseFloatBits(text, type);
  const bits = type === I32 ? 32 : 64;
  return BigInt.asUintN(bits, parseInteger(text, bits));
}

/** Formats the bits of one result, a number, as text. */
export function printResultBits(bits: bigint, type: ValType): string {
  if (type === I32 || type === I64) return String(BigInt.asIntN(type === I32 ? 32 : 64, bits));
  const value = floatOf(bits, type);
  if (!Number.isNaN(value)) return printResult(value, type);
  const low = Number(BigInt.asIntN(32, bits));
  return type === F32 ? printF32(low) : printF64(low, Number(bits >> 32n) | 0);
}

/** Formats one result as text. */
export function printResult(value: unknown, type: ValType): string {
  if (type === F32 || type === F64) {
    const number = value as number;
    if (Number.isNaN(number)) return "nan";
    if (!Number.isFinite(number)) return number > 0 ? "inf" : "-inf";
    if (Object.is(number, -0)) return "-0";
    return type === F32 ? shortestF32(number) : String(number);
  }
  if (value === null) return "null";
  if (typeof value === "function") return "funcref";
  return String(value);
}

/** The shortest decimal text that reads back as the same f32. */
function shortestF32(value: number): string {
  for (let digits = 1; digits <= 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(value);
}
