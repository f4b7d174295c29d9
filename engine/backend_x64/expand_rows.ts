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

/** The encoding of a row, without its operands; the fields are those of the columns of instructions.ts. */
interface Encoding {
  prefix: number;
  map: number;
  opcode: number;
  digit: number;
  wide: number;
  isWideIgnored: number;
  vex: number;
  hasModrm: number;
  condition: number;
  plusRegister: number;
  immediate: number;
}

/** Reads an encoding in the manual's notation. Throws an Error for another. */
export function readEncoding(text: string): Encoding {
  const e: Encoding = {
    prefix: 0,
    map: MAP.ONE_BYTE,
    opcode: 0,
    digit: -1,
    wide: 0,
    isWideIgnored: 0,
    vex: 0,
    hasModrm: 0,
    condition: 0,
    plusRegister: 0,
    immediate: 0,
  };
  const bytes: number[] = [];
  for (const token of text.split(" ")) {
    if (token === "REX.W") e.wide = 1;
    else if (token.startsWith("VEX.")) readVex(token, e);
    else if (token === "/r") e.hasModrm = 1;
    else if (token.startsWith("/")) {
      e.hasModrm = 1;
      e.digit = Number(token.slice(1));
    } else if (IMMEDIATES[token] !== undefined) e.immediate = IMMEDIATES[token];
    else {
      if (token.endsWith("+cc")) e.condition = 1;
      if (token.endsWith("+r")) e.plusRegister = 1;
      bytes.push(parseInt(token, 16));
    }
  }
  if (e.vex === 0) {
    const mandatory = bytes[0] === 0x66 || ((bytes[0] === 0xf2 || bytes[0] === 0xf3) && bytes.length > 1);
    if (mandatory) e.prefix = bytes.shift()!;
    if (bytes[0] === 0x0f) {
      bytes.shift();
      const escape: number = bytes.length > 1 ? bytes[0] : 0;
      e.map = escape === 0x38 ? MAP.OF38 : escape === 0x3a ? MAP.OF3A : MAP.OF;
      if (e.map !== MAP.OF) bytes.shift();
    }
  }
  if (bytes.length !== 1) throw new Error(`bad encoding "${text}"`);
  e.opcode = bytes[0];
  return e;
}

function readVex(token: string, e: Encoding): void {
  e.vex = 1;
  e.isWideIgnored = 1;
  for (const part of token.split(".")) {
    if (part === "66" || part === "F2" || part === "F3") e.prefix = parseInt(part, 16);
    else if (part === "0F") e.map = MAP.OF;
    else if (part === "0F38") e.map = MAP.OF38;
    else if (part === "0F3A") e.map = MAP.OF3A;
    else if (part === "W0" || part === "W1") {
      e.isWideIgnored = 0;
      e.wide = part === "W1" ? 1 : 0;
    }
  }
}

function expandEncoding(n: number, e: Encoding): void {
  ROW_PREFIX[n] = e.prefix;
  ROW_MAP[n] = e.map;
  ROW_OPCODE[n] = e.opcode;
  ROW_DIGIT[n] = e.digit;
  ROW_WIDE[n] = e.wide;
  ROW_W_IGNORED[n] = e.isWideIgnored;
  ROW_VEX[n] = e.vex;
  ROW_HAS_MODRM[n] = e.hasModrm;
  ROW_CONDITION[n] = e.condition;
  ROW_PLUS_REGISTER[n] = e.plusRegister;
  ROW_IMMEDIATE[n] = e.immediate;
}

function expandRow(row: InstructionRow, n: number): void {
  expandEncoding(n, readEncoding(row.encoding));
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
