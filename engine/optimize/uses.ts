/**
 * Where values are defined and how often they are used. In: a function in any state between two passes. Out: a column
 * by value.
 */
import type { IrFunction } from "../ir/function.ts";
import { OP_HAS_LIST, OP_VALUE_MASK } from "../ir/ops.ts";

/** Sets `uses`, by value: the number of operands, list entries and arguments of live edges that are the value. */
export function countUses(f: IrFunction, uses: Int32Array): void {
  const { op, a, b, c, sched, schedCount, pool, edgeCount, edgeFrom, edgeTo, edgeArgs, blockParams } = f;
  uses.fill(0, 0, f.count);
  for (let s = 0; s < schedCount; s++) {
    const i = sched[s];
    const mask = OP_VALUE_MASK[op[i]];
    if (mask & 1) uses[a[i]]++;
    if (mask & 2) uses[b[i]]++;
    if (mask & 4) uses[c[i]]++;
    if (OP_HAS_LIST[op[i]]) { for (let p = a[i], end = p + b[i]; p < end; p++) uses[pool[p]]++; }
  }
  for (let e = 0; e < edgeCount; e++) {
    if (edgeFrom[e] < 0) continue;
    for (let p = edgeArgs[e], end = p + blockParams[edgeTo[e]]; p < end; p++) uses[pool[p]]++;
  }
}

/** By value: the block that defines it. */
export function definingBlocks(f: IrFunction): Int32Array {
  const home = new Int32Array(f.count);
  for (let k = 0; k < f.blockCount; k++) {
    for (let s = f.blockStart[k], end = f.blockEnd[k]; s < end; s++) home[f.sched[s]] = k;
  }
  return home;
}
