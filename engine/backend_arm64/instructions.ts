/**
 * The instruction rows of arm64 as columns by row number: fixed bits, and where the fields are. Rows are written in
 * insts_*.ts, 32 bits read left to right; this file expands widths (z), precisions (y), lane sizes and access forms,
 * and checks every row once.
 *
 * Register fields always have the same places: d at bit 0, n at 5, a at 10, m at 16.
 */
import { ATOMIC_ROWS } from "./insts_atomic.ts";
import { FLOAT_ROWS } from "./insts_float.ts";
import { INTEGER_ROWS } from "./insts_integer.ts";
import { ACCESS_ROWS, MEMORY_ROWS } from "./insts_memory.ts";
import { SIZED_ROWS, VECTOR_ROWS } from "./insts_vector.ts";

type Precision<Key extends string, Bits extends string> = Bits extends `${string}y${string}` ? `${Key}_S` | `${Key}_D`
  : Key;
type Expanded<Row> = Row extends `${infer Key}|${string}|z${infer Bits}` ? Precision<`${Key}32` | `${Key}64`, Bits>
  : Row extends `${infer Key}|${string}|${infer Bits}` ? Precision<Key, Bits>
  : never;
type Letters<Sizes> = Sizes extends `${infer Letter}${infer Rest}` ? Letter | Letters<Rest> : never;
type LaneKey<Row> = Row extends `${infer Key}|${string}|${string}|${infer Sizes}`
  ? `${Key}_${{ B: "16B"; H: "8H"; S: "4S"; D: "2D" }[Letters<Sizes> & ("B" | "H" | "S" | "D")]}`
  : never;
type AtomicKey<Row> = Row extends `${infer Key}|${string}|${string}|${infer Sizes}` ? `${Key}_${Letters<Sizes>}`
  : never;
type AccessKey<Row> = Row extends `${infer Key}|${string}` ? `${Key}_U` | `${Key}_N` | `${Key}_X` : never;

/** Key of an instruction row. */
type InstructionKey =
  | Expanded<(typeof INTEGER_ROWS)[number]>
  | Expanded<(typeof FLOAT_ROWS)[number]>
  | Expanded<(typeof MEMORY_ROWS)[number]>
  | Expanded<(typeof VECTOR_ROWS)[number]>
  | LaneKey<(typeof SIZED_ROWS)[number]>
  | AtomicKey<(typeof ATOMIC_ROWS)[number]>
  | AccessKey<(typeof ACCESS_ROWS)[number]>;

export interface InstructionRow {
  readonly key: InstructionKey;
  /** Mnemonic and operands, as insts_integer.ts describes. */
  readonly text: string;
  /** 32 characters, bit 31 first. */
  readonly bits: string;
  /** log2 of the bytes of an access or of a lane. */
  readonly scale: number;
}

function row(key: string, text: string, bits: string, scale = 0): InstructionRow {
  if (bits.length !== 32) throw new Error(`Instruction row ${key}: ${bits.length} bits`);
  return { key: key as InstructionKey, text, bits, scale };
}

function expandPrecision(key: string, text: string, bits: string): InstructionRow[] {
  if (!bits.includes("y")) return [row(key, text, bits)];
  return [0, 1].map((y) =>
    row(
      key + (y === 0 ? "_S" : "_D"),
      text.replace(/\bf(?=[dnma]\b)/g, y === 0 ? "s" : "d"),
      bits.replaceAll("y", `${y}`),
    )
  );
}

export function expandRow(line: string): InstructionRow[] {
  const [key, text, bits] = line.split("|");
  if (!bits.includes("z")) return expandPrecision(key, text, bits);
  return [0, 1].flatMap((z) => {
    const named = text.replace(/\br(?=[dnma]\b)/g, z === 0 ? "w" : "x").replace(/\bR(?=[dn]\b)/g, z === 0 ? "W" : "X");
    return expandPrecision(key + (z === 0 ? "32" : "64"), named, bits.replaceAll("z", `${z}`));
  });
}

/** By size: arrangement, its lower half, that of lanes twice as wide. */
const ARRANGEMENTS = [["16b", "8b", "8h"], ["8h", "4h", "4s"], ["4s", "2s", "2d"], ["2d", "1d", "1q"]];

