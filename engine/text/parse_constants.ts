/**
 * Literals of constants: the number tokens after `i32.const`, `f64.const`, `v128.const` and in lanes, as bits
 * (specification, 6.3.2 and 6.5.8). Results are 32-bit halves in CONSTANT, or bytes that the caller provides.
 */
import { type FloatBits, parseFloatLiteral } from "../base/float.ts";
import { K } from "./keywords.ts";
import { INTEGER } from "./number_text.ts";
import type { TokenCursor } from "./token_cursor.ts";
import { FLOAT, INT, KEYWORD, NAT, RESERVED } from "./tokens.ts";

/** Bits of the last constant: `lo`, and `hi` of 64-bit ones, as signed integers. */
export const CONSTANT: FloatBits = { lo: 0, hi: 0 };

/** Whether the current token is a number. */
export function isNumber(cursor: TokenCursor): boolean {
  const kind = cursor.kind;
  return kind === NAT || kind === INT || kind === FLOAT;
}

/** Parses an integer of `bits` bits into CONSTANT. */
export function parseIntegerConstant(cursor: TokenCursor, bits: number): void {
  const kind = cursor.kind;
  if (kind !== NAT && kind !== INT) cursor.unexpected();
  if (!cursor.integer(bits)) cursor.fail(`i${bits} constant out of range`);
  cursor.at++;
  CONSTANT.lo = INTEGER.lo | 0;
  CONSTANT.hi = INTEGER.hi | 0;
}

/** Parses a floating-point number (or an integer) into CONSTANT. */
export function parseFloatConstant(cursor: TokenCursor, width: 32 | 64): void {
  if (!isNumber(cursor)) cursor.unexpected();
  const result = parseFloatLiteral(cursor.tokens.wholeText(cursor.at), width, CONSTANT);
  if (result === "range") cursor.fail(`f${width} constant out of range`);
  if (result === "syntax") cursor.unexpected();
  cursor.at++;
}

/** Lane count and width in bits of each shape; a negative width is floating-point. */
const SHAPES: ReadonlyMap<number, readonly [count: number, width: number]> = new Map([
  [K.i8x16, [16, 8]],
  [K.i16x8, [8, 16]],
  [K.i32x4, [4, 32]],
  [K.i64x2, [2, 64]],
  [K.f32x4, [4, -32]],
  [K.f64x2, [2, -64]],
]);

/** Parses the shape of a vector constant. */
export function parseShape(cursor: TokenCursor): readonly [count: number, width: number] {
  const shape = cursor.kind === KEYWORD ? SHAPES.get(cursor.values[cursor.at]) : undefined;
  if (shape === undefined) return cursor.unexpected();
  cursor.at++;
  return shape;
}

/** Parses shape and lanes of a vector constant into `bytes`. */
export function parseVectorConstant(cursor: TokenCursor, bytes: Uint8Array): void {
  const [count, width] = parseShape(cursor);
  if (countNumbers(cursor) !== count) cursor.fail("wrong number of lane literals");
  for (let lane = 0; lane < count; lane++) parseLane(cursor, width, bytes, lane);
}

/** Parses lane `lane` into its place in `bytes`. */
export function parseLane(cursor: TokenCursor, width: number, bytes: Uint8Array, lane: number): void {
  if (width > 0) parseIntegerConstant(cursor, width);
  else parseFloatConstant(cursor, width === -32 ? 32 : 64);
  const size = Math.abs(width) >> 3;
  for (let i = 0; i < size; i++) {
    bytes[lane * size + i] = i < 4 ? CONSTANT.lo >>> (8 * i) : CONSTANT.hi >>> (8 * (i - 4));
  }
}

/** The number of number tokens that follow. */
function countNumbers(cursor: TokenCursor): number {
  const start = cursor.at;
  while (isNumber(cursor)) cursor.at++;
  if (cursor.kind === RESERVED || cursor.isUnknownKeyword()) cursor.unexpected();
  const count = cursor.at - start;
  cursor.at = start;
  return count;
}

/** Parses the sixteen lane indices of a shuffle. */
export function parseShuffleLanes(cursor: TokenCursor, bytes: Uint8Array): void {
  if (countNumbers(cursor) !== 16) cursor.fail("invalid lane length");
  for (let lane = 0; lane < 16; lane++) {
    if (cursor.kind !== NAT || !cursor.integer(8)) cursor.fail("i8 constant out of range");
    bytes[lane] = INTEGER.lo;
    cursor.at++;
  }
}

/** Parses a lane index. */
export function parseLaneIndex(cursor: TokenCursor): number {
  if (cursor.kind !== NAT) cursor.unexpected();
  if (!cursor.integer(8)) cursor.fail("i8 constant out of range");
  cursor.at++;
  return INTEGER.lo;
}
