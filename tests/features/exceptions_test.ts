/**
 * Exceptions across boundaries that the random programs do not cross: other instances, host functions, tail calls,
 * JavaScript errors, exnref in tables and globals, and endless catching in bounded memory.
 */
import assert from "node:assert/strict";
import { type Engine, host, NewEngine, type Tag, TrapError, WasmException } from "../../engine/mod.ts";
import { WasiExit } from "../../engine/wasi/mod.ts";

const MODES = ["guard", "explicit"] as const;

function engineOf(bounds: "guard" | "explicit"): Engine {
  return NewEngine({ bounds, verify: true });
}

for (const bounds of MODES) {
  Deno.test(`an uncaught exception reaches JavaScript with tag and payload (${bounds})`, () => {
    const instance = engineOf(bounds).compile(`(module
      (tag $t (export "t") (param i32 i64 f32 f64 externref funcref))
      (func $f (export "f") (param externref)
        (throw $t (i32.const -1) (i64.const -2) (f32.const 0.5) (f64.const -0.25) (local.get 0) (ref.func $f))))`)
      .instantiate();
    const value = { some: "object" };
    assert.throws(() => instance.call({}, "f", value), (error) => {
      assert(error instanceof WasmException && error instanceof Error);
      assert.equal(error.tag, instance.exports["t"]);
      assert.deepEqual(error.tag.parameters, ["i32", "i64", "f32", "f64", "externref", "funcref"]);
      assert.deepEqual(error.payload.slice(0, 4), [-1, -2n, 0.5, -0.25]);
      assert.equal(error.payload[4], value);
      assert.equal(error.payload[5], instance.exports["f"]);
      return true;
    });
  });

  Deno.test(`exceptions cross instances and host functions; each handler runs in its own context (${bounds})`, () => {
    const engine = engineOf(bounds);
    const thrower = engine.compile(`(module
      (tag $t (export "t") (param i32))
      (memory 1) (data (i32.const 0) "\\01")
      (func (export "throw") (param i32) (throw $t (i32.add (local.get 0) (i32.load8_u (i32.const 0))))))`)
      .instantiate();
    const catcher = engine.compile(`(module
      (import "m" "t" (tag $t (param i32)))
      (import "m" "throw" (func $throw (param i32)))
      (import "m" "through" (func $through (param i32)))
      (memory 1) (data (i32.const 0) "\\64")
      (func $catch (export "catch") (param i32 i32) (result i32) (local i32)
        (local.set 2 (i32.const 1000))
        (block $h (result i32)
          (try_table (catch $t $h)
            (local.set 2 (i32.add (local.get 2) (i32.load8_u (i32.const 0))))
            (if (local.get 1) (then (call $through (local.get 0))) (else (call $throw (local.get 0))))
            (local.set 2 (i32.const -1)))
          (return (i32.const -2)))
        (i32.add (i32.add (local.get 2)) (i32.load8_u (i32.const 0)))))`);
    let depth = 0;
    const instance = catcher.instantiate({}, {
      m: {
        ...thrower.exports,
        through: (x: number) => {
          // Back into compiled code, which throws through this frame.
          if (depth++ < 3) return instance.call({}, "catch", x, 0);
          return thrower.call({}, "throw", x);
        },
      },
    });
    assert.equal(instance.call({}, "catch", 7, 0), 8 + 1100 + 100);
    depth = 3;
    assert.equal(instance.call({}, "catch", 7, 1), 8 + 1100 + 100);
    depth = 0;
    assert.equal(instance.call({}, "catch", 7, 1), -2);
  });

  Deno.test(`only catch_all catches JavaScript exceptions, which keep their identity (${bounds})`, () => {
    const engine = engineOf(bounds);
    const thrown: unknown[] = [new Error("x"), "text", undefined, null, 5];
    let next: unknown;
    const instance = engine.compile(`(module
      (import "h" "f" (func $f))
      (tag $t (param i32))
      (func (export "all") (result i32)
        (block $h (try_table (catch_all $h) (call $f)) (return (i32.const 0))) (i32.const 1))
      (func (export "again")
        (block $h (result exnref) (try_table (catch_all_ref $h) (call $f)) (return)) (throw_ref))
      (func (export "tag") (result i32)
        (block $h (result i32) (try_table (catch $t $h) (call $f)) (i32.const 0))))`)
      .instantiate({}, {
        h: {
          f: () => {
            throw next;
          },
        },
      });
    for (next of thrown) {
      assert.equal(instance.call({}, "all"), 1);
      for (const name of ["again", "tag"]) {
        try {
          instance.call({}, name);
          assert.fail("nothing was thrown");
        } catch (error) {
          assert.equal(error, next);
        }
      }
    }
    next = new WasiExit(3);
    assert.throws(() => instance.call({}, "all"), WasiExit);
    next = new TrapError("unreachable");
    assert.throws(() => instance.call({}, "all"), TrapError);
  });

  Deno.test(`JavaScript throws exceptions with its own tags and with imported ones (${bounds})`, () => {
    const engine = engineOf(bounds);
    const tag = host.tag("i32", "f64", "externref");
    assert.throws(() => host.tag("i33"), /Unknown value type "i33"/);
    assert.deepEqual(host.tag("v128", "exnref", "nullref").parameters, ["v128", "exnref", "nullref"]);
    assert.throws(() => new WasmException(tag, [1]), TypeError);
    const instance = engine.compile(`(module
      (import "h" "t" (tag $t (param i32 f64 externref)))
      (import "h" "f" (func $f))
      (func (export "f") (result i32 f64 externref)
        (block $h (result i32 f64 externref)
          (try_table (catch $t $h) (call $f)) (unreachable))))`)
      .instantiate({}, {
        h: {
          t: tag,
          f: () => {
            throw new WasmException(tag, ["7", 2.5, tag]);
          },
        },
      });
    assert.deepEqual(instance.call({}, "f"), [7, 2.5, tag]);
    assert.throws(
      () => engine.compile(`(module (import "h" "t" (tag (param i64))))`).instantiate({}, { h: { t: tag } }),
      /incompatible import type/,
    );
  });

  Deno.test(`exceptions unwind through frames of tail calls between instances (${bounds})`, () => {
    const engine = engineOf(bounds);
    const far = engine.compile(`(module (tag (export "t")) (memory 1)
      (func (export "far") (param i32) (if (local.get 0) (then (throw 0)))))`).instantiate();
    const near = engine.compile(`(module
      (import "m" "t" (tag $t)) (import "m" "far" (func $far (param i32)))
      (memory 1) (data (i32.const 0) "\\07")
      (func $jump (param i32) (return_call $far (local.get 0)))
      (func (export "f") (param i32) (result i32)
        (block $h (try_table (catch $t $h) (call $jump (local.get 0))) (return (i32.load8_u (i32.const 0))))
        (i32.mul (i32.const 10) (i32.load8_u (i32.const 0)))))`).instantiate({}, { m: far.exports });
    assert.equal(near.call({}, "f", 0), 7);
    assert.equal(near.call({}, "f", 1), 70);
  });

  Deno.test(`a null exnref traps, and tables and globals keep exceptions (${bounds})`, () => {
    const instance = engineOf(bounds).compile(`(module
      (tag $t (param i32 externref))
      (table $kept 4000 exnref) (global $one (mut exnref) (ref.null exn))
      (func (export "null") (throw_ref (ref.null exn)))
      (func $make (param i32 externref) (result exnref)
        (block $h (result i32 externref exnref)
          (try_table (catch_ref $t $h) (throw $t (local.get 0) (local.get 1))) (unreachable))
        (local.set 1 (ref.null extern)) (global.set $one) (drop) (drop) (global.get $one))
      (func (export "fill") (param i32 externref)
        (loop $l
          (table.set $kept (local.get 0) (call $make (local.get 0) (local.get 1)))
          (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
      (func (export "at") (param i32) (result i32 externref)
        (block $h (result i32 externref)
          (try_table (catch $t $h) (throw_ref (table.get $kept (local.get 0)))) (unreachable)))
      (func (export "churn") (param i32)
        (loop $l
          (drop (call $make (local.get 0) (ref.null extern)))
          (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))`).instantiate();
    assert.throws(() => instance.call({}, "null"), /null exception reference/);
    instance.call({}, "fill", 3999, instance);
    instance.call({}, "churn", 20_000);
    // Thousands were dropped within one call; all reachable ones stay.
    const { exceptions } = instance.internal.store.thread;
    assert(exceptions.size < 20_000, `${exceptions.size} exceptions are kept`);
    for (const k of [1, 500, 3999]) assert.deepEqual(instance.call({}, "at", k), [k, instance]);
  });
}

