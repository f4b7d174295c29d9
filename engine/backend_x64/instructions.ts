/**
 * Instruction rows (insts_*.ts) expanded into flat columns that the encoder, the emitter and the disassembler read by
 * row number. `X.KEY` is the number of a row. Row numbers are the machine operations of this target's VCode; operations
 * that expand to several instructions are numbered from PSEUDO_BASE on (machine_ops.ts).
 *
 * Expanding all rows takes several milliseconds in a fresh process, and a program of baseline code emits only a few
 * dozen of them (thunks): `needRow` expands one on first use. all_rows.ts, which the optimizing compiler loads, expands
 * all of them.
 *
 * Rows are checked against their operands when they are expanded: a register operand without a field in the encoding is
 * an error in the table.
 */
import { INTEGER_ROWS } from "./insts_integer.ts";
import { FLOAT_ROWS } from "./insts_float.ts";
import { SIMD_ROWS } from "./insts_simd.ts";

const ROWS = [...INTEGER_ROWS, ...FLOAT_ROWS, ...SIMD_ROWS] as const;

type KeyOf<Row> = Row extends `${infer Key} ${string}` ? Key : never;
/** Key of an instruction row. */
type InstructionKey = KeyOf<(typeof ROWS)[number]>;

/** The field of an operand in the encoding. */
export const FIELD = { NONE: 0, REG: 1, RM: 2, VVVV: 3, OPCODE: 4, FIXED: 5, IMM: 6, REL: 7 } as const;
/**
 * Access of an instruction to an operand. MERGED: only the upper part of its register is copied, so any register will
 * do.
 */
export const ACCESS = { MERGED: 0, READ: 1, WRITE: 2, BOTH: 3 } as const;
/** Opcode maps, with the numbers that VEX uses. */
export const MAP = { ONE_BYTE: 0, OF: 1, OF38: 2, OF3A: 3 } as const;

interface InstructionRow {
  readonly key: InstructionKey;
  readonly mnemonic: string;
  readonly operands: readonly { access: number; kind: string; field: number }[];
  readonly encoding: string;
  readonly feature: string;
}

/** The maximum number of operands of a row. */
export const MAX_OPERANDS = 4;

function parseOperand(text: string, encoding: string, row: string): { access: number; kind: string; field: number } {
  const colon = text.indexOf(":");
  const kind = text.slice(colon + 1);
  const access = colon < 0
    ? ACCESS.READ
    : text.startsWith("rw:")
    ? ACCESS.BOTH
    : text.startsWith("u:")
    ? ACCESS.MERGED
    : text.startsWith("w:")
    ? ACCESS.WRITE
    : ACCESS.READ;
  let field: number = FIELD.NONE;
  if (kind.startsWith("imm")) field = FIELD.IMM;
  else if (kind.startsWith("rel")) field = FIELD.REL;
  else if (kind === "cl") field = FIELD.FIXED;
  else if (/^(r\d*|x)?m\d/.test(kind) || kind === "xmr" || kind === "m") {
    field = FIELD.RM;
  } else if (kind.endsWith("v")) field = FIELD.VVVV;
  else field = encoding.includes("+r") && !encoding.includes("/") ? FIELD.OPCODE : FIELD.REG;
  const encoded = field === FIELD.RM ? encoding.includes("/") : field === FIELD.REG ? encoding.includes("/r") : true;
  if (!encoded) throw new Error(`Instruction row ${row}: operand "${text}" has no field in "${encoding}"`);
  return { access, kind, field };
}

/** The row with number `n`, parsed. */
export function instructionRow(n: number): InstructionRow {
  const [key, text, encoding, feature] = ROWS[n].split("|").map((part) => part.trim());
  const [mnemonic, ...operands] = text.split(" ");
  return {
    key: key as InstructionKey,
    mnemonic,
    operands: operands.map((operand) => parseOperand(operand, encoding, key)),
    encoding,
    feature: feature ?? "",
  };
}

function numberRows(): Record<InstructionKey, number> {
  const numbers: Record<string, number> = {};
  ROWS.forEach((row, n) => numbers[row.slice(0, row.indexOf("|")).trimEnd()] = n);
  return numbers;
}

/** Row numbers by key: `X.ADD32_R`. */
export const X: Readonly<Record<InstructionKey, number>> = Object.freeze(numberRows());

/** Number of rows. */
export const ROW_COUNT: number = ROWS.length;

