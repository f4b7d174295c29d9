/**
 * Conditions of loop versioning: tests in front of a loop whose success permits its copy without checks
 * (loop_versioning.ts). In: a loop, the test that bounds its iteration count, its groups of accesses. Out: conditions,
 * each with the instructions that it takes, in order; constants are folded.
 *
 * All sums and products are 64-bit and cannot overflow: steps, distances and offsets are bounded
 * (induction_variables.ts), counts and 64-bit addresses by conditions. An address that wraps is therefore out of bounds
 * here.
 */
import { CONTEXT, MEMORY } from "../abi/context_layout.ts";
import { type f64, highWord, lowWord } from "../base/numbers.ts";
import { EVAL_DONE, evalHi, evalLo, evaluate } from "../ir/eval.ts";
import type { IrFunction } from "../ir/function.ts";
import { CLASS_SIZES, REGION, region } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import type { Group, InductionVariables, Test } from "./induction_variables.ts";

const { ADD, AND, CONST, DIV_U, EQ, EXTEND_S, EXTEND_U, LOAD, MUL, NE, PARAM, SHR_U, SUB } = OP;
const { LT_S, LT_U, GT_S, GT_U, LE_S, LE_U, GE_S, GE_U } = OP;
/** Fewest iterations, if known, for which the tests pay off. */
const FEWEST_ROUNDS = 6;
/** Loops with a 64-bit count are versioned only up to so many iterations. */
const MAX_ROUNDS: f64 = 2 ** 40;
const TWO31: f64 = 2 ** 31, TWO32: f64 = 2 ** 32;

/** A condition, an i32 that is not zero where it holds, and the instructions in front of it that are new. */
export interface Condition {
  readonly list: number[];
  readonly condition: number;
}

/** The conditions for the loop that `induction` has selected; edge `entry` enters it. */
export class VersioningConditions {
  readonly tests: Condition[] = [];
  /** Whether the copy can never run, or does not pay. */
  refused = false;
  readonly #f: IrFunction;
  readonly #induction: InductionVariables;
  readonly #entry: number;
  #list: number[] = [];
  /** By value of the loop: its value in the first iteration. */
  readonly #first = new Map<number, number>();
  /** The values made for the tests. */
  readonly #made: number[] = [];

  constructor(f: IrFunction, induction: InductionVariables, entry: number) {
    this.#f = f;
    this.#induction = induction;
    this.#entry = entry;
  }

