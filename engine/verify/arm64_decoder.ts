/**
 * Decoder of the verifier for arm64. In: words of one function. Out: columns with one entry per instruction. Invariant:
 * an accepted instruction is decoded in full; a word of no form of arm64_forms.ts is an entry of its own that must not
 * be reached.
 *
 * Register columns hold locations: x0-x15 have their numbers, x16-x30 follow behind the locations that every
 * architecture has. Number 31 is ZERO or STACK, by the form. The result of an extension of rm is in EXTENDED, which
 * arm64_rules.ts fills before the instruction reads it. Condition codes are those of x64, and an immediate of a branch
 * is the distance from the next instruction.
 *
 * A loop that stores zeros to consecutive words (FILL_WORDS) is one instruction, so that control cannot come into its
 * middle.
 */
import { ARM64_FORMS, SHAPE } from "./arm64_forms.ts";
import { PLACE } from "./facts.ts";
import { ALU, BASE_RIP, type Instructions, KIND, NO_REGISTER, OPERANDS } from "./instructions.ts";

const HIGH_REGISTERS = PLACE.MORE - 16;
/** The register of zeros, whose writes are lost, and the stack pointer. */
export const ZERO: number = HIGH_REGISTERS + 31;
export const STACK: number = ZERO + 1;
/** The scratch register v31, through which code moves words of the frame. */
export const VECTOR_SCRATCH: number = ZERO + 2;
/** The extended register of an operand; a result before it is written; the shifted register of an operand. */
export const EXTENDED: number = ZERO + 3;
export const WORK: number = ZERO + 4;
export const OTHER: number = ZERO + 5;
export const FIRST_SLOT: number = ZERO + 6;

/** Location of general register `r`, which is not 31. */
export function registerLocation(r: number): number {
  return r < 16 ? r : HIGH_REGISTERS + r;
}

const ORDINARY = Uint8Array.from({ length: 32 }, (_, r) => r === 31 ? ZERO : registerLocation(r));
const WITH_STACK = Uint8Array.from({ length: 32 }, (_, r) => r === 31 ? STACK : registerLocation(r));

/** Condition codes of x64 by those of arm64; 14 and 15 always hold and have none. */
const CONDITIONS = Uint8Array.of(4, 5, 3, 2, 8, 9, 0, 1, 7, 6, 13, 12, 15, 14);

/** Values of column `extend`: kinds of shifts, or EXTEND + the option of an extension. */
const SHIFT_KIND = { LEFT: 0, RIGHT: 1, ARITHMETIC: 2, ROTATE: 3 } as const;
export const EXTEND = 4;

// Columns of forms.
const FORM_SHAPE: number[] = [];
const FORM_KIND: number[] = [];
const FORM_SUB: number[] = [];
const FORM_MASK: number[] = [];
const FORM_BITS: number[] = [];
/** Position of bit z, −1: none; of bit w. */
const FORM_WIDE: number[] = [];
const FORM_NARROW: number[] = [];
/** Forms by the uppermost 11 bits of a word. */
const INDEX_SHIFT = 21;
const FORMS_AT: number[][] = Array.from({ length: 2048 }, () => []);

function enterForm(text: string): void {
  const [shape, name, bits] = text.split(" ");
  const [kind, sub] = name.split(".");
  const form = FORM_SHAPE.length;
  FORM_SHAPE.push(SHAPE[shape as keyof typeof SHAPE]);
  FORM_KIND.push(KIND[kind as keyof typeof KIND]);
  FORM_SUB.push(Number(sub ?? 0));
  FORM_MASK.push(parseInt(bits.replace(/[01]/g, "1").replace(/[^1]/g, "0"), 2) | 0);
  FORM_BITS.push(parseInt(bits.replace(/[^1]/g, "0"), 2) | 0);
  // The uppermost bit is the width of instructions without a field for it.
  FORM_WIDE.push(bits.includes("z") ? 31 - bits.indexOf("z") : shape === "TO_GENERAL" ? 31 : -1);
  FORM_NARROW.push(bits.includes("w") ? 31 - bits.indexOf("w") : -1);
  for (let high = 0; high < FORMS_AT.length; high++) {
    if ((((high << INDEX_SHIFT) ^ FORM_BITS[form]) & FORM_MASK[form]) >>> INDEX_SHIFT === 0) FORMS_AT[high].push(form);
  }
}

