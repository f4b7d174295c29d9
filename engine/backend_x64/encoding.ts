/**
 * The encoder: an instruction row and operands to bytes. One emit function for register forms and one for memory forms,
 * which read the columns of instructions.ts. `Assembler` is a growing buffer; callers reserve room per instruction, so
 * nothing is checked per byte. Registers are hardware numbers 0-15, in the bank that the row determines.
 *
 *     [66|F2|F3] [REX] [0F [38|3A]] opcode [ModRM [SIB] [disp8|disp32]] [imm]        legacy
 *     C5 R̅vvvv̅Lpp | C4 R̅X̅B̅mmmmm Wvvvv̅Lpp   opcode  ModRM …                         VEX
 *
 * Intel SDM volume 2, chapter 2.
 */
import { CodeBuffer } from "../codegen/code_buffer.ts";
import { needRow } from "./expand_rows.ts";
import {
  MAP,
  ROW_BYTE_REGISTERS,
  ROW_DIGIT,
  ROW_HAS_MODRM,
  ROW_IMMEDIATE,
  ROW_MAP,
  ROW_OPCODE,
  ROW_PREFIX,
  ROW_SHORT,
  ROW_VEX,
  ROW_WIDE,
  X,
} from "./instructions.ts";

/** As a base register: the address is relative to the next instruction, and the caller patches the displacement. */
export const BASE_RIP = -2;
/** As a base or index register: absent. */
export const NO_REGISTER = -1;

/** A memory operand: base + (index << scale) + disp. */
interface Address {
  base: number;
  index: number;
  scale: number;
  disp: number;
}

/** Encodes instructions at the end of a buffer. */
export class Assembler extends CodeBuffer {
  /** The position of the last RIP-relative displacement. */
  ripAt = 0;
  /** The one record that the methods below fill, so that an operand costs no object. */
  readonly #address: Address = { base: NO_REGISTER, index: NO_REGISTER, scale: 0, disp: 0 };

  /** base + (index << scale) + disp. The operand is valid until the next one is made. */
  indexed(base: number, index: number, scale: number, disp: number): Address {
    const address = this.#address;
    address.base = base;
    address.index = index;
    address.scale = scale;
    address.disp = disp;
    return address;
  }

  /** base + disp. The operand is valid until the next one is made. */
  based(base: number, disp = 0): Address {
    return this.indexed(base, NO_REGISTER, 0, disp);
  }

  /** A RIP-relative operand whose displacement, at `ripAt`, the caller replaces. */
  ripRelative(): Address {
    return this.indexed(BASE_RIP, NO_REGISTER, 0, 0);
  }

  byte(value: number): void {
    this.buffer[this.at++] = value;
  }

  /** Overwrites the 32-bit word at `position`. */
  patch32(position: number, value: number): void {
    const { buffer } = this;
    buffer[position] = value;
    buffer[position + 1] = value >> 8;
    buffer[position + 2] = value >> 16;
    buffer[position + 3] = value >> 24;
  }
}

/** Writes prefixes and opcode. `r`, `x`, `b` are the high bits of the three register fields. */
function emitOpcode(
  asm: Assembler,
  row: number,
  r: number,
  x: number,
  b: number,
  vvvv: number,
  force: number,
  extra: number,
): void {
  const buffer = asm.buffer;
  let at = asm.at;
  const map = ROW_MAP[row];
  const prefix = ROW_PREFIX[row];
  const wide = ROW_WIDE[row];
  if (ROW_VEX[row] !== 0) {
    const pp = prefix === 0 ? 0 : prefix === 0x66 ? 1 : prefix === 0xf3 ? 2 : 3;
    const low = ((~vvvv & 15) << 3) | pp;
    if (map === MAP.OF && wide === 0 && (x | b) === 0) {
      buffer[at++] = 0xc5;
      buffer[at++] = ((r ^ 1) << 7) | low;
    } else {
      buffer[at++] = 0xc4;
      buffer[at++] = ((r ^ 1) << 7) | ((x ^ 1) << 6) | ((b ^ 1) << 5) | map;
      buffer[at++] = (wide << 7) | low;
    }
  } else {
    if (prefix !== 0) buffer[at++] = prefix;
    const rex = (wide << 3) | (r << 2) | (x << 1) | b;
    if ((rex | force) !== 0) buffer[at++] = 0x40 | rex;
    if (map !== MAP.ONE_BYTE) {
      buffer[at++] = 0x0f;
      if (map === MAP.OF38) buffer[at++] = 0x38;
      else if (map === MAP.OF3A) buffer[at++] = 0x3a;
    }
  }
  buffer[at++] = ROW_OPCODE[row] + extra;
  asm.at = at;
}

