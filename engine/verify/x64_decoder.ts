/**
 * Decoder of the verifier for x86-64. In: bytes of one function. Out: columns with one entry per instruction.
 * Invariant: an accepted instruction is decoded in full, with every prefix, register, displacement and immediate;
 * instructions do not overlap, and bytes that begin no form of x64_forms.ts are an entry of their own that must not be
 * reached.
 *
 *     [F0] [66|F2|F3] [REX] [0F [38|3A]] opcode [ModRM [SIB] [displacement]] [immediate]
 *     C5 or C4 prefix, opcode, ModRM …                                          VEX, 128 bits
 */
import { BASE_RIP, type Instructions, KIND, LEADS, NO_REGISTER, OPERANDS } from "./instructions.ts";
import { X64_FORMS } from "./x64_forms.ts";

// Columns of forms. SIZE: bytes, or one of the codes below.
const SIZE_W = 64, SIZE_D = 65;
const IMMEDIATE = { NONE: 0, BYTE: 1, WORD: 2, FULL: 3, RELATIVE8: 4, RELATIVE32: 5 } as const;
const MODES = { ANY: 0, REGISTER: 1, MEMORY: 2 } as const;
const FORM_KIND: number[] = [0];
const FORM_SUB: number[] = [0];
const FORM_OPERANDS: number[] = [0];
const FORM_MODE: number[] = [0];
const FORM_SIZE: number[] = [0];
const FORM_IMMEDIATE: number[] = [0];
/** 1: the operands are general registers of a byte. */
const FORM_BYTES: number[] = [0];

/** Form by VEX, prefix, map, opcode and ModRM.reg, from the most significant bits down; 0: none. */
const FORM_AT = new Uint16Array(2 * 4 * 4 * 256 * 8);
const PREFIXES = ["-", "66", "f3", "f2"];
const MAPS = ["1", "0f", "38", "3a"];

function formKey(vex: number, prefix: number, map: number, opcode: number): number {
  return ((((vex << 2) | prefix) << 2 | map) << 11) | (opcode << 3);
}

/** Enters form `n` for `opcodes`, a text such as "58-5a,71/2". */
function enterOpcodes(n: number, vex: number, prefix: number, map: number, opcodes: string): void {
  for (const item of opcodes.split(",")) {
    const [range, digit] = item.split("/");
    const [first, last = first] = range.split("-").map((text) => parseInt(text, 16));
    for (let opcode = first; opcode <= last; opcode++) {
      const key = formKey(vex, prefix, map, opcode);
      if (digit !== undefined) FORM_AT[key + Number(digit)] = n;
      else FORM_AT.fill(n, key, key + 8);
    }
  }
}

const OPERAND_CODES: Readonly<Record<string, number>> = {
  "-": OPERANDS.NONE,
  "m": OPERANDS.RM,
  "R": OPERANDS.RM,
  "M": OPERANDS.RM,
  "r,m": OPERANDS.R_M,
  "r,M": OPERANDS.R_M,
  "r,R": OPERANDS.R_M,
  "m,r": OPERANDS.M_R,
  "M,r": OPERANDS.M_R,
  "o": OPERANDS.OPCODE,
};

function enterForm(text: string): void {
  const [prefixes, map, opcodes, kind, operands, size, immediate] = text.split(" ");
  const n = FORM_KIND.length;
  const [name, sub] = kind.split(".");
  FORM_KIND.push(KIND[name as keyof typeof KIND]);
  FORM_SUB.push(Number(sub ?? 0));
  FORM_OPERANDS.push(OPERAND_CODES[operands]);
  FORM_MODE.push(operands.includes("M") ? MODES.MEMORY : operands.includes("R") ? MODES.REGISTER : MODES.ANY);
  FORM_SIZE.push(size === "w" ? SIZE_W : size === "d" ? SIZE_D : Number(size));
  FORM_IMMEDIATE.push(immediate === undefined ? 0 : "bzocC".indexOf(immediate) + 1);
  FORM_BYTES.push(prefixes === "-" && size === "1" ? 1 : 0);
  const encodings = prefixes.startsWith("v!") ? [1] : prefixes.startsWith("v") ? [0, 1] : [0];
  for (const prefix of prefixes.replace(/^v!?/, "").split(",")) {
    for (const vex of encodings) enterOpcodes(n, vex, PREFIXES.indexOf(prefix), MAPS.indexOf(map), opcodes);
  }
}