for (const text of ARM64_FORMS) enterForm(text);

function readWord(bytes: Uint8Array, at: number): number {
  return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
}

/** The form of a word, −1: none. */
function formOf(word: number): number {
  for (const form of FORMS_AT[word >>> INDEX_SHIFT]) {
    if (((word ^ FORM_BITS[form]) & FORM_MASK[form]) === 0) return form;
  }
  return -1;
}

/**
 * str xzr, [x16]; add x16, x16, #8; subs x17, x17, #1; b.ne to the first: x17 words from x16 on become zero.
 */
const FILL_WORDS = [0xf900021f | 0, 0x91002210 | 0, 0xf1000631 | 0, 0x54ffffa1];

function isFill(bytes: Uint8Array, at: number, end: number): boolean {
  return at + FILL_WORDS.length * 4 <= end && FILL_WORDS.every((word, k) => readWord(bytes, at + k * 4) === word);
}

/** Decodes [start, end) of `bytes` into `into`. Words that are not an instruction are entries of KIND.DATA. */
export function decodeArm64(bytes: Uint8Array, start: number, end: number, into: Instructions): void {
  into.count = 0;
  for (let at = start; at < end;) {
    into.reserve();
    const n = into.count++;
    into.at[n] = at;
    clearEntry(into, n);
    if (at + 4 > end) {
      at = end;
    } else if (readWord(bytes, at) === FILL_WORDS[0] && isFill(bytes, at, end)) {
      into.kind[n] = KIND.FILL;
      into.size[n] = 8;
      into.writes[n] = (1 << 16) | (1 << 17);
      at += FILL_WORDS.length * 4;
    } else {
      decodeWord(readWord(bytes, at), into, n);
      at += 4;
    }
  }
  into.at[into.count] = end;
  into.clear();
}

function clearEntry(into: Instructions, n: number): void {
  into.kind[n] = KIND.DATA;
  into.operands[n] = OPERANDS.NONE;
  into.reg[n] = NO_REGISTER;
  into.rn[n] = NO_REGISTER;
  into.rm[n] = NO_REGISTER;
  into.base[n] = NO_REGISTER;
  into.index[n] = NO_REGISTER;
  into.sub[n] = 0;
  into.scale[n] = 0;
  into.extend[n] = 0;
  into.setsFlags[n] = 0;
  into.displacement[n] = 0;
  into.hasImmediate[n] = 0;
  into.immediate[n] = 0;
  into.immediateHigh[n] = 0;
  into.locked[n] = 0;
  into.writes[n] = 0;
}

/** `bits` bits of `word` from `low` on, as a signed number. */
function signedField(word: number, low: number, bits: number): number {
  return word << (32 - low - bits) >> (32 - bits);
}

function decodeWord(word: number, into: Instructions, n: number): void {
  const form = formOf(word);
  if (form < 0) return;
  const isWide = FORM_NARROW[form] >= 0
    ? (word >>> FORM_NARROW[form] & 1) === 0
    : FORM_WIDE[form] < 0 || (word >>> FORM_WIDE[form] & 1) === 1;
  into.kind[n] = FORM_KIND[form];
  into.sub[n] = FORM_SUB[form];
  into.wide[n] = isWide ? 1 : 0;
  into.size[n] = isWide ? 8 : 4;
  if (!DECODERS[FORM_SHAPE[form]](word, into, n)) into.kind[n] = KIND.DATA;
}

/** Fills the columns of entry `n`; returns whether the word is an instruction. */
type Decode = (word: number, into: Instructions, n: number) => boolean;

/** The general register in field d is written; `locations`: the meaning of number 31. */
function writesD(word: number, into: Instructions, n: number, locations: Uint8Array = ORDINARY): void {
  const d = word & 31;
  into.reg[n] = locations[d];
  if (d !== 31) into.writes[n] |= 1 << d;
}

