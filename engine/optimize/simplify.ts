/**
 * Rewrite rules of single values, by operation. In: an instruction whose operands are final. Out: an equal value that
 * exists or was made, or the instruction itself, possibly changed in place into a cheaper form.
 *
 * Every rule is exact for all operand values: integers wrap, floats keep every bit (so no rule touches an arithmetic
 * NaN), and a trap is dropped only where it cannot happen. The translator's builder has the same identities; here they
 * apply to operands that only GVN knows. Division by constants: divide.ts.
 */
import { EVAL_DONE, evalHi, evalLo, evaluate } from "../ir/eval.ts";
import type { IrFunction } from "../ir/function.ts";
import { commutes, DIVISION_CHECK, INVERSE, MIRROR, OP, OP_VALUE_MASK } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { divideByConstant } from "./divide.ts";
import type { Rewriting } from "./rewriting.ts";
import { significantBits } from "./value_range.ts";

const { CONST, ADD, SUB, MUL, AND, OR, XOR, SHL, SHR_S, SHR_U, EQ, NE, SELECT, EXTEND8_S, EXTEND16_S } = OP;

/** Offsets stay below 2 GiB, which selectors encode directly. */
const MAX_OFFSET = 0x7fffffff - 65536;
/** Rounds of rewriting one instruction in place. */
const ROUNDS = 6;

/** Whether `v` is a constant with these halves (the high half is 0 for 32-bit types). */
function isConstant(f: IrFunction, v: number, lo: number, hi: number): boolean {
  return f.op[v] === CONST && f.imm[v] === lo && (f.ty[v] === TY.I32 || f.c[v] === hi);
}

/** Whether `v` is the constant 0 of its integer type. */
function isZero(f: IrFunction, v: number): boolean {
  return isConstant(f, v, 0, 0);
}

/** Whether `v` is known to be 0 or 1. */
function isBoolean(f: IrFunction, v: number): boolean {
  return significantBits(f, v, 2) <= 1;
}

/** The exponent when integer constant `v` is a power of two, else −1. */
function exponentOf(f: IrFunction, v: number): number {
  const lo = f.imm[v], hi = f.ty[v] === TY.I32 ? 0 : f.c[v];
  if (hi === 0) return lo !== 0 && (lo & (lo - 1)) === 0 ? 31 - Math.clz32(lo) : -1;
  return lo === 0 && (hi & (hi - 1)) === 0 ? 63 - Math.clz32(hi) : -1;
}

/** Rewrites instruction `i` as an operation on `va` and `vb`; returns 0, which asks for another round. */
function become(f: IrFunction, i: number, op: number, va: number, vb = 0): number {
  f.op[i] = op;
  f.a[i] = va;
  f.b[i] = vb;
  f.c[i] = 0;
  f.imm[i] = 0;
  return 0;
}

/** Makes `va op vb`, unless there is no room. */
function combined(rewrite: Rewriting, op: number, ty: number, va: number, vb: number): number {
  return rewrite.room ? rewrite.make(op, ty, va, vb) : 0;
}

/** Simplifies instruction `i`; see the header. */
export function simplify(rewrite: Rewriting, i: number): number {
  const f = rewrite.f;
  for (let round = 0; round < ROUNDS; round++) {
    const op = f.op[i];
    if (op === CONST) return i;
    orderOperands(f, i, op);
    const o = f.op[i];
    if (f.op[f.a[i]] === CONST && OP_VALUE_MASK[o] !== 0) {
      const folded = fold(rewrite, i, o);
      if (folded !== 0) {
        rewrite.simplified++;
        return folded;
      }
    }
    const value = rules(rewrite, i, o);
    if (value === i) return i;
    rewrite.simplified++;
    if (value !== 0) return value;
  }
  return i;
}

/** Constants go right, other operands of comparisons and commutative operations by number. */
export function orderOperands(f: IrFunction, i: number, op: number): void {
  const a = f.a[i], b = f.b[i];
  const swapped = MIRROR[op];
  const isCommutative = commutes(f.keepsNans, op);
  if (!isCommutative && swapped === 0) return;
  const wrong = f.op[a] === CONST ? f.op[b] !== CONST : f.op[b] !== CONST && a > b;
  if (!wrong) return;
  f.a[i] = b;
  f.b[i] = a;
  if (!isCommutative) f.op[i] = swapped;
}

