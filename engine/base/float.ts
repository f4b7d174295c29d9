/**
 * Float literals of the text format (specification, 6.3.2) to bits and back, exactly: decimal and hexadecimal literals
 * rounded to nearest even, infinities, NaN payloads. Bits are 32-bit halves, since a NaN may lose its payload in a
 * JavaScript number.
 *
 * Invariant: printing and parsing preserve the bits, and the printed decimal is the shortest that does.
 */

/** Bits of an f32 (`lo`) or an f64 (`lo` and `hi`), as signed 32-bit integers. */
export interface FloatBits {
  lo: number;
  hi: number;
}

/** `range`: a well-formed literal whose value or NaN payload does not fit (the suite's "constant out of range"). */
type FloatParse = "ok" | "syntax" | "range";

const floats = new Float64Array(1);
const words = new Int32Array(floats.buffer);
const singles = new Float32Array(1);
const singleWords = new Int32Array(singles.buffer);
/** Index of the low word of a double: typed arrays have the machine's byte order. */
const LOW = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1 ? 0 : 1;

/** The double with these bits. A NaN's payload may not survive. */
function f64FromBits(lo: number, hi: number): number {
  words[LOW] = lo;
  words[LOW ^ 1] = hi;
  return floats[0];
}

/** Bits of a double into `out`. */
function bitsOfF64(value: number, out: FloatBits): void {
  floats[0] = value;
  out.lo = words[LOW];
  out.hi = words[LOW ^ 1];
}

/** The number with the f32 bits `lo`. A NaN's payload may not survive. */
function f32FromBits(lo: number): number {
  singleWords[0] = lo;
  return singles[0];
}

/** Bits of `value` rounded to f32. */
export function bitsOfF32(value: number): number {
  singles[0] = value;
  return singleWords[0];
}

const DECIMAL = /^[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?)?(?:[eE][+-]?[0-9](?:_?[0-9])*)?$/;
const HEXADECIMAL =
  /^0x([0-9a-fA-F](?:_?[0-9a-fA-F])*)(?:\.([0-9a-fA-F](?:_?[0-9a-fA-F])*)?)?(?:[pP]([+-]?[0-9](?:_?[0-9])*))?$/;
const PAYLOAD = /^nan:0x([0-9a-fA-F](?:_?[0-9a-fA-F])*)$/;

/** Parses a float literal, sign included, into the bits of an f32 or f64. `out` is meaningful if the result is "ok". */
export function parseFloatLiteral(text: string, width: 32 | 64, out: FloatBits): FloatParse {
  const first = text.charCodeAt(0);
  const negative = first === 0x2d;
  const body = negative || first === 0x2b ? text.slice(1) : text;
  const result = parseMagnitude(body, width, out);
  if (result === "ok" && negative) {
    if (width === 32) out.lo |= 0x80000000;
    else out.hi |= 0x80000000;
  }
  return result;
}

function parseMagnitude(body: string, width: 32 | 64, out: FloatBits): FloatParse {
  const lead = body.charCodeAt(0);
  if (lead >= 0x30 && lead <= 0x39) {
    return body.charCodeAt(1) === 0x78 ? parseHexadecimal(body, width, out) : parseDecimal(body, width, out);
  }
  if (body === "inf") return setSpecial(width, out, 0, 0);
  if (body === "nan") return setSpecial(width, out, 0, width === 32 ? 0x400000 : 0x80000);
  const match = PAYLOAD.exec(body);
  if (match === null) return "syntax";
  const digits = match[1].replaceAll("_", "").replace(/^0+/, "");
  if (digits === "" || digits.length > 13) return "range";
  const payload = parseInt(digits, 16);
  if (payload >= (width === 32 ? 0x800000 : 0x10000000000000)) return "range";
  return setSpecial(width, out, payload | 0, width === 32 ? payload : Math.floor(payload / 0x100000000));
}

/**
 * Sets infinity or a NaN. `high` is the significand of an f32, or the upper bits of an f64's; `low` the f64's lower
 * bits.
 */
function setSpecial(width: 32 | 64, out: FloatBits, low: number, high: number): FloatParse {
  out.lo = width === 32 ? 0x7f800000 | high : low;
  out.hi = width === 32 ? 0 : 0x7ff00000 | high;
  return "ok";
}

function parseDecimal(body: string, width: 32 | 64, out: FloatBits): FloatParse {
  if (!DECIMAL.test(body)) return "syntax";
  const plain = body.replaceAll("_", "");
  const value = Number(plain);
  if (width === 64) {
    if (value === Infinity) return "range";
    bitsOfF64(value, out);
    return "ok";
  }
  let single = Math.fround(value);
  // Double rounding is wrong only if the double is exactly halfway between two singles and the literal is not.
  if (single !== value && value < 2 ** 129) {
    const low = single < value ? single : f32FromBits(bitsOfF32(single) - 1);
    const high = single < value ? f32FromBits(bitsOfF32(single) + 1) : single;
    if (value - low === (high === Infinity ? 2 ** 128 : high) - value) {
      const order = compareDecimal(plain, value);
      if (order !== 0) single = order < 0 ? low : high;
    }
  }
  if (single === Infinity) return "range";
  out.lo = bitsOfF32(single);
  out.hi = 0;
  return "ok";
}

/** No double halfway between two singles has more significant decimal digits than this. */
const ENOUGH_DIGITS = 200;

