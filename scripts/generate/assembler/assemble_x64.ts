/**
 * Instructions of x86-64 in Intel syntax, encoded from the rows of engine/backend_x64/. In: a mnemonic and operands, as
 * `mov qword ptr [rsp + 8], 1`. Out: the shortest encoding that a row gives; of several, the one whose first operand is
 * r/m, as other assemblers choose. A label stands for a branch's target, or in brackets for an address relative to rip.
 * `{disp32}` in front of a jump demands a displacement of four bytes, for one that is filled in later.
 */
import { instructionRow, needRow } from "../../../engine/backend_x64/expand_rows.ts";
import { Assembler, emitConstant, emitMemory, emitRegister } from "../../../engine/backend_x64/encoding.ts";
import { FIELD, ROW_COUNT, ROW_IMMEDIATE, X } from "../../../engine/backend_x64/instructions.ts";
import { UNSELECTED_ROWS } from "../../../engine/backend_x64/insts_unselected.ts";
import { CC_NAMES } from "../../../engine/backend_x64/machine_ops.ts";
import { type Assembled, assembleProgram, type InstructionEncoder } from "./program.ts";

interface Register {
  readonly kind: "register";
  /** 0 for a vector register. */
  readonly bits: number;
  readonly number: number;
}
interface Memory {
  readonly kind: "memory";
  /** 0 if the text does not say the size. */
  readonly bits: number;
  readonly base: number;
  readonly index: number;
  readonly scale: number;
  readonly disp: number;
  /** The label of an address relative to rip. */
  readonly label?: string | undefined;
}
interface Immediate {
  readonly kind: "immediate";
  readonly value: bigint;
}
interface Label {
  readonly kind: "label";
  readonly name: string;
}
type Operand = Register | Memory | Immediate | Label;

const NONE = -1;
const NAMES = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
const POINTERS: Readonly<Record<string, number>> = { byte: 8, word: 16, dword: 32, qword: 64 };

function register(text: string): Register | undefined {
  const vector = /^xmm(\d+)$/.exec(text);
  if (vector !== null) return { kind: "register", bits: 0, number: Number(vector[1]) };
  const numbered = /^r(\d+)(d?)$/.exec(text);
  if (numbered !== null) return { kind: "register", bits: numbered[2] === "d" ? 32 : 64, number: Number(numbered[1]) };
  const number = NAMES.indexOf(text.slice(1));
  if (number < 0 || !/^[re]/.test(text)) return undefined;
  return { kind: "register", bits: text[0] === "r" ? 64 : 32, number };
}

function memory(text: string): Memory | undefined {
  const [, pointer, inside] = /^(?:(\w+) ptr )?\[(.*)\]$/.exec(text) ?? [];
  if (inside === undefined) return undefined;
  let base = NONE, index = NONE, scale = 0, disp = 0;
  let label: string | undefined;
  for (const [, sign, part] of inside.matchAll(/([+-]?) *([^ +-]+)/g)) {
    const [name, factor] = part.split("*");
    const found = register(name);
    if (found !== undefined && factor !== undefined) [index, scale] = [found.number, Math.log2(Number(factor))];
    else if (found !== undefined) [base, index] = base === NONE ? [found.number, index] : [base, found.number];
    else if (/^\d/.test(part)) disp = Number(sign + part);
    else if (part !== "rip") label = part;
  }
  return { kind: "memory", bits: pointer === undefined ? 0 : POINTERS[pointer], base, index, scale, disp, label };
}

function operand(text: string): Operand {
  const immediate = /^(-?)(\d\w*)$/.exec(text);
  if (immediate !== null) {
    const value = BigInt(immediate[2]);
    return { kind: "immediate", value: immediate[1] === "-" ? -value : value };
  }
  return register(text) ?? memory(text) ?? { kind: "label", name: text };
}

/** Whether an immediate of `bits` can be `value`; one of the width of the operation may be unsigned. */
function fits(value: bigint, bits: number, width: number): boolean {
  return BigInt.asIntN(bits, value) === value || (width <= bits && BigInt.asUintN(bits, value) === value);
}

/** Whether an operand of a row can be `given`; `width`: bits of the operation. */
function matches(kind: string, given: Operand, width: number): boolean {
  const bits = Number(/\d+/.exec(kind)?.[0] ?? 0);
  switch (given.kind) {
    case "register":
      return given.bits === 0 ? kind.startsWith("x") : /^rm?\d/.test(kind) && bits === given.bits;
    case "memory":
      return /^(?:rm|xm(?!m)|m)/.test(kind) && (given.bits === 0 || bits === 0 || bits === given.bits);
    case "immediate":
      return kind.startsWith("imm") && fits(given.value, bits, width);
    case "label":
      return kind.startsWith("rel");
  }
}

const ROWS = Array.from({ length: ROW_COUNT }, (_, n) => instructionRow(n));