function fieldN(word: number): number {
  return word >>> 5 & 31;
}

function fieldM(word: number): number {
  return word >>> 16 & 31;
}

function decodeShifted(word: number, into: Instructions, n: number): boolean {
  const amount = word >>> 10 & 63, kind = word >>> 22 & 3, isLogic = (word >>> 24 & 1) === 0;
  if (amount >= into.size[n] * 8 || (kind === SHIFT_KIND.ROTATE && !isLogic)) return false;
  writesD(word, into, n);
  into.rn[n] = ORDINARY[fieldN(word)];
  into.rm[n] = ORDINARY[fieldM(word)];
  into.extend[n] = kind;
  into.scale[n] = amount;
  const isInverted = isLogic && (word >>> 21 & 1) === 1;
  if (isInverted) return invert(into, n);
  if (isLogic) return moveOrTest(into, n);
  into.setsFlags[n] = word >>> 29 & 1;
  compareIfLost(into, n);
  // A sum with a shifted register is an address.
  const isSum = into.kind[n] === KIND.ALU && into.sub[n] === ALU.ADD && into.setsFlags[n] === 0;
  if (isSum && kind === SHIFT_KIND.LEFT && amount > 0 && amount <= 6) {
    into.kind[n] = KIND.LEA;
    into.base[n] = into.rn[n];
    into.index[n] = into.rm[n];
  }
  return true;
}

/** BIC, ORN (also MVN) and EON. */
function invert(into: Instructions, n: number): boolean {
  if (into.sub[n] === ALU.AND) into.sub[n] = ALU.AND_NOT;
  else into.kind[n] = KIND.COMPUTE;
  return true;
}

/** ORR of the zero register is a move; ANDS without a result a test. */
function moveOrTest(into: Instructions, n: number): boolean {
  const isPlain = into.scale[n] === 0;
  if (into.kind[n] === KIND.TEST) {
    into.setsFlags[n] = 1;
    if (into.reg[n] === ZERO) return true;
    into.kind[n] = KIND.ALU;
    into.sub[n] = ALU.AND;
  } else if (into.sub[n] === ALU.OR && into.rn[n] === ZERO && isPlain) {
    into.kind[n] = KIND.MOVE;
    into.operands[n] = OPERANDS.R_M;
  }
  return true;
}

/** SUBS without a result is a compare. */
function compareIfLost(into: Instructions, n: number): void {
  if (into.sub[n] === ALU.SUB && into.setsFlags[n] !== 0 && into.reg[n] === ZERO) into.kind[n] = KIND.COMPARE;
}

function decodeExtended(word: number, into: Instructions, n: number): boolean {
  const option = word >>> 13 & 7, amount = word >>> 10 & 7;
  if (amount > 4) return false;
  const setsFlags = word >>> 29 & 1;
  writesD(word, into, n, setsFlags !== 0 ? ORDINARY : WITH_STACK);
  into.setsFlags[n] = setsFlags;
  into.rn[n] = WITH_STACK[fieldN(word)];
  into.rm[n] = ORDINARY[fieldM(word)];
  into.extend[n] = EXTEND + option;
  into.scale[n] = amount;
  compareIfLost(into, n);
  if (into.sub[n] === ALU.ADD) {
    into.kind[n] = KIND.LEA;
    into.base[n] = into.rn[n];
    into.index[n] = EXTENDED;
  }
  return true;
}

function decodeArithmetic(word: number, into: Instructions, n: number): boolean {
  const amount = (word >>> 10 & 0xfff) << ((word >>> 22 & 1) * 12);
  const setsFlags = word >>> 29 & 1;
  writesD(word, into, n, setsFlags !== 0 ? ORDINARY : WITH_STACK);
  into.setsFlags[n] = setsFlags;
  into.rn[n] = WITH_STACK[fieldN(word)];
  into.hasImmediate[n] = 1;
  into.immediate[n] = amount;
  compareIfLost(into, n);
  if (setsFlags === 0) {
    into.kind[n] = KIND.LEA;
    into.base[n] = into.rn[n];
    into.displacement[n] = into.sub[n] === ALU.ADD ? amount : -amount;
  }
  return true;
}

