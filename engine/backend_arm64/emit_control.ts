/**
 * Emission of block ends. The next block in layout order is reached by falling through; blocks that only jump are skipped and
 * their users go to the target. Moves of an edge (Allocation) stand
 *
 *   - before the jump, if the block has one successor;
 *   - at the head of the successor, if it has no other predecessor;
 *   - in line between the conditional branch and the next block, if that is where the edge goes, or in front of a jump to its target;
 *   - out of line, if the target is cold or a switch selects it.
 */
import { RELOC } from "../codegen/machine_code.ts";
import { BLOCK_COLD } from "../ir/function.ts";
import type { BlockEnds } from "./block_ends.ts";
import { COLD, type Emission, KIND } from "./emission.ts";
import { branchOn, emitFlags } from "./emit_compare.ts";
import { emitEdits } from "./emit_row.ts";
import { encode } from "./encoding.ts";
import { X } from "./instructions.ts";
import { CC } from "./machine_ops.ts";
import { SCRATCH, SCRATCH2, ZERO } from "./registers.ts";

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
    jumpTo(e, ends, toYes);
    return;
  }
  const cc = emitFlags(e, i, v.firstOperand[i]);
  if (movesYes && sink(e, ends, yes)) movesYes = false;
  if (movesNo && sink(e, ends, no)) movesNo = false;
  const coldYes = (v.blockFlags[toYes] & BLOCK_COLD) !== 0;
  const coldNo = (v.blockFlags[toNo] & BLOCK_COLD) !== 0;
  if (movesYes && coldYes && !coldNo) {
    branchOn(e, i, cc, e.cold(COLD.EDGE, -1, yes, toYes));
    if (movesNo) moves(e, no);
    jumpTo(e, ends, toNo);
  } else if (movesNo && coldNo && !coldYes) {
    branchOn(e, i, cc ^ 1, e.cold(COLD.EDGE, -1, no, toNo));
    if (movesYes) moves(e, yes);
    jumpTo(e, ends, toYes);
  } else if (!movesYes && (movesNo || toNo === ends.next || toYes !== ends.next)) {
    branchOn(e, i, cc, toYes);
    if (movesNo) moves(e, no);
    jumpTo(e, ends, toNo);
  } else if (!movesNo) {
    branchOn(e, i, cc ^ 1, toNo);
    if (movesYes) moves(e, yes);
    jumpTo(e, ends, toYes);
  } else {
    const other = e.newLabel();
    const yesFalls = toYes === ends.next;
    branchOn(e, i, yesFalls ? cc : cc ^ 1, other);
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

/** Option of an index register: 32 bits, zero-extended. */
const UXTW = 2;

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
      const label = edgeLabel(e, ends, v.succ[first + k]);
      if (k === 0) e.branchZero(X.CBZ32, index, label);
      else {
        e.asm.rri(X.SUBS_I32, ZERO, index, k, 0);
        e.branch(CC.EQ, label);
      }
    }
    jumpTo(e, ends, edgeLabel(e, ends, otherwise));
    return;
  }
  // An index that cannot exceed the last edge's number needs no check; the table then has an entry for that edge too.
  if (!total) {
    if (last < 0x1000) e.asm.rri(X.SUBS_I32, ZERO, index, last, 0);
    else {
      e.asm.constant(SCRATCH, last, 0);
      e.asm.rrr(X.SUBS32, ZERO, index, SCRATCH);
    }
    e.branch(CC.HS, edgeLabel(e, ends, v.succ[first + last]));
  }
  // The table follows at once, so that it is in reach however large the function is.
  const table = e.newLabel();
  e.address(SCRATCH, table);
  e.asm.word(encode(X.LDRSW_X, SCRATCH2, SCRATCH, index, 0, 0, UXTW, 0, 1));
  e.asm.rrr(X.ADD64, SCRATCH, SCRATCH, SCRATCH2);
  e.asm.rrr(X.BR, 0, SCRATCH, 0);
  e.bind(table);
  const entries = total ? n : last;
  for (let k = 0; k < entries; k++) {
    e.asm.reserve(64);
    e.mark(KIND.DIFFERENCE, edgeLabel(e, ends, v.succ[first + k]), table, 0, 0);
    e.asm.word(0);
  }
}

/** Pool constants, behind the function's code: largest alignment first. */
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
      if (size === 16) { for (let w = 0; w < 4; w++) asm.word(e.v.vectors[poolLow[k] * 4 + w]); }
      else asm.word(poolLow[k]);
      if (size === 8) asm.word(poolHigh[k]);
    }
  }
  if (e.poll >= 0) {
    asm.reserve(32);
    e.bind(e.poll);
    e.mark(KIND.RELOCATION, RELOC.POLL_PAGE, 0, 0, 0);
    asm.word(0);
  }
}
