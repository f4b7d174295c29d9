/**
 * Validation of function bodies: valid, invalid and malformed instruction sequences with their messages and offsets,
 * the types of the operands of casts, and bodies of extreme size.
 */
import assert from "node:assert/strict";
import { InvalidError, MalformedError } from "../base/errors.ts";
import { featureSet } from "../settings/features.ts";
import type { Module } from "../wasm/module.ts";
import { EXTERNREF, FUNCREF, HEAP, I32, I64, refType, type ValType } from "../wasm/types.ts";
import { validateBody } from "./code.ts";
import { validateModule } from "./module.ts";
import type { CastOperands } from "./walker.ts";
import { body, type Code, expr, funcType, limits, plain, sampleModule } from "../../tests/support/sample_module.ts";

/**
 * The module around every body below: type 0 [] -> [], type 1 [i32] -> [i32], type 2 [] -> [i64 i32], 3 a struct
 * (mutable i8, i32), 4 a mutable array of i32, 5 an array of funcref; function 0 of type 0, function 1 of type 1,
 * function 2 the body; memory 0 of 32 and memory 1 of 64 bits; table 0 funcref, table 1 externref, 64 bits; global 0
 * i32, global 1 mutable i64; tag 0 [i32].
 */
function moduleOf(code: Code, results: ValType[] = [], locals: number[][] = []): Module {
  const empty = body([]);
  return sampleModule({
    types: [
      plain(funcType()),
      plain(funcType([I32], [I32])),
      plain(funcType([], [I64, I32])),
      plain({ kind: "struct", fields: [{ storage: 0x78, mutable: true }, { storage: I32, mutable: false }] }),
      plain({ kind: "array", field: { storage: I32, mutable: true } }),
      plain({ kind: "array", field: { storage: FUNCREF, mutable: false } }),
      plain(funcType([I32, I32], results)),
      plain(funcType([I32])),
    ],
    funcs: [
      { typeIndex: 0, body: empty },
      { typeIndex: 1, body: body(["local.get", 0]) },
      { typeIndex: 6, body: body(code, locals) },
    ],
    memories: [{ limits: limits(1), shared: false }, { limits: { address: I64, min: 1n }, shared: false }],
    tables: [
      { type: { limits: limits(1), element: FUNCREF } },
      { type: { limits: { address: I64, min: 1n }, element: EXTERNREF } },
    ],
    globals: [
      { type: { type: I32, mutable: false }, init: expr(["i32.const", 0]) },
      { type: { type: I64, mutable: true }, init: expr(["i64.const", 0]) },
    ],
    tags: [{ typeIndex: 7 }],
    exports: [{ name: "f", kind: "func", index: 0, offset: 0 }],
    elems: [{ type: FUNCREF, init: { kind: "exprs", exprs: [] }, mode: { kind: "passive" }, offset: 0 }],
    datas: [{ bytes: new Uint8Array(1), mode: { kind: "passive" }, offset: 0 }],
    dataCount: 1,
  });
}

function check(code: Code, results: ValType[] = [], locals: number[][] = []): void {
  validateModule(moduleOf(code, results, locals), featureSet());
}

const i32 = 0x7f;
const i64 = 0x7e;
const externref = 0x6f;

