/**
 * Disassembler, from the same rows as the encoder: for goldens, dumps and the replay of tests/encode/x64.txt. It covers
 * exactly the instructions that this backend can emit; anything else is shown as a byte.
 *
 * The text is Intel syntax as llvm-mc prints it, for comparison with an external assembler.
 */
import { type ListedLine, listingText } from "../codegen/code_listing.ts";
import { INSTRUCTION_ROWS } from "./all_rows.ts";
import { BASE_RIP } from "./encoding.ts";
import {
  FIELD,
  MAP,
  MAX_OPERANDS,
  ROW_CONDITION,
  ROW_DIGIT,
  ROW_FIELDS,
  ROW_HAS_MODRM,
  ROW_IMMEDIATE,
  ROW_MAP,
  ROW_MEMORY_BITS,
  ROW_OPCODE,
  ROW_PLUS_REGISTER,
  ROW_PREFIX,
  ROW_VEX,
  ROW_W_IGNORED,
  ROW_WIDE,
} from "./instructions.ts";
import { CC_NAMES } from "./machine_ops.ts";

/** One instruction as fields: enough to print it, or to encode it again. */
export interface Decoded {
  row: number;
  length: number;
  /** ModRM.reg, or the register in the opcode. */
  reg: number;
  /** ModRM.rm when a register, else −1. */
  rm: number;
  vvvv: number;
  /** Memory operand; the base is BASE_RIP for an address relative to the next instruction, −1 for none. */
  base: number;
  index: number;
  scale: number;
  disp: number;
  imm: number;
  /** High half of an eight-byte immediate. */
  immHigh: number;
  condition: number;
}

/**
 * Rows by opcode: key = vex, map and opcode; rows whose opcode has a range (register, condition) are entered for all of
 * it.
 */
const BY_OPCODE = new Map<number, number[]>();

function opcodeKey(vex: number, map: number, opcode: number): number {
  return (vex << 12) | (map << 8) | opcode;
}

INSTRUCTION_ROWS.forEach((_, row) => {
  const count = ROW_CONDITION[row] !== 0 ? 16 : ROW_PLUS_REGISTER[row] !== 0 ? 8 : 1;
  for (let k = 0; k < count; k++) {
    const key = opcodeKey(ROW_VEX[row], ROW_MAP[row], ROW_OPCODE[row] + k);
    const rows = BY_OPCODE.get(key);
    if (rows === undefined) BY_OPCODE.set(key, [row]);
    else rows.push(row);
  }
});

function readInt(bytes: Uint8Array, at: number, size: number): number {
  let value = 0;
  for (let k = 0; k < size; k++) value |= (bytes[at + k] ?? 0) << (8 * k);
  return size === 1 ? value << 24 >> 24 : size === 2 ? value << 16 >> 16 : value;
}

/** Whether row `row` accepts only memory, or only a register, as its r/m operand. */
function acceptsMode(row: number, memory: boolean): boolean {
  const operand = INSTRUCTION_ROWS[row].operands.find((o) => o.field === FIELD.RM);
  if (operand === undefined) return !memory;
  return memory ? operand.kind !== "xmr" : !operand.kind.startsWith("m");
}

/** Decodes the instruction at `at`, or undefined if no row matches. */
export function decode(bytes: Uint8Array, at: number, end: number): Decoded | undefined {
  const start = at;
  let prefix = 0;
  let rex = 0;
  let vex = 0;
  let map: number = MAP.ONE_BYTE;
  let vvvv = 0;
  // A lone prefix byte may also be an instruction of its own (lock): prefixes are optional in the lookup below.
  if (bytes[at] === 0x66 || bytes[at] === 0xf2 || bytes[at] === 0xf3) prefix = bytes[at++];
  if ((bytes[at] & 0xf0) === 0x40) rex = bytes[at++];
  if (bytes[at] === 0xc5 || bytes[at] === 0xc4) {
    vex = 1;
    const three = bytes[at] === 0xc4;
    const b1 = bytes[at + 1];
    const last = three ? bytes[at + 2] : b1;
    map = three ? b1 & 31 : MAP.OF;
    rex = ((b1 & 0x80) === 0 ? 4 : 0) | (three ? ((~b1 >> 5) & 3) | ((last & 0x80) >> 4) : 0);
    prefix = [0, 0x66, 0xf3, 0xf2][last & 3];
    vvvv = (~last >> 3) & 15;
    at += three ? 3 : 2;
  } else if (bytes[at] === 0x0f) {
    map = bytes[at + 1] === 0x38 ? MAP.OF38 : bytes[at + 1] === 0x3a ? MAP.OF3A : MAP.OF;
    at += map === MAP.OF ? 1 : 2;
  }
  const opcode = bytes[at++];
  const wide = (rex >> 3) & 1;
  const modrm = bytes[at] ?? 0;
  const memory = modrm < 0xc0;
  for (const row of BY_OPCODE.get(opcodeKey(vex, map, opcode)) ?? []) {
    if (ROW_PREFIX[row] !== prefix) continue;
    if (ROW_W_IGNORED[row] === 0 && ROW_WIDE[row] !== wide) continue;
    if (ROW_HAS_MODRM[row] !== 0) {
      if (ROW_DIGIT[row] >= 0 && ROW_DIGIT[row] !== ((modrm >> 3) & 7)) continue;
      if (!acceptsMode(row, memory)) continue;
    }
    const decoded = decodeOperands(bytes, at, row, rex, opcode);
    decoded.vvvv = vvvv;
    decoded.length += at - start;
    return start + decoded.length <= end ? decoded : undefined;
  }
  return undefined;
}

