/**
 * One module with every kind of field and immediate: it survives printing, and every prefix and mutation of its text
 * parses or fails with an error of the engine.
 */
import assert from "node:assert/strict";
import { WaftError } from "../base/errors.ts";
import { encodeModule } from "../binary/encode.ts";
import type { Module } from "../wasm/module.ts";
import { parseModule } from "./parse_module.ts";
import { printModule } from "./print.ts";
import { parseScript } from "./script.ts";

const SAMPLE = `
    (type $s (sub (struct (field $a (mut i8)) (field i64))))
    (type $s2 (sub final $s (struct (field (mut i8)) (field i64) (field f32))))
    (type $a (array (mut i16)))
    (rec (type $r1 (func (param (ref null $r2)))) (type $r2 (struct (field (ref $r1)))))
    (rec)
    (import "m" "é\\u{202e}" (func $imported (param $p i32) (result i64)))
    (import "m" "g" (global $ig (mut externref)))
    (tag $e (param i32))
    (table $t 1 2 funcref)
    (table $t2 i64 3 (ref null $s) (ref.null $s))
    (memory $m 1) (memory $m2 i64 1 2 shared)
    (global $g (mut i64) (i64.const -9223372036854775808))
    (global f32 (f32.const nan:0x200001)) (global f64 (f64.const -nan)) (global f64 (f64.const 0x1p-1074))
    (global i32 (i32.add (i32.const 1) (i32.const 2)))
    (global v128 (v128.const f32x4 1 nan -inf 0.1))
    (elem $el (i32.const 0) $f) (elem declare func $f) (elem (table $t) (offset (i32.const 1) (i32.const 0) i32.add) funcref)
    (elem funcref (ref.func $f) (item (ref.null func)) (item))
    (data $d "abc") (data (memory $m2) (i64.const 0) "")
    (start $f)
    (func $f (local $x (ref null $s))
      block $l (result i32 i32) i32.const -1 i32.const 2 br $l end drop drop
      (select (result i32) (i32.const 1) (i32.const 2) (i32.const 3)) drop
      (br_table 0 0 0 (i32.const 0)) unreachable
      (call_indirect $t (param i32) (i32.const 0) (i32.const 0))
      (call_indirect $t2 (type $r1) (ref.null $r2) (i64.const 0))
      (drop (i32.load8_u $m2 offset=0xffffffffffffffff align=1 (i64.const 0)))
      (drop (v128.load16_lane $m2 offset=8 align=1 7 (i64.const 0) (v128.const i64x2 1 -1)))
      (drop (v128.load16_lane 7 (i32.const 0) (v128.const i64x2 1 -1)))
      (drop (i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 31 (v128.const i64x2 0 0) (v128.const i64x2 0 0)))
      (memory.copy $m2 $m (i64.const 0) (i32.const 0) (i32.const 0)) (memory.init $m2 $d (unreachable))
      (table.init $t2 $el (unreachable)) (table.copy $t $t2 (unreachable)) (data.drop $d) (elem.drop $el)
      (drop (struct.get_u $s $a (struct.new $s (i32.const 1) (i64.const 2))))
      (drop (array.new_fixed $a 2 (i32.const 1) (i32.const 2))) (drop (array.new_data $a $d (unreachable)))
      (array.copy $a $a (unreachable))
      (drop (ref.test (ref $s2) (local.get $x))) (drop (ref.cast (ref null i31) (ref.null any)))
      (block (result anyref) (br_on_cast 0 anyref (ref struct) (ref.null any))) drop
      (try_table $tt (result i32) (catch $e 0) (catch_all_ref 1) (i32.const 0)) drop
      (try (do (nop)) (catch $e drop (rethrow 0)) (catch_all)) (try (do) (delegate 0))
      (throw $e (i32.const 1)) (throw_ref (ref.null exn)) (return_call $f)
      (drop (i32.atomic.rmw.add $m2 (i64.const 0) (i32.const 1))) atomic.fence
      (loop (param i32) drop) i64.const 9223372036854775807 f32.const 0.1 f64.const 1e300 drop)`;

/** Parses; a failure must be an error of the engine with a place. */
function parseOrReject(text: string | Uint8Array): Module | undefined {
  try {
    return parseModule(text);
  } catch (error) {
    assert.ok(error instanceof WaftError, `${error instanceof Error ? error.stack : error}\n${text}`);
    assert.notEqual(error.where, "", error.message);
    assert.ok(!error.message.includes("\n"), error.message);
    return undefined;
  }
}

/** A small generator of pseudo-random numbers, so that failures repeat. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return Math.floor(((state >>> 8) / 0x1000000) * below);
  };
}

Deno.test("every kind of immediate survives printing", () => {
  const module = parseModule(SAMPLE);
  const printed = printModule(module);
  const again = parseModule(printed);
  assert.deepEqual(again.bytes, module.bytes, printed);
  assert.equal(printModule(again), printed);
});

Deno.test("every prefix of a text parses or is rejected", () => {
  const bytes = new TextEncoder().encode(SAMPLE);
  let accepted = 0;
  for (let end = 0; end < bytes.length; end++) if (parseOrReject(bytes.subarray(0, end)) !== undefined) accepted++;
  // Only prefixes that end between fields are modules.
  assert.ok(accepted > 10 && accepted < 400, String(accepted));
});

Deno.test("changed bytes never crash, and every module that parses can be printed and parsed again", () => {
  const bytes = new TextEncoder().encode(SAMPLE);
  const random = randomNumbers(12345);
  const charset = new TextEncoder().encode('()"$; @0179xnaeif.-+_\\ \n');
  let accepted = 0;
  for (let round = 0; round < 1500; round++) {
    const changed = bytes.slice();
    for (let i = 0; i <= round % 3; i++) changed[random(changed.length)] = charset[random(charset.length)];
    const module = parseOrReject(changed);
    if (module === undefined) continue;
    accepted++;
    assert.deepEqual(encodeModule(module), module.bytes);
    assert.deepEqual(parseModule(printModule(module)).bytes, module.bytes);
  }
  assert.ok(accepted > 20, String(accepted));
});

Deno.test("moved tokens never crash, in modules and scripts", () => {
  const words = SAMPLE.match(/"(?:[^"\\]|\\.)*"|[()]|[^\s()"]+/g)!;
  const random = randomNumbers(777);
  for (let round = 0; round < 1500; round++) {
    const moved = words.slice();
    for (let i = 0; i <= round % 4; i++) {
      const word = moved.splice(random(moved.length), 1)[0];
      if (random(3) > 0) moved.splice(random(moved.length), 0, word);
    }
    const text = moved.join(" ");
    parseOrReject(text);
    try {
      for (const command of parseScript(text)) if (command.kind === "module") command.module.encode();
    } catch (error) {
      assert.ok(error instanceof WaftError, `${error}\n${text}`);
    }
  }
});
