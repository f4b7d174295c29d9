/** Decoding: every section into its fields, the suite's malformed binaries by their messages, order, limits, names. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { binaryForms } from "../../tests/support/binary_forms.ts";
import { OTHER_MESSAGES } from "../script/match.ts";
import { HAS_TESTSUITE, NEEDS_TESTSUITE, suiteScripts } from "../../tests/support/testsuite.ts";
import { ByteWriter } from "../base/bytes.ts";
import { InvalidError, MalformedError } from "../base/errors.ts";
import { CodeReader } from "../wasm/code_reader.ts";
import type { Module } from "../wasm/module.ts";
import { EXTERNREF, F64, FUNCREF, HEAP, I32, I64, I8, refType } from "../wasm/types.ts";
import { decodeModule, isBinary } from "./decode.ts";

const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

function bytesOf(...sections: number[][]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from([...HEADER, ...sections.flat()]);
}

/** A section with this content. */
function section(id: number, ...content: number[]): number[] {
  const writer = new ByteWriter();
  writer.u8(id);
  writer.byteVector(Uint8Array.from(content));
  return [...writer.finish()];
}

function custom(name: string, ...content: number[]): number[] {
  const bytes = new TextEncoder().encode(name);
  return section(0, bytes.length, ...bytes, ...content);
}

function messageOf(bytes: Uint8Array): string {
  try {
    decodeModule(bytes);
    return "";
  } catch (error) {
    assert.ok(error instanceof MalformedError || error instanceof InvalidError, String(error));
    return error.message;
  }
}

/** Decodes all bodies without type checks. */
function walkBodies(module: Module): void {
  for (const { body } of module.funcs) {
    const code = new CodeReader(body.bytes, 0, body.bytes.length, body.offset);
    code.dataCountMissing = module.dataCount === undefined;
    code.locals([]);
    while (!code.done) code.next();
  }
}

Deno.test({
  name: `decodeModule() accepts and rejects the suite's binaries with its messages${NEEDS_TESTSUITE}`,
  ignore: !HAS_TESTSUITE,
  fn() {
    const counts = { none: 0, malformed: 0, invalid: 0, other: 0 };
    for (const path of suiteScripts()) {
      for (const { bytes, assertion, message, line } of binaryForms(readFileSync(path, "utf8"))) {
        counts[assertion]++;
        let actual = "";
        try {
          walkBodies(decodeModule(bytes));
        } catch (error) {
          assert.ok(error instanceof MalformedError, `${path}:${line}: ${error}`);
          actual = error.message;
        }
        const place = `${path}:${line}: "${message}" expected, got "${actual}"`;
        // Validation, which counts frames, rejects a body without its last end that happens to close with the byte
        // 0x0b.
        if (actual === "" && message === "unexpected end of section or function") continue;
        const expected = actual.includes(message) ? message : OTHER_MESSAGES.get(message);
        if (assertion === "malformed") assert.ok(message !== "" && actual.includes(expected ?? message), place);
        else assert.equal(actual, "", place);
      }
    }
    assert.ok(counts.malformed >= 700 && counts.none >= 80, JSON.stringify(counts));
  },
});

