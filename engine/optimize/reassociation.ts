/**
 * Reassociation: the shape and order of expression trees, that is, of pure values with one use, in the same block. In:
 * a function in its final form except for block placement. Out: the same values in an order that needs fewer registers.
 *
 * assoc-tree: a tree of one associative integer operation becomes a chain, (a + b) + (c + d) → ((a + b) + c) + d, in
 * the order in which its leaves are computed, so that one register holds the partial result. tree-order: of two
 * operands that are computed consecutively, the one that needs more registers is computed first, provided that nothing
 * else comes in between (Sethi and Ullman 1970).
 *
 * Integers wrap, so any shape gives the same bits; only pure operations change their place.
 */
import type { IrFunction } from "../ir/function.ts";
import { FLAG, OP, OP_FLAGS, OP_VALUE_MASK } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import type { Scratch } from "./scratch.ts";
import { countUses } from "./uses.ts";

const { ADD, AND, CONST, MUL, OR, PARAM, RESULT, XOR } = OP;
/** The least number of leaves of a chain, and the depth to which trees are followed. */
const MIN_LEAVES = 3, MAX_DEPTH = 24;

/** How many chains were made, and how many operands were exchanged. */
interface Reassociated {
  readonly chained: number;
  readonly swapped: number;
}

/** Reorders trees of `f`; returns the number of chains made and of operands exchanged. */
export function reassociate(f: IrFunction, scratch: Scratch, chains: boolean, order: boolean): Reassociated {
  const trees = new Trees(f, scratch);
  let chained = 0, swapped = 0;
  for (let k = 0; k < f.blockCount; k++) {
    if (chains) chained += trees.chainBlock(k);
    if (order) swapped += trees.orderBlock(k);
  }
  return { chained, swapped };
}

class Trees {
  readonly #f: IrFunction;
  /** By value: number of uses; position in the order, −1 outside the current block. */
  readonly #uses: Int32Array;
  readonly #position: Int32Array;

  constructor(f: IrFunction, scratch: Scratch) {
    scratch.ensure(f);
    this.#f = f;
    this.#uses = scratch.values;
    this.#position = scratch.values2;
    this.#position.fill(-1, 0, f.count);
    countUses(f, this.#uses);
  }

  /**
   * Whether `v` is computed in the current block for one other value only, by an operation that may move down to it.
   * Parameters and results have their places at the block's start and after the call.
   */
  #isInner(v: number): boolean {
    const o = this.#f.op[v];
    return this.#position[v] >= 0 && this.#uses[v] === 1 && (OP_FLAGS[o] & FLAG.PURE) !== 0 && o !== CONST &&
      o !== PARAM && o !== RESULT;
  }