Deno.test("catch_all does not catch traps", () => {
  const instance = NewEngine({ verify: true }).compile(`(module
    (func $div (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))
    (func (export "f") (param i32) (result i32)
      (block $h (try_table (catch_all $h) (return (call $div (local.get 0))))) (i32.const 9)))`).instantiate();
  assert.equal(instance.call({}, "f", 1), 1);
  assert.throws(() => instance.call({}, "f", 0), /integer divide by zero/);
  assert.equal(instance.call({}, "f", 1), 1);
});

Deno.test("tags are distinguished by instance, not by type", () => {
  const engine = NewEngine({ verify: true });
  const module = engine.compile(`(module (tag $t (export "t")) (func (export "f") (throw $t)))`);
  const [one, two] = [module.instantiate(), module.instantiate()];
  const catcher = engine.compile(`(module
    (import "one" "t" (tag $one)) (import "two" "t" (tag $two)) (import "two" "t" (tag $same))
    (import "m" "f" (func $f))
    (func (export "f") (result i32)
      (block $b (block $a (try_table (catch $one $a) (catch $same $b) (call $f)) (unreachable)) (return (i32.const 1)))
      (i32.const 2)))`);
  const link = (m: typeof one) => catcher.instantiate({}, { one: one.exports, two: two.exports, m: m.exports });
  assert.equal(link(one).call({}, "f"), 1);
  assert.equal(link(two).call({}, "f"), 2);
  assert.notEqual(one.exports["t"] as Tag, two.exports["t"]);
});

Deno.test("a deep stack is unwound to its handler repeatedly", () => {
  const instance = NewEngine({ verify: true }).compile(`(module
    (tag $t (param i32))
    (func $down (param i32) (result i32)
      (if (i32.eqz (local.get 0)) (then (throw $t (i32.const 42))))
      (i32.add (local.get 0) (call $down (i32.sub (local.get 0) (i32.const 1)))))
    (func (export "f") (param i32 i32) (result i32) (local i32)
      (loop $l
        (local.set 2 (i32.add (local.get 2)
          (block $h (result i32) (try_table (result i32) (catch $t $h) (call $down (local.get 0))))))
        (br_if $l (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
      (local.get 2)))`).instantiate();
  assert.equal(instance.call({}, "f", 5000, 20), 840);
});
