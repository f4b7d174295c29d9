/**
 * Replays tests/encode/arm64.txt, confirmed by an external assembler: the disassembler must print the same text for the
 * word, and the encoder must reproduce the word from the decoded fields. Immediates are checked against their decoding.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { decode, instructionText } from "./disassemble.ts";
import { Assembler, encode } from "./encoding.ts";
import {
  arithmeticImmediate,
  float32Immediate,
  float64Immediate,
  logicalImmediate,
  logicalValue,
} from "./immediates.ts";
import { INSTRUCTION_ROWS, X } from "./instructions.ts";

const LINES = readFileSync(new URL("../../tests/encode/arm64.txt", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith(";"))
  .map((line) => ({ word: parseInt(line.slice(0, 8), 16) | 0, text: line.slice(11) }));

Deno.test("the disassembler agrees with llvm-mc", () => {
  for (const { word, text } of LINES) equal(instructionText(word), text);
});

Deno.test("the encoder gives the words that were read", () => {
  for (const { word, text } of LINES) {
    const f = decode(word)!;
    if (f.row === X.ADR) continue; // its immediate is in two fields, which branch_relaxation.ts writes
    equal(encode(f.row, f.d, f.n, f.m, f.a, f.i, f.s, f.c, f.k), word, text);
  }
});

Deno.test("every instruction row has a line", () => {
  const seen = new Set(LINES.map(({ word }) => decode(word)!.row));
  deepEqual(INSTRUCTION_ROWS.filter((_, row) => !seen.has(row)).map(({ key }) => key), []);
});

Deno.test("every logical immediate is found again", () => {
  let count = 0;
  for (let size = 2; size <= 64; size *= 2) {
    for (let ones = 1; ones < size; ones++) {
      for (let turn = 0; turn < size; turn++) {
        const field = size === 64
          ? 0x1000 | (turn << 6) | (ones - 1)
          : (turn << 6) | ((-size << 1) & 0x3f) | (ones - 1);
        const { low, high } = logicalValue(field);
        equal(logicalImmediate(low, high), field);
        count++;
      }
    }
  }
  equal(count, 5334);
  for (const [low, high] of [[0, 0], [-1, -1], [5, 5], [0x12345678, 0], [1, 1 << 31 >> 1], [0x101, 0]]) {
    const field = logicalImmediate(low, high);
    if (field >= 0) deepEqual(logicalValue(field), { low, high });
  }
  equal(logicalImmediate(0, 0), -1);
  equal(logicalImmediate(-1, -1), -1);
  equal(logicalImmediate(5, 5), -1);
});

/** The value that a sequence of moves leaves in its register. */
function valueOf(bytes: Uint8Array, end: number): bigint {
  let value = 0n;
  for (let at = 0; at < end; at += 4) {
    const f = decode(bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24))!;
    const wide = INSTRUCTION_ROWS[f.row].key.endsWith("64");
    const shift = BigInt(16 * f.s);
    switch (INSTRUCTION_ROWS[f.row].key.slice(0, -2)) {
      case "MOVZ":
        value = BigInt(f.i) << shift;
        break;
      case "MOVN":
        value = ~(BigInt(f.i) << shift);
        break;
      case "MOVK":
        value = (value & ~(0xffffn << shift)) | (BigInt(f.i) << shift);
        break;
      case "ORR_I": {
        const { low, high } = logicalValue(f.i);
        value = (BigInt(high) << 32n) | BigInt(low >>> 0);
        break;
      }
      default:
        throw new Error(`${INSTRUCTION_ROWS[f.row].key} makes no constant`);
    }
    value = BigInt.asUintN(wide ? 64 : 32, value);
  }
  return value;
}

Deno.test("constants are made in few instructions", () => {
  const cases: [bigint, number][] = [
    [0n, 1],
    [1n, 1],
    [0xffffn, 1],
    [0x10000n, 1],
    [0x12345678n, 2],
    [0xffffffffn, 1],
    [0xffff1234n, 1],
    [0xffffffffffffffffn, 1],
    [0xfffffffffffffffen, 1],
    [0xffffffff00000000n, 1],
    [0x00000001_00000000n, 1],
    [0x5555555555555555n, 1],
    [0x123456789abcdef0n, 4],
    [0xffff1234ffff5678n, 2],
    [0x0000123400005678n, 2],
    [0x8000000000000000n, 1],
    [0x7fffffffffffffffn, 1],
    [0x00ff00ffn, 1],
  ];
  for (const [value, count] of cases) {
    const asm = new Assembler(64);
    asm.constant(3, Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
    equal(valueOf(asm.buffer, asm.at), value);
    ok(asm.at <= 4 * count, `${value.toString(16)} takes ${asm.at / 4} instructions`);
  }
});

Deno.test("arithmetic and float immediates", () => {
  deepEqual([0, 4095, 4096, 0xfff000, 0xfff001, 1 << 24, -1].map(arithmeticImmediate), [
    0,
    4095,
    0x1001,
    0x1fff,
    -1,
    -1,
    -1,
  ]);
  equal(float32Immediate(0x3f800000), 0x70);
  equal(float64Immediate(0, 0x3ff00000), 0x70);
  equal(float64Immediate(0, 0xc0080000 | 0), 0x88);
  equal(float32Immediate(0x3dcccccd), -1);
  equal(float64Immediate(1, 0x3ff00000), -1);
  equal(float64Immediate(0, 0x40590000), -1);
});
