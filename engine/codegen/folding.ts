/**
 * Uses of values, and folding of values into their users: the common part of the backends' folding.ts.
 *
 * A forward sweep counts uses and numbers effect groups; a backend's backward sweep then folds, users before producers,
 * by `fold`.
 */
import { type f64, lowWord, unsigned } from "../base/numbers.ts";
import { REGION, regionKind } from "../ir/regions.ts";
import { FLAG, OP, OP_FLAGS, OP_HAS_LIST, OP_VALUE_MASK } from "../ir/ops.ts";
import { TRAP } from "../base/traps.ts";
import { FOLDING, type LoweringContext } from "./lowering_context.ts";

/** Whether `op` is a comparison of integers or references. */
export function isIntegerCompare(op: number): boolean {
  return op >= OP.EQ && op <= OP.GE_U;
}

/** Whether `op` is a comparison of floats. */
export function isFloatCompare(op: number): boolean {
  return op >= OP.FEQ && op <= OP.FGE;
}

export function isCompare(op: number): boolean {
  return isIntegerCompare(op) || isFloatCompare(op);
}

/**
 * The trap of a load: 0 for none, 1 for that of an access of a linear memory, otherwise the trap in its column b, plus
 * 2.
 */
function loadKind(word: number, b: number): number {
  const kind = regionKind(word);
  if (kind === REGION.CONTEXT) return 0;
  if (kind === REGION.MEMORY0) return 1;
  return b === 0 ? 0 : b === TRAP.MEMORY_OUT_OF_BOUNDS ? 1 : b + 2;
}

/** Forward sweep: uses, blocks and effect groups of all values. */
export function countUses(s: LoweringContext): void {
  const { f, op, a, b, c, uses, conditionUses, blockOf, trapGroup, writeGroup } = s;
  const { sched, pool, edgeTo, edgeArgs, blockParams } = f;
  let trap = 0;
  let write = 0;
  // Loads may be exchanged only if they trap alike.
  let kind = 0;
  for (let k = 0; k < f.blockCount; k++) {
    trap++;
    write++;
    kind = 0;
    const end = f.blockEnd[k];
    for (let p = f.blockStart[k]; p < end; p++) {
      const id = sched[p];
      const o = op[id];
      blockOf[id] = k;
      const flags = OP_FLAGS[o];
      if ((flags & (FLAG.READS | FLAG.WRITES | FLAG.TRAPS)) === (FLAG.READS | FLAG.TRAPS)) {
        const own = loadKind(c[id], b[id]);
        if (own !== 0 && kind !== 0 && own !== kind) trap++;
        if (own !== 0) kind = own;
      }
      trapGroup[id] = trap;
      writeGroup[id] = write;
      const mask = OP_VALUE_MASK[o];
      if ((mask & 1) !== 0) uses[a[id]]++;
      if ((mask & 2) !== 0) uses[b[id]]++;
      if ((mask & 4) !== 0) uses[c[id]]++;
      if (OP_HAS_LIST[o] !== 0) {
        const first = a[id];
        for (let i = 0; i < b[id]; i++) uses[pool[first + i]]++;
      }
      if (o === OP.SELECT) conditionUses[c[id]]++;
      else if (o === OP.BRANCH || o === OP.TRAP_IF) conditionUses[a[id]]++;
      if ((flags & (FLAG.WRITES | FLAG.CALLS)) !== 0) {
        trap++;
        write++;
      } else if ((flags & FLAG.TRAPS) !== 0 && ((flags & FLAG.READS) === 0)) {
        trap++;
      }
      if ((flags & FLAG.ENDS) !== 0) {
        const n = o === OP.JUMP ? 1 : o === OP.BRANCH ? 2 : o === OP.SWITCH ? c[id] : 0;
        for (let i = 0; i < n; i++) {
          const e = o === OP.JUMP ? a[id] : o === OP.BRANCH ? (i === 0 ? b[id] : c[id]) : b[id] + i;
          const first = edgeArgs[e];
          const count = blockParams[edgeTo[e]];
          for (let j = 0; j < count; j++) uses[pool[first + j]]++;
        }
      }
    }
  }
}

/** Folds operands of value `id`. */
export type FoldRule<S extends LoweringContext> = (s: S, id: number) => void;

