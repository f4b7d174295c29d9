/**
 * Instructions of arm64, encoded from the rows of engine/backend_arm64/. In: a mnemonic and operands, as
 * `ldp x0, x1, [x19, #40]`. Out: the word of the row whose text has this form. A label stands for the target of a
 * branch, an ADR or a literal load. Aliases are those of the manual that stub programs use.
 */
import { expandRow, INSTRUCTION_ROWS, type InstructionRow } from "../../../engine/backend_arm64/instructions.ts";
import { UNSELECTED_ROWS } from "../../../engine/backend_arm64/insts_unselected.ts";
import { CC_NAMES } from "../../../engine/backend_arm64/machine_ops.ts";
import { logicalImmediate } from "../../../engine/backend_arm64/immediates.ts";
import { type Assembled, assembleProgram, type InstructionEncoder } from "./program.ts";

/** Values of the fields of a word, by the letters of its row. */
type Fields = Record<string, number>;

/** Reads the text of an operand into fields; returns false if it cannot be this operand. */
type OperandReader = (texts: readonly (string | undefined)[], fields: Fields, distance: (label: string) => number) =>
  | boolean
  | void;

interface Form {
  readonly row: InstructionRow;
  readonly pattern: RegExp;
  /** The readers, with the number of groups of the pattern that each takes. */
  readonly readers: readonly (readonly [number, OperandReader])[];
}

const ZERO = 31;
const NUMBER = "(-?\\w+)";

/** A register of `kind` in field `letter`: capital kinds have the stack pointer as number 31, others zero. */
function readRegister(kind: string, letter: string): OperandReader {
  const bank = kind.toLowerCase();
  const last = kind === "X" ? "sp" : kind === "W" ? "wsp" : `${bank}zr`;
  return ([name = ""], fields) => {
    fields[letter] = name === last ? ZERO : Number(name.slice(1));
    return name === last || (name[0] === bank && /^\w\d+$/.test(name));
  };
}

