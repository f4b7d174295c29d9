/**
 * Consecutive loads and stores: two accesses of neighbouring addresses become one pair instruction, and a reload right
 * after the store of the same slot becomes a move. In: an access about to be emitted, and the one emitted last. Out:
 * whether it has been emitted.
 *
 * The last access is forgotten when anything else is emitted or a fixup is added: no label, site or moved branch may be
 * between the two. A pair traps at its first access. Accesses that may trap are therefore paired only if the second
 * cannot trap unless the first does; stores that may trap at the end of memory are never paired, since half of a pair
 * may be done before it traps.
 */
import { TRAP } from "../base/traps.ts";
import type { Emission, LastAccess } from "./emission.ts";
import { encode } from "./encoding.ts";
import { X } from "./instructions.ts";
import { SP } from "./registers.ts";

const LOADS = 1;
const GENERAL = 2;

/** By row of an access: the row of the pair, whether it loads, and whether its registers are general. */
const PAIR_ROWS = new Map<number, { pair: number; loads: boolean; general: boolean }>([
  [X.LDR_W_U, { pair: X.LDP_W, loads: true, general: true }],
  [X.LDR_X_U, { pair: X.LDP_X, loads: true, general: true }],
  [X.LDR_S_U, { pair: X.LDP_S, loads: true, general: false }],
  [X.LDR_D_U, { pair: X.LDP_D, loads: true, general: false }],
  [X.LDR_Q_U, { pair: X.LDP_Q, loads: true, general: false }],
  [X.STR_W_U, { pair: X.STP_W, loads: false, general: true }],
  [X.STR_X_U, { pair: X.STP_X, loads: false, general: true }],
  [X.STR_S_U, { pair: X.STP_S, loads: false, general: false }],
  [X.STR_D_U, { pair: X.STP_D, loads: false, general: false }],
  [X.STR_Q_U, { pair: X.STP_Q, loads: false, general: false }],
]);
const ROWS = Math.max(...PAIR_ROWS.keys()) + 1;
/** By row: the row of the pair, 0 for none. */
const PAIR = new Uint16Array(ROWS);
/** By row: LOADS and GENERAL. */
const KINDS = new Uint8Array(ROWS);
for (const [row, { pair, loads, general }] of PAIR_ROWS) {
  PAIR[row] = pair;
  KINDS[row] = (loads ? LOADS : 0) | (general ? GENERAL : 0);
}
/** Displacements of pairs have seven bits. */
const MAX_PAIR_INDEX = 63;

/** Access `row` t, [base + index × size], which may trap with `trap`, was just emitted. */
export function rememberAccess(e: Emission, row: number, t: number, base: number, index: number, trap: number): void {
  const { last } = e;
  if (row >= ROWS || PAIR[row] === 0) return;
  last.at = e.asm.at;
  last.fixups = e.fixupCount;
  last.row = row;
  last.t = t;
  last.base = base;
  last.index = index;
  last.trap = trap;
}

/** Makes the last access and this one a pair, if they can be one. */
export function emitAsPair(e: Emission, row: number, t: number, base: number, index: number, trap: number): boolean {
  const { last, asm } = e;
  if (last.at !== asm.at || last.row !== row || last.base !== base || last.fixups !== e.fixupCount) return false;
  const low = Math.min(index, last.index);
  if (Math.abs(index - last.index) !== 1 || low > MAX_PAIR_INDEX || !trapsAlike(last, row, index, trap)) return false;
  if ((KINDS[row] & LOADS) !== 0) {
    // The second may not depend on the first, and a pair has two results.
    if (t === last.t || ((KINDS[row] & GENERAL) !== 0 && last.t === base)) return false;
  }
  asm.at -= 4;
  const isLower = index < last.index;
  const first = isLower ? t : last.t, second = isLower ? last.t : t;
  asm.word(encode(PAIR[row], first, base, 0, second, low, 0, 0, 0));
  last.at = -1;
  return true;
}

/** Whether the access can trap only if the preceding one does, with the same code. */
function trapsAlike(last: LastAccess, row: number, index: number, trap: number): boolean {
  if (trap !== last.trap) return false;
  // Null is caught by pages that reach further than a pair does.
  if (trap !== TRAP.MEMORY_OUT_OF_BOUNDS) return true;
  return (KINDS[row] & LOADS) !== 0 && index < last.index;
}

/** The register that the last instruction stored to the slot at `index` of `row`'s size; −1 if it stored none. */
export function justStored(e: Emission, store: number, index: number): number {
  const { last, asm } = e;
  const known = last.at === asm.at && last.fixups === e.fixupCount && last.base === SP && last.row === store;
  return known && last.index === index ? last.t : -1;
}
