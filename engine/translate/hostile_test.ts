/**
 * Adversarial bodies for translation: deep nesting, many locals, many edges. Each compiles with bounded output, or is
 * refused.
 */
import { noneBut } from "../testing/optimizations.ts";
import { ok, throws } from "node:assert/strict";
import { decodeModule } from "../binary/decode.ts";
import { UnsupportedError } from "../base/errors.ts";
import { featureSet } from "../settings/features.ts";
import { IrFunction } from "../ir/function.ts";
import { verifyFunction } from "../ir/verify.ts";
import { validateModule } from "../validate/module.ts";
import { FunctionTranslator } from "./function.ts";
import { moduleEnv } from "./module_env.ts";

const I32 = 0x7f;
const VOID = 0x40;
const [UNREACHABLE, BLOCK, LOOP, IF, ELSE, END, BR, BR_IF, BR_TABLE] = [0, 2, 3, 4, 5, 0x0b, 0x0c, 0x0d, 0x0e];
const [LOCAL_GET, LOCAL_SET, I32_CONST, DROP] = [0x20, 0x21, 0x41, 0x1a];

function leb(value: number): number[] {
  const bytes: number[] = [];
  for (; value >= 0x80; value >>>= 7) bytes.push((value & 0x7f) | 0x80);
  return [...bytes, value];
}

function repeat(count: number, part: (k: number) => readonly number[]): number[] {
  const bytes: number[] = [];
  for (let k = 0; k < count; k++) for (const byte of part(k)) bytes.push(byte);
  return bytes;
}

/** A module of one function [i32] → [] with `locals` i32 locals and the instructions `code`. */
function moduleOf(locals: number, code: readonly number[]): Uint8Array {
  const body = [...leb(1), ...leb(locals), I32];
  const size = body.length + code.length + 1;
  const section = (id: number, content: readonly number[]) => [id, ...leb(content.length), ...content];
  const head = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...section(1, [1, 0x60, 1, I32, 0]), ...section(3, [1, 0])];
  const codeHead = [1, ...leb(size)];
  const bytes = new Uint8Array(head.length + 12 + codeHead.length + size);
  let at = 0;
  for (const part of [head, [10, ...leb(codeHead.length + size)], codeHead, body, code, [END]]) {
    for (const byte of part) bytes[at++] = byte;
  }
  return bytes.slice(0, at);
}

function translate(bytes: Uint8Array): IrFunction {
  const valid = validateModule(decodeModule(bytes), featureSet());
  const f = new IrFunction();
  new FunctionTranslator().translate(moduleEnv(valid, { optimizations: noneBut({ "inline": true }) }), 0, f);
  return f;
}

for (
  const [what, locals, code] of [
    ["100,000 nested blocks with branches to each", 1, [
      ...repeat(100_000, () => [BLOCK, VOID]),
      ...repeat(100_000, (k) => [I32_CONST, 1, LOCAL_SET, 1, LOCAL_GET, 0, BR_IF, k < 99_990 ? k % 7 : 0, END]),
    ]],
    ["20,000 nested loops that go back to the outermost", 1, [
      ...repeat(20_000, () => [LOOP, VOID]),
      ...repeat(20_000, (k) => [LOCAL_GET, 0, LOCAL_SET, 1, LOCAL_GET, 0, BR_IF, ...leb(19_999 - k), END]),
    ]],
    ["50,000 nested ifs with else", 1, [
      ...repeat(50_000, () => [LOCAL_GET, 0, IF, VOID]),
      ...repeat(50_000, () => [LOCAL_GET, 0, LOCAL_SET, 1, ELSE, UNREACHABLE, END]),
    ]],
    ["a jump table of 60,000 entries over 40 changed locals", 41, [
      ...[BLOCK, VOID, BLOCK, VOID],
      ...repeat(40, (k) => [LOCAL_GET, 0, LOCAL_SET, 1 + k]),
      ...[LOCAL_GET, 0, BR_TABLE, ...leb(60_000), ...repeat(60_000, (k) => [k % 2]), 0, END, END],
    ]],
    ["40,000 locals and as many blocks", 40_000, [
      ...repeat(40_000, (k) => [BLOCK, VOID, LOCAL_GET, 0, LOCAL_SET, ...leb(k), LOCAL_GET, 0, BR_IF, 0, END]),
    ]],
    ["dead code with loops", 1, [
      ...[LOOP, VOID, BR, 0],
      ...repeat(30_000, () => [LOOP, VOID, LOCAL_GET, 0, LOCAL_SET, 1, BR, 1, END]),
      ...[END, I32_CONST, 0, DROP],
    ]],
  ] as const
) {
  Deno.test(`translation survives ${what}`, () => {
    const f = translate(moduleOf(locals, code));
    // Each element of a column is written once, so the columns bound the work.
    ok(f.count + f.edgeCount + f.poolCount < 40 * code.length, "more than a multiple of the input");
    if (f.blockCount < 50_000 && !what.includes("nested")) verifyFunction(f);
  });
}

for (
  const [what, locals, code] of [
    ["400 nested loops that assign 20,000 locals", 20_001, [
      ...repeat(400, () => [LOOP, VOID]),
      ...repeat(20_000, (k) => [LOCAL_GET, 0, LOCAL_SET, ...leb(1 + k)]),
      ...repeat(400, () => [LOCAL_GET, 0, BR_IF, 0, END]),
    ]],
    ["10,000 branches out of a block that changes 20,000 locals", 20_001, [
      ...[BLOCK, VOID],
      ...repeat(20_000, (k) => [LOCAL_GET, 0, LOCAL_SET, ...leb(1 + k)]),
      ...repeat(10_000, () => [LOCAL_GET, 0, BR_IF, 0]),
      END,
    ]],
  ] as const
) {
  Deno.test(`translation refuses ${what}`, () => {
    throws(() => translate(moduleOf(locals, code)), (error) => {
      ok(error instanceof UnsupportedError && /function 0 is too large/.test(error.message), String(error));
      return true;
    });
  });
}
