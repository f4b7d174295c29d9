/**
 * Emission of block ends. The next block in layout order is reached by falling through; blocks that only jump are skipped and
 * their users go to the target. Moves of an edge (Allocation) stand
 *
 *   - before the jump, if the block has one successor;
 *   - at the head of the successor, if it has no other predecessor;
 *   - in front of the conditional branch, if it closes a loop and nobody minds (early_moves.ts);
 *   - in line between the conditional branch and the next block, if that is where the edge goes, or in front of a jump to its target;
 *   - out of line, if the target is cold or a switch selects it.
 */
import { BLOCK_COLD } from "../ir/function.ts";
import { COLD, type Emission, KIND } from "./emission.ts";
import { emitMemory } from "./encoding.ts";
import { X } from "./instructions.ts";
import { AUX_TRAP_SHIFT, CC } from "./machine_ops.ts";
import { SCRATCH } from "./registers.ts";
import { branchIf, emitFlags } from "./emit_compare.ts";
import type { BlockEnds } from "./block_ends.ts";
import { mayMoveEarly } from "./early_moves.ts";
import { emitEdits, ri, rr } from "./emit_row.ts";
import { leaLabel } from "./emit_calls.ts";

function hasMoves(e: Emission, edge: number): boolean {
  return e.allocation.edgeFirst[edge] !== e.allocation.edgeFirst[edge + 1];
}

function moves(e: Emission, edge: number): void {
  const { edgeFirst } = e.allocation;
  emitEdits(e, edgeFirst[edge], edgeFirst[edge + 1]);
}

/** Moves the edge's moves to the head of its target, if nobody else enters there; returns whether they are gone. */
function sink(e: Emission, ends: BlockEnds, edge: number): boolean {
  const to = e.v.edgeTo[edge];
  if (ends.predecessors[to] !== 1 || ends.emitted[to] !== 0 || ends.target[to] !== to) return false;
  ends.headEdge[to] = edge + 1;
  return true;
}

function jumpTo(e: Emission, ends: BlockEnds, target: number): void {
  if (target !== ends.next) e.jump(target);
}

export function emitJump(e: Emission, ends: BlockEnds, edge: number): void {
  // In front of the prologue there is no frame for the moves yet.
  if (ends.prologue[e.v.edgeTo[edge]] === 0 || !sink(e, ends, edge)) moves(e, edge);
  jumpTo(e, ends, ends.target[e.v.edgeTo[edge]]);
}

/** The label an edge with moves of its own is entered by, out of line; without moves its target's. */
function edgeLabel(e: Emission, ends: BlockEnds, edge: number): number {
  const target = ends.target[e.v.edgeTo[edge]];
  if (!hasMoves(e, edge) || sink(e, ends, edge)) return target;
  return e.cold(COLD.EDGE, -1, edge, target);
}

/** Branch of compare `i`: edge `yes` if its condition holds, else edge `no`. */
export function emitBranch(e: Emission, ends: BlockEnds, i: number, yes: number, no: number): void {
  const { v } = e;
  const toYes = ends.target[v.edgeTo[yes]];
  const toNo = ends.target[v.edgeTo[no]];
  let movesYes = hasMoves(e, yes);
  let movesNo = hasMoves(e, no);
  if (toYes === toNo && !movesYes && !movesNo) {
    if (((v.aux[i] >>> AUX_TRAP_SHIFT) & 63) !== 0) emitFlags(e, i, v.firstOperand[i]); // a load that may trap is part of it
    jumpTo(e, ends, toYes);
    return;
  }
  const cc = emitFlags(e, i, v.firstOperand[i]);
  if (movesYes && sink(e, ends, yes)) movesYes = false;
  if (movesNo && sink(e, ends, no)) movesNo = false;
  const coldYes = (v.blockFlags[toYes] & BLOCK_COLD) !== 0;
  const coldNo = (v.blockFlags[toNo] & BLOCK_COLD) !== 0;
  if (movesYes && mayMoveEarly(e, yes, no)) {
    moves(e, yes);
    branchIf(e, cc, toYes);
    if (movesNo) moves(e, no);
    jumpTo(e, ends, toNo);
  } else if (movesNo && mayMoveEarly(e, no, yes)) {
    moves(e, no);
    branchIf(e, cc ^ 1, toNo);
    if (movesYes) moves(e, yes);
    jumpTo(e, ends, toYes);
  } else if (movesYes && coldYes && !coldNo) {
    branchIf(e, cc, e.cold(COLD.EDGE, -1, yes, toYes));
    if (movesNo) moves(e, no);
    jumpTo(e, ends, toNo);
  } else if (movesNo && coldNo && !coldYes) {
    branchIf(e, cc ^ 1, e.cold(COLD.EDGE, -1, no, toNo));
    if (movesYes) moves(e, yes);
    jumpTo(e, ends, toYes);
  } else if (!movesYes && (movesNo || toNo === ends.next || toYes !== ends.next)) {
    branchIf(e, cc, toYes);
    if (movesNo) moves(e, no);
    jumpTo(e, ends, toNo);
  } else if (!movesNo) {
    branchIf(e, cc ^ 1, toNo);
    if (movesYes) moves(e, yes);
    jumpTo(e, ends, toYes);
  } else {
    const other = e.newLabel();
    const yesFalls = toYes === ends.next;
    branchIf(e, yesFalls ? cc : cc ^ 1, other);
    moves(e, yesFalls ? no : yes);
    e.jump(yesFalls ? toNo : toYes);
    e.bind(other);
    moves(e, yesFalls ? yes : no);
    jumpTo(e, ends, yesFalls ? toYes : toNo);
  }
}