for (const text of X64_FORMS) enterForm(text);

const NOP_OPCODE = 0x90;

/** Prefix (PREFIXES) of a first byte. */
function prefixOf(byte: number): number {
  return byte === 0x66 ? 1 : byte === 0xf3 ? 2 : byte === 0xf2 ? 3 : 0;
}

function readInt(bytes: Uint8Array, at: number, size: number): number {
  if (size === 4) return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
  return size === 1 ? bytes[at] << 24 >> 24 : (bytes[at] | (bytes[at + 1] << 8)) << 16 >> 16;
}

/**
 * Decodes [start, end) of `bytes` into `into`, which has begun. Bytes that are not an instruction become an entry of
 * KIND.DATA up to the next place to which a branch leads; so does an instruction that overlaps a place to which control
 * goes with more certainty. Callers name further such places with `into.mark` before.
 */
export function decodeX64(bytes: Uint8Array, start: number, end: number, into: Instructions): void {
  into.count = 0;
  let certainty: number = LEADS.SURE;
  for (let at = start; at < end;) {
    into.reserve();
    const n = into.count++;
    into.at[n] = at;
    certainty = Math.max(certainty, into.certaintyAt(at));
    let next = decodeOne(bytes, at, into, n);
    if (next < 0 || next > end || (certainty < LEADS.SURE && into.nextTarget(at + 1, next, certainty) < next)) {
      next = into.nextTarget(at + 1, end, next < 0 || next > end ? LEADS.UNKNOWN : certainty);
      into.kind[n] = KIND.DATA;
      certainty = LEADS.UNKNOWN;
    } else {
      const kind = into.kind[n];
      if (kind === KIND.BRANCH || kind === KIND.JUMP) {
        into.mark(next + into.immediate[n], Math.max(certainty, LEADS.PERHAPS));
      }
      if (kind >= KIND.JUMP && kind <= KIND.RETURN && kind !== KIND.CALL_INDIRECT) certainty = LEADS.UNKNOWN;
    }
    at = next;
  }
  into.at[into.count] = end;
  into.clear();
}

/** Decodes the instruction at `at` into entry `n`; returns the offset of the next one, or −1. */
function decodeOne(bytes: Uint8Array, at: number, into: Instructions, n: number): number {
  const locked = bytes[at] === 0xf0 ? 1 : 0;
  at += locked;
  if (bytes[at] === 0xc5 || bytes[at] === 0xc4) return locked !== 0 ? -1 : decodeVex(bytes, at, into, n);
  const prefix = prefixOf(bytes[at]);
  if (prefix !== 0) at++;
  const rex = (bytes[at] & 0xf0) === 0x40 ? bytes[at++] : 0;
  let map = 0;
  if (bytes[at] === 0x0f) {
    at++;
    map = bytes[at] === 0x38 ? 2 : bytes[at] === 0x3a ? 3 : 1;
    if (map !== 1) at++;
  }
  into.locked[n] = locked;
  return decodeOpcode(bytes, at, into, n, formKey(0, prefix, map, bytes[at]), rex, prefix);
}

function decodeVex(bytes: Uint8Array, at: number, into: Instructions, n: number): number {
  const long = bytes[at] === 0xc4;
  const first = bytes[at + 1];
  const map = long ? first & 31 : 1;
  const last = long ? bytes[at + 2] : first;
  // Three maps exist; bit 2 would be the 256-bit form.
  if (map < 1 || map > 3 || (last & 4) !== 0) return -1;
  const wide = long ? last >> 7 : 0;
  const high = ~first >> 5;
  const rex = (wide << 3) | (high & 4) | (long ? high & 3 : 0);
  const prefix = last & 3;
  at += long ? 3 : 2;
  into.locked[n] = 0;
  return decodeOpcode(bytes, at, into, n, formKey(1, prefix, map, bytes[at]), rex, 0);
}