function decodeOperands(bytes: Uint8Array, at: number, row: number, rex: number, opcode: number): Decoded {
  const start = at;
  const d: Decoded = {
    row,
    length: 0,
    reg: 0,
    rm: -1,
    vvvv: 0,
    base: -1,
    index: -1,
    scale: 0,
    disp: 0,
    imm: 0,
    immHigh: 0,
    condition: ROW_CONDITION[row] !== 0 ? opcode - ROW_OPCODE[row] : 0,
  };
  if (ROW_HAS_MODRM[row] !== 0) at = decodeModrm(bytes, at, rex, d);
  else if (ROW_PLUS_REGISTER[row] !== 0) d.reg = (opcode & 7) | ((rex & 1) << 3);
  const size = ROW_IMMEDIATE[row];
  d.imm = readInt(bytes, at, Math.min(size, 4));
  if (size === 8) d.immHigh = readInt(bytes, at + 4, 4);
  d.length = at + size - start;
  return d;
}

function decodeModrm(bytes: Uint8Array, at: number, rex: number, d: Decoded): number {
  const modrm = bytes[at++];
  const mod = modrm >> 6;
  d.reg = ((modrm >> 3) & 7) | ((rex & 4) << 1);
  if (mod === 3) {
    d.rm = (modrm & 7) | ((rex & 1) << 3);
    return at;
  }
  let size = mod === 1 ? 1 : mod === 2 ? 4 : 0;
  if ((modrm & 7) === 4) {
    const sib = bytes[at++];
    d.scale = sib >> 6;
    const index = ((sib >> 3) & 7) | ((rex & 2) << 2);
    if (index !== 4) d.index = index;
    if ((sib & 7) === 5 && mod === 0) size = 4;
    else d.base = (sib & 7) | ((rex & 1) << 3);
  } else if ((modrm & 7) === 5 && mod === 0) {
    d.base = BASE_RIP;
    size = 4;
  } else {
    d.base = (modrm & 7) | ((rex & 1) << 3);
  }
  if (size !== 0) d.disp = readInt(bytes, at, size);
  return at + size;
}

const NAMES64 = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"];
const NAMES32 = ["eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"];
const NAMES16 = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
const NAMES8 = ["al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"];

function registerName(kind: string, register: number): string {
  if (kind.includes("x")) return `xmm${register}`;
  const bits = Number(/\d+/.exec(kind)?.[0]);
  if (bits === 64) return NAMES64[register] ?? `r${register}`;
  if (bits === 32) return NAMES32[register] ?? `r${register}d`;
  if (bits === 16) return NAMES16[register] ?? `r${register}w`;
  return NAMES8[register] ?? `r${register}b`;
}

const SIZE_NAMES: Readonly<Record<number, string>> = {
  0: "",
  8: "byte ptr ",
  16: "word ptr ",
  32: "dword ptr ",
  64: "qword ptr ",
  128: "xmmword ptr ",
};

function memoryText(d: Decoded): string {
  let text = d.base === BASE_RIP ? "rip" : d.base >= 0 ? registerName("r64", d.base) : "";
  if (d.index >= 0) {
    const scaled = (d.scale === 0 ? "" : `${1 << d.scale}*`) + registerName("r64", d.index);
    text += (text === "" ? "" : " + ") + scaled;
  }
  if (text === "") text = String(d.disp);
  else if (d.disp !== 0) text += d.disp < 0 ? ` - ${-d.disp}` : ` + ${d.disp}`;
  return `${SIZE_NAMES[ROW_MEMORY_BITS[d.row]]}[${text}]`;
}