/** The value of instruction `i` when its operands are constants and the result is exact. */
function fold(rewrite: Rewriting, i: number, op: number): number {
  const { op: ops, ty, a, b, c, imm } = rewrite.f;
  const mask = OP_VALUE_MASK[op];
  const va = a[i], vb = b[i];
  if (mask === 7 || (mask === 3 && ops[vb] !== CONST)) return 0;
  const binary = mask === 3;
  const outcome = evaluate(
    op,
    ty[i],
    ty[va],
    imm[va],
    c[va],
    binary ? imm[vb] : 0,
    binary ? c[vb] : 0,
    imm[i],
  );
  if (outcome !== EVAL_DONE || !rewrite.room) return 0;
  const lo = evalLo, hi = ty[i] === TY.I32 || ty[i] === TY.F32 ? 0 : evalHi;
  return rewrite.constant(ty[i], lo, hi);
}

/** Applies the rules of `op` once: returns an equal value, `i` if no rule applies, 0 if it was rewritten in place. */
function rules(rewrite: Rewriting, i: number, op: number): number {
  switch (op) {
    case ADD:
      return addRules(rewrite, i);
    case SUB:
      return subtractRules(rewrite, i);
    case MUL:
      return multiplyRules(rewrite, i);
    case AND:
      return andRules(rewrite, i);
    case OR:
    case XOR:
      return orRules(rewrite, i, op);
    case SHL:
    case SHR_S:
    case SHR_U:
      return shiftRules(rewrite, i, op);
    case OP.ROTL:
    case OP.ROTR:
      return rotateRules(rewrite, i, op);
    case OP.DIV_S:
    case OP.DIV_U:
    case OP.REM_S:
    case OP.REM_U:
      return divideRules(rewrite, i);
    case EXTEND8_S:
    case EXTEND16_S:
    case OP.EXTEND32_S:
    case OP.EXTEND_S:
    case OP.EXTEND_U:
    case OP.WRAP:
      return extendRules(rewrite, i, op);
    case EQ:
    case NE:
      return equalRules(rewrite, i, op);
    case OP.LT_S:
    case OP.LT_U:
    case OP.GT_S:
    case OP.GT_U:
    case OP.LE_S:
    case OP.LE_U:
    case OP.GE_S:
    case OP.GE_U:
      return compareRules(rewrite, i, op);
    case SELECT:
      return selectRules(rewrite, i);
    case OP.FMUL:
    case OP.FDIV:
    case OP.FABS:
    case OP.FNEG:
    case OP.FCOPYSIGN:
    case OP.BITCAST:
      return floatRules(rewrite, i, op);
    default:
      return i;
  }
}

// ADD

function addRules(rewrite: Rewriting, i: number): number {
  const f = rewrite.f;
  const { op, ty, a, b } = f;
  const va = a[i], vb = b[i];
  if (isZero(f, vb)) return va;
  if (op[vb] === CONST) {
    if (op[va] === ADD && op[b[va]] === CONST) {
      const sum = combined(rewrite, ADD, ty[i], b[va], vb);
      return sum === 0 ? i : become(f, i, ADD, a[va], sum);
    }
    if (op[va] === SUB && op[a[va]] === CONST) {
      const sum = combined(rewrite, ADD, ty[i], a[va], vb);
      return sum === 0 ? i : become(f, i, SUB, sum, b[va]);
    }
    return i;
  }
  if (op[vb] === SUB && isZero(f, a[vb])) return become(f, i, SUB, va, b[vb]);
  if (op[va] === SUB && isZero(f, a[va])) return become(f, i, SUB, vb, b[va]);
  // (x − y) + y
  if (op[va] === SUB && b[va] === vb) return a[va];
  if (op[vb] === SUB && b[vb] === va) return a[vb];
  return i;
}

// SUB

