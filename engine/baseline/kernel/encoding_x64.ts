/**
 * Encoding of x86-64 instructions. In: an instruction's encoding (instructions_x64.ts, generated from the rows of
 * engine/backend_x64/, which are checked against llvm-mc), as one number: from the lowest byte on its opcode, its
 * escape (0 for none), its mandatory prefix, and the extension of the opcode. `wide` is REX.W. Registers are 0-15; the
 * opcode determines whether they are general or vector registers.
 */
import { emit32, emit8 } from "./code.ts";
import * as x64 from "./instructions_x64.ts";
import type { i32 } from "./memory.ts";

const RSP: i32 = 4;
/** No index register. */
export const NO_INDEX: i32 = -1;

// The manual's chapter 2, "Instruction format".
const REX: i32 = 0x40;
/** The escape of two-byte opcodes, with which those of three begin. */
const ESCAPE: i32 = 0x0f;
/** ModRM.mod, in its place: a register, or a displacement of one byte or four. */
const MOD_REGISTER: i32 = 0xc0;
const MOD_BYTE: i32 = 0x40;
const MOD_WORD: i32 = 0x80;
/** ModRM.rm: a SIB byte follows, or the address is relative to rip. */
const RM_SIB: i32 = 4;
const RM_RIP: i32 = 5;
/** The SIB byte of rsp or r12 as base without index. */
const SIB_NO_INDEX: i32 = 0x24;
/** A VEX prefix of three bytes, and the fields of its second byte: inverted X, and the map 0F 38. */
const VEX: i32 = 0xc4;
const VEX_NO_INDEX: i32 = 0x40;
const VEX_MAP_38: i32 = 2;
/** Mandatory prefixes. */
const PREFIX_66: i32 = 0x66;
const PREFIX_F3: i32 = 0xf3;

/** The escape and the prefix of a 16-bit operation, in an encoding. */
export const OPERAND_16: i32 = PREFIX_66 << 16;

function emitOpcode(op: i32, wide: i32, reg: i32, index: i32, base: i32, force: i32): void {
  const prefix = (op >> 16) & 255;
  if (prefix !== 0) emit8(prefix);
  const rex = REX | (wide << 3) | ((reg >> 1) & 4) | ((index >> 2) & 2) | ((base >> 3) & 1);
  if (rex !== REX || force !== 0) emit8(rex);
  const escape = (op >> 8) & 255;
  if (escape !== 0) emit8(ESCAPE);
  if (escape > ESCAPE) emit8(escape);
  emit8(op & 255);
}

/** op, without operands */
export function plain(op: i32, wide: i32): void {
  emitOpcode(op, wide, 0, 0, 0, 0);
}

/** op reg, with the register in the opcode */
export function inOpcode(op: i32, wide: i32, reg: i32): void {
  emitOpcode(op | (reg & 7), wide, 0, 0, reg, 0);
}

/** op reg, rm with two registers. */
export function rr(op: i32, wide: i32, reg: i32, rm: i32): void {
  emitOpcode(op, wide, reg & 15, 0, rm & 15, 0);
  emit8(MOD_REGISTER | ((reg & 7) << 3) | (rm & 7));
}

/** op rm with a register; the opcode has an extension */
export function r(op: i32, wide: i32, rm: i32): void {
  rr(op, wide, op >> 24, rm);
}

/** op rm, immediate of one byte; the opcode has an extension */
export function rb(op: i32, wide: i32, rm: i32, immediate: i32): void {
  rr(op, wide, op >> 24, rm);
  emit8(immediate);
}

/** op reg, rm with a REX prefix even for low registers: sil, dil, … as byte registers need one. */
export function rrByte(op: i32, wide: i32, reg: i32, rm: i32): void {
  emitOpcode(op, wide, reg & 15, 0, rm & 15, 1);
  emit8(MOD_REGISTER | ((reg & 7) << 3) | (rm & 7));
}

function fitsByte(value: i32): boolean {
  return value >= -128 && value < 128;
}

