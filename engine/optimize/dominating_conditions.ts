/**
 * Dominating conditions: facts about values that dominating branches, checks and divisions have established: a value is
 * zero, is not zero, or equals a constant. In: conditions, as GVN passes them. Out: answers for the current block of
 * GVN.
 *
 * One fact is kept per value, with the block from which on it holds: it counts in the blocks that this block dominates.
 * A fact is about an SSA value and so never becomes wrong, only out of scope.
 */
import type { IrFunction } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import type { ControlFlow } from "./cfg.ts";

const { CONST, EQ, NE, AND, OR } = OP;

/** Kinds of facts; a positive kind is the id of the constant that the value equals. */
const ZERO = -1, NONZERO = -2;

export class DominatingConditions {
  /** The current block. */
  block = 0;
  #f!: IrFunction;
  #flow!: ControlFlow;
  /** By value: block from which on the fact holds, plus one; 0 for none. */
  #since: Int32Array = new Int32Array(1024);
  #kind: Int32Array = new Int32Array(1024);

  /** Forgets all facts; `limit` bounds the number of values. */
  prepare(f: IrFunction, flow: ControlFlow, limit: number): void {
    this.#f = f;
    this.#flow = flow;
    if (limit > this.#since.length) {
      this.#since = new Int32Array(limit + (limit >> 1));
      this.#kind = new Int32Array(limit + (limit >> 1));
    } else this.#since.fill(0, 0, limit);
  }

  /** ZERO, NONZERO, the id of a constant, or 0 if nothing is known here. */
  #known(v: number): number {
    const since = this.#since[v];
    if (since === 0 || !this.#flow.dominates(since - 1, this.block)) return 0;
    return this.#kind[v];
  }

  #learn(v: number, kind: number): void {
    const known = this.#known(v);
    if (known > 0 || known === ZERO || known === kind) return;
    this.#since[v] = this.block + 1;
    this.#kind[v] = kind;
  }

  /** From here on `v` (an integer) is not zero. */
  learnNonzero(v: number): void {
    if (this.#f.op[v] !== CONST) this.#learn(v, NONZERO);
  }

  /** From here on `v` equals constant `id`. */
  learnEqual(v: number, id: number): void {
    if (this.#f.op[v] !== CONST) this.#learn(v, id);
  }

  /** From here on condition `v` is not zero (`truth`) or zero. */
  learnCondition(v: number, truth: boolean): void {
    for (let step = 0; step < 4; step++) {
      const { op, a, b } = this.#f;
      const o = op[v];
      if (o === CONST) return;
      this.#learn(v, truth ? NONZERO : ZERO);
      if (o === EQ || o === NE) {
        if (op[b[v]] !== CONST) return;
        const equal = (o === EQ) === truth;
        if (equal) this.learnEqual(a[v], b[v]);
        else if (this.#isZero(b[v])) this.learnNonzero(a[v]);
        return;
      }
      if ((o === AND && truth) || (o === OR && !truth)) {
        this.#learn(b[v], truth ? NONZERO : ZERO);
        v = a[v];
        continue;
      }
      return;
    }
  }

  #isZero(v: number): boolean {
    const { op, ty, c, imm } = this.#f;
    return op[v] === CONST && imm[v] === 0 && (ty[v] === TY.I32 || ty[v] === TY.REF || c[v] === 0);
  }

  /** 1 if `v`, an i32, is known to be nonzero, 0 if it is known to be zero, otherwise −1. */
  truth(v: number): number {
    const { op, imm } = this.#f;
    if (op[v] === CONST) return imm[v] === 0 ? 0 : 1;
    const known = this.#known(v);
    if (known === ZERO) return 0;
    if (known === NONZERO) return 1;
    if (known > 0) return imm[known] === 0 ? 0 : 1;
    return -1;
  }

  /** The constant that `v` is or is known to equal here, or 0. */
  constantOf(v: number): number {
    if (this.#f.op[v] === CONST) return v;
    const known = this.#known(v);
    return known > 0 ? known : 0;
  }

  /** Whether `v`, an integer of either width, is known not to be zero here. */
  isNonzero(v: number): boolean {
    if (this.#f.op[v] === CONST) return !this.#isZero(v);
    const known = this.#known(v);
    return known === NONZERO || (known > 0 && !this.#isZero(known));
  }

  /** Whether `v` is known to be zero here. */
  isZero(v: number): boolean {
    if (this.#f.op[v] === CONST) return this.#isZero(v);
    const known = this.#known(v);
    return known === ZERO || (known > 0 && this.#isZero(known));
  }

  /**
   * The i32 that decides condition `v`: comparisons with zero are peeled off. With `negate`, a negative result is the
   * complement: the condition holds where that value is zero.
   */
  conditionRoot(v: number, negate: boolean): number {
    const { op, ty, a, b } = this.#f;
    let negated = false;
    for (let step = 0; step < 8; step++) {
      const o = op[v];
      if ((o !== EQ && o !== NE) || ty[a[v]] !== TY.I32 || !this.#isZero(b[v])) break;
      if (o === EQ) {
        if (!negate) break;
        negated = !negated;
      }
      v = a[v];
    }
    return negated ? -v : v;
  }
}
