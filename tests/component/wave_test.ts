/** WAVE: random values print to text that reads back to the same values; every error has its place. */
import assert from "node:assert/strict";
import { MalformedError } from "../../engine/base/errors.ts";
import type { FuncType, ValType } from "../../component/model/types.ts";
import { isPrintable, printWave } from "../../component/wave/print.ts";
import { readWave, readWaveCall } from "../../component/wave/read.ts";
import { randomSource, randomType, randomValue } from "./random_values.ts";

const COUNT = 2_000;
const U8: ValType = { kind: "u8" };
const STRING: ValType = { kind: "string" };

/** No distinction between an absent and an undefined payload. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map) return new Map([...value].map(([k, v]) => [plain(k), plain(v)]));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([key, v]) => key !== "val" || v !== undefined).map(([k, v]) => [k, plain(v)]),
  );
}

Deno.test("random values of random types print to text that reads back to them", () => {
  for (let seed = 0; seed < COUNT; seed++) {
    const random = randomSource(seed);
    const type = randomType(random, 3);
    const { js } = randomValue(random, type);
    const text = printWave(js, type);
    assert.doesNotMatch(text, /\p{Cc}/u, `seed ${seed}`);
    assert.deepEqual(plain(readWave(text, type)), plain(js), `seed ${seed}: ${text}`);
  }
});

/** Texts, their types and values. */
const READS: readonly (readonly [string, ValType, unknown])[] = [
  [" // a comment\n 7 ", U8, 7],
  ["-128", { kind: "s8" }, -128],
  ["18446744073709551615", { kind: "u64" }, 18446744073709551615n],
  ["1.5e3", { kind: "f64" }, 1500],
  ["-inf", { kind: "f32" }, -Infinity],
  ["0.1", { kind: "f32" }, Math.fround(0.1)],
  [`'\\''`, { kind: "char" }, "'"],
  [`'\\u{1F370}'`, { kind: "char" }, "🍰"],
  [`"a\\"b\\\\c\\u{0}\\n"`, STRING, 'a"b\\c\0\n'],
  ['"""\n    two\n      lines\n    """', STRING, "two\n  lines"],
  ['"""\n"""', STRING, ""],
  ["[1, 2,]", { kind: "list", element: U8 }, [1, 2]],
  ["(1, true)", { kind: "tuple", types: [U8, { kind: "bool" }] }, [1, true]],
  ["{b-c: 2, a: 1}", { kind: "record", fields: [{ name: "a", type: U8 }, { name: "b-c", type: U8 }] }, { a: 1, bC: 2 }],
  ["{:}", { kind: "record", fields: [{ name: "a", type: { kind: "option", type: U8 } }] }, { a: undefined }],
  ["{two}", { kind: "flags", names: ["one", "two"] }, { one: false, two: true }],
  ["%ok", { kind: "enum", names: ["ok", "other"] }, "ok"],
  ["leaf(3)", { kind: "variant", cases: [{ name: "leaf", type: U8 }] }, { tag: "leaf", val: 3 }],
  ["some(3)", { kind: "option", type: U8 }, 3],
  ["3", { kind: "option", type: U8 }, 3],
  ["none", { kind: "option", type: U8 }, undefined],
  ["some(none)", { kind: "option", type: { kind: "option", type: U8 } }, { tag: "some", val: undefined }],
  ["ok", { kind: "result", err: U8 }, { tag: "ok" }],
  ["err(3)", { kind: "result", err: U8 }, { tag: "err", val: 3 }],
  ['"value"', { kind: "result", ok: STRING }, { tag: "ok", val: "value" }],
  ['[("k", 1)]', { kind: "map", key: STRING, value: U8 }, new Map([["k", 1]])],
];

for (const [text, type, value] of READS) {
  Deno.test(`${JSON.stringify(text)} reads as ${type.kind}`, () => assert.deepEqual(readWave(text, type), value));
}

