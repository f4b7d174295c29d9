/**
 * The opcode rows against three independent references: npm wabt and binaryen for the name of a code, V8's validator
 * for its operands and results, and the specification's suite for missing names.
 */
import { loadBinaryen, loadWabt } from "../../tests/support/test_packages.ts";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { HAS_TESTSUITE, NEEDS_TESTSUITE, suiteScripts } from "../../tests/support/testsuite.ts";
import { ByteWriter } from "../base/bytes.ts";
import { Bug } from "../base/errors.ts";
import { PROPOSAL_ROWS } from "../settings/features.ts";
import { OP_ROWS } from "../ir/ops.ts";
import type { ImmediateKind, OpcodeRow } from "./opcode_row.ts";
import {
  ID_BY_BYTE,
  idOf,
  indexByCode,
  indexByName,
  IS_ATOMIC,
  keywordOf,
  LANE_LIMIT,
  NATURAL_ALIGN,
  OPCODES,
  parseOpcodeRow,
  rowByMnemonic,
  rowOf,
} from "./opcodes.ts";

/** Features whose instructions V8 and wabt do not know (tests/features/acquire_release_test.ts). */
const UNKNOWN_FEATURES: ReadonlySet<string> = new Set(["acquire-release-atomics"]);

const TYPE_BYTES: Record<string, number> = { i: 0x7f, I: 0x7e, f: 0x7d, F: 0x7c, v: 0x7b, a: 0x7f };

/** Bytes of an immediate that is valid in the modules below. */
function immediateBytes(kind: ImmediateKind, row: OpcodeRow): number[] {
  switch (kind) {
    case "blocktype":
      return [0x40];
    case "labels":
    case "valtypes":
      return kind === "labels" ? [0, 0] : [1, 0x7f];
    case "memarg":
    case "atomicarg":
    case "rmwarg":
      return [row.naturalAlign, 0];
    case "f32":
      return [0, 0, 0, 0];
    case "f64":
      return [0, 0, 0, 0, 0, 0, 0, 0];
    case "v128":
    case "lanes":
      return new Array(16).fill(0);
    case "heaptype":
      return [0x70];
    case "reftype0":
    case "reftype1":
      return [0x6c];
    case "casttypes":
      return [3, 0, 0x6d, 0x6c];
    case "catches":
      return [0];
    default:
      return [0];
  }
}

function instructionBytes(row: OpcodeRow): number[] {
  const writer = new ByteWriter();
  if (row.prefix !== 0) writer.u8(row.prefix);
  if (row.prefix !== 0) writer.u32(row.code);
  else writer.u8(row.code);
  for (const kind of row.immediates) writer.raw(Uint8Array.from(immediateBytes(kind, row)));
  return [...writer.finish()];
}

function sized(writer: ByteWriter, write: () => void): void {
  const mark = writer.beginSized();
  write();
  writer.endSized(mark);
}

function section(writer: ByteWriter, id: number, bytes: number[]): void {
  writer.u8(id);
  writer.byteVector(Uint8Array.from(bytes));
}

interface Body {
  params: number[];
  results: number[];
  code: number[];
}

/** A module of these functions with a shared memory, a table, a global, a tag and a segment of each kind. */
function moduleOf(bodies: Body[], types: number[][] = []): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter();
  writer.raw(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0));
  writer.u8(1);
  sized(writer, () => {
    writer.u32(types.length + bodies.length + 1);
    for (const type of types) writer.raw(Uint8Array.from(type));
    writer.raw(Uint8Array.of(0x60, 0, 0));
    for (const { params, results } of bodies) {
      writer.u8(0x60);
      writer.byteVector(Uint8Array.from(params));
      writer.byteVector(Uint8Array.from(results));
    }
  });
  writer.u8(3);
  sized(writer, () => {
    writer.u32(bodies.length);
    for (let i = 0; i < bodies.length; i++) writer.u32(types.length + 1 + i);
  });
  section(writer, 4, [1, 0x70, 0, 1]);
  section(writer, 5, [1, 3, 1, 1]);
  section(writer, 13, [1, 0, types.length]);
  section(writer, 6, [1, 0x7f, 1, 0x41, 0, 0x0b]);
  section(writer, 9, [1, 1, 0, 1, 0]);
  section(writer, 12, [1]);
  writer.u8(10);
  sized(writer, () => {
    writer.u32(bodies.length);
    for (const { code } of bodies) sized(writer, () => writer.raw(Uint8Array.of(0, ...code, 0x0b)));
  });
  section(writer, 11, [1, 1, 1, 0x41]);
  return writer.finish();
}

