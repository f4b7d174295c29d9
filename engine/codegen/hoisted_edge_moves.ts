/**
 * Moves of a loop's back edge that may be emitted in front of the conditional branch, so that the branch itself goes
 * back and no jump is needed for them. In: an emission and a branch's two edges. Out: whether all moves of the first
 * leave the flags alone and write only registers that are dead on the path of the second.
 *
 * A register is dead if a bounded search from the edge through edits and operands, as the Allocation gives them, finds
 * no reader; everything beyond the bounds counts as a reader. Invariant: edits of other edges that were moved early
 * change nothing here, since they write only dead registers themselves.
 */
import { operandRole, ROLE } from "./vcode.ts";
import type { FunctionEmission } from "./emission.ts";

/** The maximum number of moves: they are wasted when the loop ends. */
const MAX_MOVES = 3;
/** Bounds of the search: blocks, and instructions of each. */
const MAX_BLOCKS = 32;
const MAX_INSTRUCTIONS = 48;

const READ = 0, WRITTEN = 1, NEITHER = 2;

/** Whether the moves of edge `back` may be made before the branch that chooses between it and `other`. */
export function mayMoveEarly(e: FunctionEmission, back: number, other: number): boolean {
  const { v, allocation } = e;
  const { edgeFirst, editFrom, editTo, editRemat } = allocation;
  const first = edgeFirst[back];
  const end = edgeFirst[back + 1];
  if (v.edgeTo[back] > v.edgeFrom[back] || end - first > MAX_MOVES) return false;
  for (let m = first; m < end; m++) {
    // Rematerializing a constant may set the flags; stores are not made speculatively.
    if (editRemat[m] > 0 || editTo[m] < 0) return false;
    if (!isUnread(e, other, editTo[m]) || (editRemat[m] < 0 && !isUnread(e, other, editFrom[m]))) return false;
  }
  return true;
}

/** Whether `register` is dead on edge `edge`: written before it is read, or neither. */
function isUnread(e: FunctionEmission, edge: number, register: number): boolean {
  const { v } = e;
  let found = edgeEffect(e, edge, register);
  if (found !== NEITHER) return found === WRITTEN;
  const visited = [v.edgeTo[edge]];
  for (let next = 0; next < visited.length; next++) {
    const k = visited[next];
    found = blockEffect(e, k, register);
    if (found === READ) return false;
    if (found === WRITTEN) continue;
    const succEnd = v.succStart[k] + v.succCount[k];
    for (let j = v.succStart[k]; j < succEnd; j++) {
      found = edgeEffect(e, v.succ[j], register);
      if (found === READ) return false;
      if (found === WRITTEN) continue;
      const to = v.edgeTo[v.succ[j]];
      if (visited.includes(to)) continue;
      if (visited.length === MAX_BLOCKS) return false;
      visited.push(to);
    }
  }
  return true;
}

function edgeEffect(e: FunctionEmission, edge: number, register: number): number {
  const { edgeFirst } = e.allocation;
  return editsEffect(e, edgeFirst[edge], edgeFirst[edge + 1], register);
}

/** First effect of a sequence of edits on `register`. */
function editsEffect(e: FunctionEmission, first: number, end: number, register: number): number {
  const { editFrom, editTo, editRemat } = e.allocation;
  for (let m = first; m < end; m++) {
    if (editRemat[m] <= 0 && editFrom[m] === register) return READ;
    if (editTo[m] === register) return editRemat[m] < 0 ? READ : WRITTEN;
  }
  return NEITHER;
}

/** First effect of block `k` on `register`. */
function blockEffect(e: FunctionEmission, k: number, register: number): number {
  const { v, allocation } = e;
  const { location, editAt, skip } = allocation;
  const { operands, firstOperand } = v;
  const first = v.blockFirst[k];
  const end = v.blockFirst[k + 1];
  if (end - first > MAX_INSTRUCTIONS) return READ;
  let edit = 0;
  for (let low = 0, high = e.editEnd; low < high;) {
    const middle = (low + high) >>> 1;
    if (editAt[middle] < 2 * first) edit = low = middle + 1;
    else high = middle;
  }
  for (let i = first; i < end; i++) {
    const start = edit;
    while (edit < e.editEnd && editAt[edit] === 2 * i) edit++;
    const before = editsEffect(e, start, edit, register);
    if (before !== NEITHER) return before;
    if (skip[i] === 0) {
      let written = false;
      for (let o = firstOperand[i]; o < firstOperand[i + 1]; o++) {
        if (location[o] !== register) continue;
        const role = operandRole(operands[o]);
        if (role === ROLE.USE || role === ROLE.LATE_USE) return READ;
        written = true;
      }
      const set = v.clobbers[i];
      const mask = register < 32 ? v.clobberGeneral[set] : v.clobberVector[set];
      if (written || (set !== 0 && ((mask >>> (register & 31)) & 1) !== 0)) return WRITTEN;
    }
    const from = edit;
    while (edit < e.editEnd && editAt[edit] === 2 * i + 1) edit++;
    const after = editsEffect(e, from, edit, register);
    if (after !== NEITHER) return after;
  }
  return NEITHER;
}