export function foldNothing(_s: LoweringContext, _id: number): void {}

/**
 * Backward sweep: applies the fold rule of each live value. Values folded in a way that `finished` (bit n: FOLDING n)
 * names are skipped; their users have folded their operands. Needs {@linkcode countUses}.
 */
export function applyFoldRules<S extends LoweringContext>(
  s: S,
  rules: readonly FoldRule<S>[],
  finished: number,
): void {
  const { f, op, uses, folded } = s;
  const { sched } = f;
  for (let k = f.blockCount - 1; k >= 0; k--) {
    for (let p = f.blockEnd[k] - 1; p >= f.blockStart[k]; p--) {
      const id = sched[p];
      if (((finished >>> folded[id]) & 1) !== 0) continue;
      const o = op[id];
      if (uses[id] === 0 && (OP_FLAGS[o] & FLAG.PURE) !== 0) dropUses(s, id);
      else rules[o](s, id);
    }
  }
}

/** Folds value `id` into `user`: it is computed there, and so are the values folded into it. */
export function fold(s: LoweringContext, id: number, user: number, how: number): void {
  s.folded[id] = how;
  s.trapGroup[id] = s.trapGroup[user];
  s.writeGroup[id] = s.writeGroup[user];
  s.trapUser[id] = s.trapUser[user];
}

/** Folds a single-use pure value of the same block. */
export function foldPure(s: LoweringContext, id: number, user: number): boolean {
  if (s.uses[id] !== 1 || s.blockOf[id] !== s.blockOf[user] || s.folded[id] !== 0) return false;
  fold(s, id, user, FOLDING.ONCE);
  return true;
}

/** A dead value no longer uses its operands. */
function dropUses(s: LoweringContext, id: number): void {
  const mask = OP_VALUE_MASK[s.op[id]];
  if ((mask & 1) !== 0) s.uses[s.a[id]]--;
  if ((mask & 2) !== 0) s.uses[s.b[id]]--;
  if ((mask & 4) !== 0) {
    s.uses[s.c[id]]--;
    if (s.op[id] === OP.SELECT) s.conditionUses[s.c[id]]--;
  }
}

/** Depth to which operands of a value are followed. */
const RANGE_DEPTH = 4;

/** Powers of two by exponent. */
const POWERS = Float64Array.from({ length: 32 }, (_, k) => 2 ** k);
const MAX: f64 = 0xffffffff;

/** An upper bound (a number below 2^32) of the i32 value `id` as unsigned. */
export function upperBound(s: LoweringContext, id: number, depth: number = RANGE_DEPTH): f64 {
  const { op, a, b, imm } = s;
  switch (op[id]) {
    case OP.CONST:
      return unsigned(imm[id]);
    case OP.AND: {
      if (depth === 0) return MAX;
      return Math.min(upperBound(s, a[id], depth - 1), upperBound(s, b[id], depth - 1));
    }
    case OP.SHR_U:
      if (op[b[id]] === OP.CONST && depth > 0) {
        return Math.floor(upperBound(s, a[id], depth - 1) / POWERS[imm[b[id]] & 31]);
      }
      return MAX;
    case OP.SHL: {
      if (op[b[id]] !== OP.CONST || depth === 0) return MAX;
      return Math.min(upperBound(s, a[id], depth - 1) * POWERS[imm[b[id]] & 31], MAX);
    }
    case OP.ADD: {
      if (depth === 0) return MAX;
      return Math.min(upperBound(s, a[id], depth - 1) + upperBound(s, b[id], depth - 1), MAX);
    }
    case OP.OR:
    case OP.XOR: {
      if (depth === 0) return MAX;
      // All bits up to the highest that one of the operands can have.
      const most = Math.max(upperBound(s, a[id], depth - 1), upperBound(s, b[id], depth - 1));
      return most < POWERS[31] ? POWERS[32 - Math.clz32(lowWord(most))] - 1 : MAX;
    }
    case OP.LOAD8_U:
      return unsigned(0xff);
    case OP.LOAD16_U:
      return unsigned(0xffff);
  }
  return op[id] >= OP.EQ && op[id] <= OP.GE_U ? unsigned(1) : MAX;
}