/** Valid code: name, instructions, results. */
const VALID: readonly [string, Code, ValType[]?][] = [
  ["nothing", []],
  ["arithmetic", ["local.get", 0, "local.get", 1, "i32.add"], [I32]],
  ["unreachable ends in anything", ["unreachable"], [I32]],
  ["operands from nowhere after unreachable", ["unreachable", "i32.add", "i64.extend_i32_s"], [I64]],
  ["one real operand after unreachable", ["unreachable", "i32.const", 0, "i32.add"], [I32]],
  ["several results", ["i64.const", 0, "i32.const", 0], [I64, I32]],
  ["a block with a result", ["block", i32, "i32.const", 1, "end"], [I32]],
  ["a block with parameters", ["i32.const", 1, "block", 1, "i32.eqz", "end"], [I32]],
  ["a loop label takes the parameters", ["i32.const", 1, "loop", 1, "br", 0, "end"], [I32]],
  ["if and else", ["local.get", 0, "if", i32, "i32.const", 1, "else", "i32.const", 2, "end"], [I32]],
  ["if without else passing parameters on", ["i32.const", 1, "local.get", 0, "if", 1, "end"], [I32]],
  ["br to the body", ["i32.const", 1, "br", 0], [I32]],
  ["br_if keeps operands", ["i32.const", 1, "local.get", 0, "br_if", 0], [I32]],
  ["br_table", ["block", i32, "i32.const", 1, "local.get", 0, "br_table", 2, 0, 1, 0, "end"], [I32]],
  ["return", ["i32.const", 1, "return"], [I32]],
  ["call", ["local.get", 0, "call", 1], [I32]],
  ["call_indirect", ["local.get", 0, "i32.const", 0, "call_indirect", 1, 0], [I32]],
  ["call_ref", ["local.get", 0, "ref.null", 1, "call_ref", 1], [I32]],
  ["return_call", ["local.get", 0, "return_call", 1], [I32]],
  ["select", ["i64.const", 1, "i64.const", 2, "i32.const", 0, "select"], [I64]],
  ["select of a reference", ["ref.null", 0x70, "ref.null", 0x70, "i32.const", 0, "select(t)", 1, 0x70], [FUNCREF]],
  ["load", ["i32.const", 0, "i32.load", 2, 0], [I32]],
  ["load in a 64-bit memory", ["i64.const", 0, "i32.load", 0x42, 1, 0], [I32]],
  ["an offset over 32 bits in a 64-bit memory", ["i64.const", 0, "i32.load", 0x42, 1, 0x80, 0x80, 0x80, 0x80, 0x10], [
    I32,
  ]],
  ["memory.size has the address type", ["memory.size", 1], [I64]],
  ["memory.copy between address types", ["i32.const", 0, "i64.const", 0, "i32.const", 0, "memory.copy", 0, 1]],
  ["memory.fill of 64 bits", ["i64.const", 0, "i32.const", 0, "i64.const", 0, "memory.fill", 1]],
  ["memory.init", ["i64.const", 0, "i32.const", 0, "i32.const", 0, "memory.init", 0, 1, "data.drop", 0]],
  ["table.get of 64 bits", ["i64.const", 0, "table.get", 1], [EXTERNREF]],
  ["table.grow", ["ref.null", 0x6f, "i64.const", 0, "table.grow", 1], [I64]],
  ["table.size", ["table.size", 1], [I64]],
  ["table.init", ["i32.const", 0, "i32.const", 0, "i32.const", 0, "table.init", 0, 0, "elem.drop", 0]],
  ["shuffle", [
    ...["v128.const", ...new Array(16).fill(0), "v128.const", ...new Array(16).fill(0)],
    ...["i8x16.shuffle", 0, 31, ...new Array(14).fill(1), "drop"],
  ]],
  ["lanes", ["v128.const", ...new Array(16).fill(0), "i16x8.extract_lane_s", 7], [I32]],
  ["ref.func of a declared function", ["ref.func", 0], [FUNCREF]],
  ["ref.as_non_null", ["ref.null", 0x70, "ref.as_non_null"], [refType(false, HEAP.func)]],
  ["struct.get_s of a packed field", ["ref.null", 3, "struct.get_s", 3, 0], [I32]],
  ["struct.new", ["i32.const", 1, "i32.const", 2, "struct.new", 3, "drop"]],
  ["array.new_fixed", ["i32.const", 1, "i32.const", 2, "array.new_fixed", 4, 2, "array.len"], [I32]],
  ["array.new_fixed of nothing but unreachable code", ["unreachable", "array.new_fixed", 4, 5, "drop"]],
  ["ref.cast", ["ref.null", 0x6e, "ref.cast", 3, "drop"]],
  ["br_on_cast", [
    "block",
    0x63,
    3,
    "ref.null",
    0x6e,
    "br_on_cast",
    3,
    0,
    0x6e,
    3,
    "drop",
    "ref.null",
    3,
    "end",
    "drop",
  ]],
  ["i31", ["i32.const", 1, "ref.i31", "i31.get_u"], [I32]],
  ["any.convert_extern keeps null out", ["ref.null", 0x6f, "ref.as_non_null", "any.convert_extern"], [
    refType(false, HEAP.any),
  ]],
  ["throw", ["i32.const", 1, "throw", 0], [I64]],
  ["try_table", ["block", i32, "try_table", 0x40, 1, 0, 0, 0, "end", "i32.const", 1, "end"], [I32]],
  ["try, catch, catch_all", ["try", i32, "i32.const", 1, "catch", 0, "catch_all", "i32.const", 3, "end"], [I32]],
  ["try, delegate to the body", ["try", 0x40, "delegate", 0]],
  ["rethrow", ["try", 0x40, "catch_all", "rethrow", 0, "end"]],
];

