/**
 * The verifier's decoder of arm64 against an external assembler: tests/encode/arm64.txt has lines "word | text" that
 * llvm-mc assembled. For every line with a form of functions, the registers, memory operand, width and immediate must
 * be those of the text.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { decodeArm64, EXTENDED, registerLocation, STACK, ZERO } from "../../engine/verify/arm64_decoder.ts";
import { ALU, BASE_RIP, BIT_FIELD, Instructions, KIND, NO_REGISTER } from "../../engine/verify/instructions.ts";

interface Line {
  word: number;
  text: string;
  mnemonic: string;
  operands: string[];
}

const LINES: Line[] = readFileSync(new URL("../encode/arm64.txt", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith(";"))
  .map((line) => {
    const [hex, text] = line.split(" | ");
    const [mnemonic, rest = ""] = text.split(/ (.*)/);
    return { word: parseInt(hex, 16), text, mnemonic, operands: rest.split(/, (?![^[]*\])/) };
  });

/** Instructions of stubs alone, which the verifier compares with those of this build instead of decoding them. */
const OF_STUBS = /^(svc|brk|dsb|isb|dc|ic|mrs)\b/;

function decodedWords(...words: number[]): Instructions {
  const bytes = new Uint8Array(Uint32Array.from(words).buffer);
  const into = new Instructions();
  into.begin(0, bytes.length);
  decodeArm64(bytes, 0, bytes.length, into);
  return into;
}

function decoded({ word, text }: Line): Instructions {
  const into = decodedWords(word);
  equal(into.count, 1, text);
  ok(into.kind[0] !== KIND.DATA, text);
  return into;
}

/**
 * Functions move no other base than the stack pointer in a pair, put no bits into the stack pointer, and have no
 * conditions that always hold.
 */
function isRefused({ text }: Line): boolean {
  if (/^(and|orr|eor) w?sp,|^b\.(al|nv)|, (al|nv)$/.test(text)) return true;
  return /^stp .*\]!$|^ldp .*\], #/.test(text) && !text.includes("[sp");
}

const FUNCTION_LINES = LINES.filter(({ text }) => !OF_STUBS.test(text));

/** The location of a register by its name; undefined for other texts. */
function locationOf(name: string): number | undefined {
  if (/^w?sp$/.test(name)) return STACK;
  if (/^[wx]zr$/.test(name)) return ZERO;
  const number = /^[wx](\d+)$/.exec(name)?.[1];
  return number === undefined ? undefined : registerLocation(Number(number));
}

Deno.test("the verifier's decoder of arm64 accepts the instructions of llvm-mc", () => {
  ok(FUNCTION_LINES.length > 2500);
  for (const line of FUNCTION_LINES) if (!isRefused(line)) decoded(line);
});

Deno.test("the verifier's decoder of arm64 finds the memory operands of llvm-mc", () => {
  let count = 0;
  for (const line of FUNCTION_LINES) {
    const memory = /\[([^\]]*)\]/.exec(line.text);
    if (isRefused(line) || /^(tbl|tbx|umov|smov|ins|dup)/.test(line.text)) continue;
    const d = decoded(line);
    if (memory === null || !/^(ld|st|swp|cas)/.test(line.mnemonic)) {
      ok(!/^(ld|st|swp|cas)/.test(line.mnemonic) || d.base[0] === BASE_RIP, line.text);
      continue;
    }
    count++;
    const [base, second, extension] = memory[1].split(/, /);
    equal(d.base[0], locationOf(base), line.text);
    const isIndexed = second !== undefined && !second.startsWith("#");
    equal(d.index[0], isIndexed ? EXTENDED : NO_REGISTER, line.text);
    if (isIndexed) {
      equal(d.rm[0], locationOf(second), line.text);
      const name = extension?.slice(0, 4) ?? "uxtx";
      equal(d.extend[0], EXTENSIONS.indexOf(name === "lsl " ? "uxtx" : name) + 4, line.text);
      equal(d.scale[0], Number(/#(\d+)/.exec(extension ?? "")?.[1] ?? 0), line.text);
    }
    const after = /\], #(-?\d+)$/.exec(line.text)?.[1];
    equal(d.displacement[0], isIndexed ? 0 : Number(after ?? second?.slice(1) ?? 0), line.text);
    equal(d.size[0], sizeOf(line), line.text);
  }
  ok(count > 500);
});

const EXTENSIONS = ["uxtb", "uxth", "uxtw", "uxtx", "sxtb", "sxth", "sxtw", "sxtx"];

/** Bytes of one register's access, by the mnemonic and the name of the register. */
function sizeOf({ mnemonic, operands }: Line): number {
  if (/sw$/.test(mnemonic)) return 4;
  if (/b$/.test(mnemonic)) return 1;
  if (/h$/.test(mnemonic)) return 2;
  const name = /^(stlxr)/.test(mnemonic) ? operands[1] : operands[0];
  return { b: 1, h: 2, w: 4, s: 4, x: 8, d: 8, q: 16 }[name[0]]!;
}