function expandSizes(line: string): InstructionRow[] {
  const [key, text, bits, sizes] = line.split("|");
  return [...sizes].map((letter) => {
    const size = "BHSD".indexOf(letter);
    const [whole, half, wide] = ARRANGEMENTS[size];
    const lane = letter.toLowerCase();
    const named = text.replace(/\.T\b/g, `.${whole}`).replace(/\.L\b/g, `.${half}`).replace(/\.W\b/g, `.${wide}`)
      .replace(/\.E\[/g, `.${lane}[`).replace(/\bE(?=[dn]\b)/g, lane).replace(/\br(?=[dn]\b)/g, size === 3 ? "x" : "w");
    const filled = bits.replace("ZZ", size.toString(2).padStart(2, "0")).replace("y", `${size & 1}`)
      .replace("q", size === 3 ? "1" : "0")
      .replace("hhhhhhh", "1".padStart(4 - size, "0").padEnd(7, "i"))
      .replace("lllll", "1".padEnd(size + 1, "0").padStart(5, "i"))
      .replace("jjjjj", "1".padEnd(size + 1, "0").padStart(5, "0"))
      .replace("eeee", "".padEnd(size, "0").padStart(4, "s"));
    return row(`${key}_${whole.toUpperCase()}`, named, filled, size);
  });
}

function expandAtomic(line: string): InstructionRow[] {
  const [key, text, bits, sizes] = line.split("|");
  return [...sizes].map((letter) => {
    const size = "BHWX".indexOf(letter);
    const named = text.replace("~", ["b", "h", "", ""][size]).replace(/\br(?=[dm]\b)/g, size === 3 ? "x" : "w");
    return row(`${key}_${letter}`, named, bits.replace("ZZ", size.toString(2).padStart(2, "0")), size);
  });
}

function expandAccess(line: string): InstructionRow[] {
  const [key, text, bits, scale] = line.split("|");
  const [size, opc, vector] = bits.split(" ");
  const unscaled = text.replace("ldr", "ldur").replace("str", "stur");
  return [
    row(
      `${key}_U`,
      `${text}, [Xn, #i*${1 << Number(scale)}]`,
      `${size}111${vector}01${opc}iiiiiiiiiiiinnnnnddddd`,
      Number(scale),
    ),
    row(`${key}_N`, `${unscaled}, [Xn, #~i]`, `${size}111${vector}00${opc}0iiiiiiiii00nnnnnddddd`, Number(scale)),
    row(`${key}_X`, `${text}, [Xn, #X]`, `${size}111${vector}00${opc}1mmmmmsssk10nnnnnddddd`, Number(scale)),
  ];
}

/** Rows by number. */
export const INSTRUCTION_ROWS: readonly InstructionRow[] = [
  ...INTEGER_ROWS.flatMap(expandRow),
  ...FLOAT_ROWS.flatMap(expandRow),
  ...MEMORY_ROWS.flatMap(expandRow),
  ...ACCESS_ROWS.flatMap(expandAccess),
  ...VECTOR_ROWS.flatMap(expandRow),
  ...SIZED_ROWS.flatMap(expandSizes),
  ...ATOMIC_ROWS.flatMap(expandAtomic),
];

/** Row numbers by key: `X.ADD32`. */
export const X: Readonly<Record<InstructionKey, number>> = Object.freeze(
  Object.fromEntries(INSTRUCTION_ROWS.map(({ key }, index) => [key, index])) as Record<InstructionKey, number>,
);

const COUNT = INSTRUCTION_ROWS.length;
/** Fixed bits, and which bits they are. */
export const ROW_BITS = new Int32Array(COUNT);
export const ROW_MASK = new Int32Array(COUNT);
/** Position of the fields i, s, c, k and the width of i; 0 when absent. */
export const ROW_I = new Uint8Array(COUNT);
export const ROW_I_WIDTH = new Uint8Array(COUNT);
export const ROW_S = new Uint8Array(COUNT);
export const ROW_C = new Uint8Array(COUNT);
export const ROW_K = new Uint8Array(COUNT);
/** log2 of the size of an access or of a lane. */
export const ROW_SCALE = new Uint8Array(COUNT);
/** Register fields in the order of the text, four bits each, + 1: d 1, n 2, m 3, a 4. */
export const ROW_REGISTERS = new Uint16Array(COUNT);

const REGISTER_PLACES: Readonly<Record<string, number>> = { d: 0, n: 5, m: 16, a: 10 };

INSTRUCTION_ROWS.forEach(({ key, text, bits, scale }, n) => {
  let fixed = 0;
  let mask = 0;
  for (let at = 0; at < 32; at++) {
    const letter = bits[31 - at];
    if (letter === "0" || letter === "1") {
      mask |= 1 << at;
      if (letter === "1") fixed |= 1 << at;
    } else if (at === 0 || bits[32 - at] !== letter) {
      if (letter === "i") ROW_I[n] = at;
      else if (letter === "s") ROW_S[n] = at;
      else if (letter === "c") ROW_C[n] = at;
      else if (letter === "k") ROW_K[n] = at;
      else if (letter !== "j" && REGISTER_PLACES[letter] !== at) {
        throw new Error(`Instruction row ${key}: field ${letter}`);
      }
    }
    if (letter === "i") ROW_I_WIDTH[n]++;
  }
  ROW_BITS[n] = fixed;
  ROW_MASK[n] = mask;
  ROW_SCALE[n] = scale;
  let shift = 0;
  // An extended operand (#E) is register m.
  for (const found of text.matchAll(/\b[wxshdqbvWX]([dnma])\b|#E/g)) {
    ROW_REGISTERS[n] |= ("dnma".indexOf(found[1] ?? "m") + 1) << shift;
    shift += 4;
  }
  // Every register of the word is in the text, except an index (#X) and the register of a tested bit (#T), which have
  // emission of their own.
  const fields = new Set(bits.replaceAll(/[^dnma]/g, "")).size;
  if (!/#[XT]/.test(text) && fields !== shift / 4) throw new Error(`Instruction row ${key}: registers without text`);
});
