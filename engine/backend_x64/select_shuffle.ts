/**
 * Rules for shuffles and swizzles. A shuffle of constant lanes is matched against the instructions that do it in one
 * step, cheapest first; the general case is PSHUFB of each operand, combined by POR. Lanes are bytes: 0-15 of the first
 * operand, 16-31 of the second.
 */
import { OP } from "../ir/ops.ts";
import { X } from "./instructions.ts";
import type { X64Lowering } from "./lowering_context.ts";
import { one, shifted, sourceWords, two, twoSource, twoWords } from "./vector_code.ts";

/** Finds the wider lanes that the bytes form. */
function widen(s: X64Lowering): void {
  s.shuffle.whole2 = true;
  for (let k = 0; k < 8; k++) {
    const low = s.shuffle.lanes[2 * k];
    if ((low & 1) !== 0 || s.shuffle.lanes[2 * k + 1] !== low + 1) s.shuffle.whole2 = false;
    s.shuffle.lanes2[k] = low >> 1;
  }
  s.shuffle.whole4 = s.shuffle.whole2;
  for (let k = 0; k < 4; k++) {
    const low = s.shuffle.lanes2[2 * k];
    if ((low & 1) !== 0 || s.shuffle.lanes2[2 * k + 1] !== low + 1) s.shuffle.whole4 = false;
    s.shuffle.lanes4[k] = low >> 1;
  }
}

export function selectShuffle(s: X64Lowering, id: number): void {
  const at = s.imm[id] * 16;
  const a = s.a[id];
  const b = s.b[id];
  // Operands may have turned out to be one value since the shuffle was made.
  const mask = a === b ? 15 : 31;
  for (let k = 0; k < 16; k++) s.shuffle.lanes[k] = s.f.vectors[at + k] & mask;
  widen(s);
  if (a === b) s.vregs[id] = shuffleOne(s, s.reg(a));
  else if (s.isZeroVector(b)) s.vregs[id] = shuffleWithZero(s, s.reg(a), 0);
  else if (s.isZeroVector(a)) s.vregs[id] = shuffleWithZero(s, s.reg(b), 16);
  else s.vregs[id] = shuffleTwo(s, s.reg(a), s.reg(b));
}

/** The immediate of four 2-bit fields. */
function fields(a: number, b: number, c: number, d: number): number {
  return (a & 3) | ((b & 3) << 2) | ((c & 3) << 4) | ((d & 3) << 6);
}

/** Lanes k … k + 3, counted from `first`, as a word for PSHUFB; others give 0. */
function laneWord(s: X64Lowering, first: number, k: number): number {
  let value = 0;
  for (let n = 3; n >= 0; n--) {
    const lane = s.shuffle.lanes[k + n] - first;
    value = (value << 8) | (lane >= 0 && lane < 16 ? lane : 0x80);
  }
  return value;
}

/** PSHUFB of x by the lanes, those outside [first, first + 16) giving 0. */
function byteShuffle(s: X64Lowering, x: number, first: number): number {
  sourceWords(s, laneWord(s, first, 0), laneWord(s, first, 4), laneWord(s, first, 8), laneWord(s, first, 12));
  return twoSource(s, X.PSHUFB, x);
}

// Interleavings of lanes of 1, 2, 4 and 8 bytes: of the lower halves, then of the upper ones.
const UNPACKS = [
  ...[X.PUNPCKLBW, X.PUNPCKHBW, X.PUNPCKLWD, X.PUNPCKHWD, X.PUNPCKLDQ, X.PUNPCKHDQ, X.PUNPCKLQDQ, X.PUNPCKHQDQ],
];

/** Whether the lanes interleave halves of operands whose bytes begin at `first` and `second`. */
function interleaves(s: X64Lowering, width: number, high: boolean, first: number, second: number): boolean {
  for (let k = 0; k < 16; k++) {
    const element = (k / width) | 0;
    const from = (element & 1) === 0 ? first : second;
    if (s.shuffle.lanes[k] !== from + (high ? 8 : 0) + (element >> 1) * width + (k % width)) return false;
  }
  return true;
}

/** The row that interleaves operands as the lanes do, or 0. */
function unpackRow(s: X64Lowering, first: number, second: number): number {
  for (let n = 0; n < 8; n++) if (interleaves(s, 1 << (n >> 1), (n & 1) !== 0, first, second)) return UNPACKS[n];
  return 0;
}

/** The distance by which consecutive lanes, modulo `modulus`, are off; 0 if they are not consecutive. */
function rotation(s: X64Lowering, modulus: number): number {
  const distance = s.shuffle.lanes[0];
  for (let k = 1; k < 16; k++) if (s.shuffle.lanes[k] !== (distance + k) % modulus) return 0;
  return distance;
}

