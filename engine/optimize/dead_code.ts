/**
 * Removes dead values: instructions without effects, block parameters (cycles of them too, such as a counter that only
 * counts itself) and the edge arguments that fed them. In: a function and its control flow. Out: the same function with
 * a shorter order; values, blocks and edges keep their numbers.
 *
 * One reverse sweep computes liveness. It relies on definitions preceding uses in block order, so the sweep usually has
 * yet to reach a value that becomes live; only arguments of back edges have been passed already, and they go through a
 * stack.
 */
import type { IrFunction } from "../ir/function.ts";
import { CLASS_CONSTANT, REGION, regionClass, regionKind } from "../ir/regions.ts";
import { FLAG, OP, OP_FLAGS, OP_HAS_LIST, OP_VALUE_MASK } from "../ir/ops.ts";
import type { ControlFlow } from "./cfg.ts";

const { PARAM, LOAD, LOAD32_U, DIV_S, REM_U } = OP;
const KEPT = FLAG.WRITES | FLAG.TRAPS | FLAG.CALLS | FLAG.ENDS;

/**
 * Whether instruction `i`, a load, can fault. The context is always mapped, and so is constant memory unless the load
 * has a trap code.
 */
function loadMayTrap(f: IrFunction, i: number): boolean {
  const region = f.c[i];
  if (regionKind(region) === REGION.CONTEXT) return false;
  return regionClass(region) !== CLASS_CONSTANT || f.b[i] !== 0;
}

/** Whether instruction `i` must stay even when its value is unused. */
export function hasEffect(f: IrFunction, i: number): boolean {
  const op = f.op[i];
  if ((OP_FLAGS[op] & KEPT) === 0) return false;
  if (op >= DIV_S && op <= REM_U) return f.imm[i] !== 0;
  if (op >= LOAD && op <= LOAD32_U) return loadMayTrap(f, i);
  return true;
}

/** Removes dead values. Returns the number of instructions removed. */
export function removeDeadCode(f: IrFunction, flow: ControlFlow): number {
  flow.scratch.ensure(f);
  const live = flow.scratch.marks;
  live.fill(0, 0, f.count);
  mark(f, flow, live);
  return sweep(f, flow, live);
}

/** Sets `live` for every value that an instruction with an effect uses, directly or not. */
function mark(f: IrFunction, flow: ControlFlow, live: Uint8Array): void {
  const defBlock = flow.scratch.values, stack = flow.scratch.stack;
  const { op, a, b, c, imm, sched, pool, edgeArgs, blockStart, blockEnd, blockParams } = f;
  const { predStart, predEdge } = flow;
  const blocks = f.blockCount;
  for (let k = 0; k < blocks; k++) {
    for (let s = blockStart[k], end = blockEnd[k]; s < end; s++) defBlock[sched[s]] = k;
  }
  for (let k = blocks - 1; k >= 0; k--) {
    const start = blockStart[k] + blockParams[k];
    for (let s = blockEnd[k] - 1; s >= start; s--) {
      const i = sched[s];
      const o = op[i];
      if (live[i] === 0) {
        if ((OP_FLAGS[o] & KEPT) === 0 || !hasEffect(f, i)) continue;
        live[i] = 1;
      }
      const mask = OP_VALUE_MASK[o];
      if (mask & 1) live[a[i]] = 1;
      if (mask & 2) live[b[i]] = 1;
      if (mask & 4) live[c[i]] = 1;
      if (OP_HAS_LIST[o]) {
        for (let p = a[i], end = p + b[i]; p < end; p++) live[pool[p]] = 1;
      }
    }
    // The parameters of k. Values that they and the stack make live in this or a later block must be followed now.
    let top = 0;
    for (let s = blockStart[k]; s < start; s++) if (live[sched[s]] !== 0) stack[top++] = sched[s];
    while (top > 0) {
      const i = stack[--top];
      const o = op[i];
      if (o === PARAM) {
        const block = defBlock[i], n = imm[i];
        for (let p = predStart[block], end = predStart[block + 1]; p < end; p++) {
          const v = pool[edgeArgs[predEdge[p]] + n];
          if (live[v] === 0) {
            live[v] = 1;
            if (defBlock[v] >= k) stack[top++] = v;
          }
        }
        continue;
      }
      const mask = OP_VALUE_MASK[o];
      for (let n = 0; n < 3; n++) {
        if ((mask & (1 << n)) === 0) continue;
        const v = n === 0 ? a[i] : n === 1 ? b[i] : c[i];
        if (live[v] === 0) {
          live[v] = 1;
          if (defBlock[v] >= k) stack[top++] = v;
        }
      }
      // Instructions with lists have effects: the sweep saw them already.
    }
  }
}

/** Drops values that are not live from the order and from edge arguments. */
function sweep(f: IrFunction, flow: ControlFlow, live: Uint8Array): number {
  const order = flow.scratch.order;
  const { op, imm, sched, blockStart, blockEnd, blockParams, edgeArgs } = f;
  const { predStart, predEdge } = flow;
  const blocks = f.blockCount;
  const before = f.schedCount;
  let to = 0;
  for (let k = 0; k < blocks; k++) {
    const start = blockStart[k], end = blockEnd[k];
    const params = blockParams[k];
    blockStart[k] = to;
    let kept = 0;
    if (k === 0) { for (; kept < params; kept++) order[to++] = sched[start + kept]; }
    else for (let n = 0; n < params; n++) if (live[sched[start + n]]) kept++;
    if (kept < params) {
      for (let p = predStart[k], last = predStart[k + 1]; p < last; p++) {
        const e = predEdge[p];
        const from = edgeArgs[e];
        const args = f.allocPool(kept);
        const pool = f.pool;
        for (let n = 0, m = 0; n < params; n++) if (live[sched[start + n]]) pool[args + m++] = pool[from + n];
        edgeArgs[e] = args;
      }
      blockParams[k] = kept;
    }
    if (k > 0) {
      for (let n = 0, m = 0; n < params; n++) {
        const i = sched[start + n];
        if (live[i] === 0) continue;
        imm[i] = m++;
        order[to++] = i;
      }
    }
    for (let s = start + params; s < end; s++) {
      const i = sched[s];
      if (live[i] !== 0) order[to++] = i;
      else op[i] = 0;
    }
    blockEnd[k] = to;
  }
  f.sched.set(order.subarray(0, to));
  f.schedCount = to;
  return before - to;
}
