/**
 * Instruction selection: IrFunction → VCode. Two analysis sweeps (folding.ts and the backend's), then one sweep over
 * the blocks that applies the backend's rule of each operation. Blocks and edges keep their numbers.
 */
import { FLAG, OP, OP_FLAGS, OP_VALUE_MASK } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { countUses } from "./folding.ts";
import { selectEntry } from "./select_control.ts";
import type { LoweringContext } from "./lowering_context.ts";

/** Selects instructions for value `id`. */
export type Rule<S extends LoweringContext> = (s: S, id: number) => void;

/** Chooses instructions for the function that `s` has begun. `rules` by number of the IR operation. */
export function selectBlocks<S extends LoweringContext>(
  s: S,
  rules: readonly Rule<S>[],
  markFolds: (s: S) => void,
): void {
  const { f, v } = s;
  v.ensureGraph(f.blockCount, f.edgeCount);
  v.blockCount = f.blockCount;
  v.edgeCount = f.edgeCount;
  v.hasCalls = f.treatedAsCalling;
  countUses(s);
  pinConstants(s);
  markFolds(s);
  for (let k = 0; k < f.blockCount; k++) {
    s.block = k;
    s.region++;
    v.blockFirst[k] = v.count;
    v.blockDepth[k] = f.blockDepth[k];
    v.blockFlags[k] = f.blockFlags[k];
    v.layout[k] = f.layout[k];
    v.succStart[k] = v.succTotal;
    selectBlock(s, rules, k);
    v.succCount[k] = v.succTotal - v.succStart[k];
  }
  v.blockFirst[f.blockCount] = v.count;
}

function selectBlock<S extends LoweringContext>(s: S, rules: readonly Rule<S>[], k: number): void {
  const { f, v, op, uses, folded } = s;
  const { sched } = f;
  const start = f.blockStart[k];
  const end = f.blockEnd[k];
  const params = f.blockParams[k];
  if (k === 0) {
    s.current = sched[start];
    v.paramStart[0] = v.allocPool(0);
    v.paramCount[0] = 0;
    selectEntry(s);
  } else {
    const first = v.allocPool(params);
    v.paramStart[k] = first;
    v.paramCount[k] = params;
    for (let i = 0; i < params; i++) v.pool[first + i] = s.defVreg(sched[start + i]);
  }
  for (let p = start + params; p < end; p++) {
    const id = sched[p];
    if (folded[id] !== 0) continue;
    const o = op[id];
    if (uses[id] === 0 && (OP_FLAGS[o] & FLAG.PURE) !== 0) continue;
    s.current = id;
    s.scheduled = p;
    rules[o](s, id);
  }
}

/** Keeps float and vector constants that a deeper loop uses in a register from their definition on. */
function pinConstants(s: LoweringContext): void {
  const { f, op, ty, a, b, blockOf } = s;
  const { sched, blockDepth } = f;
  for (let k = 0; k < f.blockCount; k++) {
    const depth = blockDepth[k];
    if (depth === 0) continue;
    for (let p = f.blockStart[k]; p < f.blockEnd[k]; p++) {
      const id = sched[p];
      const o = op[id];
      if (o >= OP.VSPLAT) pinVectorConstants(s, id, depth);
      if (o < OP.FADD || o > OP.FGE) continue;
      const x = a[id];
      const y = b[id];
      if (op[x] === OP.CONST && ty[x] !== TY.NONE && blockDepth[blockOf[x]] < depth) s.constantBlock[x] = -1;
      if ((y > 0 && o < OP.FABS) || o >= OP.FEQ) {
        if (op[y] === OP.CONST && blockDepth[blockOf[y]] < depth) s.constantBlock[y] = -1;
      }
    }
  }
}

/**
 * The same for the vector constants that vector operation `id` uses (key v128-const-cache); a zero is cheaper to make
 * than to keep.
 */
function pinVectorConstants(s: LoweringContext, id: number, depth: number): void {
  if (!s.options.keepsVectors) return;
  const { op, ty, blockOf } = s;
  const { blockDepth } = s.f;
  const mask = OP_VALUE_MASK[op[id]];
  for (let k = 0; k < 3; k++) {
    if ((mask & (1 << k)) === 0) continue;
    const x = k === 0 ? s.a[id] : k === 1 ? s.b[id] : s.c[id];
    if (op[x] === OP.CONST && ty[x] === TY.V128 && blockDepth[blockOf[x]] < depth && !s.isZeroVector(x)) {
      s.constantBlock[x] = -1;
    }
  }
}