function subtractRules(rewrite: Rewriting, i: number): number {
  const f = rewrite.f;
  const { op, ty, a, b, c, imm } = f;
  const va = a[i], vb = b[i];
  if (va === vb) return rewrite.room ? rewrite.constant(ty[i], 0, 0) : i;
  if (op[vb] === CONST) {
    if (isZero(f, vb)) return va;
    if (!rewrite.room) return i;
    const lo = -imm[vb] | 0;
    const negated = rewrite.constant(ty[i], lo, ty[i] === TY.I32 ? 0 : ~c[vb] + (lo === 0 ? 1 : 0) | 0);
    return become(f, i, ADD, va, negated);
  }
  if (op[vb] === SUB && isZero(f, a[vb])) return become(f, i, ADD, va, b[vb]);
  if (op[va] === ADD) {
    if (a[va] === vb) return b[va];
    if (b[va] === vb) return a[va];
  }
  if (op[va] === ADD && op[vb] === ADD && a[va] === a[vb]) return become(f, i, SUB, b[va], b[vb]);
  // x − (x − y)
  if (op[vb] === SUB && a[vb] === va) return b[vb];
  return i;
}

// MUL

function multiplyRules(rewrite: Rewriting, i: number): number {
  const f = rewrite.f;
  const { op, ty, a, b } = f;
  const va = a[i], vb = b[i];
  if (op[vb] !== CONST) return i;
  if (isZero(f, vb)) return vb;
  if (isConstant(f, vb, 1, 0)) return va;
  if (!rewrite.room) return i;
  const t = ty[i];
  if (isConstant(f, vb, -1, -1)) return become(f, i, SUB, rewrite.constant(t, 0, 0), va);
  const exponent = exponentOf(f, vb);
  if (exponent > 0) return become(f, i, SHL, va, rewrite.constant(t, exponent, 0));
  if (op[va] === MUL && op[b[va]] === CONST) return become(f, i, MUL, a[va], rewrite.make(MUL, t, b[va], vb));
  if (op[va] === SHL && op[b[va]] === CONST) return become(f, i, MUL, a[va], rewrite.make(SHL, t, vb, b[va]));
  return i;
}

// AND

function andRules(rewrite: Rewriting, i: number): number {
  const f = rewrite.f;
  const { op, ty, a, b, c, imm } = f;
  const va = a[i], vb = b[i];
  if (va === vb) return va;
  if (op[vb] !== CONST) return i;
  if (isZero(f, vb)) return vb;
  if (isConstant(f, vb, -1, -1)) return va;
  const lo = imm[vb], hi = ty[i] === TY.I32 ? 0 : c[vb];
  if (op[va] === AND && op[b[va]] === CONST) {
    const mask = combined(rewrite, AND, ty[i], b[va], vb);
    return mask === 0 ? i : become(f, i, AND, a[va], mask);
  }
  // A mask of low ones has no effect on a value that fits in it, and makes a sign extension to bits beyond it needless.
  if (hi === 0 ? (lo & (lo + 1)) === 0 : lo === -1 && (hi & (hi + 1)) === 0) {
    const ones = hi === 0 ? 32 - Math.clz32(lo) : 64 - Math.clz32(hi);
    if (significantBits(f, va) <= ones) return va;
    const kept = op[va] === EXTEND8_S ? 8 : op[va] === EXTEND16_S ? 16 : op[va] === OP.EXTEND32_S ? 32 : 0;
    if (kept >= ones) return become(f, i, AND, a[va], vb);
  }
  return i;
}

// OR, XOR

function orRules(rewrite: Rewriting, i: number, o: number): number {
  const f = rewrite.f;
  const { op, ty, a, b } = f;
  const va = a[i], vb = b[i];
  if (va === vb) return o === OR ? va : rewrite.room ? rewrite.constant(ty[i], 0, 0) : i;
  if (op[vb] !== CONST) return i;
  if (isZero(f, vb)) return va;
  if (o === OR && isConstant(f, vb, -1, -1)) return vb;
  if (op[va] === o && op[b[va]] === CONST) {
    const bits = combined(rewrite, o, ty[i], b[va], vb);
    return bits === 0 ? i : become(f, i, o, a[va], bits);
  }
  // The complement of a comparison.
  if (o === XOR && ty[i] === TY.I32 && isConstant(f, vb, 1, 0) && INVERSE[op[va]] !== 0) {
    return become(f, i, INVERSE[op[va]], a[va], b[va]);
  }
  return i;
}

