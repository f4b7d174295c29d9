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
/** The same of loops of few instructions, most of which then fit in one such range of 64 bytes. */
const SHORT_LOOP_ALIGNMENT = 64;
/** The maximum number of instructions of such a loop. */
const SHORT_LOOP = 16;
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
  /** By depth: the head of the current loop, or −1. */
  #head: Int32Array = new Int32Array(64);
  /** By head of a loop: the number of instructions outside of inner loops. */
  #length: Int32Array = new Int32Array(64);
  /** By block: the head of its innermost loop, or −1. */
  #loop: Int32Array = new Int32Array(64);
  /** By head of a loop: the head of the loop around it, or −1. */
  #outer: Int32Array = new Int32Array(64);
  /** By head of a loop: 1 if a block of it has been placed. */
  #begun: Uint8Array = new Uint8Array(64);
  /** Edges into each block from jump tables in loops. */
  #tableEdges: Int32Array = new Int32Array(64);

  /**
   * Computes all alignments of `v`. `wide`: as the target says; `predecessors`: edges into each block; `target`:
   * another block for those that are not emitted.
   */
  compute(v: VCode, predecessors: Int32Array, target: Int32Array, wide: boolean): void {
    const n = v.blockCount;
    if (this.ofBlock.length < n) {
      this.ofBlock = new Uint8Array(n * 2);
      this.#facts = new Uint8Array(n * 2);
      this.#length = new Int32Array(n * 2);
      this.#loop = new Int32Array(n * 2);
      this.#outer = new Int32Array(n * 2);
      this.#begun = new Uint8Array(n * 2);
      this.#tableEdges = new Int32Array(n * 2);
    }
    this.ofBlock.fill(1, 0, n);
    this.#facts.fill(0, 0, n);
    this.#tableEdges.fill(0, 0, n);
    this.ofFunction = FUNCTION_ALIGNMENT;
    this.#findFacts(v, wide);
    this.#begun.fill(0, 0, n);
    for (let p = 0; p < n; p++) {
      const k = v.layout[p];
      if (target[k] !== k) continue;
      let alignment = 1;
      // A loop begins with the first block that is placed, which is not its head if that is at the bottom: the padding
      // in front of the head would be executed in each iteration.
      for (let loop = this.#loop[k]; loop >= 0 && this.#begun[loop] === 0; loop = this.#outer[loop]) {
        this.#begun[loop] = 1;
        const own = alignmentOfLoop(this.#facts[loop], this.#length[loop], wide);
        if (own > alignment) alignment = own;
      }
      if (alignment === 1 && this.#tableEdges[k] > 0 && this.#tableEdges[k] === predecessors[k]) {
        alignment = CASE_ALIGNMENT;
      }
      this.ofBlock[k] = alignment;
      if (alignment > this.ofFunction) this.ofFunction = alignment;
    }
  }

  /** Finds the facts about each loop; the blocks of a loop follow its head. Cases only if `wide`. */
  #findFacts(v: VCode, wide: boolean): void {
    const { blockCount, blockDepth, blockFlags, succ, succStart, succCount, edgeTo } = v;
    let deepest = 0;
    for (let k = 0; k < blockCount; k++) if (blockDepth[k] > deepest) deepest = blockDepth[k];
    if (deepest >= this.#head.length) this.#head = new Int32Array(deepest * 2);
    this.#head.fill(-1, 0, deepest + 1);
    const head = this.#head;
    const outer = this.#outer;
    const length = this.#length;
    const facts = this.#facts;
    for (let k = 0; k < blockCount; k++) {
      const depth = blockDepth[k];
      this.#loop[k] = -1;
      if (depth === 0) continue;
      if ((blockFlags[k] & BLOCK_LOOP) !== 0) {
        outer[k] = depth > 1 ? head[depth - 1] : -1;
        length[k] = 0;
        if (outer[k] >= 0) facts[outer[k]] = facts[outer[k]] | OUTER;
        head[depth] = k;
      }
      const loop = head[depth];
      this.#loop[k] = loop;
      // Code that is entered in a loop has blocks of that depth outside of all loops.
      if (loop >= 0) length[loop] = length[loop] + v.blockFirst[k + 1] - v.blockFirst[k];
      if (!wide) continue;
      if (loop >= 0 && v.hasCalls && hasCall(v, k)) facts[loop] = facts[loop] | CALLS;
      if (!jumpsByTable(v, k)) continue;
      if (loop >= 0) facts[loop] = facts[loop] | DISPATCHES;
      for (let j = 0; j < succCount[k]; j++) {
        const to = edgeTo[succ[succStart[k] + j]];
        this.#tableEdges[to] = this.#tableEdges[to] + 1;
      }
    }
  }
}

function alignmentOfLoop(facts: number, length: number, wide: boolean): number {
  if ((facts & DISPATCHES) !== 0) return DISPATCH_ALIGNMENT;
  if ((facts & OUTER) !== 0) return 1;
  if (!wide || (facts & CALLS) !== 0) return LOOP_ALIGNMENT;
  return length <= SHORT_LOOP ? SHORT_LOOP_ALIGNMENT : WIDE_LOOP_ALIGNMENT;
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
