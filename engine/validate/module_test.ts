/**
 * Validation of modules: every rule of a section with a module that breaks it, the limits, and the derived tables.
 */
import assert from "node:assert/strict";
import { InvalidError, MalformedError } from "../base/errors.ts";
import { featureSet } from "../settings/features.ts";
import type { Module } from "../wasm/module.ts";
import { EXTERNREF, F32, FUNCREF, HEAP, I32, I64, refType, type SubType } from "../wasm/types.ts";
import { MAX_FIELDS, MAX_PARAMS, MAX_RESULTS } from "./limits.ts";
import { validateModule } from "./module.ts";
import { body, expr, funcType, limits, plain, sampleModule } from "../../tests/support/sample_module.ts";

const nothing = plain(funcType());
const empty = { typeIndex: 0, body: body([]) };
const memory = { limits: limits(1), shared: false };
const table = { type: { limits: limits(1), element: FUNCREF } };
const constant = (type: number, ...code: (string | number)[]) => ({ type: { type, mutable: false }, init: expr(code) });
const open = (type: SubType, ...supertypes: number[]): SubType => ({ ...type, final: false, supertypes });
const exported = (name: string, kind: "func" | "table" | "memory" | "global" | "tag", index: number) => {
  return { name, kind, index, offset: 7 };
};
const struct = (...storages: number[]): SubType => {
  return plain({ kind: "struct", fields: storages.map((storage) => ({ storage, mutable: false })) });
};

const wide = (min: bigint, max?: bigint) => ({ address: I64, min, ...(max === undefined ? {} : { max }) }) as const;

