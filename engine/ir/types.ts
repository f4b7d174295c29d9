/**
 * Types of IR values. References are 64-bit: a funcref is the address of a function record (context_layout.ts) or 0; an
 * externref is a host handle or 0. PTR-like values that the collector must not see are I64.
 */
export const TY = { NONE: 0, I32: 1, I64: 2, F32: 3, F64: 4, V128: 5, REF: 6 } as const;
/** A type of an IR value: one of {@linkcode TY}. */
type Ty = number;

/** Names for printing, by type. */
export const TY_NAMES = ["none", "i32", "i64", "f32", "f64", "v128", "ref"] as const;

/** Size in bytes of a stack slot by type. */
export const TY_BYTES: Uint8Array = Uint8Array.of(0, 4, 8, 4, 8, 16, 8);

/** 1 for types in general registers, 2 for types in vector registers, 0 for none. */
export const TY_BANK: Uint8Array = Uint8Array.of(0, 1, 1, 2, 2, 2, 1);

/** Shapes of vectors: how their bits are lanes. */
export const SHAPE = { I8X16: 0, I16X8: 1, I32X4: 2, I64X2: 3, F32X4: 4, F64X2: 5 } as const;

/** Names of shapes, by shape. */
export const SHAPE_NAMES = ["i8x16", "i16x8", "i32x4", "i64x2", "f32x4", "f64x2"] as const;

/** Type of a lane as a scalar, by shape. */
export const SHAPE_LANE_TY: Uint8Array = Uint8Array.of(1, 1, 1, 2, 3, 4);

/** Types of parameters and results of a function as compiled code sees it. */
export interface Signature {
  readonly params: Uint8Array;
  readonly results: Uint8Array;
}

/** The positive canonical NaN: as an f32, and the high half of an f64, whose low half is 0. */
export const NAN32 = 0x7fc00000;
export const NAN64_HIGH = 0x7ff80000;
