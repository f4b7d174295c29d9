/**
 * Emission of atomic operations without LSE: loops around an exclusive load and store. Only the load may fault: memory
 * does not shrink. x16 holds the value to store, x17 whether storing failed.
 */
import { AUX_TRAP_SHIFT } from "../codegen/pseudo_ops.ts";
import type { Emission } from "./emission.ts";
import { X } from "./instructions.ts";
import { CC } from "./machine_ops.ts";
import { SCRATCH, SCRATCH2, ZERO } from "./registers.ts";

/** Rows on 32-bit registers by the number of the operation: add sub and or xor; row + 1 works on 64 bits. */
const ROWS = [X.ADD32, X.SUB32, X.AND32, X.ORR32, X.EOR32];
const EXCHANGE = 5;

/** Begins the loop: the old value in `d`. Returns the loop's label. */
function loadExclusive(e: Emission, i: number, width: number, d: number, base: number): number {
  const again = e.newLabel();
  e.bind(again);
  const trap = (e.v.aux[i] >>> AUX_TRAP_SHIFT) & 63;
  if (trap !== 0) e.faultSite(i, trap);
  e.asm.rrr(X.LDAXR_B + width, d, base, 0);
  return again;
}

function storeExclusive(e: Emission, width: number, value: number, base: number, again: number): void {
  e.asm.rrr(X.STLXR_B + width, value, base, SCRATCH2);
  e.branchZero(X.CBNZ32, SCRATCH2, again);
}

/** P.ATOMIC_LOOP: d = [base], then [base] = d op value. */
export function emitAtomicLoop(e: Emission, i: number): void {
  const { v, asm } = e;
  const o = v.firstOperand[i];
  const width = v.imm[i] >> 8;
  const kind = v.imm[i] & 0xff;
  const d = e.register(o);
  const base = e.register(o + 1);
  const value = e.register(o + 2);
  const again = loadExclusive(e, i, width, d, base);
  if (kind === EXCHANGE) {
    storeExclusive(e, width, value, base, again);
    return;
  }
  asm.rrr(ROWS[kind] + (width === 3 ? 1 : 0), SCRATCH, d, value);
  storeExclusive(e, width, SCRATCH, base, again);
}

/** P.ATOMIC_SWAP: d = [base], and [base] = replacement if d equals the expected value. */
export function emitAtomicSwap(e: Emission, i: number): void {
  const { v, asm } = e;
  const o = v.firstOperand[i];
  const width = v.imm[i];
  const d = e.register(o);
  const base = e.register(o + 1);
  const expected = e.register(o + 2);
  const done = e.newLabel();
  const again = loadExclusive(e, i, width, d, base);
  if (width === 3) asm.rrr(X.SUBS64, ZERO, d, expected);
  // The low bytes of the expected value, zero-extended (uxtb, uxth).
  else if (width < 2) asm.rrri(X.SUBS_E32, ZERO, d, expected, 0, width);
  else asm.rrr(X.SUBS32, ZERO, d, expected);
  e.branch(CC.NE, done);
  storeExclusive(e, width, e.register(o + 3), base, again);
  e.bind(done);
}