/** Invalid modules: name, module, the beginning of the message. */
const INVALID: readonly [string, Partial<Module>, string][] = [
  ["a function of an unknown type", { funcs: [{ typeIndex: 3, body: body([]) }] }, "unknown type 3"],
  [
    "a function of a struct type",
    { types: [struct()], funcs: [empty] },
    "type mismatch: type 0 is not a function type",
  ],
  ["an imported function of an unknown type", {
    imports: [{ module: "m", name: "n", desc: { kind: "func", typeIndex: 1 }, offset: 9 }],
  }, "unknown type 1"],
  [
    "a tag with results",
    { types: [plain(funcType([], [I32]))], tags: [{ typeIndex: 0 }] },
    "non-empty tag result type",
  ],
  ["a tag of an unknown type", { tags: [{ typeIndex: 0 }] }, "unknown type 0"],
  ["a global of an unknown type", { globals: [constant(refType(true, 4), "ref.null", 4)] }, "unknown type 4"],
  [
    "a table of an unknown type",
    { tables: [{ type: { limits: limits(0), element: refType(true, 4) } }] },
    "unknown type 4",
  ],
  ["an exported function that is not there", { exports: [exported("f", "func", 0)] }, "unknown function 0"],
  ["an exported table that is not there", { exports: [exported("f", "table", 2)] }, "unknown table 2"],
  [
    "an exported memory that is not there",
    { exports: [exported("f", "memory", 1)], memories: [memory] },
    "unknown memory 1",
  ],
  ["an exported global that is not there", { exports: [exported("f", "global", 1)] }, "unknown global 1"],
  ["an exported tag that is not there", { exports: [exported("f", "tag", 1)] }, "unknown tag 1"],
  ["two exports of one name", {
    memories: [memory],
    tables: [table],
    exports: [exported("", "memory", 0), exported("", "table", 0)],
  }, 'duplicate export name ""'],
  ["a start function that is not there", { start: 0 }, "unknown function 0"],
  [
    "a start function with a parameter",
    { types: [plain(funcType([I32]))], funcs: [empty], start: 0 },
    "start function 0",
  ],
  [
    "a memory beyond 4 GiB",
    { memories: [{ limits: limits(65537), shared: false }] },
    "memory size must be at most 65536 pages (4GiB): minimum 65537",
  ],
  [
    "a memory maximum beyond 4 GiB",
    { memories: [{ limits: limits(0, 65537), shared: false }] },
    "memory size must be at most 65536 pages (4GiB): maximum 65537",
  ],
  [
    "a memory beyond 2^64 bytes",
    { memories: [{ limits: wide(2n ** 48n + 1n), shared: false }] },
    "memory size must be at most 2^48 pages",
  ],
  [
    "a memory with more at least than at most",
    { memories: [{ limits: limits(2, 1), shared: false }] },
    "size minimum must not be greater than maximum: 2 and 1",
  ],
  [
    "a shared memory without maximum",
    { memories: [{ limits: limits(1), shared: true }] },
    "shared memory must have maximum",
  ],
  [
    "a table beyond 32 bits",
    { tables: [{ type: { limits: limits(2 ** 32), element: FUNCREF } }] },
    "table size must be at most 2^32-1: minimum 4294967296",
  ],
  [
    "a table with more at least than at most",
    { tables: [{ type: { limits: wide(5n, 4n), element: FUNCREF } }] },
    "size minimum must not be greater than maximum: 5 and 4",
  ],
  ["a table without the value it needs", {
    tables: [{ type: { limits: limits(1), element: refType(false, HEAP.func) } }],
  }, "type mismatch: table of (ref func) needs an initial value"],
  ["a table whose value is of another type", {
    tables: [{ type: { limits: limits(1), element: FUNCREF }, init: expr(["ref.null", 0x6f]) }],
  }, "type mismatch: instruction requires [funcref] but stack has [externref]"],
  ["a table that reads a global of the module", {
    tables: [{ type: { limits: limits(1), element: FUNCREF }, init: expr(["global.get", 0]) }],
    globals: [constant(FUNCREF, "ref.null", 0x70)],
  }, "unknown global 0"],
  [
    "a global of another type",
    { globals: [constant(I32, "i64.const", 1)] },
    "type mismatch: instruction requires [i32] but stack has [i64]",
  ],
  [
    "a global without value",
    { globals: [constant(I32)] },
    "type mismatch: instruction requires [i32] but stack has []",
  ],
  [
    "a global with two values",
    { globals: [constant(I32, "i32.const", 1, "i32.const", 1)] },
    "type mismatch: block requires [i32] but stack has [i32 i32]",
  ],
  ["a global that reads itself", { globals: [constant(I32, "global.get", 0)] }, "unknown global 0"],
  [
    "a global that reads a later one",
    { globals: [constant(I32, "global.get", 1), constant(I32, "i32.const", 1)] },
    "unknown global 1",
  ],
  ["a global that reads a mutable one", {
    globals: [{ type: { type: I32, mutable: true }, init: expr(["i32.const", 1]) }, constant(I32, "global.get", 0)],
  }, "constant expression required: global 0 is mutable"],
  [
    "a global that computes",
    { globals: [constant(I32, "i32.const", 1, "i32.eqz")] },
    "constant expression required: i32.eqz is not constant",
  ],
  [
    "a global that does nothing",
    { globals: [constant(I32, "nop", "i32.const", 1)] },
    "constant expression required: nop is not constant",
  ],
  [
    "a global with a block",
    { globals: [constant(I32, "block", 0x7f, "i32.const", 1, "end")] },
    "constant expression required: block is not constant",
  ],
  ["a global of an unknown function", { globals: [constant(FUNCREF, "ref.func", 0)] }, "unknown function 0"],
  ["elements for a table that is not there", {
    elems: [{
      type: FUNCREF,
      init: { kind: "funcs", indices: [] },
      mode: { kind: "active", table: 0, start: expr(["i32.const", 0]) },
      offset: 7,
    }],
  }, "unknown table 0"],
  ["elements of another type than the table", {
    tables: [table],
    elems: [{
      type: EXTERNREF,
      init: { kind: "exprs", exprs: [] },
      mode: { kind: "active", table: 0, start: expr(["i32.const", 0]) },
      offset: 7,
    }],
  }, "type mismatch: elem segment has elements externref, table 0 requires funcref"],
  ["elements that are not functions", {
    elems: [{ type: FUNCREF, init: { kind: "funcs", indices: [3] }, mode: { kind: "passive" }, offset: 7 }],
  }, "unknown function 3"],
  ["elements of a narrower type", {
    types: [nothing, plain(funcType([I32]))],
    funcs: [empty],
    elems: [{ type: refType(false, 1), init: { kind: "funcs", indices: [0] }, mode: { kind: "passive" }, offset: 7 }],
  }, "type mismatch: function 0 is not an element of type (ref 1)"],
  ["an element expression of another type", {
    elems: [{
      type: FUNCREF,
      init: { kind: "exprs", exprs: [expr(["ref.null", 0x6f])] },
      mode: { kind: "passive" },
      offset: 7,
    }],
  }, "type mismatch: instruction requires [funcref] but stack has [externref]"],
  ["an element offset of another type", {
    tables: [table],
    elems: [{
      type: FUNCREF,
      init: { kind: "funcs", indices: [] },
      mode: { kind: "active", table: 0, start: expr(["i64.const", 0]) },
      offset: 7,
    }],
  }, "type mismatch: instruction requires [i32] but stack has [i64]"],
  ["data for a memory that is not there", {
    datas: [{
      bytes: new Uint8Array(0),
      mode: { kind: "active", memory: 0, start: expr(["i32.const", 0]) },
      offset: 7,
    }],
  }, "unknown memory 0"],
  ["a data offset of another type", {
    memories: [{ limits: wide(1n), shared: false }],
    datas: [{
      bytes: new Uint8Array(0),
      mode: { kind: "active", memory: 0, start: expr(["i32.const", 0]) },
      offset: 7,
    }],
  }, "type mismatch: instruction requires [i64] but stack has [i32]"],
  ["a type that refers to a later group", { types: [plain(funcType([refType(true, 1)])), nothing] }, "unknown type 1"],
  ["a subtype of a final type", { types: [nothing, open(nothing, 0)] }, "sub type 1 has final supertype 0"],
  [
    "a subtype that does not match",
    { types: [open(struct(I32)), open(struct(F32), 0)] },
    "sub type 1 does not match super type 0",
  ],
  [
    "a subtype of another kind",
    { types: [open(struct()), open(nothing, 0)] },
    "sub type 1 does not match super type 0",
  ],
  [
    "too many parameters",
    { types: [plain(funcType(new Array(MAX_PARAMS + 1).fill(I32)))] },
    "too many parameters: 1001",
  ],
  [
    "too many results",
    { types: [plain(funcType([], new Array(MAX_RESULTS + 1).fill(I32)))] },
    "too many results: 1001",
  ],
  ["too many fields", { types: [struct(...new Array<number>(MAX_FIELDS + 1).fill(I32))] }, "too many fields: 10001"],
];