Deno.test("decodeModule() reads every section", () => {
  const module = decodeModule(bytesOf(
    section(
      1,
      4,
      0x60,
      1,
      0x7f,
      1,
      0x7e,
      0x4e,
      2,
      0x50,
      0,
      0x5f,
      1,
      0x78,
      1,
      0x4f,
      1,
      1,
      0x5f,
      0,
      0x5e,
      0x63,
      1,
      0,
      0x60,
      0,
      0,
    ),
    section(2, 5, 1, 0x6d, 1, 0x66, 0, 3, 1, 0x6d, 0, 1, 0x6f, 1, 1, 2, 0, 0, 2, 4, 0, 0, 0, 3, 0x7c, 1, 0, 0, 4, 0, 4),
    section(3, 1, 0),
    section(
      4,
      2,
      0x70,
      0,
      3,
      0x40,
      0,
      0x64,
      0,
      5,
      1,
      0xff,
      0xff,
      0xff,
      0xff,
      0xff,
      0xff,
      0xff,
      0xff,
      0xff,
      1,
      0xd2,
      0,
      0x0b,
    ),
    section(5, 1, 3, 1, 2),
    section(13, 1, 0, 4),
    section(6, 1, 0x7f, 0, 0x41, 0x2a, 0x0b),
    section(7, 2, 1, 0x61, 0, 1, 0, 4, 1),
    section(8, 1),
    section(9, 3, 0, 0x41, 0, 0x0b, 1, 0, 3, 0, 1, 1, 6, 1, 0x41, 0, 0x0b, 0x70, 1, 0xd0, 0x70, 0x0b),
    section(12, 2),
    section(10, 1, 4, 1, 1, 0x7f, 0x0b),
    section(11, 2, 1, 2, 0x68, 0x69, 2, 1, 0x42, 0, 0x0b, 0),
    custom("x", 1, 2, 3),
  ));
  assert.deepEqual(module.recGroups, [{ start: 0, count: 1 }, { start: 1, count: 2 }, { start: 3, count: 1 }, {
    start: 4,
    count: 1,
  }]);
  assert.deepEqual(module.types, [
    { final: true, supertypes: [], composite: { kind: "func", params: [I32], results: [I64] } },
    { final: false, supertypes: [], composite: { kind: "struct", fields: [{ storage: I8, mutable: true }] } },
    { final: true, supertypes: [1], composite: { kind: "struct", fields: [] } },
    { final: true, supertypes: [], composite: { kind: "array", field: { storage: refType(true, 1), mutable: false } } },
    { final: true, supertypes: [], composite: { kind: "func", params: [], results: [] } },
  ]);
  assert.deepEqual(module.imports.map(({ module, name, desc }) => [module, name, desc]), [
    ["m", "f", { kind: "func", typeIndex: 3 }],
    ["m", "", { kind: "table", type: { element: EXTERNREF, limits: { address: I32, min: 1n, max: 2n } } }],
    ["", "", { kind: "memory", type: { limits: { address: I64, min: 0n }, shared: false } }],
    ["", "", { kind: "global", type: { type: F64, mutable: true } }],
    ["", "", { kind: "tag", type: { typeIndex: 4 } }],
  ]);
  assert.deepEqual(module.funcs.map(({ typeIndex, body }) => [typeIndex, [...body.bytes]]), [[0, [1, 1, 0x7f, 0x0b]]]);
  const { offset } = module.funcs[0].body;
  assert.deepEqual(module.bytes.subarray(offset, offset + 4), module.funcs[0].body.bytes);
  assert.deepEqual(module.tables.map(({ type }) => type), [
    { element: FUNCREF, limits: { address: I32, min: 3n } },
    { element: refType(false, 0), limits: { address: I64, min: 1n, max: 2n ** 64n - 1n } },
  ]);
  assert.deepEqual([...module.tables[1].init!.bytes], [0xd2, 0, 0x0b]);
  assert.deepEqual(module.memories, [{ limits: { address: I32, min: 1n, max: 2n }, shared: true }]);
  assert.deepEqual(module.tags, [{ typeIndex: 4 }]);
  assert.deepEqual(module.globals.map(({ type, init }) => [type, [...init.bytes]]), [
    [{ type: I32, mutable: false }, [0x41, 0x2a, 0x0b]],
  ]);
  assert.deepEqual(module.exports.map(({ name, kind, index }) => [name, kind, index]), [["a", "func", 1], [
    "",
    "tag",
    1,
  ]]);
  assert.equal(module.start, 1);
  assert.deepEqual(
    Array.from(module.elems, (
      { type, init, mode },
    ) => [type, init.kind === "funcs" ? [...init.indices] : init.exprs.length, mode.kind]),
    [
      [refType(false, HEAP.func), [0], "active"],
      [refType(false, HEAP.func), [1], "declarative"],
      [FUNCREF, 1, "active"],
    ],
  );
  assert.equal(module.dataCount, 2);
  assert.deepEqual(module.datas.map(({ bytes, mode }) => [[...bytes], mode.kind === "active" ? mode.memory : -1]), [
    [[0x68, 0x69], -1],
    [[], 1],
  ]);
  assert.deepEqual(module.customs.map(({ name, bytes, after }) => [name, [...bytes], after]), [["x", [1, 2, 3], 11]]);
});

