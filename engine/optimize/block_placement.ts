/**
 * Block placement: the order of emission. In: a function and its control flow. Out: f.layout, and BLOCK_COLD on the
 * blocks that are placed at the end.
 *
 * The structural order already has the fall-throughs of the source. This pass changes three things. Cold blocks (those
 * that end in a trap, lead only to cold blocks, or are reached only over unlikely edges) are placed last. Blocks within
 * a loop's range that have left the loop (early returns) are placed after it. A loop whose header tests and exits gets
 * the header at its bottom, so that an iteration has one taken branch instead of two (loop rotation; the entry jumps to
 * the test once; Pettis and Hansen 1990). If several blocks lead to the last one, which jumps back, that one is placed
 * at the top instead, in front of the header: each of the others then jumps once, not twice.
 */
import { BLOCK_COLD, type IrFunction } from "../ir/function.ts";
import { BRANCH_HINT, OP } from "../ir/ops.ts";
import { type ControlFlow, successorAt, successorCount } from "./cfg.ts";

const { JUMP, BRANCH, TRAP } = OP;

/** Chooses the layout of `f`. */
export function placeBlocks(f: IrFunction, flow: ControlFlow): void {
  flow.scratch.ensure(f);
  markCold(f, flow);
  const blocks = f.blockCount;
  const next = flow.scratch.blocks;
  chain(f, flow, next);
  let n = 0;
  const { layout, blockFlags } = f;
  for (let k = 0; k >= 0; k = next[k]) if (k === 0 || (blockFlags[k] & BLOCK_COLD) === 0) layout[n++] = k;
  for (let k = next[0]; k >= 0; k = next[k]) if ((blockFlags[k] & BLOCK_COLD) !== 0) layout[n++] = k;
  if (n !== blocks) throw new Error("block placement lost a block");
}

/** Sets BLOCK_COLD on rarely executed blocks. */
function markCold(f: IrFunction, flow: ControlFlow): void {
  const { op, a, b, c, imm, sched, blockEnd, blockFlags, edgeFrom, edgeTo } = f;
  const { predStart, predEdge } = flow;
  const blocks = f.blockCount;
  for (let k = blocks - 1; k > 0; k--) {
    const last = sched[blockEnd[k] - 1];
    let cold = op[last] === TRAP;
    if (op[last] === JUMP || op[last] === BRANCH) {
      const first = edgeTo[op[last] === JUMP ? a[last] : b[last]];
      const second = op[last] === JUMP ? first : edgeTo[c[last]];
      cold = first > k && second > k && (blockFlags[first] & blockFlags[second] & BLOCK_COLD) !== 0;
    }
    if (cold) blockFlags[k] = blockFlags[k] | BLOCK_COLD;
  }
  for (let k = 1; k < blocks; k++) {
    if ((blockFlags[k] & BLOCK_COLD) !== 0) continue;
    let cold = true;
    for (let p = predStart[k], end = predStart[k + 1]; p < end && cold; p++) {
      const e = predEdge[p];
      const from = edgeFrom[e];
      if (from >= k || (blockFlags[from] & BLOCK_COLD) !== 0) continue;
      const last = sched[blockEnd[from] - 1];
      cold = op[last] === BRANCH &&
        ((imm[last] === BRANCH_HINT.LIKELY && c[last] === e) || (imm[last] === BRANCH_HINT.UNLIKELY && b[last] === e));
    }
    if (cold) blockFlags[k] = blockFlags[k] | BLOCK_COLD;
  }
}

/** Value of `resume` (see `chain`) for a loop that has not left the enclosing range. */
const ATTACHED = -2;

