/**
 * Coalesces consecutive charges of fuel that have no observable effect in between. In: a function with a CHARGE per
 * region. Out: of such a run only the last charge takes fuel, its own units and those that the others owe; the others
 * only check whether there is enough.
 *
 *     k:  CHARGE 4 · compare · BRANCH ─► CHARGE 3 · store
 *                                    └─► CHARGE 5 · call
 *
 *     k:  enough for 4?  compare · BRANCH ─► CHARGE 4 + 3 · store
 *                                        └─► CHARGE 4 + 5 · call
 *
 * Taking fuel is a chain of dependent subtractions through everything that runs; checking is not. Every region is still
 * paid for, or refused, before it begins; when a charge is refused, the units that others owe are taken at that point.
 *
 * Invariant: nothing is owed at an instruction with an effect, at a back edge or at the end of the function. A charge
 * may owe only if the next instruction with an effect on every path from it is another charge, which no other path
 * reaches. (The exception is the check of the native stack, which happens where the frame is allocated: something may
 * be owed there. The depth of the native stack is not observable behaviour.)
 */
import type { IrFunction } from "../ir/function.ts";
import { CHARGE_OWES, OP } from "../ir/ops.ts";
import { successorAt, successorCount } from "./cfg.ts";
import { hasEffect } from "./dead_code.ts";

const { CHARGE, CONST, PARAM } = OP;
/** Limit of the units owed, and of a charge together with the units owed: every backend can compare with the sum. */
const MAX_OWED = 1 << 28;

/** Merges the charges of `f`; returns how many owe. */
export function coalesceFuel(f: IrFunction): number {
  const { a, b, imm, sched, edgeTo, blockStart, blockEnd, blockParams, blockCount } = f;
  const ways = new Int32Array(blockCount);
  for (let k = 0; k < blockCount; k++) {
    const last = sched[blockEnd[k] - 1];
    for (let n = successorCount(f, last) - 1; n >= 0; n--) ways[edgeTo[successorAt(f, last, n)]]++;
  }
  const owed = new Int32Array(blockCount);
  let owing = 0;
  for (let k = 0; k < blockCount; k++) {
    let before = owed[k];
    for (let s = blockStart[k] + blockParams[k], end = blockEnd[k] - 1; s < end; s++) {
      const i = sched[s];
      if (!isFixed(f, i)) continue;
      b[i] = before;
      const sum = before + imm[a[i]];
      before = 0;
      if (sum > MAX_OWED) continue;
      const next = nextEffect(f, s + 1, k);
      if (next === sched[end] ? !allCharge(f, ways, k) : !isFixed(f, next)) continue;
      imm[i] = CHARGE_OWES;
      before = sum;
      owing++;
    }
    if (before === 0) continue;
    const last = sched[blockEnd[k] - 1];
    for (let n = successorCount(f, last) - 1; n >= 0; n--) owed[edgeTo[successorAt(f, last, n)]] = before;
  }
  return owing;
}

/** From position `s` on: the next instruction of block `k` with an effect, its end included. */
function nextEffect(f: IrFunction, s: number, k: number): number {
  const { op, sched } = f;
  const end = f.blockEnd[k] - 1;
  while (s < end && (op[sched[s]] === PARAM || !hasEffect(f, sched[s]))) s++;
  return sched[s];
}

/** Whether instruction `i` is a charge of a constant. */
function isFixed(f: IrFunction, i: number): boolean {
  const { op, a, c, imm } = f;
  const units = a[i];
  return op[i] === CHARGE && op[units] === CONST && c[units] === 0 && imm[units] >= 0 && imm[units] <= MAX_OWED;
}

/**
 * Whether a charge is the first instruction with an effect on every path out of block `k`. `ways`: the number of edges
 * to each block.
 */
function allCharge(f: IrFunction, ways: Int32Array, k: number): boolean {
  const { edgeTo, blockStart, blockParams } = f;
  const last = f.sched[f.blockEnd[k] - 1];
  const count = successorCount(f, last);
  for (let n = 0; n < count; n++) {
    const to = edgeTo[successorAt(f, last, n)];
    if (to <= k || ways[to] !== 1 || !isFixed(f, nextEffect(f, blockStart[to] + blockParams[to], to))) return false;
  }
  return count > 0;
}