/** Module, message (its beginning or a part), offset. */
const REJECTED: readonly (readonly [string, Uint8Array, RegExp, number])[] = [
  ["text", new TextEncoder().encode("(module)"), /^magic header not detected: this looks like the text format/, 0],
  ["other bytes", Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 2), /^magic header not detected$/, 0],
  ["version 2", Uint8Array.of(0, 0x61, 0x73, 0x6d, 2, 0, 0, 0), /^unknown binary version 2$/, 4],
  [
    "component",
    Uint8Array.of(0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0),
    /^unknown binary version: this is a component, not/,
    4,
  ],
  ["section id", bytesOf([14, 0]), /^malformed section id 14$/, 8],
  ["section length", bytesOf([1, 5, 0]), /length out of bounds: section 1 of 5 bytes with 1 left$/, 8],
  [
    "order",
    bytesOf(section(3, 0), section(1, 0)),
    /^unexpected content after last section: section 1 after section 3$/,
    11,
  ],
  ["tags after globals", bytesOf(section(6, 0), section(13, 0)), /^unexpected content after last section/, 11],
  ["twice", bytesOf(section(1, 0), section(1, 0)), /^unexpected content after last section/, 11],
  ["left over", bytesOf(section(1, 0, 0)), /^section size mismatch: 1 bytes of section 1 are left over$/, 11],
  ["definition type", bytesOf(section(1, 1, 0x40, 0)), /^malformed definition type 0x40$/, 11],
  ["mutability", bytesOf(section(6, 1, 0x7f, 2)), /^malformed mutability$/, 12],
  ["value type", bytesOf(section(6, 1, 0x78, 0)), /^malformed value type$/, 11],
  ["reference type", bytesOf(section(4, 1, 0x7f, 0, 0)), /^malformed reference type$/, 11],
  ["shared table", bytesOf(section(4, 1, 0x70, 2, 0)), /^malformed limits flags$/, 12],
  ["table", bytesOf(section(4, 1, 0x40, 1, 0x70, 0, 0)), /zero byte expected$/, 12],
  ["tag attribute", bytesOf(section(13, 1, 1, 0)), /^malformed tag attribute/, 11],
  ["import kind", bytesOf(section(2, 1, 0, 0, 5, 0)), /^malformed import kind$/, 13],
  ["export kind", bytesOf(section(7, 1, 0, 5, 0)), /^malformed export kind$/, 12],
  ["element kind", bytesOf(section(9, 1, 1, 1, 0)), /^malformed element kind$/, 12],
  ["element flags", bytesOf(section(9, 1, 8)), /^malformed elements segment kind$/, 11],
  ["data flags", bytesOf(section(11, 1, 3)), /^malformed data segment kind$/, 11],
  ["stray else", bytesOf(section(6, 1, 0x7f, 0, 0x05, 0x0b)), /^END opcode expected$/, 13],
  ["stray delegate", bytesOf(section(6, 1, 0x7f, 0, 0x18, 0, 0x0b)), /^END opcode expected$/, 13],
  ["no end", bytesOf(section(6, 1, 0x7f, 0, 0x02, 0x40, 0x0b)), /unexpected end of section or function$/, 16],
  ["body without end", bytesOf(section(10, 1, 2, 0, 0x01)), /^END opcode expected/, 14],
  ["empty body", bytesOf(section(10, 1, 0)), /^unexpected end of section or function$/, 12],
  [
    "body length",
    bytesOf(section(10, 1, 3, 0, 0x0b)),
    /length out of bounds: function body of 3 bytes with 2 left$/,
    12,
  ],
  [
    "type index in a reference",
    bytesOf(section(6, 1, 0x63, 0xff, 0xff, 0xff, 0xff, 0)),
    /^unknown type 268435455$/,
    12,
  ],
];

Deno.test("decodeModule() reports errors with their offset", () => {
  for (const [what, bytes, message, offset] of REJECTED) {
    assert.throws(() => decodeModule(bytes), (error) => {
      assert.ok(error instanceof MalformedError || error instanceof InvalidError, what);
      assert.match(error.message, message, what);
      assert.equal(error.place.offset, offset, what);
      return true;
    });
  }
});

Deno.test("decodeModule() finds the end of nested constant expressions", () => {
  const init = [
    0x02,
    0x40,
    0x06,
    0x40,
    0x07,
    0,
    0x19,
    0x0b,
    0x06,
    0x40,
    0x18,
    0,
    0x1f,
    0x40,
    0,
    0x0b,
    0x0b,
    0x41,
    0x0b,
    0x0b,
  ];
  const module = decodeModule(bytesOf(section(6, 1, 0x7f, 0, ...init)));
  assert.deepEqual([...module.globals[0].init.bytes], init);
});