// SHL, SHR_S, SHR_U

function shiftRules(rewrite: Rewriting, i: number, o: number): number {
  const f = rewrite.f;
  const { op, ty, a, b, imm } = f;
  const t = ty[i];
  const width = t === TY.I32 ? 32 : 64;
  const va = a[i];
  let vb = b[i];
  if (isZero(f, va)) return va;
  if (op[vb] !== CONST) {
    // The count is taken modulo the width by the operation.
    if (op[vb] === AND && op[b[vb]] === CONST && (imm[b[vb]] & (width - 1)) === width - 1) {
      return become(f, i, o, va, a[vb]);
    }
    return i;
  }
  const count = imm[vb] & (width - 1);
  if (count === 0) return va;
  if (!rewrite.room) return i;
  if (imm[vb] !== count) vb = b[i] = rewrite.constant(t, count, 0);
  const inner = op[va];
  if ((inner === SHL || inner === SHR_S || inner === SHR_U) && op[b[va]] === CONST) {
    const first = imm[b[va]] & (width - 1);
    if (inner === o) {
      if (first + count < width) return become(f, i, o, a[va], rewrite.constant(t, first + count, 0));
      return o === SHR_S ? become(f, i, o, a[va], rewrite.constant(t, width - 1, 0)) : rewrite.constant(t, 0, 0);
    }
    if (first === count) {
      if (o === SHL) {
        return become(f, i, AND, a[va], rewrite.make(SHL, t, rewrite.constant(t, -1, t === TY.I32 ? 0 : -1), vb));
      }
      if (o === SHR_U && inner === SHL) {
        return become(f, i, AND, a[va], rewrite.make(SHR_U, t, rewrite.constant(t, -1, t === TY.I32 ? 0 : -1), vb));
      }
      if (o === SHR_S && inner === SHL) {
        if (count === width - 8) return become(f, i, EXTEND8_S, a[va]);
        if (count === width - 16) return become(f, i, EXTEND16_S, a[va]);
        if (count === width - 32) return become(f, i, OP.EXTEND32_S, a[va]);
      }
    }
  }
  if (o === SHR_S && significantBits(f, va) < width) return become(f, i, SHR_U, va, vb);
  if (o === SHR_U && significantBits(f, va) <= count) return rewrite.constant(t, 0, 0);
  return i;
}

// ROTL, ROTR

function rotateRules(rewrite: Rewriting, i: number, o: number): number {
  const f = rewrite.f;
  const vb = f.b[i];
  if (f.op[vb] !== CONST) return i;
  const width = f.ty[i] === TY.I32 ? 32 : 64;
  const count = f.imm[vb] & (width - 1);
  if (count === 0) return f.a[i];
  if (o === OP.ROTL || !rewrite.room) return i;
  return become(f, i, OP.ROTL, f.a[i], rewrite.constant(f.ty[i], width - count, 0));
}

// DIV_S, DIV_U, REM_S, REM_U

function divideRules(rewrite: Rewriting, i: number): number {
  const f = rewrite.f;
  const { op, b, imm } = f;
  const vb = b[i];
  if ((imm[i] & DIVISION_CHECK.ZERO) !== 0 && rewrite.facts.isNonzero(vb)) imm[i] = imm[i] & ~DIVISION_CHECK.ZERO;
  if ((imm[i] & DIVISION_CHECK.OVERFLOW) !== 0) {
    const divisorFits = op[vb] === CONST
      ? !isConstant(f, vb, -1, -1)
      : significantBits(f, vb) < (f.ty[i] === TY.I32 ? 32 : 64);
    const dividendFits = significantBits(f, f.a[i]) < (f.ty[i] === TY.I32 ? 32 : 64);
    if (divisorFits || (dividendFits && op[i] === OP.DIV_S)) imm[i] = imm[i] & ~DIVISION_CHECK.OVERFLOW;
  }
  if (op[vb] !== CONST || isZero(f, vb) || !rewrite.room) return i;
  return divideByConstant(rewrite, i);
}

// EXTEND…, WRAP

