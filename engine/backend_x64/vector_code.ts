/**
 * Vector instructions on virtual registers, for rules that need several: every function emits one and returns the
 * register of its result. The VEX form has a destination of its own; the legacy form works in the register of its first
 * operand, which the allocator arranges.
 *
 * Memory operands of 16 bytes may be anywhere with VEX; without, they must be aligned constants, not stack slots.
 */
import { constantVector } from "../codegen/lowering_context.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { CONSTRAINT, operandWord, ROLE } from "../codegen/vcode.ts";
import { foldAddress } from "./addressing.ts";
import { X } from "./instructions.ts";
import { MODE } from "./machine_ops.ts";
import type { X64Lowering } from "./lowering_context.ts";

/** Adds the DEF of a new vector: in the register of operand 1 if the form is a legacy one. */
function result(s: X64Lowering): number {
  const vreg = s.v.newVreg(TY.V128);
  s.v.operand(
    s.avx ? operandWord(vreg, ROLE.DEF, CONSTRAINT.REG) : operandWord(vreg, ROLE.DEF, CONSTRAINT.REUSE, 1),
  );
  return vreg;
}

function ownResult(s: X64Lowering, ty: number): number {
  const vreg = s.v.newVreg(ty);
  s.v.operand(operandWord(vreg, ROLE.DEF, CONSTRAINT.REG));
  return vreg;
}

/** x op y, registers. */
export function two(s: X64Lowering, row: number, x: number, y: number, imm = 0): number {
  s.plain(s.vex(row), imm, 0, 0);
  const d = result(s);
  s.use(x);
  s.use(y);
  s.end();
  return d;
}

/** x op the source resolved last. */
export function twoSource(s: X64Lowering, row: number, x: number, imm = 0): number {
  s.withSource(s.vex(row), imm, 0);
  const d = result(s);
  s.use(x);
  s.sourceOperands();
  s.end();
  return d;
}

/** op x, from register to a new register; `ty` is the result's type. */
export function one(s: X64Lowering, row: number, x: number, imm = 0, ty: number = TY.V128): number {
  s.plain(s.vex(row), imm, 0, 0);
  const d = ownResult(s, ty);
  s.use(x);
  s.end();
  return d;
}

/** op of the source resolved last. */
export function oneSource(s: X64Lowering, row: number, imm = 0, ty: number = TY.V128): number {
  s.withSource(row, imm, 0);
  const d = ownResult(s, ty);
  s.sourceOperands();
  s.end();
  return d;
}

/** x shifted by an immediate. */
export function shifted(s: X64Lowering, row: number, x: number, count: number): number {
  s.plain(s.vex(row), count, 0, 0);
  const d = result(s);
  s.use(x);
  s.end();
  return d;
}

/** A vector constant of four words as the source operand. */
export function sourceWords(s: X64Lowering, w0: number, w1: number, w2: number, w3: number): void {
  s.sourceRegister(0, false);
  s.mode = MODE.POOL;
  s.disp = s.v.addVector(w0, w1, w2, w3);
  s.poolSize = 2;
}

/** x op a constant whose words are all `word`. */
export function twoWords(s: X64Lowering, row: number, x: number, word: number, imm = 0): number {
  sourceWords(s, word, word, word, word);
  return twoSource(s, row, x, imm);
}

export function zeros(s: X64Lowering): number {
  return constantVector(s, 0, 0, 0, 0);
}

export function ones(s: X64Lowering): number {
  return constantVector(s, -1, -1, -1, -1);
}

/** ~x */
export function inverted(s: X64Lowering, x: number): number {
  return two(s, X.PXOR, x, ones(s));
}

/**
 * Resolves vector `id` as the source operand: a folded load, a constant of the pool unless it was hoisted or needs no
 * memory, or a register.
 */
export function sourceVector(s: X64Lowering, id: number): void {
  if (s.isFoldedLoad(id)) {
    foldAddress(s, id, false);
    return;
  }
  if (s.op[id] === OP.CONST && s.constantBlock[id] >= 0 && !isUniform(s, id)) {
    s.sourceRegister(0, false);
    s.mode = MODE.POOL;
    s.disp = s.vectorIndex(id);
    s.poolSize = 2;
    return;
  }
  s.sourceRegister(s.reg(id), s.avx);
}

/** Whether vector constant `id` is all zeros or all ones, which an instruction makes without memory. */
function isUniform(s: X64Lowering, id: number): boolean {
  const { vectors } = s.f;
  const at = s.imm[id] * 16;
  const byte = vectors[at];
  if (byte !== 0 && byte !== 0xff) return false;
  for (let k = 1; k < 16; k++) if (vectors[at + k] !== byte) return false;
  return true;
}
