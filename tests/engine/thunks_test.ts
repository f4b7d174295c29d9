/** Entry thunks exist for the functions that JavaScript can get hold of, one per signature, and for no others. */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";

const MODULE = `(module
  (import "host" "f" (func $imported (param f32) (result f32)))
  (export "imported" (func $imported))
  (table (export "table") 1 funcref)
  (elem (i32.const 0) func $element)
  (elem declare func $referenced)
  (global (export "global") funcref (ref.func $constant))
  (func $element (param i64) (result i64) (local.get 0))
  (func $constant (param f64) (result f64) (local.get 0))
  (func $referenced (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func $start (call $private (i32.const 1) (i64.const 2)))
  (func $private (param i32 i64))
  (func (export "get") (result funcref) (ref.func $referenced))
  (start $start))`;

Deno.test("every function that JavaScript can get hold of has an entry thunk", () => {
  for (const tier of ["baseline", "optimizing"] as const) {
    const instance = NewEngine({ tier }).compile(MODULE).instantiate({}, { host: { f: (x: number) => x + 1 } });
    const { imported, table, global, get } = instance.exports as Record<string, never> & {
      imported(x: number): number;
      table: { get(index: number): (x: bigint) => bigint };
      global: { value: (x: number) => number };
      get(): (a: number, b: number) => number;
    };
    assert.equal(imported(2), 3);
    assert.equal(table.get(0)(5n), 5n);
    assert.equal(global.value(1.5), 1.5);
    assert.equal(get()(2, 3), 5);
    const { module } = instance.internal;
    const thunks = [...module.image.tables.entryThunk].filter((offset) => offset >= 0);
    assert.equal(thunks.length, new Set(thunks).size);
    assert.throws(() => module.entryThunk(5), /Function 5 has no entry thunk/, "$private is never seen");
    assert.ok(module.entryThunk(4) > 0, "$start is called from JavaScript");
  }
});
