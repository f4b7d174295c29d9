/**
 * Execution of tail calls: constant stack for every kind of callee, across instances and with more arguments than
 * registers, and the caller's state (context, memory) after the callee has returned. In: modules as text. Out: results.
 */
import assert from "node:assert/strict";
import { NewEngine } from "../../engine/mod.ts";

const MODES = ["guard", "explicit"] as const;
/** More iterations than the guest stack has bytes. */
const ROUNDS = 2_000_000;

const LOOPS = `(module
  (type $loop (func (param i32 i64) (result i64)))
  (table 1 funcref) (elem (i32.const 0) func $indirect)
  (elem declare func $reference)
  (func $direct (export "direct") (param i32 i64) (result i64)
    (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
    (return_call $direct2 (i32.sub (local.get 0) (i32.const 1)) (i64.add (local.get 1) (i64.const 3))))
  (func $direct2 (param i32 i64) (result i64)
    (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
    (return_call $direct (i32.sub (local.get 0) (i32.const 1)) (i64.add (local.get 1) (i64.const 3))))
  (func $indirect (export "indirect") (type $loop)
    (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
    (return_call_indirect (type $loop) (i32.sub (local.get 0) (i32.const 1)) (i64.add (local.get 1) (i64.const 3))
      (i32.const 0)))
  (func $reference (export "reference") (type $loop)
    (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
    (return_call_ref $loop (i32.sub (local.get 0) (i32.const 1)) (i64.add (local.get 1) (i64.const 3))
      (ref.func $reference)))
  (func $many (export "many") (param i32 i64 i64 i64 i64 i64 i64 i64 i64 i64 f64 f64 f64 f64 f64 f64 f64 f64 f64)
    (result i64 i64 i64 f64)
    (if (i32.eqz (local.get 0)) (then (return (local.get 1) (local.get 8) (local.get 9) (local.get 18))))
    (return_call $many (i32.sub (local.get 0) (i32.const 1)) (i64.add (local.get 1) (i64.const 3)) (local.get 2)
      (local.get 3) (local.get 4) (local.get 5) (local.get 6) (local.get 7) (local.get 9) (local.get 8) (local.get 10)
      (local.get 11) (local.get 12) (local.get 13) (local.get 14) (local.get 15) (local.get 16) (local.get 17)
      (f64.add (local.get 18) (f64.const 1)))))`;