for (const [what, fields, message] of INVALID) {
  Deno.test(`invalid module: ${what}`, () => {
    assert.throws(() => validateModule(sampleModule(fields), featureSet()), (error) => {
      assert.ok(error instanceof InvalidError, String(error));
      assert.equal(error.message.slice(0, message.length), message);
      return true;
    });
  });
}

const VALID: readonly [string, Partial<Module>][] = [
  ["nothing", {}],
  ["the largest memory and table", {
    memories: [{ limits: limits(65536, 65536), shared: false }],
    tables: [{ type: { limits: limits(2 ** 32 - 1, 2 ** 32 - 1), element: FUNCREF } }],
  }],
  ["the largest 64-bit memory and table", {
    memories: [{ limits: wide(2n ** 48n), shared: false }],
    tables: [{ type: { limits: wide(2n ** 64n - 1n), element: FUNCREF } }],
  }],
  ["as many parameters and results as can be", {
    types: [plain(funcType(new Array(MAX_PARAMS).fill(I32), new Array(MAX_RESULTS).fill(I32)))],
  }],
  ["a global that reads the one before", {
    globals: [constant(I32, "i32.const", 1), constant(I32, "global.get", 0, "i32.const", 1, "i32.sub")],
  }],
  ["an imported global read by a table", {
    imports: [{ module: "m", name: "g", desc: { kind: "global", type: { type: FUNCREF, mutable: false } }, offset: 0 }],
    tables: [{ type: table.type, init: expr(["global.get", 0]) }],
  }],
  ["a structure as a global", {
    types: [struct(I32, I64)],
    globals: [constant(refType(false, 0), "i32.const", 1, "i64.const", 2, "struct.new", 0)],
  }],
  ["a subtype with a field more", { types: [open(struct(I32)), open(struct(I32, F32), 0)] }],
];

for (const [what, fields] of VALID) {
  Deno.test(`valid module: ${what}`, () => {
    validateModule(sampleModule(fields), featureSet());
  });
}