/** The 64 bits of a logical immediate (DecodeBitMasks), in halves; false if it is reserved. */
function decodeBits(field: number, isWide: boolean, into: Instructions, n: number): boolean {
  const rotation = field >>> 6 & 63, run = field & 63;
  const length = 31 - Math.clz32((field >>> 12 << 6) | (~run & 63));
  if (length < 1 || (length === 6 && !isWide)) return false;
  const size = 1 << length, ones = (run & (size - 1)) + 1;
  if (ones === size) return false;
  let low = 0, high = 0;
  for (let bit = 0; bit < 64; bit++) {
    if ((bit + rotation & (size - 1)) >= ones) continue;
    if (bit < 32) low |= 1 << bit;
    else high |= 1 << (bit - 32);
  }
  into.hasImmediate[n] = 1;
  into.immediate[n] = low;
  into.immediateHigh[n] = isWide ? high : 0;
  return true;
}

function decodeLogical(word: number, into: Instructions, n: number): boolean {
  if (!decodeBits(word >>> 10 & 0x1fff, into.wide[n] !== 0, into, n)) return false;
  const isTest = into.kind[n] === KIND.TEST;
  // Compiled code writes the stack pointer by sums and differences only.
  if (!isTest && (word & 31) === 31) return false;
  writesD(word, into, n);
  into.rn[n] = ORDINARY[fieldN(word)];
  if (isTest) return moveOrTest(into, n);
  if (into.sub[n] === ALU.OR && into.rn[n] === ZERO) into.kind[n] = KIND.CONSTANT;
  return true;
}

function decodeWideMove(word: number, into: Instructions, n: number): boolean {
  const place = word >>> 21 & 3, bits = word >>> 5 & 0xffff;
  if (place > 1 && into.wide[n] === 0) return false;
  writesD(word, into, n);
  into.hasImmediate[n] = 1;
  const shifted = bits << ((place & 1) * 16);
  const low = place < 2 ? shifted : 0, high = place < 2 ? 0 : shifted;
  const isInverted = into.kind[n] === KIND.NOT;
  if (isInverted) into.kind[n] = KIND.CONSTANT;
  into.scale[n] = place;
  into.immediate[n] = isInverted ? ~low : low;
  into.immediateHigh[n] = into.wide[n] === 0 ? 0 : isInverted ? ~high : high;
  return true;
}

function decodeBitField(word: number, into: Instructions, n: number): boolean {
  const first = word >>> 16 & 63, last = word >>> 10 & 63;
  const isWide = into.wide[n] !== 0;
  if ((word >>> 22 & 1) !== into.wide[n] || (!isWide && (first > 31 || last > 31))) return false;
  writesD(word, into, n);
  into.rn[n] = ORDINARY[fieldN(word)];
  into.immediate[n] = first;
  into.displacement[n] = last;
  return true;
}

function decodeCompute(word: number, into: Instructions, n: number): boolean {
  writesD(word, into, n);
  into.rn[n] = ORDINARY[fieldN(word)];
  into.rm[n] = ORDINARY[fieldM(word)];
  return true;
}

function decodeMultiply(word: number, into: Instructions, n: number): boolean {
  decodeCompute(word, into, n);
  into.base[n] = ORDINARY[word >>> 10 & 31];
  return true;
}

function decodeSelect(word: number, into: Instructions, n: number): boolean {
  decodeCompute(word, into, n);
  const condition = word >>> 12 & 15;
  if (condition > 13) return false;
  into.condition[n] = CONDITIONS[condition];
  if (into.kind[n] !== KIND.SET_CONDITION) return true;
  // CSINC of the zero register is CSET of the opposite condition.
  if (into.rn[n] === ZERO && into.rm[n] === ZERO) into.condition[n] ^= 1;
  else into.kind[n] = KIND.COMPUTE;
  return true;
}