function extendRules(rewrite: Rewriting, i: number, o: number): number {
  const f = rewrite.f;
  const { op, ty, a, b, imm } = f;
  const va = a[i];
  const inner = op[va];
  if (o === OP.WRAP) {
    if (inner === OP.EXTEND_S || inner === OP.EXTEND_U) return a[va];
    // Only the low half matters.
    if (inner === OP.EXTEND32_S) return become(f, i, OP.WRAP, a[va]);
    if (inner === AND && op[b[va]] === CONST && imm[b[va]] === -1) return become(f, i, OP.WRAP, a[va]);
    return narrowRules(rewrite, i);
  }
  if (o === OP.EXTEND_U) return inner === OP.WRAP && significantBits(f, a[va]) <= 32 ? a[va] : i;
  if (o === OP.EXTEND_S) return significantBits(f, va) < 32 ? become(f, i, OP.EXTEND_U, va) : i;
  const bits = o === EXTEND8_S ? 8 : o === EXTEND16_S ? 16 : 32;
  if (significantBits(f, va) < bits) return va;
  const source = inner === EXTEND8_S || inner === OP.LOAD8_S
    ? 8
    : inner === EXTEND16_S || inner === OP.LOAD16_S
    ? 16
    : inner === OP.EXTEND32_S || inner === OP.LOAD32_S || inner === OP.EXTEND_S
    ? 32
    : 64;
  if (source <= bits) return va;
  if (source < 64 && inner >= OP.EXTEND8_S && inner <= OP.EXTEND32_S) return become(f, i, o, a[va]);
  // A mask that keeps all bits of the extension's source.
  if (inner === AND && op[b[va]] === CONST) {
    const mask = bits === 32 ? -1 : (1 << bits) - 1;
    if ((imm[b[va]] & mask) === mask && ty[va] === ty[i]) return become(f, i, o, a[va]);
  }
  return i;
}

/**
 * The low half of a 64-bit sum, difference or bitwise operation, computed in 32 bits: it depends on the low halves of
 * the operands alone. Operands are extensions, whose low halves exist, or a constant; code of Go addresses memory by
 * such sums. A product stays, since its 64 bits are often used too. A result that fits 32 bits stays, because its zero
 * extension costs nothing.
 */
function narrowRules(rewrite: Rewriting, i: number): number {
  const f = rewrite.f;
  const { op, a, b, imm } = f;
  const wide = a[i];
  const inner = op[wide];
  const isSum = inner === ADD || inner === SUB;
  if (!isSum && inner !== AND && inner !== OR && inner !== XOR) return i;
  if (!rewrite.room || significantBits(f, wide) <= 32) return i;
  const va = a[wide], vb = b[wide];
  const hasConstant = op[vb] === CONST;
  if (!hasConstant && !isExtension(op[vb])) return i;
  if (!isExtension(op[va]) && !(isSum && hasConstant)) return i;
  const low = isExtension(op[va]) ? a[va] : rewrite.make(OP.WRAP, TY.I32, va);
  return become(f, i, inner, low, hasConstant ? rewrite.constant(TY.I32, imm[vb], 0) : a[vb]);
}

/** Whether operation `o` extends 32 bits to 64. */
function isExtension(o: number): boolean {
  return o === OP.EXTEND_S || o === OP.EXTEND_U;
}

// EQ, NE