function emitDisplacement(modrm: i32, sib: i32, base: i32, displacement: i32): void {
  const mode = displacement === 0 && (base & 7) !== RM_RIP ? 0 : fitsByte(displacement) ? MOD_BYTE : MOD_WORD;
  emit8(mode | modrm);
  if (sib >= 0) emit8(sib);
  if (mode === MOD_BYTE) emit8(displacement);
  else if (mode === MOD_WORD) emit32(displacement);
}

/** op reg, [base + displacement] */
export function rm(op: i32, wide: i32, reg: i32, base: i32, displacement: i32): void {
  rmx(op, wide, reg, base, NO_INDEX, 0, displacement, 0);
}

/** op reg, [base + displacement]; the caller fills in the displacement, the last four bytes. */
export function rmLong(op: i32, wide: i32, reg: i32, base: i32): void {
  emitOpcode(op, wide, reg & 15, 0, base, 0);
  emit8(MOD_WORD | ((reg & 7) << 3) | (base & 7));
  if ((base & 7) === RSP) emit8(SIB_NO_INDEX);
  emit32(0);
}

/** op [base + displacement]; the opcode has an extension */
export function m(op: i32, wide: i32, base: i32, displacement: i32): void {
  rmx(op, wide, op >> 24, base, NO_INDEX, 0, displacement, 0);
}

/** op reg, [base + index << scale + displacement]; `force`: reg is a byte register. */
export function rmx(
  op: i32,
  wide: i32,
  reg: i32,
  base: i32,
  index: i32,
  scale: i32,
  displacement: i32,
  force: i32,
): void {
  const field = (reg & 7) << 3;
  emitOpcode(op, wide, reg & 15, index < 0 ? 0 : index, base, force);
  if (index >= 0) emitDisplacement(field | RM_SIB, (scale << 6) | ((index & 7) << 3) | (base & 7), base, displacement);
  else if ((base & 7) === RSP) emitDisplacement(field | RM_SIB, SIB_NO_INDEX, base, displacement);
  else emitDisplacement(field | (base & 7), -1, base, displacement);
}

/** op reg, [rip + 0]; the caller fills in the displacement, the last four bytes. */
export function rip(op: i32, wide: i32, reg: i32): void {
  emitOpcode(op, wide, reg & 15, 0, 0, 0);
  emit8(((reg & 7) << 3) | RM_RIP);
  emit32(0);
}

/** op rm, immediate in its shortest form. `op` is an `_I` of the group of ADD_I, whose `_B` differ from it alike. */
export function ri(op: i32, wide: i32, rm: i32, immediate: i32): void {
  const short = fitsByte(immediate);
  r(short ? op ^ x64.ADD_I ^ x64.ADD_B : op, wide, rm);
  if (short) emit8(immediate);
  else emit32(immediate);
}

/** op rm, immediate of four bytes, which the caller may replace: they are the last four. */
export function riLong(op: i32, wide: i32, rm: i32, immediate: i32): void {
  r(op, wide, rm);
  emit32(immediate);
}

/** As ri, with [base + displacement] as the destination. */
export function mi(op: i32, wide: i32, base: i32, displacement: i32, immediate: i32): void {
  const short = fitsByte(immediate);
  m(short ? op ^ x64.ADD_I ^ x64.ADD_B : op, wide, base, displacement);
  if (short) emit8(immediate);
  else emit32(immediate);
}

/** A BMI2 shift: op d, rm, v */
export function vexShift(op: i32, wide: i32, d: i32, rm: i32, v: i32): void {
  const prefix = (op >> 16) & 255;
  emit8(VEX);
  emit8((d < 8 ? 128 : 0) | VEX_NO_INDEX | (rm < 8 ? 32 : 0) | VEX_MAP_38);
  emit8((wide << 7) | ((~v & 15) << 3) | (prefix === PREFIX_66 ? 1 : prefix === PREFIX_F3 ? 2 : 3));
  emit8(op & 255);
  emit8(MOD_REGISTER | ((d & 7) << 3) | (rm & 7));
}
