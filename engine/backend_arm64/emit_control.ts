/**
 * Emission of switches, and of the data after a function's code: constants and the distance to the poll page.
 * codegen/emit_edges.ts emits edges.
 */
import type { BlockEnds } from "../codegen/block_ends.ts";
import { edgeLabel, emitChain } from "../codegen/emit_edges.ts";
import { RELOC } from "../codegen/machine_code.ts";
import { type Emission, KIND } from "./emission.ts";
import { encode } from "./encoding.ts";
import { X } from "./instructions.ts";
import { CC } from "./machine_ops.ts";
import { SCRATCH, SCRATCH2, ZERO } from "./registers.ts";

/** Option of an index register: 32 bits, zero-extended. */
const UXTW = 2;

function branchCase(e: Emission, index: number, k: number, label: number): void {
  if (k === 0) e.branchZero(X.CBZ32, index, label);
  else {
    e.asm.rri(X.SUBS_I32, ZERO, index, k, 0);
    e.branch(CC.EQ, label);
  }
}

/** Selects among edges first … first + n − 1 (in `succ`) by the index; the last is the default. */
export function emitSwitch(e: Emission, ends: BlockEnds, i: number, first: number, n: number): void {
  const { v } = e;
  const index = e.register(v.firstOperand[i]);
  if (emitChain(e, ends, first, n, index, branchCase)) return;
  const last = n - 1;
  const total = (v.aux[i] & 1) !== 0;
  let entry = index;
  // An index that cannot exceed the last edge's number needs no check; the table then has an entry for that edge too.
  if (!total) {
    if (last < 0x1000) e.asm.rri(X.SUBS_I32, ZERO, index, last, 0);
    else {
      e.asm.constant(SCRATCH, last, 0);
      e.asm.rrr(X.SUBS32, ZERO, index, SCRATCH);
    }
    e.branch(CC.HS, edgeLabel(e, ends, v.succ[first + last]));
    if (e.options.masksTables) {
      // Selected by the compare, not by its prediction: no word behind the table is jumped by.
      e.asm.rrrc(X.CSEL32, SCRATCH2, index, ZERO, CC.LO);
      e.asm.word(encode(X.CSDB, 0, 0, 0, 0, 0, 0, 0, 0));
      entry = SCRATCH2;
    }
  }
  // The table follows immediately, so that it is in reach of ADR in a function of any size.
  const table = e.newLabel();
  e.address(SCRATCH, table);
  e.asm.word(encode(X.LDRSW_X, SCRATCH2, SCRATCH, entry, 0, 0, UXTW, 0, 1));
  e.asm.rrr(X.ADD64, SCRATCH, SCRATCH, SCRATCH2);
  e.asm.rrr(X.BR, 0, SCRATCH, 0);
  e.bind(table);
  const entries = total ? n : last;
  for (let k = 0; k < entries; k++) {
    e.asm.reserve(64);
    e.fixup(KIND.DIFFERENCE, edgeLabel(e, ends, v.succ[first + k]), table, 0, 0);
    e.asm.word(0);
  }
}

/** Data that the function reads relative to its code. */
export function emitData(e: Emission): void {
  const { asm } = e;
  e.placePool();
  if (e.poll >= 0) {
    asm.reserve(32);
    e.bind(e.poll);
    e.fixup(KIND.RELOCATION, RELOC.POLL_PAGE, 0, 0, 0);
    asm.word(0);
  }
}
