/**
 * Values in scripts: arguments of actions and the patterns that results must match, including NaN classes and kinds of
 * references (the reference interpreter's script language). In: tokens. Out: plain data; the runner does the matching.
 */
import { HEAP, type HeapType } from "../wasm/types.ts";
import { K } from "./keywords.ts";
import { ModuleContext } from "./module_context.ts";
import {
  CONSTANT,
  isNumber,
  parseFloatConstant,
  parseIntegerConstant,
  parseLane,
  parseShape,
} from "./parse_constants.ts";
import { parseHeapType } from "./parse_types.ts";
import type { TokenCursor } from "./token_cursor.ts";
import { RIGHT } from "./tokens.ts";

/** An argument. Integers and floats are unsigned bits. */
export type ConstValue =
  | { type: "i32" | "f32"; bits: number }
  | { type: "i64" | "f64"; bits: bigint }
  | { type: "v128"; bytes: Uint8Array }
  | { type: "ref.null"; heap: HeapType }
  | { type: "ref.extern" | "ref.host"; host: number };

/**
 * `canonical`: only the top bit of the payload is set; `arithmetic`: at least the top bit. The sign is free in both.
 */
export type NanPattern = "canonical" | "arithmetic";

type LaneShape = "i8x16" | "i16x8" | "i32x4" | "i64x2" | "f32x4" | "f64x2";

/** The pattern of a result. */
export type ExpectedValue =
  | { type: "i32"; bits: number }
  | { type: "i64"; bits: bigint }
  | { type: "f32"; bits: number; nan?: NanPattern }
  | { type: "f64"; bits: bigint; nan?: NanPattern }
  /** `nans[lane]` is set if a lane is a pattern; the other lanes are compared with `bytes`. */
  | { type: "v128"; shape: LaneShape; bytes: Uint8Array; nans: (NanPattern | undefined)[] }
  /** A null reference, of the hierarchy of `heap` if that is given. */
  | { type: "ref.null"; heap?: HeapType }
  /** A non-null reference of type `heap`; with `host`, the host value of that number. */
  | { type: "ref"; heap: HeapType; host?: number }
  | { type: "either"; options: ExpectedValue[] };

/** Limit on the nesting of `either`. */
const NESTING_LIMIT = 16;

/** Heap types of the patterns `(ref.func)`, `(ref.struct)`, … by keyword. */
const REF_PATTERNS: ReadonlyMap<number, HeapType> = new Map([
  [K["ref.func"], HEAP.func],
  [K["ref.extern"], HEAP.extern],
  [K["ref.any"], HEAP.any],
  [K["ref.eq"], HEAP.eq],
  [K["ref.i31"], HEAP.i31],
  [K["ref.struct"], HEAP.struct],
  [K["ref.array"], HEAP.array],
  [K["ref.exn"], HEAP.exn],
  [K["ref.host"], HEAP.any],
]);

const SHAPE_NAMES: ReadonlyMap<number, LaneShape> = new Map(
  (["i8x16", "i16x8", "i32x4", "i64x2", "f32x4", "f64x2"] as const).map((name) => [K[name], name]),
);

/** Parses arguments up to the closing parenthesis, without consuming it. */
export function parseArguments(cursor: TokenCursor): ConstValue[] {
  const values: ConstValue[] = [];
  while (cursor.kind !== RIGHT) values.push(parseConstValue(cursor));
  return values;
}

function parseConstValue(cursor: TokenCursor): ConstValue {
  const keyword = openAny(cursor);
  let value: ConstValue;
  switch (keyword) {
    case K["i32.const"]:
    case K["f32.const"]:
      value = { type: keyword === K["i32.const"] ? "i32" : "f32", bits: parseBits32(cursor, keyword) };
      break;
    case K["i64.const"]:
    case K["f64.const"]:
      value = { type: keyword === K["i64.const"] ? "i64" : "f64", bits: parseBits64(cursor, keyword) };
      break;
    case K["v128.const"]:
      value = { type: "v128", bytes: parseVector(cursor).bytes };
      break;
    case K["ref.null"]:
      value = { type: "ref.null", heap: parseHeapType(new ModuleContext(cursor)) };
      break;
    case K["ref.extern"]:
    case K["ref.host"]:
      value = { type: keyword === K["ref.extern"] ? "ref.extern" : "ref.host", host: cursor.u32() };
      break;
    default:
      return cursor.unexpected(cursor.at - 1);
  }
  cursor.expectClose();
  return value;
}

