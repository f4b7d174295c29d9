/**
 * Bounds-check elimination by loop versioning (key loop-precheck). In: a function, its loops. Out: in front of an
 * innermost counted loop, a test of how far its accesses will reach; if that is in bounds, a copy of the loop without
 * these checks runs, else the original loop.
 *
 *     front ──► test ──► test ──► copy of the loop, without checks ──► exits
 *       └────────┴────────┴─────► the loop ─────────────────────────────┘
 *
 * Traps are unchanged: none is added, and each happens where it did. Memories only grow, so an access that was in
 * bounds before the loop stays in bounds; for a shared memory the context's copy of the length counts, which never
 * exceeds the actual length. versioning_conditions.ts makes the conditions.
 *
 * Blocks that only the loop leads to get parameters for the loop's values that they use; both copies pass their own.
 */
import type { IrFunction } from "../ir/function.ts";
import { BRANCH_HINT, FLAG, OP, OP_FLAGS, OP_HAS_LIST, OP_VALUE_MASK } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { type ControlFlow, successorAt, successorCount } from "./cfg.ts";
import { InductionVariables } from "./induction_variables.ts";
import { definingBlocks } from "./uses.ts";
import { type Condition, VersioningConditions } from "./versioning_conditions.ts";

const { BOUNDS, BRANCH, CONST, JUMP, PARAM, SWITCH } = OP;
/**
 * Limits: loops per function, groups per loop, instructions of a loop, of all copies together, of functions considered.
 */
const MAX_LOOPS = 24, MAX_GROUPS = 6, MAX_COPIED = 200, MAX_GROWTH = 1500, MAX_INSTRUCTIONS = 40_000;
/** Most exits with uses of the loop's values: each takes a sweep over the function. */
const MAX_EXITS = 8;
/**
 * Gives loops a copy without checks; returns the number of checks removed. `flow` must be current, and is current
 * again, except for dominators.
 */
export function versionLoops(f: IrFunction, flow: ControlFlow): number {
  if (f.schedCount > MAX_INSTRUCTIONS || !hasChecks(f)) return 0;
  const heads = candidates(f, flow);
  if (heads.length === 0) return 0;
  flow.compute(f);
  const pass = new Prechecks(f, flow);
  for (const head of heads) pass.tryLoop(head);
  if (pass.removed > 0) {
    pass.finish();
    flow.computeLoops(f);
  }
  return pass.removed;
}

/** Whether there are checks: guard pages make most of them unnecessary. */
function hasChecks(f: IrFunction): boolean {
  const { op, sched, schedCount } = f;
  for (let s = 0; s < schedCount; s++) if (op[sched[s]] === BOUNDS) return true;
  return false;
}

/**
 * Headers of innermost loops with checks that are small, are entered from one block, and do nothing but compute and
 * access memory.
 */
function candidates(f: IrFunction, flow: ControlFlow): number[] {
  const { op, sched, blockStart, blockEnd, blockParams } = f;
  const { loopOf, loopParent, loopEnd } = flow;
  const checks = new Int32Array(f.blockCount), size = new Int32Array(f.blockCount);
  for (let k = 0; k < f.blockCount; k++) {
    const head = loopOf[k];
    if (head < 0) continue;
    if (k === head && loopParent[head] >= 0) size[loopParent[head]] = MAX_COPIED + 1;
    for (let s = blockStart[k] + blockParams[k]; s < blockEnd[k]; s++) {
      const o = op[sched[s]];
      if (o === BOUNDS) checks[head]++;
      size[head] += (OP_FLAGS[o] & FLAG.CALLS) !== 0 || OP_HAS_LIST[o] !== 0 ? MAX_COPIED : 1;
    }
  }
  const heads: number[] = [];
  for (let k = 1; k < f.blockCount && heads.length < MAX_LOOPS; k++) {
    if (loopEnd[k] === 0 || checks[k] === 0 || size[k] > MAX_COPIED) continue;
    if (flow.front(f, k) >= 0) heads.push(k);
  }
  return heads;
}