/** Operands of a row's text: the pattern that they match, the number of its groups, and their reader. */
function operandOf(token: string, isLabel: boolean): [string, number, OperandReader] | undefined {
  const register = /^([wxsdqWX])([dnma])$/.exec(token);
  if (register !== null) return ["(\\w+)", 1, readRegister(register[1], register[2])];
  const scaled = /^#(~?)i\*(\d+)$/.exec(token);
  if (scaled !== null || token === "#~i" || token === "#i") {
    const factor = Number(scaled?.[2] ?? 1);
    const read: OperandReader = ([text = "0"], fields, distance) => {
      fields["i"] = (isLabel ? distance(text) : Number(text)) / factor;
    };
    return [isLabel ? "(\\w+)" : `#${NUMBER}`, 1, read];
  }
  switch (token) {
    case "#~J":
      return ["(#0|\\w+)", 1, ([target = ""], fields, distance) => {
        const bytes = target === "#0" ? 0 : distance(target);
        fields["i"] = bytes >> 2;
        fields["j"] = bytes & 3;
      }];
    case "#S":
      return ["", 0, () => {}];
    case "#s":
      return [`#${NUMBER}`, 1, ([text], fields) => void (fields["s"] = Number(text))];
    case "#A":
      return [`#${NUMBER}(, lsl #12)?`, 2, ([text, shift], fields) => {
        fields["i"] = Number(text);
        fields["s"] = shift === undefined ? 0 : 1;
      }];
    case "#H":
      return [`#${NUMBER}(?:, lsl #(\\d+))?`, 2, ([text, shift = "0"], fields) => {
        fields["i"] = Number(text);
        fields["s"] = Number(shift) / 16;
      }];
    case "#L":
      return [`#${NUMBER}`, 1, ([text = ""], fields) => {
        const value = text.startsWith("-") ? -BigInt(text.slice(1)) : BigInt(text);
        fields["i"] = logicalImmediate(Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
        return fields["i"] >= 0;
      }];
    case "#T":
      return ["[wx](\\d+), #(\\d+)", 2, ([name, bit], fields) => {
        fields["d"] = Number(name);
        fields["s"] = Number(bit) & 31;
        fields["k"] = Number(bit) >> 5;
      }];
    case "c":
      return ["(\\w\\w)", 1, ([name], fields) => {
        fields["c"] = CC_NAMES.findIndex((each) => each === name);
        return fields["c"] >= 0;
      }];
  }
  return undefined;
}

const TOKENS = /\b[wxsdqWX][dnma]\b|#~?i\*\d+|#(?:~[iJ]|[A-Zsi])(?!\w)|\bc$|(?<=\.)c\b/g;

/** The form of a row; undefined for operands that stub programs do not use. */
function formOf(row: InstructionRow): Form | undefined {
  const isLabel = !row.text.includes("[") && /\*4$/.test(row.text);
  const readers: [number, OperandReader][] = [];
  let pattern = "", at = 0;
  for (const found of row.text.matchAll(TOKENS)) {
    const operand = operandOf(found[0], isLabel);
    if (operand === undefined) return undefined;
    pattern += escaped(row.text.slice(at, found.index)) + operand[0];
    readers.push([operand[1], operand[2]]);
    at = found.index + found[0].length;
  }
  pattern += escaped(row.text.slice(at));
  // An offset of 0 may be absent.
  pattern = pattern.replace(`, #${NUMBER}\\]`, `(?:, #${NUMBER})?\\]`);
  return { row, pattern: new RegExp(`^${pattern}$`), readers };
}

function escaped(text: string): string {
  return text.replace(/[[!.*]|]/g, "\\$&");
}

/** Forms by mnemonic, in the order of the rows. */
const FORMS = new Map<string, Form[]>();
for (const row of [...INSTRUCTION_ROWS, ...UNSELECTED_ROWS.flatMap(expandRow)]) {
  const form = formOf(row);
  if (form === undefined) continue;
  const mnemonic = /^\w+/.exec(row.text)?.[0] ?? "";
  const forms = FORMS.get(mnemonic);
  if (forms === undefined) FORMS.set(mnemonic, [form]);
  else forms.push(form);
}

/** The word of a row with fields in the places of their letters. Throws a RangeError for a value that does not fit. */
function wordOf({ bits, text }: InstructionRow, fields: Fields): number {
  const used = new Map<string, number>();
  let word = 0;
  for (let at = 0; at < 32; at++) {
    const letter = bits[31 - at];
    const shift = used.get(letter) ?? 0;
    used.set(letter, shift + 1);
    const bit = letter === "0" || letter === "1" ? Number(letter) : (fields[letter] ?? 0) >> shift & 1;
    word |= bit << at;
  }
  for (const [letter, width] of used) {
    const value = fields[letter] ?? 0;
    if (letter === "0" || letter === "1" || value === value >> 0 && value >> width === 0) continue;
    if (letter === "i" && text.includes("~") && value === value << (32 - width) >> (32 - width)) continue;
    throw new RangeError(`${value} does not fit into ${width} bits`);
  }
  return word;
}

/** [alias, its meaning], in the order in which they are tried. */
const ALIASES: readonly (readonly [RegExp, string])[] = [
  [/^mov (\w*sp), (\w+)$|^mov (\w+), (sp)$/, "add $1$3, $2$4, #0"],
  [/^mov ([wx])(\w+), (\w+)$/, "orr $1$2, $1zr, $3"],
  [/^mov (x\w+), #0x7fffffffffffffff$/, "movn $1, #0x8000, lsl #48"],
  [/^mov (\w+), #-1$/, "movn $1, #0"],
  [/^mov (\w+), #(\w+)$/, "movz $1, #$2"],
  [/^cmp ([wx])(\w+), (.*)$/, "subs $1zr, $1$2, $3"],
  [/^cmn ([wx])(\w+), (.*)$/, "adds $1zr, $1$2, $3"],
  [/^neg ([wx])(\w+), (\w+)$/, "sub $1$2, $1zr, $3"],
  [/^sxtw x(\d+), w(\d+)$/, "sbfm x$1, x$2, #0, #31"],
  [/^ret$/, "ret x30"],
];

const encode: InstructionEncoder = (line, at, offsetOf) => {
  const alias = ALIASES.find(([pattern]) => pattern.test(line));
  const text = alias === undefined ? line : line.replace(alias[0], alias[1]);
  const distance = (label: string) => (offsetOf(label) ?? at) - at;
  for (const { row, pattern, readers } of FORMS.get(/^\w+/.exec(text)?.[0] ?? "") ?? []) {
    const groups = pattern.exec(text);
    if (groups === null) continue;
    const fields: Fields = {};
    let next = 1;
    const isForm = readers.every(([count, read]) => {
      const taken = groups.slice(next, next + count);
      next += count;
      return read(taken, fields, distance) !== false;
    });
    if (!isForm) continue;
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setInt32(0, wordOf(row, fields), true);
    return bytes;
  }
  throw new Error("no instruction row has this form");
};

/** Assembles a program for arm64. */
export function assembleArm64(text: string): Assembled {
  return assembleProgram(text, encode);
}
