/**
 * Values of structure, array and i31 types that cross between JavaScript and compiled code.
 */
import assert from "node:assert/strict";
import { type Instance, NewEngine } from "../../engine/mod.ts";

type Exports = Record<string, (...args: unknown[]) => unknown>;

Deno.test("i31 values, objects and host values cross between JavaScript and compiled code", () => {
  const instance: Instance = NewEngine({ verify: true }).compile(`(module
    (type $s (struct (field $x (mut i32)))) (type $o (struct (field f64)))
    (func (export "any") (param anyref) (result anyref) (local.get 0))
    (func (export "eq") (param eqref) (result eqref) (local.get 0))
    (func (export "i31") (param i31ref) (result i32) (i31.get_s (local.get 0)))
    (func (export "struct") (param (ref struct)) (result structref) (local.get 0))
    (func (export "make") (param i32) (result (ref $s)) (struct.new $s (local.get 0)))
    (func (export "other") (result (ref $o)) (struct.new $o (f64.const 1)))
    (func (export "x") (param (ref null $s)) (result i32) (struct.get $s $x (local.get 0)))
    (func (export "out") (param anyref) (result externref) (extern.convert_any (local.get 0)))
    (func (export "in") (param externref) (result anyref) (any.convert_extern (local.get 0)))
    (func (export "is31") (param externref) (result i32) (ref.test (ref i31) (any.convert_extern (local.get 0))))
    (table (export "table") 2 anyref)
    (global (export "global") (mut eqref) (ref.null eq)))`).instantiate();
  const x = instance.exports as unknown as Exports;
  for (
    const value of [
      0,
      -1,
      2 ** 30 - 1,
      -(2 ** 30),
      2 ** 30,
      1.5,
      -0,
      NaN,
      "text",
      Symbol.iterator,
      null,
      undefined,
      {},
      5n,
      true,
    ]
  ) {
    assert.ok(Object.is(x["any"](value), value), String(value));
    assert.ok(Object.is(x["in"](x["out"](value)), value), String(value));
    const isI31 = typeof value === "number" && Number.isInteger(value) && Math.abs(value + 0.5) < 2 ** 30 &&
      !Object.is(value, -0);
    assert.equal(x["is31"](value), isI31 ? 1 : 0, String(value));
    if (isI31) assert.equal(x["i31"](value), value);
    else assert.throws(() => x["i31"](value), value === null ? /null i31 reference/ : TypeError);
    if (value !== null && !isI31) assert.throws(() => x["eq"](value), TypeError, String(value));
  }
  const s = x["make"](42) as object;
  assert.equal(x["x"](s), 42);
  assert.equal(x["any"](s), s);
  assert.equal(x["out"](s), s);
  assert.equal(x["struct"](s), s);
  assert.throws(() => x["x"](x["other"]()), TypeError);
  assert.throws(() => x["x"]({}), TypeError);
  assert.throws(() => x["x"](null), /null structure reference/);
  assert.throws(() => x["struct"](null), TypeError);
  assert.throws(() => Object.assign(s, { y: 1 }), TypeError);
  assert.equal(Object.getPrototypeOf(s), null);
  const { table, global } = instance.exports as unknown as {
    table: { get(i: number): unknown; set(i: number, v: unknown): void };
    global: { value: unknown };
  };
  table.set(1, s);
  assert.equal(table.get(1), s);
  table.set(1, "host");
  assert.equal(table.get(1), "host");
  global.value = s;
  assert.equal(global.value, s);
  global.value = 7;
  assert.equal(global.value, 7);
  assert.throws(() => global.value = "host", TypeError);
});
