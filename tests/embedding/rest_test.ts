/**
 * Deferred reclamation: results survive in their slots while a sweep is due, and memory survives while another
 * instance's running code relies on its length. (Regressions: a sweep between the end of a call and the reading of its
 * results freed them; a reset of a memory under an importer that had checked an address permitted an out-of-bounds
 * access.)
 */
import assert from "node:assert/strict";
import { NewEngine, type TrapError } from "@waft/engine";

type Calls = Record<string, (...args: unknown[]) => unknown>;

const MAKER = `(module
  (import "h" "f" (func $h (result externref)))
  (type $s (struct (field i64) (field i64)))
  (func $take (param i32) (result externref) (local $l externref)
    (loop $x
      (local.set $l (call $h))
      (br_if $x (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get $l))
  (func (export "last") (param i32) (result externref) (call $take (local.get 0)))
  (func (export "both") (param i32) (result (ref $s) externref) (local $o (ref null $s))
    (local.set $o (struct.new $s (i64.const 7) (i64.const 8)))
    (drop (call $take (local.get 0)))
    (ref.as_non_null (local.get $o))
    (call $h))
  (func (export "litter") (param i32)
    (loop $x
      (drop (struct.new $s (i64.const -1) (i64.const -1)))
      (br_if $x (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "get") (param (ref $s)) (result i64) (struct.get $s 0 (local.get 0))))`;

Deno.test("results are there after a call that made a sweep due", () => {
  let made = 0;
  const instance = NewEngine({}).compile(MAKER).instantiate({}, { h: { f: () => ({ made: ++made }) } });
  const { last, both, litter, get } = instance.exports as unknown as Calls;
  for (const count of [10, 1100, 2500, 5000, 1]) {
    assert.deepEqual(last!(count), { made });
  }
  litter!(5); // the heap is open from now on
  for (const count of [10, 1100, 2500, 5000, 1]) {
    const [object, value] = both!(count) as unknown[];
    assert.deepEqual(value, { made });
    litter!(10_000);
    assert.equal(get!(object), 7n);
  }
});

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: an instance is not reset while another's code uses its state`, () => {
    const engine = NewEngine({ bounds });
    const owner = engine.compile(`(module
      (memory (export "m") 1 1000) (memory (export "n") 1 1000) (table (export "t") 1 10 funcref)
      (func (export "grow") (drop (memory.grow 0 (i32.const 500))) (drop (memory.grow 1 (i32.const 500)))))`)
      .instantiate();
    const outcomes: string[] = [];
    const reset = () => {
      try {
        owner.reset();
        outcomes.push("reset");
      } catch (error) {
        outcomes.push((error as Error).message);
      }
    };
    const user = engine.compile(`(module
      (import "a" "m" (memory 1 1000)) (import "a" "n" (memory 1 1000)) (import "h" "f" (func $h))
      (func (export "first") (param i32) (result i32)
        (i32.store (local.get 0) (i32.const 3)) (call $h) (i32.load (local.get 0)))
      (func (export "second") (param i32) (result i32)
        (i32.store 1 (local.get 0) (i32.const 4)) (call $h) (i32.load 1 (local.get 0))))`)
      .instantiate({}, { a: owner.exports, h: { f: reset } });
    const tableUser = engine.compile(`(module (import "a" "t" (table 1 10 funcref)) (import "h" "f" (func $h))
      (func (export "go") (call $h)))`).instantiate({}, { a: owner.exports, h: { f: reset } });
    owner.call({}, "grow");
    const far = 300 * 65536;
    assert.equal(user.call({}, "first", far), 3);
    assert.equal(user.call({}, "second", far), 4);
    tableUser.call({}, "go");
    assert.equal(outcomes.length, 3);
    for (const outcome of outcomes) assert.match(outcome, /not idle: a call of another/);
    owner.reset();
    for (const name of ["first", "second"]) {
      assert.throws(() => user.call({}, name, far), (e) => /out of bounds/.test((e as TrapError).message));
    }
  });
}