/** The rest of an instruction from its opcode on. */
function decodeOpcode(
  bytes: Uint8Array,
  at: number,
  into: Instructions,
  n: number,
  key: number,
  rex: number,
  prefix: number,
): number {
  const opcode = bytes[at++];
  const form = FORM_AT[key + ((bytes[at] >> 3) & 7)];
  if (form === 0) return -1;
  const operands = FORM_OPERANDS[form];
  // The opcode of a NOP exchanges rax with r8 if the prefix names that.
  if (opcode === NOP_OPCODE && FORM_KIND[form] === KIND.NOP && (rex & 1) !== 0) return -1;
  const wide = (rex >> 3) & 1;
  into.kind[n] = FORM_KIND[form];
  into.sub[n] = FORM_SUB[form];
  into.condition[n] = opcode & 15;
  into.operands[n] = operands;
  into.wide[n] = wide;
  into.rex[n] = rex === 0 ? 0 : 1;
  const size = FORM_SIZE[form];
  into.size[n] = size < SIZE_W ? size : wide !== 0 ? 8 : size === SIZE_W && prefix === 1 ? 2 : 4;
  into.reg[n] =
    into.rm[n] =
    into.base[n] =
    into.index[n] =
      NO_REGISTER;
  into.scale[n] = 0;
  into.displacement[n] = 0;
  if (operands === OPERANDS.OPCODE) into.reg[n] = (opcode & 7) | ((rex & 1) << 3);
  else if (operands !== OPERANDS.NONE) {
    const mode = FORM_MODE[form];
    if (mode !== MODES.ANY && (mode === MODES.REGISTER) !== (bytes[at] >= 0xc0)) return -1;
    at = decodeModrm(bytes, at, into, n, rex);
    if (rex === 0 && FORM_BYTES[form] !== 0 && hasHighByte(into, n)) return -1;
  }
  if (into.locked[n] !== 0 && into.rm[n] >= 0) return -1;
  return decodeImmediate(bytes, at, into, n, FORM_IMMEDIATE[form]);
}

/**
 * Whether an instruction on bytes without a REX prefix has ah, ch, dh or bh as an operand. They have the numbers of
 * spl, bpl, sil and dil, and are parts of other registers than these.
 */
function hasHighByte({ operands, kind, reg, rm }: Instructions, n: number): boolean {
  const isHigh = (register: number) => register >= 4 && register < 8;
  const isExtension = kind[n] === KIND.ZERO_EXTEND || kind[n] === KIND.SIGN_EXTEND;
  return isHigh(rm[n]) || (operands[n] !== OPERANDS.RM && !isExtension && isHigh(reg[n]));
}

function decodeModrm(bytes: Uint8Array, at: number, into: Instructions, n: number, rex: number): number {
  const modrm = bytes[at++];
  const mod = modrm >> 6;
  const low = modrm & 7;
  into.reg[n] = ((modrm >> 3) & 7) | ((rex & 4) << 1);
  if (mod === 3) {
    into.rm[n] = low | ((rex & 1) << 3);
    return at;
  }
  let size = mod === 1 ? 1 : mod === 2 ? 4 : 0;
  if (low === 4) {
    const sib = bytes[at++];
    const index = ((sib >> 3) & 7) | ((rex & 2) << 2);
    into.scale[n] = sib >> 6;
    into.index[n] = index === 4 ? NO_REGISTER : index;
    if ((sib & 7) === 5 && mod === 0) size = 4;
    else into.base[n] = (sib & 7) | ((rex & 1) << 3);
  } else if (low === 5 && mod === 0) {
    into.base[n] = BASE_RIP;
    size = 4;
  } else into.base[n] = low | ((rex & 1) << 3);
  if (size !== 0) into.displacement[n] = readInt(bytes, at, size);
  return at + size;
}

function decodeImmediate(bytes: Uint8Array, at: number, into: Instructions, n: number, code: number): number {
  into.hasImmediate[n] = code === IMMEDIATE.NONE ? 0 : 1;
  into.immediateHigh[n] = 0;
  if (code === IMMEDIATE.NONE) return at;
  const isByte = code === IMMEDIATE.BYTE || code === IMMEDIATE.RELATIVE8;
  const size = isByte ? 1 : code === IMMEDIATE.WORD && into.size[n] === 2 ? 2 : 4;
  into.immediate[n] = readInt(bytes, at, size);
  if (code !== IMMEDIATE.FULL || into.wide[n] === 0) return at + size;
  into.immediateHigh[n] = readInt(bytes, at + 4, 4);
  return at + 8;
}
