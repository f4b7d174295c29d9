/**
 * Edges and joins: a branch becomes an edge with a snapshot of the operands and locals that it carries; at the end of a
 * frame its edges meet in a block with a parameter for each value on which they differ. In: frames with pending edges
 * (frames.ts). Out: edges with arguments, a block, and the operands and locals after the join.
 */
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { tooLarge } from "./failures.ts";
import { FRAME_KIND, MAX_INSTRUCTIONS, MAX_POOL } from "./frames.ts";
import type { Translation } from "./translation.ts";

/** Merged value of a slot or operand on which edges disagree. */
const DIFFERS = -1;

/**
 * Creates the edge from the open block to the label of frame `n`; the label's operands are on top of the stack. Edges
 * with the same `stamp` other than 0, those of one br_table, share a snapshot per frame.
 */
export function edgeToFrame(t: Translation, n: number, stamp = 0): number {
  const { frames, f, stack } = t;
  const arity = frames.arity[n];
  const from = t.b.block;
  const base = t.sp - arity;
  if (frames.kind[n] === FRAME_KIND.LOOP) {
    const scan = t.loops;
    const loop = frames.loop[n];
    const first = scan.first[loop];
    const locals = scan.last[loop] - first;
    const args = takePool(t, arity + locals);
    const pool = f.pool;
    for (let k = 0; k < arity; k++) pool[args + k] = stack[base + k];
    const { list } = scan;
    const values = frames.locals;
    for (let k = 0; k < locals; k++) pool[args + arity + k] = values[t.localBase + list[first + k]];
    return f.addEdge(from, frames.header[n], args);
  }
  const e = f.addEdge(from, 0, 0);
  if (stamp !== 0 && frames.stamp[n] === stamp) {
    frames.addPending(n, e, frames.stampSnap[n], frames.stampPairs[n]);
    return e;
  }
  frames.reserveSnap(arity);
  const start = frames.snapCount;
  for (let k = 0; k < arity; k++) frames.snaps[start + k] = stack[base + k];
  frames.snapCount = start + arity;
  // No instruction reads the locals of a body that has ended.
  const pairs = frames.kind[n] >= FRAME_KIND.BODY ? 0 : frames.snapChanges(frames.trailStart[n]);
  if (frames.snapCount > MAX_POOL) throw tooLarge(t.funcIndex, t.b.pos);
  frames.addPending(n, e, start, pairs);
  frames.stamp[n] = stamp;
  frames.stampSnap[n] = start;
  frames.stampPairs[n] = pairs;
  return e;
}

/** Creates the edge that carries exceptions of the open block to try `n`, with the locals of the try's function. */
export function edgeToTry(t: Translation, n: number): number {
  const { frames, f } = t;
  const e = f.addEdge(t.b.block, 0, 0);
  const start = frames.snapCount;
  const pairs = frames.snapChanges(frames.trailStart[n], frames.localLimit[n]);
  if (frames.snapCount > MAX_POOL) throw tooLarge(t.funcIndex, t.b.pos);
  frames.addThrown(n, e, start, pairs);
  return e;
}

/** Allocates `count` words in the pool. Throws if the function exceeds the implementation limits. */
export function takePool(t: Translation, count: number): number {
  const { f } = t;
  if (f.poolCount + count > MAX_POOL || f.count > MAX_INSTRUCTIONS) throw tooLarge(t.funcIndex, t.b.pos);
  return f.allocPool(count);
}

/**
 * Opens the block where the pending edges of frame `n` meet. Precondition: the trail is undone to the frame's entry and
 * the floor is that of the enclosing frame. Postcondition: the results are pushed at the frame's height and the locals
 * are up to date.
 */
export function openJoin(t: Translation, n: number): void {
  const { frames, f, b } = t;
  const arity = frames.arity[n];
  const count = frames.edgeCount[n];
  const block = b.openBlock(0, false);
  t.merge.reserve(t.localEnd, arity);
  const { count: mergeCount, value: mergeValue, parameter: paramNumber, touched, operands } = t.merge;
  const slots = mergeLocals(t, n, count);
  mergeOperands(t, n, arity);
  // Parameters: operands first, then locals.
  let params = 0;
  const base = frames.height[n];
  for (let k = 0; k < arity; k++) {
    let value = operands[k];
    if (value === DIFFERS) {
      value = b.param(f.ty[frames.snaps[frames.edgeSnap[frames.firstEdge[n]] + k]]);
      params++;
    }
    t.stack[base + k] = value;
  }
  t.sp = base + arity;
  const operandParams = params;
  for (let k = 0; k < slots; k++) {
    const slot = touched[k];
    if (mergeValue[slot] === DIFFERS) paramNumber[slot] = ++params;
  }
  connectEdges(t, n, block, operandParams, params, slots);
  for (let k = 0; k < slots; k++) {
    const slot = touched[k];
    const value = mergeValue[slot];
    mergeCount[slot] = paramNumber[slot] = 0;
    frames.setLocal(slot, value === DIFFERS ? b.param(f.ty[frames.locals[slot]]) : value);
  }
}

