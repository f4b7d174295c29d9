/**
 * Split positions of the linear scan: the position from which a value may be in its stack slot before another takes its
 * register, the position at which it is reloaded, and the cost of being without a register. All of it is heuristic: any
 * answer inside the stated bounds is correct, because moves are derived from the intervals afterwards (resolve.ts).
 *
 * The aims, in the order of their effect: no memory traffic in a loop that can be had outside it; none on a hot path
 * because of a call on a cold one; reloads as late as the loops allow, so that registers are not held unnecessarily.
 */
import type { f64 } from "../base/numbers.ts";
import type { BlockFacts } from "./block_facts.ts";
import { type Liveness, USE_KIND, USE_LATE } from "./liveness.ts";
import type { VCode } from "../codegen/vcode.ts";

/** The number of blocks before a use that are considered for its reload. */
const WINDOW = 8;
/** A position in another block must be this much cheaper to be preferred. */
const MARGIN = 0.75;
/** The number of times that a loop is entered, relative to its iterations. */
const ENTRY = 0.1;
/** The number of uses in a loop that are weighed. */
const WINDOW_USES = 64;
/** Limit of the backward edges of a loop that are examined. */
const WINDOW_EDGES = 32;
/** Cost of a memory operand, or of a load instead of a move, in loads. */
const FOLDED_USE = 0.4;

/** Position after which use `u` no longer matters to the location of its value. */
export function useEnd(live: Liveness, u: number): number {
  const info = live.useInfo[u], pos = live.usePos[u];
  if ((info & USE_LATE) !== 0) return pos + 2;
  return (info & 3) === USE_KIND.GAP ? pos : pos + 1;
}

/** The outermost loop header position in (or at) [lo, pos] to which a split at `pos` can move, else `pos`. */
export function hoistedPosition(facts: BlockFacts, lo: number, pos: number): number {
  let loop = facts.loop[facts.blockOf[pos >> 1]], best = pos;
  while (loop >= 0 && facts.start[loop] >= lo) {
    best = facts.start[loop];
    loop = facts.loopParent[loop];
  }
  return best;
}

/**
 * Position in [lo, clobber] at which a value that loses its register at `clobber` should leave it, if nothing uses it
 * in between: `lo`, unless the clobber is on a colder path than that.
 */
export function spillPosition(facts: BlockFacts, lo: number, clobber: number): number {
  if (lo >= clobber) return clobber;
  const frequency = facts.frequency, first = facts.blockOf[lo >> 1], last = facts.blockOf[clobber >> 1];
  if (first === last) return lo;
  let best = last;
  const stop = Math.max(first, last - 2 * WINDOW);
  for (let b = last - 1; b > stop; b--) if (frequency[b] < frequency[best] * 0.9) best = b;
  return frequency[best] < frequency[first] * 0.9 ? facts.start[best] : lo;
}

