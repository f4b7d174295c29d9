/**
 * Division of 64-bit integers by constants: the high half of a product with a magic number, and shifts (Granlund and Montgomery,
 * "Division by Invariant Integers using Multiplication", 1994). Divisors of 32-bit integers were reduced in the middle end, where
 * the product fits 64 bits. Powers of two, 0 and ±1 are left to other rules.
 *
 * For N-bit n, the quotient is floor(M × n / 2^p) if 2^p ≤ M × d ≤ 2^p + 2^(p − N).
 */
import { CONSTRAINT, operandWord, ROLE } from "../codegen/vcode.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { X } from "./instructions.ts";
import { P } from "./machine_ops.ts";
import { RAX, RDX } from "./registers.ts";
import type { Selection } from "./selection.ts";

/** How to divide by a constant. */
export interface Magic {
  /** Shift of the dividend before (unsigned only). */
  before: number;
  multiplier: bigint;
  /** Shift of the product's high half. */
  after: number;
  /** The multiplier has a 65th bit (unsigned), or is negative as a signed number (signed): the dividend must be added. */
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

/** For an unsigned divisor that is no power of two. */
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

/** For the absolute value of a signed divisor that is no power of two. */
export function signedMagic(d: bigint): Magic {
  const found = search(d, 63n, TWO64)!;
  return { before: 0, multiplier: found.multiplier, after: found.shift, add: found.multiplier >= TWO64 / 2n };
}

function isPowerOfTwo(d: bigint): boolean {
  return (d & (d - 1n)) === 0n;
}

function define(s: Selection): number {
  return s.v.newVreg(TY.I64);
}

/** `to` = x op y in x's register. */
function tied(s: Selection, row: number, to: number, x: number, y: number): void {
  s.plain(row, 0, 0, 0);
  s.v.operand(operandWord(to, ROLE.DEF, CONSTRAINT.REUSE, 1));
  s.use(x);
  s.use(y);
  s.end();
}

/** x op imm in a new vreg, in x's register. */
function shifted(s: Selection, row: number, x: number, imm: number): number {
  if (imm === 0) return x;
  const to = define(s);
  s.plain(row, imm, 0, 0);
  s.v.operand(operandWord(to, ROLE.DEF, CONSTRAINT.REUSE, 1));
  s.use(x);
  s.end();
  return to;
}

function constantVreg(s: Selection, value: bigint): number {
  const vreg = define(s);
  const i = s.plain(P.CONST_I64, Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)), 0);
  s.v.operand(operandWord(vreg, ROLE.DEF, CONSTRAINT.REG));
  s.end();
  s.v.vregRemat[vreg] = i + 1;
  return vreg;
}

/** High half of n × multiplier. */
function highProduct(s: Selection, op: number, n: number, multiplier: bigint): number {
  const factor = constantVreg(s, multiplier);
  const high = define(s);
  const i = s.plain(op, 0, 0, 0);
  s.v.clobbers[i] = s.v.addClobbers(1 << RAX, 0);
  s.v.operand(operandWord(high, ROLE.DEF, CONSTRAINT.FIXED, RDX));
  s.useFixed(n, RAX);
  s.use(factor);
  s.end();
  return high;
}

function unsignedQuotient(s: Selection, n: number, d: bigint): number {
  const magic = unsignedMagic(d);
  const high = highProduct(s, P.MULHI_U, shifted(s, X.SHR64_I, n, magic.before), magic.multiplier);
  if (!magic.add) return shifted(s, X.SHR64_I, high, magic.after);
  // (n + high) / 2 without its carry.
  const rest = define(s);
  tied(s, X.SUB64_R, rest, n, high);
  const half = shifted(s, X.SHR64_I, rest, 1);
  const sum = define(s);
  tied(s, X.ADD64_R, sum, half, high);
  return shifted(s, X.SHR64_I, sum, magic.after - 1);
}

function signedQuotient(s: Selection, n: number, d: bigint): number {
  const magic = signedMagic(d < 0n ? -d : d);
  let high = highProduct(s, P.MULHI_S, n, magic.multiplier);
  if (magic.add) {
    const sum = define(s);
    tied(s, X.ADD64_R, sum, high, n);
    high = sum;
  }
  const floor = shifted(s, X.SAR64_I, high, magic.after);
  const sign = shifted(s, X.SAR64_I, n, 63);
  const quotient = define(s);
  if (d > 0n) tied(s, X.SUB64_R, quotient, floor, sign);
  else tied(s, X.SUB64_R, quotient, sign, floor);
  return quotient;
}

/** Selects DIV_* or REM_* `id` by a constant, if it is one that this file knows. */
export function selectDivisionByConstant(s: Selection, id: number): boolean {
  const divisor = s.b[id];
  if (s.op[divisor] !== OP.CONST || s.wide(id) === 0) return false;
  const op = s.op[id];
  const signed = op === OP.DIV_S || op === OP.REM_S;
  const bits = (BigInt(s.c[divisor]) << 32n) | BigInt(s.imm[divisor] >>> 0);
  const d = signed ? bits : BigInt.asUintN(64, bits);
  if (isPowerOfTwo(d < 0n ? -d : d)) return false;
  const n = s.reg(s.a[id]);
  const quotient = signed ? signedQuotient(s, n, d) : unsignedQuotient(s, n, d);
  if (op === OP.DIV_S || op === OP.DIV_U) {
    // The quotient is a value of its own: a name for the last vreg.
    s.vregs[id] = quotient;
    return true;
  }
  const product = define(s);
  if (d === BigInt.asIntN(32, d)) {
    s.plain(X.IMUL64_I, Number(d), 0, 0);
    s.v.operand(operandWord(product, ROLE.DEF, CONSTRAINT.REG));
    s.use(quotient);
    s.end();
  } else {
    tied(s, X.IMUL64_R, product, quotient, constantVreg(s, d));
  }
  tied(s, X.SUB64_R, s.defVreg(id), n, product);
  return true;
}
