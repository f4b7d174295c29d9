/**
 * IR operations on 128-bit vectors: rows for ops.ts, in its notation. All are pure. Memory instructions on vectors are
 * composed of these and of LOAD and STORE: a lane or a part of a vector is loaded as a scalar and inserted, a
 * combination that selectors recognize.
 *
 * `imm` holds the shape (types.ts: SHAPE): for operations with integers in the name's tail the shape of the result; for
 * comparisons, tests and truncations that of the operands. Operations on a lane have imm = shape | lane << 8. Bitwise
 * operations have 0. Relaxed instructions are translated as the deterministic profile defines them, so none has an
 * operation here.
 */
export const VECTOR_ROWS = [
  // scalars and vectors
  "VSPLAT v.. v p", // all lanes; the scalar is i32 for shapes i8x16 and i16x8
  "VFROM_SCALAR v.. v p", // an f32 or f64 in the lowest lane, zero above
  "VREPLACE vv. v p", // imm: shape | lane << 8; b scalar
  "VEXTRACT_S v.. t p", // imm: shape | lane << 8; i8x16 and i16x8 only
  "VEXTRACT_U v.. t p", // all shapes
  "VANY_TRUE v.. i p",
  "VALL_TRUE v.. i p",
  "VBITMASK v.. i p",
  // shifts: the count is an i32 below the width of a lane
  "VSHL vv. v p",
  "VSHR_S vv. v p",
  "VSHR_U vv. v p",
  // one operand
  "VNOT v.. v p",
  "VNEG v.. v p",
  "VABS v.. v p",
  "VPOPCNT v.. v p",
  "VEXTEND_LOW_S v.. v p",
  "VEXTEND_LOW_U v.. v p",
  "VEXTEND_HIGH_S v.. v p",
  "VEXTEND_HIGH_U v.. v p",
  "VEXTADD_S v.. v p", // extended sums of neighbours
  "VEXTADD_U v.. v p",
  "VFABS v.. v p",
  "VFNEG v.. v p",
  "VFSQRT v.. v p",
  "VFCEIL v.. v p",
  "VFFLOOR v.. v p",
  "VFTRUNC v.. v p",
  "VFNEAREST v.. v p",
  "VFDEMOTE v.. v p", // f64x2 → f32x4, the upper two zero
  "VFPROMOTE v.. v p", // the lower two of f32x4 → f64x2
  "VCONVERT_S v.. v p", // i32x4 → f32x4, or its lower two → f64x2
  "VCONVERT_U v.. v p",
  "VTRUNC_SAT_S v.. v p", // f32x4 → i32x4, or f64x2 → the lower two, the upper two zero
  "VTRUNC_SAT_U v.. v p",
  // two operands
  "VAND vv. v pc",
  "VANDNOT vv. v p", // a & ~b
  "VOR vv. v pc",
  "VXOR vv. v pc",
  "VADD vv. v pc",
  "VSUB vv. v p",
  "VMUL vv. v pc",
  "VADD_SAT_S vv. v pc",
  "VADD_SAT_U vv. v pc",
  "VSUB_SAT_S vv. v p",
  "VSUB_SAT_U vv. v p",
  "VMIN_S vv. v pc",
  "VMIN_U vv. v pc",
  "VMAX_S vv. v pc",
  "VMAX_U vv. v pc",
  "VAVGR_U vv. v pc",
  "VQ15MULR_S vv. v pc",
  "VDOT_S vv. v pc",
  "VEXTMUL_LOW_S vv. v pc", // i32x4 and i64x2; the order is that of the extensions
  "VEXTMUL_LOW_U vv. v pc",
  "VEXTMUL_HIGH_S vv. v pc",
  "VEXTMUL_HIGH_U vv. v pc",
  "VNARROW_S vv. v p",
  "VNARROW_U vv. v p",
  "VSHUFFLE vv. v p", // imm = index of the 16 lane numbers in f.vectors; of one value where b is a
  "VSWIZZLE vv. v p",
  "VEQ vv. v pc",
  "VNE vv. v pc",
  "VLT_S vv. v p",
  "VLT_U vv. v p",
  "VGT_S vv. v p",
  "VGT_U vv. v p",
  "VLE_S vv. v p",
  "VLE_U vv. v p",
  "VGE_S vv. v p",
  "VGE_U vv. v p",
  "VFADD vv. v pc",
  "VFSUB vv. v p",
  "VFMUL vv. v pc",
  "VFDIV vv. v p",
  "VFMIN vv. v p",
  "VFMAX vv. v p",
  "VFPMIN vv. v p", // b < a ? b : a
  "VFPMAX vv. v p", // a < b ? b : a
  "VFEQ vv. v pc",
  "VFNE vv. v pc",
  "VFLT vv. v p",
  "VFGT vv. v p",
  "VFLE vv. v p",
  "VFGE vv. v p",
  // three operands
  "VBITSELECT vvv v p", // bits of a where c is set, of b elsewhere
] as const;
