/**
 * Appends instructions to the open block of an IrFunction and simplifies them on the way: constants are folded
 * (ir/eval.ts), identities and redundant masks vanish, multiplications and divisions by powers of two become shifts,
 * comparisons with zero are inverted, and a pure operation that the same extended block already contains is not emitted
 * again.
 *
 * In: operations in program order. Out: instructions in the columns and in `sched`; the ids come in program order, so
 * an id of the open extended block is one that is ≥ the first id of that block. The table of common subexpressions
 * therefore needs no clearing: an entry counts only if its columns still match the operation.
 *
 * Every rule is exact for all bit patterns, and none removes a trap.
 */
import { EVAL_DONE, evalHi, evalLo, evaluate } from "./eval.ts";
import type { IrFunction } from "./function.ts";
import { DIVISION_CHECK, FLAG, INVERSE, MIRROR, OP, OP_FLAGS } from "./ops.ts";
import { TY } from "./types.ts";

const { CONST, ADD, SUB, MUL, AND, OR, XOR, SHL, SHR_S, SHR_U, ROTL, ROTR, DIV_S, DIV_U, REM_S, REM_U } = OP;
const { EXTEND8_S, EXTEND16_S, EXTEND32_S, EXTEND_S, EXTEND_U, WRAP, SELECT, BITCAST } = OP;
const { EQ, NE, LT_S, LT_U, GT_S, GT_U, LE_S, LE_U, GE_S, GE_U, FEQ, FGE } = OP;
const { LOAD8_S, LOAD8_U, LOAD16_S, LOAD16_U, LOAD32_S, LOAD32_U } = OP;
const { I32, I64, F32 } = TY;

/** Whether `op` gives 0 or 1. */
function isComparison(op: number): boolean {
  return (op >= EQ && op <= GE_U) || (op >= FEQ && op <= FGE);
}

const BUCKETS = 1024;

export class Builder {
  f: IrFunction;
  /** Position and inline site that instructions with effects get; with `marksPure`, all. */
  pos = 0;
  site = 0;
  marksPure = false;
  /** The open block, −1 when there is none. */
  block = -1;
  /** Loop depth of blocks that are opened. */
  depth = 0;
  /** Ids from here on are in the open extended block. */
  #first = 0;
  readonly #buckets: Int32Array = new Int32Array(BUCKETS);

  constructor(f: IrFunction) {
    this.f = f;
  }

  /** Begins a function: nothing is open. */
  reset(f: IrFunction): void {
    this.f = f;
    this.pos = 0;
    this.site = 0;
    this.block = -1;
    this.depth = 0;
    this.#first = f.count;
  }

  /** Opens the next block. `extended`: its only predecessor is the block before it, whose values stay usable. */
  openBlock(flags: number, extended: boolean): number {
    const f = this.f;
    const k = f.addBlock(flags, this.depth);
    f.blockStart[k] = f.schedCount;
    this.block = k;
    if (!extended) this.#first = f.count;
    return k;
  }

  /** Ends the open block after its last instruction. */
  closeBlock(): void {
    this.f.blockEnd[this.block] = this.f.schedCount;
    this.block = -1;
  }

  /** Takes back the jump that ended block `k`, the newest, and its edge, the newest: the block is open again. */
  reopenBlock(k: number): void {
    const f = this.f;
    f.schedCount--;
    f.edgeCount--;
    this.block = k;
  }

  /** Adds a parameter to the open block, which has only parameters so far. */
  param(ty: number): number {
    const f = this.f;
    const k = this.block;
    const id = f.append(OP.PARAM, ty, 0, 0, 0, f.blockParams[k]);
    f.blockParams[k] = f.blockParams[k] + 1;
    f.sched[f.schedCount++] = id;
    return id;
  }

  /** Appends an instruction unchanged, with position and site. */
  emit(op: number, ty: number, a: number, b: number, c: number, imm: number): number {
    const f = this.f;
    const id = f.append(op, ty, a, b, c, imm);
    f.pos[id] = this.pos;
    f.site[id] = this.site;
    f.sched[f.schedCount++] = id;
    return id;
  }