  #enter(k: number): void {
    const { sched, blockStart, blockEnd } = this.#f;
    for (let s = blockStart[k]; s < blockEnd[k]; s++) this.#position[sched[s]] = s;
  }

  #leave(k: number): void {
    const { sched, blockStart, blockEnd } = this.#f;
    for (let s = blockStart[k]; s < blockEnd[k]; s++) this.#position[sched[s]] = -1;
  }

  // Chains.

  chainBlock(k: number): number {
    const { op, ty, sched, blockStart, blockEnd } = this.#f;
    this.#enter(k);
    let made = 0;
    const inner = new Set<number>();
    for (let s = blockEnd[k] - 1; s >= blockStart[k]; s--) {
      const root = sched[s];
      const o = op[root];
      if (o !== ADD && o !== MUL && o !== AND && o !== OR && o !== XOR) continue;
      if (inner.has(root) || (ty[root] !== TY.I32 && ty[root] !== TY.I64)) continue;
      const leaves: number[] = [], nodes: number[] = [];
      if (this.#collect(root, root, leaves, nodes, MAX_DEPTH) && leaves.length >= MIN_LEAVES) {
        this.#chain(k, leaves, nodes);
        made++;
      }
      for (const node of nodes) inner.add(node);
    }
    this.#leave(k);
    return made;
  }

  /**
   * Collects leaves and inner nodes, the root included; returns whether both operands of some node are nodes, which
   * makes the tree other than a chain.
   */
  #collect(v: number, root: number, leaves: number[], nodes: number[], depth: number): boolean {
    const { op, ty, a, b } = this.#f;
    if (v !== root && (depth === 0 || op[v] !== op[root] || ty[v] !== ty[root] || !this.#isInner(v))) {
      leaves.push(v);
      return false;
    }
    nodes.push(v);
    const before = nodes.length;
    const first = this.#collect(a[v], root, leaves, nodes, depth - 1);
    const between = nodes.length;
    const second = this.#collect(b[v], root, leaves, nodes, depth - 1);
    return first || second || (nodes.length > between && between > before);
  }

  /**
   * Makes a chain of `nodes` over `leaves`: a node comes right after the leaf that it adds; constants are added last.
   */
  #chain(k: number, leaves: number[], nodes: number[]): void {
    const f = this.#f;
    const { op, a, b, sched, blockStart, blockEnd } = f;
    const position = this.#position;
    this.#sort(leaves);
    // The root comes last and does not move; every other node moves next to its leaf.
    this.#sort(nodes);
    const root = nodes[nodes.length - 1];
    const after = new Map<number, number[]>(), moved = new Set<number>();
    let previous = leaves[0];
    // No node moves in front of the first: its leaves may be needed later in any case, and the partial sum would be one
    // more value that lives across the calls in between.
    let last = Math.max(position[previous], position[nodes[0]] - 1);
    for (let n = 0; n < nodes.length; n++) {
      const node = nodes[n], leaf = leaves[n + 1];
      a[node] = previous;
      b[node] = leaf;
      previous = node;
      if (node === root) break;
      last = Math.max(last, position[leaf]);
      while (op[sched[last + 1]] === RESULT) last++;
      if (after.has(last)) after.get(last)!.push(node);
      else after.set(last, [node]);
      moved.add(node);
    }
    const list: number[] = [];
    for (let s = blockStart[k]; s < blockEnd[k]; s++) {
      if (!moved.has(sched[s])) list.push(sched[s]);
      if (after.has(s)) { for (const node of after.get(s)!) list.push(node); }
    }
    sched.set(list, blockStart[k]);
    for (let s = blockStart[k]; s < blockEnd[k]; s++) position[sched[s]] = s;
  }

  /** Sorts values by position: those from outside the block first and constants last, both as they are in order. */
  #sort(values: number[]): void {
    const { op, sched } = this.#f;
    const positions = new Int32Array(values.length), constants: number[] = [];
    let count = 0, to = 0;
    for (const v of values) {
      if (op[v] === CONST) constants.push(v);
      else if (this.#position[v] < 0) values[to++] = v;
      else positions[count++] = this.#position[v];
    }
    positions.subarray(0, count).sort();
    for (let n = 0; n < count; n++) values[to++] = sched[positions[n]];
    for (const v of constants) values[to++] = v;
  }

  // Order.

  orderBlock(k: number): number {
    const { op, a, b, sched, blockStart, blockEnd, blockParams } = this.#f;
    this.#enter(k);
    let swapped = 0;
    for (let s = blockStart[k] + blockParams[k]; s < blockEnd[k]; s++) {
      const i = sched[s];
      if ((OP_VALUE_MASK[op[i]] & 3) !== 3) continue;
      const x = a[i], y = b[i];
      if (x === y || !this.#isInner(x) || !this.#isInner(y) || this.#need(y, MAX_DEPTH) <= this.#need(x, MAX_DEPTH)) {
        continue;
      }
      const middle = this.#start(y, s, MAX_DEPTH);
      const first = middle < 0 ? -1 : this.#start(x, middle, MAX_DEPTH);
      if (first < 0) continue;
      // Constants come before both: selection materializes them at their uses.
      const list: number[] = [];
      for (let n = first; n < s; n++) if (op[sched[n]] === CONST) list.push(sched[n]);
      for (let n = middle; n < s; n++) if (op[sched[n]] !== CONST) list.push(sched[n]);
      for (let n = first; n < middle; n++) if (op[sched[n]] !== CONST) list.push(sched[n]);
      sched.set(list, first);
      for (let n = first; n < s; n++) this.#position[sched[n]] = n;
      swapped++;
    }
    this.#leave(k);
    return swapped;
  }

  /** Registers that computing `v` takes, its leaves not counted. */
  #need(v: number, depth: number): number {
    if (depth === 0 || !this.#isInner(v)) return 0;
    const { op, a, b } = this.#f;
    const mask = OP_VALUE_MASK[op[v]];
    const x = mask & 1 ? this.#need(a[v], depth - 1) : 0;
    const y = mask & 2 ? this.#need(b[v], depth - 1) : 0;
    return x === y && x > 0 ? x + 1 : Math.max(x, y, 1);
  }

  /** Start of the instructions of tree `v`, which end before `end`, if only constants are among them; −1 otherwise. */
  #start(v: number, end: number, depth: number): number {
    const { op, a, b, c, sched } = this.#f;
    let s = end - 1;
    while (s >= 0 && op[sched[s]] === CONST) s--;
    if (s < 0 || sched[s] !== v || depth === 0) return -1;
    const mask = OP_VALUE_MASK[op[v]];
    for (let bit = 4; bit > 0; bit >>= 1) {
      const w = (mask & bit) === 0 ? 0 : bit === 4 ? c[v] : bit === 2 ? b[v] : a[v];
      if (w === 0 || !this.#isInner(w)) continue;
      s = this.#start(w, s, depth - 1);
      if (s < 0) return -1;
    }
    return s;
  }
}