function equalRules(rewrite: Rewriting, i: number, o: number): number {
  const f = rewrite.f;
  const { op, ty, a, b, c, imm } = f;
  const va = a[i], vb = b[i];
  const t = ty[va];
  if (va === vb) return rewrite.room ? rewrite.constant(TY.I32, o === EQ ? 1 : 0, 0) : i;
  if (op[vb] !== CONST) return i;
  if (!rewrite.room) return i;
  const known = rewrite.facts.constantOf(va);
  if (known !== 0) {
    const same = imm[known] === imm[vb] && (t === TY.I32 || c[known] === c[vb]);
    return rewrite.constant(TY.I32, same === (o === EQ) ? 1 : 0, 0);
  }
  if (t === TY.REF) return i;
  const inner = op[va];
  if (isZero(f, vb)) {
    if (rewrite.facts.isNonzero(va)) return rewrite.constant(TY.I32, o === EQ ? 0 : 1, 0);
    if (rewrite.facts.isZero(va)) return rewrite.constant(TY.I32, o === EQ ? 1 : 0, 0);
    if (o === NE && t === TY.I32 && isBoolean(f, va)) return va;
    if (o === EQ && INVERSE[inner] !== 0) return become(f, i, INVERSE[inner], a[va], b[va]);
    if (inner === XOR || inner === SUB) return become(f, i, o, a[va], b[va]);
    if (inner === OP.EXTEND_U || inner === OP.EXTEND_S) return become(f, i, o, a[va], rewrite.constant(TY.I32, 0, 0));
    return i;
  }
  if (isConstant(f, vb, 1, 0) && isBoolean(f, va)) {
    return become(f, i, o === EQ ? NE : EQ, va, rewrite.constant(t, 0, 0));
  }
  // The sum is often the next value of the parameter, which would have to outlive it.
  if (inner === ADD && op[b[va]] === CONST && !rewrite.isLoopParam(a[va])) {
    return become(f, i, o, a[va], rewrite.make(SUB, t, vb, b[va]));
  }
  if (inner === XOR && op[b[va]] === CONST) return become(f, i, o, a[va], rewrite.make(XOR, t, vb, b[va]));
  if (inner === OP.EXTEND_U && c[vb] === 0) return become(f, i, o, a[va], rewrite.constant(TY.I32, imm[vb], 0));
  if (inner === AND && b[va] === vb && exponentOf(f, vb) >= 0) {
    return become(f, i, o === EQ ? NE : EQ, va, rewrite.constant(t, 0, 0));
  }
  return beyond(f, va, vb) ? rewrite.constant(TY.I32, o === EQ ? 0 : 1, 0) : i;
}

/** Whether constant `limit` is greater (unsigned) than `v` can be. */
function beyond(f: IrFunction, v: number, limit: number): boolean {
  return significantBits(f, v) < significantBits(f, limit, 0);
}

// LT, GT, LE, GE

function compareRules(rewrite: Rewriting, i: number, o: number): number {
  const f = rewrite.f;
  const { op, ty, a, b } = f;
  const va = a[i], vb = b[i];
  if (!rewrite.room) return i;
  if (va === vb) {
    const equal = o === OP.LE_S || o === OP.LE_U || o === OP.GE_S || o === OP.GE_U;
    return rewrite.constant(TY.I32, equal ? 1 : 0, 0);
  }
  if (op[vb] !== CONST) return i;
  const t = ty[va];
  const width = t === TY.I32 ? 32 : 64;
  const signed = o === OP.LT_S || o === OP.GT_S || o === OP.LE_S || o === OP.GE_S;
  const bits = significantBits(f, va);
  if (signed) {
    if (bits >= width) return i;
    // The value is not negative: a negative constant decides the comparison, any other makes it an unsigned one.
    const negative = (t === TY.I32 ? f.imm[vb] : f.c[vb]) < 0;
    if (negative) return rewrite.constant(TY.I32, o === OP.GT_S || o === OP.GE_S ? 1 : 0, 0);
    return become(f, i, o + (OP.LT_U - OP.LT_S), va, vb);
  }
  if (isZero(f, vb)) {
    if (o === OP.LT_U) return rewrite.constant(TY.I32, 0, 0);
    if (o === OP.GE_U) return rewrite.constant(TY.I32, 1, 0);
    return become(f, i, o === OP.GT_U ? NE : EQ, va, vb);
  }
  if (isConstant(f, vb, -1, -1)) {
    if (o === OP.GT_U) return rewrite.constant(TY.I32, 0, 0);
    if (o === OP.LE_U) return rewrite.constant(TY.I32, 1, 0);
    return become(f, i, o === OP.LT_U ? NE : EQ, va, vb);
  }
  if (beyond(f, va, vb)) return rewrite.constant(TY.I32, o === OP.LT_U || o === OP.LE_U ? 1 : 0, 0);
  if (isConstant(f, vb, 1, 0) && (o === OP.LT_U || o === OP.GE_U)) {
    return become(f, i, o === OP.LT_U ? EQ : NE, va, rewrite.constant(t, 0, 0));
  }
  return i;
}

// SELECT