class Prechecks {
  removed = 0;
  readonly #f: IrFunction;
  readonly #flow: ControlFlow;
  readonly #induction: InductionVariables;
  /** Instructions of blocks that are new or were rewritten; parameters that a block gets. */
  readonly #lists = new Map<number, number[]>();
  readonly #params = new Map<number, number[]>();
  /** By header: the new blocks in front of it. */
  readonly #before = new Map<number, number[]>();
  #growth = MAX_GROWTH;

  // The loop being versioned.
  #head = 0;
  /** The block in front of it. */
  #front = 0;
  /** By value of the loop: its copy. */
  readonly #copies = new Map<number, number>();
  /** Constants of the loop that are used after it. */
  readonly #constants = new Set<number>();
  /** The exits of the loop; by exit, the loop's values that are used in the blocks it dominates. */
  #exits: number[] = [];
  #uses = new Map<number, Set<number>>();
  /** Whether an exit dominates every use of the loop's values. */
  #dominated = true;
  /** Whether uses are collected; else they are replaced, by value. */
  #collecting = false;
  #replacements = new Map<number, number>();

  constructor(f: IrFunction, flow: ControlFlow) {
    this.#f = f;
    this.#flow = flow;
    this.#induction = new InductionVariables(f, flow, definingBlocks(f));
  }