/** CCMP and CCMN: `displacement` has the flags if the condition does not hold. */
function decodeChain(word: number, into: Instructions, n: number): boolean {
  const condition = word >>> 12 & 15;
  if (condition > 13) return false;
  into.condition[n] = CONDITIONS[condition];
  into.rn[n] = ORDINARY[fieldN(word)];
  into.displacement[n] = word & 15;
  if (into.sub[n] === 0) into.rm[n] = ORDINARY[fieldM(word)];
  else {
    into.hasImmediate[n] = 1;
    into.immediate[n] = fieldM(word);
  }
  return true;
}

function decodeBranch(word: number, into: Instructions, n: number): boolean {
  into.immediate[n] = signedField(word, 0, 26) * 4 - 4;
  return true;
}

function decodeConditional(word: number, into: Instructions, n: number): boolean {
  if ((word & 15) > 13) return false;
  into.condition[n] = CONDITIONS[word & 15];
  into.immediate[n] = signedField(word, 5, 19) * 4 - 4;
  return true;
}

/** Condition codes of x64: equal, and not. */
const EQUAL = 4, DIFFERENT = 5;

function decodeZeroBranch(word: number, into: Instructions, n: number): boolean {
  into.condition[n] = (word >>> 24 & 1) === 0 ? EQUAL : DIFFERENT;
  into.rn[n] = ORDINARY[word & 31];
  into.immediate[n] = signedField(word, 5, 19) * 4 - 4;
  return true;
}

function decodeBitBranch(word: number, into: Instructions, n: number): boolean {
  into.condition[n] = (word >>> 24 & 1) === 0 ? EQUAL : DIFFERENT;
  into.rn[n] = ORDINARY[word & 31];
  into.scale[n] = (word >>> 19 & 31) | (word >>> 31 << 5);
  into.immediate[n] = signedField(word, 5, 14) * 4 - 4;
  return true;
}

function decodeRegister(word: number, into: Instructions, n: number): boolean {
  into.rm[n] = ORDINARY[fieldN(word)];
  return fieldN(word) !== 31;
}

function decodeAddress(word: number, into: Instructions, n: number): boolean {
  writesD(word, into, n);
  into.base[n] = BASE_RIP;
  into.displacement[n] = ((signedField(word, 5, 19) << 2) | (word >>> 29 & 3)) - 4;
  return true;
}

/** The register of an access: a general one that is loaded or stored, or a vector register. */
function accessed(word: number, into: Instructions, n: number): void {
  const kind = into.kind[n];
  if (kind === KIND.VECTOR || kind === KIND.VECTOR_STORE) {
    into.reg[n] = word & 31;
    return;
  }
  const isStore = kind === KIND.MOVE && into.sub[n] === 0;
  into.operands[n] = isStore ? OPERANDS.M_R : OPERANDS.R_M;
  if (isStore) into.reg[n] = ORDINARY[word & 31];
  else writesD(word, into, n);
}

/** Bytes of an access by its size bits; 16 for vector registers of 128 bits. */
function accessSize(word: number): number {
  const isVector = (word >>> 26 & 1) === 1;
  return isVector && (word >>> 23 & 1) === 1 ? 16 : 1 << (word >>> 30);
}

function decodeScaled(word: number, into: Instructions, n: number): boolean {
  into.size[n] = accessSize(word);
  accessed(word, into, n);
  into.base[n] = WITH_STACK[fieldN(word)];
  into.displacement[n] = (word >>> 10 & 0xfff) * into.size[n];
  return true;
}

function decodeUnscaled(word: number, into: Instructions, n: number): boolean {
  decodeScaled(word, into, n);
  into.displacement[n] = signedField(word, 12, 9);
  return true;
}

function decodeIndexed(word: number, into: Instructions, n: number): boolean {
  decodeScaled(word, into, n);
  const option = word >>> 13 & 7;
  into.displacement[n] = 0;
  into.index[n] = EXTENDED;
  into.rm[n] = ORDINARY[fieldM(word)];
  into.extend[n] = EXTEND + option;
  into.scale[n] = (word >>> 12 & 1) * Math.log2(into.size[n]);
  // Signed extensions exist, too; the rules know nothing about their result.
  return (option & 2) !== 0;
}

