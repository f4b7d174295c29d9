/**
 * Global promotion: a mutable global (or the thread's fuel) that a loop without calls reads and writes becomes an SSA
 * value inside the loop. In: a function, its loops and the classes that they write. Out: the loop's reads are gone; a
 * read in front of the loop and block parameters carry the value.
 *
 * Writes stay where they are, so a trap or an exit at any point finds every global with its exact value, and nothing
 * has to be written back after the loop. The gain is the latency of reading the value that the preceding iteration
 * wrote.
 *
 * The control flow is structured, so one forward sweep over the loop's blocks is enough: a header of a loop that writes
 * gets a parameter, another block gets one where its predecessors disagree (unused ones are removed by dead_code.ts).
 */
import type { IrFunction } from "../ir/function.ts";
import { CLASS_CONSTANT, REGION, region, regionClass, regionKind } from "../ir/regions.ts";
import { OP, OP_HAS_LIST, OP_VALUE_MASK } from "../ir/ops.ts";
import { type ControlFlow, successorAt, successorCount } from "./cfg.ts";
import { isLoad, isStore, type MemoryState } from "./memory_state.ts";
import { definingBlocks } from "./uses.ts";

const CONSTANT_CONTEXT = region(REGION.CONTEXT, CLASS_CONSTANT);
const { LOAD, STORE, PARAM } = OP;
/**
 * Most promotions and attempts per function, and loops that one crosses: they bound the work, which is a sweep over the
 * loop each.
 */
const MAX_PROMOTIONS = 16, MAX_TRIES = 64, MAX_LEVELS = 16;

/**
 * Promotes globals in the loops of `f`; returns how many. `flow` and `memory` must be current. Dead parameters may be
 * left.
 */
export function promoteGlobals(f: IrFunction, flow: ControlFlow, memory: MemoryState): number {
  if (flow.loopCount === 0) return 0;
  const first = firstCandidate(f, flow, memory);
  if (first < 0) return 0;
  const promotion = new Promotion(f, flow, memory);
  let count = 0;
  const { sched, blockStart, blockEnd, blockCount } = f;
  const { loopOf } = flow;
  for (let k = first; k < blockCount && count < MAX_PROMOTIONS; k++) {
    if (loopOf[k] < 0 || memory.loopCalls(loopOf[k])) continue;
    for (let s = blockStart[k]; s < blockEnd[k] && count < MAX_PROMOTIONS; s++) {
      const i = sched[s];
      if (!storesCell(f, i)) continue;
      if (promotion.tries === MAX_TRIES) break;
      if (promotion.tried(i, loopOf[k])) continue;
      if (promotion.promote(i, loopOf[k])) count++;
    }
  }
  if (count > 0) promotion.finish();
  return count;
}

/** The first block of a loop without calls that stores to a cell; −1 for none. */
function firstCandidate(f: IrFunction, flow: ControlFlow, memory: MemoryState): number {
  const { sched, blockStart, blockEnd, blockCount } = f;
  const { loopOf } = flow;
  for (let k = 0; k < blockCount; k++) {
    if (loopOf[k] < 0 || memory.loopCalls(loopOf[k])) continue;
    for (let s = blockStart[k]; s < blockEnd[k]; s++) if (storesCell(f, sched[s])) return k;
  }
  return -1;
}

function storesCell(f: IrFunction, i: number): boolean {
  return f.op[i] === STORE && isCell(f, i);
}

/**
 * Whether access `i` touches a cell that stays mapped as long as the context: a slot of the context, or, at a constant
 * offset, the target of a constant of the context (an imported global's cell, the thread's fuel).
 */
function isCell(f: IrFunction, i: number): boolean {
  const kind = regionKind(f.c[i]);
  if (kind !== REGION.POINTER) return kind === REGION.CONTEXT;
  const pointer = f.a[i];
  return f.op[pointer] === LOAD && f.c[pointer] === CONSTANT_CONTEXT;
}

class Promotion {
  readonly #f: IrFunction;
  readonly #flow: ControlFlow;
  readonly #memory: MemoryState;
  /** Loops and region words already considered, as pairs. */
  readonly #tried: number[] = [];
  tries = 0;
  /** The replacement of a removed read. */
  readonly #replaced = new Map<number, number>();
  /** By block of the current range: 1 if it belongs to the loop. */
  readonly #member: Uint8Array;
  /** By block: parameters to add, reads to append. */
  readonly #params = new Map<number, number[]>();
  readonly #reads = new Map<number, number[]>();
  /** By value: the block that defines it; empty until it is needed. */
  #home: Int32Array = new Int32Array(0);

