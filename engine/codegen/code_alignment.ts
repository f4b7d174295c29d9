/**
 * Alignment of optimized code. In: a function's VCode. Out: the alignment of the function and of its blocks, in bytes.
 *
 * Branch predictors and caches of decoded instructions have a few entries for each 32 or 64 bytes of code. The branches
 * of a short loop should share as few such ranges as possible, and the many short cases of an interpreter should not
 * share one: without alignment, the time of such loops changes by half with their place.
 *
 * Invariant: a block's alignment divides that of its function, so the bytes of a function do not depend on its place.
 */
import { BLOCK_LOOP } from "../ir/function.ts";
import { FUNCTION_ALIGNMENT } from "./align_image.ts";
import { MAX_COMPARED_CASES, PSEUDO } from "./pseudo_ops.ts";
import type { VCode } from "./vcode.ts";

/** Alignment of innermost loops. */
const LOOP_ALIGNMENT = 16;
/** The same on targets with wide alignment. With calls, the padding before the loop would cost more than it gains. */
const WIDE_LOOP_ALIGNMENT = 32;
/** Alignment of loops that jump through a table, and of its cases, on targets with wide alignment. */
const DISPATCH_ALIGNMENT = 64;
const CASE_ALIGNMENT = 32;

/** Facts about a loop. */
const OUTER = 1;
const CALLS = 2;
const DISPATCHES = 4;

export class CodeAlignment {
  /** The alignment of the function. */
  ofFunction = 1;
  /** The alignment of each block; 1: none. */
  ofBlock: Uint8Array = new Uint8Array(64);
  /** By head of a loop: the facts about it. */
  #facts: Uint8Array = new Uint8Array(64);
  /** By depth: the head of the current loop. */
  #head: Int32Array = new Int32Array(64);
  /** Edges into each block from jump tables in loops. */
  #tableEdges: Int32Array = new Int32Array(64);

  /** Computes all alignments of `v`. `wide`: as the target says; `predecessors`: edges into each block. */
  compute(v: VCode, predecessors: Int32Array, wide: boolean): void {
    const n = v.blockCount;
    if (this.ofBlock.length < n) {
      this.ofBlock = new Uint8Array(n * 2);
      this.#facts = new Uint8Array(n * 2);
      this.#head = new Int32Array(n * 2);
      this.#tableEdges = new Int32Array(n * 2);
    }
    this.ofBlock.fill(1, 0, n);
    this.#facts.fill(0, 0, n);
    this.#tableEdges.fill(0, 0, n);
    this.ofFunction = FUNCTION_ALIGNMENT;
    this.#findFacts(v, wide);
    for (let k = 0; k < n; k++) {
      let alignment = 1;
      if ((v.blockFlags[k] & BLOCK_LOOP) !== 0) alignment = alignmentOfLoop(this.#facts[k], wide);
      else if (this.#tableEdges[k] > 0 && this.#tableEdges[k] === predecessors[k]) alignment = CASE_ALIGNMENT;
      this.ofBlock[k] = alignment;
      if (alignment > this.ofFunction) this.ofFunction = alignment;
    }
  }

  /** Finds the facts about each loop; the blocks of a loop follow its head. Cases only if `wide`. */
  #findFacts(v: VCode, wide: boolean): void {
    const { blockCount, blockDepth, blockFlags, succ, succStart, succCount, edgeTo } = v;
    const head = this.#head;
    const facts = this.#facts;
    for (let k = 0; k < blockCount; k++) {
      const depth = blockDepth[k];
      if (depth === 0) continue;
      if ((blockFlags[k] & BLOCK_LOOP) !== 0) {
        if (depth > 1) facts[head[depth - 1]] = facts[head[depth - 1]] | OUTER;
        head[depth] = k;
      }
      if (!wide) continue;
      const loop = head[depth];
      if (v.hasCalls && hasCall(v, k)) facts[loop] = facts[loop] | CALLS;
      if (!jumpsByTable(v, k)) continue;
      facts[loop] = facts[loop] | DISPATCHES;
      for (let j = 0; j < succCount[k]; j++) {
        const to = edgeTo[succ[succStart[k] + j]];
        this.#tableEdges[to] = this.#tableEdges[to] + 1;
      }
    }
  }
}

function alignmentOfLoop(facts: number, wide: boolean): number {
  if ((facts & DISPATCHES) !== 0) return DISPATCH_ALIGNMENT;
  if ((facts & OUTER) !== 0) return 1;
  return wide && (facts & CALLS) === 0 ? WIDE_LOOP_ALIGNMENT : LOOP_ALIGNMENT;
}

/** Whether block `k` ends with a jump through a table. */
function jumpsByTable(v: VCode, k: number): boolean {
  return v.succCount[k] > MAX_COMPARED_CASES + 1 && v.op[v.blockFirst[k + 1] - 1] === PSEUDO.SWITCH;
}

function hasCall(v: VCode, k: number): boolean {
  for (let i = v.blockFirst[k]; i < v.blockFirst[k + 1]; i++) {
    if (v.op[i] >= PSEUDO.CALL && v.op[i] < PSEUDO.TAIL_CALL) return true;
  }
  return false;
}