/** Do two edges without moves lead to the same place? */
function sameDestination(e: Emission, ends: BlockEnds, a: number, b: number): boolean {
  const { edgeTo } = e.v;
  return ends.target[edgeTo[a]] === ends.target[edgeTo[b]] && !hasMoves(e, a) && !hasMoves(e, b);
}

/** The most cases that are compared one after another. */
const MAX_CHAIN = 4;

/** Selects among edges first … first + n − 1 (in `succ`) by the index; the last is the default. */
export function emitSwitch(e: Emission, ends: BlockEnds, i: number, first: number, n: number): void {
  const { v } = e;
  const index = e.register(v.firstOperand[i]);
  const last = n - 1;
  const total = (v.aux[i] & 1) !== 0;
  if (last <= MAX_CHAIN) {
    const otherwise = v.succ[first + last];
    for (let k = 0; k < last; k++) {
      if (sameDestination(e, ends, v.succ[first + k], otherwise)) continue;
      if (k === 0) rr(e, X.TEST32_M, index, index);
      else ri(e, X.CMP32_I, index, k);
      e.branch(CC.E, edgeLabel(e, ends, v.succ[first + k]));
    }
    jumpTo(e, ends, edgeLabel(e, ends, otherwise));
    return;
  }
  const temp = e.register(v.firstOperand[i] + 1);
  // An index that cannot exceed the last edge's number needs no check; the table then has an entry for that edge too.
  if (!total) {
    ri(e, X.CMP32_I, index, last);
    e.branch(CC.AE, edgeLabel(e, ends, v.succ[first + last]));
  }
  const table = e.newLabel();
  e.tableLabel.push(table);
  e.tableFirst.push(e.tableTargets.length);
  const entries = total ? n : last;
  for (let k = 0; k < entries; k++) e.tableTargets.push(edgeLabel(e, ends, v.succ[first + k]));
  leaLabel(e, SCRATCH, table);
  emitMemory(e.asm, X.MOVSXD, temp, 0, SCRATCH, index, 2, 0, 0, 0);
  rr(e, X.ADD64_R, temp, SCRATCH);
  rr(e, X.JMP_M, 0, temp);
}

/** Jump tables and pool constants, behind the function's code: largest alignment first. */
export function emitData(e: Emission): void {
  const { asm, poolLabel, poolSize, poolLow, poolHigh } = e;
  for (const size of [16, 8, 4]) {
    let aligned = false;
    for (let k = 0; k < poolLabel.length; k++) {
      if (poolSize[k] !== size) continue;
      asm.reserve(32);
      if (!aligned) e.mark(KIND.ALIGN, size, 0, 0, 0);
      aligned = true;
      e.bind(poolLabel[k]);
      if (size === 16) { for (let w = 0; w < 4; w++) asm.int32(e.v.vectors[poolLow[k] * 4 + w]); }
      else asm.int32(poolLow[k]);
      if (size === 8) asm.int32(poolHigh[k]);
    }
  }
  for (let t = 0; t < e.tableLabel.length; t++) {
    const end = t + 1 < e.tableLabel.length ? e.tableFirst[t + 1] : e.tableTargets.length;
    e.mark(KIND.ALIGN, 4, 0, 0, 0);
    e.bind(e.tableLabel[t]);
    for (let k = e.tableFirst[t]; k < end; k++) {
      asm.reserve(32);
      e.mark(KIND.DIFFERENCE, e.tableTargets[k], e.tableLabel[t], 0, 0);
      asm.int32(0);
    }
  }
}