  /** Appends an operation to the tests, or finds its value. */
  #make(op: number, ty: number, a: number, b = 0, c = 0, imm = 0): number {
    const f = this.#f;
    if (op !== CONST && op !== LOAD && f.op[a] === CONST && (b === 0 || f.op[b] === CONST)) {
      const done = evaluate(op, ty, f.ty[a], f.imm[a], f.c[a], b === 0 ? 0 : f.imm[b], b === 0 ? 0 : f.c[b]);
      if (done === EVAL_DONE) return this.#constant(ty, evalLo, ty === TY.I64 ? evalHi : 0);
    }
    if (op === ADD && f.op[a] === CONST) return this.#make(ADD, ty, b, a);
    if (b !== 0 && f.op[b] === CONST) {
      if (op === SUB) return this.#make(ADD, ty, a, this.#make(SUB, ty, this.#constant(ty, 0, 0), b));
      if (op === ADD && f.op[a] === ADD && f.op[f.b[a]] === CONST) {
        return this.#make(ADD, ty, f.a[a], this.#make(ADD, ty, f.b[a], b));
      }
      if (op === MUL && f.imm[b] === 1 && f.c[b] === 0) return a;
    }
    const zero = b !== 0 && f.op[b] === CONST && f.imm[b] === 0 && f.c[b] === 0;
    if (zero && (op === ADD || op === SHR_U)) return a;
    for (const v of this.#made) {
      if (
        f.op[v] === op && f.ty[v] === ty && f.a[v] === a && f.b[v] === b && f.c[v] === c && f.imm[v] === imm
      ) return v;
    }
    const value = f.append(op, ty, a, b, c, imm);
    this.#made.push(value);
    this.#list.push(value);
    return value;
  }

  #constant(ty: number, lo: number, hi: number): number {
    return this.#make(CONST, ty, 0, 0, hi, lo);
  }

  /** An i64 of a whole number below 2^53. */
  #number(n: f64): number {
    return this.#constant(TY.I64, lowWord(n), highWord(n));
  }

  /** Requires that comparison `op` of x and y holds. */
  #demand(op: number, x: number, y: number): void {
    const condition = this.#make(op, TY.I32, x, y);
    if (this.#f.op[condition] === CONST) {
      if (this.#f.imm[condition] === 0) this.refused = true;
      return;
    }
    this.tests.push({ list: this.#list, condition });
    this.#list = [];
  }

  /** The affine value `v` in the first iteration. */
  #atFirst(v: number): number {
    const f = this.#f, { op, ty, a, b, c, imm } = f;
    if (op[v] === CONST) return this.#constant(ty[v], imm[v], c[v]);
    if (!this.#induction.defined(v)) return v;
    if (this.#first.has(v)) return this.#first.get(v)!;
    let value = 0;
    if (op[v] === PARAM) value = f.pool[f.edgeArgs[this.#entry] + imm[v]];
    else {
      const x = this.#atFirst(a[v]);
      value = this.#make(op[v], ty[v], x, this.#atFirst(b[v]));
    }
    this.#first.set(v, value);
    return value;
  }

  #wide(v: number): number {
    return this.#f.ty[v] === TY.I64 ? v : this.#make(EXTEND_U, TY.I64, v);
  }

  /** Makes the conditions under which all accesses of `groups` are in bounds. Refuses a loop known to be short. */
  make(test: Test, groups: readonly Group[]): void {
    const last = this.#lastRound(test);
    const f = this.#f;
    if (f.op[last] === CONST && f.c[last] === 0 && f.imm[last] < FEWEST_ROUNDS) this.refused = true;
    // An access before the test is executed once more than the test succeeds.
    const beyond = groups.some((g) => !g.tested) ? this.#make(ADD, TY.I64, last, this.#number(1)) : last;
    for (const v of this.#induction.extensions) {
      this.#demandExtension(v, this.#make(ADD, TY.I64, last, this.#number(1)));
    }
    for (const group of groups) this.#demandGroup(group, group.tested ? last : beyond);
  }

  /** Requires that the operand of extension `v` has not left its range after `rounds` iterations. */
  #demandExtension(v: number, rounds: number): void {
    const change = this.#make(MUL, TY.I64, rounds, this.#number(this.#induction.step(v)));
    let value = this.#make(ADD, TY.I64, this.#atFirst(v), change);
    if (this.#f.op[v] === EXTEND_S) value = this.#make(ADD, TY.I64, value, this.#number(TWO31));
    this.#demand(LT_U, value, this.#number(TWO32));
  }

  /**
   * The number of the last round, from 0, in which `test` holds, as i64; −1 if it fails in the first. Adds the
   * conditions under which that number is exact.
   */
  #lastRound(test: Test): number {
    const { compare, x, y, step } = test;
    const ty = this.#f.ty[x];
    const from = this.#atFirst(x);
    const to = y === 0 ? this.#constant(ty, 0, 0) : this.#atFirst(y);
    const size = lowWord(Math.abs(step)), shift = (size & (size - 1)) === 0 ? 31 - Math.clz32(size) : -1;
    const strict = compare === LT_S || compare === LT_U || compare === GT_S || compare === GT_U;
    if (compare !== NE) {
      this.#demand(compare, from, to);
      if (!strict || size > 1) this.#demandRoom(compare, ty, to, size - (strict ? 1 : 0));
    }
    const distance = step > 0 ? this.#make(SUB, ty, to, from) : this.#make(SUB, ty, from, to);
    const wide = this.#wide(distance);
    if (ty === TY.I64) this.#demand(LT_U, wide, this.#number(MAX_ROUNDS));
    if (compare !== NE) {
      return this.#quotient(strict ? this.#make(SUB, TY.I64, wide, this.#number(1)) : wide, size, shift);
    }
    if (size > 1) this.#demand(EQ, this.#make(AND, TY.I64, wide, this.#number(size - 1)), this.#number(0));
    return this.#make(SUB, TY.I64, this.#quotient(wide, size, shift), this.#number(1));
  }

  /** `v` divided by `size`, which is 2 to the power `shift` unless that is negative. */
  #quotient(v: number, size: number, shift: number): number {
    if (shift < 0) return this.#make(DIV_U, TY.I64, v, this.#number(size));
    return this.#make(SHR_U, TY.I64, v, this.#number(shift));
  }

  /**
   * Requires that `room` can be added to `y` (subtracted, if x counts down) without leaving the range of its type: x
   * then passes y before it wraps.
   */
  #demandRoom(compare: number, ty: number, y: number, room: number): void {
    const signed = compare === LT_S || compare === GT_S || compare === LE_S || compare === GE_S;
    const upward = compare === LT_S || compare === LT_U || compare === LE_S || compare === LE_U;
    const top = signed ? 0x7fffffff : -1;
    const limit = upward
      ? (ty === TY.I32 ? this.#constant(ty, top - room | 0, 0) : this.#constant(ty, -1 - room, top))
      : (ty === TY.I32
        ? this.#constant(ty, (signed ? -0x80000000 : 0) + room | 0, 0)
        : this.#constant(ty, room, signed ? -0x80000000 : 0));
    this.#demand(upward ? (signed ? LE_S : LE_U) : (signed ? GE_S : GE_U), y, limit);
  }

  /** Requires that the accesses of `group` are in bounds up to round `last`. */
  #demandGroup(group: Group, last: number): void {
    const { root, step, memory, low, end } = group;
    const first = this.#atFirst(root);
    const length = this.#make(
      LOAD,
      TY.I64,
      0,
      0,
      region(REGION.CONTEXT, CLASS_SIZES),
      CONTEXT.SIZE + memory * MEMORY.SIZE + MEMORY.LENGTH,
    );
    if (this.#f.ty[first] === TY.I64) this.#demand(LE_U, first, length);
    const start = this.#wide(first);
    const reach = step === 0
      ? start
      : this.#make(ADD, TY.I64, start, this.#make(MUL, TY.I64, last, this.#number(step)));
    const lowest = step < 0 ? reach : start, highest = step < 0 ? start : reach;
    if (low < 0 || step < 0) this.#demand(GE_S, this.#make(ADD, TY.I64, lowest, this.#number(low)), this.#number(0));
    this.#demand(LE_S, this.#make(ADD, TY.I64, highest, this.#number(end)), length);
  }
}
