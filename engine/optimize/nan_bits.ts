/**
 * Makes NaNs canonical only where their bits are read. In: a function of deterministic code, in which a
 * canonicalization follows every operation that may make a NaN (translate/deterministic.ts). Out: the same function
 * with fewer of them.
 *
 *     k:  v = FMUL x y · w = canonical v · FADD w z          k:  v = FMUL x y · FADD v z
 *
 * Arithmetic, comparisons and conversions give the same result for every NaN, up to the bits of a NaN of their own.
 * Stores, calls, returns and integer operations read the bits; block parameters and `select` pass them on. The demand
 * for bits therefore flows backward, from the uses of a value to its definition, until nothing changes.
 *
 * A canonicalization in a loop whose bits are read after the loop alone moves there. A block parameter is raw if all
 * its arguments would be canonical, but some are passed without canonicalization: the sum that a loop adds up, say. It
 * gets a canonicalization where its bits are read. The parameter of a loop stays canonical if that is within the loop.
 *
 * A vector has NaNs in lanes of one width, and its lanes may be read in the other width: demand is a bit per width.
 *
 * Invariant: no later pass adds a use that reads the bits of a NaN. The pass runs after all that move or forward
 * values.
 */
import { type f64, lowWord, unsigned } from "../base/numbers.ts";
import { canonicalizedBy, NARROW_LANES, WIDE_LANES } from "../ir/canonical_nan.ts";
import { BLOCK_LOOP, type IrFunction } from "../ir/function.ts";
import { OP, OP_HAS_LIST, OP_VALUE_MASK } from "../ir/ops.ts";
import { NAN32, NAN64_HIGH, SHAPE, TY } from "../ir/types.ts";
import { type ControlFlow, successorAt, successorCount } from "./cfg.ts";

const { CONST, CONVERT_S, CONVERT_U, FCOPYSIGN, FNE, PARAM, SELECT, VBITSELECT, VFNE } = OP;
const { F32, F64, I32, V128 } = TY;

/** Demand is for NaNs in lanes of 32 bits, of 64 bits, or both; scalars have both or none. */
const BOTH = NARROW_LANES | WIDE_LANES;

// Classes of operations, by how they read the NaNs of their operands; 0 reads their bits.
/** It gives a NaN for a NaN, whose bits depend on those of the operand. */
const ARITHMETIC = 1;
/** Its result has no bits of a NaN. */
const BLIND = 2;
/** The result has the bits of an operand. */
const COPIES = 3;
/** As ARITHMETIC and BLIND, for vectors of the shape in `imm`. */
const LANES = 4;
const BLIND_LANES = 5;

/** The operations of each class but 0. */
const CLASSES: Readonly<Record<number, readonly (keyof typeof OP)[]>> = {
  [ARITHMETIC]: [
    ...["FADD", "FSUB", "FMUL", "FDIV", "FMIN", "FMAX", "FABS", "FNEG", "FCOPYSIGN"] as const,
    ...["FSQRT", "FCEIL", "FFLOOR", "FTRUNC", "FNEAREST", "FDEMOTE", "FPROMOTE"] as const,
  ],
  [BLIND]: [
    ...["FEQ", "FNE", "FLT", "FGT", "FLE", "FGE"] as const,
    ...["TRUNC_S", "TRUNC_U", "TRUNC_SAT_S", "TRUNC_SAT_U"] as const,
  ],
  [COPIES]: ["SELECT"],
  [LANES]: [
    ...["VFADD", "VFSUB", "VFMUL", "VFDIV", "VFMIN", "VFMAX", "VFPMIN", "VFPMAX"] as const,
    ...["VFABS", "VFNEG", "VFSQRT", "VFCEIL", "VFFLOOR", "VFTRUNC", "VFNEAREST"] as const,
  ],
  [BLIND_LANES]: ["VFEQ", "VFNE", "VFLT", "VFGT", "VFLE", "VFGE", "VTRUNC_SAT_S", "VTRUNC_SAT_U"],
};

const CLASS = new Uint8Array(OP_HAS_LIST.length);
for (const [number, names] of Object.entries(CLASSES)) for (const name of names) CLASS[OP[name]] = Number(number);

/** The demand for lanes of the width of `shape` alone. */
function widthOf(shape: number): number {
  return shape === SHAPE.F64X2 ? WIDE_LANES : shape === SHAPE.F32X4 ? NARROW_LANES : BOTH;
}