Deno.test("decodeModule() reads a section whose size is not in its shortest form", () => {
  const module = decodeModule(Uint8Array.from([...HEADER, 1, 0x84, 0x80, 0x00, 1, 0x60, 0, 0]));
  assert.equal(module.types.length, 1);
});

Deno.test("decodeModule() works on a view that does not begin at its buffer's first byte", () => {
  const whole = Uint8Array.from([
    1,
    2,
    3,
    ...bytesOf(section(1, 1, 0x60, 0, 0), section(3, 1, 0), section(10, 1, 2, 0, 0x0b)),
    9,
  ]);
  const module = decodeModule(whole.subarray(3, whole.length - 1));
  const { body } = module.funcs[0];
  assert.deepEqual([...module.bytes.subarray(body.offset, body.offset + 2)], [0, 0x0b]);
});

Deno.test("decodeModule() reads names and leaves out damaged ones", () => {
  function names(...content: number[]) {
    return decodeModule(bytesOf(custom("name", ...content))).names;
  }
  const whole = names(0, 2, 1, 0x6d, 1, 4, 1, 7, 1, 0x66, 2, 6, 1, 7, 1, 0, 1, 0x78, 11, 4, 1, 0, 1, 0x74);
  assert.equal(whole.module, "m");
  assert.deepEqual([...whole.funcs], [[7, "f"]]);
  assert.deepEqual([...whole.locals.get(7)!], [[0, "x"]]);
  assert.deepEqual([...whole.tags], [[0, "t"]]);
  const damaged = names(0, 2, 1, 0xff, 1, 4, 1, 7, 1, 0x66);
  assert.equal(damaged.module, undefined);
  assert.deepEqual([...damaged.funcs], [[7, "f"]]);
  assert.equal(names(0, 9, 1, 0x6d).module, undefined);
  assert.equal(names(0, 2, 1, 0x6d, 0, 2, 1, 0x6e).module, "m");
  assert.equal(names(0, 2, 1, 0x6d, 77, 1, 0xff).module, "m");
  const twice = decodeModule(bytesOf(custom("name", 0, 2, 1, 0x61), custom("name", 0, 2, 1, 0x62)));
  assert.equal(twice.names.module, "a");
  assert.equal(twice.customs.length, 2);
});

Deno.test("decodeModule() reports a count that the section cannot hold before it allocates", () => {
  const huge = [0xff, 0xff, 0xff, 0xff, 0x0f];
  for (const id of [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13]) {
    assert.match(messageOf(bytesOf(section(id, ...huge))), /length out of bounds: count 4294967295 with 0 bytes left$/);
  }
  for (
    const content of [[1, 0x60, ...huge], [1, 0x5f, ...huge], [1, 0x4e, ...huge], [1, 0x50, ...huge], [
      1,
      0x60,
      0,
      ...huge,
    ]]
  ) {
    assert.match(messageOf(bytesOf(section(1, ...content))), /count 4294967295/);
  }
  assert.match(messageOf(bytesOf(section(9, 1, 1, 0, ...huge))), /count 4294967295/);
  assert.match(messageOf(bytesOf(section(11, 1, 1, ...huge))), /unexpected end/);
  assert.match(messageOf(bytesOf(section(7, 1, ...huge))), /length out of bounds$/);
});

Deno.test("decodeModule() bounds the allocations for a large module of tiny entries", () => {
  // 1,000,001 in LEB128, then as many entries of zeros.
  const count = [0xc1, 0x84, 0x3d];
  const writer = new ByteWriter();
  writer.raw(Uint8Array.from(HEADER));
  writer.u8(1);
  const mark = writer.beginSized();
  writer.raw(Uint8Array.from(count));
  writer.raw(new Uint8Array(1_000_001));
  writer.endSized(mark);
  assert.throws(() => decodeModule(writer.finish()), {
    name: "InvalidError",
    message: "too many types: 1000001, at most 1000000 are possible",
  });
});

Deno.test("isBinary() tells the binary from the text format", () => {
  assert.ok(isBinary(bytesOf()));
  assert.ok(!isBinary(new TextEncoder().encode("(module)")));
  assert.ok(!isBinary(new Uint8Array(3)));
});
