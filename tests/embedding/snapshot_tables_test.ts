/**
 * Forged snapshots: tables through which code calls without type checks hold the module's own contents, or the snapshot
 * is rejected. (Regression: such tables were filled with functions of other types, which interpreted numbers as
 * references.)
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type Module, NewEngine, WaftError } from "@waft/engine";

const TEXT = `(module
  (type $a (func (param i64) (result i64)))
  (type $s (struct (field (mut i64))))
  (type $b (func (param (ref null $s)) (result i64)))
  (table $t 3 3 funcref)
  (elem (i32.const 0) $f $g)
  (elem (i32.const 2) funcref (ref.func $f))
  (elem declare func $reads)
  (func $f (type $a) (i64.mul (local.get 0) (i64.const 3)))
  (func $g (type $a) (i64.mul (local.get 0) (i64.const 5)))
  (func $reads (type $b) (struct.get $s 0 (local.get 0)))
  (func (export "call") (param i32 i64) (result i64) (call_indirect (type $a) (local.get 1) (local.get 0))))`;

/** Snapshot encoding of a table of functions 0, 1, 0: length, then kind and index of each. */
const CONTENT = [3, 1, 0, 1, 1, 1, 0];

function withContent(snapshot: Uint8Array, content: readonly number[]): Uint8Array {
  const end = snapshot.length - 32;
  const text = String.fromCharCode(...snapshot.subarray(0, end));
  const at = text.lastIndexOf(String.fromCharCode(...CONTENT));
  assert(at > 0);
  const body = Uint8Array.of(...snapshot.subarray(0, at), ...content, ...snapshot.subarray(at + CONTENT.length, end));
  return Uint8Array.of(...body, ...createHash("sha256").update(body).digest());
}

/** The module while some of its functions have optimized code. */
function withBatch(bounds: "guard" | "explicit"): Module {
  const module = NewEngine({ bounds, tier: "auto", tierUpCalls: 1, tierUpBatches: true }).compile(TEXT);
  const instance = module.instantiate();
  for (let k = 0; k < 3; k++) assert.equal(instance.call({}, "call", 2, 7n), 21n);
  return module;
}

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: the content of a table that code relies on cannot come from a snapshot`, () => {
    const engine = NewEngine({ bounds, tier: "optimizing" });
    const module = engine.compile(TEXT);
    assert(module.statistics["immutable-table-type"] > 0);
    const snapshot = module.instantiate().snapshot();
    for (const same of [module, engine.load(module.serialize()), withBatch(bounds)]) {
      const back = same.restore(withContent(snapshot, CONTENT));
      assert.equal(back.call({}, "call", 2, 7n), 21n);
      for (
        const content of [
          [3, 1, 2, 1, 1, 1, 0], // a function of another type
          [3, 1, 1, 1, 1, 1, 0], // the same type with other contents
          [3, 0, 1, 1, 1, 0], // null
        ]
      ) {
        assert.throws(
          () => same.restore(withContent(snapshot, content)),
          (e) => e instanceof WaftError && /table 0 differs from its initial contents/.test(e.message),
        );
      }
    }
  });
}

Deno.test("a snapshot keeps an i31 that is an external reference", () => {
  const module = NewEngine().compile(`(module
    (global $g (mut externref) (ref.null extern))
    (table $t 2 externref)
    (func (export "set")
      (global.set $g (extern.convert_any (ref.i31 (i32.const 41))))
      (table.set $t (i32.const 1) (global.get $g)))
    (func (export "get") (result i32)
      (i32.add (i31.get_s (ref.cast (ref i31) (any.convert_extern (global.get $g))))
        (i31.get_s (ref.cast (ref i31) (any.convert_extern (table.get $t (i32.const 1))))))))`);
  const instance = module.instantiate();
  instance.call({}, "set");
  assert.equal(module.restore(instance.snapshot()).call({}, "get"), 82);
});
