/**
 * Disassembler, from the rows: the text that an assembler (llvm-mc, no aliases) gives for the same word. For dumps,
 * goldens and the replay of tests/encode/arm64.txt; not fast.
 */
import { type ListedLine, listingText } from "../codegen/code_listing.ts";
import { logicalValue } from "./immediates.ts";
import { INSTRUCTION_ROWS, ROW_BITS, ROW_C, ROW_I, ROW_I_WIDTH, ROW_K, ROW_MASK, ROW_S } from "./instructions.ts";
import { CC_NAMES } from "./machine_ops.ts";

/** The fields of a decoded instruction. */
interface Decoded {
  row: number;
  d: number;
  n: number;
  m: number;
  a: number;
  i: number;
  s: number;
  c: number;
  k: number;
}

function countBits(x: number): number {
  let n = 0;
  for (; x !== 0; x &= x - 1) n++;
  return n;
}

/** Rows, those with the most fixed bits first. */
const ORDER = INSTRUCTION_ROWS.map((_, row) => row).sort((a, b) => countBits(ROW_MASK[b]) - countBits(ROW_MASK[a]));

/** Whether field `letter` is in row `row`. */
function has(row: number, letter: string): boolean {
  return INSTRUCTION_ROWS[row].bits.includes(letter);
}

function width(row: number, letter: string): number {
  return INSTRUCTION_ROWS[row].bits.split(letter).length - 1;
}

/** Decodes a word; undefined if no row matches. */
export function decode(word: number): Decoded | undefined {
  const row = ORDER.find((r) => (word & ROW_MASK[r]) === ROW_BITS[r]);
  if (row === undefined) return undefined;
  const register = (letter: string, at: number) => has(row, letter) ? (word >>> at) & 31 : 0;
  const field = (letter: string, at: number) => has(row, letter) ? (word >>> at) & ((1 << width(row, letter)) - 1) : 0;
  return {
    row,
    d: register("d", 0),
    n: register("n", 5),
    m: register("m", 16),
    a: register("a", 10),
    i: has(row, "i") ? (word >>> ROW_I[row]) & (2 ** ROW_I_WIDTH[row] - 1) : 0,
    s: field("s", ROW_S[row]),
    c: field("c", ROW_C[row]),
    k: field("k", ROW_K[row]),
  };
}

function registerName(kind: string, number: number): string {
  if (kind === "W" || kind === "X") return number === 31 ? (kind === "W" ? "wsp" : "sp") : kind.toLowerCase() + number;
  if ((kind === "w" || kind === "x") && number === 31) return kind + "zr";
  return kind + number;
}

function signed(value: number, bits: number): number {
  return value << (32 - bits) >> (32 - bits);
}

const SHIFTS = ["lsl", "lsr", "asr", "ror"];
const EXTENSIONS = ["uxtb", "uxth", "uxtw", "uxtx", "sxtb", "sxth", "sxtw", "sxtx"];

function hexadecimal(low: number, high: number): string {
  const text = ((BigInt(high >>> 0) << 32n) | BigInt(low >>> 0)).toString(16);
  return `#0x${text}`;
}

function extension(f: Decoded): string {
  const name = registerName((f.s & 3) === 3 ? "x" : "w", f.m);
  const plain = f.s === 3 && INSTRUCTION_ROWS[f.row].key.endsWith("64") && (f.n === 31 || f.d === 31);
  if (plain) return f.i === 0 ? name : `${name}, lsl #${f.i}`;
  return `${name}, ${EXTENSIONS[f.s]}${f.i === 0 ? "" : ` #${f.i}`}`;
}

function indexText(f: Decoded): string {
  const name = registerName((f.s & 1) === 1 ? "x" : "w", f.m);
  const amount = INSTRUCTION_ROWS[f.row].scale;
  if (f.s === 3) return f.k === 0 ? name : `${name}, lsl #${amount}`;
  return `${name}, ${EXTENSIONS[f.s]}${f.k === 0 ? "" : ` #${amount}`}`;
}