for (const [what, code, results] of VALID) {
  Deno.test(`valid: ${what}`, () => check(code, results ?? []));
}

const needs = (wanted: string, found: string) =>
  `type mismatch: instruction requires [${wanted}] but stack has [${found}]`;

/** Invalid code: name, instructions, results, the beginning of the message. */
const INVALID: readonly [string, Code, ValType[], string][] = [
  ["an operand too few", ["i32.const", 0, "i32.add"], [I32], needs("i32 i32", "i32")],
  ["an operand of another type", ["i32.const", 0, "i64.const", 0, "i32.add"], [I32], needs("i32 i32", "i32 i64")],
  [
    "a store with another type",
    ["i32.const", 0, "f32.const", 0, 0, 0, 0, "i32.store", 0, 0],
    [],
    needs("i32 i32", "i32 f32"),
  ],
  [
    "a wrong real operand in unreachable code",
    ["unreachable", "i64.const", 0, "i32.add"],
    [I32],
    needs("i32 i32", "... i64"),
  ],
  ["operands of the frame outside", ["i32.const", 0, "block", 0x40, "i32.eqz", "drop", "end"], [], needs("i32", "")],
  ["a missing result", [], [I32], needs("i32", "")],
  ["a result too many", ["i32.const", 0], [], "type mismatch: block requires [] but stack has [i32]"],
  ["a wrong result", ["i64.const", 0], [I32], needs("i32", "i64")],
  [
    "a value left in a block",
    ["block", 0x40, "i32.const", 0, "end"],
    [],
    "type mismatch: block requires [] but stack has [i32]",
  ],
  [
    "a value left after unreachable",
    ["unreachable", "i32.const", 0],
    [],
    "type mismatch: block requires [] but stack has [i32]",
  ],
  [
    "if with a result and no else",
    ["local.get", 0, "if", i32, "i32.const", 0, "end"],
    [I32],
    "type mismatch: if without else has [] but requires [i32]",
  ],
  ["if without condition", ["if", 0x40, "end"], [], needs("i32", "")],
  ["an unknown local", ["local.get", 2], [I32], "unknown local 2"],
  ["an unknown local to set", ["i32.const", 0, "local.set", 9], [], "unknown local 9"],
  ["local.set of another type", ["i64.const", 0, "local.set", 0], [], needs("i32", "i64")],
  ["local.tee of nothing", ["local.tee", 0], [I32], needs("i32", "")],
  ["an unknown global", ["global.get", 2], [I32], "unknown global 2"],
  ["an immutable global", ["i32.const", 0, "global.set", 0], [], "immutable global 0"],
  ["an unknown function", ["call", 3], [], "unknown function 3"],
  ["an unknown type", ["i32.const", 0, "call_indirect", 9, 0], [], "unknown type 9"],
  ["an unknown table", ["i32.const", 0, "call_indirect", 0, 2], [], "unknown table 2"],
  [
    "call_indirect through externref",
    ["i64.const", 0, "call_indirect", 0, 1],
    [],
    "type mismatch: table 1 has elements externref",
  ],
  [
    "call_indirect of a struct type",
    ["i32.const", 0, "call_indirect", 3, 0],
    [],
    "type mismatch: type 3 is not a function type",
  ],
  ["a block type that does not exist", ["block", 9, "end"], [], "unknown type 9"],
  ["a block type of a struct", ["block", 3, "end"], [], "type mismatch: type 3 is not a function type"],
  ["a block's missing parameter", ["block", 1, "end", "drop"], [], needs("i32", "")],
  ["an unknown label", ["br", 1], [], "unknown label 1"],
  ["an unknown label in br_table", ["local.get", 0, "br_table", 1, 5, 0], [], "unknown label 5"],
  ["an unknown default label", ["local.get", 0, "br_table", 1, 0, 6], [], "unknown label 6"],
  [
    "labels of different arity",
    ["block", i32, "i32.const", 0, "local.get", 0, "br_table", 1, 0, 1, "end", "drop"],
    [],
    "type mismatch: label 0 takes 1 values, the default label takes 0",
  ],
  [
    "a label of another type",
    ["block", i64, "i32.const", 0, "local.get", 0, "br_table", 1, 0, 1, "end", "drop", "i32.const", 0],
    [I32],
    needs("i64", "i32"),
  ],
  [
    "a tail call with other results",
    ["i32.const", 0, "return_call", 1],
    [I64],
    "type mismatch: function requires [i64] but callee returns [i32]",
  ],
  [
    "select of different types",
    ["i32.const", 0, "i64.const", 0, "i32.const", 0, "select", "drop"],
    [],
    "type mismatch: select requires equal types but stack has [i32 i64]",
  ],
  [
    "select of references without a type",
    ["ref.null", 0x70, "ref.null", 0x70, "i32.const", 0, "select", "drop"],
    [],
    "type mismatch: select without a type",
  ],
  [
    "select with no type",
    ["i32.const", 0, "i32.const", 0, "i32.const", 0, "select(t)", 0, "drop"],
    [],
    "invalid result arity",
  ],
  ["select with two types", ["unreachable", "select(t)", 2, i32, i32], [], "invalid result arity"],
  [
    "too large an alignment",
    ["i32.const", 0, "i32.load", 3, 0, "drop"],
    [],
    "alignment must not be larger than natural",
  ],
  [
    "too large an alignment, 2^63",
    ["i32.const", 0, "i32.load", 0x3f, 0, "drop"],
    [],
    "alignment must not be larger than natural",
  ],
  [
    "an atomic alignment too small",
    ["i32.const", 0, "i32.atomic.load", 1, 0, "drop"],
    [],
    "atomic alignment must be natural",
  ],
  [
    "an offset over 32 bits",
    ["i32.const", 0, "i32.load", 2, 0x80, 0x80, 0x80, 0x80, 0x10, "drop"],
    [],
    "offset out of range: 4294967296",
  ],
  ["an unknown memory", ["i32.const", 0, "i32.load", 0x42, 2, 0, "drop"], [], "unknown memory 2"],
  ["memory.grow of an unknown memory", ["i32.const", 0, "memory.grow", 7, "drop"], [], "unknown memory 7"],
  ["a 32-bit address in a 64-bit memory", ["i32.const", 0, "i32.load", 0x42, 1, 0, "drop"], [], needs("i64", "i32")],
  [
    "a copy's length of the wrong type",
    ["i32.const", 0, "i64.const", 0, "i64.const", 0, "memory.copy", 0, 1],
    [],
    needs("i32 i64 i32", "i32 i64 i64"),
  ],
  ["an unknown data segment", ["data.drop", 1], [], "unknown data segment 1"],
  ["an unknown elem segment", ["elem.drop", 4], [], "unknown elem segment 4"],
  [
    "table.copy between types",
    ["i32.const", 0, "i64.const", 0, "i32.const", 0, "table.copy", 0, 1],
    [],
    "type mismatch: table 1 has elements externref",
  ],
  [
    "table.init of another type",
    ["i64.const", 0, "i32.const", 0, "i32.const", 0, "table.init", 0, 1],
    [],
    "type mismatch: elem segment 0 has elements funcref",
  ],
  [
    "a lane too high",
    ["v128.const", ...new Array(16).fill(0), "i16x8.extract_lane_s", 8, "drop"],
    [],
    "invalid lane index 8",
  ],
  [
    "a shuffle lane too high",
    ["unreachable", "i8x16.shuffle", 32, ...new Array(15).fill(0), "drop"],
    [],
    "invalid lane index 32",
  ],
  ["ref.func of an undeclared function", ["ref.func", 1, "drop"], [], "undeclared function reference 1"],
  ["ref.func of an unknown function", ["ref.func", 8, "drop"], [], "unknown function 8"],
  ["ref.null of an unknown type", ["ref.null", 9, "drop"], [], "unknown type 9"],
  [
    "ref.is_null of a number",
    ["i32.const", 0, "ref.is_null", "drop"],
    [],
    "type mismatch: instruction requires a reference type but stack has [i32]",
  ],
  [
    "a reference from nowhere is not a number",
    ["unreachable", "ref.as_non_null", "f32.abs"],
    [],
    needs("f32", "(ref bot)"),
  ],
  ["struct.get of a packed field", ["ref.null", 3, "struct.get", 3, 0, "drop"], [], "type mismatch: field 0 is packed"],
  [
    "struct.get_s of a whole field",
    ["ref.null", 3, "struct.get_s", 3, 1, "drop"],
    [],
    "type mismatch: field 1 is not packed",
  ],
  ["an unknown field", ["ref.null", 3, "struct.get", 3, 2, "drop"], [], "unknown field 2"],
  ["an immutable field", ["ref.null", 3, "i32.const", 0, "struct.set", 3, 1], [], "immutable field 1"],
  ["struct.new with a field too few", ["i32.const", 0, "struct.new", 3, "drop"], [], needs("i32 i32", "i32")],
  ["struct.new of an array type", ["struct.new", 4, "drop"], [], "type mismatch: type 4 is not a structure type"],
  ["an immutable array", ["ref.null", 5, "i32.const", 0, "ref.null", 0x70, "array.set", 5], [], "immutable array"],
  [
    "array.new_data of references",
    ["i32.const", 0, "i32.const", 0, "array.new_data", 5, 0, "drop"],
    [],
    "array type is not numeric or vector",
  ],
  ["array.copy between types", ["unreachable", "array.copy", 4, 5], [], "array types do not match"],
  [
    "array.new_fixed of too many",
    ["unreachable", "array.new_fixed", 4, 0xff, 0xff, 0xff, 0xff, 0x0f, "drop"],
    [],
    "too many array elements: 4294967295",
  ],
  ["a cast that leaves its hierarchy", ["ref.null", 0x70, "ref.cast", 3, "drop"], [], needs("anyref", "funcref")],
  [
    "br_on_cast upwards",
    ["block", 0x63, 3, "ref.null", 3, "br_on_cast", 3, 0, 3, 0x6e, "end", "drop"],
    [],
    "type mismatch: cast from (ref null 3) to anyref can never succeed",
  ],
  [
    "br_on_non_null to a label without a reference",
    ["ref.null", 0x70, "br_on_non_null", 0],
    [],
    "type mismatch: label 0 does not end in a reference type",
  ],
  ["i31.get of an array", ["ref.null", 4, "i31.get_s", "drop"], [], needs("i31ref", "(ref null 4)")],
  ["an unknown tag", ["throw", 1], [], "unknown tag 1"],
  ["throw without payload", ["throw", 0], [], needs("i32", "")],
  [
    "a catch clause to a label of another type",
    ["try_table", 0x40, 1, 0, 0, 0, "end"],
    [],
    "type mismatch: catch clause carries [i32] but label 0 takes []",
  ],
  ["rethrow outside of a catch", ["try", 0x40, "rethrow", 0, "catch_all", "end"], [], "invalid rethrow label 0"],
  ["delegate to no label", ["try", 0x40, "delegate", 1], [], "unknown label 1"],
];

