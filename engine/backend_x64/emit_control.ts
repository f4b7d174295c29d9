/**
 * Emission of switches, and of the data after a function's code: constants and jump tables. codegen/emit_edges.ts emits
 * edges.
 */
import type { BlockEnds } from "../codegen/block_ends.ts";
import { edgeLabel, emitChain, tableMask } from "../codegen/emit_edges.ts";
import { type Emission, KIND } from "./emission.ts";
import { leaLabel } from "./emit_calls.ts";
import { ri, rr } from "./emit_row.ts";
import { emitMemory } from "./encoding.ts";
import { X } from "./instructions.ts";
import { CC } from "./machine_ops.ts";
import { SCRATCH } from "./registers.ts";

function branchCase(e: Emission, index: number, k: number, label: number): void {
  if (k === 0) rr(e, X.TEST32_M, index, index);
  else ri(e, X.CMP32_I, index, k);
  e.branch(CC.E, label);
}

/** Selects among edges first … first + n − 1 (in `succ`) by the index; the last is the default. */
export function emitSwitch(e: Emission, ends: BlockEnds, i: number, first: number, n: number): void {
  const { v } = e;
  const index = e.register(v.firstOperand[i]);
  if (emitChain(e, ends, first, n, index, branchCase)) return;
  const last = n - 1;
  const total = (v.aux[i] & 1) !== 0;
  const temp = e.register(v.firstOperand[i] + 1);
  const mask = total || !e.options.masksTables ? 0 : tableMask(last);
  let entry = index;
  // An index that cannot exceed the last edge's number needs no check; the table then has an entry for that edge too.
  if (!total) {
    // SBB waits for the register's old value, on processors that do not see that the result has none of it.
    if (e.options.masksTables && mask === 0) rr(e, X.XOR32_R, temp, temp);
    ri(e, X.CMP32_I, index, last);
    e.branch(CC.AE, edgeLabel(e, ends, v.succ[first + last]));
    if (mask > 0) {
      rr(e, X.MOV32_L, temp, index);
      ri(e, X.AND32_I, temp, mask);
      entry = temp;
    } else if (e.options.masksTables) {
      // The carry is that of the compare, not of its prediction: no word behind the table is jumped by.
      rr(e, X.SBB32_R, temp, temp);
      rr(e, X.AND32_R, temp, index);
      entry = temp;
    }
  }
  const table = e.newLabel();
  e.tableLabel.push(table);
  e.tableFirst.push(e.tableTargets.length);
  const entries = total ? n : mask > 0 ? mask + 1 : last;
  for (let k = 0; k < entries; k++) e.tableTargets.push(edgeLabel(e, ends, v.succ[first + Math.min(k, last)]));
  leaLabel(e, SCRATCH, table);
  emitMemory(e.asm, X.MOVSXD, temp, e.asm.indexed(SCRATCH, entry, 2, 0));
  rr(e, X.ADD64_R, temp, SCRATCH);
  rr(e, X.JMP_M, 0, temp);
}

/** Pool constants and jump tables, after the function's code: largest alignment first. */
export function emitData(e: Emission): void {
  const { asm } = e;
  e.placePool();
  for (let t = 0; t < e.tableLabel.length; t++) {
    const end = t + 1 < e.tableLabel.length ? e.tableFirst[t + 1] : e.tableTargets.length;
    e.fixup(KIND.ALIGN, 4, 0, 0, 0);
    e.bind(e.tableLabel[t]);
    for (let k = e.tableFirst[t]; k < end; k++) {
      asm.reserve(32);
      e.fixup(KIND.DIFFERENCE, e.tableTargets[k], e.tableLabel[t], 0, 0);
      asm.word(0);
    }
  }
}
