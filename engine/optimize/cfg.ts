/**
 * The shape of a function's control flow: predecessors, dominators, loops. In: an IrFunction. Out: columns by block, in
 * one reusable ControlFlow; the function is not changed.
 *
 * It relies on the order of blocks: a reverse postorder in which every edge to an equal or lower number is the back
 * edge of a natural loop whose header dominates it. Dominators therefore need one sweep (Cooper, Harvey and Kennedy's
 * "A Simple, Fast Dominance Algorithm" needs no iteration on reducible graphs), and a loop's blocks are within [header,
 * loopEnd). That range may also contain blocks that have left the loop (an early return); loopOf gives the natural loop
 * that a block belongs to.
 */
import type { IrFunction } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { Scratch } from "./scratch.ts";

const { JUMP, BRANCH, SWITCH } = OP;

/** Number of outgoing edges of the block whose last instruction is `i`. */
export function successorCount(f: IrFunction, i: number): number {
  const op = f.op[i];
  if (op === JUMP) return 1;
  if (op === BRANCH) return 2;
  if (op === SWITCH) return f.c[i];
  return 0;
}

/** Outgoing edge `n` of the block whose last instruction is `i`. */
export function successorAt(f: IrFunction, i: number, n: number): number {
  const op = f.op[i];
  if (op === JUMP) return f.a[i];
  if (op === BRANCH) return n === 0 ? f.b[i] : f.c[i];
  return f.b[i] + n;
}

/**
 * Control flow facts of one function at a time. Columns are valid for the block and edge counts of the last `compute`.
 */
export class ControlFlow {
  /** Columns for the passes over the function. */
  readonly scratch: Scratch = new Scratch();
  /** Incoming edges of block k: predEdge[predStart[k] … predStart[k + 1]), in edge order. */
  predStart: Int32Array = new Int32Array(65);
  predEdge: Int32Array = new Int32Array(128);
  /** Immediate dominator; −1 for the entry. */
  idom: Int32Array = new Int32Array(64);
  /** Position in a preorder of the dominator tree, and number of blocks dominated (itself included). */
  domIn: Int32Array = new Int32Array(64);
  domSize: Int32Array = new Int32Array(64);
  /** Header of the innermost natural loop that the block belongs to; −1 for none. A header belongs to its own loop. */
  loopOf: Int32Array = new Int32Array(64);
  /** By header: header of the next outer natural loop, or −1. */
  loopParent: Int32Array = new Int32Array(64);
  /** By header: the end of the range of its blocks; 0 for other blocks. */
  loopEnd: Int32Array = new Int32Array(64);
  /** Number of natural loops around the block. */
  depth: Int32Array = new Int32Array(64);
  loopCount = 0;
  /**
   * Depth in the dominator tree, and an ancestor far up it (Myers' skew-binary jump pointers): common ancestors in log
   * steps.
   */
  #treeDepth: Int32Array = new Int32Array(64);
  #jump: Int32Array = new Int32Array(64);
  #cursor: Int32Array = new Int32Array(64);