/**
 * Merges the locals of the `count` pending edges of frame `n` into the columns; returns the number of slots touched.
 */
function mergeLocals(t: Translation, n: number, count: number): number {
  const { frames } = t;
  const { snaps, locals } = frames;
  const arity = frames.arity[n];
  const { count: mergeCount, value: mergeValue, touched } = t.merge;
  let slots = 0;
  for (let e = frames.firstEdge[n]; e >= 0; e = frames.nextEdge[e]) {
    const start = frames.edgeSnap[e] + arity;
    const end = start + frames.edgePairs[e] * 2;
    for (let at = start; at < end; at += 2) {
      const slot = snaps[at];
      const value = snaps[at + 1];
      if (mergeCount[slot]++ === 0) {
        touched[slots++] = slot;
        mergeValue[slot] = value;
      } else if (mergeValue[slot] !== value) mergeValue[slot] = DIFFERS;
    }
  }
  // An edge without a pair for a slot carries the value that the local had at the frame's entry.
  for (let k = 0; k < slots; k++) {
    const slot = touched[k];
    if (mergeCount[slot] < count && mergeValue[slot] !== locals[slot]) mergeValue[slot] = DIFFERS;
  }
  return slots;
}

/** Merges the operands of the pending edges of frame `n` into the column `operands`. */
function mergeOperands(t: Translation, n: number, arity: number): void {
  const { frames } = t;
  const { snaps } = frames;
  const { operands } = t.merge;
  let e = frames.firstEdge[n];
  for (let k = 0; k < arity; k++) operands[k] = snaps[frames.edgeSnap[e] + k];
  for (e = frames.nextEdge[e]; e >= 0; e = frames.nextEdge[e]) {
    const start = frames.edgeSnap[e];
    for (let k = 0; k < arity; k++) if (operands[k] !== snaps[start + k]) operands[k] = DIFFERS;
  }
}

/** Points the pending edges of frame `n` to `block` and writes their arguments. */
function connectEdges(
  t: Translation,
  n: number,
  block: number,
  operandParams: number,
  params: number,
  slots: number,
): void {
  const { frames, f } = t;
  const { snaps, locals } = frames;
  const { parameter: paramNumber, touched, operands } = t.merge;
  const arity = frames.arity[n];
  for (let e = frames.firstEdge[n]; e >= 0; e = frames.nextEdge[e]) {
    const args = takePool(t, params);
    const pool = f.pool;
    f.edgeTo[e] = block;
    f.edgeArgs[e] = args;
    const start = frames.edgeSnap[e];
    for (let k = 0, to = args; to < args + operandParams; k++) {
      if (operands[k] === DIFFERS) pool[to++] = snaps[start + k];
    }
    for (let k = 0; k < slots; k++) {
      const slot = touched[k];
      const number = paramNumber[slot];
      if (number !== 0) pool[args + number - 1] = locals[slot];
    }
    const end = start + arity + frames.edgePairs[e] * 2;
    for (let at = start + arity; at < end; at += 2) {
      const number = paramNumber[snaps[at]];
      if (number !== 0) pool[args + number - 1] = snaps[at + 1];
    }
  }
}

/**
 * Ends the open block with a jump to a target that is set later; it carries `value` unless that is 0. Returns the edge.
 */
export function jumpAhead(t: Translation, value: number): number {
  const { b, f } = t;
  const args = takePool(t, 1);
  f.pool[args] = value;
  const e = f.addEdge(b.block, 0, args);
  b.emit(OP.JUMP, TY.NONE, e, 0, 0, 0);
  b.closeBlock();
  return e;
}

/**
 * Ends the open block with a branch to a target that is set later, taken if `test` (i32) is not zero and carrying
 * `value` unless that is 0, and opens the fall-through block. Returns the edge.
 */
export function branchAhead(t: Translation, test: number, value = 0): number {
  const { b, f } = t;
  const args = takePool(t, 1);
  f.pool[args] = value;
  const from = b.block;
  const taken = f.addEdge(from, 0, args);
  const other = f.addEdge(from, from + 1, args);
  const condition = b.condition(test);
  if (condition > 0) b.emit(OP.BRANCH, TY.NONE, condition, taken, other, 0);
  else b.emit(OP.BRANCH, TY.NONE, -condition, other, taken, 0);
  b.closeBlock();
  b.openBlock(0, true);
  return taken;
}

/** Opens the block where `edges` meet. They carry a value of type `ty`, which is returned, unless that is NONE. */
export function joinEdges(t: Translation, edges: readonly number[], ty: number): number {
  const block = t.b.openBlock(0, false);
  for (const e of edges) t.f.edgeTo[e] = block;
  return ty === TY.NONE ? 0 : t.b.param(ty);
}
