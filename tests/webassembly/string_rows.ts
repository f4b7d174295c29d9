/**
 * Rows about strings of JavaScript as builtins and as constants.
 */
import { type Namespace, type Row, thrown, wasm } from "./subject.ts";

const TYPES: Readonly<Record<string, string>> = {
  cast: "(param externref) (result (ref extern))",
  test: "(param externref) (result i32)",
  fromCharCode: "(param i32) (result (ref extern))",
  fromCodePoint: "(param i32) (result (ref extern))",
  charCodeAt: "(param externref i32) (result i32)",
  codePointAt: "(param externref i32) (result i32)",
  length: "(param externref) (result i32)",
  concat: "(param externref externref) (result (ref extern))",
  substring: "(param externref i32 i32) (result (ref extern))",
  equals: "(param externref externref) (result i32)",
  compare: "(param externref externref) (result i32)",
};

/** Calls of each. */
const CALLS: Readonly<Record<string, readonly (readonly unknown[])[]>> = {
  cast: [["x"], [""], [null], [5], [{}], [new String("x")]],
  test: [["x"], [""], [null], [5], [undefined]],
  fromCharCode: [[65], [0x10041], [-1], [0]],
  fromCodePoint: [[65], [0x1f600], [0x10ffff], [0x110000], [-1], [0xd800]],
  charCodeAt: [["abc", 1], ["abc", 3], ["abc", -1], [null, 0], ["", 0], ["é", 0]],
  codePointAt: [["a😀", 1], ["a😀", 2], ["a😀", 3], [5, 0]],
  length: [["abc"], [""], [null], ["😀"]],
  concat: [["a", "b"], ["", ""], [null, "a"], ["a", 5]],
  substring: [["abcdef", 1, 3], ["abc", 2, 1], ["abc", 0, -1], ["abc", 5, 9], ["abc", 3, 3], [null, 0, 0]],
  equals: [["a", "a"], ["a", "b"], [null, null], [null, "a"], ["a", null], [5, "a"], ["a", {}]],
  compare: [["a", "b"], ["b", "a"], ["a", "a"], [null, "a"], ["a", null], ["a", "aa"]],
};

const ALL = `(module ${
  Object.entries(TYPES).map(([name, type]) =>
    `(import "wasm:js-string" "${name}" (func $${name} ${type})) (export "${name}" (func $${name}))`
  )
    .join("\n")
})`;

const ARRAYS = `(module (type $a (array (mut i16)))
  (import "wasm:js-string" "fromCharCodeArray" (func $from (param (ref null $a) i32 i32) (result (ref extern))))
  (import "wasm:js-string" "intoCharCodeArray" (func $into (param externref (ref null $a) i32) (result i32)))
  (func (export "through") (param externref i32 i32 i32 i32) (result externref) (local $x (ref null $a))
    (local.set $x (array.new $a (i32.const 46) (local.get 1)))
    (drop (call $into (local.get 0) (local.get $x) (local.get 2)))
    (call $from (local.get $x) (local.get 3) (local.get 4)))
  (func (export "null") (result externref) (call $from (ref.null $a) (i32.const 0) (i32.const 0))))`;

const CONSTANTS =
  `(module (import "'" "hello" (global $h externref)) (import "'" "" (global (ref extern))) (import "m" "f" (func))
  (func (export "f") (result externref) (global.get $h)) (export "g" (global 1)))`;

const OPTIONS = { builtins: ["js-string"] };

function exportsOf(W: Namespace, text: string, options: unknown, imports: object = {}) {
  return new W.Instance(new W.Module(wasm(text), options), imports).exports;
}

export const STRING_ROWS: readonly Row[] = [
  ...Object.entries(CALLS).map(([name, calls]): Row => [`the builtin ${name}`, (W) => {
    const f = exportsOf(W, ALL, OPTIONS)[name];
    return calls.map((args) => thrown(W, () => f(...args)));
  }]),
  ["arrays of units", (W) => {
    const { through, null: none } = exportsOf(W, ARRAYS, OPTIONS);
    return [
      through("hello", 8, 1, 0, 8),
      through("", 0, 0, 0, 0),
      through("ab", 4, 2, 1, 3),
      thrown(W, () => through("hello", 4, 0, 0, 4)),
      thrown(W, () => through("a", 4, 4, 0, 4)),
      thrown(W, () => through("a", 4, -1, 0, 4)),
      thrown(W, () => through("a", 4, 0, 3, 2)),
      thrown(W, () => through("a", 4, 0, 0, 5)),
      thrown(W, () => through(5, 4, 0, 0, 5)),
      thrown(W, none),
      through("x".repeat(20000), 20000, 0, 0, 20000).length,
    ];
  }],
  ["without the option they are imports like any other", (W) => [
    W.Module.imports(new W.Module(wasm(ALL))).length,
    W.Module.imports(new W.Module(wasm(ALL), OPTIONS)).length,
    thrown(W, () => exportsOf(W, ALL, {})),
    thrown(W, () => exportsOf(W, ALL, { builtins: [] })),
    thrown(W, () => exportsOf(W, ALL, { builtins: ["other"] })),
  ]],
  ["a builtin of another type", (W) => {
    const bytes = wasm(`(module (import "wasm:js-string" "length" (func (param externref) (result i64))))`);
    return [W.validate(bytes), W.validate(bytes, OPTIONS), thrown(W, () => new W.Module(bytes, OPTIONS))];
  }],
  ["constants", (W) => {
    const options = { importedStringConstants: "'" };
    const module = new W.Module(wasm(CONSTANTS), options);
    const { f, g } = new W.Instance(module, { m: { f: () => {} } }).exports;
    return [f(), g.value, W.Module.imports(module)];
  }],
  ["values other than constants", (W) => {
    const options = { importedStringConstants: "'" };
    return [`(global (mut externref))`, `(global i32)`, `(func)`].map((type) => {
      const bytes = wasm(`(module (import "'" "x" ${type}))`);
      return [W.validate(bytes, options), thrown(W, () => new W.Module(bytes, options))];
    });
  }],
];