function selectRules(rewrite: Rewriting, i: number): number {
  const f = rewrite.f;
  const { op, ty, a, b, c } = f;
  const va = a[i], vb = b[i];
  if (va === vb) return va;
  const truth = rewrite.facts.truth(c[i]);
  if (truth >= 0) return truth > 0 ? va : vb;
  const root = rewrite.facts.conditionRoot(c[i], true);
  if (root < 0) {
    a[i] = vb;
    b[i] = va;
    c[i] = -root;
    return 0;
  }
  if (root !== c[i]) {
    c[i] = root;
    return 0;
  }
  if (ty[i] !== TY.I32 || !rewrite.room) return i;
  if (isConstant(f, va, 1, 0) && isZero(f, vb)) {
    if (isBoolean(f, root)) return root;
    return become(f, i, NE, root, vb);
  }
  if (isZero(f, va) && isConstant(f, vb, 1, 0)) return become(f, i, EQ, root, va);
  // x ≠ y ? x : y, and x = y ? y : x
  if (
    (op[root] === NE || op[root] === EQ) && ((a[root] === va && b[root] === vb) || (a[root] === vb && b[root] === va))
  ) {
    return op[root] === NE ? va : vb;
  }
  return i;
}

// Floats: only rules that are exact in every bit.

function floatRules(rewrite: Rewriting, i: number, o: number): number {
  const f = rewrite.f;
  const { op, ty, a, b, c, imm } = f;
  const va = a[i];
  const inner = op[va];
  switch (o) {
    case OP.FNEG:
      return inner === OP.FNEG ? a[va] : i;
    case OP.FABS:
      if (inner === OP.FABS) return va;
      return inner === OP.FNEG || inner === OP.FCOPYSIGN ? become(f, i, OP.FABS, a[va]) : i;
    case OP.FCOPYSIGN: {
      const vb = b[i];
      if (va === vb) return va;
      if (op[vb] !== CONST || !rewrite.room) return i;
      const negative = (ty[i] === TY.F32 ? imm[vb] : c[vb]) < 0;
      if (!negative) return become(f, i, OP.FABS, va);
      return become(f, i, OP.FNEG, rewrite.make(OP.FABS, ty[i], va));
    }
    case OP.BITCAST:
      return inner === OP.BITCAST && ty[a[va]] === ty[i] ? a[va] : i;
  }
  // FMUL by 2 is FADD; FDIV by a power of two is FMUL by its inverse when that is a normal number.
  const vb = b[i];
  if (op[vb] !== CONST || !rewrite.room) return i;
  if (ty[i] === TY.F32) {
    const bits = imm[vb];
    const exponent = (bits >>> 23) & 0xff;
    if ((bits & 0x7fffff) !== 0) return i;
    if (o === OP.FMUL) return bits === 0x40000000 ? become(f, i, OP.FADD, va, va) : i;
    if (exponent === 0 || exponent >= 254) return i;
    return become(f, i, OP.FMUL, va, rewrite.constant(TY.F32, (bits & -0x80000000) | ((254 - exponent) << 23), 0));
  }
  const high = c[vb];
  const exponent = (high >>> 20) & 0x7ff;
  if (imm[vb] !== 0 || (high & 0xfffff) !== 0) return i;
  if (o === OP.FMUL) return high === 0x40000000 ? become(f, i, OP.FADD, va, va) : i;
  if (exponent === 0 || exponent >= 2046) return i;
  return become(f, i, OP.FMUL, va, rewrite.constant(TY.F64, 0, (high & -0x80000000) | ((2046 - exponent) << 20)));
}

// Addresses of loads, stores and bounds checks

/**
 * Moves a constant that is added to the address into the static offset, where the 32-bit sum cannot wrap: the effective
 * address is then the same number. The decision depends on address and offset alone, so a check and its access agree.
 */
export function foldAddress(rewrite: Rewriting, i: number): void {
  const f = rewrite.f;
  const { op, ty, a, b, imm } = f;
  const va = a[i];
  if (op[va] !== ADD || ty[va] !== TY.I32 || op[b[va]] !== CONST) return;
  const added = imm[b[va]];
  if (added < 0 || imm[i] < 0 || imm[i] > MAX_OFFSET - added) return;
  if (significantBits(f, a[va]) >= 32) return;
  a[i] = a[va];
  imm[i] = imm[i] + added;
}
