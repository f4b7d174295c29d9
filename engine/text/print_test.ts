/**
 * Printed modules: the text itself, and its completeness.
 */
import assert from "node:assert/strict";
import { decodeModule } from "../binary/decode.ts";
import { encodeModule } from "../binary/encode.ts";
import { parseModule } from "./parse_module.ts";
import { printModule } from "./print.ts";

/** Requires the printed text to parse to the same bytes, and those to print as the same text. */
function roundTrip(text: string): string {
  const module = parseModule(text);
  const printed = printModule(module);
  const again = parseModule(printed);
  assert.deepEqual(again.bytes, module.bytes, printed);
  assert.equal(printModule(again), printed);
  return printed;
}

Deno.test("a module is printed with its names, flat and indented", () => {
  const printed = roundTrip(`(module $fib
    (memory $mem (export "memory") 1 2)
    (func $fib (export "fib") (param $n i32) (result i32) (local f64 f64) (local $x i64)
      (if (result i32) (i32.lt_s (local.get $n) (i32.const 2))
        (then (local.get $n))
        (else
          (i32.store offset=4 (i32.const 0) (local.get $n))
          (i32.add (call $fib (i32.sub (local.get $n) (i32.const 1)))
                   (call 0 (i32.sub (local.get $n) (i32.const 2)))))))
    (data $d (i32.const 8) "a\\"\\00\\ff"))`);
  assert.equal(
    printed,
    `(module $fib
  (type (;0;) (func (param i32) (result i32)))
  (memory $mem 1 2)
  (export "memory" (memory $mem))
  (export "fib" (func $fib))
  (func $fib (type 0) (param $n i32) (result i32)
    (local f64 f64) (local $x i64)
    local.get $n
    i32.const 2
    i32.lt_s
    if (result i32) ;; label = @1
      local.get $n
    else
      i32.const 0
      local.get $n
      i32.store offset=4
      local.get $n
      i32.const 1
      i32.sub
      call $fib
      local.get $n
      i32.const 2
      i32.sub
      call $fib
      i32.add
    end
  )
  (data $d (memory $mem) (i32.const 8) "a\\22\\00\\ff"))
`,
  );
});

Deno.test("names that are not identifiers or not unique are kept in annotations", () => {
  const module = parseModule('(func $a) (func (@name "a")) (func $"b c") (func (@name ""))');
  const printed = printModule(module);
  for (const binder of ["$a (type", '$a_1 (@name "a")', '$"b c" (type', '$_3 (@name "")']) {
    assert.ok(printed.includes(`(func ${binder}`), printed);
  }
  assert.deepEqual(parseModule(printed).names.funcs, module.names.funcs);
});

Deno.test("invisible characters in strings are escaped", () => {
  const printed = roundTrip('(func (export "\\u{1b}[31m\\u{202e}\\u{a0}é\\n\\"\\\\ \\u{200b}"))');
  assert.ok(printed.includes('"\\u{1b}[31m\\u{202e}\\u{a0}é\\n\\"\\\\ \\u{200b}"'), printed);
});

Deno.test("long data is broken into lines", () => {
  const printed = roundTrip(`(data "${"0123456789".repeat(20)}")`);
  assert.ok(Math.max(...printed.split("\n").map((line) => line.length)) < 100);
});

Deno.test("custom sections and branch hints become annotations; a damaged hint section keeps its bytes", () => {
  const printed = roundTrip(
    '(func (@metadata.code.branch_hint "\\01") (if (i32.const 0) (then))) (@custom "x" (before code) "y") (@custom "z" "")',
  );
  assert.ok(printed.includes('(@metadata.code.branch_hint "\\01")\n    if'), printed);
  assert.ok(printed.includes('(@custom "x" (after func) "y")'), printed);
  const damaged = parseModule('(func) (@custom "metadata.code.branch_hint" (before code) "\\ff")');
  assert.deepEqual(parseModule(printModule(damaged)).bytes, damaged.bytes);
});

Deno.test("deep nesting prints in space that is linear in the module", () => {
  const module = parseModule(`(func ${"block ".repeat(50_000)}${"end ".repeat(50_000)})`);
  const printed = printModule(module);
  assert.ok(printed.length < 100_000 * 100);
  assert.deepEqual(parseModule(printed).bytes, module.bytes);
});

Deno.test("a module with a malformed body is reported, not printed", () => {
  const module = parseModule("(func (nop))");
  const bytes = module.bytes.slice();
  bytes[module.funcs[0].body.offset + 1] = 0xff;
  assert.throws(() => printModule(decodeModule(bytes)), { name: "MalformedError", message: /illegal opcode ff/ });
});

Deno.test("printing does not change the module", () => {
  const module = parseModule('(func $f (param $x i32)) (@custom "c" "d")');
  const before = encodeModule(module);
  printModule(module);
  assert.deepEqual(encodeModule(module), before);
});
