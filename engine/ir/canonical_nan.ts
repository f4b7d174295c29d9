/**
 * Canonicalization of NaNs as IR: `SELECT canonical v (FNE v v)`, and for vectors
 * `VBITSELECT canonical v (VFNE v v)`. In: a function. Out: which of its instructions are canonicalizations. The
 * translator writes them (translate/deterministic.ts); passes and selectors recognize them.
 */
import { OP } from "./ops.ts";
import { NAN32, NAN64_HIGH, SHAPE, TY } from "./types.ts";

const { CONST, FNE, SELECT, VBITSELECT, VFNE } = OP;

/** Lanes of 32 bits, lanes of 64 bits, and scalars of either width. */
export const NARROW_LANES = 1;
export const WIDE_LANES = 2;
export const SCALAR = 3;

/** The columns that tell whether an instruction is a canonicalization. */
export interface ValueColumns {
  readonly op: Uint16Array;
  readonly ty: Uint8Array;
  readonly a: Int32Array;
  readonly b: Int32Array;
  readonly c: Int32Array;
  readonly imm: Int32Array;
  readonly vectors: Uint8Array;
}

/** The 16 bytes of canonical NaNs in lanes of `shape`. */
function canonicalLanes(shape: number): Uint8Array {
  const words = shape === SHAPE.F64X2 ? [0, NAN64_HIGH, 0, NAN64_HIGH] : [NAN32, NAN32, NAN32, NAN32];
  return new Uint8Array(Uint32Array.from(words).buffer);
}

const LANES32 = canonicalLanes(SHAPE.F32X4);
const LANES64 = canonicalLanes(SHAPE.F64X2);

/**
 * The NaNs of operand b that instruction `i` makes canonical: SCALAR, NARROW_LANES or WIDE_LANES; 0 if it is not a
 * canonicalization.
 */
export function canonicalizedBy(f: ValueColumns, i: number): number {
  const o = f.op[i];
  if (o !== SELECT && o !== VBITSELECT) return 0;
  const value = f.b[i], test = f.c[i], canonical = f.a[i];
  if (f.op[canonical] !== CONST || f.a[test] !== value || f.b[test] !== value) return 0;
  if (o === SELECT) return f.op[test] === FNE && isNaNConstant(f, canonical) ? SCALAR : 0;
  if (f.op[test] !== VFNE) return 0;
  const isWide = f.imm[test] === SHAPE.F64X2;
  if (!isCanonicalVector(f, canonical, isWide)) return 0;
  return isWide ? WIDE_LANES : NARROW_LANES;
}

function isNaNConstant(f: ValueColumns, constant: number): boolean {
  const { ty, imm, c } = f;
  if (ty[constant] === TY.F32) return imm[constant] === NAN32;
  return ty[constant] === TY.F64 && imm[constant] === 0 && c[constant] === NAN64_HIGH;
}

function isCanonicalVector(f: ValueColumns, constant: number, isWide: boolean): boolean {
  const at = f.imm[constant] * 16;
  for (let k = 0; k < 16; k++) {
    if (f.vectors[at + k] !== (isWide ? LANES64[k] : LANES32[k])) return false;
  }
  return true;
}