/** The condition of a mnemonic for the row's, such as 4 of `je` for `jCC`; −1 if it is another instruction. */
function conditionOf(row: string, mnemonic: string): number {
  if (row === mnemonic) return 0;
  const stem = row.replace(/CC$/, "");
  if (stem === row || !mnemonic.startsWith(stem)) return -1;
  return CC_NAMES.findIndex((name) => name === mnemonic.slice(stem.length));
}

/** Instructions without operands that the optimizing compiler does not select, by text. */
const UNSELECTED = new Map(UNSELECTED_ROWS.flatMap((row): [string, Uint8Array][] => {
  const [, text, encoding] = row.split("|").map((part) => part.trim());
  if (text.includes(" ")) return []; // has operands: only the baseline kernel uses it
  const tokens = encoding.split(" ").map((token) => token === "REX.W" ? "48" : token);
  return [[text.replace("_", " "), Uint8Array.from(tokens, (token) => parseInt(token, 16))]];
}));

/** Encodes a row; `next`: the offset behind the instruction from its start, given its size. */
function encodeRow(
  row: number,
  condition: number,
  operands: readonly Operand[],
  distance: (label: string, size: number) => number,
): Uint8Array {
  needRow(row);
  const asm = new Assembler(32);
  let reg = 0, rm = 0, imm = 0n;
  let address: Memory | undefined;
  let target: string | undefined;
  operands.forEach((given, k) => {
    const { field } = ROWS[row].operands[k];
    if (given.kind === "memory") address = given;
    else if (given.kind === "immediate") imm = given.value;
    else if (given.kind === "label") target = given.name;
    else if (field === FIELD.RM) rm = given.number;
    else reg = given.number;
  });
  const low = Number(BigInt.asIntN(32, imm));
  if (row === X.MOVABS) emitConstant(asm, reg, low, Number(BigInt.asIntN(32, imm >> 32n)));
  else if (address === undefined) emitRegister(asm, row, reg, rm, 0, low, condition);
  else {
    const { label, base, index, scale, disp } = address;
    emitMemory(asm, row, reg, label === undefined ? asm.indexed(base, index, scale, disp) : asm.ripRelative(), low);
    if (label !== undefined) asm.patch32(asm.ripAt, distance(label, asm.at));
  }
  if (target !== undefined) {
    const to = distance(target, asm.at);
    if (ROW_IMMEDIATE[row] === 4) asm.patch32(asm.at - 4, to);
    else if (BigInt.asIntN(8, BigInt(to)) === BigInt(to)) asm.buffer[asm.at - 1] = to;
    else throw new RangeError(`${to} bytes are too far for a short branch`);
  }
  return asm.buffer.slice(0, asm.at);
}

/** The size of `jmp` with a displacement of four bytes. */
const LONG_JUMP = 5;

const encode: InstructionEncoder = (line, at, offsetOf, least) => {
  if (line.startsWith("{disp32} ")) {
    return encode(line.slice("{disp32} ".length), at, offsetOf, Math.max(least, LONG_JUMP));
  }
  const unselected = UNSELECTED.get(line);
  if (unselected !== undefined) return unselected;
  if (line.startsWith("lock ")) {
    const lock = encodeRow(X.LOCK, 0, [], () => 0);
    const rest = encode(line.slice("lock ".length), at + lock.length, offsetOf, 0);
    return Uint8Array.of(...lock, ...rest);
  }
  const [, mnemonic, rest] = /^(rep \w+|\w+) ?(.*)$/.exec(line) ?? ["", line, ""];
  const operands = rest === "" ? [] : rest.split(/, */).map(operand);
  const width = Math.max(...operands.map((each) => "bits" in each ? each.bits : 0));
  const hasSize = operands.some((each) => "bits" in each && each.bits !== 0) ||
    !operands.some((each) => each.kind === "immediate");
  if (operands.length > 1 && !hasSize) throw new Error("the operand needs a size, as in qword ptr [rax]");
  const distance = (label: string, size: number): number => {
    const target = offsetOf(label);
    return target === undefined ? 0 : target - at - size;
  };
  let best: Uint8Array | undefined;
  let isBestFirst = false;
  ROWS.forEach((row, n) => {
    const condition = conditionOf(row.mnemonic, mnemonic.replace(" ", "_"));
    if (condition < 0 || row.feature !== "" || row.operands.length !== operands.length) return;
    if (!operands.every((given, k) => matches(row.operands[k].kind, given, width))) return;
    const isFirst = row.operands[0]?.field === FIELD.RM;
    let bytes: Uint8Array;
    try {
      bytes = encodeRow(n, condition, operands, distance);
    } catch (error) {
      if (error instanceof RangeError) return; // the branch is too short
      throw error;
    }
    if (bytes.length < least) return;
    if (best === undefined || bytes.length < best.length || (bytes.length === best.length && isFirst && !isBestFirst)) {
      best = bytes;
      isBestFirst = isFirst;
    }
  });
  if (best === undefined) throw new Error("no instruction row has this form");
  return best;
};

/** Assembles a program for x64. */
export function assembleX64(text: string): Assembled {
  return assembleProgram(text, encode);
}