  constructor(f: IrFunction, flow: ControlFlow, memory: MemoryState) {
    this.#f = f;
    this.#flow = flow;
    this.#memory = memory;
    this.#member = new Uint8Array(f.blockCount);
  }

  /** The outermost loop around `loop` (itself included) without calls and with a block in front; −1 for none. */
  #region(loop: number): number {
    let found = -1;
    let levels = 0;
    for (let l = loop; l >= 0 && !this.#memory.loopCalls(l); l = this.#flow.loopParent[l]) {
      if (levels++ === MAX_LEVELS) break;
      if (this.#flow.front(this.#f, l) >= 0) found = l;
    }
    return found;
  }

  /** Whether the global that `store` writes was already considered around `loop`; from now on it was. */
  tried(store: number, loop: number): boolean {
    const region = this.#region(loop), word = this.#f.c[store];
    for (let n = 0; n < this.#tried.length; n += 2) {
      if (this.#tried[n] === region && this.#tried[n + 1] === word) return true;
    }
    this.#tried.push(region);
    this.#tried.push(word);
    this.tries++;
    return false;
  }

  /** Sets #member for the blocks of the loop of `head` within its range. */
  #markMembers(head: number): void {
    const { loopOf, loopParent, loopEnd } = this.#flow;
    const member = this.#member;
    member[head] = 1;
    for (let k = head + 1, end = loopEnd[head]; k < end; k++) {
      const around = loopOf[k] === k ? loopParent[k] : loopOf[k];
      member[k] = around >= head ? member[around] : 0;
    }
  }