function emitImmediate(asm: Assembler, size: number, imm: number): void {
  const buffer = asm.buffer;
  let at = asm.at;
  buffer[at++] = imm;
  if (size > 1) {
    buffer[at++] = imm >> 8;
    if (size > 2) {
      buffer[at++] = imm >> 16;
      buffer[at++] = imm >> 24;
    }
  }
  asm.at = at;
}

/**
 * Emits a row whose r/m operand (if any) is register `rm`. `reg` is ModRM.reg or the register in the opcode, `vvvv` the
 * VEX register; pass 0 for operands that the row does not have. `extra` is added to the opcode (a condition code).
 */
export function emitRegister(
  asm: Assembler,
  row: number,
  reg: number,
  rm: number,
  vvvv: number,
  imm: number,
  extra: number,
): void {
  needRow(row);
  if (ROW_SHORT[row] !== 0 && imm << 24 >> 24 === imm) row = ROW_SHORT[row];
  if (ROW_HAS_MODRM[row] === 0) {
    emitOpcode(asm, row, 0, 0, reg >> 3, 0, 0, extra + (reg & 7));
  } else {
    const digit = ROW_DIGIT[row];
    const field = digit >= 0 ? digit : reg;
    const bytes = ROW_BYTE_REGISTERS[row];
    const force = bytes !== 0 && (((bytes & 1) !== 0 && field >= 4) || ((bytes & 2) !== 0 && rm >= 4)) ? 1 : 0;
    emitOpcode(asm, row, field >> 3, 0, rm >> 3, vvvv, force, extra);
    asm.byte(0xc0 | ((field & 7) << 3) | (rm & 7));
  }
  const size = ROW_IMMEDIATE[row];
  if (size !== 0) emitImmediate(asm, size, imm);
}

/**
 * Emits a row whose r/m operand is the memory at `address`. A base of BASE_RIP leaves the displacement's position in
 * `asm.ripAt`. `extra` is added to the opcode, such as a condition.
 */
export function emitMemory(
  asm: Assembler,
  row: number,
  reg: number,
  address: Address,
  imm = 0,
  vvvv = 0,
  extra = 0,
): void {
  const { base, index, scale, disp } = address;
  needRow(row);
  if (ROW_SHORT[row] !== 0 && imm << 24 >> 24 === imm) row = ROW_SHORT[row];
  const digit = ROW_DIGIT[row];
  const field = digit >= 0 ? digit : reg;
  const force = (ROW_BYTE_REGISTERS[row] & 1) !== 0 && digit < 0 && field >= 4 ? 1 : 0;
  emitOpcode(asm, row, field >> 3, index < 0 ? 0 : index >> 3, base < 0 ? 0 : base >> 3, vvvv, force, extra);
  const buffer = asm.buffer;
  let at = asm.at;
  const regBits = (field & 7) << 3;
  if (base < 0) {
    // RIP-relative, or no base at all: index × scale + disp32.
    if (base === BASE_RIP) {
      buffer[at++] = regBits | 5;
      asm.ripAt = at;
    } else {
      buffer[at++] = regBits | 4;
      buffer[at++] = (scale << 6) | ((index < 0 ? 4 : index & 7) << 3) | 5;
    }
    buffer[at++] = disp;
    buffer[at++] = disp >> 8;
    buffer[at++] = disp >> 16;
    buffer[at++] = disp >> 24;
  } else {
    // rbp and r13 as a base always need a displacement; rsp and r12 always need a SIB byte.
    const mod = disp === 0 && (base & 7) !== 5 ? 0 : disp << 24 >> 24 === disp ? 0x40 : 0x80;
    if (index >= 0 || (base & 7) === 4) {
      buffer[at++] = mod | regBits | 4;
      buffer[at++] = (scale << 6) | ((index < 0 ? 4 : index & 7) << 3) | (base & 7);
    } else {
      buffer[at++] = mod | regBits | (base & 7);
    }
    if (mod !== 0) {
      buffer[at++] = disp;
      if (mod === 0x80) {
        buffer[at++] = disp >> 8;
        buffer[at++] = disp >> 16;
        buffer[at++] = disp >> 24;
      }
    }
  }
  asm.at = at;
  const size = ROW_IMMEDIATE[row];
  if (size !== 0) emitImmediate(asm, size, imm);
}

/** Emits `mov reg, value` for a 64-bit value in halves, in the shortest form that leaves the flags alone. */
export function emitConstant(asm: Assembler, reg: number, low: number, high: number): void {
  if (high === 0) emitRegister(asm, X.MOV32_I, reg, 0, 0, low, 0);
  else if (high === low >> 31) emitRegister(asm, X.MOV64_SI, 0, reg, 0, low, 0);
  else {
    emitRegister(asm, X.MOVABS, reg, 0, 0, 0, 0);
    // The row's eight-byte immediate was written as one word of zeros.
    asm.at -= 4;
    asm.word(low);
    asm.word(high);
  }
}