Deno.test("tables of a valid module: imports first, then definitions", () => {
  const at = { module: "m", offset: 0 };
  const valid = validateModule(
    sampleModule({
      types: [nothing, plain(funcType([I32], [I64])), nothing],
      imports: [
        { ...at, name: "f", desc: { kind: "func", typeIndex: 1 } },
        { ...at, name: "g", desc: { kind: "global", type: { type: F32, mutable: true } } },
        { ...at, name: "t", desc: { kind: "table", type: { limits: limits(3), element: EXTERNREF } } },
        { ...at, name: "m", desc: { kind: "memory", type: { limits: limits(3), shared: false } } },
        { ...at, name: "e", desc: { kind: "tag", type: { typeIndex: 2 } } },
      ],
      funcs: [empty, { typeIndex: 2, body: body([]) }],
      tables: [table],
      memories: [memory],
      globals: [constant(FUNCREF, "ref.func", 1)],
      tags: [{ typeIndex: 0 }],
    }),
    featureSet(),
  );
  assert.deepEqual([...valid.funcTypeIndices], [1, 0, 2]);
  assert.equal(valid.funcTypes[0], valid.types[1].composite);
  assert.deepEqual(valid.globalTypes.map((type) => type.type), [F32, FUNCREF]);
  assert.deepEqual(valid.tableTypes.map((type) => type.element), [EXTERNREF, FUNCREF]);
  assert.deepEqual(valid.memoryTypes.map((type) => type.limits.min), [3n, 1n]);
  assert.deepEqual([...valid.tagTypeIndices], [2, 0]);
  assert.equal(valid.tagTypes.length, 2);
  const { importedFuncCount, importedGlobalCount, importedTableCount, importedMemoryCount, importedTagCount } = valid;
  const counts = [importedFuncCount, importedGlobalCount, importedTableCount, importedMemoryCount, importedTagCount];
  assert.deepEqual(counts, [1, 1, 1, 1, 1]);
  assert.deepEqual([...valid.declaredFuncs], [0, 1, 0]);
  assert.equal(valid.canonicalIds[0], valid.canonicalIds[2]);
  assert.notEqual(valid.canonicalIds[0], valid.canonicalIds[1]);
});

Deno.test("functions are declared by exports, elements and constant expressions, not by bodies or start", () => {
  const valid = validateModule(
    sampleModule({
      types: [nothing],
      funcs: new Array(6).fill(empty),
      globals: [constant(FUNCREF, "ref.func", 0)],
      exports: [exported("a", "func", 1)],
      elems: [
        { type: FUNCREF, init: { kind: "funcs", indices: [2] }, mode: { kind: "declarative" }, offset: 0 },
        {
          type: FUNCREF,
          init: { kind: "exprs", exprs: [expr(["ref.func", 3])] },
          mode: { kind: "passive" },
          offset: 0,
        },
      ],
      start: 4,
    }),
    featureSet(),
  );
  assert.deepEqual([...valid.declaredFuncs], [1, 1, 1, 1, 0, 0]);
});

Deno.test("bodies are validated unless the caller does that", () => {
  const module = sampleModule({ types: [nothing], funcs: [{ typeIndex: 0, body: body(["i32.add"]) }] });
  validateModule(module, featureSet(), { bodies: false });
  assert.throws(() => validateModule(module, featureSet(), { bodies: true }), InvalidError);
  assert.throws(() => validateModule(module, featureSet()), InvalidError);
});

Deno.test("bytes after a constant expression's end", () => {
  const init = { bytes: Uint8Array.of(0x41, 0, 0x0b, 0x01), offset: 0x20 };
  assert.throws(
    () => validateModule(sampleModule({ globals: [{ type: { type: I32, mutable: false }, init }] }), featureSet()),
    (error) => error instanceof MalformedError && error.place.offset === 0x23,
  );
});

Deno.test("errors have an offset: the import's, the export's, the instruction's", () => {
  const where = (fields: Partial<Module>) => {
    try {
      validateModule(sampleModule(fields), featureSet());
    } catch (error) {
      if (error instanceof InvalidError) return error.where;
      throw error;
    }
  };
  const desc = { kind: "func", typeIndex: 1 } as const;
  assert.equal(where({ imports: [{ module: "m", name: "n", desc, offset: 0x1f }] }), "at offset 0x1f");
  assert.equal(where({ exports: [exported("f", "func", 0)] }), "at offset 0x7");
  assert.equal(where({ globals: [constant(I32, "i32.const", 0, "nop")] }), "at offset 0x202");
});
