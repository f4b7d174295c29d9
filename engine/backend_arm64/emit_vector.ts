/**
 * Emission of vector constants: by MOVI or MVNI if all lanes are equal and have one byte that is not 0 (or not 255),
 * else from the function's pool; in functions so long that the pool may be out of reach, through general registers.
 */
import { type Emission, KIND } from "./emission.ts";
import { X } from "./instructions.ts";
import { SCRATCH } from "./registers.ts";

/** Functions with more VCode than this may be too long for literal loads, which reach 1 MiB. */
export const LITERAL_LIMIT = 12000;

/** Rows that make a word of one byte, by the shift of the byte. */
const WORD_ROWS = [X.MOVI_4S, X.MOVI_4S_8, X.MOVI_4S_16, X.MOVI_4S_24];
const INVERTED_WORD_ROWS = [X.MVNI_4S, X.MVNI_4S_8, X.MVNI_4S_16, X.MVNI_4S_24];

/** A literal load of a pool constant. */
export function emitLiteral(e: Emission, row: number, d: number, label: number): void {
  e.fixup(KIND.LITERAL, label, 0, 0, 0);
  e.asm.rrr(row, d, 0, 0);
}

/** v(d) = vector constant `index`. */
export function emitVectorConstant(e: Emission, d: number, index: number): void {
  const { vectors } = e.v;
  const at = index * 4;
  const low = vectors[at];
  const high = vectors[at + 1];
  if (low === vectors[at + 2] && high === vectors[at + 3]) {
    if (low === high && emitWords(e, d, low)) return;
    const mask = byteMask(low, high);
    if (mask >= 0) return move(e, X.MOVI_2D, d, mask);
  }
  if (e.v.count > LITERAL_LIMIT) {
    e.asm.constant(SCRATCH, low, high);
    e.asm.rrr(X.FMOV_DX, d, SCRATCH, 0);
    e.asm.constant(SCRATCH, vectors[at + 2], vectors[at + 3]);
    e.asm.rri(X.INS_R_2D, d, SCRATCH, 1, 0);
  } else emitLiteral(e, X.LDR_LQ, d, e.pool(index, 0, 16));
}

/** A row with an immediate of 8 bits in two fields. */
function move(e: Emission, row: number, d: number, byte: number): void {
  e.asm.rri(row, d, 0, byte & 31, byte >> 5);
}

/** Sets all 32-bit lanes to `word` if one instruction can; otherwise does nothing and returns false. */
function emitWords(e: Emission, d: number, word: number): boolean {
  const byte = word & 0xff;
  const half = word & 0xffff;
  if (half === word >>> 16) {
    if (byte === half >> 8) move(e, X.MOVI_16B, d, byte);
    else if (half < 0x100) move(e, X.MOVI_8H, d, half);
    else if (byte === 0) move(e, X.MOVI_8H_8, d, half >> 8);
    else if (half > 0xff00) move(e, X.MVNI_8H, d, ~half & 0xff);
    else if (byte === 0xff) move(e, X.MVNI_8H_8, d, (~half >> 8) & 0xff);
    else return false;
    return true;
  }
  for (let k = 0; k < 4; k++) {
    const mask = 0xff << (8 * k);
    if ((word & ~mask) === 0) move(e, WORD_ROWS[k], d, (word >>> (8 * k)) & 0xff);
    else if ((~word & ~mask) === 0) move(e, INVERTED_WORD_ROWS[k], d, (~word >>> (8 * k)) & 0xff);
    else continue;
    return true;
  }
  return false;
}

/** One bit per byte of a doubleword whose bytes are all 0 or 255, or −1. */
function byteMask(low: number, high: number): number {
  let mask = 0;
  for (let k = 0; k < 8; k++) {
    const byte = ((k < 4 ? low : high) >>> (8 * (k & 3))) & 0xff;
    if (byte === 0xff) mask |= 1 << k;
    else if (byte !== 0) return -1;
  }
  return mask;
}