/** What a visit of all reads does. */
const DEMAND = 0, FIND_RAW = 1, REPLACE = 2;

class NanBits {
  readonly #f: IrFunction;
  readonly #flow: ControlFlow;
  /** By value: the demand on it. */
  readonly #demand: Uint8Array;
  /** By value: the widths in which its NaNs are canonical, or would be if no canonicalization were removed. */
  readonly #clean: Uint8Array;
  /** The same after the removal. */
  readonly #stillClean: Uint8Array;
  /** By width of lanes: the index of the vector constant of a canonicalization. */
  readonly #canonicalVector: Int32Array = new Int32Array(WIDE_LANES + 1);
  /** By parameter and canonicalization: its block. */
  readonly #home: Int32Array;
  /** By value: the value in its place, which differs for canonicalizations that go. */
  readonly #instead: Int32Array;
  #changed = false;
  /** By raw value and block: the canonicalization to add (see #keyOf). */
  readonly #added = new Map<f64, number>();

  constructor(f: IrFunction, flow: ControlFlow) {
    this.#f = f;
    this.#flow = flow;
    this.#demand = new Uint8Array(f.count);
    this.#clean = new Uint8Array(f.count);
    this.#stillClean = new Uint8Array(f.count);
    this.#home = flow.scratch.values2;
    this.#instead = flow.scratch.values;
    for (let i = 0; i < f.count; i++) this.#instead[i] = i;
  }

