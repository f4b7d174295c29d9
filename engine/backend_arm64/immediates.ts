/**
 * Immediates of instructions: 12-bit arithmetic immediates, logical immediates (a rotated run of ones, repeated), moves
 * of 16-bit parts, and 8-bit floats. 64-bit values come as two signed halves.
 *
 * Arm Architecture Reference Manual for A-profile: DecodeBitMasks(), VFPExpandImm().
 */

/**
 * The value's 12-bit immediate, shifted or not: bit 12 means "shifted by 12"; −1 if it has none. `value` is not
 * negative.
 */
export function arithmeticImmediate(value: number): number {
  if (value < 0) return -1;
  if (value < 0x1000) return value;
  if (value < 0x1000000 && (value & 0xfff) === 0) return (value >>> 12) | 0x1000;
  return -1;
}

/** Number of the lowest 1 bit of a half that is not 0. */
function lowestBit(x: number): number {
  return 31 - Math.clz32(x & -x);
}

/** The field N:immr:imms of a run of ones in an element of `size` ≤ 32 bits, or −1. */
function runField(element: number, size: number): number {
  const all = size === 32 ? -1 : (1 << size) - 1;
  if (element === 0 || element === all) return -1;
  // Rotate so that the run begins at bit 0: its start is where a 1 follows a 0.
  const startBits = element & ~(((element << 1) | ((element >>> (size - 1)) & 1)) & all);
  if ((startBits & (startBits - 1)) !== 0) return -1;
  const start = lowestBit(startBits);
  const run = start === 0 ? element : ((element >>> start) | (element << (size - start))) & all;
  const ones = 32 - Math.clz32(run);
  const imms = ((-size << 1) & 0x3f) | (ones - 1);
  return (((size - start) & (size - 1)) << 6) | imms;
}

/** The 13-bit field N:immr:imms of a logical immediate, or −1. A 32-bit operation takes `high` = `low`. */
export function logicalImmediate(low: number, high: number): number {
  if (low === high) {
    let size = 32;
    let element = low | 0;
    while (size > 2) {
      const half = size >> 1;
      const mask = (1 << half) - 1;
      if ((element & mask) !== ((element >>> half) & mask)) break;
      element &= mask;
      size = half;
    }
    return runField(element, size);
  }
  // An element of 64 bits: a run that may begin in either half, or wrap around.
  const starts0 = low & ~((low << 1) | (high >>> 31));
  const starts1 = high & ~((high << 1) | (low >>> 31));
  if ((starts0 !== 0 && starts1 !== 0) || (starts0 & (starts0 - 1)) !== 0 || (starts1 & (starts1 - 1)) !== 0) return -1;
  const start = starts0 !== 0 ? lowestBit(starts0) : 32 + lowestBit(starts1);
  let ones = 0;
  for (let x = low; x !== 0; x &= x - 1) ones++;
  for (let x = high; x !== 0; x &= x - 1) ones++;
  return 0x1000 | (((64 - start) & 63) << 6) | (ones - 1);
}

/** Kinds of plans for a constant. */
export const PLAN = {
  /** movz of the first part that is not 0, movk of the others. */
  POSITIVE: 0,
  /** movn of the first part that is not 0xffff, movk of the others. */
  NEGATIVE: 1,
  /** orr of a logical immediate. */
  LOGICAL: 2,
} as const;

/** The plan of the instructions that make a constant in a register. */
export class ConstantPlan {
  /** One of {@linkcode PLAN}. */
  kind = 0;
  /** 1: the instructions are 64 bits wide. */
  wide = 0;
  /** The field of the logical immediate. */
  field = 0;
  /** The number of parts of 16 bits. */
  parts = 0;
  /** The number of instructions. */
  count = 0;
}

/** Makes `plan` that of a constant. `high` is 0 for a 32-bit one, whose upper half is cleared. */
export function planConstant(plan: ConstantPlan, low: number, high: number): void {
  let zeros = 0;
  let ones = 0;
  const parts = high === 0 ? 2 : 4;
  for (let k = 0; k < parts; k++) {
    const part = ((k < 2 ? low : high) >>> ((k & 1) * 16)) & 0xffff;
    if (part === 0) zeros++;
    else if (part === 0xffff) ones++;
  }
  plan.wide = high === 0 ? 0 : 1;
  plan.parts = parts;
  plan.kind = ones > zeros ? PLAN.NEGATIVE : PLAN.POSITIVE;
  plan.count = Math.max(1, parts - Math.max(zeros, ones));
  if (plan.count > 1) {
    const field = logicalImmediate(low, high === 0 ? low : high);
    if (field >= 0) {
      plan.kind = PLAN.LOGICAL;
      plan.field = field;
      plan.count = 1;
    }
  }
}

/** The number of instructions that make a constant; `high` as above. */
export function constantWords(low: number, high: number): number {
  const plan = new ConstantPlan();
  planConstant(plan, low, high);
  return plan.count;
}

/** The 8-bit immediate of an f32 by its bits, or −1: ±(16…31)/16 × 2^(−3…4). */
export function float32Immediate(bits: number): number {
  if ((bits & 0x7ffff) !== 0) return -1;
  const exponent = (bits >>> 25) & 0x3f;
  if (exponent !== 0x20 && exponent !== 0x1f) return -1;
  return ((bits >>> 24) & 0x80) | ((bits >>> 19) & 0x7f);
}

/** The 8-bit immediate of an f64 by its halves, or −1. */
export function float64Immediate(low: number, high: number): number {
  if (low !== 0 || (high & 0xffff) !== 0) return -1;
  const exponent = (high >>> 22) & 0x1ff;
  if (exponent !== 0x100 && exponent !== 0xff) return -1;
  return ((high >>> 24) & 0x80) | ((high >>> 16) & 0x7f);
}

/** Whether one instruction makes the f32 or f64 of these bits. */
export function isFloatImmediate(low: number, high: number, double: boolean): boolean {
  return (low | high) === 0 || (double ? float64Immediate(low, high) : float32Immediate(low)) >= 0;
}

/** The halves of a logical immediate's value: the inverse of {@linkcode logicalImmediate}. */
export function logicalValue(field: number): { low: number; high: number } {
  const immr = (field >>> 6) & 63;
  const imms = field & 63;
  const length = 31 - Math.clz32(((field >>> 12) << 6) | (~imms & 63));
  const size = 1 << length;
  const ones = (imms & (size - 1)) + 1;
  const turn = immr & (size - 1);
  let low = 0;
  let high = 0;
  for (let k = 0; k < 64; k++) {
    if (((k + turn) & (size - 1)) < ones) {
      if (k < 32) low |= 1 << k;
      else high |= 1 << (k - 32);
    }
  }
  return { low, high };
}