/**
 * Sign of (decimal literal − `value`), exactly. The literal is within a rounding error of `value`, which is positive.
 */
function compareDecimal(literal: string, value: number): number {
  const e = literal.search(/[eE]/);
  const mantissa = e < 0 ? literal : literal.slice(0, e);
  const point = mantissa.indexOf(".");
  let digits = point < 0 ? mantissa : mantissa.slice(0, point) + mantissa.slice(point + 1);
  let exponent = (e < 0 ? 0 : Number(literal.slice(e + 1))) - (point < 0 ? 0 : mantissa.length - point - 1);
  digits = digits.replace(/^0+/, "");
  if (digits.length > ENOUGH_DIGITS) {
    // The truncated digits can only make the literal larger: one sticky digit represents them.
    exponent += digits.length - ENOUGH_DIGITS - 1;
    const sticky = /[1-9]/.test(digits.slice(ENOUGH_DIGITS)) ? "1" : "0";
    digits = digits.slice(0, ENOUGH_DIGITS) + sticky;
  }
  const bits = { lo: 0, hi: 0 };
  bitsOfF64(value, bits);
  const biased = (bits.hi >>> 20) & 0x7ff;
  const significand = (BigInt((bits.hi & 0xfffff) | (biased === 0 ? 0 : 0x100000)) << 32n) | BigInt(bits.lo >>> 0);
  const binary = Math.max(biased, 1) - 1075;
  let left = BigInt(digits);
  let right = significand;
  if (exponent >= 0) left *= 10n ** BigInt(exponent);
  else right *= 10n ** BigInt(-exponent);
  if (binary >= 0) right <<= BigInt(binary);
  else left <<= BigInt(-binary);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Significant hexadecimal digits kept of a literal; a sticky digit represents the rest. */
const HEX_DIGITS = 20;

function parseHexadecimal(body: string, width: 32 | 64, out: FloatBits): FloatParse {
  const match = HEXADECIMAL.exec(body);
  if (match === null) return "syntax";
  const fraction = (match[2] ?? "").replaceAll("_", "");
  let exponent = Number((match[3] ?? "0").replaceAll("_", "")) - 4 * fraction.length;
  let digits = (match[1].replaceAll("_", "") + fraction).replace(/^0+/, "");
  if (digits.length > HEX_DIGITS) {
    exponent += 4 * (digits.length - HEX_DIGITS - 1);
    const sticky = /[1-9a-fA-F]/.test(digits.slice(HEX_DIGITS)) ? "1" : "0";
    digits = digits.slice(0, HEX_DIGITS) + sticky;
  }
  const fractionBits = width === 32 ? 23 : 52;
  const minExponent = width === 32 ? -149 : -1074;
  let bits = 0n;
  if (digits !== "") {
    const significand = BigInt("0x" + digits);
    const length = significand.toString(2).length;
    if (exponent + length > 2000) return "range";
    if (exponent + length > -2000) {
      // `unit` is the exponent of the result's last place; the significand is rounded to a multiple of it.
      const unit = Math.max(exponent + length - fractionBits - 1, minExponent);
      const rounded = shiftRounding(significand, unit - exponent);
      // Rounding up may carry into a new bit; adding (instead of or-ing) the exponent field accounts for the carry.
      bits = rounded + (BigInt(unit - minExponent) << BigInt(fractionBits));
      if (bits >= (width === 32 ? 0x7f800000n : 0x7ff0000000000000n)) return "range";
    }
  }
  out.lo = Number(BigInt.asIntN(32, bits));
  out.hi = Number(BigInt.asIntN(32, bits >> 32n));
  return "ok";
}

/** `value` / 2^places to the nearest integer, ties to even. */
function shiftRounding(value: bigint, places: number): bigint {
  if (places <= 0) return value << BigInt(-places);
  const shift = BigInt(places);
  const quotient = value >> shift;
  const rest = value - (quotient << shift);
  const half = 1n << (shift - 1n);
  return rest > half || (rest === half && (quotient & 1n) === 1n) ? quotient + 1n : quotient;
}

/**
 * The f32 with bits `lo` as a literal of the text format: shortest decimal, `inf`, `nan` or `nan:0x…`, with its sign.
 */
export function printF32(lo: number): string {
  const sign = lo < 0 ? "-" : "";
  const magnitude = lo & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign + printNan(magnitude & 0x7fffff, 0x400000);
  if (magnitude === 0x7f800000) return sign + "inf";
  const value = f32FromBits(magnitude);
  const bits = { lo: 0, hi: 0 };
  for (let digits = 1; digits < 9; digits++) {
    const text = String(Number(value.toPrecision(digits)));
    if (parseFloatLiteral(text, 32, bits) === "ok" && bits.lo === magnitude) return sign + text;
  }
  return sign + String(Number(value.toPrecision(9)));
}

/** The f64 with these bits as a literal of the text format. */
export function printF64(lo: number, hi: number): string {
  const sign = hi < 0 ? "-" : "";
  const high = hi & 0x7fffffff;
  if (high >= 0x7ff00000) {
    const payload = (high & 0xfffff) * 0x100000000 + (lo >>> 0);
    return sign + (payload === 0 ? "inf" : printNan(payload, 0x8000000000000));
  }
  return sign + String(f64FromBits(lo, high));
}

function printNan(payload: number, canonical: number): string {
  return payload === canonical ? "nan" : `nan:0x${payload.toString(16)}`;
}
