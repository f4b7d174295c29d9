/**
 * Emission of block ends. The next block in layout order is reached by falling through; blocks that only jump are
 * skipped, and edges to them go to their target. Moves of an edge (Allocation) are emitted
 *
 *   - before the jump, if the block has one successor;
 *   - at the head of the successor, if it has no other predecessor;
 *   - in front of the conditional branch, if the edge closes a loop and its moves are safe there
 *     (hoisted_edge_moves.ts); also in front of its compare, unless the moves use an operand of that:
 *     processors fuse a compare with the branch right behind it;
 *   - in line between the conditional branch and the next block, if the edge leads there, or in front of a jump to its
 *     target;
 *   - out of line, if the target is cold or a switch selects it.
 */
import { BLOCK_COLD } from "../ir/function.ts";
import type { BlockEnds } from "./block_ends.ts";
import { type FunctionEmission, OUT_OF_LINE } from "./emission.ts";
import type { Emitter } from "./emitter.ts";
import { AUX_TRAP_SHIFT, MAX_COMPARED_CASES } from "./pseudo_ops.ts";

function hasMoves(e: FunctionEmission, edge: number): boolean {
  return e.allocation.edgeFirst[edge] !== e.allocation.edgeFirst[edge + 1];
}

function moves<E extends FunctionEmission>(emitter: Emitter<E>, e: E, edge: number): void {
  const { edgeFirst } = e.allocation;
  emitter.edits(e, edgeFirst[edge], edgeFirst[edge + 1]);
}

/** Moves the edge's moves to the head of its target if that has no other predecessor; returns whether it did. */
function sink(e: FunctionEmission, ends: BlockEnds, edge: number): boolean {
  const to = e.v.edgeTo[edge];
  if (ends.predecessors[to] !== 1 || ends.emitted[to] !== 0 || ends.target[to] !== to) return false;
  ends.headEdge[to] = edge + 1;
  return true;
}

/** Jumps to block `target` unless it is the next one. */
function jumpTo(e: FunctionEmission, ends: BlockEnds, target: number): void {
  if (target !== ends.next) e.jump(target);
}

export function emitJump<E extends FunctionEmission>(emitter: Emitter<E>, e: E, ends: BlockEnds, edge: number): void {
  // In front of the prologue there is no frame for the moves yet.
  if (ends.prologue[e.v.edgeTo[edge]] === 0 || !sink(e, ends, edge)) moves(emitter, e, edge);
  jumpTo(e, ends, ends.target[e.v.edgeTo[edge]]);
}

/** The label of an edge: that of out-of-line code if the edge has moves, else that of its target. */
export function edgeLabel(e: FunctionEmission, ends: BlockEnds, edge: number): number {
  const target = ends.target[e.v.edgeTo[edge]];
  if (!hasMoves(e, edge) || sink(e, ends, edge)) return target;
  return e.outOfLine(OUT_OF_LINE.EDGE, -1, edge, target);
}

/** Whether the moves of `edge` can be made before compare `i`, which still has to be emitted and reads its operands. */
function precedeCompare<E extends FunctionEmission>(emitter: Emitter<E>, e: E, i: number, edge: number): boolean {
  if (emitter.flagsAreSet(e, i)) return false;
  const { v, location, allocation } = e;
  const { edgeFirst, editTo, editFrom, editRemat } = allocation;
  for (let o = v.firstOperand[i]; o < v.firstOperand[i + 1]; o++) {
    for (let m = edgeFirst[edge]; m < edgeFirst[edge + 1]; m++) {
      if (editTo[m] === location[o] || (editRemat[m] < 0 && editFrom[m] === location[o])) return false;
    }
  }
  return true;
}

