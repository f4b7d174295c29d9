/**
 * Encoding of arm64 instructions. In: an instruction's fixed bits (instructions_arm64.ts, generated from the rows of
 * engine/backend_arm64/, which are checked against llvm-mc), register numbers and fields. Out: one word of code each.
 * Register numbers are taken modulo 32: number 31 is the stack pointer or zero, as the instruction decides.
 */
import * as code from "./code.ts";
import { emit32 } from "./code.ts";
import * as a64 from "./instructions_arm64.ts";
import { STATUS_TOO_LARGE } from "./layout.ts";
import { type i32, trailingZeros } from "./memory.ts";
import { stop } from "./reader.ts";

export const ZERO: i32 = 31;
/** The scratch register of the encoder; the macro-instructions have x16. */
export const X17: i32 = 17;

/** op d, n, m */
export function rrr(op: i32, d: i32, n: i32, m: i32): void {
  emit32(op | (d & 31) | ((n & 31) << 5) | ((m & 31) << 16));
}

/** op d, n, m, a; a may be a 6-bit field instead of a register */
export function rrra(op: i32, d: i32, n: i32, m: i32, a: i32): void {
  rrr(op | (a << 10), d, n, m);
}

/** A bit-field move: op d, n, immr (rotation to the right), imms (last bit); both fields have 6 bits. */
export function bits(op: i32, d: i32, n: i32, rotation: i32, last: i32): void {
  rrr(op | (rotation << 16) | (last << 10), d, n, 0);
}

/** op d, n, with a field from bit 10 on */
export function rri(op: i32, d: i32, n: i32, field: i32): void {
  rrr(op | (field << 10), d, n, 0);
}

/** op d, n, m, condition */
export function rrc(op: i32, d: i32, n: i32, m: i32, condition: i32): void {
  rrr(op | (condition << 12), d, n, m);
}

/** The field of immediates of 12 bits, and the end of those that are shifted by 12 bits. */
export const IMM12_MASK: i32 = (1 << 12) - 1;
const IMM12_END: i32 = 1 << 12;
export const IMM24_END: i32 = 1 << 24;
/** The flag of an arithmetic immediate that is shifted by 12 bits, above the field. */
export const SHIFTED_12: i32 = 1 << 12;
/** The immediate of a move, and the field of a branch's distance in words. */
export const HALF_WORD: i32 = (1 << 16) - 1;
export const FIELD26: i32 = (1 << 26) - 1;

// Immediates (the manual's DecodeBitMasks).

/** In the field N:immr:imms. */
const IMMN: i32 = 1 << 12;
const IMMS_MASK: i32 = (1 << 6) - 1;

function countOnes(bits: i32): i32 {
  let count: i32 = 0;
  for (let left = bits; left !== 0; left = left & (left - 1)) count = count + 1;
  return count;
}

/** The field N:immr:imms of a run of ones in an element of `size` ≤ 32 bits, or −1. */
function runField(element: i32, size: i32): i32 {
  const all: i32 = size === 32 ? -1 : (1 << size) - 1;
  if (element === 0 || element === all) return -1;
  // Rotate so that the run begins at bit 0: its start is where a 1 follows a 0.
  const before = ((element << 1) | ((element >>> (size - 1)) & 1)) & all;
  const starts = element & ~before;
  if ((starts & (starts - 1)) !== 0) return -1;
  const start = trailingZeros(starts);
  const run = start === 0 ? element : ((element >>> start) | (element << (size - start))) & all;
  const imms = ((-size << 1) & IMMS_MASK) | (countOnes(run) - 1);
  return (((size - start) & (size - 1)) << 6) | imms;
}

/** The 13-bit field of a logical immediate, or −1. A 32-bit operation takes `high` = `low`. */
export function logicalImmediate(low: i32, high: i32): i32 {
  if (low === high) {
    let size: i32 = 32;
    let element = low;
    while (size > 2) {
      const half = size >> 1;
      const mask = (1 << half) - 1;
      if ((element & mask) !== ((element >>> half) & mask)) break;
      element = element & mask;
      size = half;
    }
    return runField(element, size);
  }
  const starts0 = low & ~((low << 1) | ((high >>> 31) & 1));
  const starts1 = high & ~((high << 1) | ((low >>> 31) & 1));
  if ((starts0 !== 0 && starts1 !== 0) || (starts0 & (starts0 - 1)) !== 0 || (starts1 & (starts1 - 1)) !== 0) return -1;
  const start = starts0 !== 0 ? trailingZeros(starts0) : 32 + trailingZeros(starts1);
  return IMMN | (((64 - start) & 63) << 6) | (countOnes(low) + countOnes(high) - 1);
}

function part(low: i32, high: i32, k: i32): i32 {
  return ((k < 2 ? low : high) >> ((k & 1) * 16)) & HALF_WORD;
}

