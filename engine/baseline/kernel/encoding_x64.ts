/**
 * Encoding of x86-64 instructions. An opcode is one number: its last byte, its escape (0x0f00 for 0F, 0x3800 for 0F 38,
 * 0x3a00 for 0F 3A), and its mandatory prefix (0x660000, 0xf20000, 0xf30000). `wide` is REX.W. Registers are 0-15; the
 * opcode determines whether they are general or vector registers.
 */
import { emit32, emit8 } from "./code.ts";
import type { i32 } from "./memory.ts";

const RSP: i32 = 4;
/** No index register. */
export const NO_INDEX: i32 = -1;

function emitOpcode(opcode: i32, wide: i32, reg: i32, index: i32, base: i32, force: i32): void {
  const prefix = (opcode >> 16) & 0xff;
  if (prefix !== 0) emit8(prefix);
  const rex = 0x40 | (wide << 3) | ((reg >> 1) & 4) | ((index >> 2) & 2) | ((base >> 3) & 1);
  if (rex !== 0x40 || force !== 0) emit8(rex);
  const escape = (opcode >> 8) & 0xff;
  if (escape !== 0) emit8(0x0f);
  if (escape > 0x0f) emit8(escape);
  emit8(opcode & 0xff);
}

/** opcode reg, rm with two registers. */
export function rr(opcode: i32, wide: i32, reg: i32, rm: i32): void {
  emitOpcode(opcode, wide, reg & 15, 0, rm & 15, 0);
  emit8(0xc0 | ((reg & 7) << 3) | (rm & 7));
}

/** opcode reg, rm with a REX prefix even for low registers: sil, dil, … as byte registers need one. */
export function rrByte(opcode: i32, wide: i32, reg: i32, rm: i32): void {
  emitOpcode(opcode, wide, reg & 15, 0, rm & 15, 1);
  emit8(0xc0 | ((reg & 7) << 3) | (rm & 7));
}

function fitsByte(value: i32): boolean {
  return value >= -128 && value < 128;
}

function emitDisplacement(modrm: i32, sib: i32, base: i32, displacement: i32): void {
  const mode = displacement === 0 && (base & 7) !== 5 ? 0 : fitsByte(displacement) ? 0x40 : 0x80;
  emit8(mode | modrm);
  if (sib >= 0) emit8(sib);
  if (mode === 0x40) emit8(displacement);
  else if (mode === 0x80) emit32(displacement);
}

/** opcode reg, [base + displacement] */
export function rm(opcode: i32, wide: i32, reg: i32, base: i32, displacement: i32): void {
  rmx(opcode, wide, reg, base, NO_INDEX, 0, displacement, 0);
}

/** opcode reg, [base + index << scale + displacement]; `force`: reg is a byte register. */
export function rmx(
  opcode: i32,
  wide: i32,
  reg: i32,
  base: i32,
  index: i32,
  scale: i32,
  displacement: i32,
  force: i32,
): void {
  const field = (reg & 7) << 3;
  emitOpcode(opcode, wide, reg & 15, index < 0 ? 0 : index, base, force);
  if (index >= 0) emitDisplacement(field | 4, (scale << 6) | ((index & 7) << 3) | (base & 7), base, displacement);
  else if ((base & 7) === RSP) emitDisplacement(field | 4, 0x24, base, displacement);
  else emitDisplacement(field | (base & 7), -1, base, displacement);
}

/** opcode reg, [rip + 0]; the caller fills in the displacement, the last four bytes. */
export function rip(opcode: i32, wide: i32, reg: i32): void {
  emitOpcode(opcode, wide, reg & 15, 0, 0, 0);
  emit8(((reg & 7) << 3) | 5);
  emit32(0);
}

/** The group of `81 /extension`: rm op= immediate, in its shortest form. */
export function ri(extension: i32, wide: i32, rm: i32, immediate: i32): void {
  const short = fitsByte(immediate);
  rr(short ? 0x83 : 0x81, wide, extension, rm);
  if (short) emit8(immediate);
  else emit32(immediate);
}

/** The same group with [base + displacement] as the destination. */
export function mi(extension: i32, wide: i32, base: i32, displacement: i32, immediate: i32): void {
  const short = fitsByte(immediate);
  rm(short ? 0x83 : 0x81, wide, extension, base, displacement);
  if (short) emit8(immediate);
  else emit32(immediate);
}

/** A BMI2 shift: opcode d, rm, v. `prefix`: 1 for 66, 2 for F3, 3 for F2; the map is 0F 38. */
export function vexShift(prefix: i32, opcode: i32, wide: i32, d: i32, rm: i32, v: i32): void {
  emit8(0xc4);
  emit8((d < 8 ? 0x80 : 0) | 0x40 | (rm < 8 ? 0x20 : 0) | 2);
  emit8((wide << 7) | ((~v & 15) << 3) | prefix);
  emit8(opcode);
  emit8(0xc0 | ((d & 7) << 3) | (rm & 7));
}
