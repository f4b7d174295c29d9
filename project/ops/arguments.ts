/**
 * WebAssembly values on a command line. Arguments are parsed by the function's parameter types. Results are printed one
 * per line: integers as signed decimal, floats as the shortest text that reads back, `nan`, `inf`.
 */
import { parseFloatLiteral } from "@waft/engine/internal/base/float";
import { EXTERNREF, F32, F64, FUNCREF, I32, I64, type ValType, valTypeName } from "@waft/engine/internal/wasm/types";
import { UsageError } from "../base/failure.ts";

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
      return parseFloatArgument(text, type);
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

function parseFloatArgument(text: string, type: ValType): number {
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
  return width === 32 ? HALVES.getFloat32(0, true) : HALVES.getFloat64(0, true);
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
