/**
 * Descriptors of types are written for the first code that reads them, also those of types defined before.
 */
import assert from "node:assert/strict";
import { DESCRIPTOR } from "../abi/gc_layout.ts";
import { featureSet } from "../settings/features.ts";
import { currentHost } from "../host/current.ts";
import { NewEngine } from "../mod.ts";
import { parseModule } from "../text/parse_module.ts";
import { validateModule } from "../validate/module.ts";
import { TypeTable } from "./type_table.ts";

function idsOf(text: string): Int32Array {
  return validateModule(parseModule(text), featureSet()).canonicalIds;
}

Deno.test("descriptors of function types are written once code reads descriptors", () => {
  const host = currentHost();
  const table = new TypeTable(host);
  const [id] = idsOf("(module (type (func (param i64 i64 f32))))");
  const isWritten = (id: number) => {
    const row = new Uint8Array(host.view(table.address + id * DESCRIPTOR.SIZE, DESCRIPTOR.SIZE));
    return row.some((byte) => byte !== 0);
  };
  table.define(Int32Array.of(id), false);
  assert.equal(isWritten(id), false);
  table.define(idsOf("(module (type (struct)))"), true);
  assert.equal(isWritten(id), true);
  const [later] = idsOf("(module (type (func (param f64 i64 f32))))");
  table.define(Int32Array.of(later), false);
  assert.equal(isWritten(later), true);
});

for (const tier of ["baseline", "optimizing"] as const) {
  Deno.test(`a function of a module without casts is cast by another module: ${tier}`, () => {
    const engine = NewEngine({ tier });
    const plain = engine.compile(`(module
      (func (export "f") (param i32 f32 i64)) (func (export "g") (param i32 f32 i32)))`).instantiate();
    const casting = engine.compile(`(module (type $f (func (param i32 f32 i64)))
      (func (export "isF") (param funcref) (result i32) (ref.test (ref $f) (local.get 0))))`).instantiate();
    const { f, g } = plain.exports;
    assert.deepEqual([casting.call({}, "isF", f), casting.call({}, "isF", g)], [1, 0]);
  });
}
