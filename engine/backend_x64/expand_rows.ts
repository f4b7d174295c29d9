/**
 * Expansion of instruction rows: parses a row's text and fills its place in the columns of instructions.ts.
 *
 * Expanding all rows takes several milliseconds in a fresh process, and a program of baseline code emits only a few
 * dozen of them (thunks): `needRow` expands one on first use. all_rows.ts, which the optimizing compiler loads, expands
 * all of them.
 *
 * Rows are checked against their operands when they are expanded: a register operand without a field in the encoding is
 * an error in the table.
 */
import {
  ACCESS,
  FIELD,
  type InstructionKey,
  MAP,
  MAX_OPERANDS,
  ROW_ACCESSES,
  ROW_BYTE_REGISTERS,
  ROW_CONDITION,
  ROW_COUNT,
  ROW_DIGIT,
  ROW_FIELDS,
  ROW_HAS_MODRM,
  ROW_IMMEDIATE,
  ROW_MAP,
  ROW_MEMORY_BITS,
  ROW_OPCODE,
  ROW_PLUS_REGISTER,
  ROW_PREFIX,
  ROW_RM_VECTOR,
  ROW_SHORT,
  ROW_VEX,
  ROW_VEX_TWIN,
  ROW_W_IGNORED,
  ROW_WIDE,
  ROWS,
  X,
} from "./instructions.ts";

interface InstructionRow {
  readonly key: InstructionKey;
  readonly mnemonic: string;
  readonly operands: readonly { access: number; kind: string; field: number }[];
  readonly encoding: string;
  readonly feature: string;
}

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

/** 1: the columns have the row. */
const ROW_EXPANDED = new Uint8Array(ROW_COUNT);

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
