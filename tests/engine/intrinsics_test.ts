/**
 * Intrinsic modules (the collector) in the tiers: baseline code does not load the optimizing compiler, and optimized
 * code replaces it while the collector is in use.
 */
import assert from "node:assert/strict";
import { optimizingForm } from "../../engine/compile/compile.ts";
import { hostArchitecture } from "../../engine/host/cpu.ts";
import { collectGarbage, gcStatistics, NewEngine } from "../../engine/mod.ts";

/** Builds `n` lists of `n` pairs, keeps the last one, and returns the sum of its numbers. */
const LISTS = `(module
  (type $pair (struct (field i32) (field (ref null $pair))))
  (global $kept (mut (ref null $pair)) (ref.null $pair))
  (func (export "build") (param $n i32) (result i32)
    (local $i i32) (local $k i32) (local $sum i32) (local $p (ref null $pair))
    (local.set $i (local.get $n))
    (loop $lists
      (global.set $kept (ref.null $pair))
      (local.set $k (local.get $n))
      (loop $pairs
        (global.set $kept (struct.new $pair (local.get $k) (global.get $kept)))
        (br_if $pairs (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
      (br_if $lists (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    (local.set $p (global.get $kept))
    (loop $add
      (local.set $sum (i32.add (local.get $sum) (struct.get $pair 0 (local.get $p))))
      (br_if $add (i32.eqz (ref.is_null (local.tee $p (struct.get $pair 1 (local.get $p)))))))
    (local.get $sum)))`;

const N = 700;
const SUM = N * (N + 1) / 2;

Deno.test("programs of baseline code collect garbage without the optimizing compiler", () => {
  const instance = NewEngine({ tier: "baseline" }).compile(LISTS).instantiate();
  const before = gcStatistics().collections;
  assert.equal(instance.call({}, "build", N), SUM);
  collectGarbage();
  assert.ok(gcStatistics().collections > before);
  assert.equal(optimizingForm(hostArchitecture()), undefined);
  assert.equal(instance.call({}, "build", N), SUM);
});

Deno.test("optimized code replaces the collector's baseline code while lists are alive", () => {
  const instance = NewEngine({ tier: "baseline" }).compile(LISTS).instantiate();
  const end = performance.now() + 60_000;
  while (optimizingForm(hostArchitecture()) === undefined && performance.now() < end) {
    assert.equal(instance.call({}, "build", N), SUM);
  }
  assert.equal(
    optimizingForm(hostArchitecture()),
    "compiled",
    "no thread may be started for tier baseline: this one has compiled it",
  );
  collectGarbage();
  assert.equal(instance.call({}, "build", N), SUM);
});
