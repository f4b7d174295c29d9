/**
 * Division of 64-bit integers by constants: the high half of a product with a magic number, and shifts (Granlund and
 * Montgomery, "Division by Invariant Integers using Multiplication", 1994). Divisions of 32-bit integers were reduced
 * in the optimizer, where the product fits 64 bits. Powers of two, 0 and ±1 have other rules. In: a division and the
 * few instructions that it needs (DivisionRules), which a backend provides. Out: the quotient or the remainder.
 *
 * For N-bit n, the quotient is floor(M × n / 2^p) if 2^p ≤ M × d ≤ 2^p + 2^(p − N).
 */
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import type { LoweringContext } from "./lowering_context.ts";

/** The multiplication and shifts that divide by a constant. */
interface Magic {
  /** Shift of the dividend before (unsigned only). */
  before: number;
  multiplier: bigint;
  /** Shift of the product's high half. */
  after: number;
  /**
   * The multiplier has a 65th bit (unsigned), or is negative as a signed number (signed): the dividend must be added.
   */
  add: boolean;
}

const TWO64 = 1n << 64n;

/** Smallest shift for which a multiplier below `limit` divides `bits`-bit numbers by `d`. */
function search(d: bigint, bits: bigint, limit: bigint): { multiplier: bigint; shift: number } | undefined {
  for (let shift = 0n; shift <= 64n; shift++) {
    const power = 1n << (64n + shift);
    const multiplier = (power + d - 1n) / d;
    if (multiplier >= limit) return undefined;
    if (multiplier * d - power <= 1n << (64n + shift - bits)) return { multiplier, shift: Number(shift) };
  }
  return undefined;
}

/** Plan for an unsigned divisor that is not a power of two. */
export function unsignedMagic(d: bigint): Magic {
  const plain = search(d, 64n, TWO64);
  if (plain !== undefined) return { before: 0, multiplier: plain.multiplier, after: plain.shift, add: false };
  let before = 0n;
  while (((d >> before) & 1n) === 0n) before++;
  if (before > 0n) {
    const shifted = search(d >> before, 64n - before, TWO64);
    if (shifted !== undefined) {
      return { before: Number(before), multiplier: shifted.multiplier, after: shifted.shift, add: false };
    }
  }
  const long = search(d, 64n, 2n * TWO64)!;
  return { before: 0, multiplier: long.multiplier - TWO64, after: long.shift, add: true };
}

/** Plan for the absolute value of a signed divisor that is not a power of two. */
export function signedMagic(d: bigint): Magic {
  const found = search(d, 63n, TWO64)!;
  return { before: 0, multiplier: found.multiplier, after: found.shift, add: found.multiplier >= TWO64 / 2n };
}

function isPowerOfTwo(d: bigint): boolean {
  return (d & (d - 1n)) === 0n;
}

/** Instructions of a division: each returns the vreg of its result; all are 64 bits wide. */
export interface DivisionRules<S extends LoweringContext> {
  /** High half of n × m, signed or not. */
  highProduct(s: S, signed: boolean, n: number, m: number): number;
  add(s: S, x: number, y: number): number;
  subtract(s: S, x: number, y: number): number;
  /** x shifted to the right by a count from 1 on, signed or not. */
  shiftRight(s: S, signed: boolean, x: number, count: number): number;
  /** Value `id` = n − quotient × d. */
  remainder(s: S, id: number, n: number, quotient: number, d: bigint): void;
}

/** A vreg with a 64-bit constant. */
export function wideConstant(s: LoweringContext, value: bigint): number {
  return s.constantBits(TY.I64, Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
}

function shifted<S extends LoweringContext>(
  s: S,
  rules: DivisionRules<S>,
  signed: boolean,
  x: number,
  count: number,
): number {
  return count === 0 ? x : rules.shiftRight(s, signed, x, count);
}

function unsignedQuotient<S extends LoweringContext>(s: S, rules: DivisionRules<S>, n: number, d: bigint): number {
  const magic = unsignedMagic(d);
  const dividend = shifted(s, rules, false, n, magic.before);
  const high = rules.highProduct(s, false, dividend, wideConstant(s, magic.multiplier));
  if (!magic.add) return shifted(s, rules, false, high, magic.after);
  // (n + high) / 2 without its carry.
  const half = rules.shiftRight(s, false, rules.subtract(s, n, high), 1);
  return shifted(s, rules, false, rules.add(s, half, high), magic.after - 1);
}

function signedQuotient<S extends LoweringContext>(s: S, rules: DivisionRules<S>, n: number, d: bigint): number {
  const magic = signedMagic(d < 0n ? -d : d);
  let high = rules.highProduct(s, true, n, wideConstant(s, magic.multiplier));
  if (magic.add) high = rules.add(s, high, n);
  const floor = shifted(s, rules, true, high, magic.after);
  const sign = rules.shiftRight(s, true, n, 63);
  return d > 0n ? rules.subtract(s, floor, sign) : rules.subtract(s, sign, floor);
}

/** Selects the 64-bit DIV_* or REM_* `id` by a constant; returns false, and does nothing, if other rules apply. */
export function selectDivisionByConstant<S extends LoweringContext>(
  s: S,
  id: number,
  rules: DivisionRules<S>,
): boolean {
  const divisor = s.b[id];
  if (s.op[divisor] !== OP.CONST || s.wide(id) === 0) return false;
  const op = s.op[id];
  const signed = op === OP.DIV_S || op === OP.REM_S;
  const bits = (BigInt(s.c[divisor]) << 32n) | BigInt(s.imm[divisor] >>> 0);
  const d = signed ? bits : BigInt.asUintN(64, bits);
  if (isPowerOfTwo(d < 0n ? -d : d)) return false;
  const n = s.reg(s.a[id]);
  const quotient = signed ? signedQuotient(s, rules, n, d) : unsignedQuotient(s, rules, n, d);
  // The quotient is in a vreg already, which becomes that of the value.
  if (op === OP.DIV_S || op === OP.DIV_U) s.vregs[id] = quotient;
  else rules.remainder(s, id, n, quotient, d);
  return true;
}