function signatureBody(row: OpcodeRow, results: string = row.results!): Body {
  const types = [...row.params!].map((letter) => TYPE_BYTES[letter]);
  const code = types.flatMap((_, i) => [0x20, i]);
  return {
    params: types,
    results: [...results].map((letter) => TYPE_BYTES[letter]),
    code: [...code, ...instructionBytes(row)],
  };
}

Deno.test("every simple row has the signature that V8's validator knows", () => {
  const simple = OPCODES.filter((row) => row.params !== undefined && !UNKNOWN_FEATURES.has(row.feature));
  assert.ok(simple.length > 480);
  for (const row of simple) {
    assert.ok(WebAssembly.validate(moduleOf([signatureBody(row)])), row.mnemonic);
    const wrong = row.results === "i" || row.results === "a" ? "I" : "i";
    assert.ok(!WebAssembly.validate(moduleOf([signatureBody(row, wrong)])), `${row.mnemonic} with a wrong result`);
    // One parameter less must fail too.
    const body = signatureBody(row);
    if (body.params.length > 0) {
      const short = { ...body, code: body.code.slice(2) };
      assert.ok(!WebAssembly.validate(moduleOf([short])), `${row.mnemonic} with too few operands`);
    }
  }
});

Deno.test("natural alignments and lane limits are the largest that V8's validator accepts", () => {
  for (const row of OPCODES) {
    const body = row.params === undefined ? undefined : signatureBody(row);
    if (body === undefined) continue;
    if (row.naturalAlign >= 0) {
      assert.match(row.immediates[0], /^(memarg|atomicarg|rmwarg)$/);
      const at = body.code.length - instructionBytes(row).length + (row.prefix === 0 ? 1 : 2);
      body.code[at] = row.naturalAlign + 1;
      assert.ok(!WebAssembly.validate(moduleOf([body])), `${row.mnemonic} with a larger alignment`);
      body.code[at] = row.naturalAlign;
      if (IS_ATOMIC[row.id] === 1 && row.naturalAlign > 0) {
        body.code[at] = row.naturalAlign - 1;
        assert.ok(!WebAssembly.validate(moduleOf([body])), `${row.mnemonic} with a smaller alignment`);
        body.code[at] = row.naturalAlign;
      }
    }
    const limit = LANE_LIMIT[row.id];
    assert.equal(limit > 0, row.immediates.includes("lane") || row.immediates.includes("lanes"));
    if (limit > 0) {
      const last = body.code.length - 1;
      body.code[last] = limit - 1;
      assert.ok(WebAssembly.validate(moduleOf([body])), `${row.mnemonic} with the last lane`);
      body.code[last] = limit;
      assert.ok(!WebAssembly.validate(moduleOf([body])), `${row.mnemonic} with a lane too many`);
    }
  }
});

/** Rows that occur only inside another construct, with that construct. */
const STRUCTURED: Record<string, number[]> = {
  "else": [0x41, 0, 0x04, 0x40, 0x05, 0x01, 0x0b],
  "catch": [0x06, 0x40, 0x07, 0, 0x0b],
  "catch_all": [0x06, 0x40, 0x19, 0x0b],
  "delegate": [0x06, 0x40, 0x18, 0],
  "rethrow": [0x06, 0x40, 0x19, 0x09, 0, 0x0b],
  "end": [0x02, 0x40, 0x0b],
};
const OPENS_FRAME = ["block", "loop", "if", "try", "try_table"];

