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

/** The result of the one instruction that shuffles lanes of 1 << size bytes so, or −1. */
function oneStep(s: Arm64Lowering, size: number, x: number, y: number, single: boolean): number {
  const n = 16 >> size;
  const same = (lane: (k: number) => number) => {
    for (let k = 0; k < n; k++) if (s.shuffleLanes[k] !== lane(k)) return false;
    return true;
  };
  if (same(() => s.shuffleLanes[0])) {
    return one(s, X.DUP_E_16B + size, s.shuffleLanes[0] < n ? x : y, s.shuffleLanes[0] % n);
  }
  // Interleavings and similar permutations, of both operands, of both in the other order, or of one.
  for (const [first, second] of single ? [[0, 0]] : [[0, n], [n, 0], [0, 0], [n, n]]) {
    const from = (k: number) => (k & 1) === 0 ? first : second;
    const half = (k: number) => k < n / 2 ? first : second - n;
    const row = same((k) => from(k) + (k >> 1))
      ? X.ZIP1_16B
      : same((k) => from(k) + (k >> 1) + n / 2)
      ? X.ZIP2_16B
      : same((k) => half(k) + 2 * k)
      ? X.UZP1_16B
      : same((k) => half(k) + 2 * k + 1)
      ? X.UZP2_16B
      : same((k) => from(k) + (k & -2))
      ? X.TRN1_16B
      : same((k) => from(k) + (k & -2) + 1)
      ? X.TRN2_16B
      : 0;
    if (row !== 0) return two(s, row + size, first === 0 ? x : y, second === 0 ? x : y);
  }
  const rows = size === 0
    ? [X.REV16_16B, X.REV32_16B, X.REV64_16B]
    : size === 1
    ? [0, X.REV32_8H, X.REV64_8H]
    : [0, 0, X.REV64_4S];
  if (size < 3) {
    for (let group = size + 1; group <= 3; group++) {
      const turn = (1 << (group - size)) - 1;
      for (const base of single ? [0] : [0, n]) {
        if (rows[group - 1] !== 0 && same((k) => base + (k ^ turn))) return one(s, rows[group - 1], base === 0 ? x : y);
      }
    }
  }
  return insertion(s, size, n, x, y, single);
}

/** One operand with one lane replaced, or −1. */
function insertion(s: Arm64Lowering, size: number, n: number, x: number, y: number, single: boolean): number {
  for (const base of single ? [0] : [0, n]) {
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

/** The bytes as a vector constant, those outside [first, first + 16) as 255. */
function table(s: Arm64Lowering, first: number): number {
  const word = (k: number) => {
    let value = 0;
    for (let n = 3; n >= 0; n--) {
      const lane = s.shuffleBytes[4 * k + n] - first;
      value = (value << 8) | (lane >= 0 && lane < 16 ? lane : 255);
    }
    return value;
  };
  return constantVector(s, word(0), word(1), word(2), word(3));
}

/** Lanes out of range give 0 in the first lookup, and stay in the second. */
function lookUp(s: Arm64Lowering, x: number, y: number, single: boolean): number {
  const low = two(s, X.TBL_16B, x, table(s, 0));
  return single ? low : twoInto(s, X.TBX_16B, low, y, table(s, 16));
}
