/**
 * Implementation limits of the JavaScript interface ("Implementation-defined Limits"): the largest count is accepted,
 * one more is refused with an error that names the limit, and the host's own engine says the same of both modules.
 */
import assert from "node:assert/strict";
import { ByteWriter } from "../../engine/base/bytes.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { SECTION } from "../../engine/wasm/section_ids.ts";
import { InvalidError } from "../../engine/base/errors.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { MAX_MODULE_BYTES, MAX_NAMES } from "../../engine/wasm/limits.ts";
import { WebAssembly as Namespace } from "../../engine/webassembly/mod.ts";

type Section = readonly [id: number, write: (writer: ByteWriter) => void];

function moduleOf(...sections: Section[]): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter();
  writer.raw(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0));
  for (const [id, write] of sections) {
    writer.u8(id);
    const mark = writer.beginSized();
    write(writer);
    writer.endSized(mark);
  }
  return writer.finish();
}

/** A vector of `count` equal entries. */
function vector(writer: ByteWriter, count: number, ...entry: number[]): void {
  writer.u32(count);
  const bytes = new Uint8Array(count * entry.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = entry[i % entry.length];
  writer.raw(bytes);
}

function entries(id: number, count: number, ...entry: number[]): Section {
  return [id, (writer) => vector(writer, count, ...entry)];
}

const TYPE = entries(SECTION.type, 1, 0x60, 0, 0);
const FUNC = entries(SECTION.function, 1, 0);

/** A function section and a body of exactly `size` bytes. */
function bodyOf(size: number): Section[] {
  return [FUNC, [SECTION.code, (writer) => {
    const body = new Uint8Array(size).fill(0x01); // nop
    body[0] = 0;
    body[size - 1] = 0x0b;
    writer.u32(1);
    writer.byteVector(body);
  }]];
}

function localsOf(count: number): Section[] {
  return [FUNC, [SECTION.code, (writer) => {
    writer.u32(1);
    const mark = writer.beginSized();
    vector(writer, 1);
    writer.u32(count);
    writer.raw(Uint8Array.of(0x7f, 0x0b));
    writer.endSized(mark);
  }]];
}

interface Limit {
  /** The counted part, as the message names it. */
  readonly name: string;
  readonly most: number;
  readonly make: (count: number) => Uint8Array<ArrayBuffer>;
  readonly message: RegExp;
}

const LIMITS: readonly Limit[] = [
  {
    name: "bytes of a body",
    most: 7_654_321,
    make: (n) => moduleOf(TYPE, ...bodyOf(n)),
    message: /^function body of 7654322 bytes is too large: at most 7654321 are possible$/,
  },
  {
    name: "locals",
    most: 50_000,
    make: (n) => moduleOf(TYPE, ...localsOf(n)),
    message: /^too many locals: 50001, at most 50000 are possible$/,
  },
  {
    name: "locals and parameters",
    most: 50_000,
    make: (n) => moduleOf(entries(SECTION.type, 1, 0x60, 3, 0x7f, 0x7f, 0x7f, 0), ...localsOf(n - 3)),
    message: /^too many locals: 50001 with 3 parameters, at most 50000 are possible$/,
  },
  {
    name: "elements of one segment",
    most: 10_000_000,
    make: (n) =>
      moduleOf(TYPE, FUNC, [SECTION.element, (writer) => {
        writer.raw(Uint8Array.of(1, 1, 0));
        vector(writer, n, 0);
      }], entries(SECTION.code, 1, 2, 0, 0x0b)),
    message: /^too many elements: 10000001, at most 10000000 are possible$/,
  },
  {
    name: "tables",
    most: 100_000,
    make: (n) => moduleOf(entries(SECTION.table, n, 0x70, 0, 0)),
    message: /^too many tables: 100001, at most 100000 are possible$/,
  },
  {
    name: "data segments",
    most: 100_000,
    make: (n) => moduleOf(entries(SECTION.data, n, 1, 0)),
    message: /^too many data segments: 100001, at most 100000 are possible$/,
  },
  {
    name: "globals",
    most: 1_000_000,
    make: (n) => moduleOf(entries(SECTION.global, n, 0x7f, 0, 0x41, 0, 0x0b)),
    message: /^too many globals: 1000001, at most 1000000 are possible$/,
  },
  {
    name: "types of one recursive group",
    most: 1_000_000,
    make: (n) =>
      moduleOf([SECTION.type, (writer) => {
        writer.raw(Uint8Array.of(1, 0x4e));
        vector(writer, n, 0x5f, 0);
      }]),
    message: /^too many types: 1000001, at most 1000000 are possible$/,
  },
];

function accept(bytes: Uint8Array): void {
  validateModule(decodeModule(bytes), featureSet());
}

for (const { name, most, make, message } of LIMITS) {
  Deno.test(`${name}: ${most} are accepted, one more is not`, () => {
    const largest = make(most);
    accept(largest);
    assert.ok(WebAssembly.validate(largest), "the host refuses the largest");
    const beyond = make(most + 1);
    assert.throws(() => accept(beyond), (error: Error) => {
      assert.match(error.message, message);
      return true;
    });
    assert.ok(!WebAssembly.validate(beyond), "the host accepts more");
  });
}

Deno.test("custom sections: a million are accepted, one more is not", () => {
  const customs = (count: number) => {
    const bytes = new Uint8Array(8 + count * 3);
    bytes.set([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
    for (let at = 8; at < bytes.length; at += 3) bytes[at + 1] = 1;
    return bytes;
  };
  accept(customs(1_000_000));
  assert.throws(() => decodeModule(customs(1_000_001)), {
    message: "too many custom sections: 1000001, at most 1000000 are possible",
  });
});

Deno.test("a list of more names than can be kept is ignored, and the others are read", () => {
  const named = (count: number, each: readonly number[]) =>
    moduleOf([SECTION.custom, (writer) => {
      writer.name("name");
      for (const id of [1, 7]) {
        writer.u8(id);
        const mark = writer.beginSized();
        if (id === 1) vector(writer, count, ...each);
        else vector(writer, 1, 5, 1, 0x67);
        writer.endSized(mark);
      }
    }]);
  const few = decodeModule(named(MAX_NAMES - 1, [0, 1, 0x66])).names;
  assert.deepEqual([few.funcs.get(0), few.globals.get(5)], ["f", "g"]);
  const many = decodeModule(named(MAX_NAMES + 1, [0, 1, 0x66])).names;
  assert.deepEqual([many.funcs.size, many.globals.get(5)], [0, "g"]);
});

Deno.test("more than a million element segments are accepted, more than ten million are not", () => {
  const segments = (count: number) => moduleOf(entries(SECTION.element, count, 1, 0, 0));
  accept(segments(1_500_000));
  assert.throws(() => decodeModule(segments(10_000_001)), {
    message: "too many element segments: 10000001, at most 10000000 are possible",
  });
});

Deno.test("a module of more than a gibibyte is refused before it is read", () => {
  const bytes = new Uint8Array(MAX_MODULE_BYTES + 1);
  bytes.set([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
  assert.throws(() => decodeModule(bytes), (error: Error) => {
    assert.ok(error instanceof InvalidError);
    assert.equal(error.message, "module of 1073741825 bytes is too large: at most 1073741824 are possible");
    return true;
  });
});

Deno.test("the WebAssembly namespace reports an exceeded limit as a CompileError", () => {
  const [{ make, most }] = LIMITS as [Limit];
  assert.throws(() => new Namespace.Module(make(most + 1)), Namespace.CompileError);
});
