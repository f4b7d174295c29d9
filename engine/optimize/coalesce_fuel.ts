/**
 * Charges of fuel one after the other, with nothing in between that anybody could see. In: a function with CHARGEs of
 * its regions. Out: of such a run only the last takes fuel, its own and what the others owe; these only look whether
 * there is enough.
 *
 *     k:  CHARGE 4 · compare · BRANCH ──► CHARGE 3 · store         k:  is there 4?  compare · BRANCH ──► CHARGE 4 + 3 · store
 *                                    └──► CHARGE 5 · call                                           └──► CHARGE 4 + 5 · call
 *
 * Taking is a chain of subtractions, each of which waits for the one before, through everything that runs; looking is
 * not. Every region is still paid for, or refused, before it begins, and when one is refused, what the others owe is
 * taken then.
 *
 * Invariant: whatever has an effect, loops back or leaves the function finds nothing owed. So a charge may owe only if
 * the next thing with an effect on every way from it is another charge, which no other way leads to. (Only the check of
 * the native stack, which stands where the frame is taken, may find something owed. How deep that stack is is the
 * machine's affair.)
 */
import type { IrFunction } from "../ir/function.ts";
import { CHARGE_OWES, OP } from "../ir/ops.ts";
import { successorAt, successorCount } from "./cfg.ts";
import { hasEffect } from "./dead_code.ts";

const { CHARGE, CONST, PARAM } = OP;
/** More than this is never owed, nor charged together with what is owed: any backend compares with the sum. */
const MOST_OWED = 1 << 28;

/** Merges the charges of `f`; returns how many owe. */
export function coalesceFuel(f: IrFunction): number {
  const { op, a, b, c, imm, sched, edgeTo, blockStart, blockEnd, blockParams, blockCount } = f;
  const ways = new Int32Array(blockCount);
  for (let k = 0; k < blockCount; k++) {
    const last = sched[blockEnd[k] - 1];
    for (let n = successorCount(f, last) - 1; n >= 0; n--) ways[edgeTo[successorAt(f, last, n)]]++;
  }
  /** From place `s` on: the next instruction of block `k` with an effect, its end included. */
  const nextEffect = (s: number, k: number) => {
    const end = blockEnd[k] - 1;
    while (s < end && (op[sched[s]] === PARAM || !hasEffect(f, sched[s]))) s++;
    return sched[s];
  };
  const isFixed = (i: number) => {
    const units = a[i];
    return op[i] === CHARGE && op[units] === CONST && c[units] === 0 && imm[units] >= 0 && imm[units] <= MOST_OWED;
  };
  /** Does every way out of block `k` come to a charge first? */
  const allCharge = (k: number) => {
    const last = sched[blockEnd[k] - 1];
    const count = successorCount(f, last);
    for (let n = 0; n < count; n++) {
      const to = edgeTo[successorAt(f, last, n)];
      if (to <= k || ways[to] !== 1 || !isFixed(nextEffect(blockStart[to] + blockParams[to], to))) return false;
    }
    return count > 0;
  };
  const owed = new Int32Array(blockCount);
  let owing = 0;
  for (let k = 0; k < blockCount; k++) {
    let before = owed[k];
    for (let s = blockStart[k] + blockParams[k], end = blockEnd[k] - 1; s < end; s++) {
      const i = sched[s];
      if (!isFixed(i)) continue;
      b[i] = before;
      const sum = before + imm[a[i]];
      before = 0;
      if (sum > MOST_OWED) continue;
      const next = nextEffect(s + 1, k);
      if (next === sched[end] ? !allCharge(k) : !isFixed(next)) continue;
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
