/**
 * Induction-variable analysis: how far the checked accesses of a counted loop reach. In: an innermost loop. Out: a
 * bound of the iteration count, and per group of addresses that differ by constants, the step per iteration and the
 * range of bytes accessed around them.
 *
 * A value is affine if it equals v + k × step, modulo its width, in the k-th iteration (k from 0): block parameters
 * that every back edge changes by one constant, and sums, differences and multiples by constants of affine and
 * loop-invariant values; also extensions to 64 bits, provided that their operand does not wrap meanwhile
 * (`extensions`). The bound of k comes from a test that is made in every iteration and that ends the loop when an
 * affine value reaches a loop-invariant one.
 */
import { type f64, lowWord, unsigned } from "../base/numbers.ts";
import type { IrFunction } from "../ir/function.ts";
import { boundsBytes, boundsMemory } from "../ir/regions.ts";
import { INVERSE, MIRROR, OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { type ControlFlow, successorAt, successorCount } from "./cfg.ts";

const { ADD, BOUNDS, BRANCH, CONST, EQ, EXTEND_S, EXTEND_U, GE_U, MUL, NE, PARAM, SHL, SUB } = OP;
const { LT_S, LT_U, GT_S, GT_U, LE_S, LE_U, GE_S } = OP;
/**
 * Larger steps, and addresses farther from their common base, are left alone: products with these limits fit 64 bits.
 */
const MAX_STEP: f64 = 65536, MAX_DISTANCE: f64 = 2147483648;
/** Depth to which operands are followed. */
const MAX_DEPTH = 12;

/** Checked addresses that add constants to one value. */
export interface Group {
  /** The value to which the addresses add constants; affine with `step`. */
  readonly root: number;
  readonly step: f64;
  readonly memory: number;
  /** Lowest address, and end of the access that ends last, as distances from the root. */
  low: f64;
  end: f64;
  /** Whether the test precedes every access in each iteration. */
  tested: boolean;
}

/** The test that bounds the iteration count of a loop. */
export interface Test {
  /**
   * The loop continues while comparison `compare` (NE or an ordering) of x, which changes by `step` per iteration, and
   * y, which is invariant, holds.
   */
  readonly compare: number;
  readonly x: number;
  /** 0: the constant 0 of x's type. */
  readonly y: number;
  readonly step: f64;
}

/** A test, and the block that it ends. */
interface FoundTest {
  readonly test: Test;
  readonly block: number;
}

/** The groups of checked addresses, and the checks that they cover. */
interface Accesses {
  readonly groups: Group[];
  readonly checks: Set<number>;
}

/** A value, and the constant that is added to it. */
interface Sum {
  readonly root: number;
  readonly distance: f64;
}

/** The analysis of one loop at a time, selected by `begin`. */
export class InductionVariables {
  /** By block: whether it belongs to the loop. */
  readonly inLoop: Uint8Array;
  /** The loop's blocks, in order; its header is the first. */
  blocks: number[] = [];
  /** Extensions of affine 32-bit values that `step` took for affine: true only while their operand does not wrap. */
  readonly extensions = new Set<number>();
  #steps = new Map<number, f64>();

  constructor(readonly f: IrFunction, readonly flow: ControlFlow, readonly home: Int32Array) {
    this.inLoop = new Uint8Array(f.blockCount);
  }

  /** Selects the loop of header `head`, an innermost one. */
  begin(head: number): void {
    const { loopOf, loopEnd } = this.flow;
    for (const k of this.blocks) this.inLoop[k] = 0;
    this.#steps.clear();
    this.extensions.clear();
    this.blocks = [];
    for (let k = head; k < loopEnd[head]; k++) {
      if (loopOf[k] !== head) continue;
      this.blocks.push(k);
      this.inLoop[k] = 1;
    }
  }

  /** Whether `v` is computed in the loop. */
  defined(v: number): boolean {
    return v < this.home.length && this.inLoop[this.home[v]] === 1;
  }

  /** The change of `v`, an integer, per iteration: 0 if invariant, NaN if it is not a known constant. */
  step(v: number, depth = MAX_DEPTH): f64 {
    if (!this.defined(v) || this.f.op[v] === CONST) return 0;
    if (this.#steps.has(v)) return this.#steps.get(v)!;
    if (depth === 0) return NaN;
    const step = this.#computeStep(v, depth - 1);
    const result = Math.abs(step) <= MAX_STEP ? step : NaN;
    this.#steps.set(v, result);
    return result;
  }

  #computeStep(v: number, depth: number): f64 {
    const { op, a, b, imm, ty } = this.f;
    if (ty[v] !== TY.I32 && ty[v] !== TY.I64) return NaN;
    switch (op[v]) {
      case PARAM:
        return this.home[v] === this.blocks[0] ? this.#stepOfParam(v) : NaN;
      case ADD:
        return this.step(a[v], depth) + this.step(b[v], depth);
      case SUB:
        return this.step(a[v], depth) - this.step(b[v], depth);
      case SHL:
        if (op[b[v]] !== CONST) return NaN;
        return shifted(this.step(a[v], depth), imm[b[v]] & (ty[v] === TY.I32 ? 31 : 63));
      case MUL:
        return this.step(a[v], depth) * this.constant(b[v]);
      case EXTEND_S:
      case EXTEND_U: {
        const step = this.step(a[v], depth);
        if (Math.abs(step) > 0) this.extensions.add(v);
        return step;
      }
    }
    return NaN;
  }

  /** The constant by which all back edges change parameter `v` of the header. */
  #stepOfParam(v: number): f64 {
    const { f, flow } = this;
    const head = this.blocks[0];
    let step: f64 = NaN;
    for (let p = flow.predStart[head]; p < flow.predStart[head + 1]; p++) {
      const e = flow.predEdge[p];
      if (f.edgeFrom[e] < head) continue;
      const { root, distance } = this.split(f.pool[f.edgeArgs[e] + f.imm[v]]);
      if (root !== v || (distance !== step && !Number.isNaN(step))) return NaN;
      step = distance;
    }
    return step;
  }

  /** The value of constant `v` if it fits 32 bits, else NaN. */
  constant(v: number): f64 {
    const { op, ty, c, imm } = this.f;
    return op[v] === CONST && (ty[v] === TY.I32 || c[v] === imm[v] >> 31) ? imm[v] : NaN;
  }

  /** Splits `v` into a value (`root`) and a constant that is added to it (`distance`). */
  split(v: number): Sum {
    const { op, a, b } = this.f;
    let distance: f64 = 0;
    for (let n = 0; n < MAX_DEPTH && op[v] === ADD; n++) {
      const sum = distance + this.constant(b[v]);
      if (!(Math.abs(sum) < MAX_DISTANCE)) break;
      distance = sum;
      v = a[v];
    }
    return { root: v, distance };
  }

  /** The first test that bounds the iteration count, and its block. */
  findTest(): FoundTest | undefined {
    const { f, flow } = this;
    const head = this.blocks[0];
    for (const k of this.blocks) {
      const last = f.sched[f.blockEnd[k] - 1];
      if (f.op[last] !== BRANCH) continue;
      const stays = this.inLoop[f.edgeTo[f.b[last]]] === 1;
      if (stays === (this.inLoop[f.edgeTo[f.c[last]]] === 1)) continue;
      let always = true;
      for (let p = flow.predStart[head]; p < flow.predStart[head + 1] && always; p++) {
        const from = f.edgeFrom[flow.predEdge[p]];
        always = from < head || flow.dominates(k, from);
      }
      if (!always) continue;
      const test = this.#testOf(f.a[last], stays);
      if (test !== undefined) return { test, block: k };
    }
    return undefined;
  }

  /** The test if the loop continues while condition `v` is `sense`. */
  #testOf(v: number, sense: boolean): Test | undefined {
    const { op, a, b } = this.f;
    const o = op[v];
    if (o < EQ || o > GE_U) {
      if (!sense) return undefined;
      return this.#test(NE, v, 0);
    }
    const compare = sense ? o : INVERSE[o];
    const test = this.#test(compare, a[v], b[v]);
    if (test !== undefined) return test;
    return this.#test(MIRROR[compare], b[v], a[v]);
  }

  #test(compare: number, x: number, y: number): Test | undefined {
    const step = this.step(x);
    if (!(Math.abs(step) > 0) || (y !== 0 && this.step(y) !== 0)) return undefined;
    const size = lowWord(Math.abs(step));
    // NE holds until x equals y. Since x wraps, only a step that is a power of two is certain to reach every y whose
    // distance it divides.
    if (compare === NE && (size & (size - 1)) !== 0) return undefined;
    const upward = compare === LT_S || compare === LT_U || compare === LE_S || compare === LE_U;
    const downward = compare === GT_S || compare === GT_U || compare === GE_S || compare === GE_U;
    if (compare !== NE && !(step > 0 ? upward : downward)) return undefined;
    return { compare, x, y, step };
  }

  /** The groups of checked addresses, at most `most`, and the checks that each covers; `block` is where the test is. */
  findGroups(block: number, most: number): Accesses {
    const { f, flow } = this;
    const groups: Group[] = [], checks = new Set<number>();
    for (const k of this.blocks) {
      const tested = k !== block && flow.dominates(block, k);
      for (let s = f.blockStart[k]; s < f.blockEnd[k]; s++) {
        const i = f.sched[s];
        if (f.op[i] !== BOUNDS) continue;
        const { root, distance } = this.split(f.a[i]);
        const step = this.step(root), memory = boundsMemory(f.c[i]);
        const end = distance + unsigned(f.imm[i]) + boundsBytes(f.c[i]);
        if (Number.isNaN(step)) continue;
        const at = indexOfGroup(groups, root, memory);
        if (at === groups.length) {
          if (at === most) continue;
          groups.push({ root, step, memory, low: distance, end, tested });
        }
        const group = groups[at];
        group.low = Math.min(group.low, distance);
        group.end = Math.max(group.end, end);
        if (!tested) group.tested = false;
        checks.add(i);
      }
    }
    return { groups, checks };
  }

  /** The blocks outside the loop whose predecessors all belong to it. */
  exits(): number[] {
    const { f, flow } = this;
    const found = new Set<number>();
    for (const k of this.blocks) {
      const last = f.sched[f.blockEnd[k] - 1];
      for (let n = successorCount(f, last) - 1; n >= 0; n--) found.add(f.edgeTo[successorAt(f, last, n)]);
    }
    const exits: number[] = [];
    for (const x of found) {
      let dedicated = this.inLoop[x] === 0;
      for (let p = flow.predStart[x]; p < flow.predStart[x + 1] && dedicated; p++) {
        dedicated = this.inLoop[f.edgeFrom[flow.predEdge[p]]] === 1;
      }
      if (dedicated) exits.push(x);
    }
    return exits;
  }
}

/** The index of the group of `root` in `memory`; the length of `groups` if there is none. */
function indexOfGroup(groups: readonly Group[], root: number, memory: number): number {
  let at = 0;
  while (at < groups.length && (groups[at].root !== root || groups[at].memory !== memory)) at++;
  return at;
}

/** `x` times 2 to the power `count`. */
function shifted(x: f64, count: number): f64 {
  for (let n = 0; n < count; n++) x *= 2;
  return x;
}
