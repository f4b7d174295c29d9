/**
 * The code reader: immediates of every kind, long and short LEB128 forms, the suite's messages, exact offsets, ends.
 */
import assert from "node:assert/strict";
import { MalformedError } from "../base/errors.ts";
import { CodeReader } from "./code_reader.ts";
import { idOf, type Mnemonic, OPCODES } from "./opcodes.ts";
import { HEAP, I32, I64, refType, V128, type ValType } from "./types.ts";

function reader(...bytes: number[]): CodeReader {
  return new CodeReader(Uint8Array.from(bytes));
}

function expectNext(code: CodeReader, name: Mnemonic): void {
  const id = code.next();
  assert.equal(OPCODES[id].mnemonic, name);
  assert.equal(id, idOf(name));
}

Deno.test("CodeReader.next() fills the immediates of every kind", () => {
  const code = reader(
    ...[0x20, 0x05],
    ...[0x41, 0x7f],
    ...[0x42, 0xff, 0xff, 0xff, 0xff, 0x7f],
    ...[0x43, 1, 2, 3, 0x84],
    ...[0x44, 1, 2, 3, 4, 5, 6, 7, 0x88],
    ...[0x28, 0x02, 0x10],
    ...[0x28, 0x42, 0x03, 0x80, 0x80, 0x80, 0x80, 0xf0, 0x01],
    ...[0xfd, 0x0c, ...Array.from({ length: 16 }, (_, i) => i + 1)],
    ...[0xfd, 0x54, 0x00, 0x07, 0x0f],
    ...[0x02, 0x40],
    ...[0x02, 0x7b],
    ...[0x02, 0x63, 0x05],
    ...[0x02, 0x80, 0x01],
    ...[0x0e, 0x03, 0, 1, 2, 3],
    ...[0x11, 0x04, 0x05],
    ...[0x1c, 0x02, 0x7e, 0x64, 0x70],
    ...[0xd0, 0x6f],
    ...[0xd0, 0x07],
    ...[0xfb, 0x14, 0x6c],
    ...[0xfb, 0x15, 0x6c],
    ...[0xfb, 0x18, 0x02, 0x09, 0x6e, 0x00],
    ...[0x1f, 0x7f, 0x02, 0x00, 0x05, 0x06, 0x03, 0x07],
    ...[0xfb, 0x08, 0x01, 0x02],
    ...[0xe4, 0x01, 0x02, 0x02, 0x00, 0x05, 0x06, 0x01, 0x07],
    ...[0xfc, 0x0a, 0x01, 0x02],
    ...[0xfe, 0x03, 0x00],
    0x0b,
  );
  const { imm } = code;
  expectNext(code, "local.get");
  assert.equal(imm.index, 5);
  expectNext(code, "i32.const");
  assert.equal(imm.lo, -1);
  expectNext(code, "i64.const");
  assert.deepEqual([imm.lo, imm.hi], [-1, -1]);
  expectNext(code, "f32.const");
  assert.equal(imm.lo, 0x84030201 | 0);
  expectNext(code, "f64.const");
  assert.deepEqual([imm.lo, imm.hi], [0x04030201, 0x88070605 | 0]);
  expectNext(code, "i32.load");
  assert.deepEqual([imm.align, imm.memory, imm.offsetLo, imm.offsetHi], [2, 0, 16, 0]);
  expectNext(code, "i32.load");
  assert.deepEqual([imm.align, imm.memory, imm.offsetLo, imm.offsetHi], [2, 3, 0, 15]);
  expectNext(code, "v128.const");
  assert.deepEqual([...imm.bytes], Array.from({ length: 16 }, (_, i) => i + 1));
  expectNext(code, "v128.load8_lane");
  assert.deepEqual([imm.align, imm.offsetLo, imm.lane], [0, 7, 15]);
  expectNext(code, "block");
  assert.deepEqual([imm.blockTypeIndex, imm.blockValue], [-1, 0]);
  expectNext(code, "block");
  assert.deepEqual([imm.blockTypeIndex, imm.blockValue], [-2, V128]);
  expectNext(code, "block");
  assert.deepEqual([imm.blockTypeIndex, imm.blockValue], [-2, refType(true, 5)]);
  expectNext(code, "block");
  assert.deepEqual([imm.blockTypeIndex, imm.blockValue], [128, 0]);
  expectNext(code, "br_table");
  assert.deepEqual([imm.labelCount, ...imm.labels.subarray(0, 4)], [3, 0, 1, 2, 3]);
  expectNext(code, "call_indirect");
  assert.deepEqual([imm.index, imm.index2], [4, 5]);
  expectNext(code, "select(t)");
  assert.deepEqual(imm.valTypes, [I64, refType(false, HEAP.func)]);
  expectNext(code, "ref.null");
  assert.equal(imm.heap, HEAP.extern);
  expectNext(code, "ref.null");
  assert.equal(imm.heap, 7);
  expectNext(code, "ref.test");
  assert.deepEqual([imm.heap, imm.nullable], [HEAP.i31, false]);
  expectNext(code, "ref.test(null)");
  assert.deepEqual([imm.heap, imm.nullable], [HEAP.i31, true]);
  expectNext(code, "br_on_cast");
  assert.deepEqual([imm.index, imm.nullable, imm.nullable2, imm.heap, imm.heap2], [9, false, true, HEAP.any, 0]);
  expectNext(code, "try_table");
  assert.equal(imm.blockValue, I32);
  assert.deepEqual(imm.catches, [{ kind: 0, tag: 5, label: 6 }, { kind: 3, tag: -1, label: 7 }]);
  expectNext(code, "array.new_fixed");
  assert.deepEqual([imm.index, imm.index2], [1, 2]);
  expectNext(code, "resume_throw");
  assert.deepEqual([imm.index, imm.index2], [1, 2]);
  assert.deepEqual(imm.handlers, [{ tag: 5, label: 6 }, { tag: 7, label: -1 }]);
  expectNext(code, "memory.copy");
  assert.deepEqual([imm.index, imm.index2], [1, 2]);
  expectNext(code, "atomic.fence");
  expectNext(code, "end");
  assert.ok(code.done);
});

