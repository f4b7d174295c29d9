/**
 * Strings created by machine code: reuse of handle numbers and text slots, and strings that JavaScript reads.
 */
import assert from "node:assert/strict";
import { randoms } from "../../../tests/support/randoms.ts";
import { Model, play, SLOTS, start as startProgram } from "../../../tests/webassembly/string_programs.ts";
import { wasm } from "../../../tests/webassembly/subject.ts";
import { realmStore } from "../realm_store.ts";
import { configure, WebAssembly } from "../../webassembly/mod.ts";

// Only optimized code creates strings itself.
configure({ tier: "optimizing" });

const PROGRAM = `(module
  (import "wasm:js-string" "concat" (func $concat (param externref externref) (result (ref extern))))
  (import "wasm:js-string" "length" (func $length (param externref) (result i32)))
  (import "m" "seen" (func $seen (param externref)))
  (func (export "concat") (param externref externref) (result externref) (call $concat (local.get 0) (local.get 1)))
  (func (export "many") (param $s externref) (param $n i32) (param $every i32) (result i32) (local $t externref) (local $sum i32)
    (loop $more
      (local.set $t (call $concat (local.get $s) (local.get $s)))
      (local.set $sum (i32.add (local.get $sum) (call $length (local.get $t))))
      (if (i32.eqz (i32.rem_u (local.get $n) (local.get $every))) (then (call $seen (local.get $t))))
      (br_if $more (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))`;

type Concat = (a: unknown, b: unknown) => unknown;
type Many = (text: unknown, count: number, every: number) => number;

function start(seen: (text: unknown) => void): { concat: Concat; many: Many } {
  const Module = WebAssembly.Module as unknown as new (
    bytes: unknown,
    options: unknown,
  ) => typeof WebAssembly.Module.prototype;
  const { exports } = new WebAssembly.Instance(new Module(wasm(PROGRAM), { builtins: ["js-string"] }), { m: { seen } });
  return exports as { concat: Concat; many: Many };
}

Deno.test("handle numbers of strings created by machine code are reused, even if JavaScript has read some", () => {
  let seen = 0;
  const { many } = start((text) => {
    assert.equal(text, "abab");
    seen++;
  });
  const { strings, thread: { handles } } = realmStore();
  strings.open();
  const before = handles.count;
  assert.equal(many("ab", 400_000, 100), 1_600_000);
  assert.equal(seen, 4000);
  assert.ok(handles.count < before + 50_000, `${handles.count} numbers after ${before}`);
  assert.ok(handles.size < 5000, `${handles.size} of JavaScript's in use`);
});

Deno.test("strings held by JavaScript survive the reuse of their numbers", () => {
  const { concat, many } = start(() => {});
  const { strings, thread: { handles } } = realmStore();
  strings.open();
  const held = Array.from({ length: 100 }, (_, k) => concat(`number ${k} `, "\udc00"));
  many("x", 100_000, 1_000_000);
  realmStore().sweeps.collect();
  assert.deepEqual(held, Array.from({ length: 100 }, (_, k) => `number ${k} \udc00`));
  // Every number can be read, with and without a string.
  for (const value of handles.values()) assert.notEqual(typeof value, "symbol");
});

Deno.test("machine code is made once, and instances before and after use it", () => {
  const { strings } = realmStore();
  const { many } = start(() => {});
  strings.open();
  strings.open();
  assert.ok(strings.isOpen);
  assert.equal(many("abc", 10, 100) + start(() => {}).many("abc", 10, 100), 120);
});

Deno.test("collections at nearly every allocation free no string in use", () => {
  const { strings, heap } = realmStore();
  strings.open();
  const ours = startProgram(WebAssembly);
  for (const interval of [1, 2, 7]) {
    for (let k = 0; k < SLOTS; k++) ours.set(k, null);
    heap.stress(interval);
    try {
      play([ours], new Model(), randoms(interval * 1000), 800);
    } finally {
      heap.stress(0);
    }
  }
});