for (const bounds of MODES) {
  Deno.test(`tail calls take constant stack (${bounds})`, () => {
    const instance = NewEngine({ bounds, verify: true }).compile(LOOPS).instantiate();
    for (const name of ["direct", "indirect", "reference"]) {
      assert.equal(instance.call({}, name, ROUNDS, 5n), 5n + 3n * BigInt(ROUNDS), name);
    }
    const zeros = [0n, 0n, 0n, 0n, 0n, 0n];
    const floats = [0, 0, 0, 0, 0, 0, 0, 0, 0.5];
    const results = instance.call({}, "many", ROUNDS + 1, 1n, ...zeros, 8n, 9n, ...floats);
    assert.deepEqual(results, [1n + 3n * BigInt(ROUNDS + 1), 9n, 8n, ROUNDS + 1.5]);
  });

  Deno.test(`tail calls across instances take constant stack and restore the caller's context (${bounds})`, () => {
    const engine = NewEngine({ bounds, verify: true });
    // Each instance counts its turns in its own memory; control alternates through a table.
    const player = (own: number, other: number) =>
      `(module
        (type $turn (func (param i32) (result i32)))
        (import "shared" "table" (table 2 funcref))
        (memory 1)
        (elem (i32.const ${own}) func $turn)
        (func $turn (type $turn)
          (i32.store (i32.const 8) (i32.add (i32.load (i32.const 8)) (i32.const 1)))
          (if (i32.eqz (local.get 0)) (then (return (i32.const ${own}))))
          (return_call_indirect (type $turn) (i32.sub (local.get 0) (i32.const 1)) (i32.const ${other})))
        (func (export "play") (param i32) (result i32)
          (i32.mul (call $turn (local.get 0)) (i32.const 1000000000))
          (i32.add (i32.load (i32.const 8))))
        (func (export "turns") (result i32) (i32.load (i32.const 8))))`;
    const shared = engine.compile(`(module (table (export "table") 2 funcref))`).instantiate();
    const one = engine.compile(player(0, 1)).instantiate({}, { shared: shared.exports });
    const two = engine.compile(player(1, 0)).instantiate({}, { shared: shared.exports });
    assert.equal(one.call({}, "play", ROUNDS), ROUNDS / 2 + 1);
    assert.equal(two.call({}, "turns"), ROUNDS / 2);
    assert.equal(one.call({}, "play", 1), 1_000_000_000 + ROUNDS / 2 + 2);
  });

  Deno.test(`host functions can be tail-called (${bounds})`, () => {
    const engine = NewEngine({ bounds, verify: true });
    const instance = engine.compile(`(module
      (type $f (func (param i32 i64 f64 i32 i32 i32 i32 i32 i32) (result f64)))
      (import "host" "f" (func $f (type $f)))
      (table 1 funcref) (elem (i32.const 0) func $f)
      (func (export "direct") (type $f)
        (return_call $f (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 5)
          (local.get 6) (local.get 7) (local.get 8)))
      (func $indirect (type $f)
        (return_call_indirect (type $f) (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4)
          (local.get 5) (local.get 6) (local.get 7) (local.get 8) (i32.const 0)))
      (func (export "indirect") (type $f)
        (f64.neg (call $indirect (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 5)
          (local.get 6) (local.get 7) (local.get 8)))))`)
      .instantiate({}, { host: { f: (...args: unknown[]) => args.reduce((sum: number, x) => sum + Number(x), 0) } });
    assert.equal(instance.call({}, "direct", 1, 2n, 3.5, 4, 5, 6, 7, 8, 9), 45.5);
    assert.equal(instance.call({}, "indirect", 1, 2n, 3.5, 4, 5, 6, 7, 8, 9), -45.5);
  });

  Deno.test(`a tail-called function may clobber the registers of its caller's caller (${bounds})`, () => {
    const instance = NewEngine({ bounds, verify: true, optimizations: { inline: false } }).compile(`(module
      (func $busy (param i64) (result i64) (local i64 i64 i64 i64 i64 i64 i64 i64 i64)
        (local.set 1 (i64.mul (local.get 0) (i64.const 3))) (local.set 2 (i64.mul (local.get 1) (i64.const 5)))
        (local.set 3 (i64.mul (local.get 2) (i64.const 7))) (local.set 4 (i64.mul (local.get 3) (i64.const 11)))
        (local.set 5 (i64.mul (local.get 4) (i64.const 13))) (local.set 6 (i64.mul (local.get 5) (i64.const 17)))
        (local.set 7 (i64.mul (local.get 6) (local.get 5))) (local.set 8 (i64.mul (local.get 7) (local.get 4)))
        (local.set 9 (i64.mul (local.get 8) (local.get 3)))
        (i64.xor (local.get 9) (i64.xor (local.get 8) (i64.xor (local.get 7) (i64.xor (local.get 6)
          (i64.xor (local.get 5) (i64.xor (local.get 4)
            (i64.xor (local.get 3) (i64.xor (local.get 2) (local.get 1))))))))))
      (func $jump (param i64) (result i64) (return_call $busy (local.get 0)))
      (func (export "f") (param i64 i64 i64 i64 i64) (result i64)
        (drop (call $jump (local.get 0)))
        (i64.sub
          (i64.mul (local.get 0) (local.get 1))
          (i64.add (local.get 2) (i64.mul (local.get 3) (local.get 4))))))`)
      .instantiate();
    assert.equal(instance.call({}, "f", 2n, 3n, 5n, 7n, 11n), 6n - 82n);
  });
}

Deno.test("a trap after tail calls across instances names the remaining frames", () => {
  const engine = NewEngine({ verify: true, optimizations: { inline: false } });
  const inner = engine.compile(`(module (func $stop (export "stop") (param i32) (result i32)
    (i32.div_u (i32.const 1) (local.get 0))))`).instantiate();
  const outer = engine.compile(`(module (import "m" "stop" (func $stop (param i32) (result i32)))
    (func $gone (param i32) (result i32) (return_call $stop (local.get 0)))
    (func $caller (export "f") (param i32) (result i32) (i32.add (i32.const 1) (call $gone (local.get 0)))))`)
    .instantiate({}, { m: inner.exports });
  assert.equal(outer.call({}, "f", 1), 2);
  assert.throws(() => outer.call({}, "f", 0), (error: Error & { frames?: { funcName?: string }[] }) => {
    assert.equal(error.message, "integer divide by zero");
    assert.deepEqual(error.frames?.map((frame) => frame.funcName), ["stop", "caller"]);
    return true;
  });
});