/** Index into `clobberAll` (descending) of the last clobber before `pos`, or its length. */
function lastClobberBefore(live: Liveness, pos: number): number {
  let low = 0, high = live.clobberAllCount;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (live.clobberAll[middle] < pos) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * The cost of being in a register again from the start of block b on, having been in the slot since block `since`: the
 * frequencies of the edges that cross over. Counting stops at `enough`, which the nearest edges mostly exceed.
 */
function boundaryCost(
  facts: BlockFacts,
  succ: Int32Array,
  succStart: Int32Array,
  succCount: Int32Array,
  edgeTo: Int32Array,
  since: number,
  b: number,
  enough: f64,
): f64 {
  const frequency = facts.frequency, stop = since > b - WINDOW ? since : b - WINDOW;
  let cost: f64 = 0;
  for (let x = b - 1; x >= stop && cost < enough; x--) {
    const n = succCount[x], first = succStart[x];
    if (n > 8) {
      cost += frequency[x];
      continue;
    }
    for (let j = 0; j < n; j++) {
      const y = edgeTo[succ[first + j]];
      if (y >= b) cost += frequency[x] < frequency[y] ? frequency[x] : frequency[y];
    }
  }
  return cost;
}

/**
 * Position at which a value that is in its slot from `p` on should be reloaded: an even position in (p, to), or `to`
 * for not at all. `cursor` is its first use at or after p; `around` means that the enclosing loop has it in a register
 * at its header; `regions` allows the header of a loop ahead.
 */
export function reloadPosition(
  live: Liveness,
  facts: BlockFacts,
  edges: VCode,
  p: number,
  to: number,
  cursor: number,
  around: boolean,
  regions: boolean,
): number {
  const usePos = live.usePos, useInfo = live.useInfo, useNext = live.useNext;
  const blockOf = facts.blockOf, frequency = facts.frequency, since = blockOf[p >> 1];
  let u = cursor, soft = -1;
  for (; u !== 0 && usePos[u] <= to; u = useNext[u]) {
    if ((useInfo[u] & 3) === USE_KIND.REG) break;
    if (soft < 0 && blockOf[usePos[u] >> 1] !== since) soft = usePos[u];
  }
  if (soft >= 0) {
    // A use that can read memory gets a register that is available at less cost on the path.
    const block = blockOf[soft >> 1], limit = frequency[block] * FOLDED_USE;
    const back = cheapestBoundary(live, facts, edges, p, soft, block, limit, cursor, regions);
    if (back >= 0) return back;
  }
  if (u !== 0 && usePos[u] <= to) {
    const target = usePos[u], block = blockOf[target >> 1];
    if (block === since) return target;
    const back = cheapestBoundary(live, facts, edges, p, target, block, frequency[block] * MARGIN, cursor, regions);
    return back >= 0 ? back : target;
  }
  // No use ahead. But the value may have to come back to its register at the end of the loop.
  const loop = facts.loop[since];
  if (!around || loop < 0 || to < facts.start[facts.loopEnd[loop]]) return to;
  const last = facts.loopEnd[loop] - 1;
  if (last === since) return to;
  const back = cheapestBoundary(live, facts, edges, p, to, last, frequency[last] * MARGIN, cursor, regions);
  return back >= 0 ? back : to;
}

/**
 * The start of a block in (p, target) where loading the value costs less than `limit`, the least; −1 if there is none.
 */
function cheapestBoundary(
  live: Liveness,
  facts: BlockFacts,
  edges: VCode,
  p: number,
  target: number,
  block: number,
  limit: f64,
  cursor: number,
  regions: boolean,
): number {
  const start = facts.start, frequency = facts.frequency;
  let low = p, since = facts.blockOf[p >> 1], best = -1, bestCost = limit, outer = -1;
  const c = lastClobberBefore(live, target);
  if (c < live.clobberAllCount && live.clobberAll[c] > p) {
    low = live.clobberAll[c];
    since = facts.blockOf[low >> 1];
  }
  const stop = Math.max(since, block - WINDOW);
  for (let b = block; b > stop; b--) {
    if (!regions && facts.loop[b] === b) continue;
    const cost = boundaryCost(facts, edges.succ, edges.succStart, edges.succCount, edges.edgeTo, since, b, bestCost);
    if (cost < bestCost) {
      best = start[b];
      bestCost = cost;
    }
  }
  for (let l = regions ? facts.loop[block] : -1; l >= 0 && start[l] > low; l = facts.loopParent[l]) {
    if (live.destroyed[l] !== 0 && !belongsInRegister(live, facts, l, cursor)) break;
    outer = l;
  }
  if (outer >= 0 && frequency[outer] * ENTRY < bestCost) best = start[outer];
  return best < target ? best : -1;
}

/**
 * Whether a value that is live around a whole loop should be in a register at its header. If every iteration destroys
 * the registers, it should not: it would be loaded once an iteration only to be there. Otherwise the weight of the uses
 * that would find it there decides. `cursor` is the value's first use at or after the header, or any before that.
 */
export function belongsInRegister(live: Liveness, facts: BlockFacts, loop: number, cursor: number): boolean {
  const destroyed = live.destroyed[loop];
  if (destroyed === 0) return true;
  if (destroyed === 1) return false;
  return gainAtHeader(live, facts, loop, cursor, destroyed) > destroyed;
}

/**
 * Loads per iteration saved by having a value in a register at a loop's header; counting stops beyond `enough`.
 */
function gainAtHeader(live: Liveness, facts: BlockFacts, loop: number, cursor: number, enough: f64): f64 {
  const start = facts.start[loop], end = facts.start[facts.loopEnd[loop]];
  let gain: f64 = 0, before = -1, n = 0;
  for (let u = cursor; u !== 0 && live.usePos[u] < end && gain <= enough; u = live.useNext[u]) {
    const kind = live.useInfo[u] & 3, block = facts.blockOf[live.usePos[u] >> 1];
    if (live.usePos[u] < start || kind === USE_KIND.EDGE || block === before) continue;
    if (++n > WINDOW_USES) return Infinity;
    before = block;
    gain += Math.min(facts.chance[block] / facts.chance[loop], 1) * (kind === USE_KIND.REG ? 1 : FOLDED_USE);
  }
  return gain;
}

/**
 * Whether parameter x, number `index` of the loop's header, should be in its slot there. Otherwise its arguments on
 * backward edges that a call has sent to their slots are loaded, and x is stored again before the next call; in its
 * slot, it costs the loads for uses, and the stores of arguments that arrive in registers.
 */
export function parameterBelongsInSlot(
  live: Liveness,
  facts: BlockFacts,
  v: VCode,
  loop: number,
  x: number,
  cursor: number,
): boolean {
  if (live.destroyed[loop] === 0) return false;
  const first = facts.predFirst[loop], end = facts.predFirst[loop + 1];
  const step = ((end - first + WINDOW_EDGES - 1) / WINDOW_EDGES) | 0;
  let inSlot: f64 = 0, inRegister: f64 = 0;
  for (let j = first; j < end; j += step) {
    const e = facts.pred[j], from = v.edgeFrom[e];
    if (from < loop) continue;
    const a = v.pool[v.argStart[e] + live.tiedTo[x]];
    if (v.vregRemat[a] !== 0) continue;
    const c = lastClobberBefore(live, facts.start[from + 1]);
    const lost = c < live.clobberAllCount && live.clobberAll[c] > Math.max(live.defPos[a], facts.start[loop]);
    const runs = facts.chance[from] / facts.chance[loop];
    if (!lost) inRegister += runs;
    else inSlot += a === x ? runs * live.destroyed[loop] : runs;
  }
  if (inSlot === 0) return false;
  if (step > 1) {
    // The edges are a sample, and each iteration takes one backward edge: the shares must add up to 1.
    const sum = inSlot + inRegister;
    inSlot = inSlot / sum;
    inRegister = inRegister / sum;
  }
  const cost = inSlot + live.destroyed[loop] - inRegister;
  return cost > 0 && gainAtHeader(live, facts, loop, cursor, cost) < cost;
}

/** Estimated cost per position of taking the register from a value at p: to be compared with others at the same p. */
export function evictionCost(
  live: Liveness,
  facts: BlockFacts,
  p: number,
  to: number,
  cursor: number,
  lastUse: number,
  storeBlock: number,
): f64 {
  const block = facts.blockOf[p >> 1], loop = facts.loop[block], frequency = facts.frequency;
  let cost: f64 = 0, distance = 1;
  if (cursor !== 0) {
    const pos = live.usePos[cursor];
    cost = frequency[facts.blockOf[pos >> 1]];
    distance = pos - p;
  }
  if (loop >= 0 && lastUse !== 0) {
    const end = facts.start[facts.loopEnd[loop]], header = facts.start[loop];
    if (to >= end && live.usePos[lastUse] >= header && (cursor === 0 || live.usePos[cursor] >= end)) {
      cost = frequency[loop];
      distance = end - p + live.usePos[lastUse] - header;
    }
  }
  if (cost === 0) return 0;
  if (storeBlock >= 0) cost += Math.min(frequency[storeBlock], frequency[block]);
  return cost / (distance + 2);
}
