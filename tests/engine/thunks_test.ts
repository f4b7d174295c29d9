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

/** A signature with parameters of all banks, in an order that few programs have. */
const RARE_PARAMETERS = ["f32", "i64", "f64", "f64", "i32", "f32", "i64", "i32"];

const RARE = `(module
  (import "host" "fail" (func $fail))
  (table (export "table") 2 funcref)
  (elem (i32.const 0) $rare $failing)
  (func $rare (export "rare") (param ${RARE_PARAMETERS.join(" ")}) (result f64)
    (f64.add (local.get 3) (f64.convert_i64_s (local.get 6))))
  (func $failing (param f64 f32 i64 i64 f32 f64 i32) (result f32) (call $fail) (unreachable)))`;

Deno.test("entry thunks of any signature exist when the module is compiled", async () => {
  const host = {
    fail() {
      throw new Error("from the host");
    },
  };
  const instance = NewEngine().compile(RARE).instantiate({}, { host });
  const { module } = instance.internal;
  assert.equal([...module.image.tables.entryThunk].filter((offset) => offset >= 0).length, 2);
  assert.ok(module.hasEntryThunk(1) && module.hasEntryThunk(2));
  const { table, rare } = instance.exports as unknown as {
    table: { get(index: number): (...args: unknown[]) => unknown };
    rare(...args: unknown[]): number;
  };
  assert.equal(rare(1, 2n, 3, 4, 5, 6, 7n, 8), 11);
  assert.equal(table.get(0)(1, 2n, 3, 0.5, 5, 6, 7n, 8), 7.5);
  const failing = table.get(1);
  assert.throws(() => failing(1, 2, 3n, 4n, 5, 6, 7), /from the host/);
  const another = NewEngine().compile(RARE.replace("(call $fail)", "")).instantiate({}, { host });
  const trapping = (another.exports as unknown as typeof instance.exports & { table: typeof table }).table.get(1);
  assert.throws(() => trapping(1, 2, 3n, 4n, 5, 6, 7), (error: Error & { frames?: { funcIndex: number }[] }) => {
    assert.deepEqual(error.frames?.map(({ funcIndex }) => funcIndex), [2]);
    return /unreachable/.test(error.message);
  });
  assert.equal(await instance.callAsync({}, "rare", 1, 2n, 3, 4, 5, 6, 7n, 8), 11);
});

Deno.test("an entered function runs before and after its module is optimized", () => {
  for (const tierUpCalls of [0, 1, 2]) {
    const instance = NewEngine({ tierUpCalls }).compile(RARE).instantiate({}, { host: { fail() {} } });
    for (let call = 0; call < 4; call++) {
      assert.equal(instance.call({}, "rare", 1, 2n, 3, call, 5, 6, 7n, 8), 7 + call);
    }
  }
});