Deno.test("wabt gives every code outside prefix fb the name that the row has", async () => {
  const wabt = await loadWabt();
  const features = {
    threads: true,
    exceptions: true,
    tail_call: true,
    function_references: true,
    gc: true,
    relaxed_simd: true,
    multi_memory: true,
    memory64: true,
  };
  // Newer than this wabt, as these features are (tests/features/, the proposals' suites); the test of prefix fb has
  // these instructions.
  const newer = new Set<string>(["wide-arithmetic", "stack-switching", "custom-descriptors", ...UNKNOWN_FEATURES]);
  const unknown = new Set(["return_call_ref", "ref.eq", "ref.as_non_null", "br_on_null", "br_on_non_null"]);
  for (const row of OPCODES) {
    if (row.prefix === 0xfb || newer.has(row.feature) || unknown.has(row.mnemonic)) continue;
    const code = STRUCTURED[row.mnemonic] ??
      [...instructionBytes(row), ...(OPENS_FRAME.includes(row.mnemonic) ? [0x0b] : [])];
    // `unreachable` makes the operand stack polymorphic.
    const module = wabt.readWasm(moduleOf([{ params: [0x7f], results: [], code: [0, ...code, 0] }]), features);
    const text = module.toText({ foldExprs: false, inlineExport: false });
    module.destroy();
    const words = text.split(/[\s()]+/);
    assert.ok(words.includes(keywordOf(row.id)), `${row.mnemonic}:\n${text}`);
  }
});

/**
 * Types 0 and 1 of the module for prefix fb: a struct {mut i32, mut i8}, an array of mut i8; 2 an array of mut funcref.
 */
const AGGREGATES = [[0x5f, 2, 0x7f, 1, 0x78, 1], [0x5e, 0x78, 1], [0x5e, 0x70, 1]];
const ANYREF = 0x6e, EQREF = 0x6d, I31REF = 0x6c, STRUCTREF0 = [0x63, 0], ARRAYREF1 = [0x63, 1], ARRAYREF2 = [0x63, 2];

/** Name, immediates (and the rest of a whole body), parameter types, result types. */
const AGGREGATE_USES: readonly (readonly [string, number[], (number | number[])[], (number | number[])[]])[] = [
  ["struct.new", [0], [0x7f, 0x7f], [STRUCTREF0]],
  ["struct.new_default", [0], [], [STRUCTREF0]],
  ["struct.get", [0, 0], [STRUCTREF0], [0x7f]],
  ["struct.get_s", [0, 1], [STRUCTREF0], [0x7f]],
  ["struct.get_u", [0, 1], [STRUCTREF0], [0x7f]],
  ["struct.set", [0, 0], [STRUCTREF0, 0x7f], []],
  ["array.new", [1], [0x7f, 0x7f], [ARRAYREF1]],
  ["array.new_default", [1], [0x7f], [ARRAYREF1]],
  ["array.new_fixed", [1, 2], [0x7f, 0x7f], [ARRAYREF1]],
  ["array.new_data", [1, 0], [0x7f, 0x7f], [ARRAYREF1]],
  ["array.new_elem", [2, 0], [0x7f, 0x7f], [ARRAYREF2]],
  ["array.get", [2], [ARRAYREF2, 0x7f], [0x70]],
  ["array.get_s", [1], [ARRAYREF1, 0x7f], [0x7f]],
  ["array.get_u", [1], [ARRAYREF1, 0x7f], [0x7f]],
  ["array.set", [1], [ARRAYREF1, 0x7f, 0x7f], []],
  ["array.len", [], [ARRAYREF1], [0x7f]],
  ["array.fill", [1], [ARRAYREF1, 0x7f, 0x7f, 0x7f], []],
  ["array.copy", [1, 1], [ARRAYREF1, 0x7f, ARRAYREF1, 0x7f, 0x7f], []],
  ["array.init_data", [1, 0], [ARRAYREF1, 0x7f, 0x7f, 0x7f], []],
  ["array.init_elem", [2, 0], [ARRAYREF2, 0x7f, 0x7f, 0x7f], []],
  ["ref.test", [0x6c], [ANYREF], [0x7f]],
  ["ref.test(null)", [0x6c], [ANYREF], [0x7f]],
  ["ref.cast", [0x6c], [ANYREF], [[0x64, 0x6c]]],
  ["ref.cast(null)", [0x6c], [ANYREF], [I31REF]],
  ["br_on_cast", [3, 0, 0x6e, 0x6c], [ANYREF], [ANYREF]],
  ["br_on_cast_fail", [3, 0, 0x6e, 0x6e], [ANYREF], [ANYREF]],
  ["any.convert_extern", [], [0x6f], [ANYREF]],
  ["extern.convert_any", [], [ANYREF], [0x6f]],
  ["ref.i31", [], [0x7f], [I31REF]],
  ["i31.get_s", [], [I31REF], [0x7f]],
  ["i31.get_u", [], [I31REF], [0x7f]],
  ["ref.eq", [], [EQREF, EQREF], [0x7f]],
  ["ref.as_non_null", [], [ANYREF], [[0x64, 0x6e]]],
  ["br_on_null", [0, 0x1a], [ANYREF], []],
  ["br_on_non_null", [0, 0x00], [ANYREF], [[0x64, 0x6e]]],
  ["return_call_ref", [3], [[0x63, 3]], []],
];