/** Texts that are refused: the message, and line and column. */
const REFUSED: readonly (readonly [string, ValType, message: string, line: number, column: number])[] = [
  ["", U8, "expected u8, found the end of the text", 1, 1],
  ["256", U8, "256 is out of the range of u8 (0 to 255)", 1, 1],
  ["1.5", U8, 'expected u8, found "1.5"', 1, 1],
  ["\n  true", U8, 'expected u8, found "true"', 2, 3],
  ["1 2", U8, 'expected the end of the text, found "2"', 1, 3],
  ["[1 2]", { kind: "list", element: U8 }, 'expected "," or "]", found "2"', 1, 4],
  ["[1]", { kind: "list", element: U8, length: 2 }, "expected 2 elements, found 1", 1, 1],
  ["(1, 2)", { kind: "tuple", types: [U8] }, "the tuple has 1 element", 1, 5],
  ["(1)", { kind: "tuple", types: [U8, U8] }, "expected 2 elements, found 1", 1, 1],
  ["{a: 1}", { kind: "record", fields: [{ name: "b", type: U8 }] }, 'expected the field b, found "a"', 1, 2],
  ["{b: 1, b: 2}", { kind: "record", fields: [{ name: "b", type: U8 }] }, "the field b is given twice", 1, 8],
  ["{:}", { kind: "record", fields: [{ name: "b", type: U8 }] }, "the field b: u8 is missing", 1, 1],
  ["{a, c}", { kind: "flags", names: ["a", "b"] }, 'expected the flag one of a, b, found "c"', 1, 5],
  ["red", { kind: "enum", names: ["green", "blue"] }, 'expected the case one of green, blue, found "red"', 1, 1],
  ['"open', STRING, "the string has no end", 1, 1],
  ['"\\x"', STRING, "unknown escape \\x", 1, 2],
  ['"\\u{d800}"', STRING, "\\u{d800} is not a Unicode scalar value", 1, 2],
  ["''", { kind: "char" }, "a character is missing", 1, 1],
  ["'ab'", { kind: "char" }, `a character ends with "'"`, 1, 1],
  ["some(1)", { kind: "result", ok: U8 }, 'expected result<u8>, found "some"', 1, 1],
  ["ok(1)", { kind: "result", err: U8 }, 'expected the end of the text, found "("', 1, 3],
];

function refuses(action: () => unknown, message: string, line: number, column: number): void {
  assert.throws(action, (error: unknown) => {
    assert.ok(error instanceof MalformedError, String(error));
    assert.equal(error.message.replace(/^\d+:\d+: /, ""), message);
    assert.deepEqual([error.place.line, error.place.column], [line, column]);
    return true;
  });
}

for (const [text, type, message, line, column] of REFUSED) {
  Deno.test(`${JSON.stringify(text)} is refused as ${type.kind}: ${message}`, () => {
    refuses(() => readWave(text, type), message, line, column);
  });
}

const FUNCTION: FuncType = {
  kind: "func",
  async: false,
  params: [{ name: "a", type: U8 }, { name: "b", type: { kind: "option", type: U8 } }],
};

Deno.test("a call has a name and arguments; options at the end may be absent", () => {
  const call = readWaveCall(" wasi:a/b@0.2.0#f-g (1, 2) ");
  assert.equal(call.name, "wasi:a/b@0.2.0#f-g");
  assert.deepEqual(call.args(FUNCTION), [1, 2]);
  assert.deepEqual(readWaveCall("f(1)").args(FUNCTION), [1, undefined]);
  refuses(() => readWaveCall("f"), 'expected "(" after the name of the function, found the end of the text', 1, 2);
  refuses(() => readWaveCall("(1)"), 'expected the name of a function, found "("', 1, 1);
  refuses(() => readWaveCall("f()").args(FUNCTION), "the argument a: u8 is missing", 1, 3);
  refuses(() => readWaveCall("f(1, 2, 3)").args(FUNCTION), "the function takes 2 arguments", 1, 9);
  refuses(() => readWaveCall("f(1) g").args(FUNCTION), 'expected the end of the text, found "g"', 1, 6);
});

Deno.test("deep nesting is an error, and so are types without a text", () => {
  let type: ValType = U8;
  for (let depth = 0; depth < 1_500; depth++) type = { kind: "list", element: type };
  assert.throws(() => readWave("[".repeat(1_500), type), /values are nested too deeply/);
  const stream: ValType = { kind: "stream", element: U8 };
  assert.throws(() => readWave("1", stream), /a value of type stream<u8> cannot be written/);
  assert.equal(isPrintable({ kind: "list", element: stream }), false);
  assert.equal(isPrintable({ kind: "list", element: U8 }), true);
});

Deno.test("labels that are keywords have a percent sign", () => {
  assert.equal(printWave("ok", { kind: "enum", names: ["ok"] }), "%ok");
  assert.equal(printWave({ some: 1 }, { kind: "record", fields: [{ name: "some", type: U8 }] }), "{%some: 1}");
});