  /** Appends a pure instruction unless the extended block has it already. */
  pure(op: number, ty: number, a: number, b: number, c: number, imm: number): number {
    const f = this.f;
    let hash = Math.imul(a, 0x9e3779b1) + Math.imul(b, 0x85ebca6b) + Math.imul(imm, 0x27d4eb2f) + (op << 3) + c | 0;
    hash = (hash ^ (hash >>> 15)) & (BUCKETS - 1);
    const found = this.#buckets[hash];
    if (
      found >= this.#first && found < f.count && f.op[found] === op && f.a[found] === a && f.b[found] === b &&
      f.c[found] === c && f.imm[found] === imm && f.ty[found] === ty
    ) return found;
    const id = f.append(op, ty, a, b, c, imm);
    if (this.marksPure) this.#mark(id);
    f.sched[f.schedCount++] = id;
    this.#buckets[hash] = id;
    return id;
  }

  #mark(id: number): void {
    this.f.pos[id] = this.pos;
    this.f.site[id] = this.site;
  }

  /** An i32 constant. */
  i32(value: number): number {
    return this.pure(CONST, I32, 0, 0, 0, value | 0);
  }

  /** An i64 constant of two halves. */
  i64(lo: number, hi: number): number {
    return this.pure(CONST, I64, 0, 0, hi | 0, lo | 0);
  }

  /** A constant of any type but v128. */
  constant(ty: number, lo: number, hi: number): number {
    return this.pure(CONST, ty, 0, 0, ty === I32 || ty === F32 ? 0 : hi | 0, lo | 0);
  }

  /** Whether `v` is a constant. */
  isConst(v: number): boolean {
    return this.f.op[v] === CONST;
  }

  /** Whether `v` is the constant 0 of its type (for floats: +0). */
  isZero(v: number): boolean {
    const f = this.f;
    return f.op[v] === CONST && f.imm[v] === 0 && f.c[v] === 0;
  }

  /** A pure or trapping operation of one operand. */
  unary(op: number, ty: number, a: number): number {
    const f = this.f;
    const oa = f.op[a];
    if (oa === CONST) {
      const outcome = evaluate(op, ty, f.ty[a], f.imm[a], f.c[a], 0, 0);
      if (outcome === EVAL_DONE) return this.constant(ty, evalLo, evalHi);
    } else {
      const simpler = this.#simplerUnary(op, ty, a, oa);
      if (simpler !== 0) return simpler;
    }
    return (OP_FLAGS[op] & FLAG.TRAPS) !== 0 ? this.emit(op, ty, a, 0, 0, 0) : this.pure(op, ty, a, 0, 0, 0);
  }

  #simplerUnary(op: number, ty: number, a: number, oa: number): number {
    const f = this.f;
    switch (op) {
      case WRAP:
        if (oa === EXTEND_U || oa === EXTEND_S) return f.a[a];
        // Only the low half counts: skip operations that change only the high half.
        if (oa === EXTEND32_S) return this.unary(WRAP, I32, f.a[a]);
        if (oa === AND && this.#isConst64(f.b[a], -1, 0)) return this.unary(WRAP, I32, f.a[a]);
        break;
      case EXTEND8_S:
        if (oa === LOAD8_S || oa === EXTEND8_S) return a;
        break;
      case EXTEND16_S:
        if (oa === LOAD8_S || oa === LOAD16_S || oa === LOAD8_U || oa === EXTEND8_S || oa === EXTEND16_S) return a;
        break;
      case EXTEND32_S:
        if (oa === EXTEND_S || oa === LOAD32_S || oa === LOAD8_S || oa === LOAD16_S || oa === LOAD8_U) return a;
        if (oa === LOAD16_U || oa === EXTEND32_S || oa === EXTEND8_S || oa === EXTEND16_S) return a;
        if (oa === EXTEND_U) return this.unary(EXTEND_S, I64, f.a[a]);
        break;
      case BITCAST:
        if (oa === BITCAST && f.ty[f.a[a]] === ty) return f.a[a];
        break;
    }
    return 0;
  }

  #isConst64(v: number, lo: number, hi: number): boolean {
    const f = this.f;
    return f.op[v] === CONST && f.imm[v] === lo && f.c[v] === hi;
  }

  /** `i32.eqz` and `i64.eqz`. */
  eqz(a: number): number {
    return this.binary(EQ, I32, a, this.constant(this.f.ty[a], 0, 0));
  }

  /** A pure operation of two operands (not a division: see {@linkcode Builder.divide}). */
  binary(op: number, ty: number, a: number, b: number): number {
    const f = this.f;
    if (f.op[b] === CONST) {
      if (f.op[a] === CONST) {
        const outcome = evaluate(op, ty, f.ty[a], f.imm[a], f.c[a], f.imm[b], f.c[b]);
        if (outcome === EVAL_DONE) return this.constant(ty, evalLo, evalHi);
      } else if (op <= GE_U) {
        const simpler = this.#withConstant(op, ty, a, b);
        if (simpler !== 0) return simpler;
      }
    } else if (f.op[a] === CONST && op <= GE_U) {
      if ((OP_FLAGS[op] & FLAG.COMMUTES) !== 0) return this.binary(op, ty, b, a);
      if (op >= LT_S) return this.binary(MIRROR[op], ty, b, a);
      if (this.isZero(a) && op >= SHL && op <= ROTR) return a;
    } else if (a === b) {
      const simpler = this.#withItself(op, ty, a);
      if (simpler !== 0) return simpler;
    }
    return this.pure(op, ty, a, b, 0, 0);
  }

  #withItself(op: number, ty: number, a: number): number {
    switch (op) {
      case SUB:
      case XOR:
        return this.constant(ty, 0, 0);
      case AND:
      case OR:
        return a;
      case EQ:
      case LE_S:
      case LE_U:
      case GE_S:
      case GE_U:
        return this.i32(1);
      case NE:
      case LT_S:
      case LT_U:
      case GT_S:
      case GT_U:
        return this.i32(0);
    }
    return 0;
  }

  /** Integer operation with constant b; a is not constant. 0: nothing simpler. */
  #withConstant(op: number, ty: number, a: number, b: number): number {
    const f = this.f;
    const lo = f.imm[b];
    const hi = ty === I64 || (op >= EQ && f.ty[b] !== I32) ? f.c[b] : lo >> 31;
    const zero = lo === 0 && hi === 0;
    const ones = lo === -1 && hi === -1;
    switch (op) {
      case ADD:
        if (zero) return a;
        if (f.op[a] === ADD && f.op[f.b[a]] === CONST) {
          return this.binary(ADD, ty, f.a[a], this.binary(ADD, ty, f.b[a], b));
        }
        break;
      case SUB:
        evaluate(SUB, ty, ty, 0, 0, lo, hi);
        return this.binary(ADD, ty, a, this.constant(ty, evalLo, evalHi));
      case MUL:
        return this.#multiply(ty, a, b, lo, hi);
      case AND:
        if (zero) return b;
        if (ones) return a;
        if (f.op[a] === AND && f.op[f.b[a]] === CONST) {
          return this.binary(AND, ty, f.a[a], this.binary(AND, ty, f.b[a], b));
        }
        // The mask keeps every bit that can be set.
        if ((this.#possibleLow(a) & ~lo) === 0 && (this.#possibleHigh(a, ty) & ~hi) === 0) return a;
        break;
      case OR:
        if (zero) return a;
        if (ones) return b;
        break;
      case XOR:
        if (zero) return a;
        if (lo === 1 && ty === I32 && INVERSE[f.op[a]] !== 0) return this.#inverted(a);
        break;
      case SHL:
      case SHR_S:
      case SHR_U:
      case ROTL:
      case ROTR:
        return this.#shift(op, ty, a, lo & (ty === I64 ? 63 : 31));
      default:
        return this.#compareWithConstant(op, a, b, lo, zero);
    }
    return 0;
  }

  /** The comparison `a` negated. */
  #inverted(a: number): number {
    const f = this.f;
    return this.pure(INVERSE[f.op[a]], I32, f.a[a], f.b[a], 0, 0);
  }

  #multiply(ty: number, a: number, b: number, lo: number, hi: number): number {
    if (lo === 0 && (ty === I32 || hi === 0)) return b;
    const power = ty === I32 ? log2Exact(lo) : log2Exact64(lo, hi);
    if (power === 0) return a;
    if (power > 0) return this.binary(SHL, ty, a, this.constant(ty, power, 0));
    if (lo === -1 && hi === -1) return this.binary(SUB, ty, this.constant(ty, 0, 0), a);
    return 0;
  }

  #shift(op: number, ty: number, a: number, count: number): number {
    if (count === 0) return a;
    const f = this.f;
    const width = ty === I64 ? 64 : 32;
    if (f.op[a] === SHL && f.op[f.b[a]] === CONST && (f.imm[f.b[a]] & (width - 1)) === count) {
      const inner = f.a[a];
      const kept = width - count;
      if (op === SHR_S) {
        if (kept === 8) return this.unary(EXTEND8_S, ty, inner);
        if (kept === 16) return this.unary(EXTEND16_S, ty, inner);
        if (kept === 32 && ty === I64) return this.unary(EXTEND32_S, I64, inner);
      } else if (op === SHR_U && kept <= 32) {
        const mask = kept === 32 ? -1 : (1 << kept) - 1;
        return this.binary(AND, ty, inner, this.constant(ty, mask, 0));
      }
    }
    // Counts in range, so that selectors need no mask.
    return this.pure(op, ty, a, this.constant(ty, count, 0), 0, 0);
  }

  #compareWithConstant(op: number, a: number, b: number, lo: number, zero: boolean): number {
    const f = this.f;
    if (isComparison(f.op[a]) && f.ty[b] === I32 && (lo === 0 || lo === 1)) {
      if ((op === NE && lo === 0) || (op === EQ && lo === 1)) return a;
      if ((op === EQ || op === NE) && INVERSE[f.op[a]] !== 0) return this.#inverted(a);
    }
    if (zero) {
      if (op === LT_U) return this.i32(0);
      if (op === GE_U) return this.i32(1);
      if (op === GT_U) return this.binary(NE, I32, a, b);
      if (op === LE_U) return this.binary(EQ, I32, a, b);
      // An extension is zero exactly when its operand is.
      if ((op === EQ || op === NE) && (f.op[a] === EXTEND_U || f.op[a] === EXTEND_S)) {
        return this.binary(op, I32, f.a[a], this.i32(0));
      }
      if (op === EQ || op === NE) {
        // x − y = 0 exactly when x = y, also with wrap-around.
        if (f.op[a] === SUB || f.op[a] === XOR) return this.binary(op, I32, f.a[a], f.b[a]);
      }
    } else if (lo === 1 && (f.ty[b] === I32 || f.c[b] === 0)) {
      if (op === LT_U) return this.eqz(a);
      if (op === GE_U) return this.binary(NE, I32, a, this.constant(f.ty[a], 0, 0));
    }
    return 0;
  }

  /** Bits of the low word of `v` that may be set. */
  #possibleLow(v: number): number {
    const f = this.f;
    const op = f.op[v];
    if (isComparison(op)) return 1;
    if (op === LOAD8_U) return 0xff;
    if (op === LOAD16_U) return 0xffff;
    const b = f.b[v];
    if (op === AND && f.op[b] === CONST) return f.imm[b];
    if (op === SHR_U && f.op[b] === CONST && f.ty[v] === I32) return -1 >>> (f.imm[b] & 31);
    if (op === EXTEND_U) return this.#possibleLow(f.a[v]);
    return -1;
  }

  /** Bits of the high word of `v` that may be set; 0 for i32. */
  #possibleHigh(v: number, ty: number): number {
    if (ty === I32) return 0;
    const f = this.f;
    const op = f.op[v];
    if (op === LOAD8_U || op === LOAD16_U || op === LOAD32_U || op === EXTEND_U) return 0;
    const b = f.b[v];
    if (op === AND && f.op[b] === CONST) return f.c[b];
    if (op === SHR_U && f.op[b] === CONST) {
      const count = f.imm[b] & 63;
      return count >= 32 ? 0 : -1 >>> count;
    }
    return -1;
  }

  /** A division or remainder, with the traps that it can still have. */
  divide(op: number, ty: number, a: number, b: number): number {
    const f = this.f;
    const signed = op === DIV_S || op === REM_S;
    let imm = signed ? DIVISION_CHECK.ZERO | DIVISION_CHECK.OVERFLOW : DIVISION_CHECK.ZERO;
    const aConst = f.op[a] === CONST;
    if (f.op[b] === CONST) {
      const lo = f.imm[b];
      const hi = ty === I64 ? f.c[b] : lo >> 31;
      if (aConst && evaluate(op, ty, ty, f.imm[a], f.c[a], lo, f.c[b], imm) === EVAL_DONE) {
        return this.constant(ty, evalLo, evalHi);
      }
      if (lo !== 0 || hi !== 0) {
        imm &= ~DIVISION_CHECK.ZERO;
        if (lo !== -1 || hi !== -1) imm = 0;
        const simpler = this.#divideByConstant(op, ty, a, lo, hi);
        if (simpler !== 0) return simpler;
      } else {
        imm = DIVISION_CHECK.ZERO;
      }
    }
    // Only the least integer overflows.
    const least = f.imm[a] === (ty === I64 ? 0 : -0x80000000) && (ty === I32 || f.c[a] === -0x80000000);
    if (aConst && !least) imm &= ~DIVISION_CHECK.OVERFLOW;
    return imm === 0 ? this.pure(op, ty, a, b, 0, 0) : this.emit(op, ty, a, b, 0, imm);
  }

  #divideByConstant(op: number, ty: number, a: number, lo: number, hi: number): number {
    if (lo === 1 && (ty === I32 || hi === 0)) return op === DIV_S || op === DIV_U ? a : this.constant(ty, 0, 0);
    if (op === REM_S && lo === -1 && hi === -1) return this.constant(ty, 0, 0);
    const power = ty === I32 ? log2Exact(lo) : log2Exact64(lo, hi);
    if (power < 0) return 0;
    const width = ty === I64 ? 64 : 32;
    if (op === DIV_U) return this.binary(SHR_U, ty, a, this.constant(ty, power, 0));
    if (op === REM_U) {
      evaluate(SUB, ty, ty, lo, hi, 1, 0);
      return this.binary(AND, ty, a, this.constant(ty, evalLo, evalHi));
    }
    // As a signed divisor the highest power is negative.
    if (power === width - 1) return 0;
    // Rounding is towards zero: negative dividends get 2^power − 1 added first.
    const sign = this.binary(SHR_S, ty, a, this.constant(ty, width - 1, 0));
    const bias = this.binary(SHR_U, ty, sign, this.constant(ty, width - power, 0));
    const biased = this.binary(ADD, ty, a, bias);
    if (op === DIV_S) return this.binary(SHR_S, ty, biased, this.constant(ty, power, 0));
    evaluate(SUB, ty, ty, 0, 0, lo, hi);
    return this.binary(SUB, ty, a, this.binary(AND, ty, biased, this.constant(ty, evalLo, evalHi)));
  }

  /** `c` ≠ 0 ? `a` : `b`. */
  select(ty: number, a: number, b: number, c: number): number {
    const f = this.f;
    if (a === b) return a;
    if (f.op[c] === CONST) return f.imm[c] !== 0 ? a : b;
    // Conditions are compared with zero anyway.
    while ((f.op[c] === EQ || f.op[c] === NE) && f.ty[f.a[c]] === I32 && this.isZero(f.b[c])) {
      if (f.op[c] === EQ) {
        const other = a;
        a = b;
        b = other;
      }
      c = f.a[c];
    }
    if (ty === I32 && isComparison(f.op[c]) && f.op[a] === CONST && f.op[b] === CONST) {
      if (f.imm[a] === 1 && f.imm[b] === 0) return c;
      if (f.imm[a] === 0 && f.imm[b] === 1 && INVERSE[f.op[c]] !== 0) return this.#inverted(c);
    }
    return this.pure(SELECT, ty, a, b, c, 0);
  }

  /**
   * The value that a branch on `c` tests: strips comparisons with zero. Returns −value if the branch must be taken when
   * the value is zero.
   */
  condition(c: number): number {
    const f = this.f;
    let sign = 1;
    while ((f.op[c] === EQ || f.op[c] === NE) && f.ty[f.a[c]] === I32 && this.isZero(f.b[c])) {
      if (f.op[c] === EQ) sign = -sign;
      c = f.a[c];
    }
    return sign * c;
  }

  /** Traps with `code` when `c` (i32) is not zero. */
  trapIf(c: number, code: number): void {
    const f = this.f;
    if (this.isZero(c)) return;
    if (f.op[c] === NE && f.ty[f.a[c]] === I32 && this.isZero(f.b[c])) c = f.a[c];
    this.emit(OP.TRAP_IF, TY.NONE, c, 0, 0, code);
  }
}

/** k when `value`, taken as unsigned, is 2^k; else −1. */
function log2Exact(value: number): number {
  return value !== 0 && (value & (value - 1)) === 0 ? 31 - Math.clz32(value) : -1;
}

function log2Exact64(lo: number, hi: number): number {
  if (hi === 0) return log2Exact(lo);
  const power = lo === 0 ? log2Exact(hi) : -1;
  return power < 0 ? -1 : power + 32;
}