/** Parses result patterns up to the closing parenthesis, without consuming it. */
export function parseExpectedValues(cursor: TokenCursor, nesting = 0): ExpectedValue[] {
  if (nesting > NESTING_LIMIT) cursor.fail("result pattern is nested too deep");
  const values: ExpectedValue[] = [];
  while (cursor.kind !== RIGHT) {
    const keyword = openAny(cursor);
    values.push(parseExpectedValue(cursor, keyword, nesting));
    cursor.expectClose();
  }
  return values;
}

function parseExpectedValue(cursor: TokenCursor, keyword: number, nesting: number): ExpectedValue {
  switch (keyword) {
    case K["i32.const"]:
      return { type: "i32", bits: parseBits32(cursor, keyword) };
    case K["i64.const"]:
      return { type: "i64", bits: parseBits64(cursor, keyword) };
    case K["f32.const"]: {
      const nan = takeNanPattern(cursor);
      return nan === undefined ? { type: "f32", bits: parseBits32(cursor, keyword) } : { type: "f32", bits: 0, nan };
    }
    case K["f64.const"]: {
      const nan = takeNanPattern(cursor);
      return nan === undefined ? { type: "f64", bits: parseBits64(cursor, keyword) } : { type: "f64", bits: 0n, nan };
    }
    case K["v128.const"]:
      return { type: "v128", ...parseVector(cursor, true) };
    case K["ref.null"]:
      if (cursor.kind === RIGHT) return { type: "ref.null" };
      return { type: "ref.null", heap: parseHeapType(new ModuleContext(cursor)) };
    case K.either:
      return { type: "either", options: parseExpectedValues(cursor, nesting + 1) };
  }
  const heap = REF_PATTERNS.get(keyword);
  if (heap === undefined) return cursor.unexpected(cursor.at - 1);
  const hosted = (keyword === K["ref.extern"] || keyword === K["ref.host"]) && cursor.kind !== RIGHT;
  return hosted ? { type: "ref", heap, host: cursor.u32() } : { type: "ref", heap };
}

/** Parses `(` and a keyword. */
function openAny(cursor: TokenCursor): number {
  const keyword = cursor.openKeyword();
  if (keyword < 0) cursor.unexpected(isNumber(cursor) ? cursor.at : cursor.at + 1);
  cursor.at += 2;
  return keyword;
}

function parseBits32(cursor: TokenCursor, keyword: number): number {
  if (keyword === K["i32.const"]) parseIntegerConstant(cursor, 32);
  else parseFloatConstant(cursor, 32);
  return CONSTANT.lo >>> 0;
}

function parseBits64(cursor: TokenCursor, keyword: number): bigint {
  if (keyword === K["i64.const"]) parseIntegerConstant(cursor, 64);
  else parseFloatConstant(cursor, 64);
  return (BigInt(CONSTANT.hi >>> 0) << 32n) | BigInt(CONSTANT.lo >>> 0);
}

function takeNanPattern(cursor: TokenCursor): NanPattern | undefined {
  if (cursor.takeKeyword(K["nan:canonical"])) return "canonical";
  return cursor.takeKeyword(K["nan:arithmetic"]) ? "arithmetic" : undefined;
}

interface VectorPattern {
  shape: LaneShape;
  bytes: Uint8Array;
  nans: (NanPattern | undefined)[];
}

function parseVector(cursor: TokenCursor, patterns = false): VectorPattern {
  const shape = SHAPE_NAMES.get(cursor.values[cursor.at])!;
  const [count, width] = parseShape(cursor);
  const bytes = new Uint8Array(16);
  const nans: (NanPattern | undefined)[] = [];
  for (let lane = 0; lane < count; lane++) {
    const nan = patterns && width < 0 ? takeNanPattern(cursor) : undefined;
    nans.push(nan);
    if (nan !== undefined) continue;
    if (cursor.kind === RIGHT) cursor.fail("wrong number of lane literals");
    parseLane(cursor, width, bytes, lane);
  }
  if (isNumber(cursor)) cursor.fail("wrong number of lane literals");
  return { shape, bytes, nans };
}
