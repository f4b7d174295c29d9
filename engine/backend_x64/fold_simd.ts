/**
 * Memory operands of vector operations. 16-byte operands need the VEX encoding, since addresses of WebAssembly are not
 * aligned; scalars and halves do not. The instruction must read exactly the bytes of the load.
 */
import { commutes, OP } from "../ir/ops.ts";
import { SHAPE, TY } from "../ir/types.ts";
import { fold } from "../codegen/folding.ts";
import { canMoveTo, foldLoad } from "./fold_loads.ts";
import { FOLD, type X64Lowering } from "./lowering_context.ts";
import { BINARY_ROW, EXCHANGED, invertedComparison, readsHalf, UNARY_ROW } from "./vector_rows.ts";

/** Folds an unsigned load of a narrow lane into `id`. */
function foldNarrow(s: X64Lowering, load: number, id: number, op: number): void {
  if (s.op[load] !== op || s.uses[load] !== 1 || s.folded[load] !== 0 || !canMoveTo(s, load, id)) return;
  fold(s, load, id, FOLD.ONCE);
}

/** Folds a scalar of a lane of `shape`. */
function foldLane(s: X64Lowering, scalar: number, id: number, shape: number): void {
  if (shape === SHAPE.I8X16) foldNarrow(s, scalar, id, OP.LOAD8_U);
  else if (shape === SHAPE.I16X8) foldNarrow(s, scalar, id, OP.LOAD16_U);
  else foldLoad(s, scalar, id, s.ty[scalar]);
}

/** Folds `mask` into `id`, which can use its inverse as well, if the hardware computes that inverse. */
function foldInverse(s: X64Lowering, mask: number, id: number): boolean {
  if (s.uses[mask] !== 1 || s.blockOf[mask] !== s.blockOf[id] || s.folded[mask] !== 0) return false;
  if (s.op[mask] !== OP.VNOT && invertedComparison(s.op[mask], s.imm[mask] & 0xff) === 0) return false;
  fold(s, mask, id, FOLD.ONCE);
  return true;
}

/** Folds the operands of vector operation `id`. */
export function foldVector(s: X64Lowering, id: number): void {
  const { op, a, b, imm } = s;
  const o = op[id];
  const shape = imm[id] & 0xff;
  switch (o) {
    case OP.VSPLAT:
      if (s.avx2 || shape === SHAPE.I32X4 || shape === SHAPE.I64X2 || shape === SHAPE.F64X2) {
        foldLane(s, a[id], id, shape);
      } else if (s.avx && shape === SHAPE.F32X4) foldLoad(s, a[id], id, TY.F32);
      return;
    case OP.VFROM_SCALAR:
      foldLoad(s, a[id], id, s.ty[a[id]]);
      return;
    case OP.VREPLACE:
      if (shape !== SHAPE.F64X2) foldLane(s, b[id], id, shape);
      return;
    case OP.VSHUFFLE:
      return;
    case OP.VBITSELECT:
      foldInverse(s, s.c[id], id);
      return;
    case OP.VAND:
      if (foldInverse(s, b[id], id)) {
        if (s.avx) foldLoad(s, a[id], id, TY.V128);
        return;
      }
      if (foldInverse(s, a[id], id)) {
        if (s.avx) foldLoad(s, b[id], id, TY.V128);
        return;
      }
      break;
    case OP.VANDNOT:
      if (foldInverse(s, b[id], id)) return;
  }
  const unary = UNARY_ROW[o * 8 + shape];
  if (unary !== 0) {
    if (!readsHalf(unary)) {
      if (s.avx) foldLoad(s, a[id], id, TY.V128);
      return;
    }
    const low = a[id];
    if (op[low] !== OP.VFROM_SCALAR || s.uses[low] !== 1 || s.folded[low] !== 0 || s.blockOf[low] !== s.blockOf[id]) {
      return;
    }
    if (s.ty[a[low]] === TY.F64 && foldLoad(s, a[low], id, TY.F64)) fold(s, low, id, FOLD.ONCE);
    return;
  }
  if (!s.avx || BINARY_ROW[o * 8 + shape] === 0) return;
  const last = EXCHANGED[o] === 1 ? a[id] : b[id];
  const first = EXCHANGED[o] === 1 ? b[id] : a[id];
  if (foldLoad(s, last, id, TY.V128)) return;
  if (commutes(s.f.keepsNans, o)) foldLoad(s, first, id, TY.V128);
}

/** Folds a lane into the store of it. */
export function foldStoredLane(s: X64Lowering, store: number): void {
  const value = s.b[store];
  if (s.op[value] !== OP.VEXTRACT_U || s.uses[value] !== 1 || s.blockOf[value] !== s.blockOf[store]) return;
  if (s.folded[value] !== 0) return;
  const shape = s.imm[value] & 0xff;
  const o = s.op[store];
  const fits = shape === SHAPE.I8X16 ? o === OP.STORE8 : shape === SHAPE.I16X8 ? o === OP.STORE16 : o === OP.STORE;
  if (fits) fold(s, value, store, FOLD.ONCE);
}
