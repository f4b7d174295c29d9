/**
 * Typed function references: calls through them (of host functions and other instances, too), null, branches on null,
 * tables with initialisers, and the values that JavaScript may pass. In: modules as text. Out: results, traps,
 * TypeErrors.
 */
import assert from "node:assert/strict";
import { NewEngine } from "../../engine/mod.ts";

const MODES = ["guard", "explicit"] as const;

const MODULE = `(module
  (type $f (func (param i32) (result i32)))
  (type $g (func (param i32 i32) (result i32)))
  (import "h" "host" (func $host (type $f)))
  (import "m" "other" (func $other (type $f)))
  (table $t 3 3 (ref $f) (ref.func $double))
  (global $kept (mut (ref null $f)) (ref.null $f))
  (memory 1) (data (i32.const 0) "\\05")
  (elem declare func $double $host $other $add)
  (func $double (type $f) (i32.mul (local.get 0) (i32.const 2)))
  (func $add (type $g) (i32.add (local.get 0) (local.get 1)))
  (func (export "call") (param (ref null $f)) (param i32) (result i32)
    (i32.add (call_ref $f (local.get 1) (local.get 0)) (i32.load8_u (i32.const 0))))
  (func (export "known") (param i32) (result i32)
    (i32.sub (call_ref $f (call_ref $f (local.get 0) (ref.func $double)) (ref.func $host))
      (call_ref $f (local.get 0) (ref.func $other))))
  (func (export "table") (param i32 i32) (result i32) (call_ref $f (local.get 1) (table.get $t (local.get 0))))
  (func (export "set") (param i32) (table.set $t (local.get 0) (ref.func $other)))
  (func (export "keep") (param (ref null $f)) (result (ref null $f))
    (local $old (ref null $f))
    (local.set $old (global.get $kept)) (global.set $kept (local.get 0)) (local.get $old))
  (func (export "null_to") (param (ref null $f)) (result i32)
    (block $null (return (call_ref $f (i32.const 20) (br_on_null $null (local.get 0))))) (i32.const -1))
  (func (export "non_null_to") (param (ref null $f)) (result i32)
    (local $r (ref $f))
    (local.set $r (block $has (result (ref $f)) (br_on_non_null $has (local.get 0)) (return (i32.const -1))))
    (call_ref $f (i32.const 30) (local.get $r)))
  (func (export "as_non_null") (param (ref null $f)) (result i32)
    (local $r (ref $f))
    (local.set $r (ref.as_non_null (local.get 0)))
    (call_ref $f (i32.const 40) (local.get $r)))
  (func (export "loop") (param (ref null $f) i32) (result i32) (local i32)
    (loop $l
      (local.set 2 (i32.add (local.get 2) (call_ref $f (local.get 1) (local.get 0))))
      (br_if $l (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
    (local.get 2))
  (export "double" (func $double)) (export "add" (func $add)))`;

for (const bounds of MODES) {
  for (const inline of [true, false]) {
    Deno.test(`typed function references (${bounds}${inline ? "" : ", no inlining"})`, () => {
      const engine = NewEngine({ bounds, verify: true, optimizations: { inline } });
      const other = engine.compile(`(module (memory 1) (data (i32.const 0) "\\07")
        (func (export "other") (param i32) (result i32) (i32.add (local.get 0) (i32.load8_u (i32.const 0)))))`)
        .instantiate();
      const instance = engine.compile(MODULE)
        .instantiate({}, { h: { host: (x: number) => x - 100 }, m: other.exports });
      const call = (name: string, ...args: unknown[]) => instance.call({}, name, ...args);
      const { double, add } = instance.exports;
      assert.equal(call("call", double, 4), 13);
      assert.equal(call("call", other.exports["other"], 4), 16);
      assert.equal(call("known", 30), 60 - 100 - 37);
      assert.throws(() => call("call", null, 1), /null function reference/);
      assert.throws(() => call("call", add, 1), TypeError);
      assert.throws(() => call("call", () => 1, 1), TypeError);
      assert.throws(() => call("call", undefined, 1), TypeError);
      assert.deepEqual([call("table", 0, 21), call("table", 2, 4)], [42, 8]);
      call("set", 2);
      assert.equal(call("table", 2, 4), 11);
      assert.throws(() => call("table", 3, 4), /out of bounds table access/);
      assert.equal(call("keep", double), null);
      assert.equal(call("keep", null), double);
      assert.deepEqual([call("null_to", null), call("null_to", double)], [-1, 40]);
      assert.deepEqual([call("non_null_to", null), call("non_null_to", double)], [-1, 60]);
      assert.equal(call("as_non_null", double), 80);
      assert.throws(() => call("as_non_null", null), /null reference/);
      assert.equal(call("loop", double, 100), 10100);
      assert.throws(() => call("loop", null, 100), /null function reference/);
    });
  }
}

Deno.test("a table of non-nullable references needs an initialiser, and imports are matched by type", () => {
  const engine = NewEngine({ verify: true });
  assert.throws(() => engine.compile(`(module (type $f (func)) (table 1 (ref $f)))`), /type mismatch/);
  const maker = engine.compile(`(module (type $f (func (param i32)))
    (table (export "t") 2 (ref null $f)) (global (export "g") (ref null $f) (ref.null $f)))`).instantiate();
  const takes = (type: string) =>
    engine.compile(`(module (type $f (func (param i32))) (type $g (func (param i64)))
    (import "m" "t" (table 2 ${type})) (import "m" "g" (global ${type})))`);
  takes("(ref null $f)").instantiate({}, { m: maker.exports });
  for (const type of ["(ref null $g)", "(ref $f)", "externref"]) {
    assert.throws(() => takes(type).instantiate({}, { m: maker.exports }), /incompatible import type/);
  }
});