/** Branch of compare `i`: edge `yes` if its condition holds, else edge `no`. */
export function emitBranch<E extends FunctionEmission>(
  emitter: Emitter<E>,
  e: E,
  ends: BlockEnds,
  i: number,
  yes: number,
  no: number,
): void {
  const { v } = e;
  const toYes = ends.target[v.edgeTo[yes]];
  const toNo = ends.target[v.edgeTo[no]];
  let movesYes = hasMoves(e, yes);
  let movesNo = hasMoves(e, no);
  if (toYes === toNo && !movesYes && !movesNo) {
    if (((v.aux[i] >>> AUX_TRAP_SHIFT) & 63) !== 0) emitter.flags(e, i); // a load that may trap is part of it
    jumpTo(e, ends, toYes);
    return;
  }
  if (movesYes && sink(e, ends, yes)) movesYes = false;
  if (movesNo && sink(e, ends, no)) movesNo = false;
  const early = movesYes && emitter.movesEarly(e, i, yes, no)
    ? yes
    : movesNo && emitter.movesEarly(e, i, no, yes)
    ? no
    : -1;
  const first = early >= 0 && precedeCompare(emitter, e, i, early);
  if (first) moves(emitter, e, early);
  const cc = emitter.flags(e, i);
  if (early >= 0 && !first) moves(emitter, e, early);
  const coldYes = (v.blockFlags[toYes] & BLOCK_COLD) !== 0;
  const coldNo = (v.blockFlags[toNo] & BLOCK_COLD) !== 0;
  if (early === yes) {
    emitter.branchOn(e, i, cc, toYes);
    if (movesNo) moves(emitter, e, no);
    jumpTo(e, ends, toNo);
  } else if (early === no) {
    emitter.branchOn(e, i, cc ^ 1, toNo);
    if (movesYes) moves(emitter, e, yes);
    jumpTo(e, ends, toYes);
  } else if (movesYes && coldYes && !coldNo) {
    emitter.branchOn(e, i, cc, e.outOfLine(OUT_OF_LINE.EDGE, -1, yes, toYes));
    if (movesNo) moves(emitter, e, no);
    jumpTo(e, ends, toNo);
  } else if (movesNo && coldNo && !coldYes) {
    emitter.branchOn(e, i, cc ^ 1, e.outOfLine(OUT_OF_LINE.EDGE, -1, no, toNo));
    if (movesYes) moves(emitter, e, yes);
    jumpTo(e, ends, toYes);
  } else if (!movesYes && (movesNo || toNo === ends.next || toYes !== ends.next)) {
    emitter.branchOn(e, i, cc, toYes);
    if (movesNo) moves(emitter, e, no);
    jumpTo(e, ends, toNo);
  } else if (!movesNo) {
    emitter.branchOn(e, i, cc ^ 1, toNo);
    if (movesYes) moves(emitter, e, yes);
    jumpTo(e, ends, toYes);
  } else {
    const other = e.newLabel();
    const yesFalls = toYes === ends.next;
    emitter.branchOn(e, i, yesFalls ? cc : cc ^ 1, other);
    moves(emitter, e, yesFalls ? no : yes);
    e.jump(yesFalls ? toNo : toYes);
    e.bind(other);
    moves(emitter, e, yesFalls ? yes : no);
    jumpTo(e, ends, yesFalls ? toYes : toNo);
  }
}

/** Whether two edges without moves lead to the same place. */
function sameDestination(e: FunctionEmission, ends: BlockEnds, a: number, b: number): boolean {
  const { edgeTo } = e.v;
  return ends.target[edgeTo[a]] === ends.target[edgeTo[b]] && !hasMoves(e, a) && !hasMoves(e, b);
}

/**
 * A switch of few cases as a chain of compares, for instruction `i` with edges first … first + n − 1 (in `succ`), the
 * last of which is the default; `branchCase` jumps to a label if the index is k. Returns false, and does nothing, if
 * the cases are too many.
 */
export function emitChain<E extends FunctionEmission>(
  e: E,
  ends: BlockEnds,
  first: number,
  n: number,
  index: number,
  branchCase: (e: E, index: number, k: number, label: number) => void,
): boolean {
  const last = n - 1;
  if (last > MAX_COMPARED_CASES) return false;
  const { succ } = e.v;
  const otherwise = succ[first + last];
  for (let k = 0; k < last; k++) {
    const edge = succ[first + k];
    if (sameDestination(e, ends, edge, otherwise)) continue;
    branchCase(e, index, k, edgeLabel(e, ends, edge));
  }
  jumpTo(e, ends, edgeLabel(e, ends, otherwise));
  return true;
}

/** The most entries that are added to a jump table, so that a mask bounds its index. */
const MAX_ADDED_ENTRIES = 64;

/**
 * The mask of the index of a table whose first `entries` entries are cases and whose others are the default, so that
 * their number is a power of two: after a mispredicted check, no word behind the table is jumped by, and the load of
 * the entry does not wait for the check. 0: the table would be too long.
 */
export function tableMask(entries: number): number {
  const mask = (1 << (32 - Math.clz32(entries - 1))) - 1;
  return mask + 1 - entries <= MAX_ADDED_ENTRIES ? mask : 0;
}