  /** Gives the loop of `head` a copy, if that can be done and pays. */
  tryLoop(head: number): void {
    const induction = this.#induction;
    induction.begin(head);
    const found = induction.findTest();
    if (found === undefined) return;
    const { groups, checks } = induction.findGroups(found.block, MAX_GROUPS);
    let size = 0;
    for (const k of induction.blocks) size += this.#f.blockEnd[k] - this.#f.blockStart[k];
    if (checks.size < 2 || size > this.#growth) return;
    if (!this.#findUses()) return;
    this.#beginLoop(head);
    const conditions = new VersioningConditions(this.#f, induction, this.#entryEdge());
    conditions.make(found.test, groups);
    if (conditions.refused || conditions.tests.length === 0) return;
    this.#growth -= size;
    this.removed += checks.size;
    this.#addExitParameters(this.#copyLoop(conditions.tests, checks));
  }

  // Values used after the loop.

  /**
   * Finds the loop's values that are used after it. Returns false if a block that no exit dominates uses one, or if too
   * many exits do.
   */
  #findUses(): boolean {
    const induction = this.#induction;
    this.#exits = induction.exits();
    this.#uses.clear();
    this.#constants.clear();
    this.#dominated = true;
    this.#collecting = true;
    for (let k = induction.blocks[0] + 1; k < induction.inLoop.length && this.#dominated; k++) {
      if (induction.inLoop[k] === 0) this.#eachUse(k);
    }
    this.#collecting = false;
    return this.#dominated && this.#uses.size <= MAX_EXITS;
  }

  /** Notes that block `k` uses `v`. */
  #note(v: number, k: number): void {
    if (!this.#induction.defined(v)) return;
    if (this.#f.op[v] === CONST) {
      this.#constants.add(v);
      return;
    }
    for (const x of this.#exits) {
      if (!this.#flow.dominates(x, k)) continue;
      if (!this.#uses.has(x)) this.#uses.set(x, new Set<number>());
      this.#uses.get(x)!.add(v);
      return;
    }
    this.#dominated = false;
  }

  /** The value in the place of `v` in block `k`. */
  #use(v: number, k: number): number {
    if (!this.#collecting) return this.#replacements.get(v) ?? v;
    this.#note(v, k);
    return v;
  }

  /** Collects or replaces the operands of block `k`, arguments of its edges included. */
  #eachUse(k: number): void {
    const f = this.#f;
    let last = f.sched[f.blockEnd[k] - 1];
    if (this.#lists.has(k)) {
      const list = this.#lists.get(k)!;
      for (const i of list) this.#eachOperand(i, k);
      last = list[list.length - 1];
    } else {
      for (let s = f.blockStart[k] + f.blockParams[k]; s < f.blockEnd[k]; s++) this.#eachOperand(f.sched[s], k);
    }
    for (let n = successorCount(f, last) - 1; n >= 0; n--) {
      const e = successorAt(f, last, n);
      const args = f.edgeArgs[e];
      for (let p = args; p < args + f.blockParams[f.edgeTo[e]]; p++) f.pool[p] = this.#use(f.pool[p], k);
    }
  }

  #eachOperand(i: number, k: number): void {
    const f = this.#f;
    const { op, a, b, c } = f;
    const mask = OP_VALUE_MASK[op[i]];
    if (mask & 1) a[i] = this.#use(a[i], k);
    if (mask & 2) b[i] = this.#use(b[i], k);
    if (mask & 4) c[i] = this.#use(c[i], k);
    if (OP_HAS_LIST[op[i]]) { for (let p = a[i]; p < a[i] + b[i]; p++) f.pool[p] = this.#use(f.pool[p], k); }
  }

  #beginLoop(head: number): void {
    this.#head = head;
    this.#front = this.#flow.front(this.#f, head);
    this.#copies.clear();
  }

  #entryEdge(): number {
    const f = this.#f;
    return f.a[f.sched[f.blockEnd[this.#front] - 1]];
  }

  // Copying the loop.

  /** Adds a block with the depth of block `like`. */
  #block(like: number, flags: number): number {
    const f = this.#f;
    const k = f.addBlock(flags, f.blockDepth[like]);
    this.#lists.set(k, []);
    return k;
  }

  /** Adds an edge from `from` to `to` with the arguments of edge `e`, those of the loop replaced by their copies. */
  #edgeLike(e: number, from: number, to: number): number {
    const f = this.#f;
    const n = f.blockParams[f.edgeTo[e]];
    const args = f.allocPool(n);
    for (let k = 0; k < n; k++) {
      const v = f.pool[f.edgeArgs[e] + k];
      f.pool[args + k] = this.#copies.get(v) ?? v;
    }
    return f.addEdge(from, to, args);
  }

  /** Copies the loop without `checks`, puts the tests in front; returns the edges of the copy that leave it. */
  #copyLoop(conditions: readonly Condition[], checks: ReadonlySet<number>): number[] {
    const f = this.#f;
    const entry = this.#entryEdge();
    // The blocks in front of the loop: the tests but the first, which the block in front makes; then the copy.
    const before: number[] = [], twin = new Map<number, number>();
    for (let n = 1; n < conditions.length; n++) before.push(this.#block(this.#front, 0));
    const fast = this.#block(this.#front, 0);
    before.push(fast);
    for (const k of this.#induction.blocks) {
      const copy = this.#block(k, f.blockFlags[k]);
      twin.set(k, copy);
      before.push(copy);
    }
    const slow = this.#block(this.#front, 0);
    before.push(slow);
    this.#before.set(this.#head, before);

    const jump = f.sched[f.blockEnd[this.#front] - 1];
    this.#ownList(this.#front).pop();
    let from = this.#front;
    for (let n = 0; n < conditions.length; n++) {
      const { list, condition } = conditions[n];
      const yes = f.addEdge(from, before[n], 0), no = f.addEdge(from, slow, 0);
      const test = this.#lists.get(from)!;
      for (const i of list) test.push(i);
      test.push(f.append(BRANCH, TY.NONE, condition, yes, no, BRANCH_HINT.LIKELY));
      from = before[n];
    }
    f.edgeFrom[entry] = slow;
    this.#lists.get(slow)!.push(jump);
    this.#lists.get(fast)!.push(
      f.append(JUMP, TY.NONE, this.#edgeLike(entry, fast, twin.get(this.#head)!), 0, 0, 0),
    );
    return this.#copyBlocks(checks, twin);
  }

  /** The instructions of block `k` as a list that can change. */
  #ownList(k: number): number[] {
    if (this.#lists.has(k)) return this.#lists.get(k)!;
    const f = this.#f;
    const list: number[] = [];
    for (let s = f.blockStart[k] + f.blockParams[k]; s < f.blockEnd[k]; s++) list.push(f.sched[s]);
    this.#lists.set(k, list);
    return list;
  }

  /** The copy of `v`, or `v` itself if it has none or is no value. */
  #copied(v: number, isValue: boolean): number {
    return isValue ? this.#copies.get(v) ?? v : v;
  }

  #copyBlocks(checks: ReadonlySet<number>, twin: ReadonlyMap<number, number>): number[] {
    const f = this.#f, copies = this.#copies;
    const leaving: number[] = [];
    for (const [k, to] of twin) {
      const list = this.#lists.get(to)!;
      f.blockParams[to] = f.blockParams[k];
      for (let s = f.blockStart[k]; s < f.blockEnd[k]; s++) {
        const i = f.sched[s];
        if (checks.has(i)) continue;
        const mask = OP_VALUE_MASK[f.op[i]];
        const a = this.#copied(f.a[i], (mask & 1) !== 0);
        const b = this.#copied(f.b[i], (mask & 2) !== 0);
        const c = this.#copied(f.c[i], (mask & 4) !== 0);
        const copy = f.append(f.op[i], f.ty[i], a, b, c, f.imm[i]);
        f.pos[copy] = f.pos[i];
        f.site[copy] = f.site[i];
        copies.set(i, copy);
        list.push(copy);
      }
    }
    for (const [k, to] of twin) {
      const list = this.#lists.get(to)!;
      const end = f.sched[f.blockEnd[k] - 1], copy = list[list.length - 1];
      const edges: number[] = [];
      for (let n = 0; n < successorCount(f, end); n++) {
        const e = successorAt(f, end, n);
        const target = f.edgeTo[e];
        edges.push(this.#edgeLike(e, to, twin.get(target) ?? target));
        if (!twin.has(target)) leaving.push(edges[n]);
      }
      if (f.op[end] === JUMP) f.a[copy] = edges[0];
      else {
        f.b[copy] = edges[0];
        if (f.op[end] !== SWITCH) f.c[copy] = edges[1];
      }
    }
    return leaving;
  }

  /** Gives the exits parameters for the values used after the loop. `leaving` are the edges that leave the copy. */
  #addExitParameters(leaving: readonly number[]): void {
    const f = this.#f, flow = this.#flow;
    this.#shareConstants();
    for (const [x, values] of this.#uses) {
      const wanted: number[] = [], params: number[] = [];
      const count = f.blockParams[x];
      this.#replacements.clear();
      for (const v of values) {
        const param = f.append(PARAM, f.ty[v], 0, 0, 0, count + wanted.length);
        this.#replacements.set(v, param);
        wanted.push(v);
        params.push(param);
      }
      for (let k = x; k < this.#induction.inLoop.length; k++) if (flow.dominates(x, k)) this.#eachUse(k);
      this.#params.set(x, params);
      for (let p = flow.predStart[x]; p < flow.predStart[x + 1]; p++) {
        this.#addArguments(flow.predEdge[p], count, wanted, false);
      }
      for (const e of leaving) if (f.edgeTo[e] === x) this.#addArguments(e, count, wanted, true);
    }
  }

  /** Adds `values`, or their copies, to the `count` arguments of edge `e`. */
  #addArguments(e: number, count: number, values: readonly number[], areCopies: boolean): void {
    const f = this.#f;
    const args = f.allocPool(count + values.length);
    f.pool.copyWithin(args, f.edgeArgs[e], f.edgeArgs[e] + count);
    for (let n = 0; n < values.length; n++) f.pool[args + count + n] = this.#copied(values[n], areCopies);
    f.edgeArgs[e] = args;
  }

  /** Copies constants of the loop that are used after it to the block in front of it, for those uses. */
  #shareConstants(): void {
    if (this.#constants.size === 0) return;
    const f = this.#f, induction = this.#induction;
    const list: number[] = [];
    this.#replacements.clear();
    for (const v of this.#constants) {
      const shared = f.append(CONST, f.ty[v], 0, 0, f.c[v], f.imm[v]);
      this.#replacements.set(v, shared);
      list.push(shared);
    }
    for (const i of this.#ownList(this.#front)) list.push(i);
    this.#lists.set(this.#front, list);
    for (let k = this.#head + 1; k < induction.inLoop.length; k++) {
      if (induction.inLoop[k] === 0) this.#eachUse(k);
    }
  }

  // The new order of blocks.

  /**
   * Appends `blocks` and the new blocks in front of them to `order`. Blocks inside the range of a versioned loop that
   * do not belong to it come after both of its copies, since both lead there.
   */
  #orderBlocks(blocks: readonly number[], order: number[]): void {
    const { loopOf, loopEnd } = this.#flow;
    for (let n = 0; n < blocks.length; n++) {
      const k = blocks[n];
      if (!this.#before.has(k)) {
        order.push(k);
        continue;
      }
      const left: number[] = [];
      for (const added of this.#before.get(k)!) order.push(added);
      for (; n < blocks.length && blocks[n] < loopEnd[k]; n++) {
        (loopOf[blocks[n]] === k ? order : left).push(blocks[n]);
      }
      n--;
      this.#orderBlocks(left, order);
    }
  }

  /** Inserts the new blocks at their positions, and rebuilds the order. */
  finish(): void {
    const f = this.#f;
    const before = this.#induction.inLoop.length;
    const blocks: number[] = [], order: number[] = [];
    for (let k = 0; k < before; k++) blocks.push(k);
    this.#orderBlocks(blocks, order);
    const count = order.length;
    const number = new Int32Array(f.blockCount), sched: number[] = [];
    const blockStart = new Int32Array(count), blockEnd = new Int32Array(count), blockParams = new Int32Array(count);
    const blockFlags = new Int32Array(count), blockDepth = new Int32Array(count);
    for (let n = 0; n < count; n++) {
      const k = order[n];
      number[k] = n;
      blockStart[n] = sched.length;
      blockParams[n] = f.blockParams[k];
      blockFlags[n] = f.blockFlags[k];
      blockDepth[n] = f.blockDepth[k];
      const params = f.blockStart[k] + f.blockParams[k];
      if (k < before) { for (let s = f.blockStart[k]; s < params; s++) sched.push(f.sched[s]); }
      if (this.#params.has(k)) {
        const added = this.#params.get(k)!;
        for (const param of added) sched.push(param);
        blockParams[n] += added.length;
      }
      if (this.#lists.has(k)) { for (const i of this.#lists.get(k)!) sched.push(i); }
      else for (let s = params; s < f.blockEnd[k]; s++) sched.push(f.sched[s]);
      blockEnd[n] = sched.length;
    }
    f.blockStart.set(blockStart);
    f.blockEnd.set(blockEnd);
    f.blockParams.set(blockParams);
    f.blockFlags.set(blockFlags);
    f.blockDepth.set(blockDepth);
    for (let n = 0; n < count; n++) f.layout[n] = n;
    for (let e = 0; e < f.edgeCount; e++) {
      if (f.edgeFrom[e] < 0) continue;
      f.edgeFrom[e] = number[f.edgeFrom[e]];
      f.edgeTo[e] = number[f.edgeTo[e]];
    }
    f.ensure(sched.length);
    f.sched.set(sched);
    f.schedCount = sched.length;
  }
}
