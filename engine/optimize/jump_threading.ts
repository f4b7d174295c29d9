/**
 * Jump threading: a block that only branches on its parameter, as compilers generate for `a && b` and for `x != null &&
 * x is T`. In: a function as translated. Out: an edge that passes a constant to such a block goes directly to the
 * target that the constant selects; an edge that passes another value branches on that value itself. GVN (gvn.ts) then
 * sees one way into the target, and knows the tested condition there.
 *
 * A block is a candidate if at least one edge passes a constant, its values are used only inside it, and its edges
 * pass none but its parameters. It disappears unless an edge to it remains: one of a switch, or one that passes
 * another value from a block with several successors.
 *
 * Invariant: no block is added and none changes its place, so the order stays a reverse postorder; loops are entered at
 * their headers as before.
 */
import { BLOCK_LOOP, type IrFunction } from "../ir/function.ts";
import { OP, OP_VALUE_MASK, oppositeHint } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { compactBlocks, cutEdge } from "./blocks.ts";
import type { Scratch } from "./scratch.ts";
import { countUses } from "./uses.ts";

const { BRANCH, CONST, EQ, JUMP, NE, PARAM, SWITCH, UNWOUND } = OP;
/** Most instructions of a candidate after its parameters: a zero, a comparison with it, the branch. */
const MAX_INSTRUCTIONS = 3;

/** Room for copied arguments. */
interface Room {
  left: number;
}

/** Threads branches of `f`. Returns how many blocks were threaded. */
export function threadJumps(f: IrFunction, scratch: Scratch): number {
  const last = lastCandidate(f);
  if (last === 0) return 0;
  scratch.ensure(f);
  const uses = scratch.values, first = scratch.blocks, next = scratch.edges;
  countUses(f, uses);
  linkEdges(f, first, next);
  const { op, sched, blockStart, edgeArgs } = f;
  // Copied arguments must not make a function much larger than it was.
  const room: Room = { left: f.count + 256 };
  let threaded = 0;
  // Backwards, so that a chain of such blocks is followed to its end.
  for (let k = last; k > 0; k--) {
    const n = conditionOf(f, k);
    if (n < 0 || !usedInside(f, k, uses)) continue;
    let worth = false;
    for (let e = first[k] - 1; e >= 0; e = next[e] - 1) {
      const value = f.pool[edgeArgs[e] + n];
      // A block that only passes its own parameter on may get a constant for that itself; it becomes such a block now.
      if (op[value] === CONST || passesOn(f, f.edgeFrom[e], value)) worth = true;
    }
    if (!worth) continue;
    let left = 0;
    for (let e = first[k] - 1; e >= 0; e = next[e] - 1) if (!threadEdge(f, k, e, n, uses, room)) left++;
    threaded++;
    if (left > 0) continue;
    const end = sched[f.blockEnd[k] - 1];
    cutEdge(f, f.b[end]);
    cutEdge(f, f.c[end]);
    for (let s = blockStart[k]; s < f.blockEnd[k]; s++) uses[sched[s]] = 0;
  }
  if (threaded > 0) compactBlocks(f, scratch);
  return threaded;
}

/** The last candidate, 0 if there is none: most functions have none. */
function lastCandidate(f: IrFunction): number {
  for (let k = f.blockCount - 1; k > 0; k--) if (conditionOf(f, k) >= 0) return k;
  return 0;
}

/**
 * The number of the parameter that decides the branch of block `k`, if the block only branches on a parameter or on a
 * comparison of it with zero; else −1.
 */
function conditionOf(f: IrFunction, k: number): number {
  const params = f.blockParams[k];
  const start = f.blockStart[k], end = f.blockEnd[k];
  if (params === 0 || end - start - params > MAX_INSTRUCTIONS || (f.blockFlags[k] & BLOCK_LOOP) !== 0) return -1;
  const { op, a, b, imm, ty, sched } = f;
  const branch = sched[end - 1];
  if (op[branch] !== BRANCH) return -1;
  let param = a[branch];
  for (let s = start + params; s < end - 1; s++) {
    const i = sched[s];
    if (op[i] === CONST) continue;
    if ((op[i] !== EQ && op[i] !== NE) || i !== a[branch]) return -1;
    const zero = b[i];
    if (ty[zero] !== TY.I32 || op[zero] !== CONST || imm[zero] !== 0) return -1;
    param = a[i];
  }
  for (let n = 0; n < params; n++) if (sched[start + n] === param) return n;
  return -1;
}

/** Whether block `k` only jumps, and `value` is one of its parameters. */
function passesOn(f: IrFunction, k: number, value: number): boolean {
  const { blockStart, blockEnd, blockParams, blockFlags, sched } = f;
  const start = blockStart[k], end = start + blockParams[k];
  if (f.op[value] !== PARAM || blockEnd[k] !== end + 1 || (blockFlags[k] & BLOCK_LOOP) !== 0 || k === 0) return false;
  for (let s = start; s < end; s++) if (sched[s] === value) return true;
  return false;
}

