/**
 * The numeric instructions of WebAssembly 2.0 without vectors, one row per run of opcodes with the same type: first
 * opcode, count, parameters, result (specification, 5.4.6). Predicates by opcode identify instructions that may trap
 * and those that expose the bits of a NaN.
 */
import type { TypeName } from "./value_types.ts";

export interface NumericOp {
  /** Opcode; 0xfc00 + n for those behind the 0xfc prefix. */
  readonly code: number;
  readonly params: readonly TypeName[];
  readonly result: TypeName;
}

const RUNS: readonly (readonly [first: number, count: number, params: string, result: TypeName])[] = [
  [0x45, 1, "i32", "i32"],
  [0x46, 10, "i32 i32", "i32"],
  [0x50, 1, "i64", "i32"],
  [0x51, 10, "i64 i64", "i32"],
  [0x5b, 6, "f32 f32", "i32"],
  [0x61, 6, "f64 f64", "i32"],
  [0x67, 3, "i32", "i32"],
  [0x6a, 15, "i32 i32", "i32"],
  [0x79, 3, "i64", "i64"],
  [0x7c, 15, "i64 i64", "i64"],
  [0x8b, 7, "f32", "f32"],
  [0x92, 7, "f32 f32", "f32"],
  [0x99, 7, "f64", "f64"],
  [0xa0, 7, "f64 f64", "f64"],
  [0xa7, 1, "i64", "i32"],
  [0xa8, 2, "f32", "i32"],
  [0xaa, 2, "f64", "i32"],
  [0xac, 2, "i32", "i64"],
  [0xae, 2, "f32", "i64"],
  [0xb0, 2, "f64", "i64"],
  [0xb2, 2, "i32", "f32"],
  [0xb4, 2, "i64", "f32"],
  [0xb6, 1, "f64", "f32"],
  [0xb7, 2, "i32", "f64"],
  [0xb9, 2, "i64", "f64"],
  [0xbb, 1, "f32", "f64"],
  [0xbc, 1, "f32", "i32"],
  [0xbd, 1, "f64", "i64"],
  [0xbe, 1, "i32", "f32"],
  [0xbf, 1, "i64", "f64"],
  [0xc0, 2, "i32", "i32"],
  [0xc2, 3, "i64", "i64"],
  [0xfc00, 2, "f32", "i32"],
  [0xfc02, 2, "f64", "i32"],
  [0xfc04, 2, "f32", "i64"],
  [0xfc06, 2, "f64", "i64"],
];

export const NUMERIC_OPS: readonly NumericOp[] = RUNS.flatMap(([first, count, params, result]) =>
  Array.from({ length: count }, (_, i) => ({ code: first + i, params: params.split(" ") as TypeName[], result }))
);

/** Division and remainder. */
export function isDivision(code: number): boolean {
  return (code >= 0x6d && code <= 0x70) || (code >= 0x7f && code <= 0x82);
}

/** Conversions that trap on values out of range; {@linkcode saturating} returns their saturating form. */
export function isTruncation(code: number): boolean {
  return code >= 0xa8 && code <= 0xb1 && code !== 0xac && code !== 0xad;
}

/** The saturating form of a trapping truncation. */
export function saturating(code: number): number {
  return code < 0xac ? 0xfc00 + code - 0xa8 : 0xfc04 + code - 0xae;
}

/** Instructions that expose the NaN bits of their last operand: copysign and reinterpretation. */
export function showsNaN(code: number): boolean {
  return code === 0x98 || code === 0xa6 || code === 0xbc || code === 0xbd;
}

export interface AccessOp {
  readonly code: number;
  readonly type: TypeName;
  /** Log₂ of the width in bytes: the largest alignment. */
  readonly align: number;
}

/** Loads, then stores: opcode, type, log₂ of the width. */
export const LOADS: readonly AccessOp[] = [
  { code: 0x28, type: "i32", align: 2 },
  { code: 0x29, type: "i64", align: 3 },
  { code: 0x2a, type: "f32", align: 2 },
  { code: 0x2b, type: "f64", align: 3 },
  { code: 0x2c, type: "i32", align: 0 },
  { code: 0x2d, type: "i32", align: 0 },
  { code: 0x2e, type: "i32", align: 1 },
  { code: 0x2f, type: "i32", align: 1 },
  { code: 0x30, type: "i64", align: 0 },
  { code: 0x31, type: "i64", align: 0 },
  { code: 0x32, type: "i64", align: 1 },
  { code: 0x33, type: "i64", align: 1 },
  { code: 0x34, type: "i64", align: 2 },
  { code: 0x35, type: "i64", align: 2 },
];
export const STORES: readonly AccessOp[] = [
  { code: 0x36, type: "i32", align: 2 },
  { code: 0x37, type: "i64", align: 3 },
  { code: 0x38, type: "f32", align: 2 },
  { code: 0x39, type: "f64", align: 3 },
  { code: 0x3a, type: "i32", align: 0 },
  { code: 0x3b, type: "i32", align: 1 },
  { code: 0x3c, type: "i64", align: 0 },
  { code: 0x3d, type: "i64", align: 1 },
  { code: 0x3e, type: "i64", align: 2 },
];
