/**
 * Control-flow facts of a VCode for the register allocator: the position of each block on the linear scale, its loop,
 * its estimated frequency, and its incoming edges.
 *
 * Positions: every block header and every instruction has a number, in block order; header k is number blockFirst[k] +
 * k and instruction i of block k number i + k + 1. Number n owns the positions 2n (operands are read) and 2n + 1
 * (results are written). Moves happen in the gap between 2n − 1 and 2n; those at a header happen on the edges into the
 * block.
 *
 * Relies on the order that VCode guarantees: a reverse postorder in which loops are contiguous (a backward edge leads
 * to the header of a natural loop). Loops are extended over their inner loops here, so that they nest properly as
 * ranges of blocks.
 */
import { type f64, lowWord } from "../base/numbers.ts";
import { BLOCK_COLD } from "../ir/function.ts";
import type { VCode } from "../codegen/vcode.ts";

/** Share of runs that a block is given, by the number of forward edges of the same loop that jump over it. */
const SHARES = Float64Array.of(1, 0.5, 0.25, 0.125);
const MAX_CONDITIONS = 3;
/** Runs of a block by its loop depth. */
const RUNS = Float64Array.of(1, 10, 100, 1e3, 1e4, 1e5, 1e6);
const MAX_DEPTH = 6;
const COLD = 0.01;

export class BlockFacts {
  blockCount = 0;
  /** Position of the header per block, and the end of the scale. */
  start: Int32Array = new Int32Array(65);
  /** Block per number (position >> 1). */
  blockOf: Int32Array = new Int32Array(1024);
  numbers = 0;
  /** Header of the innermost loop around a block (the block itself if it is one), −1 outside loops. */
  loop: Int32Array = new Int32Array(64);
  /** Per header: the header of the loop around, −1; and the first block after the loop. */
  loopParent: Int32Array = new Int32Array(64);
  loopEnd: Int32Array = new Int32Array(64);
  /** Estimated runs per call of the function. */
  frequency: Float64Array = new Float64Array(64);
  /**
   * Share of the iterations of the enclosing loop (or runs of the function) that reach the block, assuming that a
   * switch takes all edges equally often. `frequency` is for comparing blocks on one path.
   */
  chance: Float64Array = new Float64Array(64);
  /** Edges that enter block k: pred[predFirst[k] … predFirst[k + 1]). */
  predFirst: Int32Array = new Int32Array(65);
  pred: Int32Array = new Int32Array(128);

  /** Computes all facts of `v`. */
  compute(v: VCode): void {
    this.blockCount = v.blockCount;
    this.#reserve(v);
    this.#numberPositions(v);
    this.#findPredecessors(v);
    this.#findLoops(v);
    this.#estimateFrequencies(v);
    this.#estimateChances(v);
  }