for (const [what, code, results, message] of INVALID) {
  Deno.test(`invalid: ${what}`, () => {
    assert.throws(() => check(code, results), (error) => {
      assert.ok(error instanceof InvalidError, String(error));
      assert.equal(error.message.slice(0, message.length), message);
      assert.ok(error.place.offset! > 0x1000);
      return true;
    });
  });
}

/** Instructions that are not allowed at their place. */
const MALFORMED: readonly [string, Code, string][] = [
  ["else without if", ["else"], "END opcode expected: misplaced else in function 2"],
  ["a second else", ["local.get", 0, "if", 0x40, "else", "else", "end"], "END opcode expected: misplaced else"],
  ["catch without try", ["catch", 0], "END opcode expected: misplaced catch"],
  ["catch after catch_all", ["try", 0x40, "catch_all", "catch", 0, "end"], "END opcode expected: misplaced catch"],
  ["delegate after catch", ["try", 0x40, "catch_all", "delegate", 0], "END opcode expected: misplaced delegate"],
  ["an end too few", ["block", 0x40], "END opcode expected"],
  ["code after the last end", ["end", "nop"], "section size mismatch"],
  ["an illegal opcode", [0xff], "illegal opcode ff"],
];

for (const [what, code, message] of MALFORMED) {
  Deno.test(`malformed: ${what}`, () => {
    assert.throws(() => check(code), (error) => {
      assert.ok(error instanceof MalformedError, String(error));
      assert.equal(error.message.slice(0, message.length), message);
      return true;
    });
  });
}