/** Shuffles of one operand. */
function shuffleOne(s: X64Lowering, x: number): number {
  if (s.shuffle.whole4) {
    return one(
      s,
      X.PSHUFD,
      x,
      fields(s.shuffle.lanes4[0], s.shuffle.lanes4[1], s.shuffle.lanes4[2], s.shuffle.lanes4[3]),
    );
  }
  if (s.shuffle.whole2) {
    const n = s.shuffle.lanes2;
    const lowKept = n[0] === 0 && n[1] === 1 && n[2] === 2 && n[3] === 3;
    const highKept = n[4] === 4 && n[5] === 5 && n[6] === 6 && n[7] === 7;
    const lowInside = n[0] < 4 && n[1] < 4 && n[2] < 4 && n[3] < 4;
    const highInside = n[4] > 3 && n[5] > 3 && n[6] > 3 && n[7] > 3;
    if (highKept && lowInside) return one(s, X.PSHUFLW, x, fields(n[0], n[1], n[2], n[3]));
    if (lowKept && highInside) return one(s, X.PSHUFHW, x, fields(n[4], n[5], n[6], n[7]));
  }
  const unpack = unpackRow(s, 0, 0);
  if (unpack !== 0) return two(s, unpack, x, x);
  const distance = rotation(s, 16);
  if (distance !== 0) return two(s, X.PALIGNR, x, x, distance);
  return byteShuffle(s, x, 0);
}

/** Whether lane k is none of the 16 from `first` on. */
function isZeroLane(s: X64Lowering, first: number, k: number): boolean {
  return s.shuffle.lanes[k] < first || s.shuffle.lanes[k] >= first + 16;
}

/** Shuffles of x, whose lanes begin at `first`, with zeros. */
function shuffleWithZero(s: X64Lowering, x: number, first: number): number {
  // Whole-register shifts by bytes.
  for (let n = 1; n < 16; n++) {
    let left = true;
    let right = true;
    for (let k = 0; k < 16; k++) {
      if (k < n ? !isZeroLane(s, first, k) : s.shuffle.lanes[k] !== first + k - n) left = false;
      if (k >= 16 - n ? !isZeroLane(s, first, k) : s.shuffle.lanes[k] !== first + k + n) right = false;
    }
    if (left) return shifted(s, X.PSLLDQ_I, x, n);
    if (right) return shifted(s, X.PSRLDQ_I, x, n);
  }
  // Zero extensions of the low half.
  for (let width = 1; width <= 4; width *= 2) {
    let fits = true;
    for (let k = 0; k < 16; k++) {
      const element = (k / width) | 0;
      if (
        (element & 1) === 0
          ? s.shuffle.lanes[k] !== first + (element >> 1) * width + (k % width)
          : !isZeroLane(s, first, k)
      ) {
        fits = false;
      }
    }
    if (fits) return one(s, width === 1 ? X.PMOVZXBW : width === 2 ? X.PMOVZXWD : X.PMOVZXDQ, x);
  }
  return byteShuffle(s, x, first);
}

/** Shuffles of two operands. */
function shuffleTwo(s: X64Lowering, x: number, y: number): number {
  const unpack = unpackRow(s, 0, 16);
  if (unpack !== 0) return two(s, unpack, x, y);
  const mirrored = unpackRow(s, 16, 0);
  if (mirrored !== 0) return two(s, mirrored, y, x);
  const distance = rotation(s, 32);
  // The lower bytes come from the second operand of the instruction.
  if (distance !== 0 && distance < 16) return two(s, X.PALIGNR, y, x, distance);
  if (distance > 16) return two(s, X.PALIGNR, x, y, distance - 16);
  if (s.shuffle.whole2) {
    let kept = true;
    let mask = 0;
    for (let k = 0; k < 8; k++) {
      if ((s.shuffle.lanes2[k] & 7) !== k) kept = false;
      if (s.shuffle.lanes2[k] >= 8) mask |= 1 << k;
    }
    if (kept) return two(s, X.PBLENDW, x, y, mask);
  }
  if (s.shuffle.whole4) {
    const n = s.shuffle.lanes4;
    const control = fields(n[0], n[1], n[2], n[3]);
    const sides = (n[0] >> 2) | (n[1] >> 2 << 1) | (n[2] >> 2 << 2) | (n[3] >> 2 << 3);
    if (sides === 0b1100) return two(s, X.SHUFPS, x, y, control);
    if (sides === 0b0011) return two(s, X.SHUFPS, y, x, control);
    // Both operands shuffled, then the lanes of y blended over those of x.
    let mask = 0;
    for (let k = 0; k < 4; k++) if (((sides >> k) & 1) !== 0) mask |= 3 << (2 * k);
    return two(s, X.PBLENDW, one(s, X.PSHUFD, x, control), one(s, X.PSHUFD, y, control), mask);
  }
  return two(s, X.POR, byteShuffle(s, x, 0), byteShuffle(s, y, 16));
}

/** Swizzles: an index of 16 or more selects 0. PSHUFB does so for an index whose top bit is set. */
export function selectSwizzle(s: X64Lowering, id: number): void {
  const x = s.reg(s.a[id]);
  const by = s.b[id];
  if (s.op[by] === OP.CONST) {
    const at = s.imm[by] * 16;
    for (let k = 0; k < 16; k++) s.shuffle.lanes[k] = s.f.vectors[at + k];
    s.vregs[id] = byteShuffle(s, x, 0);
    return;
  }
  s.vregs[id] = two(s, X.PSHUFB, x, twoWords(s, X.PADDUSB, s.reg(by), 0x70707070));
}
