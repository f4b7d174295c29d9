/**
 * The vector instructions, one row per run of opcodes of the same kind: first opcode after the prefix 0xfd, count,
 * operands, result (specification, 5.4.8; relaxed ones included). Results that may contain arbitrary NaNs have the
 * width of their lanes.
 */
import type { TypeName } from "./value_types.ts";

export interface VectorOp {
  /** 0xfd000 + the opcode after the prefix. */
  readonly code: number;
  readonly params: readonly TypeName[];
  readonly result: TypeName;
  /** "f32" or "f64" if lanes of the result may be NaNs with undetermined bits. */
  readonly lanes: "f32" | "f64" | undefined;
}

type Run = readonly [first: number, count: number, params: string, result: TypeName, lanes?: "f32" | "f64"];

const V = "v128";
const VV = "v128 v128";
const RUNS: readonly Run[] = [
  [14, 1, VV, V], // swizzle
  [15, 3, "i32", V], // splats
  [18, 1, "i64", V],
  [35, 42, VV, V], // comparisons
  [77, 1, V, V], // not
  [78, 4, VV, V], // and, andnot, or, xor
  [82, 1, "v128 v128 v128", V], // bitselect
  [83, 1, V, "i32"], // any_true
  [94, 1, V, V, "f32"], // demote
  [95, 1, V, V, "f64"], // promote
  [96, 3, V, V], // i8x16
  [99, 2, V, "i32"],
  [101, 2, VV, V],
  [103, 4, V, V, "f32"], // f32x4 rounding
  [107, 3, "v128 i32", V],
  [110, 6, VV, V],
  [116, 2, V, V, "f64"],
  [118, 4, VV, V],
  [122, 1, V, V, "f64"],
  [123, 1, VV, V],
  [124, 4, V, V], // extadd_pairwise
  [128, 2, V, V], // i16x8
  [130, 1, VV, V],
  [131, 2, V, "i32"],
  [133, 2, VV, V],
  [135, 4, V, V],
  [139, 3, "v128 i32", V],
  [142, 6, VV, V],
  [148, 1, V, V, "f64"],
  [149, 5, VV, V],
  [155, 5, VV, V],
  [160, 2, V, V], // i32x4
  [163, 2, V, "i32"],
  [167, 4, V, V],
  [171, 3, "v128 i32", V],
  [174, 1, VV, V],
  [177, 1, VV, V],
  [181, 6, VV, V],
  [188, 4, VV, V],
  [192, 2, V, V], // i64x2
  [195, 2, V, "i32"],
  [199, 4, V, V],
  [203, 3, "v128 i32", V],
  [206, 1, VV, V],
  [209, 1, VV, V],
  [213, 11, VV, V],
  [224, 2, V, V], // f32x4
  [227, 1, V, V, "f32"],
  [228, 8, VV, V, "f32"],
  [236, 2, V, V], // f64x2
  [239, 1, V, V, "f64"],
  [240, 8, VV, V, "f64"],
  [248, 2, V, V], // conversions
  [250, 2, V, V],
  [252, 2, V, V],
  [254, 2, V, V],
];

export const VECTOR_OPS: readonly VectorOp[] = RUNS.flatMap(([first, count, params, result, lanes]) =>
  Array.from(
    { length: count },
    (_, i) => ({ code: 0xfd000 + first + i, params: params.split(" ") as TypeName[], result, lanes }),
  )
);

interface VectorAccess {
  readonly code: number;
  /** Log₂ of the width in bytes. */
  readonly align: number;
}

/** Loads: whole vectors, extending, splatting, zero-extending. */
export const VECTOR_LOADS: readonly VectorAccess[] = [
  { code: 0, align: 4 },
  { code: 0, align: 4 },
  { code: 0, align: 4 },
  { code: 1, align: 3 },
  { code: 2, align: 3 },
  { code: 3, align: 3 },
  { code: 4, align: 3 },
  { code: 5, align: 3 },
  { code: 6, align: 3 },
  { code: 7, align: 0 },
  { code: 8, align: 1 },
  { code: 9, align: 2 },
  { code: 10, align: 3 },
  { code: 92, align: 2 },
  { code: 93, align: 3 },
];

/** Lane extractions and replacements: code, lanes, type. */
export const EXTRACTIONS: readonly { code: number; lanes: number; type: TypeName }[] = [
  { code: 21, lanes: 16, type: "i32" },
  { code: 22, lanes: 16, type: "i32" },
  { code: 24, lanes: 8, type: "i32" },
  { code: 25, lanes: 8, type: "i32" },
  { code: 27, lanes: 4, type: "i32" },
  { code: 29, lanes: 2, type: "i64" },
  { code: 31, lanes: 4, type: "f32" },
  { code: 33, lanes: 2, type: "f64" },
];
export const REPLACEMENTS: readonly { code: number; lanes: number; type: TypeName }[] = [
  { code: 23, lanes: 16, type: "i32" },
  { code: 26, lanes: 8, type: "i32" },
  { code: 28, lanes: 4, type: "i32" },
  { code: 30, lanes: 2, type: "i64" },
  { code: 32, lanes: 4, type: "f32" },
  { code: 34, lanes: 2, type: "f64" },
];