/**
 * Accesses without a displacement: atomic ones, and those that order others. `reg`: the loaded or stored value, or the
 * status of an exclusive store; `rn`: the source of an exchange or exclusive store.
 */
function decodeAt(word: number, into: Instructions, n: number): boolean {
  into.size[n] = 1 << (word >>> 30);
  into.base[n] = WITH_STACK[fieldN(word)];
  const d = word & 31, m = fieldM(word);
  switch (into.kind[n]) {
    case KIND.MOVE:
      accessed(word, into, n);
      return true;
    case KIND.COMPARE_EXCHANGE:
      into.reg[n] = ORDINARY[m];
      if (m !== 31) into.writes[n] = 1 << m;
      return true;
    case KIND.STORE_EXCLUSIVE:
      into.rn[n] = ORDINARY[d];
      into.reg[n] = ORDINARY[m];
      if (m !== 31) into.writes[n] = 1 << m;
      return m === 31 || (m !== d && m !== fieldN(word));
  }
  into.rn[n] = ORDINARY[m];
  writesD(word, into, n);
  return true;
}

function decodePair(word: number, into: Instructions, n: number): boolean {
  const isVector = (word >>> 26 & 1) === 1, second = word >>> 10 & 31;
  into.size[n] = isVector ? 4 << (word >>> 30) : word >>> 31 === 1 ? 8 : 4;
  into.base[n] = WITH_STACK[fieldN(word)];
  into.displacement[n] = signedField(word, 15, 7) * into.size[n];
  into.reg[n] = isVector ? word & 31 : ORDINARY[word & 31];
  into.rn[n] = isVector ? second : ORDINARY[second];
  const isLoad = (word >>> 22 & 1) === 1;
  if (isVector) into.sub[n] = 1;
  else if (isLoad) {
    if ((word & 31) !== 31) into.writes[n] |= 1 << (word & 31);
    if (second !== 31) into.writes[n] |= 1 << second;
  }
  // A load of one register twice has no defined result.
  return !isLoad || (word & 31) !== second || (!isVector && second === 31);
}

/** A pair at the stack pointer, which moves by `displacement`: before a store, after a load. */
function decodeStackPair(word: number, into: Instructions, n: number): boolean {
  decodePair(word, into, n);
  const isPush = into.kind[n] === KIND.PUSH;
  return into.size[n] === 8 && isPush === into.displacement[n] < 0 && into.displacement[n] !== 0;
}

function decodeLiteral(word: number, into: Instructions, n: number): boolean {
  into.size[n] = 4 << (word >>> 30);
  into.reg[n] = word & 31;
  into.base[n] = BASE_RIP;
  into.displacement[n] = signedField(word, 5, 19) * 4 - 4;
  return true;
}

function decodeVector(word: number, into: Instructions, n: number): boolean {
  into.reg[n] = word & 31;
  into.size[n] = 0;
  return true;
}

function decodeToGeneral(word: number, into: Instructions, n: number): boolean {
  writesD(word, into, n);
  return true;
}

function decodeFromGeneral(word: number, into: Instructions, n: number): boolean {
  into.reg[n] = word & 31;
  into.rn[n] = ORDINARY[fieldN(word)];
  into.size[n] = (word >>> 31) === 1 ? 8 : 4;
  return true;
}

function decodePlain(): boolean {
  return true;
}

const DECODERS: readonly Decode[] = [
  decodePlain,
  decodeShifted,
  decodeExtended,
  decodeArithmetic,
  decodeLogical,
  decodeWideMove,
  decodeBitField,
  decodeCompute,
  decodeMultiply,
  decodeSelect,
  decodeChain,
  decodeBranch,
  decodeConditional,
  decodeZeroBranch,
  decodeBitBranch,
  decodeRegister,
  decodeAddress,
  decodePlain,
  decodeScaled,
  decodeUnscaled,
  decodeIndexed,
  decodeAt,
  decodePair,
  decodeStackPair,
  decodeLiteral,
  decodeVector,
  decodeToGeneral,
  decodeFromGeneral,
];