  /** Returns the number of canonicalizations that went. */
  run(): number {
    this.#findClean(this.#clean);
    do {
      this.#changed = false;
      this.#visitReads(DEMAND);
    } while (this.#changed);
    const removed = this.#choose();
    if (removed === 0) return 0;
    this.#findClean(this.#stillClean);
    this.#visitReads(FIND_RAW);
    this.#appendCanonical();
    this.#visitReads(REPLACE);
    if (this.#added.size > 0) this.#schedule();
    return removed;
  }

  // ---- values that are canonical ------------------------------------------------------------------------------------

  /** All parameters count as clean until an argument is not. */
  #findClean(clean: Uint8Array): void {
    const { sched, blockStart, blockEnd, blockParams, blockCount } = this.#f;
    for (let k = 0; k < blockCount; k++) {
      const params = blockStart[k] + blockParams[k];
      for (let s = blockStart[k]; s < params; s++) {
        this.#home[sched[s]] = k;
        clean[sched[s]] = k === 0 ? 0 : BOTH;
      }
      for (let s = params; s < blockEnd[k]; s++) {
        clean[sched[s]] = this.#cleanAt(sched[s]);
        if (canonicalizedBy(this.#f, sched[s]) !== 0) this.#home[sched[s]] = k;
      }
    }
    do {
      this.#changed = false;
      this.#meetArguments(clean);
    } while (this.#changed);
  }

  #cleanAt(i: number): number {
    const { op, ty, imm, c } = this.#f;
    if (op[i] === CONVERT_S || op[i] === CONVERT_U) return BOTH;
    if (op[i] !== CONST) {
      const width = canonicalizedBy(this.#f, i);
      if (op[i] === VBITSELECT && width !== 0) this.#canonicalVector[width] = imm[this.#f.a[i]];
      return this.#instead[i] === i ? width : 0;
    }
    if (ty[i] === F32) return (imm[i] & 0x7fffffff) <= 0x7f800000 ? BOTH : 0;
    if (ty[i] === F64) return (c[i] & 0x7fffffff) < 0x7ff00000 ? BOTH : 0;
    return ty[i] === V128 && this.#isZeroVector(imm[i]) ? BOTH : 0;
  }

  #isZeroVector(index: number): boolean {
    const { vectors } = this.#f;
    for (let at = index * 16, end = at + 16; at < end; at++) if (vectors[at] !== 0) return false;
    return true;
  }

  #meetArguments(clean: Uint8Array): void {
    const { sched, imm, pool, edgeArgs, blockStart, blockParams, blockCount } = this.#f;
    const { predStart, predEdge } = this.#flow;
    for (let k = 1; k < blockCount; k++) {
      for (let s = blockStart[k]; s < blockStart[k] + blockParams[k]; s++) {
        const i = sched[s];
        let bits = clean[i];
        for (let p = predStart[k]; p < predStart[k + 1]; p++) bits &= clean[pool[edgeArgs[predEdge[p]] + imm[i]]];
        if (bits !== clean[i]) this.#changed = true;
        clean[i] = bits;
      }
    }
  }

  /** The widths in which value `i`, a parameter or a canonicalization, can be raw; for others 0. */
  #rawWidth(i: number): number {
    const { op, ty } = this.#f;
    if (op[i] !== PARAM) return canonicalizedBy(this.#f, i);
    const bits = this.#clean[i];
    if (ty[i] === V128) return bits === BOTH ? 0 : bits;
    return ty[i] === F32 || ty[i] === F64 ? bits : 0;
  }

  // ---- demand -------------------------------------------------------------------------------------------------------

  /** A value whose bits block `k` reads has demand, except for one that can become canonical there. */
  #add(value: number, bits: number, k: number): void {
    if (bits === 0) return;
    const raw = this.#rawWidth(value);
    if (raw !== 0 && (this.#isMerged(value) || this.#isInside(value, k))) bits &= ~raw;
    if ((bits & ~this.#demand[value]) === 0) return;
    this.#demand[value] |= bits;
    this.#changed = true;
  }

  /** Whether `value` is a parameter of a block that begins no loop, where it can become canonical. */
  #isMerged(value: number): boolean {
    const { op, blockFlags } = this.#f;
    return op[value] === PARAM && (blockFlags[this.#home[value]] & BLOCK_LOOP) === 0;
  }

  /** Whether `value` is defined in a deeper loop than block `k`. */
  #isInside(value: number, k: number): boolean {
    const { blockDepth } = this.#f;
    return blockDepth[k] < blockDepth[this.#home[value]];
  }

  /** Visits a value that block `k` reads: its place in a column, and the demand on it. */
  #visit(action: number, column: Int32Array, at: number, bits: number, k: number): void {
    const value = column[at];
    if (action === DEMAND) this.#add(value, bits, k);
    else if (action === REPLACE) {
      column[at] = this.#isRawRead(value, bits) ? this.#added.get(this.#keyOf(value, k))! : this.#instead[value];
    } else if (this.#isRawRead(value, bits)) this.#added.set(this.#keyOf(value, k), 0);
  }

  /** Visits all operands and arguments, from the last block to the first. */
  #visitReads(action: number): void {
    const { op, sched, blockStart, blockEnd, blockCount } = this.#f;
    for (let k = blockCount - 1; k >= 0; k--) {
      this.#visitArguments(k, action);
      for (let s = blockEnd[k] - 1; s >= blockStart[k]; s--) {
        if (op[sched[s]] !== PARAM) this.#visitOperands(sched[s], k, action);
      }
    }
  }

  #visitArguments(k: number, action: number): void {
    const { sched, pool, edgeTo, edgeArgs, blockStart, blockEnd, blockParams } = this.#f;
    const last = sched[blockEnd[k] - 1];
    for (let n = successorCount(this.#f, last) - 1; n >= 0; n--) {
      const e = successorAt(this.#f, last, n);
      const to = edgeTo[e];
      for (let p = 0; p < blockParams[to]; p++) {
        this.#visit(action, pool, edgeArgs[e] + p, this.#demand[sched[blockStart[to] + p]], k);
      }
    }
  }

  #visitOperands(i: number, k: number, action: number): void {
    const { op, a, b, c, pool } = this.#f;
    const canonical = canonicalizedBy(this.#f, i);
    if (canonical !== 0) return this.#visit(action, b, i, this.#demand[i] & ~canonical, k);
    if (OP_HAS_LIST[op[i]] !== 0) {
      for (let p = a[i]; p < a[i] + b[i]; p++) this.#visit(action, pool, p, BOTH, k);
      return;
    }
    const bits = this.#operandDemand(i);
    const mask = OP_VALUE_MASK[op[i]];
    if (mask & 1) this.#visit(action, a, i, bits, k);
    // The sign of the second operand of copysign is that of the result.
    if (mask & 2) this.#visit(action, b, i, op[i] === FCOPYSIGN ? BOTH : bits, k);
    if (mask & 4) this.#visit(action, c, i, bits, k);
  }

  /** The demand on the operands of instruction `i`, which has no list. */
  #operandDemand(i: number): number {
    const { op, imm } = this.#f;
    const bits = this.#demand[i];
    const width = widthOf(imm[i]);
    switch (CLASS[op[i]]) {
      case ARITHMETIC:
      case COPIES:
        return bits;
      case BLIND:
        return 0;
      case LANES:
        return bits & width | BOTH & ~width;
      case BLIND_LANES:
        return BOTH & ~width;
      default:
        return BOTH;
    }
  }

  // ---- the changes --------------------------------------------------------------------------------------------------

  /** Chooses the canonicalizations that go; returns their number. */
  #choose(): number {
    const f = this.#f;
    let removed = 0;
    for (let s = 0; s < f.schedCount; s++) {
      const i = f.sched[s];
      const width = canonicalizedBy(f, i);
      if (width === 0 || (this.#demand[i] & width) !== 0) continue;
      // Definitions precede their uses: the operand has its replacement.
      this.#instead[i] = this.#instead[f.b[i]];
      removed++;
    }
    return removed;
  }

  /** Appends a canonicalization for each block that reads the bits of a raw value. */
  #appendCanonical(): void {
    const { blockCount } = this.#f;
    for (const key of this.#added.keys()) this.#added.set(key, this.#canonicalOf(lowWord(key / blockCount)));
  }

  #isRawRead(value: number, bits: number): boolean {
    return (bits & this.#rawWidth(value) & ~this.#demand[value] & ~this.#stillClean[value]) !== 0;
  }

  /** Raw value `value`, and the block in which it becomes canonical for block `k`. */
  #keyOf(value: number, k: number): f64 {
    const isThere = !this.#isMerged(value) || this.#isInside(value, k);
    return unsigned(value) * this.#f.blockCount + (isThere ? k : this.#home[value]);
  }

  /** Appends a canonicalization of `given`: a constant, a test and a selection. Returns the last. */
  #canonicalOf(given: number): number {
    const f = this.#f;
    const value = this.#instead[given];
    const ty = f.ty[value];
    if (ty === V128) {
      const width = this.#rawWidth(given);
      const canonical = f.append(CONST, V128, 0, 0, 0, this.#canonicalVector[width]);
      const test = f.append(VFNE, V128, value, value, 0, width === WIDE_LANES ? SHAPE.F64X2 : SHAPE.F32X4);
      return f.append(VBITSELECT, V128, canonical, value, test, 0);
    }
    const canonical = ty === F32 ? f.append(CONST, F32, 0, 0, 0, NAN32) : f.append(CONST, F64, 0, 0, NAN64_HIGH, 0);
    return f.append(SELECT, ty, canonical, value, f.append(FNE, I32, value, value, 0, 0), 0);
  }

  /** Puts the new instructions behind the parameters of their blocks. */
  #schedule(): void {
    const f = this.#f;
    const { blockCount } = f;
    // By block: the first of its canonicalizations and, by canonicalization, the next; 0 for none.
    const first = new Int32Array(blockCount), next = new Int32Array(f.count);
    const last = new Int32Array(blockCount);
    for (const [key, canonical] of this.#added) {
      const k = lowWord(key - unsigned(lowWord(key / blockCount)) * blockCount);
      if (first[k] === 0) first[k] = canonical;
      else next[last[k]] = canonical;
      last[k] = canonical;
    }
    const order: number[] = [];
    for (let k = 0; k < blockCount; k++) {
      const start = f.blockStart[k], params = start + f.blockParams[k], end = f.blockEnd[k];
      f.blockStart[k] = order.length;
      for (let s = start; s < params; s++) order.push(f.sched[s]);
      for (let i = first[k]; i !== 0; i = next[i]) {
        order.push(i - 2);
        order.push(i - 1);
        order.push(i);
      }
      for (let s = params; s < end; s++) order.push(f.sched[s]);
      f.blockEnd[k] = order.length;
    }
    f.ensure(order.length);
    f.sched.set(order);
    f.schedCount = order.length;
  }
}

/**
 * Makes the NaNs of `f` canonical only where their bits are read; returns the number of canonicalizations that went.
 */
export function removeCanonicalizations(f: IrFunction, flow: ControlFlow): number {
  flow.compute(f);
  flow.scratch.ensure(f);
  return new NanBits(f, flow).run();
}
