/**
 * Simplifies the control-flow graph: bypasses blocks that only jump, appends a block to its only
 * predecessor if that ends in a jump, removes unreachable blocks and dead edges and renumbers the rest.
 *
 * In: a function; edges that passes have cut are marked by edgeFrom = −1, and no block end refers to them. Out: the
 * invariants of ir/function.ts hold again (every block but the entry has a predecessor, BLOCK_LOOP marks the headers).
 * The order of blocks never changes, so it stays a structural reverse postorder.
 */
import { BLOCK_COLD, BLOCK_LOOP, type IrFunction } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import type { ControlFlow } from "./cfg.ts";
import type { Scratch } from "./scratch.ts";

const { JUMP, BRANCH, SWITCH, UNWOUND } = OP;

/** Cuts edge `e` off: the block end that named it must have been rewritten. */
export function cutEdge(f: IrFunction, e: number): void {
  f.edgeFrom[e] = -1;
}

/**
 * Drops unreachable blocks and dead edges and renumbers; control-flow facts are stale afterwards. Returns whether
 * anything was dropped.
 */
export function compactBlocks(f: IrFunction, scratch: Scratch): boolean {
  scratch.ensure(f);
  const { op, a, b, c, sched, edgeFrom, edgeTo, edgeArgs } = f;
  const { blockStart, blockEnd, blockParams, blockFlags, blockDepth } = f;
  const number = scratch.blocks, edgeNumber = scratch.edges;
  const blocks = f.blockCount, edges = f.edgeCount;
  number.fill(-1, 0, blocks);
  number[0] = 0;
  let count = 0;
  for (let k = 0; k < blocks; k++) {
    if (number[k] < 0) continue;
    number[k] = count++;
    const i = sched[blockEnd[k] - 1];
    const kind = op[i];
    if (kind === JUMP) {
      if (edgeTo[a[i]] > k) number[edgeTo[a[i]]] = 0;
    } else if (kind === BRANCH) {
      if (edgeTo[b[i]] > k) number[edgeTo[b[i]]] = 0;
      if (edgeTo[c[i]] > k) number[edgeTo[c[i]]] = 0;
    } else if (kind === SWITCH) {
      for (let e = b[i], end = e + c[i]; e < end; e++) if (edgeTo[e] > k) number[edgeTo[e]] = 0;
    }
  }
  let edgeCount = 0;
  for (let e = 0; e < edges; e++) {
    const from = edgeFrom[e];
    if (from >= 0 && number[from] >= 0) edgeNumber[e] = edgeCount++;
    else edgeNumber[e] = -1;
  }
  if (count === blocks && edgeCount === edges) return false;

  for (let e = 0; e < edges; e++) {
    const to = edgeNumber[e];
    if (to < 0) continue;
    edgeFrom[to] = number[edgeFrom[e]];
    edgeTo[to] = number[edgeTo[e]];
    edgeArgs[to] = edgeArgs[e];
  }
  f.edgeCount = edgeCount;
  for (let k = 0; k < blocks; k++) {
    const to = number[k];
    if (to < 0) continue;
    blockStart[to] = blockStart[k];
    blockEnd[to] = blockEnd[k];
    blockParams[to] = blockParams[k];
    blockFlags[to] = blockFlags[k] & ~BLOCK_LOOP;
    blockDepth[to] = blockDepth[k];
    f.layout[to] = to;
    const i = sched[blockEnd[k] - 1];
    const kind = op[i];
    if (kind === JUMP) a[i] = edgeNumber[a[i]];
    else if (kind === BRANCH) {
      b[i] = edgeNumber[b[i]];
      c[i] = edgeNumber[c[i]];
    } else if (kind === SWITCH) b[i] = edgeNumber[b[i]];
  }
  f.blockCount = count;
  closeGaps(f);
  for (let e = 0; e < edgeCount; e++) {
    const to = edgeTo[e];
    if (to <= edgeFrom[e]) blockFlags[to] = blockFlags[to] | BLOCK_LOOP;
  }
  return true;
}

/** Closes the gaps between the blocks' ranges of the order. */
function closeGaps(f: IrFunction): void {
  const { sched, blockStart, blockEnd } = f;
  let to = 0;
  for (let k = 0; k < f.blockCount; k++) {
    const start = blockStart[k], length = blockEnd[k] - start;
    if (start !== to) { for (let n = 0; n < length; n++) sched[to + n] = sched[start + n]; }
    blockStart[k] = to;
    to += length;
    blockEnd[k] = to;
  }
  f.schedCount = to;
}

/**
 * Appends blocks to their only predecessor and bypasses empty ones. Of `flow`, predecessors and loops must be
 * current, and are current again.
 */
export function tidyBlocks(f: IrFunction, flow: ControlFlow): boolean {
  const merged = mergeBlocks(f, flow);
  const bypassed = bypassEmptyBlocks(f, flow);
  if (!merged && !bypassed) return false;
  compactBlocks(f, flow.scratch);
  flow.computeLoops(f);
  return true;
}

