/**
 * Instruction rows (insts_*.ts) expanded into flat columns that the encoder, the emitter and the disassembler read by
 * row number. `X.KEY` is the number of a row. Row numbers are the machine operations of this target's VCode; operations
 * that expand to several instructions are numbered from PSEUDO_BASE on (machine_ops.ts).
 *
 * expand_rows.ts fills the columns of a row on first use.
 */
import { INTEGER_ROWS } from "./insts_integer.ts";
import { FLOAT_ROWS } from "./insts_float.ts";
import { SIMD_ROWS } from "./insts_simd.ts";

/** Rows as text, by number. */
export const ROWS = [...INTEGER_ROWS, ...FLOAT_ROWS, ...SIMD_ROWS] as const;

type KeyOf<Row> = Row extends `${infer Key} ${string}` ? Key : never;
/** Key of an instruction row. */
export type InstructionKey = KeyOf<(typeof ROWS)[number]>;

/** The field of an operand in the encoding. */
export const FIELD = { NONE: 0, REG: 1, RM: 2, VVVV: 3, OPCODE: 4, FIXED: 5, IMM: 6, REL: 7 } as const;
/**
 * Access of an instruction to an operand. MERGED: only the upper part of its register is copied, so any register will
 * do.
 */
export const ACCESS = { MERGED: 0, READ: 1, WRITE: 2, BOTH: 3 } as const;
/** Opcode maps, with the numbers that VEX uses. */
export const MAP = { ONE_BYTE: 0, OF: 1, OF38: 2, OF3A: 3 } as const;

/** The maximum number of operands of a row. */
export const MAX_OPERANDS = 4;

function numberRows(): Record<InstructionKey, number> {
  const numbers: Record<string, number> = {};
  ROWS.forEach((row, n) => numbers[row.slice(0, row.indexOf("|")).trimEnd()] = n);
  return numbers;
}

/** Row numbers by key: `X.ADD32_R`. */
export const X: Readonly<Record<InstructionKey, number>> = Object.freeze(numberRows());

/** Number of rows. */
export const ROW_COUNT: number = ROWS.length;

/** Mandatory prefix: 0, 0x66, 0xf2 or 0xf3. */
export const ROW_PREFIX = new Uint8Array(ROW_COUNT);
export const ROW_MAP = new Uint8Array(ROW_COUNT);
export const ROW_OPCODE = new Uint8Array(ROW_COUNT);
/** ModRM.reg when it extends the opcode; −1 when the row has none. */
export const ROW_DIGIT = new Int8Array(ROW_COUNT).fill(-1);
/** 1: REX.W or VEX.W is set. */
export const ROW_WIDE = new Uint8Array(ROW_COUNT);
/** 1: the encoding ignores W. */
export const ROW_W_IGNORED = new Uint8Array(ROW_COUNT);
export const ROW_VEX = new Uint8Array(ROW_COUNT);
export const ROW_HAS_MODRM = new Uint8Array(ROW_COUNT);
/** 1: the condition code is added to the opcode. */
export const ROW_CONDITION = new Uint8Array(ROW_COUNT);
/** 1: a register is added to the opcode. */
export const ROW_PLUS_REGISTER = new Uint8Array(ROW_COUNT);
/** Bytes of the immediate or displacement after the instruction. */
export const ROW_IMMEDIATE = new Uint8Array(ROW_COUNT);
/** Bit 0: ModRM.reg names a byte register; bit 1: ModRM.rm does (spl…dil need a REX prefix then). */
export const ROW_BYTE_REGISTERS = new Uint8Array(ROW_COUNT);
/** Row with a one-byte immediate that means the same when the immediate fits, or 0. */
export const ROW_SHORT = new Uint16Array(ROW_COUNT);
/** Row of the same instruction with the VEX encoding, or 0. */
export const ROW_VEX_TWIN = new Uint16Array(ROW_COUNT);
/** Field and access of operand k of a row, at row × MAX_OPERANDS + k. */
export const ROW_FIELDS = new Uint8Array(ROW_COUNT * MAX_OPERANDS);
export const ROW_ACCESSES = new Uint8Array(ROW_COUNT * MAX_OPERANDS);
/** 1: the r/m operand, when a register, is a vector register. */
export const ROW_RM_VECTOR = new Uint8Array(ROW_COUNT);
/** Bits of the memory operand, 0 if the row has none or its size is unspecified (lea). */
export const ROW_MEMORY_BITS = new Uint8Array(ROW_COUNT);