/** By block, the first edge to it, and by edge, the next one to the same block; both plus one, 0 for none. */
function linkEdges(f: IrFunction, first: Int32Array, next: Int32Array): void {
  first.fill(0, 0, f.blockCount);
  for (let e = 0; e < f.edgeCount; e++) {
    if (f.edgeFrom[e] < 0) continue;
    const to = f.edgeTo[e];
    next[e] = first[to];
    first[to] = e + 1;
  }
}

/** Whether the values of block `k` are used only inside it. */
function usedInside(f: IrFunction, k: number, uses: Int32Array): boolean {
  const { a, b, c, op, sched, blockParams } = f;
  const start = f.blockStart[k], end = f.blockEnd[k];
  let outside = 0;
  for (let s = start; s < end - 1; s++) outside += uses[sched[s]];
  for (let s = start + blockParams[k]; s < end; s++) {
    const i = sched[s];
    const mask = OP_VALUE_MASK[op[i]];
    if ((mask & 1) !== 0 && isComputedIn(f, k, a[i])) outside--;
    if ((mask & 2) !== 0 && isComputedIn(f, k, b[i])) outside--;
  }
  const branch = sched[end - 1];
  return outside === passedOn(f, k, b[branch]) + passedOn(f, k, c[branch]);
}

/** Whether block `k` computes `v`, or has it as a parameter. */
function isComputedIn(f: IrFunction, k: number, v: number): boolean {
  const { sched } = f;
  for (let s = f.blockStart[k], end = f.blockEnd[k] - 1; s < end; s++) if (sched[s] === v) return true;
  return false;
}

/**
 * How many parameters of block `k` edge `e` passes. A comparison that it passes does not count: where the block is left
 * out, nothing computes it. Nor do constants: no other block passes one of this block.
 */
function passedOn(f: IrFunction, k: number, e: number): number {
  const { op, pool } = f;
  let count = 0;
  for (let p = f.edgeArgs[e], end = p + f.blockParams[f.edgeTo[e]]; p < end; p++) {
    if (op[pool[p]] === PARAM && isComputedIn(f, k, pool[p])) count++;
  }
  return count;
}

/** Redirects edge `e` past block `k`, whose branch parameter `n` decides. Returns false if the edge must stay. */
function threadEdge(
  f: IrFunction,
  k: number,
  e: number,
  n: number,
  uses: Int32Array,
  room: Room,
): boolean {
  const { op, a, b, c, imm, sched, blockEnd, blockParams } = f;
  const branch = sched[blockEnd[k] - 1];
  const negated = op[a[branch]] === EQ;
  const yes = negated ? c[branch] : b[branch], no = negated ? b[branch] : c[branch];
  const from = f.edgeFrom[e];
  const end = sched[blockEnd[from] - 1];
  const args = f.edgeArgs[e];
  const value = f.pool[args + n];
  const copied = blockParams[f.edgeTo[yes]] + blockParams[f.edgeTo[no]];
  const unwinds = op[end] === BRANCH && op[a[end]] === UNWOUND;
  if (unwinds || op[end] === SWITCH || copied > room.left || (op[value] !== CONST && op[end] !== JUMP)) return false;
  room.left -= copied;
  if (op[value] === CONST) lead(f, e, imm[value] !== 0 ? yes : no, k, args, uses);
  else {
    op[end] = BRANCH;
    a[end] = value;
    b[end] = e;
    c[end] = f.addEdge(from, k, args);
    imm[end] = negated ? oppositeHint(imm[branch]) : imm[branch];
    uses[value]++;
    lead(f, e, yes, k, args, uses);
    lead(f, c[end], no, k, args, uses);
  }
  // The values that the edge passed to the block.
  for (let p = args, stop = args + blockParams[k]; p < stop; p++) uses[f.pool[p]]--;
  return true;
}

/** Redirects edge `e`, which passes `args` to block `k`, to the target of `out`, an outgoing edge of that block. */
function lead(f: IrFunction, e: number, out: number, k: number, args: number, uses: Int32Array): void {
  const to = f.edgeTo[out];
  const count = f.blockParams[to];
  const at = count === 0 ? 0 : f.allocPool(count);
  const start = f.blockStart[k], params = f.blockParams[k];
  for (let m = 0; m < count; m++) {
    let value = f.pool[f.edgeArgs[out] + m];
    for (let n = 0; n < params; n++) {
      if (f.sched[start + n] === value) {
        value = f.pool[args + n];
        break;
      }
    }
    f.pool[at + m] = value;
    uses[value]++;
  }
  f.edgeTo[e] = to;
  f.edgeArgs[e] = at;
}
