/**
 * The heads of loops in a graph of blocks. In: edges between blocks, which are numbered by their place in the code.
 * Out: blocks so that each cycle contains at least one of them, and few others: code out of line that branches back to
 * the middle of a loop makes no head of it.
 *
 * The strongly connected components of the graph are found, and of each, the head: the first block to which an edge
 * leads back from inside. Without it, the component falls apart into others, in which inner loops are found likewise
 * (Bourdoncle: Efficient chaotic iteration strategies with widenings, 1993).
 */
import { grown } from "../base/columns.ts";

/** The component of blocks that are in no cycle any more. */
const NONE = -1;

export class LoopHeads {
  #blocks = 0;
  #edges = 0;
  #from: Int32Array = new Int32Array(256);
  #to: Int32Array = new Int32Array(256);
  /** By block: the first of its edges, which are sorted; one more entry has the end. */
  #first: Int32Array = new Int32Array(256);
  #next: Int32Array = new Int32Array(256);
  /** By block: the component that is being taken apart, its number in the search, and the lowest number it reaches. */
  #component: Int32Array = new Int32Array(256);
  #number: Int32Array = new Int32Array(256);
  #lowest: Int32Array = new Int32Array(256);
  /** By block: the edge that the search follows next. */
  #edge: Int32Array = new Int32Array(256);
  #heads: Uint8Array = new Uint8Array(256);

  /** Begins a graph of `blocks` blocks without edges. */
  begin(blocks: number): void {
    this.#blocks = blocks;
    this.#edges = 0;
    if (blocks < this.#number.length) return;
    const size = blocks * 2;
    this.#first = new Int32Array(size);
    this.#component = new Int32Array(size);
    this.#number = new Int32Array(size);
    this.#lowest = new Int32Array(size);
    this.#edge = new Int32Array(size);
    this.#heads = new Uint8Array(size);
  }

  /** Control may go from block `from` to block `to`. */
  add(from: number, to: number): void {
    const at = this.#edges++;
    if (at === this.#from.length) {
      this.#from = grown(this.#from, at * 2);
      this.#to = grown(this.#to, at * 2);
    }
    this.#from[at] = from;
    this.#to[at] = to;
  }

  /** By block: 1 for heads of loops. The result is valid until the next graph begins. */
  find(): Uint8Array {
    const blocks = this.#blocks, heads = this.#heads;
    heads.fill(0, 0, blocks);
    this.#sortEdges();
    const component = this.#component.fill(0, 0, blocks);
    const parts: number[][] = [Array.from({ length: blocks }, (_, k) => k)];
    let components = 0;
    for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
      for (const cycle of this.#cyclesOf(part)) {
        components++;
        for (const k of cycle) component[k] = components;
        const head = this.#headOf(cycle);
        heads[head] = 1;
        component[head] = NONE;
        if (cycle.length > 1) parts.push(cycle.filter((k) => k !== head));
      }
    }
    return heads;
  }

  /** Sorts the edges by their first block. */
  #sortEdges(): void {
    const count = this.#edges, first = this.#first.fill(0, 0, this.#blocks + 1);
    for (let e = 0; e < count; e++) first[this.#from[e] + 1]++;
    for (let k = 0; k < this.#blocks; k++) first[k + 1] += first[k];
    if (count > this.#next.length) this.#next = new Int32Array(count * 2);
    const place = this.#edge;
    for (let k = 0; k < this.#blocks; k++) place[k] = first[k];
    for (let e = 0; e < count; e++) this.#next[place[this.#from[e]]++] = this.#to[e];
  }

  /** The first block of a cycle to which an edge from it, or from a later block of the component, leads. */
  #headOf(cycle: readonly number[]): number {
    let head = Infinity;
    for (const k of cycle) {
      for (let e = this.#first[k]; e < this.#first[k + 1]; e++) {
        const to = this.#next[e];
        if (to <= k && to < head && this.#component[to] === this.#component[k]) head = to;
      }
    }
    return head;
  }

  /** The strongly connected components with a cycle among the blocks of `part`, which is one component (Tarjan). */
  #cyclesOf(part: readonly number[]): number[][] {
    const [first] = part;
    if (first === undefined) return [];
    const number = this.#number, own = this.#component[first];
    const found: number[][] = [], stack: number[] = [];
    for (const k of part) number[k] = 0;
    let numbers = 0;
    for (const root of part) {
      if (number[root] === 0) numbers = this.#search(root, own, numbers, stack, found);
    }
    return found;
  }

  /** Searches from block `root`; `stack`: blocks whose component is not known. Returns the last number given. */
  #search(root: number, own: number, numbers: number, stack: number[], found: number[][]): number {
    const number = this.#number, lowest = this.#lowest, edge = this.#edge, component = this.#component;
    const path = [root];
    const enter = (k: number) => {
      number[k] = lowest[k] = ++numbers;
      edge[k] = this.#first[k];
      stack.push(k);
    };
    enter(root);
    while (path.length > 0) {
      const k = path[path.length - 1];
      if (edge[k] < this.#first[k + 1]) {
        const to = this.#next[edge[k]++];
        if (component[to] !== own) continue;
        if (number[to] === 0) {
          enter(to);
          path.push(to);
        } else if (number[to] > 0) lowest[k] = Math.min(lowest[k], number[to]);
        continue;
      }
      path.pop();
      const parent = path[path.length - 1];
      if (parent !== undefined) lowest[parent] = Math.min(lowest[parent], lowest[k]);
      if (lowest[k] === number[k]) this.#close(k, stack, found);
    }
    return numbers;
  }

  /** The blocks on the stack from `k` on are a component; those that are in no cycle are left out. */
  #close(k: number, stack: number[], found: number[][]): void {
    const blocks = stack.splice(stack.lastIndexOf(k));
    // Blocks of closed components are no longer on the stack.
    for (const block of blocks) this.#number[block] = -1;
    if (blocks.length > 1 || this.#isOwnSuccessor(k)) found.push(blocks);
    else this.#component[k] = NONE;
  }

  #isOwnSuccessor(k: number): boolean {
    for (let e = this.#first[k]; e < this.#first[k + 1]; e++) if (this.#next[e] === k) return true;
    return false;
  }
}
