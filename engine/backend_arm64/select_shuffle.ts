/**
 * Rules for shuffles. A shuffle of constant lanes is matched against the instructions that do it in one step: EXT, then
 * for each width of lane DUP, INS, ZIP, UZP, TRN and REV; the general case is a table lookup per operand. Lanes are
 * bytes: 0-15 of the first operand, 16-31 of the second.
 */
import { constantVector } from "../codegen/lowering_context.ts";
import { X } from "./instructions.ts";
import type { Arm64Lowering } from "./lowering_context.ts";
import { one, oneInto, two, twoInto } from "./vector_code.ts";

export function selectShuffle(s: Arm64Lowering, id: number): void {
  const at = s.imm[id] * 16;
  const a = s.a[id];
  const b = s.b[id];
  // Operands may have turned out to be one value since the shuffle was made.
  const mask = a === b ? 15 : 31;
  for (let k = 0; k < 16; k++) s.shuffleBytes[k] = s.f.vectors[at + k] & mask;
  const x = s.reg(a);
  const y = a === b ? x : s.reg(b);
  s.vregs[id] = shuffle(s, x, y, a === b);
}

function shuffle(s: Arm64Lowering, x: number, y: number, single: boolean): number {
  const distance = rotation(s, single ? 16 : 32);
  if (distance === 0) return x;
  if (distance === 16) return y;
  if (distance > 16) return two(s, X.EXT_16B, y, x, distance - 16);
  if (distance > 0) return two(s, X.EXT_16B, x, y, distance);
  for (let size = 3; size >= 0; size--) {
    if (!widen(s, size)) continue;
    const found = oneStep(s, size, x, y, single);
    if (found >= 0) return found;
  }
  return lookUp(s, x, y, single);
}

/** The distance by which consecutive bytes, modulo `modulus`, are off; −1 if they are not consecutive. */
function rotation(s: Arm64Lowering, modulus: number): number {
  const distance = s.shuffleBytes[0];
  for (let k = 1; k < 16; k++) if (s.shuffleBytes[k] !== (distance + k) % modulus) return -1;
  return distance;
}

/** Whether the bytes form lanes of 1 << size bytes; if so, stores them in `lanes`. */
function widen(s: Arm64Lowering, size: number): boolean {
  const width = 1 << size;
  for (let k = 0; k < 16; k++) {
    if ((s.shuffleBytes[k] & (width - 1)) !== (k & (width - 1))) return false;
    if (s.shuffleBytes[k] >> size !== s.shuffleBytes[k & -width] >> size) return false;
    if ((k & (width - 1)) === 0) s.shuffleLanes[k >> size] = s.shuffleBytes[k] >> size;
  }
  return true;
}

// Interleavings and similar permutations of bytes; those of wider lanes follow each.
const PERMUTATIONS = [X.ZIP1_16B, X.ZIP2_16B, X.UZP1_16B, X.UZP2_16B, X.TRN1_16B, X.TRN2_16B];

/** Lane k of permutation `kind` of n lanes, whose operands' lanes begin at `first` and `second`. */
function permutedLane(kind: number, k: number, n: number, first: number, second: number): number {
  const from = (k & 1) === 0 ? first : second;
  const half = k < n >> 1 ? first : second - n;
  switch (kind) {
    case 0:
      return from + (k >> 1);
    case 1:
      return from + (k >> 1) + (n >> 1);
    case 2:
      return half + 2 * k;
    case 3:
      return half + 2 * k + 1;
    case 4:
      return from + (k & -2);
  }
  return from + (k & -2) + 1;
}

/** The row for bytes of the permutation that the n lanes are, 0 for none. */
function permutation(s: Arm64Lowering, n: number, first: number, second: number): number {
  for (let kind = 0; kind < 6; kind++) {
    let k = 0;
    while (k < n && s.shuffleLanes[k] === permutedLane(kind, k, n, first, second)) k++;
    if (k === n) return PERMUTATIONS[kind];
  }
  return 0;
}

/** Whether the n lanes are those from `base` on, reversed in groups of `turn` + 1. */
function isReversed(s: Arm64Lowering, n: number, base: number, turn: number): boolean {
  for (let k = 0; k < n; k++) if (s.shuffleLanes[k] !== base + (k ^ turn)) return false;
  return true;
}

// Reversals by log2 of the lane's bytes × 3 + log2 of the group's bytes − 1.
const REVERSALS = [
  ...[X.REV16_16B, X.REV32_16B, X.REV64_16B],
  ...[0, X.REV32_8H, X.REV64_8H],
  ...[0, 0, X.REV64_4S],
];

/** The result of the one instruction that shuffles lanes of 1 << size bytes so, or −1. */
function oneStep(s: Arm64Lowering, size: number, x: number, y: number, single: boolean): number {
  const n = 16 >> size;
  const lane = s.shuffleLanes[0];
  let k = 0;
  while (k < n && s.shuffleLanes[k] === lane) k++;
  if (k === n) return one(s, X.DUP_E_16B + size, lane < n ? x : y, lane % n);
  // Of both operands, of both in the other order, or of one.
  const turns = single ? 1 : 4;
  for (let turn = 0; turn < turns; turn++) {
    const first = !single && (turn & 1) !== 0 ? n : 0, second = !single && (turn === 0 || turn === 3) ? n : 0;
    const row = permutation(s, n, first, second);
    if (row !== 0) return two(s, row + size, first === 0 ? x : y, second === 0 ? x : y);
  }
  if (size < 3) {
    for (let group = size + 1; group <= 3; group++) {
      const turn = (1 << (group - size)) - 1, row = REVERSALS[size * 3 + group - 1];
      for (let base = 0; base <= (single ? 0 : n); base += n) {
        if (row !== 0 && isReversed(s, n, base, turn)) return one(s, row, base === 0 ? x : y);
      }
    }
  }
  return insertion(s, size, n, x, y, single);
}

/** One operand with one lane replaced, or −1. */
function insertion(s: Arm64Lowering, size: number, n: number, x: number, y: number, single: boolean): number {
  for (let base = 0; base <= (single ? 0 : n); base += n) {
    let changed = -1;
    let count = 0;
    for (let k = 0; k < n; k++) {
      if (s.shuffleLanes[k] === base + k) continue;
      changed = k;
      count++;
    }
    if (count !== 1) continue;
    const lane = s.shuffleLanes[changed];
    return oneInto(s, X.INS_E_16B + size, base === 0 ? x : y, lane < n ? x : y, changed, lane % n);
  }
  return -1;
}

/** Bytes k … k + 3, counted from `first`, as a word; others are 255. */
function laneWord(s: Arm64Lowering, first: number, k: number): number {
  let value = 0;
  for (let n = 3; n >= 0; n--) {
    const lane = s.shuffleBytes[k + n] - first;
    value = (value << 8) | (lane >= 0 && lane < 16 ? lane : 255);
  }
  return value;
}

/** The bytes as a vector constant, those outside [first, first + 16) as 255. */
function table(s: Arm64Lowering, first: number): number {
  return constantVector(s, laneWord(s, first, 0), laneWord(s, first, 4), laneWord(s, first, 8), laneWord(s, first, 12));
}

/** Lanes out of range give 0 in the first lookup, and stay in the second. */
function lookUp(s: Arm64Lowering, x: number, y: number, single: boolean): number {
  const low = two(s, X.TBL_16B, x, table(s, 0));
  return single ? low : twoInto(s, X.TBX_16B, low, y, table(s, 16));
}