/** `value` as LEB128 stretched to `length` bytes. */
function stretched(value: number, length: number, signed: boolean): number[] {
  const bytes: number[] = [];
  let rest = BigInt(value);
  for (let i = 1; i < length; i++, rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  const last = Number(rest & 0x7fn);
  // The fifth byte of 32 bits has four of them: sign bits above must agree.
  return [...bytes, signed || length < 5 ? last : last & 0x0f];
}

Deno.test("CodeReader.next() reads short and long forms alike", () => {
  for (let length = 1; length <= 5; length++) {
    for (const value of [0, 1, 0x3f]) {
      const code = reader(
        ...[0x20, ...stretched(value, length, false)],
        ...[0x41, ...stretched(value, length, true)],
        ...[0x41, ...stretched(-value, length, true)],
        ...[0x36, ...stretched(2, length, false), ...stretched(value, length, false)],
        ...[0x03, ...stretched(value, length, true)],
        0x0b,
      );
      const { imm } = code;
      expectNext(code, "local.get");
      assert.equal(imm.index, value);
      expectNext(code, "i32.const");
      assert.equal(imm.lo, value);
      expectNext(code, "i32.const");
      assert.equal(imm.lo, -value | 0);
      expectNext(code, "i32.store");
      assert.deepEqual([imm.align, imm.memory, imm.offsetLo, imm.offsetHi], [2, 0, value, 0]);
      expectNext(code, "loop");
      assert.deepEqual([imm.blockTypeIndex, imm.blockValue], [value, 0]);
      expectNext(code, "end");
      assert.ok(code.done);
    }
  }
  const code = reader(0x28, 0, 0x80, 0x7f, 0x28, 0, 0x80, 0x80, 0x01, 0x0b);
  expectNext(code, "i32.load");
  assert.equal(code.imm.offsetLo, 0x7f << 7);
  expectNext(code, "i32.load");
  assert.equal(code.imm.offsetLo, 1 << 14);
  expectNext(code, "end");
});

Deno.test("CodeReader reads the ordering of atomic accesses between memory and offset", () => {
  const code = reader(
    0xfe,
    0x10,
    0x02,
    5,
    0xfe,
    0x10,
    0x52,
    3,
    1,
    5,
    0xfe,
    0x1e,
    0x12,
    0x11,
    6,
    0xfe,
    0x1e,
    0x12,
    0,
    7,
  );
  const seen = [];
  while (!code.done) {
    code.next();
    seen.push([code.imm.align, code.imm.memory, code.imm.ordering, code.imm.offsetLo]);
  }
  assert.deepEqual(seen, [[2, 0, -1, 5], [2, 3, 1, 5], [2, 0, 1, 6], [2, 0, 0, 7]]);
});

Deno.test("CodeReader keeps large indices unsigned and large labels out of range", () => {
  const most = [0xff, 0xff, 0xff, 0xff, 0x0f];
  const code = reader(0x10, ...most, 0x0e, 1, ...most, ...most, 0x28, 0, ...[0xff, 0xff, 0xff, 0xff, 0xff], 0x1f);
  code.next();
  assert.equal(code.imm.index, 0xffffffff);
  code.next();
  assert.deepEqual([...code.imm.labels.subarray(0, 2)], [0x7fffffff, 0x7fffffff]);
  code.next();
  assert.deepEqual([code.imm.offsetLo, code.imm.offsetHi], [0xffffffff, 0xff]);
});

/** Bytes, message, offset of the failure within them. */
const MALFORMED: readonly (readonly [number[], string, number])[] = [
  [[], "END opcode expected: unexpected end of section or function", 0],
  [[0xff], "illegal opcode ff", 0],
  [[0x16], "illegal opcode 16", 0],
  [[0xfc, 0x12], "illegal opcode fc 12", 0],
  [[0xfd, 0x9a, 0x01], "illegal opcode fd 9a", 0],
  [[0xfd, 0x80, 0x80, 0x80, 0x80, 0x01], "illegal opcode fd 10000000", 0],
  [[0xfc, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], "integer representation too long", 5],
  [[0x20], "unexpected end of section or function", 1],
  [[0x20, 0x80], "unexpected end of section or function", 2],
  [[0x20, 0x80, 0x80, 0x80, 0x80, 0x10], "integer too large", 5],
  [[0x41, 0x80, 0x80, 0x80, 0x80, 0x70], "integer too large", 5],
  [[0x41, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], "integer representation too long", 5],
  [[0x43, 0, 0, 0], "unexpected end of section or function", 4],
  [[0x44, 0, 0, 0, 0, 0, 0, 0], "unexpected end of section or function", 8],
  [[0x28, 0x80, 0x01, 0x00], "malformed memop flags", 1],
  [[0x28, 0x42, 0x00], "unexpected end of section or function", 3],
  [[0x02, 0x41], "malformed value type", 1],
  [[0x02, 0x80, 0x7f], "malformed block type", 1],
  [[0x0e, 0x05, 0, 0], "unexpected end of section or function: length out of bounds: count 5 with 2 bytes left", 1],
  [[0x1c, 0x01, 0x78], "malformed value type", 2],
  [[0xd0, 0x40], "malformed heap type", 1],
  [[0xd0, 0xf0, 0x7f], "malformed heap type", 1],
  [[0xd0, 0x67], "malformed heap type", 1],
  [[0xfb, 0x18, 0x04, 0, 0x6e, 0x6e], "malformed br_on_cast flags", 2],
  [[0x1f, 0x40, 0x01, 0x04, 0x00], "malformed catch clause", 3],
  [[0xe3, 0x00, 0x01, 0x02, 0x00], "malformed on clause", 3],
  [[0xfe, 0x03, 0x02], "malformed memory ordering 2, must be 0 or 1", 2],
  [[0xfe, 0x10, 0x12, 0x02, 0x00], "malformed memory ordering 2, must be 0 or 1", 3],
  [[0xfe, 0x1e, 0x52, 0x00, 0x01, 0x00], "malformed memory ordering 1, must be 0 or 17", 4],
  [[0xfe, 0x1e, 0x12, 0x11], "unexpected end of section or function", 4],
  [[0xfe, 0x10, 0x80, 0x01, 0x00], "malformed memop flags", 2],
  [[0xfd, 0x0c, 1, 2, 3], "unexpected end of section or function", 5],
  [[0xfd, 0x15], "unexpected end of section or function", 2],
];

Deno.test("CodeReader.next() reports malformed instructions with the absolute offset", () => {
  for (const [bytes, message, offset] of MALFORMED) {
    // The same bytes at another offset of a larger array, followed by bytes that do not belong to them.
    const padded = Uint8Array.from([0xaa, 0xaa, ...bytes, 0x00, 0x00]);
    for (const code of [new CodeReader(Uint8Array.from(bytes), 0, bytes.length, 1002), new CodeReader(padded, 2)]) {
      if (code.bytes === padded) {
        code.end = 2 + bytes.length;
        code.base = 1000;
      }
      assert.throws(() => code.next(), (error) => {
        assert.ok(error instanceof MalformedError);
        assert.equal(error.message, message);
        assert.equal(error.place.offset, 1002 + offset, message);
        return true;
      });
    }
  }
});

Deno.test("CodeReader.at is the absolute offset of the instruction", () => {
  const code = new CodeReader(Uint8Array.of(0x01, 0x41, 0x80, 0x01, 0xfc, 0x0b, 0x00, 0x0b), 0, 8, 0x100);
  const offsets: number[] = [];
  while (!code.done) {
    code.next();
    offsets.push(code.at);
  }
  assert.deepEqual(offsets, [0x100, 0x101, 0x104, 0x107]);
});

Deno.test("CodeReader rejects references to data segments when the data count is missing", () => {
  for (const bytes of [[0xfc, 0x08, 0, 0], [0xfc, 0x09, 0], [0xfb, 0x09, 0, 0], [0xfb, 0x12, 0, 0]]) {
    const code = reader(...bytes);
    code.next();
    assert.ok(code.done);
    code.reset(code.bytes, 0, bytes.length, 7);
    code.dataCountMissing = true;
    assert.throws(
      () => code.next(),
      (error) =>
        error instanceof MalformedError && error.message === "data count section required" && error.place.offset === 7,
    );
  }
});

Deno.test("CodeReader.locals() expands runs and bounds their sum", () => {
  const types: ValType[] = [I32];
  const code = reader(0x03, 0x02, 0x7f, 0x00, 0x7e, 0x01, 0x63, 0x70, 0x0b);
  code.locals(types);
  assert.deepEqual(types, [I32, I32, I32, refType(true, HEAP.func)]);
  expectNext(code, "end");
  const most = [0xff, 0xff, 0xff, 0xff, 0x0f];
  const before = types.length;
  assert.throws(() => reader(0x01, ...most, 0x7f).locals(types), {
    name: "MalformedError",
    message: /^too many locals/,
  });
  assert.throws(() => reader(0x02, 0xd0, 0x86, 0x03, 0x7f, 0x01, 0x7f).locals([]), {
    message: /^too many locals: 50001/,
  });
  assert.equal(types.length, before);
  assert.throws(() => reader(0x02, 0x01, 0x7f).locals([]), { message: /unexpected end/ });
});

Deno.test("every prefix of every instruction is malformed, and bytes after it are not read", () => {
  for (const row of OPCODES) {
    const opcode = row.prefix === 0 ? [row.code] : [row.prefix, (row.code & 0x7f) | 0x80, row.code >> 7];
    // Zeros are valid for every immediate but a value type.
    const whole = new Uint8Array(64);
    whole.set(opcode);
    if (row.immediates.includes("blocktype")) whole[1] = 0x40;
    const code = new CodeReader(whole);
    assert.equal(code.next(), row.id, row.mnemonic);
    const length = code.pos;
    for (let cut = 0; cut < length; cut++) {
      const short = new CodeReader(whole, 0, cut);
      assert.throws(() => short.next(), MalformedError, `${row.mnemonic} cut to ${cut} of ${length}`);
    }
    assert.equal(new CodeReader(whole, 0, length).next(), row.id);
  }
});
