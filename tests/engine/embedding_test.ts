/**
 * The contract of an embedding program: instances, imports and exports between them, host functions, traps.
 */
import assert from "node:assert/strict";
import { ExhaustionError, host, LinkError, NewEngine, TrapError } from "@waft/engine";

for (const bounds of ["guard", "explicit"] as const) {
  const engine = NewEngine({ bounds, verify: true });
  const run = (name: string, test: () => void) => Deno.test(`${bounds}: ${name}`, test);

  run("numbers of every type cross in both directions", () => {
    const { exports } = engine.compile(`(module
      (func (export "i32") (param i32) (result i32) (local.get 0))
      (func (export "i64") (param i64) (result i64) (local.get 0))
      (func (export "f32") (param f32) (result f32) (local.get 0))
      (func (export "f64") (param f64) (result f64) (local.get 0)))`).instantiate();
    const f = exports as Record<string, (x: unknown) => unknown>;
    assert.equal(f["i32"](-5), -5);
    assert.equal(f["i32"](2 ** 32 + 7), 7);
    assert.equal(f["i64"](-(2n ** 63n)), -(2n ** 63n));
    assert.equal(f["i64"](2n ** 64n - 1n), -1n);
    assert.throws(() => f["i64"](5), TypeError);
    assert.equal(f["f32"](0.1), Math.fround(0.1));
    assert.equal(f["f64"](-0), -0);
    assert.ok(Number.isNaN(f["f64"]("x")));
  });

  run("functions take many parameters and return many results", () => {
    const types = Array.from({ length: 40 }, (_, i) => ["i32", "i64", "f32", "f64"][i % 4]);
    const text = `(module (func (export "f") (param ${types.join(" ")}) (result ${types.join(" ")})
      ${types.map((_, i) => `(local.get ${i})`).join(" ")}))`;
    const args = types.map((type, i) => type === "i64" ? BigInt(i) : i);
    assert.deepEqual(engine.compile(text).instantiate().call({}, "f", ...args), args);
  });

  run("host functions return several results, and exceptions propagate through them", () => {
    const module = engine.compile(`(module
      (import "h" "swap" (func $swap (param i32 f64) (result f64 i32)))
      (import "h" "fail" (func $fail))
      (func (export "swap") (param i32 f64) (result f64 i32) (call $swap (local.get 0) (local.get 1)))
      (func (export "fail") (call $fail)))`);
    const boom = new Error("boom");
    const instance = module.instantiate({}, {
      h: {
        swap: (a: number, b: number) => [b, a],
        fail: () => {
          throw boom;
        },
      },
    });
    assert.deepEqual(instance.call({}, "swap", 3, 1.5), [1.5, 3]);
    assert.throws(() => instance.call({}, "fail"), (error) => error === boom);
    assert.deepEqual(instance.call({}, "swap", 4, 2.5), [2.5, 4]);
  });

  run("host functions may call back into the instance", () => {
    const module = engine.compile(`(module
      (import "h" "f" (func $f (param i32) (result i32)))
      (func (export "down") (param i32) (result i32)
        (if (result i32) (i32.eqz (local.get 0))
          (then (i32.const 0))
          (else (i32.add (local.get 0) (call $f (i32.sub (local.get 0) (i32.const 1))))))))`);
    const instance = module.instantiate({}, { h: { f: (n: number) => instance.call({}, "down", n) } });
    assert.equal(instance.call({}, "down", 100), 5050);
  });

  run("traps are errors with frames, and leave the instance usable", () => {
    const instance = engine.compile(`(module
      (func $inner (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
      (func $outer (export "div") (param i32 i32) (result i32)
        (i32.add (i32.const 1) (call $inner (local.get 0) (local.get 1)))))`)
      .instantiate();
    assert.throws(() => instance.call({}, "div", 1, 0), (error) => {
      assert.ok(error instanceof TrapError);
      assert.equal(error.message, "integer divide by zero");
      assert.deepEqual(error.frames.map((frame) => frame.funcName), ["inner", "outer"]);
      assert.deepEqual(error.frames.map((frame) => frame.line), [2, 4]);
      return true;
    });
    assert.throws(() => instance.call({}, "div", -(2 ** 31), -1), /integer overflow/);
    assert.equal(instance.call({}, "div", 7, 2), 4);
  });

  run("memory accesses out of bounds trap at every edge", () => {
    const instance = engine.compile(`(module (memory (export "m") 1 2)
      (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
      (func (export "far") (param i32) (result i32) (i32.load offset=0xfffffffc (local.get 0)))
      (func (export "store") (param i32 i64) (i64.store (local.get 0) (local.get 1)))
      (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))`).instantiate();
    assert.equal(instance.call({}, "load", 65532), 0);
    for (const at of [65533, 65535, 65536, 2 ** 31, -1]) {
      assert.throws(() => instance.call({}, "load", at), /out of bounds memory access/);
    }
    for (const at of [0, 1, -1]) assert.throws(() => instance.call({}, "far", at), /out of bounds/);
    assert.throws(() => instance.call({}, "store", 65529, 1n), /out of bounds/);
    assert.equal(instance.call({}, "grow", 1), 1);
    assert.equal(instance.call({}, "load", 65533), 0);
    assert.equal(instance.call({}, "grow", 1), -1);
    assert.equal((instance.exports["m"] as { buffer: ArrayBuffer }).buffer.byteLength, 131072);
  });

  run("endless recursion is an ExhaustionError, and the instance stays usable", () => {
    const instance = engine.compile(`(module
      (func $r (export "r") (param i64 f64) (result i64)
        (i64.add (i64.const 1) (call $r (i64.add (local.get 0) (i64.const 1)) (local.get 1))))
      (func (export "ok") (result i32) (i32.const 42)))`).instantiate();
    for (let i = 0; i < 3; i++) {
      assert.throws(() => instance.call({}, "r", 0n, 0), ExhaustionError);
      assert.equal(instance.call({}, "ok"), 42);
    }
  });

  run("instances are isolated, and shared exports are shared", () => {
    const counter = engine.compile(`(module
      (memory (export "memory") 1) (global $n (export "n") (mut i32) (i32.const 0)) (table (export "t") 2 funcref)
      (func $next (export "next") (result i32)
        (global.set $n (i32.add (global.get $n) (i32.const 1)))
        (i32.store (i32.const 0) (global.get $n))
        (global.get $n))
      (elem (i32.const 0) $next))`);
    const a = counter.instantiate();
    const b = counter.instantiate();
    assert.equal(a.call({}, "next"), 1);
    assert.equal(a.call({}, "next"), 2);
    assert.equal(b.call({}, "next"), 1);
    const user = engine.compile(`(module
      (import "c" "memory" (memory 1)) (import "c" "n" (global $n (mut i32))) (import "c" "t" (table 2 funcref))
      (import "c" "next" (func $next (result i32)))
      (type $r (func (result i32)))
      (func (export "sum") (result i32)
        (i32.add
          (i32.add (call $next) (call_indirect (type $r) (i32.const 0)))
          (i32.add (global.get $n) (i32.load (i32.const 0)))))
      (func (export "null") (result i32) (call_indirect (type $r) (i32.const 1))))`).instantiate({}, {
      c: a.exports as Record<string, unknown>,
    });
    assert.equal(user.call({}, "sum"), 3 + 4 + 4 + 4);
    assert.equal((a.exports["n"] as { value: unknown }).value, 4);
    assert.throws(() => user.call({}, "null"), /uninitialized element/);
  });

  run("instances use tables, globals and memories of the host", () => {
    const table = host.table("funcref", 2, 4);
    const global = host.global("i64", true, 5n);
    const memory = host.memory(1, 3, bounds);
    const instance = engine.compile(`(module
      (import "h" "t" (table 2 funcref)) (import "h" "g" (global $g (mut i64))) (import "h" "m" (memory 1))
      (func $seven (result i32) (i32.const 7)) (elem (i32.const 1) $seven) (data (i32.const 4) "waft")
      (func (export "inc") (global.set $g (i64.add (global.get $g) (i64.const 1)))))`)
      .instantiate({}, { h: { t: table, g: global, m: memory } });
    instance.call({}, "inc");
    assert.equal(global.value, 6n);
    assert.equal((table.get(1) as () => number)(), 7);
    assert.equal(table.get(0), null);
    assert.equal(new TextDecoder().decode(new Uint8Array(memory.buffer, 4, 4)), "waft");
    assert.equal(table.grow(1), 2);
    assert.throws(() => table.set(0, () => 1), TypeError);
    assert.throws(() => table.get(9), RangeError);
  });

  run("host references keep their identity", () => {
    const instance = engine.compile(`(module (table $t 3 externref)
      (func (export "set") (param i32 externref) (table.set $t (local.get 0) (local.get 1)))
      (func (export "get") (param i32) (result externref) (table.get $t (local.get 0)))
      (func (export "isNull") (param externref) (result i32) (ref.is_null (local.get 0))))`).instantiate();
    const object = { a: 1 };
    for (const value of [object, "text", undefined, -0, 5n, Symbol.iterator]) {
      instance.call({}, "set", 1, value);
      assert.ok(Object.is(instance.call({}, "get", 1), value));
      assert.equal(instance.call({}, "isNull", value), 0);
    }
    assert.equal(instance.call({}, "isNull", null), 1);
  });

  run("missing and mismatched imports are link errors", () => {
    const module = engine.compile(`(module (import "a" "f" (func (param i32))) (import "a" "g" (global i32)))`);
    assert.throws(() => module.instantiate(), LinkError);
    assert.throws(() => module.instantiate({}, { a: { f: 5, g: 1 } }), LinkError);
    assert.throws(() => module.instantiate({}, { a: { f: () => {}, g: 1n } }), LinkError);
    const other = engine.compile(`(module (func (export "f")))`).instantiate();
    assert.throws(() => module.instantiate({}, { a: { f: other.exports["f"], g: 1 } }), /incompatible import type/);
    module.instantiate({}, { a: { f: () => {}, g: 1 } });
  });

  run("calls of a closed instance throw, and its memory stays readable", () => {
    const instance = engine.compile(`(module (memory (export "m") 1) (func (export "f") (result i32) (i32.const 1)))`)
      .instantiate();
    const view = new Uint8Array((instance.exports["m"] as { buffer: ArrayBuffer }).buffer);
    const f = instance.exports["f"] as () => number;
    instance.close();
    assert.throws(() => f(), /closed/);
    assert.equal(view[0], 0);
  });
}

Deno.test("unreachable host references are released, reachable ones stay", () => {
  const instance = NewEngine().compile(`(module (table $t 100 externref)
    (func (export "set") (param i32 externref) (table.set $t (local.get 0) (local.get 1)))
    (func (export "get") (param i32) (result externref) (table.get $t (local.get 0)))
    (func (export "drop") (param externref)))`).instantiate();
  const kept = Array.from({ length: 100 }, (_, i) => ({ i }));
  const own = host.table("externref", 1);
  own.set(0, "mine");
  kept.forEach((object, i) => instance.call({}, "set", i, object));
  for (let i = 0; i < 20_000; i++) instance.call({}, "drop", { i });
  const { handles } = instance.internal.store.thread;
  assert.ok(handles.size < 5000, `${handles.size} handles are alive`);
  kept.forEach((object, i) => assert.equal(instance.call({}, "get", i), object));
  assert.equal(own.get(0), "mine");
});
