/**
 * Replays tests/encode/x64.txt, written by an external assembler: the disassembler must print the same text for the
 * bytes, and the encoder must reproduce the bytes from the decoded operands.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { decode, type Decoded, disassemble, instructionText } from "./disassemble.ts";
import { Assembler, BASE_RIP, emitConstant, emitMemory, emitRegister } from "./encoding.ts";
import { INSTRUCTION_ROWS } from "./all_rows.ts";
import { ROW_HAS_MODRM, ROW_VEX_TWIN, X } from "./instructions.ts";

interface Line {
  bytes: Uint8Array;
  text: string;
}

const LINES: Line[] = readFileSync(new URL("../../tests/encode/x64.txt", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith(";"))
  .map((line) => {
    const [hex, text] = line.split(" | ");
    return { bytes: Uint8Array.from(hex.match(/../g)!, (byte) => parseInt(byte, 16)), text };
  });

function encodeAgain(d: Decoded): Uint8Array {
  const asm = new Assembler(32);
  if (d.row === X.MOVABS) emitConstant(asm, d.reg, d.imm, d.immHigh);
  else if (ROW_HAS_MODRM[d.row] === 0 || d.rm >= 0) {
    emitRegister(asm, d.row, d.reg, Math.max(d.rm, 0), d.vvvv, d.imm, d.condition);
  } else {
    const base = d.base === -2 ? BASE_RIP : d.base;
    emitMemory(asm, d.row, d.reg, asm.indexed(base, d.index, d.scale, d.disp), d.imm, d.vvvv, d.condition);
  }
  return asm.buffer.slice(0, asm.at);
}

Deno.test("the disassembler agrees with llvm-mc", () => {
  for (const { bytes, text } of LINES) {
    const decoded = decode(bytes, 0, bytes.length);
    ok(decoded !== undefined, text);
    equal(instructionText(decoded), text);
    equal(decoded.length, bytes.length, text);
  }
});

Deno.test("the encoder gives the bytes that were read", () => {
  for (const { bytes, text } of LINES) {
    deepEqual(encodeAgain(decode(bytes, 0, bytes.length)!), bytes, text);
  }
});

Deno.test("every instruction row has a line", () => {
  const seen = new Set(LINES.map(({ bytes }) => decode(bytes, 0, bytes.length)!.row));
  deepEqual(INSTRUCTION_ROWS.filter((_, row) => !seen.has(row)).map((row) => row.key), []);
});

Deno.test("rows of the two widths are neighbours", () => {
  const numbers: Readonly<Record<string, number>> = X;
  for (const row of INSTRUCTION_ROWS) {
    const wide = row.key.replace("32", "64");
    if (wide === row.key || numbers[wide] === undefined) continue;
    equal(numbers[wide], numbers[row.key] + 1, row.key);
  }
  for (const row of INSTRUCTION_ROWS) {
    if (!/^(ADD|SUB|MUL|DIV|MIN|MAX|SQRT|ROUND|UCOMI)SS$/.test(row.key)) continue;
    equal(numbers[row.key.replace(/SS$/, "SD")], numbers[row.key] + 1, row.key);
  }
  ok(INSTRUCTION_ROWS.every((row, n) => row.feature !== "sse41" || ROW_VEX_TWIN[n] !== 0));
});

Deno.test("a truncated instruction is not decoded, and unknown bytes are shown", () => {
  for (const { bytes } of LINES) {
    for (let n = 1; n < bytes.length; n++) {
      const part = decode(bytes, 0, n);
      ok(part === undefined || part.length <= n);
    }
  }
  equal(disassemble(Uint8Array.of(0x06, 0x90), 0, 2), "  .byte 0x06\n  nop\n");
});