/** Text of a decoded instruction; relative branches show their displacement. */
export function instructionText(d: Decoded): string {
  const row = INSTRUCTION_ROWS[d.row];
  if (row.key === "REP_MOVSB") return "rep movsb byte ptr es:[rdi], byte ptr [rsi]";
  if (row.key === "REP_STOSB") return "rep stosb byte ptr es:[rdi], al";
  const mnemonic = row.mnemonic.replace("CC", CC_NAMES[d.condition]);
  const operands = row.operands.map((operand, k) => {
    switch (ROW_FIELDS[d.row * MAX_OPERANDS + k]) {
      case FIELD.REG:
      case FIELD.OPCODE:
        return registerName(operand.kind, d.reg);
      case FIELD.VVVV:
        return registerName(operand.kind, d.vvvv);
      case FIELD.RM:
        return d.rm >= 0 ? registerName(operand.kind, d.rm) : memoryText(d);
      case FIELD.FIXED:
        return operand.kind;
      case FIELD.IMM:
        if (operand.kind === "imm8u") return String(d.imm & 0xff);
    }
    return ROW_IMMEDIATE[d.row] === 8
      ? String(BigInt.asIntN(64, (BigInt(d.immHigh) << 32n) | BigInt(d.imm >>> 0)))
      : String(d.imm);
  });
  // llvm-mc names the r/m register of an exchange last.
  if (row.mnemonic === "xchg" && d.rm >= 0) operands.reverse();
  return operands.length === 0 ? mnemonic : `${mnemonic} ${operands.join(", ")}`;
}

/** Whether `row` is a jump or call by a displacement. */
function isRelative(row: number): boolean {
  return INSTRUCTION_ROWS[row].operands.some((operand) => operand.field === FIELD.REL);
}

/**
 * The lines of bytes [start, end): one per instruction, and one per label. Targets of branches within the range become
 * labels, numbered in order of address, so that the text does not depend on the address of the code; other targets are
 * shown as offsets in `bytes`.
 */
export function listCode(bytes: Uint8Array, start: number, end: number): ListedLine[] {
  const instructions: { at: number; decoded: Decoded | undefined; target: number | undefined }[] = [];
  const targets = new Set<number>();
  for (let at = start; at < end;) {
    const decoded = decode(bytes, at, end);
    const target = decoded === undefined ? undefined : targetOf(decoded, at);
    instructions.push({ at, decoded, target });
    at += decoded?.length ?? 1;
    if (target !== undefined) targets.add(target);
  }
  const labels = new Map<number, string>();
  for (const target of [...targets].sort((a, b) => a - b)) {
    if (target >= start && target < end) labels.set(target, `L${labels.size}`);
  }
  const lines: ListedLine[] = [];
  for (const { at, decoded, target } of instructions) {
    const label = labels.get(at);
    if (label !== undefined) lines.push({ at, text: `${label}:`, isLabel: true });
    const text = decoded === undefined ? `.byte 0x${hex(bytes[at])}` : listed(decoded, at, labels);
    lines.push({ at, text, ...(target === undefined ? {} : { target }) });
  }
  return lines;
}

/** The offset to which a branch leads, or at which a constant is; undefined for other instructions. */
function targetOf(d: Decoded, at: number): number | undefined {
  if (isRelative(d.row)) return at + d.length + d.imm;
  return d.base === BASE_RIP ? at + d.length + d.disp : undefined;
}

/** The text of the lines, instructions indented. */
export function disassemble(bytes: Uint8Array, start: number, end: number): string {
  return listingText(listCode(bytes, start, end));
}

function listed(d: Decoded, at: number, labels: ReadonlyMap<number, string>): string {
  const name = (target: number) => labels.get(target) ?? `offset ${target}`;
  const next = at + d.length;
  if (isRelative(d.row)) {
    const text = instructionText(d);
    return `${text.slice(0, text.lastIndexOf(" "))} ${name(next + d.imm)}`;
  }
  const text = instructionText(d);
  return d.base === BASE_RIP ? text.replace(/\[rip[^\]]*\]/, `[${name(next + d.disp)}]`) : text;
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, "0");
}