Deno.test("the offset of an error is that of the instruction", () => {
  // Body at 0x1000: locals count, nop, nop, then the faulty call.
  assert.throws(() => check(["nop", "nop", "call", 9]), (error) => {
    assert.ok(error instanceof InvalidError);
    assert.equal(error.place.offset, 0x1003);
    assert.equal(error.message, "unknown function 9 (call in function 2)");
    return true;
  });
});

Deno.test("locals without a default value must be set before they are read, per frame", () => {
  const locals = [[1, 0x64, externref]]; // (local (ref extern)) is local 2
  const set: Code = ["ref.null", 0x6f, "ref.as_non_null", "local.set", 2];
  const get: Code = ["local.get", 2, "drop"];
  check([...set, ...get], [], locals);
  check([...set, "block", 0x40, ...get, "end", ...get], [], locals);
  check(["block", 0x40, ...set, ...get, "end", ...set, ...get], [], locals);
  const bad: Code[] = [
    get,
    ["block", 0x40, ...set, "end", ...get],
    ["local.get", 0, "if", 0x40, ...set, "else", ...get, "end"],
    ["local.get", 0, "if", 0x40, ...set, "else", ...set, "end", ...get],
    ["try", 0x40, ...set, "catch_all", ...get, "end"],
  ];
  for (const code of bad) {
    assert.throws(() => check(code, [], locals), /^InvalidError: uninitialized local 2 of type \(ref extern\)/);
  }
});

