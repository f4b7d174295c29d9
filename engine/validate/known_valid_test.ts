/**
 * annotateKnownValid derives the same tables as validation.
 */
import assert from "node:assert/strict";
import { decodeModule } from "../binary/decode.ts";
import { encodeModule } from "../binary/encode.ts";
import { featureSet } from "../settings/features.ts";
import { parseModule } from "../text/parse_module.ts";
import { annotateKnownValid } from "./known_valid.ts";
import { validateModule } from "./module.ts";

const TEXT = `(module
  (rec (type $a (struct (field (ref null $b)))) (type $b (sub (struct (field (ref null $a))))))
  (type $f (func (param i32 (ref null $a)) (result i64)))
  (import "m" "f" (func (type $f))) (import "m" "t" (table 1 funcref)) (import "m" "m" (memory 1 2))
  (import "m" "g" (global $g i32)) (import "m" "e" (tag (param i32)))
  (func (param i32) (result i32) (local.get 0)) (func (export "x"))
  (table 2 3 externref) (table $t 1 (ref null $a) (ref.null $a)) (memory i64 1) (tag (param f64))
  (global i32 (i32.add (global.get $g) (i32.const 1))) (global (mut v128) (v128.const i64x2 1 2)) (global (ref null $a) (struct.new_default $a))
  (elem (i32.const 0) func 1 2) (elem declare func 1) (elem $e funcref (ref.func 1) (ref.null func))
  (data (i32.const 1) "abc") (data "d") (start 2))`;

Deno.test("the same tables without validation", () => {
  const module = decodeModule(encodeModule(parseModule(TEXT)));
  const features = featureSet();
  const { gate: _gate, usedFeatures: _used, declaredFuncs, blockResults: _blocks, ...derived } = validateModule(
    module,
    features,
  );
  const { gate: _, usedFeatures: __, hasUnknownFeatures, declaredFuncs: declared, blockResults: ___, ...known } =
    annotateKnownValid(
      module,
      features,
    );
  assert.deepEqual(known, derived);
  assert.equal(hasUnknownFeatures, true);
  assert.equal(declared.length, declaredFuncs.length);
});
