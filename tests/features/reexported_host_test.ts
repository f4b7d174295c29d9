/**
 * Re-exported host functions: an instance that imports them from another instance calls the original functions,
 * regardless of the indices of its own imports. Regression: direct calls used the callee's index in the caller's own
 * table of host functions, whose types may differ.
 */
import assert from "node:assert/strict";
import { NewEngine } from "../../engine/mod.ts";

const GIVER = `(module
  (type $s (struct (field (mut i64))))
  (import "h" "zero" (func $zero (param i32) (result i32)))
  (import "h" "one" (func $one (param i32) (result i32)))
  (import "h" "object" (func $object (param i64) (result (ref null $s))))
  (export "zero" (func $zero)) (export "one" (func $one)) (export "object" (func $object)))`;

const TAKER = `(module
  (type $s (struct (field (mut i64))))
  (import "g" "zero" (func $own0 (param i64) (result i64)))
  (import "g" "one" (func $own1 (param i64) (result externref)))
  (import "g" "same" (func $own2 (param i64) (result i64)))
  (import "b" "zero" (func $zero (param i32) (result i32)))
  (import "b" "one" (func $one (param i32) (result i32)))
  (import "b" "object" (func $object (param i64) (result (ref null $s))))
  (table 2 funcref) (elem (i32.const 0) $zero $one)
  (func (export "zero") (param i32) (result i32) (call $zero (local.get 0)))
  (func (export "one") (param i32) (result i32) (call $one (local.get 0)))
  (func (export "tail") (param i32) (result i32) (return_call $one (local.get 0)))
  (func (export "table") (param i32 i32) (result i32)
    (call_indirect (param i32) (result i32) (local.get 1) (local.get 0)))
  (func (export "null") (param i64) (result i32) (ref.is_null (call $object (local.get 0))))
  (func (export "own") (param i64) (result i64)
    (i64.add (call $own0 (local.get 0)) (call $own2 (local.get 0))))
  (func (export "catch") (param i32) (result i32)
    (block $h (drop (try_table (result i32) (catch_all $h) (call $one (local.get 0)))) (return (i32.const 1)))
    (i32.const -1)))`;

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: host functions keep their identity when they are re-exported`, async () => {
    const engine = NewEngine({ bounds });
    const wrong = () => {
      throw new Error("An unrelated host function was called");
    };
    const one = (x: number) => {
      if (x < 0) throw new Error("negative");
      return x + 2000;
    };
    const giver = engine.compile(GIVER).instantiate({}, {
      h: { zero: (x: number) => x + 1000, one, object: () => null },
    });
    const taker = engine.compile(TAKER).instantiate({}, {
      g: { zero: (x: bigint) => x * 2n, one: wrong, same: (x: bigint) => x },
      b: giver.exports,
    });
    assert.equal(taker.call({}, "zero", 1), 1001);
    for (const name of ["one", "tail"]) assert.equal(taker.call({}, name, 1), 2001, name);
    assert.deepEqual([taker.call({}, "table", 0, 1), taker.call({}, "table", 1, 1)], [1001, 2001]);
    assert.equal(taker.call({}, "null", 0x414141410000n), 1);
    assert.equal(taker.call({}, "own", 7n), 21n);
    assert.deepEqual([taker.call({}, "catch", 0), taker.call({}, "catch", -1)], [1, -1]);
    assert.equal(await taker.callAsync({}, "one", 5), 2005);
  });
}