/** d = constant; `high` counts only if `wide` */
export function constant(d: i32, low: i32, high: i32, wide: i32): void {
  const isWide = wide !== 0 && high !== 0;
  const parts: i32 = isWide ? 4 : 2;
  let zeros: i32 = 0;
  let ones: i32 = 0;
  for (let k: i32 = 0; k < parts; k++) {
    if (part(low, high, k) === 0) zeros = zeros + 1;
    else if (part(low, high, k) === HALF_WORD) ones = ones + 1;
  }
  const inverted = ones > zeros;
  const blank: i32 = inverted ? HALF_WORD : 0;
  const rest: i32 = isWide ? a64.MOVK64 : a64.MOVK32;
  let first: i32 = isWide ? (inverted ? a64.MOVN64 : a64.MOVZ64) : inverted ? a64.MOVN32 : a64.MOVZ32;
  for (let k: i32 = 0; k < parts; k++) {
    const bits = part(low, high, k);
    if (bits === blank) continue;
    if (first !== 0) emit32(first | (d & 31) | ((bits ^ blank) << 5) | (k << 21));
    else emit32(rest | (d & 31) | (bits << 5) | (k << 21));
    first = 0;
  }
  if (first !== 0) emit32(first | (d & 31));
}

/** Whether an addition or subtraction can encode the immediate `value`, which is not negative. */
export function isArithmetic(value: i32): boolean {
  return value >= 0 && (value < IMM12_END || (value < IMM24_END && (value & IMM12_MASK) === 0));
}

/** The field of an arithmetic immediate: 12 bits, and whether they are shifted by 12. */
export function arithmeticField(value: i32): i32 {
  return value < IMM12_END ? value : (value >> 12) | SHIFTED_12;
}

/** d = n + value, 64 bits; d and n may be the stack pointer, but not x17. */
export function addConstant(d: i32, n: i32, value: i32): void {
  if (value >= 0 && value < IMM24_END) addSmall(a64.ADD_I64, d, n, value);
  else if (value < 0 && value > -IMM24_END) addSmall(a64.SUB_I64, d, n, -value);
  else {
    constant(X17, value, value >> 31, 1);
    rrr(a64.ADD_E64 | UXTX, d, n, X17);
  }
}

function addSmall(op: i32, d: i32, n: i32, value: i32): void {
  const high = value >> 12;
  const low = value & IMM12_MASK;
  if (high !== 0) rri(op, d, n, high | SHIFTED_12);
  if (low !== 0 || high === 0) rri(op, d, high !== 0 ? d : n, low);
}

/** The extend option UXTX: all 64 bits of the register. */
const UXTX: i32 = 3 << 13;

// Loads and stores. `op` is the form with a scaled unsigned offset; the other forms differ from it in fixed bits.

const FORM_BIT: i32 = a64.LDR_X_U ^ a64.LDR_X_N;
const BY_REGISTER: i32 = a64.LDR_X_X ^ a64.LDR_X_N;

/** op t, [base + offset], of 1 << scale bytes; changes x17 if the offset is large. */
export function access(op: i32, scale: i32, t: i32, base: i32, offset: i32): void {
  if (offset >= 0 && (offset & ((1 << scale) - 1)) === 0 && offset >> scale < IMM12_END) {
    rri(op, t, base, offset >> scale);
  } else if (offset >= -256 && offset < 256) {
    emit32((op & ~FORM_BIT) | (t & 31) | ((base & 31) << 5) | ((offset & 511) << 12));
  } else {
    addConstant(X17, base, offset);
    rri(op, t, X17, 0);
  }
}

/** op t, [base + index << scale], or unscaled where `isScaled` is 0 */
export function accessIndexed(op: i32, t: i32, base: i32, index: i32, isScaled: i32): void {
  rrr((op & ~FORM_BIT) | BY_REGISTER | UXTX | (isScaled << 12), t, base, index);
}

/** op t, t2, [base]; the form of `op` determines whether base changes, by `count` times 8 bytes */
export function pair(op: i32, t: i32, t2: i32, base: i32, count: i32): void {
  emit32(op | (t & 31) | ((base & 31) << 5) | ((t2 & 31) << 10) | ((count & 127) << 15));
}

// Branches. A branch is one word, and its address identifies it. Before it is bound, its field links it to another.

/** The fixed bits of B and BL, and the one in which they differ. */
const B_MASK: i32 = ~(FIELD26 | (a64.B ^ a64.BL));
const FIELD19: i32 = ((1 << 19) - 1) << 5;
/** The distance in words that a field of 19 bits reaches. */
const REACH19: i32 = 1 << 18;

function isLong(word: i32): boolean {
  return (word & B_MASK) === a64.B;
}

function setField(address: i32, words: i32): void {
  const word = code.wordAt(address);
  if (isLong(word)) {
    code.patch32(address, (word & ~FIELD26) | (words & FIELD26));
    return;
  }
  if (words >= REACH19 || words < -REACH19) stop(STATUS_TOO_LARGE);
  code.patch32(address, (word & ~FIELD19) | ((words << 5) & FIELD19));
}

/** Makes the branch, literal load or ADR at `address` refer to `target`. (The lowest bits of an ADR are 0.) */
export function patchBranch(address: i32, target: i32): void {
  setField(address, (target - address) >> 2);
}

/** Links an unbound branch to the one before it in a list, or 0. */
export function setLink(branch: i32, previous: i32): void {
  setField(branch, previous === 0 ? 0 : (branch - previous) >> 2);
}

export function linkOf(branch: i32): i32 {
  const word = code.wordAt(branch);
  const words = isLong(word) ? (word << 6) >> 6 : (word << 8) >> 13;
  return words === 0 ? 0 : branch - words * 4;
}