  /** Promotes the global that `store` writes, around `inner`. */
  promote(store: number, inner: number): boolean {
    const head = this.#region(inner);
    if (head < 0) return false;
    this.#markMembers(head);
    if (!this.#fits(store, head)) return false;
    const f = this.#f;
    const ty = f.ty[f.b[store]], word = f.c[store], offset = f.imm[store], pointer = f.a[store];
    const front = this.#flow.front(f, head);
    const end = this.#flow.loopEnd[head];
    f.ensure(f.count + (end - head) + 1);
    const read = f.append(LOAD, ty, pointer, 0, word, offset);
    list(this.#reads, front).push(read);
    const leaving = new Map<number, number>();
    leaving.set(front, read);
    const added: number[] = [];
    const member = this.#member;
    for (let k = head; k < end; k++) {
      if (member[k] === 0) continue;
      let value = k !== head ? this.#agreed(k, regionClass(word), leaving) : 0;
      if (value === 0) {
        value = f.append(PARAM, ty, 0, 0, 0, 0);
        added.push(k);
        added.push(value);
      }
      for (let s = f.blockStart[k]; s < f.blockEnd[k]; s++) {
        const i = f.sched[s];
        if (f.op[i] === STORE && f.c[i] === word) value = f.b[i];
        else if (f.op[i] === LOAD && f.c[i] === word) this.#replaced.set(i, value);
      }
      leaving.set(k, value);
    }
    for (let n = 0; n < added.length; n += 2) this.#addParam(added[n], added[n + 1], leaving);
    return true;
  }

  /** Whether every access of the class in the loop is a full one of the same global, and at least one is a read. */
  #fits(store: number, head: number): boolean {
    const f = this.#f;
    const { op, ty, a, b, c, imm } = f;
    const word = c[store], type = ty[b[store]], offset = imm[store], pointer = a[store];
    if (pointer !== 0) {
      if (this.#home.length === 0) this.#home = definingBlocks(f);
      if (this.#home[pointer] >= head) return false;
    }
    const member = this.#member;
    let reads = 0;
    for (let k = head, end = this.#flow.loopEnd[head]; k < end; k++) {
      if (member[k] === 0) continue;
      for (let s = f.blockStart[k]; s < f.blockEnd[k]; s++) {
        const i = f.sched[s];
        const o = op[i];
        if ((!isLoad(o) && !isStore(o)) || regionClass(c[i]) !== regionClass(word)) continue;
        if (c[i] !== word || imm[i] !== offset || a[i] !== pointer) return false;
        if (o === STORE) {
          if (ty[b[i]] !== type) return false;
        } else if (o === LOAD) {
          if (ty[i] !== type) return false;
          if (!this.#replaced.has(i)) reads++;
        } else return false;
      }
    }
    return reads > 0;
  }

  /**
   * The value that the global has at the end of all predecessors before `k`; 0 if they differ, or if `k` is the header
   * of a loop that writes the class.
   */
  #agreed(k: number, aliasClass: number, leaving: ReadonlyMap<number, number>): number {
    const { predStart, predEdge, loopEnd } = this.#flow;
    if (loopEnd[k] > 0 && this.#memory.loopMayWrite(k, aliasClass)) return 0;
    let value = 0;
    for (let p = predStart[k], end = predStart[k + 1]; p < end; p++) {
      const from = this.#f.edgeFrom[predEdge[p]];
      if (from >= k) continue;
      const leaves = leaving.get(from)!;
      if (value !== 0 && leaves !== value) return 0;
      value = leaves;
    }
    return value;
  }

  /** Adds a parameter to block `k`, and to each edge to it the value that the global has at the end of its block. */
  #addParam(k: number, param: number, leaving: ReadonlyMap<number, number>): void {
    const f = this.#f;
    const { predStart, predEdge } = this.#flow;
    const count = f.blockParams[k] + list(this.#params, k).length;
    list(this.#params, k).push(param);
    f.imm[param] = count;
    for (let p = predStart[k], end = predStart[k + 1]; p < end; p++) {
      const e = predEdge[p];
      const args = f.allocPool(count + 1);
      f.pool.copyWithin(args, f.edgeArgs[e], f.edgeArgs[e] + count);
      f.pool[args + count] = leaving.get(f.edgeFrom[e])!;
      f.edgeArgs[e] = args;
    }
  }

  #resolve(v: number): number {
    while (this.#replaced.has(v)) v = this.#replaced.get(v)!;
    return v;
  }

  /** Inserts the new parameters and reads into the order, drops the replaced reads, and rewrites their uses. */
  finish(): void {
    const f = this.#f;
    f.ensure(f.count + 1);
    const order = new Int32Array(f.schedCount + f.count);
    let to = 0;
    for (let k = 0; k < f.blockCount; k++) {
      const start = f.blockStart[k], end = f.blockEnd[k] - 1, params = f.blockParams[k];
      f.blockStart[k] = to;
      for (let s = start; s < start + params; s++) order[to++] = f.sched[s];
      if (this.#params.has(k)) { for (const param of this.#params.get(k)!) order[to++] = param; }
      f.blockParams[k] = to - f.blockStart[k];
      for (let s = start + params; s < end; s++) {
        const i = f.sched[s];
        if (this.#replaced.has(i)) continue;
        this.#resolveOperands(i);
        order[to++] = i;
      }
      if (this.#reads.has(k)) { for (const read of this.#reads.get(k)!) order[to++] = read; }
      const last = f.sched[end];
      this.#resolveOperands(last);
      order[to++] = last;
      f.blockEnd[k] = to;
    }
    for (let k = 0; k < f.blockCount; k++) {
      const last = order[f.blockEnd[k] - 1];
      for (let n = successorCount(f, last) - 1; n >= 0; n--) {
        const e = successorAt(f, last, n);
        const first = f.edgeArgs[e];
        for (let p = first; p < first + f.blockParams[f.edgeTo[e]]; p++) f.pool[p] = this.#resolve(f.pool[p]);
      }
    }
    f.sched.set(order.subarray(0, to));
    f.schedCount = to;
  }

  #resolveOperands(i: number): void {
    const f = this.#f;
    const mask = OP_VALUE_MASK[f.op[i]];
    if (mask & 1) f.a[i] = this.#resolve(f.a[i]);
    if (mask & 2) f.b[i] = this.#resolve(f.b[i]);
    if (mask & 4) f.c[i] = this.#resolve(f.c[i]);
    if (OP_HAS_LIST[f.op[i]]) {
      for (let p = f.a[i]; p < f.a[i] + f.b[i]; p++) f.pool[p] = this.#resolve(f.pool[p]);
    }
  }
}

function list(lists: Map<number, number[]>, key: number): number[] {
  if (lists.has(key)) return lists.get(key)!;
  const made: number[] = [];
  lists.set(key, made);
  return made;
}