/** 1: the columns have the row. */
const ROW_EXPANDED = new Uint8Array(ROW_COUNT);

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

const IMMEDIATES: Readonly<Record<string, number>> = { ib: 1, iw: 2, id: 4, io: 8, cb: 1, cd: 4 };

function expandEncoding(row: InstructionRow, n: number): void {
  const bytes: number[] = [];
  for (const token of row.encoding.split(" ")) {
    if (token === "REX.W") ROW_WIDE[n] = 1;
    else if (token.startsWith("VEX.")) expandVex(token, n);
    else if (token === "/r") ROW_HAS_MODRM[n] = 1;
    else if (token.startsWith("/")) {
      ROW_HAS_MODRM[n] = 1;
      ROW_DIGIT[n] = Number(token.slice(1));
    } else if (IMMEDIATES[token] !== undefined) ROW_IMMEDIATE[n] = IMMEDIATES[token];
    else {
      if (token.endsWith("+cc")) ROW_CONDITION[n] = 1;
      if (token.endsWith("+r")) ROW_PLUS_REGISTER[n] = 1;
      bytes.push(parseInt(token, 16));
    }
  }
  if (ROW_VEX[n] === 0) {
    const mandatory = bytes[0] === 0x66 || ((bytes[0] === 0xf2 || bytes[0] === 0xf3) && bytes.length > 1);
    if (mandatory) ROW_PREFIX[n] = bytes.shift()!;
    if (bytes[0] === 0x0f) {
      bytes.shift();
      const escape: number = bytes.length > 1 ? bytes[0] : 0;
      ROW_MAP[n] = escape === 0x38 ? MAP.OF38 : escape === 0x3a ? MAP.OF3A : MAP.OF;
      if (ROW_MAP[n] !== MAP.OF) bytes.shift();
    }
  }
  ROW_OPCODE[n] = bytes[0];
  if (bytes.length !== 1) {
    throw new Error(`Instruction row ${row.key}: bad encoding "${row.encoding}"`);
  }
}

function expandVex(token: string, n: number): void {
  ROW_VEX[n] = 1;
  ROW_W_IGNORED[n] = 1;
  for (const part of token.split(".")) {
    if (part === "66" || part === "F2" || part === "F3") ROW_PREFIX[n] = parseInt(part, 16);
    else if (part === "0F") ROW_MAP[n] = MAP.OF;
    else if (part === "0F38") ROW_MAP[n] = MAP.OF38;
    else if (part === "0F3A") ROW_MAP[n] = MAP.OF3A;
    else if (part === "W0" || part === "W1") {
      ROW_W_IGNORED[n] = 0;
      ROW_WIDE[n] = part === "W1" ? 1 : 0;
    }
  }
}

function expandRow(row: InstructionRow, n: number): void {
  expandEncoding(row, n);
  row.operands.forEach((operand, k) => {
    ROW_FIELDS[n * MAX_OPERANDS + k] = operand.field;
    ROW_ACCESSES[n * MAX_OPERANDS + k] = operand.access;
    if (operand.kind === "r8") ROW_BYTE_REGISTERS[n] |= 1;
    if (operand.kind === "rm8") ROW_BYTE_REGISTERS[n] |= 2;
    if (operand.kind.startsWith("xm")) ROW_RM_VECTOR[n] = operand.field === FIELD.RM ? 1 : ROW_RM_VECTOR[n];
    if (operand.field === FIELD.RM) ROW_MEMORY_BITS[n] = Number(/m(\d+)$/.exec(operand.kind)?.[1] ?? 0);
  });
  const numbers: Readonly<Record<string, number | undefined>> = X;
  if (row.key.endsWith("_I") && !row.key.startsWith("MOV")) ROW_SHORT[n] = numbers[row.key.slice(0, -1) + "B"] ?? 0;
  ROW_VEX_TWIN[n] = numbers["V" + row.key] ?? 0;
}

/** Expands row `n`, and its short and VEX forms, unless the columns have it. */
export function needRow(n: number): void {
  if (ROW_EXPANDED[n] !== 0) return;
  ROW_EXPANDED[n] = 1;
  expandRow(instructionRow(n), n);
  if (ROW_SHORT[n] !== 0) needRow(ROW_SHORT[n]);
  if (ROW_VEX_TWIN[n] !== 0) needRow(ROW_VEX_TWIN[n]);
}