  #ensure(blocks: number, edges: number): void {
    if (edges > this.predEdge.length) this.predEdge = new Int32Array(edges * 2);
    if (blocks + 1 <= this.idom.length) return;
    const size = (blocks + 1) * 2;
    this.predStart = new Int32Array(size);
    this.idom = new Int32Array(size);
    this.domIn = new Int32Array(size);
    this.domSize = new Int32Array(size);
    this.loopOf = new Int32Array(size);
    this.loopParent = new Int32Array(size);
    this.loopEnd = new Int32Array(size);
    this.depth = new Int32Array(size);
    this.#treeDepth = new Int32Array(size);
    this.#jump = new Int32Array(size);
    this.#cursor = new Int32Array(size);
  }

  /** Whether block `above` dominates block `below`. */
  dominates(above: number, below: number): boolean {
    const offset = this.domIn[below] - this.domIn[above];
    return offset >= 0 && offset < this.domSize[above];
  }

  /** Computes all columns for `f`. */
  compute(f: IrFunction): void {
    this.computeLoops(f);
    this.#findDominators(f);
  }

  /** Computes predecessors and loops only: idom, domIn, domSize and `dominates` are left stale. */
  computeLoops(f: IrFunction): void {
    this.#ensure(f.blockCount, f.edgeCount);
    this.#findPredecessors(f);
    this.#findLoops(f);
  }

  /** The block in front of the loop of `head`: the only one that enters it, if it ends in a jump; else −1. */
  front(f: IrFunction, head: number): number {
    const { predStart, predEdge } = this;
    let front = -1;
    for (let p = predStart[head], end = predStart[head + 1]; p < end; p++) {
      const from = f.edgeFrom[predEdge[p]];
      if (from >= head) continue;
      if (front >= 0 || f.op[f.sched[f.blockEnd[from] - 1]] !== JUMP) return -1;
      front = from;
    }
    return front;
  }

  /** Counting sort of the edges by target. */
  #findPredecessors(f: IrFunction): void {
    const { predStart, predEdge } = this;
    const cursor = this.#cursor;
    const blocks = f.blockCount, edges = f.edgeCount;
    const edgeTo = f.edgeTo;
    predStart.fill(0, 0, blocks + 1);
    for (let e = 0; e < edges; e++) {
      const slot = edgeTo[e] + 1;
      predStart[slot] = predStart[slot] + 1;
    }
    for (let k = 0; k < blocks; k++) {
      cursor[k] = predStart[k];
      predStart[k + 1] = predStart[k + 1] + predStart[k];
    }
    for (let e = 0; e < edges; e++) {
      const k = edgeTo[e];
      const at = cursor[k];
      cursor[k] = at + 1;
      predEdge[at] = e;
    }
  }

  #findDominators(f: IrFunction): void {
    const { predStart, predEdge, idom, domIn, domSize } = this;
    const treeDepth = this.#treeDepth, jump = this.#jump, next = this.#cursor;
    const blocks = f.blockCount;
    const edgeFrom = f.edgeFrom;
    idom[0] = -1;
    domIn[0] = 0;
    domSize[0] = 1;
    treeDepth[0] = 0;
    jump[0] = 0;
    for (let k = 1; k < blocks; k++) {
      let dom = -1;
      for (let p = predStart[k], end = predStart[k + 1]; p < end; p++) {
        let from = edgeFrom[predEdge[p]];
        if (from >= k) continue;
        if (dom < 0) {
          dom = from;
          continue;
        }
        if (treeDepth[from] < treeDepth[dom]) {
          const swap = dom;
          dom = from;
          from = swap;
        }
        const level = treeDepth[dom];
        while (treeDepth[from] > level) from = treeDepth[jump[from]] >= level ? jump[from] : idom[from];
        while (dom !== from) {
          if (jump[dom] !== jump[from]) {
            dom = jump[dom];
            from = jump[from];
          } else {
            dom = idom[dom];
            from = idom[from];
          }
        }
      }
      idom[k] = dom;
      domSize[k] = 1;
      treeDepth[k] = treeDepth[dom] + 1;
      const far = jump[dom];
      jump[k] = treeDepth[dom] - treeDepth[far] === treeDepth[far] - treeDepth[jump[far]] ? jump[far] : dom;
    }
    for (let k = blocks - 1; k > 0; k--) {
      const up = idom[k];
      domSize[up] = domSize[up] + domSize[k];
    }
    next[0] = 1;
    for (let k = 1; k < blocks; k++) {
      const up = idom[k];
      const at = next[up];
      domIn[k] = at;
      next[up] = at + domSize[k];
      next[k] = at + 1;
    }
  }

  #findLoops(f: IrFunction): void {
    const { loopOf, loopParent, loopEnd, depth } = this;
    const blocks = f.blockCount, edges = f.edgeCount;
    const { edgeFrom, edgeTo, op, sched, blockEnd } = f;
    loopOf.fill(-1, 0, blocks);
    loopParent.fill(-1, 0, blocks);
    loopEnd.fill(0, 0, blocks);
    depth.fill(0, 0, blocks);
    let loops = 0;
    for (let e = 0; e < edges; e++) {
      const head = edgeTo[e], end = edgeFrom[e] + 1;
      if (end <= head) continue;
      if (loopEnd[head] === 0) loops++;
      if (end > loopEnd[head]) loopEnd[head] = end;
    }
    this.loopCount = loops;
    if (loops === 0) return;

    // A back edge of an outer loop may start inside an inner one: the outer range then holds the whole inner range.
    const open = this.#cursor;
    let top = 0;
    for (let k = blocks - 1; k >= 0; k--) {
      let end = loopEnd[k];
      if (end === 0) continue;
      while (top > 0 && open[top - 1] < end) {
        const inner = loopEnd[open[top - 1]];
        if (inner > end) end = inner;
        top--;
      }
      loopEnd[k] = end;
      open[top++] = k;
    }

    // Membership, backwards: a block belongs to the loops that its successors belong to, as far as their headers are
    // not after it.
    for (let k = blocks - 1; k >= 0; k--) {
      const last = sched[blockEnd[k] - 1];
      const kind = op[last];
      if (kind !== JUMP && kind !== BRANCH && kind !== SWITCH) continue;
      if (kind === SWITCH) {
        loopOf[k] = this.#loopsOfSwitch(f, k, f.b[last], f.c[last]);
        continue;
      }
      const first = this.#loopReached(k, edgeTo[kind === JUMP ? f.a[last] : f.b[last]]);
      const second = kind === JUMP ? first : this.#loopReached(k, edgeTo[f.c[last]]);
      loopOf[k] = first > second ? first : second;
      if (first >= 0 && second >= 0) this.#nest(first, second);
    }
    for (let k = 0; k < blocks; k++) {
      const loop = loopOf[k];
      if (loop === k) depth[k] = loopParent[k] < 0 ? 1 : depth[loopParent[k]] + 1;
      else if (loop >= 0) depth[k] = depth[loop];
    }
  }

  /** The innermost loop that block k belongs to because it leads to block `to`. */
  #loopReached(k: number, to: number): number {
    let loop = to <= k ? to : this.loopOf[to];
    while (loop > k) loop = this.loopParent[loop];
    return loop;
  }

  /** The same for the many targets of a SWITCH: sorted, so that a deep nest costs one climb and not one per target. */
  #loopsOfSwitch(f: IrFunction, k: number, firstEdge: number, count: number): number {
    // Mostly all targets are in the same loop.
    const first = this.#loopReached(k, f.edgeTo[firstEdge]);
    let same = 1;
    while (same < count && this.#loopReached(k, f.edgeTo[firstEdge + same]) === first) same++;
    if (same >= count) return first;
    const loops = new Int32Array(count);
    for (let n = 0; n < count; n++) loops[n] = this.#loopReached(k, f.edgeTo[firstEdge + n]);
    loops.sort();
    for (let n = count - 1; n > 0; n--) {
      if (loops[n] !== loops[n - 1] && loops[n - 1] >= 0) this.#nest(loops[n], loops[n - 1]);
    }
    return loops[count - 1];
  }

  /** Records that the loop of header `inner` is nested in the loop of header `outer`. */
  #nest(inner: number, outer: number): void {
    const { loopParent } = this;
    while (inner !== outer) {
      if (inner < outer) {
        const swap = inner;
        inner = outer;
        outer = swap;
      }
      const parent = loopParent[inner];
      if (parent < 0) {
        loopParent[inner] = outer;
        return;
      }
      if (parent === outer) return;
      if (parent < outer) {
        loopParent[inner] = outer;
        inner = outer;
        outer = parent;
      } else inner = parent;
    }
  }
}