/** The operands that a general register is read from or written to, in the order of the text. */
Deno.test("the verifier's decoder of arm64 finds the registers of llvm-mc", () => {
  for (const line of FUNCTION_LINES) {
    if (isRefused(line) || line.text.includes("[")) continue;
    const d = decoded(line);
    const [first, second, third] = line.operands.map(locationOf);
    if (/^(fcvtz[su]|fmov|umov|smov)/.test(line.mnemonic) && first !== undefined) equal(d.reg[0], first, line.text);
    if (!INTEGER.test(line.mnemonic)) continue;
    const isCompare = /^(cmp|cmn|tst|ccmp|ccmn)$/.test(line.mnemonic) || /^(cbn?z|tbn?z)$/.test(line.mnemonic);
    const [result, x, y] = isCompare ? [undefined, first, second] : [first, second, third];
    if (result !== undefined) equal(d.reg[0], result, line.text);
    if (x !== undefined && d.rn[0] !== NO_REGISTER) ok([d.rn[0], d.rm[0]].includes(x), line.text);
    if (y !== undefined && d.rm[0] !== NO_REGISTER) ok([d.rn[0], d.rm[0]].includes(y), line.text);
    equal(d.writes[0], writesOf(result), line.text);
    equal(d.wide[0], /^w|^wsp/.test(line.operands[0]) ? 0 : 1, line.text);
  }
});

const INTEGER = new RegExp(
  "^(add|sub|adds|subs|adc|sbc|madd|msub|mul|mneg|smulh|umulh|udiv|sdiv|and|bic|orr|orn|eor|eon|ands|mov|movn|movz|" +
    "movk|mvn|neg|negs|sbfm|bfm|ubfm|extr|ror|lsl|lsr|asr|lslv|lsrv|asrv|rorv|rbit|clz|csel|csinc|cmp|cmn|tst|ccmp|" +
    "ccmn|sxt[bhw]|uxt[bh]|[su]bfiz|[su]bfx|bfi|bfxil|bfc|cset|cinc|cbn?z)$",
);

/** The mask of a register that is written. */
function writesOf(location: number | undefined): number {
  if (location === undefined || location === ZERO || location === STACK) return 0;
  for (let r = 0; r < 31; r++) if (registerLocation(r) === location) return 1 << r;
  return 0;
}

Deno.test("the verifier's decoder of arm64 finds the immediates of llvm-mc", () => {
  let count = 0;
  for (const line of FUNCTION_LINES) {
    const written = /#(-?(?:0x)?[0-9a-f]+)(?:, lsl #12)?$/.exec(line.text)?.[1];
    if (written === undefined || line.text.includes("[") || isRefused(line)) continue;
    const d = decoded(line);
    const value = BigInt.asUintN(64, written.startsWith("-") ? -BigInt(written.slice(1)) : BigInt(written));
    const own = (BigInt(d.immediateHigh[0]) << 32n) | BigInt(d.immediate[0] >>> 0);
    if (/^(and|orr|eor|ands|tst)$/.test(line.mnemonic) && d.hasImmediate[0] !== 0) {
      count++;
      equal(BigInt.asUintN(d.wide[0] !== 0 ? 64 : 32, own), value, line.text);
    } else if (/^(add|sub|adds|subs|cmp|cmn)$/.test(line.mnemonic) && d.extend[0] === 0 && d.scale[0] === 0) {
      count++;
      const amount = d.kind[0] === KIND.LEA ? Math.abs(d.displacement[0]) : d.immediate[0];
      equal(amount, Number(value) * (line.text.endsWith("lsl #12") ? 4096 : 1), line.text);
    } else if (/^(b|bl|b\..*|cbn?z|tbn?z)$/.test(line.mnemonic)) {
      count++;
      equal(d.immediate[0] + 4, Number(BigInt.asIntN(64, value)), line.text);
    }
  }
  ok(count > 60);
});

Deno.test("the verifier's decoder of arm64 refuses instructions that no backend emits", () => {
  const refused = [
    0xd4000001, // svc
    0xd4200000, // brk
    0xd503201f ^ 0x40, // wfe
    0xd51be000, // msr
    0xd53bd040, // mrs tpidr_el0
    0xd69f03e0, // eret
    0xf8408400, // ldr with writeback
    0xa9c10400, // ldp with writeback of another base
    0xa8c10400, // ldp after x0
    0x5800000f, // ldr of a general register from a literal
    0xf9800000, // prfm
    0xd65f0fff, // retaa
    0x9100001f ^ 0x12000000 ^ 0x80000000, // and sp
    0x00000000, // udf
    0xc8007c00, // stxr without release
    0x4c007000, // st1
    0x1e200401 | 0xe, // fccmp? with a reserved condition is still a compare, checked below
  ].slice(0, -1);
  for (const word of refused) equal(decodedWords(word).kind[0], KIND.DATA, word.toString(16));
});

Deno.test("a loop that fills a frame is one instruction, and its last word alone is not", () => {
  const fill = [0xf900021f, 0x91002210, 0xf1000631, 0x54ffffa1];
  const whole = decodedWords(...fill, 0xd65f03c0);
  deepEqual([...whole.kind.subarray(0, whole.count)], [KIND.FILL, KIND.RETURN]);
  deepEqual([...whole.at.subarray(0, whole.count + 1)], [0, 16, 20]);
  const other = decodedWords(fill[0], fill[1], fill[2], 0x54ffff81);
  deepEqual([...other.kind.subarray(0, other.count)], [KIND.MOVE, KIND.LEA, KIND.ALU, KIND.BRANCH]);
});

Deno.test("shifts by constants are fields of bits", () => {
  const lsl = decodedWords(0xd37df000); // lsl x0, x0, #3
  deepEqual([lsl.kind[0], lsl.sub[0], lsl.immediate[0], lsl.displacement[0]], [
    KIND.BIT_FIELD,
    BIT_FIELD.UNSIGNED,
    61,
    60,
  ]);
  const bic = decodedWords(0x8a220020); // bic x0, x1, x2
  deepEqual([bic.kind[0], bic.sub[0]], [KIND.ALU, ALU.AND_NOT]);
});
