/**
 * The verifier's decoder against an external assembler: tests/encode/x64.txt has lines "bytes | text" that llvm-mc
 * printed. For every line with a form of functions, length, memory operand, width and immediate must be those of the
 * text.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { decodeX64 } from "../../engine/verify/x64_decoder.ts";
import { BASE_RIP, Instructions, KIND, NO_REGISTER } from "../../engine/verify/instructions.ts";

interface Line {
  bytes: Uint8Array;
  text: string;
}

const LINES: Line[] = readFileSync(new URL("../encode/x64.txt", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith(";"))
  .map((line) => {
    const [hex, text] = line.split(" | ");
    return { bytes: Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16)), text };
  });

/** Instructions of stubs alone, which the verifier compares with those of this build instead of decoding them. */
const OF_STUBS = /^(rep |lock$|pushfq|popfq|syscall|int3)/;

const NAMES = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"];
for (let k = 8; k < 16; k++) NAMES.push(`r${k}`);

const WIDTHS: Readonly<Record<string, number>> = { byte: 1, word: 2, dword: 4, qword: 8, xmmword: 16 };

/** The memory operand of a text, in the notation of the columns. */
function memoryOf(text: string): number[] | undefined {
  const match = /\[([^\]]*)\]/.exec(text);
  if (match === null) return undefined;
  let base = NO_REGISTER, index = NO_REGISTER, scale = 0, displacement = 0;
  for (const [, sign, term] of match[1].replaceAll(" ", "").matchAll(/([+-]?)([^+-]+)/g)) {
    const scaled = /^(\d)\*(\w+)$/.exec(term);
    if (scaled !== null) {
      index = NAMES.indexOf(scaled[2]);
      scale = Math.log2(Number(scaled[1]));
    } else if (term === "rip") base = BASE_RIP;
    else if (NAMES.includes(term)) {
      if (base === NO_REGISTER) base = NAMES.indexOf(term);
      else index = NAMES.indexOf(term);
    } else displacement = Number(`${sign}${term}`);
  }
  return [base, index, scale, displacement];
}

function decoded({ bytes, text }: Line): Instructions {
  const into = decodedBytes(bytes);
  equal(into.count, 1, text);
  ok(into.kind[0] !== KIND.DATA, text);
  return into;
}

/** The instructions of `bytes` as those of a function. */
function decodedBytes(bytes: Uint8Array): Instructions {
  const into = new Instructions();
  into.begin(0, bytes.length);
  decodeX64(bytes, 0, bytes.length, into);
  return into;
}

const FUNCTION_LINES = LINES.filter(({ text }) => !OF_STUBS.test(text));

Deno.test("the verifier's decoder accepts the lengths of llvm-mc", () => {
  ok(FUNCTION_LINES.length > 2000);
  for (const line of FUNCTION_LINES) decoded(line);
});

Deno.test("the verifier's decoder finds the memory operands of llvm-mc", () => {
  for (const line of FUNCTION_LINES) {
    const d = decoded(line);
    const memory = memoryOf(line.text);
    if (memory === undefined) {
      ok(d.base[0] === NO_REGISTER && d.index[0] === NO_REGISTER, line.text);
      continue;
    }
    equal(d.rm[0], NO_REGISTER, line.text);
    deepEqual([d.base[0], d.index[0], d.scale[0], d.displacement[0]], memory, line.text);
    const width = /(\w+) ptr/.exec(line.text)?.[1];
    if (width === undefined) equal(d.kind[0], KIND.LEA, line.text);
    else if (d.kind[0] !== KIND.NOP) equal(d.size[0], WIDTHS[width], line.text);
  }
});

Deno.test("the verifier's decoder finds the immediates of llvm-mc", () => {
  for (const line of FUNCTION_LINES) {
    const d = decoded(line);
    const written = /, (-?\d+)$/.exec(line.text)?.[1];
    if (written === undefined) continue;
    equal(d.hasImmediate[0], 1, line.text);
    const value = (BigInt(d.immediateHigh[0]) << 32n) | BigInt(d.immediate[0] >>> 0);
    const bits = d.wide[0] !== 0 && d.kind[0] === KIND.CONSTANT ? 64 : 8;
    equal(BigInt.asUintN(bits, value), BigInt.asUintN(bits, BigInt(written)), line.text);
  }
});

Deno.test("the verifier's decoder refuses instructions that no backend emits", () => {
  const refused = [
    "f4", // hlt
    "0f05", // syscall
    "cd80", // int
    "f3a4", // rep movsb
    "65488b00", // a segment prefix
    "67488b00", // an address-size prefix
    "6648488b00", // two REX prefixes
    "f0480fb7c0", // lock without memory
    "c5fc58c1", // 256 bits
    "ff20ff", // a jump and a rest
    "ffd8", // far call
    "8ec0", // a segment register
    "c8000000", // enter
    "0f31", // rdtsc
    "0fae38", // clflush
    "0f01d0", // xgetbv
  ];
  for (const hex of refused) {
    const bytes = Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));
    const { kind, count } = decodedBytes(bytes);
    ok(kind.subarray(0, count).includes(KIND.DATA), hex);
  }
});

Deno.test("the verifier's decoder refuses instructions that end beyond the function", () => {
  for (const { bytes, text } of FUNCTION_LINES) {
    for (let n = 1; n < bytes.length; n++) {
      const { kind, at, count } = decodedBytes(bytes.subarray(0, n));
      equal(at[count], n, text);
      // The first bytes of an instruction may be an instruction, too, but never one that ends elsewhere.
      for (let k = 0; k < count; k++) ok(at[k] < at[k + 1] && (kind[k] !== KIND.NONE), text);
    }
  }
});

Deno.test("an instruction across the target of a branch is data, and so are the bytes up to the target", () => {
  // jmp +3; then the first three bytes of a longer instruction; then ret at the target.
  const { kind, at, count } = decodedBytes(Uint8Array.of(0xeb, 3, 0x48, 0xb8, 0, 0xc3));
  deepEqual([...kind.subarray(0, count)], [KIND.JUMP, KIND.DATA, KIND.RETURN]);
  deepEqual([...at.subarray(0, count + 1)], [0, 2, 5, 6]);
});

Deno.test("constants that look like a branch do not hide the target of a branch", () => {
  // jb to the second ret, and a ret; then constants that are the bytes of jg +0 and of an instruction across the
  // target.
  const { kind, at, count } = decodedBytes(Uint8Array.of(0x72, 4, 0xc3, 0x7f, 0, 0x80, 0xc3, 0x90));
  deepEqual([...kind.subarray(0, count)], [KIND.BRANCH, KIND.RETURN, KIND.BRANCH, KIND.DATA, KIND.RETURN, KIND.NOP]);
  deepEqual([...at.subarray(0, count)], [0, 2, 3, 5, 6, 7]);
});

Deno.test("the verifier's decoder refuses ah, ch, dh and bh, which are no parts of the registers of their numbers", () => {
  const kindOf = (hex: string) => decodedBytes(Uint8Array.from(hex.split(" "), (byte) => parseInt(byte, 16))).kind[0];
  for (const hex of ["88 c7", "88 f8", "0f b6 c4", "0f be c5", "0f 94 c4", "80 fc 01", "38 e0", "84 c4", "88 63 01"]) {
    equal(kindOf(hex), KIND.DATA, hex);
  }
  for (const hex of ["40 88 c7", "88 c3", "0f b6 f9", "88 43 01", "40 88 63 01", "40 0f 94 c4", "80 f9 01"]) {
    ok(kindOf(hex) !== KIND.DATA, hex);
  }
});