/** The value of an 8-bit float immediate. */
function floatImmediate(field: number): number {
  const exponent = ((field >>> 4) & 7) ^ 4;
  return ((field & 0x80) !== 0 ? -1 : 1) * (16 + (field & 15)) / 16 * 2 ** (exponent - 3);
}

function immediateText(f: Decoded, kind: string, word: number): string {
  switch (kind) {
    case "S":
      return f.i === 0 && f.s === 0 ? "" : `, ${SHIFTS[f.s]} #${f.i}`;
    case "E":
      return extension(f);
    case "X":
      return indexText(f);
    case "A":
      return f.s === 0 ? `#${f.i}` : `#${f.i}, lsl #12`;
    case "L": {
      const { low, high } = logicalValue(f.i);
      return hexadecimal(low, INSTRUCTION_ROWS[f.row].key.endsWith("64") ? high : 0);
    }
    case "H":
      return f.s === 0 ? `#${f.i}` : `#${f.i}, lsl #${f.s * 16}`;
    case "T": {
      const bit = f.k * 32 + f.s;
      return `${registerName(bit > 31 ? "x" : "w", f.d)}, #${bit}`;
    }
    case "F":
      return `#${floatImmediate(f.i).toFixed(8)}`;
    case "R":
      return `#${(8 << INSTRUCTION_ROWS[f.row].scale) - f.i}`;
    case "V":
      return `#${(f.s << 5) | f.i}`;
    case "U": {
      const byte = (f.s << 5) | f.i;
      return `#0x${[7, 6, 5, 4, 3, 2, 1, 0].map((k) => (byte >> k) & 1 ? "ff" : "00").join("")}`;
    }
    case "~J":
      return `#${(signed(f.i, 19) * 4) | ((word >>> 29) & 3)}`;
    case "s":
      return `#${f.s}`;
    case "~i":
      return `#${signed(f.i, ROW_I_WIDTH[f.row])}`;
  }
  return `#${f.i}`;
}

/** The text of a word. */
export function instructionText(word: number): string {
  const f = decode(word);
  if (f === undefined) return `.word 0x${(word >>> 0).toString(16).padStart(8, "0")}`;
  let text = INSTRUCTION_ROWS[f.row].text;
  const registers: Readonly<Record<string, number>> = { d: f.d, n: f.n, m: f.m, a: f.a };
  text = text.replace("[i]", `[${f.i}]`).replace("[s]", `[${f.s}]`);
  text = text.replace(/\bc$|\.c\b/, (found) => found.replace("c", CC_NAMES[f.c]));
  text = text.replace(
    /\b([wxshdqbvWX])([dnma])\b|#(~?)i\*(\d+)|#(~[iJ]|[SELAHTFXRVUsi])(?![\w0-9])/g,
    (_, kind: string, letter: string, sign: string, factor: string, special: string) => {
      if (kind !== undefined) return registerName(kind, registers[letter]);
      if (factor !== undefined) {
        return `#${(sign === "~" ? signed(f.i, ROW_I_WIDTH[f.row]) : f.i) * Number(factor)}`;
      }
      return immediateText(f, special, word);
    },
  );
  return text.replace(/^ret x30$/, "ret").replace(/, #0\]/, "]");
}

function wordAt(bytes: Uint8Array, at: number): number {
  return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
}

/** Branches and addresses relative to the instruction: the last operand is the distance in bytes. */
const RELATIVE = /^(?:b|bl|b\.\w+|cbn?z|tbn?z|adr)\b.*#(-?\d+)$/;

/** The lines of bytes [start, end), one per instruction; branch targets as distances from the instruction. */
export function listCode(bytes: Uint8Array, start: number, end: number): ListedLine[] {
  const lines: ListedLine[] = [];
  for (let at = start; at + 4 <= end; at += 4) {
    const text = instructionText(wordAt(bytes, at));
    const distance = RELATIVE.exec(text)?.[1];
    lines.push({ at, text, ...(distance === undefined ? {} : { target: at + Number(distance) }) });
  }
  return lines;
}

/** The text of the lines. */
export function disassemble(bytes: Uint8Array, start: number, end: number): string {
  return listingText(listCode(bytes, start, end));
}
