/**
 * Modules from text: abbreviations and their expansions, names, annotations, errors with their places.
 */
import assert from "node:assert/strict";
import { encodeModule } from "../binary/encode.ts";
import { MalformedError, WaftError } from "../base/errors.ts";
import { parseModule, textToBinary } from "./parse_module.ts";

/** Requires both texts to have the same binary. */
function same(text: string, longer: string): void {
  assert.deepEqual(textToBinary(text), textToBinary(longer), text);
}

/** `line:column message` of the error for a text. */
function errorOf(text: string | Uint8Array): string {
  try {
    parseModule(text);
  } catch (error) {
    assert.ok(error instanceof WaftError, String(error));
    return `${error.place.line}:${error.place.column} ${error.message}`;
  }
  return "accepted";
}

Deno.test("the empty text and the empty module are modules", () => {
  same("", "(module)");
  assert.deepEqual([...textToBinary("")], [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
});

Deno.test("abbreviations equal their expansions", () => {
  const rows: [string, string][] = [
    ['(func (export "f"))', '(func) (export "f" (func 0))'],
    ['(func (export "f") (export "g"))', '(func) (export "f" (func 0)) (export "g" (func 0))'],
    ['(func (import "m" "f") (param i32))', '(import "m" "f" (func (param i32)))'],
    ['(memory (export "m") (import "a" "b") 1 2)', '(import "a" "b" (memory 1 2)) (export "m" (memory 0))'],
    ['(table (import "a" "b") 1 funcref)', '(import "a" "b" (table 1 funcref))'],
    ['(global (import "a" "b") (mut i32))', '(import "a" "b" (global (mut i32)))'],
    ['(tag (import "a" "b") (param i32))', '(import "a" "b" (tag (param i32)))'],
    [
      "(func (param i32 i32) (result i32) (local f32 f32))",
      "(func (param i32) (param i32) (result i32) (local f32) (local f32))",
    ],
    ['(memory (data "ab" "c"))', '(memory 1 1) (data (memory 0) (offset i32.const 0) "abc")'],
    ["(memory i64 (data))", "(memory i64 0 0) (data (i64.const 0))"],
    ["(func) (table funcref (elem 0 0))", "(func) (table 2 2 funcref) (elem (table 0) (i32.const 0) func 0 0)"],
    [
      "(func) (table (ref null 0) (elem 0))",
      "(func) (table 1 1 (ref null 0)) (elem (i32.const 0) (ref null 0) (ref.func 0))",
    ],
    ["(table anyref (elem (ref.null none)))", "(table 1 1 anyref) (elem (i32.const 0) anyref (item ref.null none))"],
    [
      "(func) (table 1 funcref) (elem (i32.const 0) 0)",
      "(func) (table 1 funcref) (elem (table 0) (offset (i32.const 0)) func 0)",
    ],
    ["(type (func))", "(type (sub final (func)))"],
    ["(type (func)) (rec (type (struct)))", "(type (func)) (type (struct))"],
    ["(type (struct (field i32 i64)))", "(type (struct (field i32) (field i64)))"],
    ["(func (param funcref anyref))", "(func (param (ref null func) (ref null any)))"],
    ["(func (drop (i32.add (i32.const 1) (i32.const 2))))", "(func i32.const 1 i32.const 2 i32.add drop)"],
    ["(func (if (i32.const 1) (then (nop)) (else)))", "(func i32.const 1 if nop else end)"],
    ["(func (block (br 0)) (loop (br 0)))", "(func block br 0 end loop br 0 end)"],
    [
      "(tag $e) (func (try (do (nop)) (catch $e) (catch_all (nop))))",
      "(tag $e) (func try nop catch 0 catch_all nop end)",
    ],
    ["(func (try (do) (delegate 0)))", "(func try delegate 0)"],
    [
      "(tag $e) (func (try_table (catch $e 0) (catch_all 0)))",
      "(tag $e) (func try_table (catch 0 0) (catch_all 0) end)",
    ],
    [
      "(memory 1) (func (drop (i32.load (i32.const 0))))",
      "(memory 1) (func i32.const 0 i32.load 0 offset=0 align=4 drop)",
    ],
    [
      "(table 1 funcref) (func (call_indirect (i32.const 0)))",
      "(table 1 funcref) (type (func)) (func i32.const 0 call_indirect 0 (type 0))",
    ],
    ['(module quote "(func)" "(func)")', "(func) (func)"],
    ['(module binary "\\00asm" "\\01\\00\\00\\00")', ""],
  ];
  for (const [short, long] of rows) same(short, long);
});

Deno.test("an inline type use takes the smallest index that fits, else comes last in the order of the text", () => {
  const module = parseModule(`
    (func (param f32))
    (func (param i32))
    (rec (type (func)) (type (func (param i64))))
    (type $t (func (param i32)))
    (type $u (func (param i32)))
    (func (param i64) (block (param f64 f64) unreachable))`);
  assert.deepEqual(module.funcs.map((func) => func.typeIndex), [4, 2, 5]);
  assert.equal(module.types.length, 7);
  assert.deepEqual(module.types[6].composite, { kind: "func", params: [0x7c, 0x7c], results: [] });
});

Deno.test("names may be used before they are bound, in every index space", () => {
  const module = parseModule(`(module $m
    (export "f" (func $f)) (export "g" (global $g)) (export "t" (table $t)) (export "m" (memory $mem)) (export "e" (tag $e))
    (start $f)
    (elem $seg (table $t) (i32.const 0) func $f)
    (data $bytes (memory $mem) (i32.const 0) "x")
    (func $f (type $ft) (local $x i32) (local.set $x (global.get $g)) (block $b (br $b))
      (memory.init $mem $bytes (i32.const 0) (i32.const 0) (i32.const 0))
      (table.init $t $seg (i32.const 0) (i32.const 0) (i32.const 0))
      (drop (struct.get $s $field (struct.new $s (i32.const 1) (i32.const 2)))) (throw $e))
    (type $ft (func)) (type $s (struct (field i32) (field $field i32)))
    (global $g i32 (i32.const 0)) (table $t 1 funcref) (memory $mem 1) (tag $e))`);
  const { names } = module;
  assert.equal(names.module, "m");
  assert.deepEqual([...names.funcs], [[0, "f"]]);
  assert.deepEqual([...names.locals.get(0)!], [[0, "x"]]);
  assert.deepEqual([...names.labels.get(0)!], [[0, "b"]]);
  assert.deepEqual([...names.fields.get(1)!], [[1, "field"]]);
  assert.deepEqual([...names.elems, ...names.datas, ...names.tags], [[0, "seg"], [0, "bytes"], [0, "e"]]);
  assert.equal(module.dataCount, 1);
  assert.deepEqual(encodeModule(module), module.bytes);
});

Deno.test("offsets refer to the binary form", () => {
  const module = parseModule('(import "a" "b" (func)) (global i32 (i32.const 7)) (func (nop)) (data "xyz")');
  const { bytes } = module;
  const body = module.funcs[0].body;
  assert.deepEqual(body.bytes, bytes.subarray(body.offset, body.offset + body.bytes.length));
  assert.deepEqual([...body.bytes], [0, 1, 0x0b]);
  const init = module.globals[0].init;
  assert.deepEqual([...bytes.subarray(init.offset, init.offset + 3)], [0x41, 7, 0x0b]);
});

Deno.test("annotations have names that identifiers cannot have, place custom sections and hint branches", () => {
  const module = parseModule(`(module $x (@name "a b")
    (func $f (@name "the func") (param $p (@name "the param") i32)
      (local.get $p) (@metadata.code.branch_hint "\\01") if end
      (@metadata.code.branch_hint "\\00") (br_if 0 (local.get 0)))
    (@custom "c" (before func) "1" "2") (@custom "d") (@custom "e" (before first)) (@unknown (stuff)))`);
  assert.equal(module.names.module, "a b");
  assert.equal(module.names.funcs.get(0), "the func");
  assert.equal(module.names.locals.get(0)!.get(0), "the param");
  const places = module.customs.filter((custom) => custom.name !== "name").map(({ name, after }) => [name, after]);
  assert.deepEqual(places, [["e", 0], ["c", 1], ["metadata.code.branch_hint", 3], ["d", 10]]);
  const hints = module.customs.find((custom) => custom.name === "metadata.code.branch_hint")!;
  // One function, 0, with two hints: the `if` after `local.get` at 3, the `br_if` after `end` and another `local.get`
  // at 8.
  assert.deepEqual([...hints.bytes], [1, 0, 2, 3, 1, 1, 8, 1, 0]);
});

Deno.test("errors have a place and a message", () => {
  const rows: [string, string][] = [
    ["(func\n  (bla))", "2:4 unknown operator bla"],
    ["(func $f)\n(func $f)", "2:7 duplicate func $f"],
    ["(func (param $x i32) (local $x i32))", "1:29 duplicate local $x"],
    ["(func (local.get $x))", "1:18 unknown local $x"],
    ["(func (call $x))", "1:13 unknown function $x"],
    ["(func (br $x))", "1:11 unknown label $x"],
    ["(func block $a end $b)", "1:20 mismatching label $b"],
    ["(func if $a else $b end)", "1:18 mismatching label $b"],
    ["(func (i32.const 0x1_0000_0000))", "1:18 i32 constant out of range"],
    ["(func (f32.const 1e99))", "1:18 f32 constant out of range"],
    ["(memory 1) (func (i32.load align=3))", "1:28 alignment must be a power of two"],
    ['(func) (import "" "" (func))', "1:8 import after function"],
    ['(memory 1) (func (import "" ""))', "1:18 import after memory"],
    ["(start 0) (start 0)", "1:11 multiple start sections"],
    ["(type $t (func)) (func (type $t) (param i32))", "1:24 inline function type [i32] -> [] is not that of type 0"],
    ["(func (i32.const 1)", "1:20 unexpected token: end of text"],
    ["(func end)", "1:7 unexpected token end"],
    ["(func block)", "1:12 unexpected token )"],
    ["(func (block end))", "1:14 unexpected token end"],
    ["(func (i32.add nop))", "1:16 unexpected token nop"],
    ["(func (if (i32.const 1)))", "1:24 unexpected token )"],
    ["(func (then))", "1:8 unexpected token then"],
    ["(func (nop) (param i32))", "1:14 unexpected token param"],
    ["(func (result i32) (param i32))", "1:21 unexpected token param"],
    ["(func (block (param $x i32)))", "1:21 unexpected token $x"],
    ["(module) (module)", "1:11 unexpected token module"],
    ["(func $)", "1:7 empty identifier"],
    ['(export "\\ff" (func 0))', "1:9 malformed UTF-8 encoding"],
    ['(func (@name "x") (@name "y"))', "1:19 misplaced @name annotation"],
    ['(module (func) (@name "M"))', "1:16 misplaced @name annotation"],
    ["(func (param (ref 16777216)))", "1:19 unknown type 16777216"],
    ["(memory 0x1_0000_0000)", "1:9 memory size must be at most 2^32-1: i32 constant out of range"],
    ["(func (ref.null (func)))", "1:18 unexpected token func"],
    ["(func (v128.const i32x4 1 2 3))", "1:25 wrong number of lane literals"],
    ['"a\n', "1:1 unclosed string"],
    ["\n\n  \u0001", "3:3 illegal character"],
  ];
  for (const [text, error] of rows) assert.equal(errorOf(text), error, text);
});

Deno.test("the first mistake is the one reported, even when a later one is lexical", () => {
  assert.equal(errorOf('(func (bla)) "unclosed'), "1:8 unknown operator bla");
});

Deno.test("indices and sizes beyond all bounds are errors, not truncated", () => {
  assert.match(errorOf("(func (local.get 4294967296))"), /i32 constant out of range/);
  assert.match(errorOf("(memory 1) (func (i32.load offset=18446744073709551616))"), /i64 constant out of range/);
  assert.match(errorOf("(table i64 18446744073709551616 funcref)"), /i64 constant out of range/);
  assert.throws(() => parseModule('(module binary "\\00asm")'), MalformedError);
});

Deno.test("nesting a quarter of a million deep works, flat and folded", () => {
  const deep = 250_000;
  const blocks = textToBinary(`(func ${"(block ".repeat(deep)}${")".repeat(deep)})`);
  assert.deepEqual(blocks, textToBinary(`(func ${"block ".repeat(deep)}${"end ".repeat(deep)})`));
  const operands = textToBinary(`(func (drop ${"(i32.eqz ".repeat(deep)}(i32.const 0)${")".repeat(deep)}))`);
  assert.deepEqual(operands, textToBinary(`(func i32.const 0 ${"i32.eqz ".repeat(deep)} drop)`));
  assert.match(errorOf(`(func ${"(block ".repeat(deep)}`), /end of text/);
  assert.match(errorOf("(module ".repeat(deep)), /unexpected token module/);
  assert.match(errorOf("(rec ".repeat(deep)), /end of text/);
});

Deno.test("a label is found without a walk over the labels inside it", () => {
  const deep = 100_000;
  const text = `(func block $out ${"block $in br $out ".repeat(deep)}${"end ".repeat(deep)} end)`;
  const { bytes } = parseModule(text).funcs[0].body;
  // Locals, `block`, then per level `block`, `br` and the distance to $out, which grows by one; a walk for each would
  // take 10^10 / 2 steps.
  assert.deepEqual([...bytes.subarray(0, 11)], [0, 0x02, 0x40, 0x02, 0x40, 0x0c, 1, 0x02, 0x40, 0x0c, 2]);
});

Deno.test("bytes that are not text are distinguished from text with mistakes", () => {
  const neither = "neither a module's binary form, which begins with 00 61 73 6d, nor its text: it begins with ";
  const other = 'this is text, but not that of a module, which begins with "(": it begins with ';
  const rows: [number[] | string, string][] = [
    [[0x58, 0x61, 0x73, 0x6d, 1, 0, 0, 0], `undefined:undefined ${neither}58 61 73 6d`],
    [[0x20, 0x61, 0x73, 0x6d, 1, 0, 0, 0], `undefined:undefined ${neither}20 61 73 6d`],
    [[0x1f, 0x8b], "undefined:undefined this is a file that gzip has compressed, not a module"],
    [[0x28, 0xb5, 0x2f, 0xfd], "undefined:undefined this is a file that zstd has compressed, not a module"],
    [[0x7f, 0x45, 0x4c, 0x46, 2], "undefined:undefined this is machine code of Linux (ELF), not a module"],
    ["!<arch>\nlib.o", "undefined:undefined this is an archive of object files, not a module"],
    [[0x1f, 0x8c], `undefined:undefined ${neither}1f 8c`],
    [[0x41, 0xff], `undefined:undefined ${neither}41 ff`],
    [[0xff, 0xfe, 0x28, 0], "undefined:undefined text is UTF-8 here, and this is UTF-16: save it as UTF-8"],
    [
      "\ufeff(module)",
      "undefined:undefined text begins with no byte order mark here: save it as UTF-8 without one",
    ],
    ["<html>\n<body>", `1:1 ${other}"<html>"`],
    ["modul é", `1:1 ${other}"modul é"`],
    ["# waft\n", `1:1 ${other}"# waft"`],
    [`{ "a": 1, ${"x".repeat(60)}`, `1:1 ${other}"{ \\"a\\": 1, ${"x".repeat(30)}…"`],
    ["(bla \x01)", "1:2 unknown operator bla"],
    ["(module ;; a form feed \f\n (bla))", "2:3 unknown operator bla"],
    [[0x28, 0x62, 0xff, 0x29], "1:2 unknown operator b"],
    ["(module ;; \0\n (bla))", "2:3 unknown operator bla"],
    ["\n;; a comment \0\n(bla)", "3:2 unknown operator bla"],
    ["(module\n (func \0 nop))", "2:8 illegal character"],
    [[0x28, 0, 0x6d, 0], `undefined:undefined ${neither}28 00 6d 00`],
  ];
  for (const [source, expected] of rows) {
    assert.equal(
      errorOf(typeof source === "string" ? new TextEncoder().encode(source) : Uint8Array.from(source)),
      expected,
    );
  }
});