  #reserve(v: VCode): void {
    const blocks = v.blockCount;
    if (blocks >= this.loop.length) {
      const size = blocks * 2;
      this.start = new Int32Array(size + 1);
      this.loop = new Int32Array(size);
      this.loopParent = new Int32Array(size);
      this.loopEnd = new Int32Array(size);
      this.frequency = new Float64Array(size);
      this.chance = new Float64Array(size);
      this.predFirst = new Int32Array(size + 1);
    }
    if (v.edgeCount > this.pred.length) this.pred = new Int32Array(v.edgeCount * 2);
    this.numbers = v.count + blocks;
    if (this.numbers >= this.blockOf.length) this.blockOf = new Int32Array(this.numbers * 2);
  }

  #numberPositions(v: VCode): void {
    const blocks = v.blockCount, blockFirst = v.blockFirst, start = this.start, blockOf = this.blockOf;
    for (let k = 0; k < blocks; k++) {
      const header = blockFirst[k] + k;
      const next = (k + 1 < blocks ? blockFirst[k + 1] : v.count) + k + 1;
      start[k] = header * 2;
      for (let n = header; n < next; n++) blockOf[n] = k;
    }
    start[blocks] = this.numbers * 2;
  }

  #findPredecessors(v: VCode): void {
    const predFirst = this.predFirst, pred = this.pred, edgeTo = v.edgeTo, edges = v.edgeCount, blocks = v.blockCount;
    predFirst.fill(0, 0, blocks + 1);
    for (let e = 0; e < edges; e++) predFirst[edgeTo[e]]++;
    let sum = 0;
    for (let k = 0; k < blocks; k++) {
      sum += predFirst[k];
      predFirst[k] = sum;
    }
    predFirst[blocks] = sum;
    for (let e = edges - 1; e >= 0; e--) pred[--predFirst[edgeTo[e]]] = e;
  }

  #findLoops(v: VCode): void {
    const blocks = v.blockCount, loop = this.loop, loopEnd = this.loopEnd, loopParent = this.loopParent;
    const edgeFrom = v.edgeFrom, edgeTo = v.edgeTo;
    loopEnd.fill(0, 0, blocks);
    for (let e = 0; e < v.edgeCount; e++) {
      const from = edgeFrom[e], to = edgeTo[e];
      if (to <= from && loopEnd[to] <= from) loopEnd[to] = from + 1;
    }
    // Inner headers first: `loop` doubles as the stack of outermost loops found so far, lowest header on top.
    let top = 0;
    for (let k = blocks - 1; k >= 0; k--) {
      if (loopEnd[k] === 0) continue;
      while (top > 0 && loop[top - 1] < loopEnd[k]) {
        const inner = loop[--top];
        if (loopEnd[inner] > loopEnd[k]) loopEnd[k] = loopEnd[inner];
      }
      loop[top++] = k;
    }
    let current = -1;
    for (let k = 0; k < blocks; k++) {
      while (current >= 0 && loopEnd[current] <= k) current = loopParent[current];
      if (loopEnd[k] !== 0) {
        loopParent[k] = current;
        current = k;
      }
      loop[k] = current;
    }
  }

  #estimateFrequencies(v: VCode): void {
    const blocks = v.blockCount, loop = this.loop, frequency = this.frequency, edgeFrom = v.edgeFrom, edgeTo = v.edgeTo;
    const blockDepth = v.blockDepth, blockFlags = v.blockFlags, edges = v.edgeCount;
    frequency.fill(0, 0, blocks);
    for (let e = 0; e < edges; e++) {
      const from = edgeFrom[e], to = edgeTo[e];
      if (to > from + 1 && loop[from] === loop[to]) {
        frequency[from + 1] += 1;
        frequency[to] -= 1;
      }
    }
    let conditions = 0;
    for (let k = 0; k < blocks; k++) {
      conditions += lowWord(frequency[k]);
      const share = conditions < MAX_CONDITIONS ? conditions : MAX_CONDITIONS;
      const depth = blockDepth[k] < MAX_DEPTH ? blockDepth[k] : MAX_DEPTH;
      frequency[k] = SHARES[share] * RUNS[depth] * ((blockFlags[k] & BLOCK_COLD) !== 0 ? COLD : 1);
    }
  }

  #estimateChances(v: VCode): void {
    const blocks = v.blockCount, chance = this.chance, loop = this.loop, predFirst = this.predFirst, pred = this.pred;
    const edgeFrom = v.edgeFrom, succCount = v.succCount, frequency = this.frequency;
    for (let k = 0; k < blocks; k++) {
      let sum: f64 = 0;
      const end = predFirst[k + 1];
      for (let j = predFirst[k]; j < end && sum < 1; j++) {
        const from = edgeFrom[pred[j]];
        if (from >= k) continue;
        const ways = succCount[from];
        // One side of a two-way branch is as likely as the frequencies imply.
        if (ways > 2) sum += chance[from] / ways;
        else if (loop[from] === loop[k]) sum += chance[from] * Math.min(frequency[k] / frequency[from], 1);
        else sum += chance[from];
      }
      chance[k] = k === 0 || sum > 1 ? 1 : sum;
    }
  }
}
