/**
 * The reader of constant expressions against the reader of all instructions, on expressions that validation accepts and
 * others.
 */
import assert from "node:assert/strict";
import { MalformedError } from "../base/errors.ts";
import { CodeReader } from "./code_reader.ts";
import { CONSTANT, ConstantReader, soleFunction } from "./constant_reader.ts";
import { BytesView } from "./module.ts";
import { OPCODES } from "./opcodes.ts";

/** Immediates of every constant instruction, several for those with a LEB128 integer. */
const IMMEDIATES: Readonly<Record<keyof typeof CONSTANT, readonly (readonly number[])[]>> = {
  END: [[]],
  GLOBAL_GET: [[0], [0x80, 1], [0xff, 0xff, 0xff, 0xff, 0x0f]],
  I32_CONST: [[0], [0x7f], [0x80, 0x80, 0x80, 0x80, 0x78], [0xff, 0xff, 0xff, 0xff, 0x07]],
  I64_CONST: [[0], [0x7f], [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f], [
    0x80,
    0x80,
    0x80,
    0x80,
    0x10,
  ]],
  F32_CONST: [[1, 2, 3, 0x84]],
  F64_CONST: [[1, 2, 3, 4, 5, 6, 7, 0x88]],
  I32_ADD: [[]],
  I32_SUB: [[]],
  I32_MUL: [[]],
  I64_ADD: [[]],
  I64_SUB: [[]],
  I64_MUL: [[]],
  REF_NULL: [[0x70], [0x6f], [0x05], [0x80, 0x01], [0x62, 0x85, 0x01]],
  REF_FUNC: [[7]],
  STRUCT_NEW: [[3]],
  STRUCT_NEW_DEFAULT: [[3]],
  STRUCT_NEW_DESC: [[3]],
  STRUCT_NEW_DEFAULT_DESC: [[0x83, 1]],
  ARRAY_NEW: [[0x81, 1]],
  ARRAY_NEW_DEFAULT: [[3]],
  ARRAY_NEW_FIXED: [[3, 0x85, 2]],
  ANY_CONVERT_EXTERN: [[]],
  EXTERN_CONVERT_ANY: [[]],
  REF_I31: [[]],
  V128_CONST: [Array.from({ length: 16 }, (_, k) => k * 3)],
};

function bytesOf(opcode: number, immediates: readonly number[]): Uint8Array {
  return Uint8Array.from(opcode < 256 ? [opcode, ...immediates] : [opcode >> 8, opcode & 0xff, ...immediates]);
}

Deno.test("constant instructions are read as the reader of all instructions reads them", () => {
  for (const [name, opcode] of Object.entries(CONSTANT)) {
    for (const immediates of IMMEDIATES[name as keyof typeof CONSTANT]) {
      const bytes = bytesOf(opcode, immediates);
      const all = new CodeReader(bytes, 0, bytes.length, 100);
      const own = new ConstantReader(bytes, 0, bytes.length, 100);
      const row = OPCODES[all.next()];
      assert.equal(own.next(), row.prefix === 0 ? row.code : (row.prefix << 8) | row.code, name);
      assert.deepEqual([own.pos, own.at], [all.pos, all.at], name);
      const { imm } = all;
      if (row.immediates[0] === "i64" || row.immediates[0] === "f64") {
        assert.deepEqual([own.lo, own.hi], [imm.lo, imm.hi]);
      }
      if (row.immediates[0] === "i32" || row.immediates[0] === "f32") assert.deepEqual([own.lo, own.hi], [imm.lo, 0]);
      if (row.immediates[0] === "v128") assert.deepEqual([...own.vector], [...imm.bytes]);
      if (["global", "func", "type"].includes(row.immediates[0] ?? "")) assert.equal(own.index, imm.index, name);
      if (row.immediates[1] === "count") assert.equal(own.index2, imm.index2, name);
      for (let cut = 0; cut < bytes.length; cut++) {
        assert.throws(() => new ConstantReader(bytes, 0, cut).next(), MalformedError, `${name} cut at ${cut}`);
      }
    }
  }
});

Deno.test("every other instruction is refused", () => {
  const known = new Set<number>(Object.values(CONSTANT));
  for (const { prefix, code, mnemonic } of OPCODES) {
    const opcode = prefix === 0 ? code : (prefix << 8) | code;
    if (known.has(opcode)) continue;
    const bytes = prefix === 0 ? [code] : code < 0x80 ? [prefix, code] : [prefix, (code & 0x7f) | 0x80, code >> 7];
    assert.throws(() => new ConstantReader(Uint8Array.from([...bytes, 0, 0, 0])).next(), /is not constant/, mnemonic);
  }
});

Deno.test("soleFunction() knows references to functions in their usual encoding, and nothing else", () => {
  const expr = (...bytes: number[]) => new BytesView(Uint8Array.of(9, ...bytes, 9), 1, bytes.length + 1, 0);
  const cases: readonly (readonly [number, readonly number[]])[] = [
    [0, [0xd2, 0, 0x0b]],
    [0x7f, [0xd2, 0x7f, 0x0b]],
    [0x80, [0xd2, 0x80, 1, 0x0b]],
    [0xfffffff, [0xd2, 0xff, 0xff, 0xff, 0x7f, 0x0b]],
    [-1, [0xd2, 0x80, 0x80, 0x80, 0x80, 0, 0x0b]],
    [-1, [0x41, 0, 0x0b]],
    [-1, [0xd0, 0x70, 0x0b]],
    [-1, [0xd2, 0, 0xd2, 0, 0x0b]],
  ];
  for (const [index, bytes] of cases) assert.equal(soleFunction(expr(...bytes)), index, `${bytes}`);
  assert.equal(soleFunction({ bytes: Uint8Array.of(0xd2, 0, 0x0b), offset: 0 }), -1);
});