/**
 * Redirects edges to blocks that only jump forward to the target of the jump. Such a block stays if it is needed: in
 * front of a loop, as the place for hoisted code; and where its jump passes arguments and its predecessor has other
 * successors, as the place for the moves.
 */
function bypassEmptyBlocks(f: IrFunction, flow: ControlFlow): boolean {
  const { op, a, b, c, imm, sched, edgeFrom, edgeTo, edgeArgs, blockStart, blockEnd, blockParams } = f;
  const { predStart, predEdge, loopEnd } = flow;
  let changed = false;
  // Backwards, so that a chain of such blocks is followed to its end.
  for (let k = f.blockCount - 1; k > 0; k--) {
    const at = blockStart[k];
    if (blockEnd[k] - at !== 1 || op[sched[at]] !== JUMP) continue;
    const out = a[sched[at]];
    const to = edgeTo[out];
    if (to <= k || loopEnd[to] !== 0) continue;
    const params = blockParams[to];
    for (let p = predStart[k], end = predStart[k + 1]; p < end; p++) {
      const e = predEdge[p];
      const from = edgeFrom[e];
      if (from < 0) continue;
      const last = sched[blockEnd[from] - 1];
      if (params > 0) {
        if (op[last] !== JUMP) continue;
        const args = f.allocPool(params);
        f.pool.copyWithin(args, edgeArgs[out], edgeArgs[out] + params);
        edgeArgs[e] = args;
      }
      edgeTo[e] = to;
      changed = true;
      const same = op[last] === BRANCH && params === 0 && edgeTo[b[last]] === edgeTo[c[last]];
      // An exception must be caught even if it makes no difference.
      if (same && op[a[last]] !== UNWOUND) {
        cutEdge(f, c[last]);
        op[last] = JUMP;
        a[last] = b[last];
        b[last] = c[last] = imm[last] = 0;
      }
    }
  }
  return changed;
}

/** Appends blocks to their only predecessor if it ends in a jump. */
function mergeBlocks(f: IrFunction, flow: ControlFlow): boolean {
  const { op, a, sched, edgeFrom, edgeTo, blockStart, blockEnd, blockParams, blockFlags } = f;
  const { predStart, predEdge, loopEnd } = flow;
  const blocks = f.blockCount;
  flow.scratch.ensure(f);
  // next: the block appended to k, 0 for none, −1 if k is appended itself. range: the header of the innermost loop
  // range around k. outer: by header, that of the enclosing range.
  const next = flow.scratch.blocks, range = flow.scratch.blocks2, outer = flow.scratch.blocks3;
  next.fill(0, 0, blocks);
  let current = -1;
  let merged = 0;
  for (let k = 0; k < blocks; k++) {
    while (current >= 0 && k >= loopEnd[current]) current = outer[current];
    if (loopEnd[k] > 0) {
      outer[k] = current;
      current = k;
    }
    range[k] = current;
    if (k === 0 || blockParams[k] > 0 || predStart[k + 1] - predStart[k] !== 1) continue;
    const from = edgeFrom[predEdge[predStart[k]]];
    if (from >= k || range[from] !== current || op[sched[blockEnd[from] - 1]] !== JUMP) continue;
    next[from] = k;
    merged++;
  }
  if (merged === 0) return false;

  const order = flow.scratch.order;
  let to = 0;
  for (let k = 0; k < blocks; k++) {
    if (next[k] < 0) continue;
    const start = to;
    let cold = 0;
    for (let part = k;;) {
      const end = blockEnd[part];
      const follower = next[part];
      for (let s = blockStart[part], stop = follower > 0 ? end - 1 : end; s < stop; s++) order[to++] = sched[s];
      cold |= blockFlags[part] & BLOCK_COLD;
      if (part !== k) next[part] = -1;
      if (follower <= 0) {
        const last = sched[end - 1];
        const kind = op[last];
        if (part !== k) {
          if (kind === JUMP) edgeFrom[a[last]] = k;
          else if (kind === BRANCH) edgeFrom[f.b[last]] = edgeFrom[f.c[last]] = k;
          else if (kind === SWITCH) { for (let e = f.b[last], stop = e + f.c[last]; e < stop; e++) edgeFrom[e] = k; }
        }
        break;
      }
      const jump = a[sched[end - 1]];
      edgeFrom[jump] = -1;
      edgeTo[jump] = 0;
      part = follower;
    }
    blockStart[k] = start;
    blockEnd[k] = to;
    blockFlags[k] = blockFlags[k] | cold;
  }
  // Appended blocks are unreachable now; they need a block end for compactBlocks, which does not look at their
  // contents.
  for (let k = 0; k < blocks; k++) if (next[k] < 0) blockStart[k] = blockEnd[k] = 0;
  f.sched.set(order.subarray(0, to));
  f.schedCount = to;
  return true;
}