/** Links all blocks in layout order: next[k] follows k, −1 ends. */
function chain(f: IrFunction, flow: ControlFlow, next: Int32Array): void {
  const blocks = f.blockCount;
  if (flow.loopCount === 0) {
    for (let k = 0; k < blocks; k++) next[k] = k + 1 < blocks ? k + 1 : -1;
    return;
  }
  const { loopOf, loopParent, loopEnd } = flow;
  // By header: first and last of the blocks that left the loop inside its range and wait for its end.
  const waiting = flow.scratch.blocks2, waitingLast = flow.scratch.blocks3;
  // By header: the block before the loop, the header of the enclosing range, and, for a loop that has left that range
  // as a whole, the block after which the chain continues (ATTACHED for others).
  const before = flow.scratch.blocks4, outer = flow.scratch.blocks5, resume = flow.scratch.blocks6;
  // By block: the block behind which it is placed, or −1 if it waits.
  const behind = flow.scratch.blocks7;
  let tail = -1;
  // The innermost open range.
  let open = -1;
  for (let k = 0; k <= blocks; k++) {
    while (open >= 0 && (k === blocks || k >= loopEnd[open])) {
      const head = open;
      open = outer[head];
      tail = rotate(f, flow, next, behind, head, before[head], tail);
      const detached = resume[head] !== ATTACHED;
      if (waiting[head] >= 0) {
        // Blocks that left this loop may have left the next one too.
        if (!detached && open >= 0 && !within(flow, loopOf[waiting[head]], open)) {
          if (waiting[open] < 0) waiting[open] = waiting[head];
          else next[waitingLast[open]] = waiting[head];
          waitingLast[open] = waitingLast[head];
        } else {
          next[tail] = waiting[head];
          tail = waitingLast[head];
        }
      }
      next[tail] = -1;
      if (!detached) continue;
      if (waiting[open] < 0) waiting[open] = head;
      waitingLast[open] = tail;
      tail = resume[head];
    }
    if (k === blocks) break;
    behind[k] = -1;
    if (loopEnd[k] > 0) {
      resume[k] = ATTACHED;
      if (open >= 0 && loopParent[k] !== open) {
        resume[k] = tail;
        tail = waiting[open] < 0 ? -1 : waitingLast[open];
      }
      before[k] = tail;
      outer[k] = open;
      waiting[k] = -1;
      open = k;
    } else if (open >= 0 && !within(flow, loopOf[k], open)) {
      next[k] = -1;
      if (waiting[open] < 0) waiting[open] = k;
      else next[waitingLast[open]] = k;
      waitingLast[open] = k;
      continue;
    }
    if (tail >= 0) next[tail] = k;
    behind[k] = tail;
    next[k] = -1;
    tail = k;
  }
}

/** Whether loop `inner` (a header or −1) is the loop `outer` or nested in it. */
function within(flow: ControlFlow, inner: number, outer: number): boolean {
  while (inner > outer) inner = flow.loopParent[inner];
  return inner === outer;
}

/**
 * The loop of `head` is placed between `before` and `tail`, which is placed behind `behind[tail]`. If its last block
 * jumps back to the header, places that block first if several others lead to it, or else the header last if that
 * leaves the loop on one side. Returns the new tail.
 */
function rotate(
  f: IrFunction,
  flow: ControlFlow,
  next: Int32Array,
  behind: Int32Array,
  head: number,
  before: number,
  tail: number,
): number {
  if (tail === head || before < 0) return tail;
  const { op, a, sched, blockEnd, edgeTo } = f;
  const bottom = sched[blockEnd[tail] - 1];
  if (op[bottom] !== JUMP || edgeTo[a[bottom]] !== head) return tail;
  const above = behind[tail];
  if (above >= 0 && flow.loopOf[tail] === head && warmPredecessors(f, flow, tail) > 1) {
    next[before] = tail;
    next[tail] = head;
    next[above] = -1;
    return above;
  }
  const last = sched[blockEnd[head] - 1];
  if (op[last] !== BRANCH) return tail;
  let inside = 0;
  for (let n = 0; n < successorCount(f, last); n++) {
    if (within(flow, flow.loopOf[edgeTo[successorAt(f, last, n)]], head)) inside++;
  }
  if (inside !== 1) return tail;
  next[before] = next[head];
  next[tail] = head;
  next[head] = -1;
  return head;
}

/** Number of edges into block `k` from blocks that are not cold. */
function warmPredecessors(f: IrFunction, flow: ControlFlow, k: number): number {
  let n = 0;
  for (let p = flow.predStart[k]; p < flow.predStart[k + 1]; p++) {
    if ((f.blockFlags[f.edgeFrom[flow.predEdge[p]]] & BLOCK_COLD) === 0) n++;
  }
  return n;
}