Deno.test("V8 accepts and binaryen names every row of prefix fb", async () => {
  const binaryen = await loadBinaryen();
  const covered = new Set(AGGREGATE_USES.map(([name]) => name));
  for (const row of OPCODES) {
    // Both have an earlier encoding of descriptors, behind flags.
    if (row.prefix === 0xfb && row.feature !== "custom-descriptors") assert.ok(covered.has(row.mnemonic), row.mnemonic);
  }
  for (const [name, immediates, params, results] of AGGREGATE_USES) {
    const row = rowByMnemonic(name)!;
    const opcode = row.prefix === 0 ? [row.code] : [row.prefix, row.code];
    const code = [...params.flatMap((_, i) => [0x20, i]), ...opcode, ...immediates];
    const writer = new ByteWriter();
    const plain = moduleOf([{ params: [], results: [], code: [] }], AGGREGATES);
    // The function's type has types of several bytes, so it is written here instead of by moduleOf.
    const type = [0x60, params.length, ...params.flat(), results.length, ...results.flat()];
    const typeBytes = [5, ...AGGREGATES.flat(), 0x60, 0, 0, ...type];
    const typeSectionEnd = 10 + plain[9];
    writer.raw(plain.subarray(0, 8));
    section(writer, 1, typeBytes);
    const codeAt = plain.findIndex((byte, i) => i > typeSectionEnd && byte === 10 && plain[i + 1] === 4);
    writer.raw(plain.subarray(typeSectionEnd, codeAt));
    section(writer, 10, [1, code.length + 2, 0, ...code, 0x0b]);
    writer.raw(plain.subarray(codeAt + 6));
    const bytes = writer.finish();
    assert.ok(WebAssembly.validate(bytes), name);
    const module = binaryen.readBinary(bytes, binaryen.Features.All);
    const text = module.emitText();
    module.dispose();
    assert.ok(text.includes(`(${keywordOf(row.id)}`), `${name}:\n${text}`);
    if (name.includes("(")) assert.match(text, /\(ref\.(test|cast) (\(ref null i31\)|i31ref)/, text);
    else if (name === "ref.test" || name === "ref.cast") assert.match(text, /\(ref\.(test|cast) \(ref i31\)/, text);
  }
});

/** The script without strings, comments and annotations: all remaining words are tokens. */
function tokensOf(script: string): Set<string> {
  const plain = script.replace(/"(?:[^"\\]|\\.)*"|;;[^\n]*|\(;[\s\S]*?;\)/g, " ");
  return new Set(plain.split(/[\s()]+/));
}

/** Dotted words of scripts that are not instructions: patterns of results, and an annotation. */
const NOT_INSTRUCTIONS = new Set([
  "metadata.code.branch_hint",
  "ref.any",
  "ref.array",
  "ref.exn",
  "ref.extern",
  "ref.host",
  "ref.struct",
]);

Deno.test({
  name: `every instruction name of the spec suite is a row${NEEDS_TESTSUITE}`,
  ignore: !HAS_TESTSUITE,
  fn() {
    const used = new Set<string>();
    for (const path of suiteScripts()) for (const token of tokensOf(readFileSync(path, "utf8"))) used.add(token);
    const dotted = [...used].filter((token) => /^[a-z][a-z0-9_]*\.[a-z0-9_.]*$/.test(token));
    assert.ok(dotted.length > 400);
    for (const name of dotted) {
      if (NOT_INSTRUCTIONS.has(name)) continue;
      assert.ok(rowByMnemonic(name) !== undefined, name);
    }
    const standard = OPCODES.filter(({ feature }) => !PROPOSAL_ROWS.some(({ name }) => name === feature));
    const missing = standard.filter((row) => !used.has(keywordOf(row.id))).map((row) => row.mnemonic);
    assert.deepEqual(missing, ["atomic.fence"], "rows that the suite never uses");
  },
});

Deno.test("rowOf(), rowByMnemonic() and idOf() find every row", () => {
  for (const row of OPCODES) {
    assert.equal(OPCODES[row.id], row);
    assert.equal(rowOf(row.prefix, row.code), row);
    assert.equal(rowByMnemonic(row.mnemonic), row);
    if (row.prefix === 0) assert.equal(ID_BY_BYTE[row.code], row.id);
    assert.equal(NATURAL_ALIGN[row.id], row.naturalAlign);
  }
  assert.equal(OPCODES[idOf("select(t)")].code, 0x1c);
  assert.equal(keywordOf(idOf("ref.cast(null)")), "ref.cast");
  for (
    const [prefix, code] of [[0, 0xff], [0xfc, 0x12], [0xfd, 0x9a], [0xfd, 0x114], [0xfe, 0x4f], [0xfa, 0], [
      0xfd,
      0xffffffff,
    ]]
  ) {
    assert.equal(rowOf(prefix, code), undefined);
  }
  assert.equal(rowByMnemonic("i32.nonsense"), undefined);
});

Deno.test("IR operations of rows exist and take as many operands", () => {
  const operations = new Map<string, string>(OP_ROWS.map((row) => [row.name, row.operands]));
  for (const row of OPCODES) {
    if (row.ir === undefined) continue;
    const operands = operations.get(row.ir);
    assert.ok(operands !== undefined, `${row.mnemonic}: ${row.ir}`);
    assert.equal(operands.replaceAll(".", "").length, row.params!.length, row.mnemonic);
  }
});

Deno.test("mistakes in rows are found at load", () => {
  const bad = [
    "6a i32.add - ii_i",
    "6a i32.add - ii_i mvp ADD more",
    "zz i32.add - ii_i mvp",
    "6a i32.add - iix_i mvp",
    "6a i32.add - ii mvp",
    "6a i32.add wrong ii_i mvp",
    "6a i32.add - ii_i nonsense",
    "6a i32.add memarg ii_i mvp",
  ];
  for (const text of bad) assert.throws(() => parseOpcodeRow(text, 0), Bug, text);
  const add = parseOpcodeRow("6a i32.add - ii_i mvp", 0);
  assert.throws(() => indexByName([add, { ...add, id: 1, code: 0x6b }]), /Two opcode rows are named "i32.add"/);
  assert.throws(() => indexByCode([add, { ...add, id: 1, mnemonic: "other" }]), /share a code/);
  assert.throws(() => indexByCode([{ ...add, prefix: 0xf0 }]), /out of range/);
});