Deno.test("too many locals, and locals of unknown types", () => {
  assert.throws(() => check([], [], [[0xff, 0xff, 0xff, 0xff, 0x0f, i32]]), /^MalformedError: too many locals/);
  assert.throws(() => check([], [], [[1, 0x63, 9]]), /^InvalidError: unknown type 9/);
});

Deno.test("a data segment needs the data count section in the binary format", () => {
  const module = moduleOf(["data.drop", 0]);
  delete module.dataCount;
  assert.throws(() => validateModule(module, featureSet()), /^MalformedError: data count section required/);
  module.datas = [];
  assert.throws(() => validateModule(module, featureSet()), /^InvalidError: unknown data segment 0/);
});

Deno.test("the static types of the operands of casts are recorded in order", () => {
  const any = 0x6e, i31 = 0x6c, none = 0x71;
  const code: Code = [
    ...["local.get", 0, "ref.i31", "ref.test", any, "drop"],
    ...["ref.null", none, "ref.cast(null)", i31, "drop"],
    ...["ref.null", any, "br_on_cast", 1, 0, any, i31, "drop", "unreachable", "ref.test(null)", any, "drop"],
  ];
  const valid = validateModule(moduleOf(code, [refType(true, HEAP.i31)]), featureSet(), { bodies: false });
  const casts: CastOperands = { at: [], heap: [], isNullable: [] };
  validateBody(valid, 2, casts);
  const { offset } = valid.funcs[2].body;
  assert.deepEqual(casts.at.map((at) => at - offset), [5, 11, 25]);
  assert.deepEqual(casts.heap.slice(0, 2), [HEAP.i31, HEAP.none]);
  assert.deepEqual(casts.isNullable.slice(0, 2), [0, 1]);
});

Deno.test("a million nested blocks, ended and not ended", () => {
  const depth = 1_000_000;
  const bytes = new Uint8Array(1 + 3 * depth + 1);
  for (let i = 0; i < depth; i++) bytes.set([i % 3 === 0 ? 0x03 : 0x02, 0x40], 1 + 2 * i);
  bytes.fill(0x0b, 1 + 2 * depth);
  const module = moduleOf([]);
  module.funcs[2] = { typeIndex: 6, body: { bytes, offset: 0 } };
  validateModule(module, featureSet());
  module.funcs[2] = { typeIndex: 6, body: { bytes: bytes.subarray(0, bytes.length - 1), offset: 0 } };
  assert.throws(() => validateModule(module, featureSet()), /^MalformedError: END opcode expected/);
  bytes.fill(0x02, 1 + 2 * depth);
  assert.throws(() => validateModule(module, featureSet()), MalformedError);
});

Deno.test("a br_table with very many labels is checked once per label", () => {
  const labels = 500_000;
  const code: (string | number)[] = ["block", 0x40, "block", 0x40, "local.get", 0, "br_table"];
  code.push((labels & 0x7f) | 0x80, ((labels >> 7) & 0x7f) | 0x80, labels >> 14);
  for (let i = 0; i <= labels; i++) code.push(i & 1);
  check([...code, "end", "end"]);
});
